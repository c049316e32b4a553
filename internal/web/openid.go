package web

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/redact"
)

// An OpenID is a provider at which people sign in, by the authorization code flow with
// PKCE.
type OpenID struct {
	// Label is the link's text on the sign-in page.
	Label lang.Text
	// Issuer is the provider's identifier, from which the address of its metadata
	// follows. ClientSecret is empty for a public client.
	Issuer, ClientID, ClientSecret string
	// Scopes are requested besides openid.
	Scopes []string
	// Who returns the cluster user that the claims of a verified ID token stand for, and
	// the account that is linked to them, or an error if the claims stand for nobody.
	Who func(ctx context.Context, claims map[string]any) (who ops.Caller, account string, err error)
	// User returns the cluster user to whom an account is linked now, or "".
	User func(ctx context.Context, account string) (string, error)
}

// A provider is an OpenID whose metadata is read when first needed, so that the page
// works while the provider is down.
type provider struct {
	OpenID
	callback string

	mu       sync.Mutex
	oauth    *oauth2.Config
	verifier *oidc.IDTokenVerifier
	lastErr  error // the error of the last attempt to read it, valid until retryAt
	retryAt  time.Time
}

const (
	flowCookie = cookieName + "_openid"
	// providerRetryAfter is how long a provider that did not answer is not tried again:
	// otherwise strangers could make every visitor wait for it.
	providerRetryAfter = 5 * time.Second
	// flowLife is how long a person may take at the provider.
	flowLife = 10 * time.Minute
)

// A flow is a sign-in in progress at a provider. It is stored in the browser that began
// it, so that an answer in another browser is refused.
type flow struct {
	By       string `json:"by"`
	State    string `json:"state"`
	Nonce    string `json:"nonce"`
	Verifier string `json:"verifier"`
	To       string `json:"to"`
}

// client sends requests to providers. Its timeout is what a person at a browser would
// wait.
var client = &http.Client{Timeout: 10 * time.Second}

// ready reads the provider's metadata, once.
func (p *provider) ready(now func() time.Time) (*oauth2.Config, *oidc.IDTokenVerifier, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.oauth != nil {
		return p.oauth, p.verifier, nil
	}
	if now().Before(p.retryAt) {
		return nil, nil, p.lastErr
	}
	// The verifier fetches keys for later sign-ins too, so it must not use the
	// request's context.
	found, err := oidc.NewProvider(oidc.ClientContext(context.Background(), client), p.Issuer)
	if err != nil {
		p.lastErr, p.retryAt = err, now().Add(providerRetryAfter)
		return nil, nil, err
	}
	var says struct {
		Auth []string `json:"token_endpoint_auth_methods_supported"`
	}
	if err := found.Claims(&says); err != nil {
		return nil, nil, err
	}
	at := found.Endpoint()
	at.AuthStyle = oauth2.AuthStyleInHeader // OpenID Connect's default
	if p.ClientSecret == "" || len(says.Auth) > 0 && !slices.Contains(says.Auth, "client_secret_basic") {
		at.AuthStyle = oauth2.AuthStyleInParams
	}
	p.oauth = &oauth2.Config{
		ClientID: p.ClientID, ClientSecret: p.ClientSecret, Endpoint: at, RedirectURL: p.callback, Scopes: append([]string{oidc.ScopeOpenID}, p.Scopes...),
	}
	p.verifier = found.Verifier(&oidc.Config{ClientID: p.ClientID, Now: now})
	return p.oauth, p.verifier, nil
}

// toProvider redirects a browser to a provider.
func (s *Server) toProvider(w http.ResponseWriter, r *http.Request) {
	by := r.PathValue("by")
	p, ok := s.providers[by]
	if !ok {
		http.NotFound(w, r)
		return
	}
	oauth, _, err := p.ready(s.cfg.Service.Now)
	if err != nil {
		s.cfg.Log.Warn("web: an OpenID provider does not answer", "issuer", p.Issuer, "error", err)
		s.refuse(w, r, &ops.Error{Code: ops.Failed, Message: textProviderAway.With(p.Issuer), Fix: textProviderAwayFix})
		return
	}
	f := flow{By: by, State: rand.Text(), Nonce: rand.Text(), Verifier: oauth2.GenerateVerifier(), To: localPath(r.FormValue("to"))}
	raw, err := json.Marshal(f)
	if err != nil {
		s.refuse(w, r, err)
		return
	}
	s.cookie(w, flowCookie, base64.RawURLEncoding.EncodeToString(raw), flowLife)
	http.Redirect(w, r, oauth.AuthCodeURL(f.State, oidc.Nonce(f.Nonce), oauth2.S256ChallengeOption(f.Verifier)), http.StatusSeeOther)
}

// fromProvider takes a provider's answer and starts a session.
func (s *Server) fromProvider(w http.ResponseWriter, r *http.Request) {
	var f flow
	c, err := r.Cookie(flowCookie)
	if err == nil {
		raw, _ := base64.RawURLEncoding.DecodeString(c.Value)
		err = json.Unmarshal(raw, &f)
	}
	s.cookie(w, flowCookie, "", -time.Second) // an answer is accepted once
	p, ok := s.providers[f.By]
	if err != nil || !ok || f.By != r.PathValue("by") || f.State == "" ||
		subtle.ConstantTimeCompare([]byte(f.State), []byte(r.URL.Query().Get("state"))) != 1 {
		s.refuse(w, r, &ops.Error{Code: ops.NotAllowed, Message: textOtherSignIn, Fix: textOtherSignInFix})
		return
	}
	k, err := p.person(r.Context(), r.URL.Query(), f, s.cfg.Service.Now)
	if err == nil {
		err = s.startSession(w, r, k)
	}
	if err != nil {
		s.cfg.Log.Warn("web: a sign-in was refused", "issuer", p.Issuer, "error", err)
		s.refuse(w, r, err)
		return
	}
	http.Redirect(w, r, localPath(f.To), http.StatusSeeOther)
}

