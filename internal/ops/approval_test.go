package ops_test

import (
	"context"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

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
		Audit: func(_ context.Context, e ops.AuditEntry) { list = append(list, e.Who.ID+" "+e.Op) },
	}, &noon, &list
}

var (
	agent    = ops.Caller{Surface: ops.MCPHTTP, ID: "ada-agent", User: "ada", Agent: "claude-code"}
	operator = ops.Caller{Surface: ops.Slack, ID: "T1/U5", User: "grace", Operator: true}
	person   = ops.Caller{Surface: ops.Slack, ID: "T1/U1", User: "ada"}
	stranger = ops.Caller{Surface: ops.Slack, ID: "T1/U9", User: "eve"}
)

var shown = []view.Section{{Text: "cancel 4711?"}}

func TestAnApprovalServesExactlyOneCall(t *testing.T) {
	s, now, audited := approvalService(t)
	in := &jobcontrol.CancelIn{Job: "4711"}
	ask := func() bool {
		t.Helper()
		by, err := s.Approved(t.Context(), agent, "cancel", in, "more than 512 GPU hours", shown, "")
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
	_, err = s.Decide(t.Context(), list[0].ID, ops.Caller{ID: "T1/U6", User: "olga", Operator: true}, "T1/U6", false, "")
	require.ErrorContains(t, err, "T1/U5 has decided already")
	require.Equal(t, []string{"T1/U5 approve"}, *audited)

	other, err := s.Approved(t.Context(), agent, "cancel", &jobcontrol.CancelIn{Job: "4712"}, "", nil, "")
	require.NoError(t, err)
	require.Empty(t, other, "another job is another call")
	var wg sync.WaitGroup
	went := make(chan bool, 8)
	for range 8 {
		wg.Go(func() {
			by, err := s.Approved(t.Context(), agent, "cancel", in, "", shown, "")
			went <- by == "T1/U5" && err == nil
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
				by, err := s.Approved(t.Context(), agent, "cancel", in, "", shown, "")
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
		_, err := s.Approved(t.Context(), agent, "cancel", &jobcontrol.CancelIn{Job: job}, "", []view.Section{{Text: string(job)}}, "")
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
		by, err := s.Approved(t.Context(), agent, "submit", in, "", nil, "")
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
