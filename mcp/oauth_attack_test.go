package mcp_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/mcp"
)

// Tokens that somebody forged, found or took elsewhere let nobody in, over HTTP.
func TestForgedTokensLetNobodyIn(t *testing.T) {
	is, other := newIssuer(t), newIssuer(t)
	url := serve(t, mcp.Config{}, mcp.HTTP{OAuth: &mcp.OAuth{Issuer: is.url, Resource: resource}})
	sign := func(method jwt.SigningMethod, key any, header map[string]any) string {
		tok := jwt.NewWithClaims(method, is.claims(nil))
		tok.Header["kid"] = "r"
		for k, v := range header {
			tok.Header[k] = v
		}
		s, err := tok.SignedString(key)
		require.NoError(t, err)
		return s
	}
	public, err := x509.MarshalPKIXPublicKey(&is.rsa.PublicKey)
	require.NoError(t, err)
	publicPEM := pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: public})
	own, err := rsa.GenerateKey(rand.Reader, 2048)
	require.NoError(t, err)
	ownKey := map[string]any{"kty": "RSA", "kid": "r", "n": b64(own.N.Bytes()), "e": "AQAB"}
	good := is.token(t, nil)
	head, rest, _ := strings.Cut(good, ".")
	claims, signature, _ := strings.Cut(rest, ".")
	set := func(k string, v any) func(jwt.MapClaims) { return func(c jwt.MapClaims) { c[k] = v } }
	for name, token := range map[string]string{
		"alg none":                             sign(jwt.SigningMethodNone, jwt.UnsafeAllowNoneSignatureType, nil),
		"alg none, in capitals":                b64([]byte(`{"alg":"NONE","kid":"r"}`)) + "." + claims + ".",
		"no signature":                         head + "." + claims + ".",
		"HS256 with the public key":            sign(jwt.SigningMethodHS256, publicPEM, nil),
		"HS256 with the public key's bytes":    sign(jwt.SigningMethodHS256, public, nil),
		"HS256 with the modulus":               sign(jwt.SigningMethodHS256, is.rsa.N.Bytes(), nil),
		"HS256 and no secret":                  sign(jwt.SigningMethodHS256, []byte{}, nil),
		"another's key under a known name":     sign(jwt.SigningMethodRS256, own, nil),
		"a key in the header":                  sign(jwt.SigningMethodRS256, own, map[string]any{"jwk": ownKey}),
		"an address of keys in the header":     sign(jwt.SigningMethodRS256, own, map[string]any{"jku": other.url + "/keys"}),
		"a kid that points to a file":          sign(jwt.SigningMethodRS256, own, map[string]any{"kid": "../../../dev/null"}),
		"a kid that is a query":                sign(jwt.SigningMethodRS256, own, map[string]any{"kid": "x' UNION SELECT 'key"}),
		"a kid of the other kind":              sign(jwt.SigningMethodRS256, own, map[string]any{"kid": "e"}),
		"a kid that points to nothing":         sign(jwt.SigningMethodRS256, is.rsa, map[string]any{"kid": "none"}),
		"no kid, of two keys":                  sign(jwt.SigningMethodRS256, is.rsa, map[string]any{"kid": ""}),
		"an extension that must be understood": sign(jwt.SigningMethodRS256, is.rsa, map[string]any{"crit": []string{"exp"}}),
		"another tenant's token":               other.token(t, nil),
		"another tenant's, in this name":       other.token(t, set("iss", is.url)),
		"another audience":                     is.token(t, set("aud", "https://other.example/mcp")),
		"an audience that begins alike":        is.token(t, set("aud", resource+"/more")),
		"no audience":                          is.token(t, func(c jwt.MapClaims) { delete(c, "aud") }),
		"an issuer that begins alike":          is.token(t, set("iss", is.url+".example")),
		"no issuer":                            is.token(t, func(c jwt.MapClaims) { delete(c, "iss") }),
		"expired":                              is.token(t, set("exp", time.Now().Add(-time.Minute).Unix())),
		"not valid yet":                        is.token(t, set("nbf", time.Now().Add(time.Hour).Unix())),
		"issued in the future":                 is.token(t, set("iat", time.Now().Add(time.Hour).Unix())),
		"an expiry that is no number":          is.token(t, set("exp", "never")),
		"a subject that is no text":            is.token(t, set("sub", []string{"alice"})),
		"other claims, the same signature":     head + "." + b64([]byte(`{"sub":"root"}`)) + "." + signature,
		"four parts":                           good + ".x",
		"five parts":                           good + ".x.y",
		"as JSON":                              `{"payload":"` + claims + `","signatures":[{"protected":"` + head + `","signature":"` + signature + `"}]}`,
		"12 KB":                                strings.Repeat("A", 12<<10),
		"12 KB of dots":                        strings.Repeat(".", 12<<10),
		"deep claims":                          head + "." + b64([]byte(strings.Repeat("[", 8<<10))) + "." + signature,
		"with a line end":                      good[:20] + "\t" + good[20:],
	} {
		res, body := (&client{t: t, url: url, header: map[string]string{"Authorization": "Bearer " + token}}).post(hello)
		require.Equal(t, http.StatusUnauthorized, res.StatusCode, "%s: %s", name, body)
		require.NotContains(t, body+res.Header.Get("WWW-Authenticate"), token[:min(len(token), 30)], "%s: repeated", name)
	}
	for name, c := range map[string]*client{
		"in the query":  {t: t, url: url + "?access_token=" + good},
		"as a cookie":   {t: t, url: url, header: map[string]string{"Cookie": "access_token=" + good}},
		"as a password": {t: t, url: url, header: map[string]string{"Authorization": "Basic " + good}},
	} {
		res, _ := c.post(hello)
		require.Equal(t, http.StatusUnauthorized, res.StatusCode, name)
	}
	alice := connect(t, url, map[string]string{"Authorization": "Bearer " + good})
	bob := is.token(t, set("sub", "bob"))
	res, _ := (&client{t: t, url: url, session: alice.session, header: map[string]string{"Authorization": "Bearer " + bob}}).
		post(`{"jsonrpc":"2.0","id":2,"method":"ping"}`)
	require.Equal(t, http.StatusNotFound, res.StatusCode, "another's session")
	require.LessOrEqual(t, is.asked, 1, "no token makes the server ask again and again")
	require.Zero(t, other.asked, "no token chooses whose keys are read")
}

