package mcp

import (
	"cmp"
	"context"
	"crypto/rsa"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
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

// fetchWithin is how long the issuer may take for its metadata and its keys together.
const fetchWithin = 5 * time.Second

// Errors of looking for a token's key. Only the first is a fault of the token.
var (
	errNoKey    = errors.New("the issuer has no such signing key")
	errKeysAway = errors.New("the issuer's signing keys cannot be read at the moment, so the token could not be verified; try again later")
)

// A keySet holds an issuer's public keys and fetches them on demand. Whoever sends a token
// can make it fetch, so neither a slow issuer nor a sender who hangs up delays others: a
// fetch ends with no request, and only those wait for it whose key is not known yet.
type keySet struct {
	issuer, url string
	client      *http.Client
	now         func() time.Time
	log         *slog.Logger

	mu        sync.Mutex
	at        string // where the keys were last read; empty: the last fetch failed
	keys      map[string]publicKey
	fetchedAt time.Time
	err       error         // why the last fetch brought nothing
	fetching  chan struct{} // closed when the fetch in progress ends; nil: there is none
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
	if old := s.fetchedAt.IsZero() || age > keysFresh; s.fetching == nil && (old || (!ok || s.err != nil) && age > keysRetry) {
		s.startFetch(ctx)
		ok = ok && !old // an old key may have been withdrawn
	}
	if ended := s.fetching; ended != nil && !ok {
		s.mu.Unlock()
		select {
		case <-ended:
		case <-ctx.Done():
		}
		s.mu.Lock()
		k, ok = s.lookup(kid)
	}
	switch {
	case !ok && (s.err != nil || ctx.Err() != nil):
		return nil, errKeysAway
	case !ok || k.alg != "" && k.alg != alg:
		return nil, errNoKey
	}
	return k.key, nil
}

// startFetch begins a fetch that outlives the request of ctx. The caller holds s.mu.
func (s *keySet) startFetch(ctx context.Context) {
	ended := make(chan struct{})
	s.fetchedAt, s.fetching = s.now(), ended
	go func() {
		defer close(ended)
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), fetchWithin)
		defer cancel()
		keys, at, err := s.fetch(ctx, cmp.Or(s.url, s.at)) // only one fetch at a time changes s.at
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.at, s.err, s.fetching = at, err, nil; err == nil {
			s.keys = keys
			return
		}
		s.log.Warn("mcp: the issuer's signing keys cannot be read", "issuer", s.issuer, "error", err)
	}()
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

// fetch returns the issuer's keys and their address, which the issuer's metadata names if
// at is empty.
func (s *keySet) fetch(ctx context.Context, at string) (map[string]publicKey, string, error) {
	if at == "" {
		var err error
		if at, err = s.discover(ctx); err != nil {
			return nil, "", err
		}
	}
	var doc struct {
		Keys []json.RawMessage `json:"keys"`
	}
	if err := s.get(ctx, at, &doc); err != nil {
		return nil, "", err
	}
	keys := map[string]publicKey{}
	for _, raw := range doc.Keys {
		// Decode each key by itself, so that a key of an unknown kind hides no other
		// key.
		var k jose.JSONWebKey
		if json.Unmarshal(raw, &k) != nil || k.Use != "" && k.Use != "sig" || !k.IsPublic() || !k.Valid() || weak(k.Key) {
			continue
		}
		keys[k.KeyID] = publicKey{k.Algorithm, k.Key}
	}
	return keys, at, nil
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

// longestDocument is the longest metadata or key document that is read.
const longestDocument = 1 << 20

// get fetches a JSON document over TLS, or from this machine itself.
func (s *keySet) get(ctx context.Context, at string, into any) error {
	u, err := url.Parse(at)
	if err == nil {
		err = trusted(u)
	}
	if err != nil {
		return err
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
	raw, err := io.ReadAll(io.LimitReader(res.Body, longestDocument+1))
	switch {
	case err != nil:
		return err
	case len(raw) > longestDocument:
		return fmt.Errorf("%s is longer than %d bytes", at, longestDocument)
	}
	if err := json.Unmarshal(raw, into); err != nil {
		return fmt.Errorf("%s: %w", at, err)
	}
	return nil
}

// trusted refuses an address whose answer somebody on the way could replace.
func trusted(u *url.URL) error {
	if u.Scheme != "https" && !loopbackName(u.Host) {
		return fmt.Errorf("%s is not https", u)
	}
	return nil
}

// trustedClient returns client, or one with a short time limit, that follows redirects to
// trusted addresses only.
func trustedClient(client *http.Client) *http.Client {
	own := http.Client{Timeout: fetchWithin}
	if client != nil {
		own = *client
	}
	own.CheckRedirect = func(req *http.Request, via []*http.Request) error {
		if len(via) >= 5 {
			return errors.New("too many redirects")
		}
		return trusted(req.URL)
	}
	return &own
}
