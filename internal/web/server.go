// Package web is the page for browsers: jobs with their live state, one job with its
// curves, diagnosis and logs, nodes, usage, and requests that wait for a decision. It
// is a surface like the others: every answer is an operation's, and every change is
// confirmed in the words of package consent.
package web

import (
	"context"
	"embed"
	"html/template"
	"io/fs"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/ops/operations"
	"github.com/megatron-ops/megatron-ops/internal/pace"
)

//go:embed static templates
var files embed.FS

// A Config says what the page is served from.
type Config struct {
	Service *ops.Service
	// URL is the page's address as browsers reach it, such as https://ops.example.org;
	// empty on loopback.
	URL string
	// Proof tells which user of the cluster has proved a sign-in's code; nil if the
	// site has no folder for codes.
	Proof Proof
	// OpenID are the providers at which people sign in, by the word in their addresses.
	OpenID map[string]OpenID
	// SlackUser returns the cluster user to whom a person in Slack (T…/U…) is linked now,
	// or ""; nil: this server does not serve Slack.
	SlackUser func(ctx context.Context, id string) (string, error)
	// Operators are the cluster users who may act on others' jobs and decide about
	// requests.
	Operators []string
	// Held returns why an operator must approve a call; empty: none must.
	Held func(c *ops.Call, op string, in any) lang.Text
	Log  *slog.Logger
}

// A Server serves the page.
type Server struct {
	cfg     Config
	pages   *template.Template
	streams chan struct{} // holds one element for each open stream

	providers map[string]*provider
	pace      *pace.Limiter

	accountsMu sync.Mutex
	accounts   map[string]userAccounts // by cluster and user

	codesMu    sync.Mutex
	codesGiven []time.Time // when strangers got codes, within the last hour
}

// mostStreams bounds how many browsers get live updates at a time; the others see
// changes when they load a page.
const mostStreams = 500

// New returns the page's server.
func New(cfg Config) (*Server, error) {
	s := &Server{
		cfg: cfg, streams: make(chan struct{}, mostStreams), providers: map[string]*provider{}, accounts: map[string]userAccounts{},
		pace: pace.New(pace.OfPrograms),
	}
	for by, o := range cfg.OpenID {
		s.providers[by] = &provider{OpenID: o, callback: strings.TrimSuffix(cfg.URL, "/") + "/web/login/" + by + "/done"}
	}
	if s.cfg.Log == nil {
		s.cfg.Log = slog.New(slog.DiscardHandler)
	}
	pages, err := template.New("").Funcs(functions).ParseFS(files, "templates/*.html")
	s.pages = pages
	return s, err
}

// Paths are the paths below which the page is served.
var Paths = []string{"/web/", "/web"}

// Handler serves the page. The cross-origin protection refuses forms of other sites.
func (s *Server) Handler() http.Handler {
	mux := http.NewServeMux()
	static, _ := fs.Sub(files, "static") // the folder is embedded
	mux.Handle("GET /web/static/", http.StripPrefix("/web/static/", cached(http.FileServerFS(static))))
	mux.HandleFunc("GET /web/login", s.login)
	mux.HandleFunc("POST /web/login", s.signIn)
	mux.HandleFunc("GET /web/login/{by}", s.toProvider)
	mux.HandleFunc("GET /web/login/{by}/done", s.fromProvider)
	mux.HandleFunc("POST /web/logout", s.logout)
	page := func(pattern string, show func(*visit) error) { mux.HandleFunc(pattern, s.requireSignIn(show)) }
	page("GET /web", (*visit).toJobs)
	page("GET /web/{$}", (*visit).toJobs)
	page("GET /web/jobs", (*visit).jobs)
	page("GET /web/jobs/stream", (*visit).jobsStream)
	page("GET /web/jobs/{cluster}/{id}", (*visit).job)
	page("GET /web/jobs/{cluster}/{id}/stream", (*visit).jobStream)
	page("GET /web/jobs/{cluster}/{id}/curves.json", (*visit).curves)
	page("GET /web/jobs/{cluster}/{id}/log.json", (*visit).log)
	page("GET /web/jobs/{cluster}/{id}/diagnosis", (*visit).diagnosis)
	page("GET /web/jobs/{cluster}/{id}/attempts", (*visit).attempts)
	page("GET /web/jobs/{cluster}/{id}/specification", (*visit).specification)
	page("GET /web/jobs/{cluster}/{id}/{what}", (*visit).part)
	page("GET /web/pipelines/{owner}/{name}", (*visit).pipeline)
	page("GET /web/pipelines/{owner}/{name}/stream", (*visit).pipelineStream)
	page("GET /web/nodes", (*visit).nodes)
	page("GET /web/usage", (*visit).usage)
	page("GET /web/approvals", (*visit).approvals)
	page("POST /web/approvals/{id}", (*visit).decide)
	page("GET /web/confirm", (*visit).confirm)
	page("POST /web/do", (*visit).execute)
	return headers(http.NewCrossOriginProtection().Handler(mux))
}