// Scopes are read as one string and as a list, under both of their names.
func TestScopesAreReadInEveryForm(t *testing.T) {
	is := newIssuer(t)
	o := &mcp.OAuth{Issuer: is.url, Resource: resource}
	for _, name := range []string{"scope", "scp"} {
		for _, form := range []any{"megatron-ops:read megatron-ops:write", []string{"megatron-ops:read", "megatron-ops:write"}} {
			g, err := o.Verify(t.Context(), is.token(t, func(c jwt.MapClaims) { delete(c, "scope"); c[name] = form }))
			require.NoError(t, err, "%s %v", name, form)
			require.Len(t, g.Effects, 2, "%s %v", name, form)
		}
	}
}

// While the issuer does not answer, callers whose key is known go on without waiting. The
// others are told that it is not their token, so that their clients keep it, and the
// server's log says why.
func TestAnIssuerThatHangsDelaysNobodyElse(t *testing.T) {
	is := newIssuer(t)
	var hangs atomic.Bool
	release := make(chan struct{})
	keys := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if hangs.Load() {
			select {
			case <-release:
			case <-r.Context().Done():
			}
			return
		}
		http.Redirect(w, r, is.url+"/keys", http.StatusFound)
	}))
	t.Cleanup(keys.Close)
	goOn := sync.OnceFunc(func() { close(release) })
	t.Cleanup(goOn)
	var log bytes.Buffer
	at := &mcp.OAuth{Issuer: is.url, Resource: resource, JWKS: keys.URL, Client: &http.Client{Timeout: time.Minute}}
	url := serve(t, mcp.Config{}, mcp.HTTP{OAuth: at, Log: slog.New(slog.NewTextHandler(&log, nil))})

	// A sender who hangs up at once, before anybody else, does not leave the server without keys.
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := at.Verify(gone, is.token(t, nil))
	require.Error(t, err)
	connect(t, url, map[string]string{"Authorization": "Bearer " + is.token(t, nil)})

	hangs.Store(true)
	mcp.ForgetWhenKeysWereRead(at)
	unknown := jwt.NewWithClaims(jwt.SigningMethodRS256, is.claims(nil))
	unknown.Header["kid"] = "rotated in meanwhile"
	made, err := unknown.SignedString(is.rsa)
	require.NoError(t, err)
	told := make(chan reply)
	go func() {
		res, _ := (&client{t: t, url: url, header: map[string]string{"Authorization": "Bearer " + made}}).post(hello)
		told <- res
	}()
	require.Eventually(t, func() bool { return mcp.ReadsKeys(at) }, time.Minute, time.Millisecond)
	connect(t, url, map[string]string{"Authorization": "Bearer " + is.token(t, nil)})
	require.True(t, mcp.ReadsKeys(at), "waited for another's key")
	goOn()
	res := <-told
	require.Equal(t, http.StatusServiceUnavailable, res.StatusCode)
	require.Equal(t, "30", res.Header.Get("Retry-After"))
	require.Empty(t, res.Header.Get("WWW-Authenticate"))
	require.Contains(t, log.String(), "signing keys cannot be read")
}

// Key documents that are too long, or lead to a place where somebody could replace them,
// are not believed; the server's log says why.
func TestKeyDocumentsThatAreNotBelieved(t *testing.T) {
	is := newIssuer(t)
	for i := range 10_000 {
		is.more = append(is.more, map[string]string{"kty": "RSA", "kid": strconv.Itoa(i), "n": b64(is.rsa.N.Bytes()), "e": "AQAB"})
	}
	plain := httptest.NewServer(http.RedirectHandler("http://keys.invalid/keys", http.StatusFound))
	t.Cleanup(plain.Close)
	for at, why := range map[string]string{is.url + "/keys": "is longer than 1048576 bytes", plain.URL: "http://keys.invalid/keys is not https"} {
		var log bytes.Buffer
		o := &mcp.OAuth{Issuer: is.url, Resource: resource, JWKS: at, Log: slog.New(slog.NewTextHandler(&log, nil))}
		_, err := o.Verify(t.Context(), is.token(t, nil))
		require.ErrorContains(t, err, "cannot be read at the moment")
		_, err = o.Verify(t.Context(), is.token(t, nil))
		require.ErrorContains(t, err, "cannot be read at the moment")
		require.Equal(t, 1, strings.Count(log.String(), why), log.String())
	}
}
