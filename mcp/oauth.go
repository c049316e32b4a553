package mcp

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
	sdkserver "github.com/mark3labs/mcp-go/server"

	"github.com/megatron-ops/megatron-ops/internal/ops"
)

// The scopes of an access token, one for each effect.
const (
	scopeRead   = "megatron-ops:read"
	scopeWrite  = "megatron-ops:write"
	scopeCancel = "megatron-ops:cancel"
)

var scopeOf = map[ops.Effect]string{
	ops.Read:        scopeRead,
	ops.Write:       scopeWrite,
	ops.Destructive: scopeCancel,
}

// OAuth makes the server a resource server of an external issuer: it verifies access
// tokens and never requests, forwards or stores one.
type OAuth struct {
	// Issuer is the authorization server's identifier. Resource is this server's own
	// URL, which must be among a token's audiences.
	Issuer   string
	Resource string
	// JWKS is the address of the issuer's keys; empty: the issuer's metadata names it.
	JWKS string
	// User maps a token's subject to a cluster user, or to "" for a subject that may
	// only read.
	User func(subject string) string
	// Client fetches the keys; nil: a client with short time limits.
	Client *http.Client
	// Log gets a line when the issuer's keys cannot be read; nil: the HTTP server's.
	Log *slog.Logger

	keys *keySet
}

func (o *OAuth) init() {
	if o.keys != nil {
		return
	}
	log := o.Log
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	o.keys = &keySet{issuer: o.Issuer, url: o.JWKS, client: trustedClient(o.Client), now: time.Now, log: log}
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
		ScopesSupported:        []string{scopeRead, scopeWrite, scopeCancel},
		BearerMethodsSupported: []string{"header"},
		ResourceName:           "megatron-ops",
	}
}

type accessClaims struct {
	Scope  scopeWords `json:"scope"`
	Scopes scopeWords `json:"scp"`
	jwt.Claims
}

// scopeWords are scopes. Some issuers write them as one string, some as a list, under
// either name.
type scopeWords []string

// UnmarshalJSON reads either form.
func (w *scopeWords) UnmarshalJSON(raw []byte) error {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		*w = strings.Fields(text)
		return nil
	}
	return json.Unmarshal(raw, (*[]string)(w))
}

// signatures are the accepted algorithms, all of them asymmetric: with an HMAC
// algorithm, an attacker could sign with the public key.
var signatures = []jose.SignatureAlgorithm{
	jose.RS256, jose.RS384, jose.RS512, jose.PS256, jose.PS384, jose.PS512, jose.ES256, jose.ES384, jose.ES512, jose.EdDSA,
}

// Errors of a token that precede the check of its claims.
var (
	errMalformed = errors.New("token is malformed")
	errNoExpiry  = errors.New("token is missing required claim: exp claim is required")
	errSignature = errors.New("token signature is invalid")
)

// clockLeeway is by how much the issuer's clock may differ.
const clockLeeway = 30 * time.Second

// Verify returns the caller that an access token stands for and what its scopes allow.
// The error is written for the token's bearer.
func (o *OAuth) Verify(ctx context.Context, token string) (Grant, error) {
	o.init()
	claims, err := o.claims(ctx, token)
	if err != nil {
		return Grant{}, tokenProblem(err)
	}
	if claims.Subject == "" {
		return Grant{}, errors.New("the token names no subject")
	}
	g := Grant{Caller: ops.Caller{Surface: ops.MCPHTTP, ID: o.Issuer + "#" + claims.Subject, ReadOnly: true}, Effects: []ops.Effect{}}
	scopes := slices.Concat(claims.Scope, claims.Scopes)
	for _, e := range []ops.Effect{ops.Read, ops.Write, ops.Destructive} {
		if slices.Contains(scopes, scopeOf[e]) {
			g.Effects = append(g.Effects, e)
			g.ReadOnly = g.ReadOnly && e == ops.Read
		}
	}
	if len(g.Effects) == 0 {
		return Grant{}, fmt.Errorf("the token has none of the scopes %s, %s, %s", scopeRead, scopeWrite, scopeCancel)
	}
	if o.User != nil {
		g.User = o.User(claims.Subject)
	}
	return g, nil
}

// claims returns the claims of a token that this issuer signed for this server and that
// is valid now.
func (o *OAuth) claims(ctx context.Context, token string) (c accessClaims, err error) {
	t, err := jwt.ParseSigned(token, signatures)
	if _, other := errors.AsType[*jose.ErrUnexpectedSignatureAlgorithm](err); other {
		return c, errSignature
	}
	if err != nil || len(t.Headers) != 1 {
		return c, errMalformed
	}
	key, err := o.keys.find(ctx, t.Headers[0].KeyID, t.Headers[0].Algorithm)
	if err != nil {
		return c, err
	}
	switch err := t.Claims(key, &c); {
	case errors.Is(err, jose.ErrCryptoFailure):
		return c, errSignature
	case err != nil:
		return c, errMalformed
	case c.Expiry == nil:
		return c, errNoExpiry
	}
	return c, c.ValidateWithLeeway(jwt.Expected{Issuer: o.Issuer, AnyAudience: jwt.Audience{o.Resource}, Time: time.Now()}, clockLeeway)
}

// tokenProblem says what is wrong with a token without quoting it.
func tokenProblem(err error) error {
	for _, known := range []error{
		jwt.ErrExpired, jwt.ErrNotValidYet, jwt.ErrIssuedInTheFuture, jwt.ErrInvalidIssuer, jwt.ErrInvalidAudience,
		errSignature, errMalformed, errNoExpiry, errNoKey, errKeysAway,
	} {
		if errors.Is(err, known) { // without the name of the library
			if said, others := strings.CutPrefix(known.Error(), "go-jose/go-jose/jwt: validation failed, "); others {
				return errors.New(said)
			}
			return known
		}
	}
	return errors.New("the token could not be verified")
}

// staticToken looks up a token. Its timing does not reveal how much of a wrong token
// was right.
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
