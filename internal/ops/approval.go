package ops

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/store"
	"github.com/megatron-ops/megatron-ops/internal/view"
)

// An Approval is one call that somebody else must decide on, such as an agent's submission, or a
// large one that a person asks for in Slack. The store keeps it, because the requester, the viewer
// and the approver may be three processes. It is asked, decided and consumed, or it expires.
type Approval struct {
	// ID names this request. A later request for the same call gets a new ID.
	ID  string `json:"id"`
	Op  string `json:"op"`
	Who Caller `json:"who"`
	// Why says why the call needs an approval, such as a policy's limit. It is empty
	// where every write of an agent needs one.
	Why string `json:"why,omitempty"`
	// Shown describes what the call would do. Digest is the SHA-256 of the script that
	// the call would submit, empty where it submits none; "+" and an Error.Shown follow where
	// the request has one.
	Shown  []view.Section `json:"shown"`
	Digest string         `json:"digest,omitempty"`
	// Most is the most that the call could use as it was shown; nil where Digest binds it.
	Most *Size     `json:"most,omitempty"`
	At   time.Time `json:"at"`
	// Decided names who decided, Yes is the decision and Reason its reason. All three
	// are zero while the request waits.
	Decided string    `json:"decided,omitempty"`
	Yes     bool      `json:"yes,omitempty"`
	Reason  string    `json:"reason,omitempty"`
	Until   time.Time `json:"until"`
	// Own is what the surface that asked needs to carry the call out itself, once it is approved. It
	// is empty where the caller repeats the call.
	Own json.RawMessage `json:"own,omitempty"`
}

// A Size is the most that a call can use of a cluster. The largest number stands for no
// limit.
type Size struct {
	GPUs     int     `json:"gpus"`
	Hours    float64 `json:"hours"` // of one job
	GPUHours float64 `json:"gpu_hours"`
}

// Within reports whether s is no larger than shown. A nil size is not known: it is within nothing
// that is, and bounds nothing that is.
func (s *Size) Within(shown *Size) bool {
	const rounding = 1 + 1e-9 // the parts of a job may be added in another order
	if s == nil || shown == nil {
		return s == shown
	}
	return s.GPUs <= shown.GPUs && s.Hours <= shown.Hours*rounding && s.GPUHours <= shown.GPUHours*rounding
}

// Waits reports whether nobody has decided yet.
func (a Approval) Waits() bool { return a.Decided == "" }

// The kinds of documents that approvals are kept as.
const (
	docApproval = "approval"         // a call's digest → its Approval
	docDecided  = "approval_decided" // an Approval's ID → the name of who decided
)

// approvalLife is how long a request waits for its decision, and how long an approval
// stays valid, unless the configuration says otherwise.
const approvalLife = 24 * time.Hour

// MostWaiting is how many requests of one person may wait for a decision: an agent in a
// loop must not bury the operators' channel, and the requests of others in it.
const MostWaiting = 32

// Ask returns the request that decides about a call as a shows it: the stored one that covers it,
// or else a, which is stored and waits. Of equal calls at the same time the first one stores its
// request. The requests of the same call that wait and ask for no more are withdrawn.
func (s *Service) Ask(ctx context.Context, a Approval, in any) (Approval, error) {
	docs := s.Docs()
	a.At = s.Now()
	a.ID = a.keyOf(a, in) + "." + rand.Text()
	if a.Until.IsZero() {
		a.Until = a.At.Add(s.ApprovalLifetime())
	}
	known, err := covering(ctx, docs, a, in)
	if err != nil || known.ID != "" {
		return known, err
	}
	waiting, err := s.Approvals(ctx)
	if err != nil {
		return a, err
	}
	var smaller []Approval
	waiting = slices.DeleteFunc(waiting, func(w Approval) bool {
		part := w.isOf(a, in) && a.atLeast(w)
		if part {
			smaller = append(smaller, w)
		}
		return part || w.Who.User != a.Who.User
	})
	if len(waiting) >= MostWaiting {
		return a, &Error{
			Code: NotAllowed, Message: lang.Text{EN: "%d of your requests wait for an operator already; nobody was asked", ZH: "您已有 %d 个申请在等待管理员审批，未再发送申请"}.With(len(waiting)),
			Fix: lang.Text{EN: "wait until some are decided, or ask for several jobs at once, as an array or a sweep", ZH: "请等待其中一些得到审批，或用数组、sweep 一次申请多个作业"},
		}
	}
	if added, err := docs.Add(ctx, docApproval, a.key(), a, a.At, a.Until); err != nil || !added {
		var first Approval // a's own fields, and what they share with the caller, must not be decoded into
		ok, e := docs.Get(ctx, docApproval, a.key(), a.At, &first)
		if err = errors.Join(err, e); err != nil || !ok {
			return a, err
		}
		return first, nil
	}
	for _, w := range smaller {
		_, e := s.remove(ctx, w)
		err = errors.Join(err, e)
	}
	return a, err
}

