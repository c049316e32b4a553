package web_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/golang-jwt/jwt/v5"
	"github.com/stretchr/testify/require"
)

// An identityProvider signs users in by OpenID Connect's authorization code flow, as
// strictly as its specification and those of OAuth 2.1 and PKCE (RFC 7636) require. It
// records and refuses a client's mistakes.
type identityProvider struct {
	t        testing.TB
	url      string
	key      *rsa.PrivateKey
	callback string
	secret   string // empty: a public client
	post     bool   // takes the secret in the form alone
	mute     bool   // it does not say how a client proves itself
	away     bool   // answers nothing
	// forge changes the token that is issued, so that the client must refuse it.
	forge func(claims jwt.MapClaims, header map[string]any) (sign jwt.SigningMethod, key any)
	// answer changes the address that the browser goes back to.
	answer func(q url.Values)
	// says are additional claims.
	says map[string]any

	mu     sync.Mutex
	wrong  []string
	grants map[string]grant
}

// A grant is what a code stands for. It can be used once.
type grant struct {
	challenge, nonce, redirect string
}

// The provider's key is slow to generate: all tests share one.
var providersKey = sync.OnceValue(func() *rsa.PrivateKey {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		panic(err)
	}
	return key
})

const clientID = "megatron-ops"

func newIdentityProvider(t testing.TB) *identityProvider {
	t.Helper()
	p := &identityProvider{t: t, key: providersKey(), secret: "s3cret&+%", grants: map[string]grant{}, says: map[string]any{"preferred_username": "ada"}}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /.well-known/openid-configuration", p.metadata)
	mux.HandleFunc("GET /keys", p.keys)
	mux.HandleFunc("GET /authorize", p.authorize)
	mux.HandleFunc("POST /authorize", p.consent)
	mux.HandleFunc("POST /token", p.token)
	srv := httptest.NewServer(mux)
	t.Cleanup(srv.Close)
	p.url = srv.URL
	return p
}

func (p *identityProvider) refuse(w http.ResponseWriter, format string, values ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.wrong = append(p.wrong, fmt.Sprintf(format, values...))
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusBadRequest)
	_, _ = w.Write([]byte(`{"error":"invalid_request"}`))
}

func (p *identityProvider) json(w http.ResponseWriter, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	require.NoError(p.t, json.NewEncoder(w).Encode(body))
}

func (p *identityProvider) metadata(w http.ResponseWriter, _ *http.Request) {
	if p.away {
		http.Error(w, "away", http.StatusServiceUnavailable)
		return
	}
	method := "client_secret_basic"
	switch {
	case p.secret == "":
		method = "none"
	case p.post:
		method = "client_secret_post"
	}
	says := map[string]any{
		"issuer": p.url, "authorization_endpoint": p.url + "/authorize", "token_endpoint": p.url + "/token", "jwks_uri": p.url + "/keys",
		"response_types_supported": []string{"code"}, "subject_types_supported": []string{"public"},
		"id_token_signing_alg_values_supported": []string{"RS256"}, "code_challenge_methods_supported": []string{"S256"},
		"token_endpoint_auth_methods_supported": []string{method}, "authorization_response_iss_parameter_supported": true,
	}
	if p.mute {
		delete(says, "token_endpoint_auth_methods_supported")
	}
	p.json(w, says)
}

func (p *identityProvider) keys(w http.ResponseWriter, _ *http.Request) {
	p.json(w, jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: &p.key.PublicKey, KeyID: "one", Algorithm: "RS256", Use: "sig"}}})
}

// authorize checks the request, and asks the user.
func (p *identityProvider) authorize(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	for name, values := range q {
		if len(values) != 1 || values[0] == "" {
			p.refuse(w, "%s is given %d times, or is empty", name, len(values))
			return
		}
	}
	switch challenge, err := base64.RawURLEncoding.DecodeString(q.Get("code_challenge")); {
	case q.Get("client_id") != clientID, q.Get("redirect_uri") != p.callback, q.Get("response_type") != "code":
		p.refuse(w, "client %q, back to %q, for %q", q.Get("client_id"), q.Get("redirect_uri"), q.Get("response_type"))
	case !slices.Contains(strings.Fields(q.Get("scope")), "openid"):
		p.refuse(w, "scope %q", q.Get("scope"))
	case q.Get("code_challenge_method") != "S256", err != nil, len(challenge) != sha256.Size:
		p.refuse(w, "challenge %q by %q", q.Get("code_challenge"), q.Get("code_challenge_method"))
	case len(q.Get("state")) < 22, len(q.Get("nonce")) < 22, q.Get("state") == q.Get("nonce"):
		p.refuse(w, "state %q and nonce %q can be guessed", q.Get("state"), q.Get("nonce"))
	default:
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprintf(w, `<!doctype html><html lang="en"><title>Provider</title><link rel="icon" href="data:,"><main><h1>Provider</h1><form method="post" action="/authorize?%s">`+
			`<button>I am Ada</button></form></main></html>`, strings.ReplaceAll(r.URL.RawQuery, "&", "&amp;"))
	}
}

