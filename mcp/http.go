package mcp

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	sdkserver "github.com/mark3labs/mcp-go/server"

	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/pace"
	"github.com/megatron-ops/megatron-ops/mcp/message"
	"github.com/megatron-ops/megatron-ops/mcp/replay"
)

const sessionIdle = 30 * time.Minute

// HTTP says who may connect to a server over Streamable HTTP, and from where.
type HTTP struct {
	// Hosts and Origins are names that the Host and Origin headers may carry besides
	// this machine's loopback names, which are always accepted.
	Hosts   []string
	Origins []string
	// Tokens maps each bearer token to the caller that it stands for.
	Tokens map[string]ops.Caller
	// OAuth accepts tokens of an external issuer; nil: it accepts none.
	OAuth *OAuth
	// BodyWithin is how long a request's body may take; 0: half a minute.
	BodyWithin time.Duration
	// Log gets the transport's problems; nil: the server's own log.
	Log *slog.Logger

	// choose reads which tools a request's headers choose; nil: requests have no
	// choice, and tools read their arguments from the library's request.
	choose func(http.Header) ([]string, error)
	// pages are the open consent pages; nil: there are none.
	pages *pages
	// messages bounds the messages of one person, of which perMinute are granted; nil: nothing
	// does.
	messages  *pace.Limiter
	perMinute int
	// digests are those of Tokens, for comparing.
	digests map[[sha256.Size]byte]ops.Caller
}

// HTTPHandler serves s at /mcp. stop frees the sessions.
func (s *Server) HTTPHandler(h HTTP) (handler http.Handler, stop func()) {
	h.init(s)
	return NewHTTPWiring(s.sdk, h)
}

// Known returns a function that reports whether a request carries a token that /mcp
// accepts, for whatever else is served beside it.
func (h HTTP) Known() func(*http.Request) bool {
	h.digests = digestsOf(h.Tokens)
	return func(r *http.Request) bool {
		_, err := h.who(r)
		return err == nil
	}
}

func (h *HTTP) init(s *Server) {
	if h.Log == nil {
		h.Log = s.cfg.Log
	}
	if h.OAuth != nil {
		if h.OAuth.Log == nil {
			h.OAuth.Log = h.Log
		}
		h.OAuth.init()
	}
	if err := s.offerAll(); err != nil {
		h.Log.Error("tools", "err", err) // cannot happen: "all" is always a toolset
	}
	h.choose, h.pages = s.headerChoice, s.pages
	h.perMinute = messagesPerCall * s.perMinute()
	h.messages = pace.New(h.perMinute)
}

// NewHTTPWiring wraps lib in the checks that all our HTTP servers share: Host, Origin,
// size and depth of the body, the caller's token, sessions that only their owner may
// use, and streams that resume.
func NewHTTPWiring(lib *sdkserver.MCPServer, h HTTP) (http.Handler, func()) {
	if h.Log == nil {
		h.Log = slog.New(slog.DiscardHandler)
	}
	owned := newSessions()
	streamable := sdkserver.NewStreamableHTTPServer(lib,
		sdkserver.WithEndpointPath("/mcp"),
		sdkserver.WithSessionIdManagerResolver(owned),
		sdkserver.WithSessionIdleTTL(sessionIdle),
		sdkserver.WithEventStore(replay.New()),
		// At lower levels the library logs session ids, which are secrets.
		sdkserver.WithStreamableHTTPLogger(slog.New(warnings{h.Log.Handler()})),
		sdkserver.WithHeartbeatInterval(30*time.Second),
		// checkOrigin checks the Host of every request, not only on loopback sockets.
		sdkserver.WithDisableLocalhostProtection(true),
	)
	owned.endBy(streamable)
	h.digests = digestsOf(h.Tokens)
	at := map[string]http.Handler{"/mcp": h.authorised(owned.onlyOwn(h.bounded(rewriteAnswers(streamable))))}
	if h.OAuth != nil {
		meta := sdkserver.NewProtectedResourceMetadataHandler(h.OAuth.metadata())
		at[sdkserver.WellKnownProtectedResourcePath] = meta
		at[sdkserver.ProtectedResourceMetadataPath(h.OAuth.Resource)] = meta
	}
	var asking http.Handler
	if h.pages != nil {
		asking = h.pages.handler(h)
	}
	paths := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if handler := at[r.URL.Path]; handler != nil {
			handler.ServeHTTP(w, withBase(r))
			return
		}
		if asking != nil && strings.HasPrefix(r.URL.Path, pagesAt) {
			asking.ServeHTTP(w, r)
			return
		}
		http.NotFound(w, r)
	})
	return h.checkOrigin(paths), func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		streamable.CloseSessions(ctx)
		_ = streamable.Shutdown(ctx) // the server listens on nothing: this stops only its sweeper
	}
}

