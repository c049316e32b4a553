package ops_test

import (
	"context"
	"encoding/json"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/ops/jobcontrol"
	"github.com/megatron-ops/megatron-ops/internal/ops/launch"
	"github.com/megatron-ops/megatron-ops/internal/store"
	"github.com/megatron-ops/megatron-ops/internal/view"
	"github.com/megatron-ops/megatron-ops/slurm"
)

// approvalService returns a service with a store and a clock, and without clusters.
func approvalService(t *testing.T) (s *ops.Service, now *time.Time, audited *[]string) {
	t.Helper()
	st, err := store.Open(context.Background(), filepath.Join(t.TempDir(), "state.db"))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, st.Close()) })
	noon := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	var list []string
	return &ops.Service{
		Store: func() (*store.Store, error) { return st, nil }, Now: func() time.Time { return noon },
		Audit: func(_ context.Context, e ops.AuditEntry) {
			in := e.In.(map[string]string)
			list = append(list, strings.Join([]string{e.Who.ID, e.Op, in["op"], "of", in["requester"], in["digest"], in["reason"]}, " "))
		},
	}, &noon, &list
}

var (
	agent    = ops.Caller{Surface: ops.MCPHTTP, ID: "ada-agent", User: "ada", Agent: "claude-code"}
	operator = ops.Caller{Surface: ops.Slack, ID: "T1/U5", User: "grace", Operator: true}
	person   = ops.Caller{Surface: ops.Slack, ID: "T1/U1", User: "ada"}
	stranger = ops.Caller{Surface: ops.Slack, ID: "T1/U9", User: "eve"}
)

var shown = []view.Section{{Text: "cancel 4711?"}}

// A server that an earlier version was killed in left a claim without a decision: anybody may decide. Of
// those who decide at once one does, and the trail says of the others that they did not.
func TestADecisionIsOneWrite(t *testing.T) {
	s, _, audited := approvalService(t)
	var refused atomic.Int32
	audit := s.Audit
	var one sync.Mutex
	s.Audit = func(ctx context.Context, e ops.AuditEntry) {
		one.Lock()
		defer one.Unlock()
		if e.Err != nil {
			refused.Add(1)
		}
		audit(ctx, e)
	}
	_, err := s.Approved(t.Context(), ops.Approval{Who: agent, Op: "cancel", Shown: shown}, &jobcontrol.CancelIn{Job: "4711"})
	require.NoError(t, err)
	list, err := s.Approvals(t.Context())
	require.NoError(t, err)
	_, err = s.Docs().Claim(t.Context(), "approval_decided", list[0].ID, "T1/U5", s.Now().Add(time.Hour))
	require.NoError(t, err)
	var decided atomic.Int32
	var all sync.WaitGroup
	for i := range 8 {
		name := "T1/W" + strconv.Itoa(i)
		all.Go(func() {
			a, err := s.Decide(t.Context(), list[0].ID, ops.Caller{ID: name, User: name, Operator: true}, name, i%2 == 0, "")
			if err == nil {
				decided.Add(1)
				assert.Equal(t, name, a.Decided)
			} else {
				assert.ErrorContains(t, err, "has decided already")
			}
		})
	}
	all.Wait()
	require.EqualValues(t, 1, decided.Load())
	require.Len(t, *audited, 1+2*int(refused.Load()))
}