// person returns whom a provider's answer signs in.
func (p *provider) person(ctx context.Context, q url.Values, f flow, now func() time.Time) (signIn, error) {
	wrong := func(err error) error {
		return &ops.Error{Code: ops.NotAllowed, Message: textProviderWrong.With(p.Issuer, lang.Said(err)), Fix: textOtherSignInFix}
	}
	if says := q.Get("error"); says != "" {
		return signIn{}, wrong(lang.Same(redact.Clean(cut(says, 80) + " " + cut(q.Get("error_description"), 300))).Err())
	}
	if iss := cmp.Or(q.Get("iss"), p.Issuer); iss != p.Issuer {
		return signIn{}, wrong(textOtherIssuer.Err())
	}
	oauth, verifier, err := p.ready(now)
	if err != nil {
		return signIn{}, wrong(err)
	}
	ctx = oidc.ClientContext(ctx, client)
	token, err := oauth.Exchange(ctx, q.Get("code"), oauth2.VerifierOption(f.Verifier))
	if err != nil {
		return signIn{}, wrong(textNoToken.Err()) // the error may quote the token
	}
	raw, _ := token.Extra("id_token").(string)
	id, err := verifier.Verify(ctx, raw)
	if err != nil {
		return signIn{}, wrong(textBadToken.Err(lang.Said(err)))
	}
	claims := map[string]any{}
	if err := id.Claims(&claims); err != nil {
		return signIn{}, wrong(err)
	}
	azp, several := claims["azp"]
	switch {
	case subtle.ConstantTimeCompare([]byte(id.Nonce), []byte(f.Nonce)) != 1:
		return signIn{}, wrong(textOtherNonce.Err())
	case several && azp != p.ClientID, len(id.Audience) > 1 && !several:
		return signIn{}, wrong(textOtherParty.Err())
	case id.AccessTokenHash != "" && id.VerifyAccessToken(token.AccessToken) != nil:
		return signIn{}, wrong(textOtherAccess.Err())
	case id.Subject == "":
		return signIn{}, wrong(textNoSubject.Err())
	}
	who, account, err := p.Who(ctx, claims)
	return signIn{Caller: who, By: f.By, Account: account}, err
}

func cut(text string, most int) string { return strings.ToValidUTF8(text[:min(len(text), most)], "") }

// A loginLink is a link of the sign-in page.
type loginLink struct{ By, Label string }

func (s *Server) loginLinks(l lang.Lang) (all []loginLink) {
	for by, p := range s.providers {
		all = append(all, loginLink{by, p.Label.In(l)})
	}
	slices.SortFunc(all, func(a, b loginLink) int { return cmp.Compare(a.By, b.By) })
	return all
}

// Claim returns how the value of an issuer's claim stands for a cluster user in the operator's
// table. Callers of /mcp with a token are mapped the same way.
func Claim(o OpenID, name string, users map[string]string) OpenID {
	o.User = func(_ context.Context, said string) (string, error) { return users[said], nil }
	o.Who = func(_ context.Context, claims map[string]any) (who ops.Caller, said string, err error) {
		if said, err = stringClaim(claims, name); err != nil {
			return who, said, err
		}
		if verified, _ := claims["email_verified"].(bool); name == "email" && !verified {
			return who, said, &ops.Error{Code: ops.NotAllowed, Message: textUnverified.With(said)}
		}
		user := users[said]
		if user == "" {
			return who, said, &ops.Error{Code: ops.NotAllowed, Message: textNobody.With(said), Fix: textNobodyFix}
		}
		subject, _ := claims["sub"].(string)
		return ops.Caller{Surface: ops.Web, ID: o.Issuer + "#" + subject, User: user}, said, nil
	}
	return o
}

// SlackClaims returns a function that finds the cluster user to whom a person in Slack
// is linked.
func SlackClaims(person func(ctx context.Context, team, user string) (ops.Caller, error)) func(context.Context, map[string]any) (ops.Caller, string, error) {
	return func(ctx context.Context, claims map[string]any) (who ops.Caller, account string, err error) {
		team, err := stringClaim(claims, "https://slack.com/team_id")
		if err != nil {
			return who, "", err
		}
		user, err := stringClaim(claims, "https://slack.com/user_id")
		if err != nil {
			return who, "", err
		}
		who, err = person(ctx, team, user)
		if err == nil && who.User == "" {
			err = &ops.Error{Code: ops.NotAllowed, Message: textNotLinked, Fix: textNotLinkedFix}
		}
		who.Surface = ops.Web
		return who, team + "/" + user, err
	}
}

// stringClaim returns the value of an ID token's claim that must be a non-empty string.
func stringClaim(claims map[string]any, name string) (string, error) {
	said, _ := claims[name].(string)
	if said == "" {
		return "", &ops.Error{Code: ops.NotAllowed, Message: textNoClaim.With(name)}
	}
	return said, nil
}
