package mcp

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	_ "embed" // the page
	"encoding/base64"
	"errors"
	"fmt"
	"html/template"
	"math/big"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/megatron-ops/megatron-ops/internal/consent"
	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/view"
)

// A question that is too long for a form is asked on a web page: the client gets a
// link, which its person opens. A page belongs to the person whose call it is. The link
// is secret. A yes also needs a code, which appears in the client's question but not in
// the link, so that nobody who gets hold of the link can answer in that person's place.

const (
	// pagesAt is the path below which the pages are served.
	pagesAt = "/mcp/consent/"
	// mostPages and mostOwnPages bound how many pages are open, in all and of one
	// person.
	mostPages, mostOwnPages = 256, 16
	// mostGuesses is the number of wrong codes that closes a page.
	mostGuesses = 3
	// pageStep is how often a call that waits for its page reports progress: some
	// clients give up a call that is silent for a minute.
	pageStep = 10 * time.Second
	// longestPage is the longest question, in bytes, that a page asks.
	longestPage = 1 << 20
)

var (
	errPageOver   = errors.New("the page is over")
	errPageCode   = errors.New("the code is another")
	errPageTheirs = errors.New("the page is another person's")
)

// A page is one question and its answer.
type page struct {
	id, code string
	asked    string // the elicitation id that the client knows
	state    string // the request state of the waiting call
	owner    string
	account  string
	request  consent.Request
	until    time.Time

	mu      sync.Mutex
	guesses int
	said    bool
	yes     bool
	settled chan struct{} // closed once the page takes no more answers
}

// pages are the open questions of one server, oldest first.
type pages struct {
	now  func() time.Time
	mu   sync.Mutex
	open []*page
}

// ask opens a page for the call with the given request state. If too many pages are
// open, it closes the oldest ones.
func (ps *pages) ask(state string, who ops.Caller, r consent.Request) *page {
	n, _ := rand.Int(rand.Reader, big.NewInt(1_000_000)) // never fails: the program would end
	p := &page{
		id: rand.Text(), code: fmt.Sprintf("%06d", n), asked: rand.Text(), state: state,
		owner: ownerOf(who), account: who.User, request: r, until: ps.now().Add(tokenLife), settled: make(chan struct{}),
	}
	ps.mu.Lock()
	defer ps.mu.Unlock()
	all, own := 1, 1
	kept := []*page{p}
	for _, q := range slices.Backward(ps.open) {
		if !q.waits(ps.now()) {
			continue
		}
		all++
		if q.owner == p.owner {
			own++
		}
		if all > mostPages || q.owner == p.owner && own > mostOwnPages {
			q.settle()
			continue
		}
		kept = append(kept, q)
	}
	slices.Reverse(kept)
	ps.open = kept
	return p
}

// find returns the first open page for which is returns true, or nil.
func (ps *pages) find(is func(*page) bool) *page {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	if i := slices.IndexFunc(ps.open, is); i >= 0 {
		return ps.open[i]
	}
	return nil
}

// wait blocks until the person answers and returns the answer. No answer in time means
// no. Until then it calls step every pageStep.
func (ps *pages) wait(ctx context.Context, p *page, step func()) bool {
	late := time.NewTimer(p.until.Sub(ps.now()))
	defer late.Stop()
	defer func() {
		ps.mu.Lock()
		defer ps.mu.Unlock()
		ps.open = slices.DeleteFunc(ps.open, func(q *page) bool { return q == p })
	}()
	again := time.NewTicker(pageStep)
	defer again.Stop()
	for {
		select {
		case <-again.C:
			step()
			continue
		case <-p.settled:
		case <-late.C:
		case <-ctx.Done():
		}
		return p.settle()
	}
}

// settle returns the answer. If there is none yet, the answer is no from now on.
func (p *page) settle() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.said {
		p.end(false)
	}
	return p.yes
}

// end closes the page with an answer. The caller holds p.mu.
func (p *page) end(yes bool) {
	p.said, p.yes = true, yes
	close(p.settled)
}

// answer records a person's answer, once.
func (p *page) answer(now time.Time, code string, yes bool) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.said || now.After(p.until):
		return errPageOver
	case subtle.ConstantTimeCompare([]byte(code), []byte(p.code)) == 1:
	case p.guesses+1 < mostGuesses:
		p.guesses++
		return errPageCode
	default:
		p.end(false)
		return errPageOver
	}
	p.end(yes)
	return nil
}

// waits reports whether p still takes an answer.
func (p *page) waits(now time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return !p.said && !now.After(p.until)
}

//go:embed page.html
var pageText string

// pageTemplate is parsed on first use: most processes show no page.
var pageTemplate = sync.OnceValue(func() *template.Template { return template.Must(template.New("page").Parse(pageText)) })

// pagePolicy forbids a page to load or run anything, to be framed, and to post
// elsewhere than to its own site. It allows the one style by its digest.
var pagePolicy = sync.OnceValue(func() string {
	_, rest, _ := strings.Cut(pageText, "<style>")
	style, _, _ := strings.Cut(rest, "</style>")
	sum := sha256.Sum256([]byte(style))
	return "default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
})

// A shownPage is what the template renders.
type shownPage struct {
	Lang     lang.Lang
	Title    string
	Note     string // replaces the question, or stands above it
	Sections []view.Section
	Code     string // label of the code's field; empty: there is nothing to answer
	Yes, No  string
}

// handler shows the pages and takes their answers. The caller has checked the Host; the
// cross-origin protection refuses forms of other sites.
func (ps *pages) handler(h HTTP) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+pagesAt+"{id}", func(w http.ResponseWriter, r *http.Request) { ps.show(w, r, h, "") })
	mux.HandleFunc("POST "+pagesAt+"{id}", func(w http.ResponseWriter, r *http.Request) { ps.takeAnswer(w, r, h) })
	return http.NewCrossOriginProtection().Handler(mux)
}