func TestAnApprovalServesExactlyOneCall(t *testing.T) {
	s, now, audited := approvalService(t)
	in := &jobcontrol.CancelIn{Job: "4711"}
	ask := func() bool {
		t.Helper()
		by, err := s.Approved(t.Context(), ops.Approval{Who: agent, Op: "cancel", Why: "more than 512 GPU hours", Shown: shown}, in)
		require.NoError(t, err)
		return by != ""
	}
	require.False(t, ask())
	require.False(t, ask(), "asked twice, it is one request")
	list, err := s.Approvals(t.Context())
	require.NoError(t, err)
	require.Len(t, list, 1)
	require.Equal(t, shown, list[0].Shown)

	for who, c := range map[string]ops.Caller{"a stranger": stranger, "its own person, beyond a limit": person, "nobody": {}} {
		_, err = s.Decide(t.Context(), list[0].ID, c, "x", true, "")
		require.ErrorContains(t, err, "only operators", who)
	}
	// Four eyes are two users of the cluster: a second name in Slack is not another
	// person, and somebody without a cluster user may be anybody.
	twin := ops.Caller{Surface: ops.Slack, ID: "T1/U8", User: "ada", Operator: true}
	_, err = s.Decide(t.Context(), list[0].ID, twin, "T1/U8", true, "")
	require.ErrorContains(t, err, "somebody else than the requester")
	_, err = s.Decide(t.Context(), list[0].ID, ops.Caller{ID: "T1/U7", Operator: true}, "T1/U7", true, "")
	require.ErrorContains(t, err, "linked to a cluster user")
	a, err := s.Decide(t.Context(), list[0].ID, operator, "T1/U5", true, "")
	require.NoError(t, err)
	require.True(t, a.Yes)
	again, err := s.Decide(t.Context(), list[0].ID, operator, "T1/U5", true, "")
	require.NoError(t, err, "a server that takes over from one that was killed decides once more")
	require.Equal(t, a, again)
	_, err = s.Decide(t.Context(), list[0].ID, ops.Caller{ID: "T1/U6", User: "olga", Operator: true}, "T1/U6", false, "")
	require.ErrorContains(t, err, "T1/U5 has decided already")
	_, err = s.Decide(t.Context(), list[0].ID, operator, "T1/U5", false, "")
	require.ErrorContains(t, err, "T1/U5 has decided already", "not even who decided first takes it back")
	require.Equal(t, []string{"T1/U5 approve cancel of " + string(ops.MCPHTTP) + ":ada-agent  "}, *audited)

	other, err := s.Approved(t.Context(), ops.Approval{Who: agent, Op: "cancel"}, &jobcontrol.CancelIn{Job: "4712"})
	require.NoError(t, err)
	require.Empty(t, other, "another job is another call")
	var wg sync.WaitGroup
	went := make(chan bool, 8)
	for range 8 {
		wg.Go(func() {
			by, err := s.Approved(t.Context(), ops.Approval{Who: agent, Op: "cancel", Shown: shown}, in)
			assert.NoError(t, err, "the others wait again")
			went <- by == "T1/U5"
		})
	}
	wg.Wait()
	close(went)
	n := 0
	for ok := range went {
		if ok {
			n++
		}
	}
	require.Equal(t, 1, n, "of calls at once, one is approved")
	*now = now.Add(23 * time.Hour)
	list, err = s.Approvals(t.Context())
	require.NoError(t, err)
	require.Len(t, list, 2, "requests last a day")
	*now = now.Add(2 * time.Hour)
	list, err = s.Approvals(t.Context())
	require.NoError(t, err)
	require.Empty(t, list)
}

// An approval holds for a day from the decision, for the agent that asked and for the script that was read.
func TestWhatAnApprovalIsGoodFor(t *testing.T) {
	s, now, audited := approvalService(t)
	in := &jobcontrol.CancelIn{Job: "4711"}
	ask := func(who ops.Caller, digest string) string {
		t.Helper()
		by, err := s.Approved(t.Context(), ops.Approval{Who: who, Op: "submit", Digest: digest}, in)
		require.NoError(t, err)
		return by
	}
	require.Empty(t, ask(agent, "ba78"))
	list, err := s.Approvals(t.Context())
	require.NoError(t, err)
	require.Equal(t, "ba78", list[0].Digest)
	*now = now.Add(23 * time.Hour)
	_, err = s.Decide(t.Context(), list[0].ID, operator, "T1/U5", true, "fine")
	require.NoError(t, err)
	require.Equal(t, []string{"T1/U5 approve submit of " + string(ops.MCPHTTP) + ":ada-agent ba78 fine"}, *audited)
	*now = now.Add(23 * time.Hour)
	second := agent
	second.ID = "ada-agent-2"
	require.Empty(t, ask(second, "ba78"), "it is not another agent's")
	require.Empty(t, ask(agent, "ba79"), "nor another script's")
	require.Equal(t, "T1/U5", ask(agent, "ba78"))
}

