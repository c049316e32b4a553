package web

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/megatron-ops/megatron-ops/internal/account"
	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/linkproof"
	"github.com/megatron-ops/megatron-ops/internal/ops"
)

// A Proof tells which cluster user has proved the code that was given at since. It
// returns fs.ErrNotExist while there is no proof.
type Proof func(ctx context.Context, code string, since time.Time) (account.User, error)

// The kinds of documents that hold sign-ins.
const (
	docTicket  = "web_ticket"  // digest of a one-time link → whom it signs in
	docSession = "web_session" // digest of a cookie → who is signed in
	docCode    = "web_code"    // digest of a cookie → the code to be proved
)

const (
	// ticketLife is how long a one-time link is valid.
	ticketLife = 10 * time.Minute
	// sessionLife is how long a sign-in lasts.
	sessionLife = 12 * time.Hour
	cookieName  = "megatron_ops"
	// codesPerHour bounds the codes given to strangers, all together: each is a row in
	// the store.
	codesPerHour = 600
)

// A signIn is who is signed in, and by which linked account; both By and Account are empty for
// whoever has proved on the cluster who they are.
type signIn struct {
	ops.Caller
	// By is the provider's word, or BySlack.
	By string `json:"by,omitempty"`
	// Account is the provider's name of the account.
	Account string `json:"account,omitempty"`
}

// BySlack is the word for accounts in Slack, as T…/U….
const BySlack = "slack"

// A waitingCode is the code shown to a browser that wants to sign in.
type waitingCode struct {
	Code string    `json:"code"`
	At   time.Time `json:"at"`
}

// Link returns a one-time link that signs in who: a path and a query, to append to the
// page's URL.
func Link(ctx context.Context, svc *ops.Service, who ops.Caller, to string) (string, error) {
	ticket := rand.Text()
	k := signIn{Caller: who}
	if who.Surface == ops.Slack {
		k.By, k.Account = BySlack, who.ID
	}
	k.Surface = ops.Web
	if err := svc.Docs().Put(ctx, docTicket, digest(ticket), k, svc.Now().Add(ticketLife)); err != nil {
		return "", err
	}
	return "/web/login?" + url.Values{"ticket": {ticket}, "to": {localPath(to)}}.Encode(), nil
}

// digest is what the store keeps of a secret.
func digest(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return hex.EncodeToString(sum[:])
}

// caller returns who is signed in. The configuration at the time of the request, not of
// the sign-in, decides whether they are an operator, and whether they are still linked to
// the cluster user. An error says that it cannot be known at the moment.
func (s *Server) caller(r *http.Request) (who ops.Caller, signedIn bool, err error) {
	c, err := r.Cookie(cookieName)
	if err != nil {
		return who, false, nil //nolint:nilerr // the error is that there is none
	}
	var k signIn
	ok, err := s.cfg.Service.Docs().Get(r.Context(), docSession, digest(c.Value), s.cfg.Service.Now(), &k)
	k.Operator = slices.Contains(s.cfg.Operators, k.User)
	if ok && err == nil {
		ok, err = s.linked(r.Context(), k)
	}
	return k.Caller, ok && err == nil, err
}

// linked reports whether the account that somebody has signed in by is still the cluster
// user's.
func (s *Server) linked(ctx context.Context, k signIn) (bool, error) {
	user := s.cfg.SlackUser
	if p := s.providers[k.By]; k.By != BySlack && p != nil {
		user = p.User
	}
	if k.By == "" || user == nil {
		return k.By == "", nil
	}
	now, err := user(ctx, k.Account)
	return now == k.User, err
}

// A loginPage shows how to sign in.
type loginPage struct {
	Ticket, To string
	User       string      // whom the one-time link signs in
	Code       string      // to be proved on the cluster
	Ways       []loginLink // the providers
	Problem    string
	Fix        string
}

// login shows how to sign in. Only its button uses up a one-time link: programs that
// preview links press no buttons.
func (s *Server) login(w http.ResponseWriter, r *http.Request) {
	p := loginPage{Ticket: r.FormValue("ticket"), To: localPath(r.FormValue("to"))}
	l := langOf(r)
	if p.Ticket != "" {
		var k signIn
		ok, err := s.cfg.Service.Docs().Get(r.Context(), docTicket, digest(p.Ticket), s.cfg.Service.Now(), &k)
		if p.User = k.User; err != nil || !ok {
			p.Ticket, p.Problem = "", textTicketOver.In(l)
		}
	}
	if p.Ticket == "" {
		p.Ways = s.loginLinks(l)
	}
	if p.Ticket == "" && s.cfg.Proof != nil {
		var err error
		if p.Code, err = s.codeFor(w, r); err != nil {
			p.Problem = ops.AsError(err).In(l).Message
		}
	}
	s.draw(w, http.StatusOK, "login", pageData{Title: textSignIn.In(l), Lang: l, Now: s.cfg.Service.Now(), Body: p})
}

