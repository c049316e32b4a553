package mcp_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"math/big"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/mcp"
)

// An issuer signs tokens and publishes its keys over real HTTP.
type issuer struct {
	url   string
	rsa   *rsa.PrivateKey
	ec    *ecdsa.PrivateKey
	asked int
	more  []any
}

var b64 = base64.RawURLEncoding.EncodeToString

func newIssuer(t *testing.T) *issuer {
	t.Helper()
	is := &issuer{}
	var err error
	is.rsa, err = rsa.GenerateKey(rand.Reader, 2048)
	require.NoError(t, err)
	is.ec, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	point, err := is.ec.PublicKey.Bytes()
	require.NoError(t, err)
	mux := http.NewServeMux()
	answer := func(path string, doc func() any) {
		mux.HandleFunc(path, func(w http.ResponseWriter, _ *http.Request) { _ = json.NewEncoder(w).Encode(doc()) })
	}
	answer("/.well-known/oauth-authorization-server", func() any {
		return map[string]string{"issuer": is.url, "jwks_uri": is.url + "/keys"}
	})
	answer("/keys", func() any {
		is.asked++
		return map[string]any{"keys": append([]any{
			map[string]string{"kty": "RSA", "kid": "r", "use": "sig", "alg": "RS256", "n": b64(is.rsa.N.Bytes()), "e": b64(big.NewInt(int64(is.rsa.E)).Bytes())},
			map[string]string{"kty": "EC", "kid": "e", "crv": "P-256", "x": b64(point[1:33]), "y": b64(point[33:])},
		}, is.more...)}
	})
	srv := httptest.NewServer(mux)
	t.Cleanup(srv.Close)
	is.url = srv.URL
	return is
}

const resource = "http://localhost/mcp"

func (is *issuer) claims(change func(jwt.MapClaims)) jwt.MapClaims {
	c := jwt.MapClaims{"iss": is.url, "aud": resource, "sub": "alice", "exp": time.Now().Add(time.Minute).Unix(), "scope": "megatron-ops:read"}
	if change != nil {
		change(c)
	}
	return c
}

func (is *issuer) token(t *testing.T, change func(jwt.MapClaims)) string {
	t.Helper()
	tok := jwt.NewWithClaims(jwt.SigningMethodRS256, is.claims(change))
	tok.Header["kid"] = "r"
	s, err := tok.SignedString(is.rsa)
	require.NoError(t, err)
	return s
}

func TestAccessTokensOfAnIssuer(t *testing.T) {
	is := newIssuer(t)
	o := &mcp.OAuth{Issuer: is.url, Resource: resource, User: func(sub string) string { return map[string]string{"alice": "al"}[sub] }}
	hmac := func() string {
		s, err := jwt.NewWithClaims(jwt.SigningMethodHS256, is.claims(nil)).SignedString([]byte("public"))
		require.NoError(t, err)
		return s
	}()
	ecToken := jwt.NewWithClaims(jwt.SigningMethodES256, is.claims(nil))
	ecToken.Header["kid"] = "e"
	ec, err := ecToken.SignedString(is.ec)
	require.NoError(t, err)
	set := func(k string, v any) func(jwt.MapClaims) { return func(c jwt.MapClaims) { c[k] = v } }
	for name, c := range map[string]struct{ token, problem string }{
		"good":             {is.token(t, nil), ""},
		"good, EC":         {ec, ""},
		"list of audience": {is.token(t, set("aud", []string{"x", resource})), ""},
		"expired":          {is.token(t, set("exp", time.Now().Add(-time.Hour).Unix())), "token is expired (exp)"},
		"never expires":    {is.token(t, func(c jwt.MapClaims) { delete(c, "exp") }), "missing"},
		"other audience":   {is.token(t, set("aud", "https://other.example/mcp")), "audience"},
		"other issuer":     {is.token(t, set("iss", "https://other.example")), "issuer"},
		"no scope":         {is.token(t, set("scope", "email")), "scopes"},
		"no subject":       {is.token(t, set("sub", "")), "subject"},
		"tampered":         {is.token(t, nil)[:20] + "x" + is.token(t, nil)[21:], "token"},
		"hmac":             {hmac, "signature"},
		"nonsense":         {"abc", "malformed"},
	} {
		g, err := o.Verify(t.Context(), c.token)
		if c.problem == "" {
			require.NoError(t, err, name)
			require.Equal(t, "al", g.User, name)
			require.True(t, g.ReadOnly, name)
			continue
		}
		require.ErrorContains(t, err, c.problem, name)
		require.NotContains(t, err.Error(), "go-jose", "which library found it")
	}
	require.Equal(t, 1, is.asked, "an unknown key's name does not make the server ask again and again")
}

