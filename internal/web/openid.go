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

// An OpenID is a provider at which people sign in, by the authorization code flow
// with PKCE.
type OpenID struct {
	// Label is the link's text on the sign-in page.
	Label lang.Text
	// Issuer is the provider's identifier, below which its metadata lies. The secret
	// is empty for a public client.
	Issuer, ClientID, ClientSecret string
	// Scopes are asked for besides openid.
	Scopes []string
	// Who is the cluster user that the claims of a verified ID token stand for; an error
	// says that they stand for nobody.
	Who func(ctx context.Context, claims map[string]any) (ops.Caller, error)
}

// A provider is an OpenID whose metadata is read when somebody first needs it: the
// page is served while the provider is away.
type provider struct {
	OpenID
	callback string

	mu       sync.Mutex
	oauth    *oauth2.Config
	verifier *oidc.IDTokenVerifier
	away     error // why it could not be read at the last try, until again
	again    time.Time
}

const (
	flowCookie = cookieName + "_openid"
	// awayFor is how long a provider that did not answer is not asked again: strangers
	// must not wait for it in a row.
	awayFor = 5 * time.Second
	// flowLife is how long somebody may take at the provider.
	flowLife = 10 * time.Minute
)

// A flow is a sign-in that is under way at a provider. The browser that began it
// keeps it: another's answer is not taken.
type flow struct {
	By       string `json:"by"`
	State    string `json:"state"`
	Nonce    string `json:"nonce"`
	Verifier string `json:"verifier"`
	To       string `json:"to"`
}

// client asks providers, with patience that a person at a browser has.
var client = &http.Client{Timeout: 10 * time.Second}

// ready reads the provider's metadata, once.
func (p *provider) ready(now func() time.Time) (*oauth2.Config, *oidc.IDTokenVerifier, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.oauth != nil {
		return p.oauth, p.verifier, nil
	}
	if now().Before(p.again) {
		return nil, nil, p.away
	}
	// The keys are fetched for later sign-ins too: not with the request's context.
	found, err := oidc.NewProvider(oidc.ClientContext(context.Background(), client), p.Issuer)
	if err != nil {
		p.away, p.again = err, now().Add(awayFor)
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

// toProvider sends a browser to a provider.
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
		s.refused(w, r, &ops.Error{Code: ops.Failed, Message: textProviderAway.With(p.Issuer), Fix: textProviderAwayFix})
		return
	}
	f := flow{By: by, State: rand.Text(), Nonce: rand.Text(), Verifier: oauth2.GenerateVerifier(), To: within(r.FormValue("to"))}
	raw, err := json.Marshal(f)
	if err != nil {
		s.refused(w, r, err)
		return
	}
	s.cookie(w, flowCookie, base64.RawURLEncoding.EncodeToString(raw), flowLife)
	http.Redirect(w, r, oauth.AuthCodeURL(f.State, oidc.Nonce(f.Nonce), oauth2.S256ChallengeOption(f.Verifier)), http.StatusSeeOther)
}

// fromProvider takes a provider's answer, and begins a session.
func (s *Server) fromProvider(w http.ResponseWriter, r *http.Request) {
	var f flow
	c, err := r.Cookie(flowCookie)
	if err == nil {
		raw, _ := base64.RawURLEncoding.DecodeString(c.Value)
		err = json.Unmarshal(raw, &f)
	}
	s.cookie(w, flowCookie, "", -time.Second) // an answer is taken once
	p, ok := s.providers[f.By]
	if err != nil || !ok || f.By != r.PathValue("by") || f.State == "" ||
		subtle.ConstantTimeCompare([]byte(f.State), []byte(r.URL.Query().Get("state"))) != 1 {
		s.refused(w, r, &ops.Error{Code: ops.NotAllowed, Message: textOtherSignIn, Fix: textOtherSignInFix})
		return
	}
	who, err := p.person(r.Context(), r.URL.Query(), f, s.cfg.Service.Now)
	if err == nil {
		err = s.begin(w, r, who)
	}
	if err != nil {
		s.cfg.Log.Warn("web: a sign-in was refused", "issuer", p.Issuer, "error", err)
		s.refused(w, r, err)
		return
	}
	http.Redirect(w, r, within(f.To), http.StatusSeeOther)
}