// kept returns what the store keeps under a's key, and how it is written there; nil where it keeps nothing.
func (s *Service) kept(ctx context.Context, a Approval) (now Approval, raw json.RawMessage, err error) {
	ok, err := s.Docs().Get(ctx, docApproval, a.key(), s.Now(), &raw)
	if err == nil && ok {
		err = json.Unmarshal(raw, &now)
	}
	return now, raw, err
}

// remove ends a request that is still as a is: it may have been decided meanwhile, or another one may
// stand under its key. Of several callers, one removes it.
func (s *Service) remove(ctx context.Context, a Approval) (done bool, err error) {
	now, raw, err := s.kept(ctx, a)
	if err != nil || now.ID != a.ID || now.Waits() != a.Waits() {
		return false, err
	}
	return s.Docs().Replace(ctx, docApproval, a.key(), raw, nil, time.Time{})
}

// ApprovalLifetime returns how long a request waits for its decision.
func (s *Service) ApprovalLifetime() time.Duration {
	if s.ApprovalLife > 0 {
		return s.ApprovalLife
	}
	return approvalLife
}

// RequireAgreed refuses a script other than the one that was agreed to.
func (c *Call) RequireAgreed(script string) error {
	sum := sha256.Sum256([]byte(script))
	if now := hex.EncodeToString(sum[:]); c.Agreed != "" && c.Agreed != now {
		return &Error{
			Code: NotAllowed, Message: lang.Text{EN: "the script is not the one that was agreed to: its SHA-256 was %s and is %s now; nothing was submitted", ZH: "脚本与批准时的不同：当时的 SHA-256 是 %s，现在是 %s；没有提交"}.With(c.Agreed, now),
			Fix: lang.Text{EN: "ask again: the new script has to be agreed to", ZH: "请重新申请：新的脚本需要重新批准"},
		}
	}
	return nil
}

// Approved returns who has approved exactly this call, or "" where nobody has. The same
// call means the same caller, operation, arguments (the idempotency key aside), script
// digest and things shown, of which some may be gone by now. The first call stores a
// request, which then waits for its decision; repeated calls before the decision find
// the same request. An approval serves one call, and none that can use more than was
// shown by now: such a call is a new request, and leaves the approval for a call that it covers.
// A refusal is returned as an error once; after that, the same call is a new request,
// too.
func (s *Service) Approved(ctx context.Context, a Approval, in any) (by string, err error) {
	known, err := s.Ask(ctx, a, in)
	if err != nil || known.Waits() {
		return "", err
	}
	// Two equal calls may find the decision at the same time; only one of them takes it. The other one
	// is a new request.
	switch taken, err := s.remove(ctx, known); {
	case err != nil:
		return "", err
	case !taken:
		_, err = s.Ask(ctx, a, in)
		return "", err
	case known.Yes:
		return known.Decided, nil
	}
	return "", &Error{
		Code: NotAllowed, Message: lang.Text{EN: "%s has declined this %s: %s; nothing was done", ZH: "%s 已拒绝这次 %s：%s；没有执行任何操作"}.With(known.Decided, a.Op, cmp.Or(known.Reason, "no reason given")),
		Fix: lang.Text{EN: "change what they objected to, or ask them; the same call again asks anew", ZH: "请修改对方反对的内容，或与其沟通；再次发出同样的调用会重新请求批准"},
	}
}

