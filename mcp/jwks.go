package mcp

import (
	"context"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"
)

// How long an issuer's keys are believed, and how soon an unknown key's name may
// make the server ask again: anybody can make one up.
const (
	keysFresh = time.Hour
	keysRetry = 30 * time.Second
)

var errNoKey = errors.New("the issuer has no such signing key")

// A keySet is an issuer's public keys, fetched when one is asked for.
type keySet struct {
	issuer, url string
	client      *http.Client
	now         func() time.Time

	mu    sync.Mutex
	keys  map[string]publicKey
	asked time.Time
}

type publicKey struct {
	alg string // empty: any that fits the key
	key any
}

// find returns the key named kid for signatures of the form alg.
func (s *keySet) find(ctx context.Context, kid, alg string) (any, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	k, ok := s.lookup(kid)
	age := s.now().Sub(s.asked)
	if s.asked.IsZero() || age > keysFresh || !ok && age > keysRetry {
		s.asked = s.now()
		keys, err := s.fetch(ctx)
		if err != nil && !ok {
			return nil, fmt.Errorf("%w: %w", errNoKey, err)
		}
		if err == nil {
			s.keys = keys
			k, ok = s.lookup(kid)
		}
	}
	if !ok || k.alg != "" && k.alg != alg {
		return nil, errNoKey
	}
	return k.key, nil
}

// lookup finds a key by name; a token without a name means the only key.
func (s *keySet) lookup(kid string) (publicKey, bool) {
	if kid == "" && len(s.keys) == 1 {
		for _, k := range s.keys {
			return k, true
		}
	}
	k, ok := s.keys[kid]
	return k, ok
}

func (s *keySet) fetch(ctx context.Context) (map[string]publicKey, error) {
	if s.url == "" {
		found, err := s.discover(ctx)
		if err != nil {
			return nil, err
		}
		s.url = found
	}
	var doc struct {
		Keys []jwk `json:"keys"`
	}
	if err := s.get(ctx, s.url, &doc); err != nil {
		return nil, err
	}
	keys := map[string]publicKey{}
	for _, k := range doc.Keys {
		if k.Use != "" && k.Use != "sig" {
			continue
		}
		if key, err := k.public(); err == nil {
			keys[k.Kid] = publicKey{k.Alg, key}
		}
	}
	return keys, nil
}

// discover reads the issuer's metadata: RFC 8414, else OpenID Connect's.
func (s *keySet) discover(ctx context.Context) (string, error) {
	u, err := url.Parse(s.issuer)
	if err != nil {
		return "", err
	}
	path := strings.TrimSuffix(u.Path, "/")
	base := u.Scheme + "://" + u.Host
	var last error
	for _, at := range []string{
		base + "/.well-known/oauth-authorization-server" + path,
		base + path + "/.well-known/openid-configuration",
	} {
		var doc struct {
			Issuer string `json:"issuer"`
			JWKS   string `json:"jwks_uri"`
		}
		if last = s.get(ctx, at, &doc); last == nil && doc.JWKS != "" {
			if doc.Issuer != s.issuer {
				return "", fmt.Errorf("the metadata at %s is of another issuer", at)
			}
			return doc.JWKS, nil
		}
	}
	return "", fmt.Errorf("the issuer's metadata names no keys: %w", last)
}

// get fetches a small JSON document, over TLS or from this machine itself.
func (s *keySet) get(ctx context.Context, at string, into any) error {
	u, err := url.Parse(at)
	if err != nil {
		return err
	}
	if u.Scheme != "https" && !loopbackName(u.Host) {
		return fmt.Errorf("%s is not https", at)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, at, nil)
	if err != nil {
		return err
	}
	res, err := s.client.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = res.Body.Close() }()
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answers %s", at, res.Status)
	}
	return json.NewDecoder(io.LimitReader(res.Body, 1<<20)).Decode(into)
}

// A jwk is one key as RFC 7517 writes it.
type jwk struct {
	Kty string `json:"kty"`
	Kid string `json:"kid"`
	Use string `json:"use"`
	Alg string `json:"alg"`
	Crv string `json:"crv"`
	N   string `json:"n"`
	E   string `json:"e"`
	X   string `json:"x"`
	Y   string `json:"y"`
}

func (k jwk) public() (any, error) {
	switch k.Kty {
	case "RSA":
		n, err := bigInt(k.N)
		if err != nil {
			return nil, err
		}
		e, err := bigInt(k.E)
		if err != nil || !e.IsInt64() || n.BitLen() < 2048 {
			return nil, errors.New("weak or malformed RSA key")
		}
		return &rsa.PublicKey{N: n, E: int(e.Int64())}, nil
	case "EC":
		curve := map[string]elliptic.Curve{"P-256": elliptic.P256(), "P-384": elliptic.P384(), "P-521": elliptic.P521()}[k.Crv]
		if curve == nil {
			return nil, fmt.Errorf("unknown curve %s", k.Crv)
		}
		x, err := base64.RawURLEncoding.DecodeString(k.X)
		if err != nil {
			return nil, err
		}
		y, err := base64.RawURLEncoding.DecodeString(k.Y)
		if err != nil {
			return nil, err
		}
		size := (curve.Params().BitSize + 7) / 8
		if len(x) > size || len(y) > size {
			return nil, errors.New("malformed EC key")
		}
		point := make([]byte, 1+2*size)
		point[0] = 4 // uncompressed
		copy(point[1+size-len(x):], x)
		copy(point[1+2*size-len(y):], y)
		return ecdsa.ParseUncompressedPublicKey(curve, point)
	case "OKP":
		x, err := base64.RawURLEncoding.DecodeString(k.X)
		if err != nil || k.Crv != "Ed25519" || len(x) != ed25519.PublicKeySize {
			return nil, errors.New("malformed Ed25519 key")
		}
		return ed25519.PublicKey(x), nil
	}
	return nil, fmt.Errorf("unknown key type %s", k.Kty)
}

func bigInt(s string) (*big.Int, error) {
	b, err := base64.RawURLEncoding.DecodeString(s)
	if err != nil {
		return nil, err
	}
	return new(big.Int).SetBytes(b), nil
}