// A job that grows while its change waits is not changed by what was approved for a smaller one.
func TestAnApprovalIsOfTheSizeThatWasShown(t *testing.T) {
	s, _, _ := approvalService(t)
	in := &jobcontrol.RequeueIn{JobIn: jobcontrol.JobIn{Job: "4711"}}
	ask := func(gpus int) string {
		t.Helper()
		by, err := s.Approved(t.Context(), ops.Approval{Who: agent, Op: "requeue", Why: "a limit", Shown: shown, Most: &ops.Size{GPUs: gpus, Hours: 1, GPUHours: float64(gpus)}}, in)
		require.NoError(t, err)
		return by
	}
	decide := func() {
		t.Helper()
		list, err := s.Approvals(t.Context())
		require.NoError(t, err)
		require.Len(t, list, 1)
		_, err = s.Decide(t.Context(), list[0].ID, operator, "T1/U5", true, "")
		require.NoError(t, err)
	}
	require.Empty(t, ask(8))
	decide()
	require.Empty(t, ask(64), "the larger job is asked about anew")
	require.Empty(t, ask(32), "it is asked about with the larger one")
	decide()
	require.Equal(t, "T1/U5", ask(32), "a smaller one was approved with the larger")
	require.Equal(t, "T1/U5", ask(4), "the first approval was not used up by a call that it did not cover")
	require.Empty(t, ask(4))
	decide()
	unknown := ops.Approval{Who: agent, Op: "requeue", Why: "a limit", Shown: shown}
	by, err := s.Approved(t.Context(), unknown, in)
	require.NoError(t, err)
	require.Empty(t, by, "what a size is unknown of may be larger")
	decide()
	require.Empty(t, ask(8), "nor was any size approved with an unknown one")
}

// A decision is written down before it counts, so that no crash loses its entry. A request that was
// consumed twice leaves the next one of the same call.
func TestADecisionIsWrittenDownFirst(t *testing.T) {
	s, _, _ := approvalService(t)
	ask := func() ops.Approval {
		t.Helper()
		r, err := s.Ask(t.Context(), ops.Approval{Who: person, Op: "cancel", Why: "a limit", Shown: shown, Own: json.RawMessage(`{}`)}, &jobcontrol.CancelIn{Job: "4711"})
		require.NoError(t, err)
		return r
	}
	r, written := ask(), 0
	s.Audit = func(ctx context.Context, _ ops.AuditEntry) {
		list, err := s.Approvals(ctx)
		assert.NoError(t, err)
		written += len(list)
	}
	r, err := s.Decide(t.Context(), r.ID, operator, "T1/U5", true, "")
	require.NoError(t, err)
	require.Equal(t, 1, written)
	require.NoError(t, s.Consume(t.Context(), r))
	next := ask()
	require.NoError(t, s.Consume(t.Context(), r))
	require.Equal(t, next.ID, ask().ID)
}

// A request that still waits is withdrawn when the same call asks for more: only one of them is
// to be decided.
func TestALargerRequestReplacesTheSmaller(t *testing.T) {
	s, _, _ := approvalService(t)
	in := &jobcontrol.RequeueIn{JobIn: jobcontrol.JobIn{Job: "4711"}}
	ask := func(who ops.Caller, digest string, gpus int) {
		t.Helper()
		by, err := s.Approved(t.Context(), ops.Approval{Who: who, Op: "requeue", Why: "a limit", Shown: shown, Digest: digest, Most: &ops.Size{GPUs: gpus, Hours: 1, GPUHours: float64(gpus)}}, in)
		require.NoError(t, err)
		require.Empty(t, by)
	}
	other := agent
	other.ID = "ada-agent-2"
	ask(other, "+1", 8)
	for _, larger := range []struct {
		digest string
		gpus   int
	}{{"+1", 8}, {"+1", 64}, {"+1,2", 64}, {"+1", 16}} {
		ask(agent, larger.digest, larger.gpus)
	}
	list, err := s.Approvals(t.Context())
	require.NoError(t, err)
	require.Len(t, list, 2, "another's request stays")
	require.Equal(t, "+1,2", list[1].Digest)
	require.Equal(t, 64, list[1].Most.GPUs)
	ask(agent, "+3", 8)
	list, err = s.Approvals(t.Context())
	require.NoError(t, err)
	require.Len(t, list, 3, "a request for something else stays")
}

