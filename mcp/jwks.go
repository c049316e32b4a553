package mcp

import (
	"context"
	"crypto/rsa"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/go-jose/go-jose/v4"
)

// How long an issuer's keys are trusted, and how long an unknown key id waits before
// the server fetches again: anybody can make up a key id.
const (
	keysFresh = time.Hour
	keysRetry = 30 * time.Second
)

var errNoKey = errors.New("the issuer has no such signing key")

// A keySet holds an issuer's public keys and fetches them on demand.
type keySet struct {
	issuer, url string
	client      *http.Client
	now         func() time.Time

	mu        sync.Mutex
	keys      map[string]publicKey
	fetchedAt time.Time
}

type publicKey struct {
	alg string // empty: any algorithm that fits the key
	key any
}

// find returns the key with the id kid for signatures of the algorithm alg.
func (s *keySet) find(ctx context.Context, kid, alg string) (any, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	k, ok := s.lookup(kid)
	age := s.now().Sub(s.fetchedAt)
	if s.fetchedAt.IsZero() || age > keysFresh || !ok && age > keysRetry {
		s.fetchedAt = s.now()
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

// lookup finds a key by its id; without an id it returns the only key.
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
		Keys []json.RawMessage `json:"keys"`
	}
	if err := s.get(ctx, s.url, &doc); err != nil {
		return nil, err
	}
	keys := map[string]publicKey{}
	for _, raw := range doc.Keys {
		// Decode each key by itself, so that a key of an unknown kind hides no other
		// key.
		var k jose.JSONWebKey
		if json.Unmarshal(raw, &k) != nil {
			continue
		}
		if k.Use != "" && k.Use != "sig" || !k.IsPublic() || !k.Valid() || weak(k.Key) {
			continue
		}
		keys[k.KeyID] = publicKey{k.Algorithm, k.Key}
	}
	return keys, nil
}

// weak reports an RSA key that is too short to trust its signatures.
func weak(key any) bool {
	rsaKey, ok := key.(*rsa.PublicKey)
	return ok && rsaKey.N.BitLen() < 2048
}

// discover returns the address of the issuer's keys from its metadata: RFC 8414, else
// OpenID Connect's.
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

// get fetches a JSON document of at most 1 MiB over TLS, or from this machine itself.
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