// codeFor returns the code that this browser has to prove. A browser keeps its code
// until the code expires.
func (s *Server) codeFor(w http.ResponseWriter, r *http.Request) (string, error) {
	if k, _, err := s.pendingCode(r); err == nil {
		return k.Code, nil
	}
	now := s.cfg.Service.Now()
	s.codesMu.Lock()
	s.codesGiven = slices.DeleteFunc(s.codesGiven, func(at time.Time) bool { return now.Sub(at) > time.Hour })
	full := len(s.codesGiven) >= codesPerHour
	if !full {
		s.codesGiven = append(s.codesGiven, now)
	}
	s.codesMu.Unlock()
	if full {
		return "", &ops.Error{Code: ops.NotAllowed, Message: textTooMany, Fix: textTooManyFix}
	}
	browser := rand.Text()
	k := waitingCode{Code: rand.Text(), At: now}
	if err := s.cfg.Service.Docs().Put(r.Context(), docCode, digest(browser), k, now.Add(linkproof.Life)); err != nil {
		return "", err
	}
	s.cookie(w, cookieName+"_code", browser, linkproof.Life)
	return k.Code, nil
}

// signIn accepts a one-time link or a proof, and starts a session.
func (s *Server) signIn(w http.ResponseWriter, r *http.Request) {
	k, err := s.authenticate(r)
	if err == nil {
		err = s.startSession(w, r, k)
	}
	if err != nil {
		s.refuse(w, r, err)
		return
	}
	http.Redirect(w, r, localPath(r.FormValue("to")), http.StatusSeeOther)
}

// refuse shows why somebody is not signed in, and how to sign in.
func (s *Server) refuse(w http.ResponseWriter, r *http.Request, err error) {
	l := langOf(r)
	said := ops.AsError(err).In(l)
	k, _, _ := s.pendingCode(r) // on an error there is no code to show
	s.draw(w, http.StatusForbidden, "login", pageData{Title: textSignIn.In(l), Lang: l, Now: s.cfg.Service.Now(), Body: loginPage{
		To: localPath(r.FormValue("to")), Problem: said.Message, Fix: said.Fix, Code: k.Code, Ways: s.loginLinks(l),
	}})
}

// startSession signs somebody in at the browser, and audits it.
func (s *Server) startSession(w http.ResponseWriter, r *http.Request, k signIn) error {
	session, now := rand.Text()+rand.Text(), s.cfg.Service.Now()
	if err := s.cfg.Service.Docs().Put(r.Context(), docSession, digest(session), k, now.Add(sessionLife)); err != nil {
		return err
	}
	s.cookie(w, cookieName, session, sessionLife)
	if s.cfg.Service.Audit != nil {
		s.cfg.Service.Audit(r.Context(), ops.AuditEntry{At: now, Who: k.Caller, Op: "sign-in"})
	}
	return nil
}

// pendingCode returns the code that the browser has to prove, and the code's key in the
// store.
func (s *Server) pendingCode(r *http.Request) (k waitingCode, key string, err error) {
	c, err := r.Cookie(cookieName + "_code")
	if err != nil {
		return k, "", &ops.Error{Code: ops.NotAllowed, Message: textNoCode, Fix: textNoCodeFix}
	}
	key = digest(c.Value)
	ok, err := s.cfg.Service.Docs().Get(r.Context(), docCode, key, s.cfg.Service.Now(), &k)
	if err == nil && !ok {
		err = &ops.Error{Code: ops.NotAllowed, Message: textNoCode, Fix: textNoCodeFix}
	}
	return k, key, err
}

// authenticate returns who proves their identity by this request.
func (s *Server) authenticate(r *http.Request) (who signIn, err error) {
	docs := s.cfg.Service.Docs()
	if ticket := r.PostFormValue("ticket"); ticket != "" {
		ok, err := docs.Take(r.Context(), docTicket, digest(ticket), s.cfg.Service.Now(), &who)
		if err == nil && !ok {
			err = &ops.Error{Code: ops.NotAllowed, Message: textTicketOver}
		}
		return who, err
	}
	if s.cfg.Proof == nil {
		return who, errNoProof
	}
	k, key, err := s.pendingCode(r)
	if err != nil {
		return who, err
	}
	owner, err := s.cfg.Proof(r.Context(), k.Code, k.At)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return who, &ops.Error{Code: ops.NotFound, Message: textNotYet, Fix: lang.Same("megatron-ops link " + k.Code)}
	case err != nil: // a failed proof uses up the code
		_ = docs.Delete(r.Context(), docCode, key)
		return who, err
	}
	if err := docs.Delete(r.Context(), docCode, key); err != nil {
		return who, err
	}
	who.Caller = ops.Caller{Surface: ops.Web, ID: owner.Name, User: owner.Name}
	return who, nil
}

// logout ends a session.
func (s *Server) logout(w http.ResponseWriter, r *http.Request) {
	if c, err := r.Cookie(cookieName); err == nil {
		_ = s.cfg.Service.Docs().Delete(r.Context(), docSession, digest(c.Value)) // it expires by itself too
	}
	s.cookie(w, cookieName, "", -time.Second)
	http.Redirect(w, r, "/web/login", http.StatusSeeOther)
}

// cookie sets a cookie that scripts and other sites cannot read.
func (s *Server) cookie(w http.ResponseWriter, name, value string, life time.Duration) {
	http.SetCookie(w, &http.Cookie{
		Name: name, Value: value, Path: "/web", MaxAge: int(life.Seconds()), HttpOnly: true,
		SameSite: http.SameSiteLaxMode, Secure: strings.HasPrefix(s.cfg.URL, "https://"),
	})
}

// localPath returns to if it is a path of this page, else the list of jobs: no link may
// redirect elsewhere.
func localPath(to string) string {
	if !strings.HasPrefix(to, "/web/") || strings.Contains(to, "\\") || strings.HasPrefix(to, "/web/login") {
		return "/web/jobs"
	}
	return to
}