// A button that was drawn for a request decides nothing about the next one of the same call.
func TestAnOldRequestDoesNotDecideTheNext(t *testing.T) {
	s, _, _ := approvalService(t)
	in := &jobcontrol.CancelIn{Job: "4711"}
	_, err := s.Approved(t.Context(), ops.Approval{Who: agent, Op: "cancel", Shown: shown}, in)
	require.NoError(t, err)
	first, err := s.Approvals(t.Context())
	require.NoError(t, err)
	_, err = s.Decide(t.Context(), first[0].ID, operator, "T1/U5", false, "no")
	require.NoError(t, err)
	_, err = s.Approved(t.Context(), ops.Approval{Who: agent, Op: "cancel", Shown: shown}, in)
	require.ErrorContains(t, err, "has declined")
	_, err = s.Approved(t.Context(), ops.Approval{Who: agent, Op: "cancel", Shown: shown}, in)
	require.NoError(t, err)
	_, err = s.Decide(t.Context(), first[0].ID, ops.Caller{ID: "T1/U6", User: "olga", Operator: true}, "T1/U6", true, "")
	require.ErrorContains(t, err, "this request is older than")
	require.Contains(t, ops.AsError(err).Fix.EN, "a person or an agent", "it may be a person's request")
	docs := s.Docs()
	require.NoError(t, docs.Put(t.Context(), "approval", "unreadable", "a text", s.Now().Add(time.Hour)))
	list, err := s.Approvals(t.Context())
	require.NoError(t, err)
	require.Len(t, list, 1, "it still waits, and is listed beside what cannot be read")
}

// Of people who decide at the same time, one does.
func TestTwoDecisionsAtOnce(t *testing.T) {
	s, _, _ := approvalService(t)
	_, err := s.Approved(t.Context(), ops.Approval{Who: agent, Op: "cancel", Shown: shown}, &jobcontrol.CancelIn{Job: "4711"})
	require.NoError(t, err)
	list, err := s.Approvals(t.Context())
	require.NoError(t, err)
	s.Audit = nil
	var wg sync.WaitGroup
	var decided atomic.Int32
	for _, name := range []string{"T1/U5", "T1/U6", "T1/U7", "T1/U8", "T1/U9", "T1/U10", "T1/U11", "T1/U12"} {
		wg.Go(func() {
			if _, err := s.Decide(t.Context(), list[0].ID, operator, name, name < "T1/U7", ""); err == nil {
				decided.Add(1)
			}
		})
	}
	wg.Wait()
	require.EqualValues(t, 1, decided.Load())
}

// Equal calls at the same time are one request: a second one would take the buttons off the first.
func TestEqualCallsAtTheSameTimeAreOneRequest(t *testing.T) {
	s, _, _ := approvalService(t)
	const rounds = 20
	var seen sync.Map
	for round := range rounds {
		in := &jobcontrol.CancelIn{Job: slurm.JobID(strconv.Itoa(100 + round))}
		var all sync.WaitGroup
		start := make(chan bool)
		for range 16 {
			all.Go(func() {
				<-start
				by, err := s.Approved(t.Context(), ops.Approval{Who: agent, Op: "cancel", Shown: shown}, in)
				if err != nil || by != "" {
					t.Error(by, err)
				}
				list, err := s.Approvals(t.Context())
				if err != nil {
					t.Error(err)
				}
				for _, a := range list {
					seen.Store(a.ID, true)
				}
			})
		}
		close(start)
		all.Wait()
	}
	n := 0
	seen.Range(func(any, any) bool { n++; return true })
	require.Equal(t, rounds, n)
}

func TestRequestsAreListedOldestFirst(t *testing.T) {
	s, now, _ := approvalService(t)
	jobs := []slurm.JobID{"1", "2", "3", "4", "5", "6"}
	for _, job := range jobs {
		_, err := s.Approved(t.Context(), ops.Approval{Who: agent, Op: "cancel", Shown: []view.Section{{Text: string(job)}}}, &jobcontrol.CancelIn{Job: job})
		require.NoError(t, err)
		*now = now.Add(time.Minute)
	}
	list, err := s.Approvals(t.Context())
	require.NoError(t, err)
	var listed []slurm.JobID
	for _, a := range list {
		listed = append(listed, slurm.JobID(a.Shown[0].Text))
	}
	require.Equal(t, jobs, listed)
}

