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
// is refused after an hour, and an issuer that is down changes nothing meanwhile.
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
		{"withdrawn", func() { away = false; keys.Keys = keys.Keys[1:]; now = now.Add(keysFresh + time.Second) }, "a", "ES256", false, 5},
		{"what stays", nil, "b", "ES256", true, 5},
	} {
		if step.before != nil {
			step.before()
		}
		_, err := s.find(context.Background(), step.kid, step.alg)
		require.Equal(t, step.known, err == nil, "%s: %v", step.name, err)
		require.Equal(t, step.asked, asked, step.name)
	}
}