// covering returns the stored request that decides about a: of the same call, when it showed as
// much or more, such as jobs that have ended since. Of several, a decision about this very call
// counts most, then an approval, then the request that waits for this very call; of two alike, the
// smaller.
func covering(ctx context.Context, docs store.Documents, a Approval, in any) (found Approval, err error) {
	all, err := ListDocs[Approval](ctx, docs, docApproval, a.At)
	best := 0
	for _, b := range all {
		if !b.isOf(a, in) || !b.atLeast(a) {
			continue
		}
		rank, own := 1, b.key() == a.key()
		switch {
		case own && !b.Waits():
			rank = 5
		case b.Yes:
			rank = 4
		case own:
			rank = 3
		case !b.Waits():
			rank = 2
		}
		if rank > best || rank == best && found.atLeast(b) {
			found, best = b, rank
		}
	}
	return found, err
}

// key is what the store keeps a under: the digest of its call and of what it showed.
func (a Approval) key() string {
	key, _, _ := strings.Cut(a.ID, ".")
	return key
}

// keyOf returns the key of a request for b's call that showed what a shows.
func (a Approval) keyOf(b Approval, in any) string {
	bound := []any{a.Digest}
	if a.Most != nil {
		bound = append(bound, a.Most)
	}
	return CallDigest(b.Who, b.Op, in, bound...)
}

// isOf reports whether a is a request for b's call, whatever both showed.
func (a Approval) isOf(b Approval, in any) bool { return a.key() == a.keyOf(b, in) }

// atLeast reports whether a showed each thing that b shows, and no smaller size.
func (a Approval) atLeast(b Approval) bool {
	return showsAll(a.Digest, b.Digest) && b.Most.Within(a.Most)
}

// showsAll reports whether shown names the same script as now, and each thing that now names.
func showsAll(shown, now string) bool {
	script, things, _ := strings.Cut(shown, "+")
	scriptNow, thingsNow, _ := strings.Cut(now, "+")
	all := strings.Split(things, ",")
	return script == scriptNow && !slices.ContainsFunc(strings.Split(thingsNow, ","), func(thing string) bool { return !slices.Contains(all, thing) })
}

// Approvals lists the requests that wait for a decision, oldest first.
func (s *Service) Approvals(ctx context.Context) ([]Approval, error) {
	list, err := ListDocs[Approval](ctx, s.Docs(), docApproval, s.Now())
	list = slices.DeleteFunc(list, func(a Approval) bool { return !a.Waits() })
	slices.SortStableFunc(list, func(a, b Approval) int { return a.At.Compare(b.At) })
	return list, err
}

// Decidable returns the request of an id, for somebody who may decide on it.
func (s *Service) Decidable(ctx context.Context, id string, by Caller) (a Approval, err error) {
	a, _, err = s.decidable(ctx, id, by)
	return a, err
}

// decidable is Decidable that also returns how the store keeps the request.
func (s *Service) decidable(ctx context.Context, id string, by Caller) (a Approval, raw json.RawMessage, err error) {
	if a, raw, err = s.kept(ctx, Approval{ID: id}); err != nil {
		return a, raw, err
	}
	if a.ID != id || raw == nil {
		return a, raw, NotFoundError("",
			lang.Text{EN: "this request is older than %s, or was decided", ZH: "该申请已超过 %s，或已有结果"}.With(lang.Span(s.ApprovalLifetime())),
			lang.Text{EN: "the same call asks again, from a person or an agent", ZH: "申请人或其智能体再次发出同样的调用即可重新申请"})
	}
	return a, raw, mayDecide(a, by)
}

