package main

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"maps"
	"math/big"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"os"
	"os/user"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/golang-jwt/jwt/v5"
	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/bot/slacktest"
)

// An issuer signs everybody in with the same claims. Tests in internal/web cover how
// strictly the page checks a provider's answers.
type issuer struct {
	url    string
	key    *rsa.PrivateKey
	claims jwt.MapClaims
	mu     sync.Mutex
	nonce  string
}

func newIssuer(t *testing.T, claims jwt.MapClaims) *issuer {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	require.NoError(t, err)
	return &issuer{key: key, claims: claims}
}

func (i *issuer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	i.mu.Lock()
	defer i.mu.Unlock()
	answer := func(body any) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(body)
	}
	switch r.URL.Path {
	case "/.well-known/openid-configuration":
		answer(map[string]any{
			"issuer": i.url, "authorization_endpoint": i.url + "/authorize", "token_endpoint": i.url + "/token", "jwks_uri": i.url + "/keys",
			"id_token_signing_alg_values_supported": []string{"RS256"},
		})
	case "/keys":
		answer(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: &i.key.PublicKey, KeyID: "one", Algorithm: "RS256", Use: "sig"}}})
	case "/authorize":
		q := r.URL.Query()
		i.nonce = q.Get("nonce")
		http.Redirect(w, r, q.Get("redirect_uri")+"?"+url.Values{"code": {"c"}, "state": {q.Get("state")}}.Encode(), http.StatusSeeOther)
	case "/token":
		claims := jwt.MapClaims{"iss": i.url, "aud": "page", "sub": "s1", "nonce": i.nonce, "iat": time.Now().Unix(), "exp": time.Now().Add(time.Hour).Unix()}
		maps.Copy(claims, i.claims)
		token := jwt.NewWithClaims(jwt.SigningMethodRS256, claims)
		token.Header["kid"] = "one"
		signed, err := token.SignedString(i.key)
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		answer(map[string]any{"access_token": "a", "token_type": "Bearer", "id_token": signed})
	default:
		http.NotFound(w, r)
	}
}

// pageURL is the page's address as browsers reach it.
const pageURL = "http://ops.example.org"

// newBrowser returns a browser that resolves pageURL and the given hosts to their real
// addresses.
func newBrowser(t *testing.T, s *server, trusts *x509.CertPool, hosts map[string]string) *http.Client {
	t.Helper()
	jar, err := cookiejar.New(nil)
	require.NoError(t, err)
	page, err := url.Parse(s.url)
	require.NoError(t, err)
	return &http.Client{Jar: jar, Timeout: time.Minute, Transport: &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: trusts},
		DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
			if addr == "ops.example.org:80" {
				addr = page.Host
			} else if to := hosts[addr]; to != "" {
				addr = to
			}
			return new(net.Dialer).DialContext(ctx, network, addr)
		},
	}}
}

func bodyOf(t *testing.T, res *http.Response, err error) string {
	t.Helper()
	require.NoError(t, err)
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	return string(b)
}

// signInAt follows the sign-in page's link to a provider, and returns where the browser
// arrives.
func signInAt(t *testing.T, b *http.Client, by, to string) string {
	t.Helper()
	res, err := b.Get(pageURL + "/web/login?to=" + url.QueryEscape(to))
	page := bodyOf(t, res, err)
	link := regexp.MustCompile(`href="(/web/login/` + by + `[^"]*)"`).FindStringSubmatch(page)
	require.NotNil(t, link, page)
	res, err = b.Get(pageURL + strings.ReplaceAll(link[1], "&amp;", "&"))
	return bodyOf(t, res, err)
}

