package web_test

import (
	"context"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"net/http"
	"net/url"
	"regexp"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/web"
)

// newOpenSite is a site whose users sign in at p.
func newOpenSite(t testing.TB, p *identityProvider, from func(testing.TB, ...func(*web.Config)) *site, more ...func(*web.Config)) *site {
	t.Helper()
	o := web.Claim(web.OpenID{
		Label: lang.Text{EN: "Sign in at the provider", ZH: "使用身份提供方登录"}, Issuer: p.url, ClientID: clientID, ClientSecret: p.secret, Scopes: []string{"profile"},
	}, "preferred_username", map[string]string{"ada": "alice"})
	s := from(t, append([]func(*web.Config){func(c *web.Config) { c.OpenID = map[string]web.OpenID{"oidc": o} }}, more...)...)
	p.callback = s.url + "/web/login/oidc/done"
	return s
}

// at follows the sign-in page's link to the provider, and signs in there.
func (b browser) at(p *identityProvider) (int, string) {
	b.s.t.Helper()
	_, body := b.get("/web/login?to=/web/jobs/test/7")
	link := regexp.MustCompile(`href="(/web/login/oidc[^"]*)"`).FindStringSubmatch(body)
	require.NotNil(b.s.t, link, body)
	res, err := b.Get(b.s.url + link[1])
	require.NoError(b.s.t, err)
	status, body := read(b.s.t, res)
	if status != http.StatusOK || res.Request.URL.Host != hostOf(p.url) {
		return status, body
	}
	res, err = b.PostForm(res.Request.URL.String(), nil)
	require.NoError(b.s.t, err)
	return read(b.s.t, res)
}

func hostOf(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return u.Host
}

// Whoever the operator takes out of the table is signed out at the next request.
func TestATableThatNamesAPersonNoMoreSignsThemOut(t *testing.T) {
	p := newIdentityProvider(t)
	users := map[string]string{"ada": "alice"}
	s := newOpenSite(t, p, newSite, func(c *web.Config) {
		c.OpenID["oidc"] = web.Claim(c.OpenID["oidc"], "preferred_username", users)
	})
	b := s.browser()
	_, body := b.at(p)
	require.Contains(t, body, "<span>alice</span>")
	delete(users, "ada")
	_, body = b.get("/web/jobs")
	require.Contains(t, body, "<h1>Sign in</h1>")
}

func TestOneSignsInAtAProvider(t *testing.T) {
	for name, as := range map[string]func(*identityProvider){
		"secret in the header":  func(*identityProvider) {},
		"in the header, unsaid": func(p *identityProvider) { p.mute = true },
		"secret in the form":    func(p *identityProvider) { p.post = true },
		"no secret":             func(p *identityProvider) { p.secret = "" },
		"no iss in the answer":  func(p *identityProvider) { p.answer = func(q url.Values) { q.Del("iss") } },
		"no access token hash": func(p *identityProvider) {
			p.forge = func(c jwt.MapClaims, _ map[string]any) (jwt.SigningMethod, any) {
				delete(c, "at_hash")
				return nil, nil
			}
		},
		"several audiences": func(p *identityProvider) {
			p.forge = func(c jwt.MapClaims, _ map[string]any) (jwt.SigningMethod, any) {
				c["aud"], c["azp"] = []string{clientID, "another"}, clientID
				return nil, nil
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := newIdentityProvider(t)
			as(p)
			s := newOpenSite(t, p, newSite)
			b := s.browser()
			status, body := b.at(p)
			require.Equal(t, 200, status, body)
			require.Empty(t, p.wrong)
			require.Contains(t, body, "<span>alice</span>")
			require.Contains(t, body, "gpt", "one lands where the link led")
			last := s.audit[len(s.audit)-1]
			require.Equal(t, "sign-in", last.Op)
			require.Equal(t, ops.Caller{Surface: ops.Web, ID: p.url + "#subject-1", User: "alice"}, last.Who)
		})
	}
}