// Decide stores a person's decision, in one write. Only the first decision on a request counts; the same
// person's same decision again is answered alike, since a server that is killed after storing
// it has told nobody yet. by is who decides, name is how the decision's readers know them, and
// reason is why.
func (s *Service) Decide(ctx context.Context, id string, by Caller, name string, yes bool, reason string) (Approval, error) {
	word := "approve"
	if !yes {
		word = "decline"
	}
	audit := func(a Approval, err error) {
		if s.Audit != nil {
			s.Audit(ctx, AuditEntry{At: s.Now(), Who: by, Op: word, Err: err, In: map[string]string{
				"op": a.Op, "requester": string(a.Who.Surface) + ":" + a.Who.ID, "agent": a.Who.Agent, "request": a.ID,
				"digest": a.Digest, "reason": reason,
			}})
		}
	}
	for tried := false; ; tried = true {
		a, raw, err := s.decidable(ctx, id, by)
		if err == nil && !a.Waits() && (a.Decided != name || a.Yes != yes) {
			err = NotFoundError("", lang.Text{EN: "%s has decided already", ZH: "%s 已作出决定"}.With(a.Decided), lang.Text{})
		}
		if err != nil {
			if tried {
				audit(a, err) // it is written down as made
			}
			return a, err
		}
		if a.Waits() {
			// The decision is written down first: where it could not be stored, it is written down again.
			if !tried {
				audit(a, nil)
			}
			a.Decided, a.Yes, a.Reason, a.Until = name, yes, reason, s.Now().Add(s.ApprovalLifetime())
			done, err := s.Docs().Replace(ctx, docApproval, a.key(), raw, a, a.Until)
			if err != nil {
				return a, err
			}
			if !done {
				continue
			}
		}
		return a, s.Docs().Put(ctx, docDecided, id, name, s.Now().Add(2*s.ApprovalLifetime()))
	}
}

// Outcome returns a request as it is stored now. It is not stored where it has expired, was
// withdrawn, or was decided and then consumed by its call: then only who decided may be known.
func (s *Service) Outcome(ctx context.Context, a Approval) (now Approval, stored bool, err error) {
	docs := s.Docs()
	if stored, err = docs.Get(ctx, docApproval, a.key(), s.Now(), &now); err != nil || stored && now.ID == a.ID {
		return now, stored, err
	}
	_, err = docs.Get(ctx, docDecided, a.ID, s.Now(), &a.Decided)
	return a, false, err
}

// Consume ends a decided request that its surface carries out. It may be repeated: a later request
// for the same call stays.
func (s *Service) Consume(ctx context.Context, a Approval) error {
	_, err := s.remove(ctx, a)
	return err
}

// mayDecide refuses a person who may not decide. A request that a limit holds back
// needs another operator: two people are two users of the cluster, however many names
// one of them has in Slack. A person may also decide on the call of their own agent, as
// long as no limit holds it back.
func mayDecide(a Approval, by Caller) error {
	own := by.User != "" && by.User == a.Who.User
	switch {
	case len(a.Own) > 0 && by.ID == a.Who.ID: // a person, who may be an operator, or another cluster user by now
		return somebodyElse()
	case by.ReadOnly, !by.Operator && (!own || a.Why != ""):
		return &Error{Code: NotAllowed, Message: lang.Text{EN: "only operators may approve this", ZH: "只有管理员可以批准"}}
	case a.Why != "":
		return fourEyes(a.Who, by)
	}
	return nil
}

// fourEyes refuses a decision by the person who asked: by the same cluster user, or by
// somebody without a cluster user, who could be the same person.
func fourEyes(asked, by Caller) error {
	switch by.User {
	case "":
		return &Error{
			Code: NotAllowed, Message: lang.Text{EN: "whoever approves must be linked to a cluster user, so that it is known that they are somebody else", ZH: "审批人必须已绑定集群用户，以确认不是申请人本人"},
			Fix: lang.Text{EN: "run `/megatron link` here and follow its one-time code on the cluster", ZH: "请在这里执行 `/megatron link`，并按提示在集群上使用一次性代码"},
		}
	case asked.User:
		return somebodyElse()
	}
	return nil
}

func somebodyElse() error {
	return &Error{Code: NotAllowed, Message: lang.Text{EN: "somebody else than the requester must approve this", ZH: "必须由申请人以外的人审批"}}
}

// CallDigest identifies one call by its caller, its operation, every argument except
// the idempotency key, and what else binds it, such as the digest of its script.
func CallDigest(who Caller, op string, in any, bound ...any) string {
	args := map[string]any{}
	raw, err := json.Marshal(in)
	if err == nil {
		err = json.Unmarshal(raw, &args)
	}
	if err != nil {
		args["in"] = fmt.Sprintf("%#v", in)
	}
	delete(args, "idempotency_key")
	call := append([]any{who.Surface, who.ID, who.User, op, args}, bound...)
	if raw, err = json.Marshal(call); err != nil {
		raw = fmt.Appendf(nil, "%#v", call)
	}
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:16])
}