// person is whom a provider's answer signs in. What a provider says wrongly is told
// to the log alone.
func (p *provider) person(ctx context.Context, q url.Values, f flow, now func() time.Time) (ops.Caller, error) {
	wrong := func(err error) error {
		return &ops.Error{Code: ops.NotAllowed, Message: textProviderWrong.With(p.Issuer, lang.Said(err)), Fix: textOtherSignInFix}
	}
	if says := q.Get("error"); says != "" {
		return ops.Caller{}, wrong(lang.Same(redact.Clean(cut(says, 80) + " " + cut(q.Get("error_description"), 300))).Err())
	}
	if iss := cmp.Or(q.Get("iss"), p.Issuer); iss != p.Issuer {
		return ops.Caller{}, wrong(textOtherIssuer.Err())
	}
	oauth, verifier, err := p.ready(now)
	if err != nil {
		return ops.Caller{}, wrong(err)
	}
	ctx = oidc.ClientContext(ctx, client)
	token, err := oauth.Exchange(ctx, q.Get("code"), oauth2.VerifierOption(f.Verifier))
	if err != nil {
		return ops.Caller{}, wrong(textNoToken.Err()) // the error may quote the token
	}
	raw, _ := token.Extra("id_token").(string)
	id, err := verifier.Verify(ctx, raw)
	if err != nil {
		return ops.Caller{}, wrong(textBadToken.Err(lang.Said(err)))
	}
	claims := map[string]any{}
	if err := id.Claims(&claims); err != nil {
		return ops.Caller{}, wrong(err)
	}
	azp, several := claims["azp"]
	switch {
	case subtle.ConstantTimeCompare([]byte(id.Nonce), []byte(f.Nonce)) != 1:
		return ops.Caller{}, wrong(textOtherNonce.Err())
	case several && azp != p.ClientID, len(id.Audience) > 1 && !several:
		return ops.Caller{}, wrong(textOtherParty.Err())
	case id.AccessTokenHash != "" && id.VerifyAccessToken(token.AccessToken) != nil:
		return ops.Caller{}, wrong(textOtherAccess.Err())
	case id.Subject == "":
		return ops.Caller{}, wrong(textNoSubject.Err())
	}
	return p.Who(ctx, claims)
}

func cut(text string, most int) string { return strings.ToValidUTF8(text[:min(len(text), most)], "") }

// A way is a link of the sign-in page.
type way struct{ By, Label string }

func (s *Server) ways(l lang.Lang) (all []way) {
	for by, p := range s.providers {
		all = append(all, way{by, p.Label.In(l)})
	}
	slices.SortFunc(all, func(a, b way) int { return cmp.Compare(a.By, b.By) })
	return all
}

// Claim finds the cluster user of whom an issuer's claim names, by the operator's
// table: the rule of those who come to /mcp with a token.
func Claim(issuer, name string, users map[string]string) func(context.Context, map[string]any) (ops.Caller, error) {
	return func(_ context.Context, claims map[string]any) (ops.Caller, error) {
		said, err := claimed(claims, name)
		if err != nil {
			return ops.Caller{}, err
		}
		if verified, _ := claims["email_verified"].(bool); name == "email" && !verified {
			return ops.Caller{}, &ops.Error{Code: ops.NotAllowed, Message: textUnverified.With(said)}
		}
		user := users[said]
		if user == "" {
			return ops.Caller{}, &ops.Error{Code: ops.NotAllowed, Message: textNobody.With(said), Fix: textNobodyFix}
		}
		subject, _ := claims["sub"].(string)
		return ops.Caller{Surface: ops.Web, ID: issuer + "#" + subject, User: user}, nil
	}
}

// SlackClaims finds the cluster user to whom a person in Slack is linked.
func SlackClaims(person func(ctx context.Context, team, user string) (ops.Caller, error)) func(context.Context, map[string]any) (ops.Caller, error) {
	return func(ctx context.Context, claims map[string]any) (ops.Caller, error) {
		team, err := claimed(claims, "https://slack.com/team_id")
		if err != nil {
			return ops.Caller{}, err
		}
		user, err := claimed(claims, "https://slack.com/user_id")
		if err != nil {
			return ops.Caller{}, err
		}
		who, err := person(ctx, team, user)
		if err == nil && who.User == "" {
			err = &ops.Error{Code: ops.NotAllowed, Message: textNotLinked, Fix: textNotLinkedFix}
		}
		who.Surface = ops.Web
		return who, err
	}
}

// claimed is what an ID token says by a claim of one text.
func claimed(claims map[string]any, name string) (string, error) {
	said, _ := claims[name].(string)
	if said == "" {
		return "", &ops.Error{Code: ops.NotAllowed, Message: textNoClaim.With(name)}
	}
	return said, nil
}