// checkOrigin refuses every request whose Host or Origin is not this server's.
// Otherwise a web page that makes the browser resolve its name to this machine (DNS
// rebinding) could use the server with its visitor's rights.
func (h HTTP) checkOrigin(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !loopbackName(r.Host) && !h.knownHost(r.Host) {
			http.Error(w, "host "+printableHeader(r.Host)+" is not served here", http.StatusForbidden)
			return
		}
		if origin := r.Header.Get("Origin"); origin != "" && !h.knownOrigin(origin) {
			http.Error(w, "origin "+printableHeader(origin)+" may not use this server", http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
}

func (h HTTP) knownHost(host string) bool {
	bare := hostOf(host)
	return slices.ContainsFunc(h.Hosts, func(k string) bool { return strings.EqualFold(k, host) || strings.EqualFold(k, bare) }) ||
		h.OAuth != nil && strings.EqualFold(h.OAuth.host(), host)
}

func (h HTTP) knownOrigin(origin string) bool {
	if slices.Contains(h.Origins, origin) {
		return true
	}
	u, err := url.Parse(origin)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && loopbackName(u.Host)
}

// loopbackName reports whether host, with or without a port, is a loopback name or
// address.
func loopbackName(host string) bool {
	host = hostOf(host)
	if strings.EqualFold(host, "localhost") {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.IsLoopback()
}

func hostOf(hostport string) string {
	if host, _, err := net.SplitHostPort(hostport); err == nil {
		return host
	}
	return strings.Trim(hostport, "[]")
}

func printableHeader(s string) string {
	s = plain(s)
	return s[:min(len(s), 100)]
}

// bodyWithin is how long a request's body may take: enough for 4 MiB over a slow line.
const bodyWithin = 30 * time.Second

// bounded reads a request's body, at most maxMessage bytes and within a time limit. It
// refuses a body that is longer, slower or nested too deeply before the library sees
// it.
func (h HTTP) bounded(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost {
			next.ServeHTTP(w, r)
			return
		}
		const tooLong = "message is longer than 4 MiB"
		if r.ContentLength > maxMessage {
			http.Error(w, tooLong, http.StatusRequestEntityTooLarge)
			return
		}
		connection := http.NewResponseController(w)
		_ = connection.SetReadDeadline(time.Now().Add(cmp.Or(h.BodyWithin, bodyWithin))) // a ResponseWriter without deadlines is no network connection
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxMessage))
		_ = connection.SetReadDeadline(time.Time{})
		var tooBig *http.MaxBytesError
		switch {
		case errors.Is(err, os.ErrDeadlineExceeded):
			w.Header().Set("Connection", "close")
			http.Error(w, "message did not arrive in time", http.StatusRequestTimeout)
			return
		case errors.As(err, &tooBig):
			http.Error(w, tooLong, http.StatusRequestEntityTooLarge)
			return
		case err != nil:
			http.Error(w, "message could not be read", http.StatusBadRequest)
			return
		case message.TooDeep(body):
			http.Error(w, "message nests too deep", http.StatusBadRequest)
			return
		}
		if h.choose != nil {
			var arguments []byte
			if body, arguments = message.TakeArguments(body); arguments != nil {
				r = r.WithContext(context.WithValue(r.Context(), argumentsKey{}, arguments))
			}
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		next.ServeHTTP(w, r)
	})
}

// authorised identifies the caller and passes the grant on in the request's context.
func (h HTTP) authorised(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		g, err := h.who(r)
		if errors.Is(err, errKeysAway) { // a client that got 401 would throw its token away
			w.Header().Set("Retry-After", strconv.Itoa(int(keysRetry.Seconds())))
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		if err != nil {
			problem := err.Error()
			challenge := `Bearer error="invalid_token", error_description="` + problem + `"`
			if h.OAuth != nil {
				challenge += `, resource_metadata="` + h.OAuth.metadataURL() + `"`
			}
			w.Header().Set("WWW-Authenticate", challenge)
			http.Error(w, problem, http.StatusUnauthorized)
			return
		}
		if h.tooMany(w, g) {
			return
		}
		if h.choose != nil {
			tools, err := h.choose(r.Header)
			if err != nil {
				e := ops.AsError(err)
				http.Error(w, printableHeader(e.Message.EN)+"; "+e.Fix.EN, http.StatusBadRequest)
				return
			}
			g.Tools = tools
		}
		next.ServeHTTP(w, r.WithContext(withGrant(r.Context(), g)))
	})
}

// tooMany refuses the message of a person who has sent too many lately, whatever it is.
func (h HTTP) tooMany(w http.ResponseWriter, g Grant) bool {
	if h.messages == nil {
		return false
	}
	wait, ok := h.messages.Take(personOf(g.Caller), time.Now())
	if ok {
		return false
	}
	w.Header().Set("Retry-After", strconv.Itoa(pace.Seconds(wait)))
	http.Error(w, fmt.Sprintf("all agents of %s together may send %d messages a minute, and have sent them; nothing was done; send again in %d s",
		printableHeader(personOf(g.Caller)), h.perMinute, pace.Seconds(wait)), http.StatusTooManyRequests)
	return true
}

// Errors of a request's Authorization header.
var (
	errNoToken   = errors.New("a bearer token is needed: send it in the Authorization header")
	errNotBearer = errors.New("the Authorization header must be of the form: Bearer TOKEN")
	errUnknown   = errors.New("the bearer token is not known here")
)

// who returns the caller of r, or what is wrong with its token. A loopback address
// proves nothing: every account of a login node can connect to it.
func (h HTTP) who(r *http.Request) (Grant, error) {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	token = strings.TrimSpace(token)
	switch {
	case scheme == "":
		return Grant{}, errNoToken
	case !strings.EqualFold(scheme, "Bearer"):
		return Grant{}, errNotBearer
	}
	if who, ok := staticToken(h.digests, token); ok {
		who.Surface = ops.MCPHTTP
		return Grant{Caller: who}, nil
	}
	if h.OAuth == nil {
		return Grant{}, errUnknown
	}
	return h.OAuth.Verify(r.Context(), token)
}