func (p *identityProvider) consent(w http.ResponseWriter, r *http.Request) {
	q, code := r.URL.Query(), rand.Text()
	p.mu.Lock()
	p.grants[code] = grant{challenge: q.Get("code_challenge"), nonce: q.Get("nonce"), redirect: q.Get("redirect_uri")}
	p.mu.Unlock()
	back := url.Values{"code": {code}, "state": {q.Get("state")}, "iss": {p.url}}
	if p.answer != nil {
		p.answer(back)
	}
	http.Redirect(w, r, p.callback+"?"+back.Encode(), http.StatusFound)
}

func (p *identityProvider) token(w http.ResponseWriter, r *http.Request) {
	if err := r.ParseForm(); err != nil || r.URL.RawQuery != "" || r.Header.Get("Content-Type") != "application/x-www-form-urlencoded" {
		p.refuse(w, "a token is asked for by a form: %v", err)
		return
	}
	id, secret, basic := r.BasicAuth()
	if basic { // both parts are form-encoded first (RFC 6749, 2.3.1)
		id, _ = url.QueryUnescape(id)
		secret, _ = url.QueryUnescape(secret)
	} else {
		id, secret = r.PostForm.Get("client_id"), r.PostForm.Get("client_secret")
	}
	code := r.PostForm.Get("code")
	p.mu.Lock()
	g, ok := p.grants[code]
	delete(p.grants, code)
	p.mu.Unlock()
	sum := sha256.Sum256([]byte(r.PostForm.Get("code_verifier")))
	switch {
	case id != clientID, secret != p.secret, basic != (p.secret != "" && !p.post), basic && r.PostForm.Has("client_secret"):
		p.refuse(w, "client %q does not prove itself as it is registered", id)
	case r.PostForm.Get("grant_type") != "authorization_code", !ok, r.PostForm.Get("redirect_uri") != g.redirect:
		p.refuse(w, "grant %q of a code that is known: %v, back to %q", r.PostForm.Get("grant_type"), ok, r.PostForm.Get("redirect_uri"))
	case len(r.PostForm.Get("code_verifier")) < 43, base64.RawURLEncoding.EncodeToString(sum[:]) != g.challenge:
		p.refuse(w, "the verifier does not fit the challenge")
	default:
		access := rand.Text()
		hash := sha256.Sum256([]byte(access))
		now := time.Now()
		claims := jwt.MapClaims{
			"iss": p.url, "aud": clientID, "sub": "subject-1", "nonce": g.nonce, "iat": now.Unix(), "exp": now.Add(time.Minute).Unix(),
			"at_hash": base64.RawURLEncoding.EncodeToString(hash[:len(hash)/2]),
		}
		maps.Copy(claims, p.says)
		var method jwt.SigningMethod = jwt.SigningMethodRS256
		var key any = p.key
		header := map[string]any{"kid": "one"}
		if p.forge != nil {
			if m, k := p.forge(claims, header); m != nil {
				method, key = m, k
			}
		}
		token := jwt.NewWithClaims(method, claims)
		maps.Copy(token.Header, header)
		signed, err := token.SignedString(key)
		require.NoError(p.t, err)
		p.json(w, map[string]any{"access_token": access, "token_type": "Bearer", "expires_in": 60, "id_token": signed})
	}
}

// otherKey is a key that is not the provider's.
func otherKey(t testing.TB) *rsa.PrivateKey {
	t.Helper()
	k, err := rsa.GenerateKey(rand.Reader, 2048)
	require.NoError(t, err)
	return k
}

func curveKey(t testing.TB) *ecdsa.PrivateKey {
	t.Helper()
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	return k
}