func TestARefusalIsToldOnceAndAnApprovalEnds(t *testing.T) {
	s, now, _ := approvalService(t)
	in := &launch.SubmitIn{IdempotencyKey: "one"}
	ask := func(key string) (bool, error) {
		in.IdempotencyKey = key
		by, err := s.Approved(t.Context(), ops.Approval{Who: agent, Op: "submit"}, in)
		return by != "", err
	}
	decide := func(by ops.Caller, yes bool) {
		list, err := s.Approvals(t.Context())
		require.NoError(t, err)
		require.Len(t, list, 1)
		_, err = s.Decide(t.Context(), list[0].ID, by, by.ID, yes, "too long")
		require.NoError(t, err)
	}
	_, err := ask("one")
	require.NoError(t, err)
	decide(person, false) // within the limits, the requester may decide on their own agent's call
	_, err = ask("two")
	require.ErrorContains(t, err, "T1/U1 has declined this submit: too long")
	ok, err := ask("three")
	require.NoError(t, err)
	require.False(t, ok)
	decide(person, true)
	*now = now.Add(25 * time.Hour)
	ok, err = ask("four")
	require.NoError(t, err)
	require.False(t, ok, "an approval that nobody used is no standing right")
}

func TestANoticeWaitsUntilItIsShown(t *testing.T) {
	s, now, _ := approvalService(t)
	n := ops.Notice{Key: "killswitch/4711", Cluster: "slurm", Job: "4711", Title: lang.Text{EN: "thrown", ZH: "已打开"}}
	require.NoError(t, s.Notify(t.Context(), n))
	require.NoError(t, s.Notify(t.Context(), n))
	list, err := s.Notices(t.Context())
	require.NoError(t, err)
	require.Len(t, list, 1)
	require.Equal(t, "已打开", list[0].Title.ZH)
	require.NoError(t, s.ForgetNotice(t.Context(), list[0]))
	list, err = s.Notices(t.Context())
	require.NoError(t, err)
	require.Empty(t, list)
	require.NoError(t, s.Notify(t.Context(), n))
	*now = now.Add(25 * time.Hour)
	list, err = s.Notices(t.Context())
	require.NoError(t, err)
	require.Empty(t, list, "old news is not told")
}

// One person's requests, such as those of an agent in a loop, do not bury the operators and
// the requests of others.
func TestOnePersonsRequestsAreBounded(t *testing.T) {
	s, now, _ := approvalService(t)
	s.Now = func() time.Time { return *now }
	ask := func(who ops.Caller, n int) error {
		_, err := s.Approved(t.Context(), ops.Approval{Who: who, Op: "submit", Why: "more than 512 GPU hours", Shown: shown}, &launch.SubmitIn{SpecIn: launch.SpecIn{GPUs: n}})
		return err
	}
	for n := range ops.MostWaiting {
		require.NoError(t, ask(agent, n))
	}
	other := agent
	other.ID = "ada-second"
	for _, who := range []ops.Caller{agent, other} {
		err := ask(who, 1000)
		require.ErrorContains(t, err, "32 of your requests wait", "two tokens are one person")
		require.Equal(t, ops.NotAllowed, ops.AsError(err).Code)
	}
	require.NoError(t, ask(agent, 5), "what waits already is found again")
	require.NoError(t, ask(ops.Caller{Surface: ops.MCPHTTP, ID: "eve", User: "eve"}, 1), "others ask")

	list, err := s.Approvals(t.Context())
	require.NoError(t, err)
	require.Len(t, list, ops.MostWaiting+1)
	_, err = s.Decide(t.Context(), list[0].ID, operator, "T1/U5", false, "")
	require.NoError(t, err)
	require.NoError(t, ask(agent, 1000), "after a decision there is room")
	*now = now.Add(25 * time.Hour)
	require.NoError(t, ask(agent, 1001), "an expired request waits no more")
}
