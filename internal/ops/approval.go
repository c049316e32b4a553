package ops

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/megatron-ops/megatron-ops/internal/store"
)

// An Approval is one call that waits for a person outside of the surface it came
// through, such as an agent's submission that an operator decides about in
// Slack. It lies in the store: whoever asks, whoever shows it and whoever
// decides may be three processes.
type Approval struct {
	// ID names this request; the same call asked for again later has another one.
	ID  string `json:"id"`
	Op  string `json:"op"`
	Who Caller `json:"who"`
	// Why says what makes the approval needed, such as a policy's limit; empty
	// where every write of an agent needs one.
	Why string `json:"why,omitempty"`
	// Question shows the person what would be done.
	Question string    `json:"question"`
	At       time.Time `json:"at"`
	// Decided is who decided, Yes what; zero while it waits.
	Decided string    `json:"decided,omitempty"`
	Yes     bool      `json:"yes,omitempty"`
	Until   time.Time `json:"until"`
}

// Waits reports whether nobody has decided yet.
func (a Approval) Waits() bool { return a.Decided == "" }

// The kinds of documents that approvals are kept as.
const (
	docApproval = "approval"         // a call's digest → the Approval
	docDecided  = "approval_decided" // an Approval's ID → who was first to decide
)

// approvalLife is how long a request waits for its decision, and how long an
// approval may be used.
const approvalLife = time.Hour

// Approved reports whether somebody has approved exactly this call: the caller,
// the operation and every argument but the idempotency key. The first call
// leaves the request for whoever shows it and reports false, and so do calls
// before the decision. An approval serves one call; a refusal is told once, as
// an error, after which the same call is a new request.
func (s *Service) Approved(ctx context.Context, who Caller, op string, in any, why, question string) (bool, error) {
	docs, err := s.docs()
	if err != nil {
		return false, err
	}
	now := s.Now()
	key := callDigest(who, op, in)
	var a Approval
	known, err := docs.Get(ctx, docApproval, key, now, &a)
	switch {
	case err != nil:
		return false, err
	case known && a.Waits():
		return false, nil
	case known:
		// Of calls at once, one finds the decision. Another may find the request of
		// a third that came after it: that goes on waiting.
		var found Approval
		taken, err := docs.Take(ctx, docApproval, key, now, &found)
		switch {
		case err != nil || !taken:
			return false, err
		case found.Waits():
			return false, docs.Put(ctx, docApproval, key, found, found.Until)
		case found.Yes:
			return true, nil
		}
		a = found
		return false, &Error{
			Code: NotAllowed, Message: fmt.Sprintf("%s has declined this %s; nothing was done", a.Decided, op),
			Fix: "change what they objected to, or ask them; the same call again asks anew",
		}
	}
	a = Approval{ID: key + "." + rand.Text(), Op: op, Who: who, Why: why, Question: question, At: now, Until: now.Add(approvalLife)}
	return false, docs.Put(ctx, docApproval, key, a, a.Until)
}

// Approvals lists the requests that wait, oldest first.
func (s *Service) Approvals(ctx context.Context) ([]Approval, error) {
	docs, err := s.docs()
	if err != nil {
		return nil, err
	}
	keys, err := docs.Keys(ctx, docApproval, s.Now())
	var list []Approval
	for _, k := range keys {
		var a Approval
		if ok, err := docs.Get(ctx, docApproval, k, s.Now(), &a); err == nil && ok && a.Waits() {
			list = append(list, a)
		}
	}
	return list, err
}

// Decide writes a person's decision down, once: the first one counts. by is who
// decides, name how they are called where the decision is told.
func (s *Service) Decide(ctx context.Context, id string, by Caller, name string, yes bool) (Approval, error) {
	docs, err := s.docs()
	if err != nil {
		return Approval{}, err
	}
	var a Approval
	key, _, _ := strings.Cut(id, ".")
	ok, err := docs.Get(ctx, docApproval, key, s.Now(), &a)
	if err != nil {
		return a, err
	}
	if !ok || a.ID != id {
		return a, notFound("", "the agent asks again by the same call", "this request is older than %d minutes, or was decided", int(approvalLife.Minutes()))
	}
	if err := mayDecide(a, by); err != nil {
		return a, err
	}
	first, err := docs.Claim(ctx, docDecided, id, name, s.Now().Add(2*approvalLife))
	if err != nil {
		return a, err
	}
	if first != name || !a.Waits() {
		return a, notFound("", "", "%s has decided already", first)
	}
	a.Decided, a.Yes, a.Until = name, yes, s.Now().Add(approvalLife)
	if err := docs.Put(ctx, docApproval, key, a, a.Until); err != nil {
		return a, err
	}
	if s.Audit != nil {
		word := "approve"
		if !yes {
			word = "decline"
		}
		s.Audit(ctx, AuditEntry{At: s.Now(), Who: by, Op: word, In: map[string]string{
			"op": a.Op, "requester": string(a.Who.Surface) + ":" + a.Who.ID, "agent": a.Who.Agent, "request": a.ID,
		}})
	}
	return a, nil
}

// mayDecide refuses the wrong person. What a limit holds back is decided by
// another operator: four eyes are two users of the cluster, however many names
// one of them has in Slack. An agent's call within the limits is its own person's
// to decide too.
func mayDecide(a Approval, by Caller) error {
	own := by.User != "" && by.User == a.Who.User
	switch {
	case by.ReadOnly, !by.Operator && (!own || a.Why != ""):
		return &Error{Code: NotAllowed, Message: "only operators may approve this"}
	case a.Why != "":
		return FourEyes(a.Who, by)
	}
	return nil
}

// FourEyes refuses a decision of the person who asked: the same user of the
// cluster, or somebody who is none and so may be the same.
func FourEyes(asked, by Caller) error {
	switch by.User {
	case "":
		return &Error{
			Code: NotAllowed, Message: "whoever approves must be linked to a cluster user, so that it is known that they are somebody else",
			Fix: "run `/megatron link` here and follow its one-time code on the cluster",
		}
	case asked.User:
		return &Error{Code: NotAllowed, Message: "somebody else than the requester must approve this"}
	}
	return nil
}

// callDigest names one call: who, what and every argument that decides what is
// done.
func callDigest(who Caller, op string, in any) string {
	args := map[string]any{}
	raw, err := json.Marshal(in)
	if err == nil {
		err = json.Unmarshal(raw, &args)
	}
	if err != nil {
		args["in"] = fmt.Sprintf("%#v", in)
	}
	delete(args, "idempotency_key")
	raw, err = json.Marshal([]any{who.Surface, who.ID, who.User, op, args})
	if err != nil {
		raw = fmt.Appendf(nil, "%#v", args)
	}
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:16])
}

// docs is the part of the database that keeps small documents.
func (s *Service) docs() (*store.Slack, error) {
	if s.Store == nil {
		return nil, &Error{Code: Failed, Message: "there is no store"}
	}
	st, err := s.Store()
	if err != nil {
		return nil, err
	}
	return st.Slack(), nil
}