// headers forbids pages to load anything from elsewhere or to run inline scripts.
func headers(next http.Handler) http.Handler {
	const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " +
		"form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", policy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "same-origin")
		h.Set("Cache-Control", "no-store")
		r.Body = http.MaxBytesReader(w, r.Body, 1<<20)
		next.ServeHTTP(w, r)
	})
}

// cached lets browsers cache files that change only with the program.
func cached(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "private, max-age=3600")
		next.ServeHTTP(w, r)
	})
}

// A visit is one request of a person who is signed in.
type visit struct {
	s    *Server
	w    http.ResponseWriter
	r    *http.Request
	who  ops.Caller
	lang lang.Lang
}

// requireSignIn shows a page to a person who is signed in, and sends others to the
// sign-in page.
func (s *Server) requireSignIn(show func(*visit) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		who, ok, err := s.caller(r)
		if err != nil { // whoever is signed in stays so
			s.cfg.Log.Warn("web: who is signed in could not be read", "path", r.URL.Path, "error", err)
			w.Header().Set("Retry-After", "5")
			http.Error(w, textNoStore.In(langOf(r)), http.StatusServiceUnavailable)
			return
		}
		if !ok {
			if r.Method != http.MethodGet || strings.Contains(r.Header.Get("Accept"), "json") {
				http.Error(w, textSignInFirst.In(langOf(r)), http.StatusUnauthorized)
				return
			}
			http.Redirect(w, r, "/web/login?to="+template.URLQueryEscaper(r.URL.RequestURI()), http.StatusSeeOther)
			return
		}
		v := &visit{s: s, w: w, r: r, who: who, lang: langOf(r)}
		if wait, ok := s.pace.Take(who.User, s.cfg.Service.Now()); !ok {
			w.Header().Set("Retry-After", strconv.Itoa(pace.Seconds(wait)))
			v.problem(http.StatusTooManyRequests, &ops.Error{Code: ops.Failed, Message: pace.Said(wait)})
			return
		}
		if err := show(v); err != nil && r.Context().Err() == nil {
			v.failed(err)
		}
	}
}

// failed shows what is wrong, and what would work.
func (v *visit) failed(err error) {
	e := ops.AsError(err)
	status := map[ops.Code]int{ops.BadInput: 400, ops.NotAllowed: 403, ops.NotFound: 404, ops.Preflight: 422}[e.Code]
	if status == 0 {
		status = http.StatusBadGateway
		v.s.cfg.Log.Warn("web: a page failed", "path", v.r.URL.Path, "error", err)
	}
	v.problem(status, e)
}

// problem shows an error, in the form that the page or its script asked for.
func (v *visit) problem(status int, e *ops.Error) {
	said := e.In(v.lang)
	if strings.HasSuffix(v.r.URL.Path, ".json") {
		v.json(status, said)
		return
	}
	if v.r.Header.Get("X-Part") != "" {
		v.w.WriteHeader(status)
		_ = v.s.pages.ExecuteTemplate(v.w, "problem", said)
		return
	}
	v.page(status, "error", pageData{Title: textProblem.In(v.lang), Body: said})
}