// requested returns the page that r names if the caller may see it: a request with a
// token must bring the owner's token. A browser sends no token.
func (ps *pages) requested(r *http.Request, h HTTP) (*page, error) {
	p := ps.find(func(p *page) bool { return p.id == r.PathValue("id") })
	if p == nil || !p.waits(ps.now()) {
		return nil, errPageOver
	}
	if r.Header.Get("Authorization") != "" {
		if g, err := h.who(r); err != nil || ownerOf(g.Caller) != p.owner {
			return nil, errPageTheirs
		}
	}
	return p, nil
}

func (ps *pages) show(w http.ResponseWriter, r *http.Request, h HTTP, note string) {
	p, err := ps.requested(r, h)
	if err != nil {
		ps.draw(w, r, statusOf(err), shownPage{Note: wordsOf(err).In(langOf(r))})
		return
	}
	l := langOf(r)
	status := http.StatusOK
	if note != "" {
		status = http.StatusForbidden
	}
	ps.draw(w, r, status, shownPage{
		Note: cmp.Or(note, lang.Text{
			EN: "An agent asks this on behalf of account %s. Nothing happens without your yes, and this page takes one answer, until %s.",
			ZH: "代理以账户 %s 的名义请求以下操作。未经您同意不会执行任何操作；本页只接受一次答复，有效期至 %s。",
		}.With(p.account, p.until.Format("15:04:05 MST")).In(l)),
		Sections: p.request.Sections(l),
		Code:     lang.Text{EN: "Code that your agent shows", ZH: "代理所显示的验证码"}.In(l),
		Yes:      lang.Text{EN: "Yes, %s", ZH: "同意，%s"}.With(p.request.Op).In(l),
		No:       lang.Text{EN: "No", ZH: "拒绝"}.In(l),
	})
}

func (ps *pages) takeAnswer(w http.ResponseWriter, r *http.Request, h HTTP) {
	p, err := ps.requested(r, h)
	said := ""
	if err == nil {
		r.Body = http.MaxBytesReader(w, r.Body, 4<<10)
		said = r.PostFormValue("answer")
		if said != "yes" && said != "no" {
			http.Error(w, "answer must be yes or no", http.StatusBadRequest)
			return
		}
		err = p.answer(ps.now(), strings.TrimSpace(r.PostFormValue("code")), said == "yes")
	}
	l := langOf(r)
	switch {
	case errors.Is(err, errPageCode):
		ps.show(w, r, h, wordsOf(err).In(l))
	case err != nil:
		ps.draw(w, r, statusOf(err), shownPage{Note: wordsOf(err).In(l)})
	case said == "yes":
		ps.draw(w, r, http.StatusOK, shownPage{Note: lang.Text{EN: "You said yes. Your agent goes on; this page can be closed.", ZH: "您已同意。代理将继续执行，可以关闭本页。"}.In(l)})
	default:
		ps.draw(w, r, http.StatusOK, shownPage{Note: lang.Text{EN: "You said no. Nothing was done; this page can be closed.", ZH: "您已拒绝。未执行任何操作，可以关闭本页。"}.In(l)})
	}
}

func (ps *pages) draw(w http.ResponseWriter, r *http.Request, status int, s shownPage) {
	s.Lang = langOf(r)
	s.Title = lang.Text{EN: "megatron-ops asks", ZH: "megatron-ops 请求确认"}.In(s.Lang)
	for name, value := range map[string]string{
		"Content-Type": "text/html; charset=utf-8", "Content-Security-Policy": pagePolicy(), "Cache-Control": "no-store",
		"Referrer-Policy": "no-referrer", "X-Content-Type-Options": "nosniff", "X-Frame-Options": "DENY",
	} {
		w.Header().Set(name, value)
	}
	w.WriteHeader(status)
	_ = pageTemplate().Execute(w, s) // a failed write means that the browser is gone
}

func statusOf(err error) int {
	if errors.Is(err, errPageTheirs) {
		return http.StatusForbidden
	}
	return http.StatusGone
}

func wordsOf(err error) lang.Text {
	switch {
	case errors.Is(err, errPageCode):
		return lang.Text{EN: "That is not the code that your agent shows. Nothing was done.", ZH: "验证码与代理所显示的不符。未执行任何操作。"}
	case errors.Is(err, errPageTheirs):
		return lang.Text{EN: "This question is another person's.", ZH: "这是他人的确认请求。"}
	}
	return lang.Text{
		EN: "This link is no longer valid: the question was answered, it has expired, or the call has ended. Have your agent ask again.",
		ZH: "此链接已失效：已经答复、超时，或者调用已经结束。请让代理重新请求。",
	}
}

// langOf returns the language that a browser prefers.
func langOf(r *http.Request) lang.Lang {
	l, _ := lang.Parse(r.Header.Get("Accept-Language"))
	return l
}

type baseKey struct{}

// withBase records the address under which the client reached this server: its person's
// browser can open the pages there.
func withBase(r *http.Request) *http.Request {
	scheme := "http"
	if r.TLS != nil || strings.EqualFold(r.Header.Get("X-Forwarded-Proto"), "https") {
		scheme = "https"
	}
	return r.WithContext(context.WithValue(r.Context(), baseKey{}, scheme+"://"+r.Host))
}

// baseIn returns that address, or "" if there is none, as on standard input.
func baseIn(ctx context.Context) string {
	base, _ := ctx.Value(baseKey{}).(string)
	return base
}