// No wrong answer, from a provider or an attacker between, signs anybody in.
func TestAWrongAnswerSignsNobodyIn(t *testing.T) {
	claim := func(change func(c jwt.MapClaims)) func(*testing.T, *identityProvider) {
		return func(_ *testing.T, p *identityProvider) {
			p.forge = func(c jwt.MapClaims, _ map[string]any) (jwt.SigningMethod, any) { change(c); return nil, nil }
		}
	}
	answer := func(change func(q url.Values)) func(*testing.T, *identityProvider) {
		return func(_ *testing.T, p *identityProvider) { p.answer = change }
	}
	signed := func(m jwt.SigningMethod, key func(*testing.T, *identityProvider) any) func(*testing.T, *identityProvider) {
		return func(t *testing.T, p *identityProvider) {
			k := key(t, p)
			p.forge = func(jwt.MapClaims, map[string]any) (jwt.SigningMethod, any) { return m, k }
		}
	}
	for name, c := range map[string]struct {
		as   func(*testing.T, *identityProvider)
		says string
	}{
		"another nonce":       {claim(func(c jwt.MapClaims) { c["nonce"] = "another" }), "belongs to another sign-in"},
		"no nonce":            {claim(func(c jwt.MapClaims) { delete(c, "nonce") }), "belongs to another sign-in"},
		"another audience":    {claim(func(c jwt.MapClaims) { c["aud"] = "another" }), "not valid"},
		"another party":       {claim(func(c jwt.MapClaims) { c["azp"] = "another" }), "to another program"},
		"audiences, no party": {claim(func(c jwt.MapClaims) { c["aud"] = []string{clientID, "x"} }), "to another program"},
		"another issuer":      {claim(func(c jwt.MapClaims) { c["iss"] = "https://evil.example" }), "not valid"},
		"expired":             {claim(func(c jwt.MapClaims) { c["exp"] = time.Now().Add(-time.Hour).Unix() }), "not valid"},
		"no expiry":           {claim(func(c jwt.MapClaims) { delete(c, "exp") }), "not valid"},
		"no subject":          {claim(func(c jwt.MapClaims) { delete(c, "sub") }), "names nobody"},
		"another token":       {claim(func(c jwt.MapClaims) { c["at_hash"] = "AAAAAAAAAAAAAAAAAAAAAA" }), "another access token"},
		"somebody unknown":    {claim(func(c jwt.MapClaims) { c["preferred_username"] = "eve" }), "eve is not mapped to a cluster user"},
		"no such claim":       {claim(func(c jwt.MapClaims) { delete(c, "preferred_username") }), "no claim preferred_username"},
		"a claim of a list":   {claim(func(c jwt.MapClaims) { c["preferred_username"] = []string{"ada"} }), "no claim preferred_username"},
		"no signature": {signed(jwt.SigningMethodNone, func(*testing.T, *identityProvider) any {
			return jwt.UnsafeAllowNoneSignatureType
		}), "not valid"},
		"another key":          {signed(jwt.SigningMethodRS256, func(t *testing.T, _ *identityProvider) any { return otherKey(t) }), "not valid"},
		"another kind of key":  {signed(jwt.SigningMethodES256, func(t *testing.T, _ *identityProvider) any { return curveKey(t) }), "not valid"},
		"public key as secret": {signed(jwt.SigningMethodHS256, publicAsSecret), "not valid"},
		"another state":        {answer(func(q url.Values) { q.Set("state", "another") }), "does not belong to a sign-in"},
		"no state":             {answer(func(q url.Values) { q.Del("state") }), "does not belong to a sign-in"},
		"answer of another":    {answer(func(q url.Values) { q.Set("iss", "https://evil.example") }), "another issuer"},
		"another code":         {answer(func(q url.Values) { q.Set("code", "another") }), "did not exchange its code"},
		"refused there": {answer(func(q url.Values) {
			q.Del("code")
			q.Set("error", "access_denied")
			q.Set("error_description", "<b>no</b>")
		}), "access_denied &lt;b&gt;no&lt;/b&gt;"},
	} {
		t.Run(name, func(t *testing.T) {
			p := newIdentityProvider(t)
			c.as(t, p)
			s := newOpenSite(t, p, newSite)
			b := s.browser()
			status, body := b.at(p)
			require.Equal(t, http.StatusForbidden, status)
			require.Contains(t, body, c.says)
			_, body = b.get("/web/jobs")
			require.Contains(t, body, "<h1>Sign in</h1>")
			require.Empty(t, s.audit)
		})
	}
}

func publicAsSecret(t *testing.T, p *identityProvider) any {
	t.Helper()
	raw, err := x509.MarshalPKIXPublicKey(&p.key.PublicKey)
	require.NoError(t, err)
	return pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: raw})
}

// An answer is accepted only from the browser that started the sign-in, and only once.
func TestAnAnswerIsTakenOnceAndOfOneBrowser(t *testing.T) {
	p := newIdentityProvider(t)
	var answer url.Values
	p.answer = func(q url.Values) { answer = q }
	s := newOpenSite(t, p, newSite)
	mine := s.browser()
	status, _ := mine.at(p)
	require.Equal(t, 200, status)
	status, body := mine.get("/web/login/oidc/done?" + answer.Encode())
	require.Equal(t, http.StatusForbidden, status, body)
	other := s.browser() // a link that signs a victim in as whoever made it
	status, body = other.get("/web/login/oidc/done?" + answer.Encode())
	require.Equal(t, http.StatusForbidden, status, body)
	_, _ = other.get("/web/login/oidc")
	status, _ = other.get("/web/login/oidc/done?" + answer.Encode())
	require.Equal(t, http.StatusForbidden, status)
	status, _ = other.get("/web/login/nosuch")
	require.Equal(t, http.StatusNotFound, status)
	at, err := url.Parse(s.url + "/web/login/oidc/done")
	require.NoError(t, err)
	for _, c := range mine.Jar.Cookies(at) {
		require.NotEqual(t, "megatron_ops_openid", c.Name, "the sign-in is over")
	}
	for flow, done := range map[string]string{
		`{"by":"oidc","state":"s"}`: "/web/login/nosuch/done?code=x&state=s", // begun at another provider
		`{"by":"oidc"}`:             "/web/login/oidc/done?code=x",           // of no state
	} {
		forged := s.browser()
		forged.Jar.SetCookies(at, []*http.Cookie{{Name: "megatron_ops_openid", Value: base64.RawURLEncoding.EncodeToString([]byte(flow)), Path: "/web"}})
		status, body = forged.get(done)
		require.Equal(t, http.StatusForbidden, status)
		require.Contains(t, body, "does not belong to a sign-in", flow)
	}
}