// Keys that prove nothing are ignored: one for encryption, a secret, a short one, a
// curve without its point. The good key among them still works.
func TestKeysThatProveNothingAreNotBelieved(t *testing.T) {
	is := newIssuer(t)
	short, err := rsa.GenerateKey(rand.Reader, 1024)
	require.NoError(t, err)
	is.more = []any{
		map[string]string{"kty": "RSA", "kid": "enc", "use": "enc", "n": b64(is.rsa.N.Bytes()), "e": "AQAB"},
		map[string]string{"kty": "AKP", "kid": "of a kind that is not known here", "alg": "ML-DSA-44", "pub": "AAAA"},
		map[string]string{"kty": "EC", "crv": "P-256", "kid": "off its curve", "x": "AAAA", "y": "AAAA"},
		map[string]string{"kty": "oct", "kid": "secret", "k": b64([]byte("0123456789abcdef0123456789abcdef"))},
		map[string]string{"kty": "RSA", "kid": "short", "n": b64(short.N.Bytes()), "e": "AQAB"},
	}
	o := &mcp.OAuth{Issuer: is.url, Resource: resource}
	sign := func(kid string, method jwt.SigningMethod, key any) string {
		tok := jwt.NewWithClaims(method, is.claims(nil))
		tok.Header["kid"] = kid
		s, err := tok.SignedString(key)
		require.NoError(t, err)
		return s
	}
	for kid, token := range map[string]string{
		"enc": sign("enc", jwt.SigningMethodRS256, is.rsa), "short": sign("short", jwt.SigningMethodRS256, short),
		"secret": sign("secret", jwt.SigningMethodHS256, []byte("0123456789abcdef0123456789abcdef")),
	} {
		_, err := o.Verify(t.Context(), token)
		require.Error(t, err, kid)
	}
	_, err = o.Verify(t.Context(), sign("r", jwt.SigningMethodRS384, is.rsa))
	require.Error(t, err, "the key says another algorithm")
	_, err = o.Verify(t.Context(), is.token(t, nil))
	require.NoError(t, err)
}

func TestScopesAllowEffects(t *testing.T) {
	is := newIssuer(t)
	o := &mcp.OAuth{Issuer: is.url, Resource: resource}
	for scope, want := range map[string][]ops.Effect{
		"megatron-ops:read":                                          {ops.Read},
		"megatron-ops:read megatron-ops:write":                       {ops.Read, ops.Write},
		"megatron-ops:read megatron-ops:write megatron-ops:cancel x": {ops.Read, ops.Write, ops.Destructive},
	} {
		g, err := o.Verify(t.Context(), is.token(t, func(c jwt.MapClaims) { c["scope"] = scope }))
		require.NoError(t, err)
		require.Equal(t, want, g.Effects)
		require.Equal(t, len(want) == 1, g.ReadOnly)
		require.Empty(t, g.User, "a subject that is mapped to nobody is nobody on the cluster")
	}
}

// A token that may not submit a specification may not copy it.
func TestATokenToReadCopiesNoSpecification(t *testing.T) {
	is := newIssuer(t)
	cfg, _ := config(t, newSite())
	url := serve(t, cfg, mcp.HTTP{OAuth: &mcp.OAuth{Issuer: is.url, Resource: resource}})
	for scope, refused := range map[string]bool{"megatron-ops:read": true, "megatron-ops:read megatron-ops:write": false} {
		token := is.token(t, func(c jwt.MapClaims) { c["scope"] = scope })
		_, body := connect(t, url, map[string]string{"Authorization": "Bearer " + token}).post(
			`{"jsonrpc":"2.0","id":3,"method":"resources/read","params":{"uri":"job://test/99/spec"}}`)
		require.Equal(t, refused, strings.Contains(body, "does not allow submit"), body)
	}
}

func TestProtectedResourceMetadataLeadsToTheIssuer(t *testing.T) {
	is := newIssuer(t)
	url := serve(t, mcp.Config{}, mcp.HTTP{OAuth: &mcp.OAuth{Issuer: is.url, Resource: resource}})
	res, _ := (&client{t: t, url: url}).post(hello)
	require.Equal(t, 401, res.StatusCode)
	require.Contains(t, res.Header.Get("WWW-Authenticate"), `resource_metadata="http://localhost/.well-known/oauth-protected-resource/mcp"`)
	for _, path := range []string{"/.well-known/oauth-protected-resource", "/.well-known/oauth-protected-resource/mcp"} {
		res, err := http.Get(strings.TrimSuffix(url, "/mcp") + path)
		require.NoError(t, err)
		var doc struct {
			Resource string   `json:"resource"`
			Servers  []string `json:"authorization_servers"`
			Scopes   []string `json:"scopes_supported"`
		}
		require.NoError(t, json.NewDecoder(res.Body).Decode(&doc))
		res.Body.Close()
		require.Equal(t, resource, doc.Resource)
		require.Equal(t, []string{is.url}, doc.Servers)
		require.Contains(t, doc.Scopes, "megatron-ops:cancel")
	}
	connect(t, url, map[string]string{"Authorization": "Bearer " + is.token(t, nil)})
}