// An agent's call that exceeds the limits is reported to a webhook. Its link leads an
// operator, who signs in at the site's provider, to the page that approves it, without
// Slack.
func TestAnAgentsCallIsApprovedByALink(t *testing.T) {
	t.Parallel()
	me, err := user.Current()
	require.NoError(t, err)
	provider := newIssuer(t, jwt.MapClaims{"preferred_username": "grace.h"})
	front := httptest.NewServer(provider)
	t.Cleanup(front.Close)
	provider.url = front.URL
	told := make(chan map[string]any, 100)
	hook := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		var m map[string]any
		if json.NewDecoder(r.Body).Decode(&m) == nil {
			told <- m
		}
	}))
	t.Cleanup(hook.Close)
	s := newServer(t, fmt.Sprintf(`
web:
  url: %s
  operators: [grace]
  oidc: {issuer: %q, client_id: page, claim: preferred_username, users: {grace.h: grace}}
slack: {approval: {gpu_hours: 1}}
mcp: {tokens: [{file: agent.token, id: nightly, user: %s}]}
notify: {team: {kind: webhook, url: %q, events: [ask]}}
`, pageURL, provider.url, me.Username, hook.URL))
	token := "0123456789abcdef0123456789abcdef"
	require.NoError(t, os.WriteFile(filepath.Join(s.home, "agent.token"), []byte(token), 0o600))
	s.start("")
	submit := func() string {
		return callTool(t, s.url, token, "submit", map[string]any{"idempotency_key": "k", "spec": small(s, "big")})
	}
	require.Contains(t, submit(), "waits for an approval by an operator")
	m := <-told
	require.Equal(t, pageURL+"/web/approvals", m["link"])
	require.Contains(t, fmt.Sprint(m["headline"]), me.Username+" asks for approval: submit")
	require.Contains(t, fmt.Sprint(m["headline"]), "申请审批")
	require.Contains(t, fmt.Sprint(m["text"]), "32 GPU hours")

	b := newBrowser(t, s, nil, nil)
	page := signInAt(t, b, "oidc", strings.TrimPrefix(fmt.Sprint(m["link"]), pageURL))
	require.Contains(t, page, "<span>grace</span>")
	id := regexp.MustCompile(`/web/approvals/([^"]+)"`).FindStringSubmatch(page)
	require.NotNil(t, id, page)
	res, err := b.PostForm(pageURL+"/web/approvals/"+id[1], url.Values{"decision": {"approve"}})
	require.Contains(t, bodyOf(t, res, err), "Nothing waits")
	require.Contains(t, submit(), "submitted to local as job")
	t.Cleanup(func() { s.cancel("1") })
	require.Empty(t, told, "told once")
}

// A person who is linked in Slack signs in to the page with Slack. A stand-in for Slack
// is reached through a proxy.
func TestOneSignsInBySlack(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("what a process trusts is set by SSL_CERT_FILE on Linux alone")
	}
	t.Parallel()
	const slackURL = "https://slack.com"
	provider := newIssuer(t, jwt.MapClaims{"https://slack.com/team_id": "T1", "https://slack.com/user_id": "U7"})
	provider.url = slackURL
	front := httptest.NewUnstartedServer(provider)
	form := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "slack.com"}, DNSNames: []string{"slack.com"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
	}
	raw, err := x509.CreateCertificate(rand.Reader, form, form, &provider.key.PublicKey, provider.key)
	require.NoError(t, err)
	front.TLS = &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{raw}, PrivateKey: provider.key}}}
	front.StartTLS()
	t.Cleanup(front.Close)
	at := front.Listener.Addr().String()
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodConnect || r.Host != "slack.com:443" {
			http.Error(w, "not here", http.StatusBadGateway)
			return
		}
		there, err := net.Dial("tcp", at)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		here, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			there.Close()
			return
		}
		_, _ = io.WriteString(here, "HTTP/1.1 200 OK\r\n\r\n")
		go func() { _, _ = io.Copy(there, here); there.Close() }()
		_, _ = io.Copy(here, there)
		here.Close()
	}))
	t.Cleanup(proxy.Close)
	// Use a separate file: the variable may name the machine's own bundle.
	trusted, bundle := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: raw}), filepath.Join(t.TempDir(), "trusted.pem")
	require.NoError(t, os.WriteFile(bundle, trusted, 0o600))
	slack := slacktest.Start(t, slacktest.Config{SigningSecret: signingSecret})
	s := newServer(t, "web: {url: \""+pageURL+"\", slack: {client_id: page}}\nslack: {links: {T1/U7: ada}}\n",
		"SLACK_API_URL="+slack.APIURL, "SLACK_BOT_TOKEN=xoxb-1", "SLACK_SIGNING_SECRET="+signingSecret,
		"HTTPS_PROXY="+proxy.URL, "SSL_CERT_FILE="+bundle)
	s.start("")
	slack.Target(s.url)
	trusts := x509.NewCertPool()
	require.True(t, trusts.AppendCertsFromPEM(trusted))
	b := newBrowser(t, s, trusts, map[string]string{"slack.com:443": at})
	require.Contains(t, signInAt(t, b, "slack", "/web/jobs"), "<span>ada</span>")

	provider.mu.Lock()
	provider.claims["https://slack.com/user_id"] = "U8"
	provider.mu.Unlock()
	stranger := newBrowser(t, s, trusts, map[string]string{"slack.com:443": at})
	refused := signInAt(t, stranger, "slack", "/web/jobs")
	require.NotContains(t, refused, "<span>")
	require.Contains(t, refused, "link", "it says how to be linked")
}