// A user has ten minutes to sign in at a provider.
func TestASignInAtAProviderMayTakeTenMinutes(t *testing.T) {
	s := newOpenSite(t, newIdentityProvider(t), newSite)
	b := s.browser()
	b.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	res, err := b.Get(s.url + "/web/login/oidc")
	require.NoError(t, err)
	res.Body.Close()
	require.Equal(t, http.StatusSeeOther, res.StatusCode)
	require.Len(t, res.Cookies(), 1)
	require.Equal(t, 600, res.Cookies()[0].MaxAge)
}

// The page works while its provider is unavailable, and says so.
func TestAProviderMayBeAway(t *testing.T) {
	p := newIdentityProvider(t)
	s := newOpenSite(t, p, newSite, func(c *web.Config) {
		o := c.OpenID["oidc"]
		o.Issuer = "http://127.0.0.1:1"
		c.OpenID["oidc"] = o
	})
	status, body := s.browser().at(p)
	require.Equal(t, http.StatusForbidden, status)
	require.Contains(t, body, "http://127.0.0.1:1 does not answer")
}

// A provider that has not answered is not asked for a moment, and then asked again.
func TestAProviderThatWasAwayIsAskedAgain(t *testing.T) {
	p := newIdentityProvider(t)
	s := newOpenSite(t, p, newSite)
	now := time.Now()
	s.svc.Now = func() time.Time { return now }
	p.away = true
	status, _ := s.browser().at(p)
	require.Equal(t, http.StatusForbidden, status)
	p.away = false
	status, _ = s.browser().at(p)
	require.Equal(t, http.StatusForbidden, status, "nobody asks for five seconds")
	now = now.Add(6 * time.Second)
	status, body := s.browser().at(p)
	require.Equal(t, 200, status, body)
}

// An address that its provider has not checked is nobody's.
func TestAnAddressIsVerified(t *testing.T) {
	who := web.Claim(web.OpenID{Issuer: "https://id.example"}, "email", map[string]string{"ada@lab.example": "ada"}).Who
	for name, claims := range map[string]map[string]any{
		"not said": {"email": "ada@lab.example", "sub": "1"}, "not verified": {"email": "ada@lab.example", "sub": "1", "email_verified": false},
		"verified in words": {"email": "ada@lab.example", "sub": "1", "email_verified": "true"},
	} {
		_, _, err := who(t.Context(), claims)
		require.Error(t, err, name)
	}
	c, _, err := who(t.Context(), map[string]any{"email": "ada@lab.example", "sub": "1", "email_verified": true})
	require.NoError(t, err)
	require.Equal(t, ops.Caller{Surface: ops.Web, ID: "https://id.example#1", User: "ada"}, c)
}

// A user who signs in by Slack becomes the linked account, with that account's rights.
func TestSlackSignsInWhoIsLinked(t *testing.T) {
	p := newIdentityProvider(t)
	p.says = map[string]any{"https://slack.com/team_id": "T1", "https://slack.com/user_id": "U1"}
	linked := map[string]string{"T1/U1": "bob"}
	s := newOpenSite(t, p, newSite, func(c *web.Config) {
		o := c.OpenID["oidc"]
		o.User = func(_ context.Context, id string) (string, error) { return linked[id], nil }
		o.Who = web.SlackClaims(func(_ context.Context, team, user string) (ops.Caller, error) {
			return ops.Caller{ID: team + "/" + user, User: linked[team+"/"+user], ReadOnly: true}, nil
		})
		c.OpenID["oidc"] = o
	})
	b := s.browser()
	_, body := b.at(p)
	require.Contains(t, body, "<span>bob</span>")
	linked["T1/U1"] = "grace"
	_, body = b.get("/web/jobs")
	require.Contains(t, body, "<h1>Sign in</h1>", "the account is somebody else's now")
	linked["T1/U1"] = "bob"
	require.Equal(t, ops.Caller{Surface: ops.Web, ID: "T1/U1", User: "bob", ReadOnly: true}, s.audit[len(s.audit)-1].Who)

	p.says["https://slack.com/user_id"] = "U2"
	status, body := s.browser().at(p)
	require.Equal(t, http.StatusForbidden, status)
	require.Contains(t, body, "/megatron link in Slack")
	p.says = map[string]any{"https://slack.com/user_id": "U1"}
	status, body = s.browser().at(p)
	require.Equal(t, http.StatusForbidden, status)
	require.Contains(t, body, "no claim https://slack.com/team_id")
}
