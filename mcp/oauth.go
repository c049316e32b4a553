package mcp

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"
	sdkserver "github.com/mark3labs/mcp-go/server"

	"github.com/megatron-ops/megatron-ops/internal/ops"
)

// The scopes of an access token, one for each effect.
const (
	ScopeRead   = "megatron-ops:read"
	ScopeWrite  = "megatron-ops:write"
	ScopeCancel = "megatron-ops:cancel"
)

var scopeOf = map[ops.Effect]string{
	ops.Read:        ScopeRead,
	ops.Write:       ScopeWrite,
	ops.Destructive: ScopeCancel,
}

// OAuth makes the server a resource server of an external issuer: it verifies
// access tokens and never asks for, passes on or stores one.
type OAuth struct {
	// Issuer is the authorization server's identifier, Resource this server's own
	// URL, which must be among a token's audiences.
	Issuer   string
	Resource string
	// JWKS is where the issuer's keys are; empty: as its metadata says.
	JWKS string
	// User maps a token's subject to a cluster user; empty: may only read.
	User func(subject string) string
	// Client fetches the keys; nil: one with short time limits.
	Client *http.Client

	keys *keySet
}

func (o *OAuth) init() {
	if o.keys != nil {
		return
	}
	client := o.Client
	if client == nil {
		client = &http.Client{Timeout: 5 * time.Second}
	}
	o.keys = &keySet{issuer: o.Issuer, url: o.JWKS, client: client, now: time.Now}
}

func (o *OAuth) host() string {
	u, err := url.Parse(o.Resource)
	if err != nil {
		return ""
	}
	return u.Host
}

func (o *OAuth) metadataURL() string {
	u, err := url.Parse(o.Resource)
	if err != nil {
		return ""
	}
	return u.Scheme + "://" + u.Host + sdkserver.ProtectedResourceMetadataPath(o.Resource)
}

func (o *OAuth) metadata() sdkserver.ProtectedResourceMetadataConfig {
	return sdkserver.ProtectedResourceMetadataConfig{
		Resource:               o.Resource,
		AuthorizationServers:   []string{o.Issuer},
		ScopesSupported:        []string{ScopeRead, ScopeWrite, ScopeCancel},
		BearerMethodsSupported: []string{"header"},
		ResourceName:           "megatron-ops",
	}
}

// accessClaims are the parts of an access token that matter here. Issuers write
// scopes as one string or as a list.
type accessClaims struct {
	Scope  string   `json:"scope"`
	Scopes []string `json:"scp"`
	jwt.RegisteredClaims
}

// Verify returns whom an access token stands for and what its scopes allow.
// The error is for its bearer.
func (o *OAuth) Verify(ctx context.Context, token string) (Grant, error) {
	o.init()
	var claims accessClaims
	_, err := jwt.ParseWithClaims(token, &claims, func(t *jwt.Token) (any, error) {
		kid, _ := t.Header["kid"].(string)
		return o.keys.find(ctx, kid, t.Method.Alg())
	},
		// Public-key signatures only: with an HMAC a public key would be a secret.
		jwt.WithValidMethods([]string{"RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"}),
		jwt.WithIssuer(o.Issuer),
		jwt.WithAudience(o.Resource),
		jwt.WithExpirationRequired(),
		jwt.WithLeeway(30*time.Second),
	)
	if err != nil {
		return Grant{}, tokenProblem(err)
	}
	if claims.Subject == "" {
		return Grant{}, errors.New("the token names no subject")
	}
	g := Grant{
		Caller:  ops.Caller{Surface: ops.MCPHTTP, ID: o.Issuer + "#" + claims.Subject, ReadOnly: true},
		Effects: []ops.Effect{},
	}
	scopes := append(strings.Fields(claims.Scope), claims.Scopes...)
	for _, e := range []ops.Effect{ops.Read, ops.Write, ops.Destructive} {
		if slices.Contains(scopes, scopeOf[e]) {
			g.Effects = append(g.Effects, e)
			g.ReadOnly = g.ReadOnly && e == ops.Read
		}
	}
	if len(g.Effects) == 0 {
		return Grant{}, fmt.Errorf("the token has none of the scopes %s, %s, %s", ScopeRead, ScopeWrite, ScopeCancel)
	}
	if o.User != nil {
		g.User = o.User(claims.Subject)
	}
	return g, nil
}

// tokenProblem says what is wrong with a token without quoting it.
func tokenProblem(err error) error {
	for _, known := range []error{
		jwt.ErrTokenExpired, jwt.ErrTokenNotValidYet, jwt.ErrTokenInvalidIssuer, jwt.ErrTokenInvalidAudience,
		jwt.ErrTokenSignatureInvalid, jwt.ErrTokenMalformed, jwt.ErrTokenRequiredClaimMissing, errNoKey,
	} {
		if errors.Is(err, known) {
			return known
		}
	}
	return errors.New("the token could not be verified")
}

// staticToken looks a token up without telling by its timing how much of it was
// right.
func staticToken(digests map[[sha256.Size]byte]ops.Caller, token string) (who ops.Caller, ok bool) {
	given := sha256.Sum256([]byte(token))
	for known, c := range digests {
		if subtle.ConstantTimeCompare(given[:], known[:]) == 1 {
			who, ok = c, true
		}
	}
	return who, ok
}

func digestsOf(tokens map[string]ops.Caller) map[[sha256.Size]byte]ops.Caller {
	digests := map[[sha256.Size]byte]ops.Caller{}
	for t, c := range tokens {
		if t != "" {
			digests[sha256.Sum256([]byte(t))] = c
		}
	}
	return digests
}
