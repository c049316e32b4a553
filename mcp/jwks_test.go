package mcp

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/stretchr/testify/require"
)

// A key that an issuer starts to use is accepted within half a minute, a withdrawn key
// is refused after an hour, or half a minute after an issuer that was down then is back. It
// changes nothing meanwhile.
func TestAnIssuerChangesItsKeys(t *testing.T) {
	keys, asked, away := jose.JSONWebKeySet{}, 0, false
	add := func(kid string) {
		k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		require.NoError(t, err)
		keys.Keys = append(keys.Keys, jose.JSONWebKey{Key: &k.PublicKey, KeyID: kid, Algorithm: "ES256", Use: "sig"})
	}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked++
		if away {
			w.WriteHeader(http.StatusInternalServerError)
			return
		}
		_ = json.NewEncoder(w).Encode(keys)
	}))
	t.Cleanup(srv.Close)
	now := time.Date(2026, 6, 11, 10, 0, 0, 0, time.UTC)
	s := &keySet{url: srv.URL, client: srv.Client(), now: func() time.Time { return now }, log: slog.New(slog.DiscardHandler)}
	for _, step := range []struct {
		name   string
		before func()
		kid    string
		alg    string
		known  bool
		asked  int
	}{
		{"the first", func() { add("a") }, "a", "ES256", true, 1},
		{"without a name it is the only one", nil, "", "ES256", true, 1},
		{"of another form", nil, "a", "RS256", false, 1},
		{"one that is made up", nil, "b", "ES256", false, 1},
		{"asked for at once again", func() { add("b"); now = now.Add(keysRetry) }, "b", "ES256", false, 1},
		{"a new one", func() { now = now.Add(time.Second) }, "b", "ES256", true, 2},
		{"without a name it is none of two", nil, "", "ES256", false, 2},
		{"known ones are not asked for", func() { now = now.Add(keysRetry + time.Second) }, "a", "ES256", true, 2},
		{"the issuer is away", func() { away = true; now = now.Add(keysFresh) }, "a", "ES256", true, 3},
		{"away, and one that nobody knows", func() { now = now.Add(keysRetry + time.Second) }, "c", "ES256", false, 4},
		{"withdrawn, and known to nobody yet", func() { away = false; keys.Keys = keys.Keys[1:]; now = now.Add(keysRetry) }, "a", "ES256", true, 4},
		{"the first who comes after half a minute", func() { now = now.Add(time.Second) }, "a", "ES256", true, 5},
		{"withdrawn", nil, "a", "ES256", false, 5},
		{"what stays", nil, "b", "ES256", true, 5},
		{"withdrawn as well", func() { keys.Keys = nil; now = now.Add(keysFresh + time.Second) }, "b", "ES256", false, 6},
	} {
		if step.before != nil {
			step.before()
		}
		_, err := s.find(context.Background(), step.kid, step.alg)
		s.settle()
		require.Equal(t, step.known, err == nil, "%s: %v", step.name, err)
		require.Equal(t, step.asked, asked, step.name)
	}
}

// An issuer that moves its keys names the new address in its metadata.
func TestAnIssuerMovesItsKeys(t *testing.T) {
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	at := "/old"
	mux := http.NewServeMux()
	srv := httptest.NewServer(mux)
	t.Cleanup(srv.Close)
	mux.HandleFunc("/.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(map[string]string{"issuer": srv.URL, "jwks_uri": srv.URL + at})
	})
	mux.HandleFunc("/{keys}", func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != at {
			http.NotFound(w, r)
			return
		}
		_ = json.NewEncoder(w).Encode(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: &k.PublicKey, KeyID: at, Use: "sig"}}})
	})
	now := time.Date(2026, 6, 11, 10, 0, 0, 0, time.UTC)
	s := &keySet{issuer: srv.URL, client: srv.Client(), now: func() time.Time { return now }, log: slog.New(slog.DiscardHandler)}
	_, err = s.find(t.Context(), "/old", "ES256")
	require.NoError(t, err)
	at = "/new"
	for _, want := range []error{errKeysAway, nil} {
		now = now.Add(keysRetry + time.Second)
		_, err = s.find(t.Context(), "/new", "ES256")
		require.ErrorIs(t, err, want)
	}
}

// settle waits for the fetch in progress.
func (s *keySet) settle() {
	s.mu.Lock()
	ended := s.fetching
	s.mu.Unlock()
	if ended != nil {
		<-ended
	}
}