// call returns an operation's call by the visitor.
func (v *visit) call() *ops.Call {
	return &ops.Call{Service: v.s.cfg.Service, Who: v.who, Lang: v.lang}
}

func (v *visit) readInput(op ops.Op, in any, cluster string, words []string) error {
	if err := op.Words(in, words); err != nil {
		return err
	}
	if on, ok := in.(interface{ On(cluster string) }); ok && cluster != "" {
		on.On(cluster)
	}
	return nil
}

// runAs runs an operation whose output is an Out on a cluster, given by its words.
func runAs[Out any](v *visit, cluster, name string, words ...string) (out Out, err error) {
	op, ok := operations.Lookup(name)
	if !ok {
		return out, textNoAnswer.Err(name)
	}
	in := op.NewIn()
	if err := v.readInput(op, in, cluster, words); err != nil {
		return out, err
	}
	answer, err := op.Run(v.r.Context(), v.call(), in)
	if err != nil {
		return out, err
	}
	if out, ok = answer.(Out); !ok {
		return out, textNoAnswer.Err(name)
	}
	return out, nil
}

// A pageData is what the frame of every page draws.
type pageData struct {
	Title string
	// Here is the part of the program that the page belongs to.
	Here    string
	Lang    lang.Lang
	Who     ops.Caller
	Waiting int // number of requests for approval
	Path    string
	Now     time.Time
	Body    any
}

// page draws a template within the frame.
func (v *visit) page(status int, name string, p pageData) {
	p.Lang, p.Who, p.Now, p.Path = v.lang, v.who, v.s.cfg.Service.Now(), v.r.URL.RequestURI()
	if v.who.Operator {
		waiting, err := v.s.cfg.Service.Approvals(v.r.Context())
		if err == nil {
			p.Waiting = len(waiting)
		}
	}
	v.s.draw(v.w, status, name, p)
}

// draw writes a whole page, or an error if the template fails.
func (s *Server) draw(w http.ResponseWriter, status int, name string, p pageData) {
	var out strings.Builder
	if err := s.pages.ExecuteTemplate(&out, name, p); err != nil {
		s.cfg.Log.Error("web: a page was not drawn", "page", name, "error", err)
		http.Error(w, "internal error: the server's log has the details", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write([]byte(out.String())) // a failed write means that the browser is gone
}

// pageOrPart draws a whole page, or only its template part if the page itself asks for
// an update.
func (v *visit) pageOrPart(name, part string, p pageData) error {
	if v.r.Header.Get("X-Part") != "" {
		return v.drawPart(part, p.Body)
	}
	v.page(http.StatusOK, name, p)
	return nil
}

// drawPart draws a template without the frame, for the page that requested it.
func (v *visit) drawPart(name string, body any) error {
	var out strings.Builder
	if err := v.s.pages.ExecuteTemplate(&out, name, pageData{Lang: v.lang, Who: v.who, Now: v.s.cfg.Service.Now(), Body: body}); err != nil {
		return err
	}
	v.w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, err := v.w.Write([]byte(out.String()))
	return err
}

// langOf returns the language that a browser has chosen, by the page's switch or by its
// own setting.
func langOf(r *http.Request) lang.Lang {
	if c, err := r.Cookie("lang"); err == nil {
		if l, ok := lang.Parse(c.Value); ok {
			return l
		}
	}
	for word := range strings.SplitSeq(r.Header.Get("Accept-Language"), ",") {
		if l, ok := lang.Parse(strings.TrimSpace(word)); ok {
			return l
		}
	}
	return lang.EN
}

var errNoProof = lang.Text{EN: "the site has no folder for codes", ZH: "站点没有存放代码的目录"}.Err()
