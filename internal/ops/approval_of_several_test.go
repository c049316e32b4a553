package ops_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/ops/jobcontrol"
)

// An approval of several things is good for those of them that are left, and for no others.
func TestAnApprovalOfSeveralThingsIsGoodForThoseThatAreLeft(t *testing.T) {
	in := &jobcontrol.CancelIn{Mine: true}
	for asked, c := range map[string]struct {
		approved string
		good     bool
	}{
		"+1,2,3":  {"+1,2,3", true},
		"+1,3":    {"+1,2,3", true},
		"+1,4":    {"+1,2,3", false},
		"+":       {"+1,2,3", false},
		"+12":     {"+1,2,3", false},
		"b2+1":    {"a1+1,2", false},
		"a1+2":    {"a1+1,2", true},
		"a1+1,2":  {"a1", false},
		"a1":      {"a1+1,2", false},
		"+1,2,3,": {"+1,2,3", false},
	} {
		s, _, _ := approvalService(t)
		ask := func(who ops.Caller, digest string) string {
			by, err := s.Approved(t.Context(), ops.Approval{Who: who, Op: "cancel", Shown: shown, Digest: digest}, in)
			require.NoError(t, err)
			return by
		}
		require.Empty(t, ask(agent, c.approved))
		require.Empty(t, ask(agent, asked))
		list, err := s.Approvals(t.Context())
		require.NoError(t, err)
		require.Equal(t, c.good, len(list) == 1 && list[0].Digest == c.approved, "%s of %s is asked about again", asked, c.approved)
		for _, a := range list {
			if a.Digest == c.approved {
				_, err = s.Decide(t.Context(), a.ID, operator, "T1/U5", true, "")
				require.NoError(t, err)
			}
		}
		require.Empty(t, ask(ops.Caller{Surface: ops.MCPHTTP, ID: "bob-agent", User: "bob"}, asked), "another's")
		require.Equal(t, c.good, ask(agent, asked) != "", "%s of %s", asked, c.approved)
		require.Empty(t, ask(agent, asked), "it is good once")
	}
}

// Of two requests that both showed what is left, the one that was decided counts.
func TestADecidedRequestCountsBeforeOneThatWaits(t *testing.T) {
	for _, decided := range []string{"+1,2", "+2,3"} {
		s, _, _ := approvalService(t)
		ask := func(digest string) string {
			by, err := s.Approved(t.Context(), ops.Approval{Who: agent, Op: "cancel", Shown: shown, Digest: digest}, &jobcontrol.CancelIn{Mine: true})
			require.NoError(t, err)
			return by
		}
		ask("+1,2")
		ask("+2,3")
		list, err := s.Approvals(t.Context())
		require.NoError(t, err)
		require.Len(t, list, 2)
		for _, a := range list {
			if a.Digest == decided {
				_, err = s.Decide(t.Context(), a.ID, operator, "T1/U5", true, "")
				require.NoError(t, err)
			}
		}
		require.Equal(t, "T1/U5", ask("+2"), decided)
		require.Empty(t, ask("+2"), "the other request waits")
	}
}

// What is left of a larger request needs no request of its own. Where the larger one was declined,
// the caller hears it once.
func TestALargerRequestDecidesAboutWhatIsLeftOfIt(t *testing.T) {
	for _, yes := range []bool{true, false} {
		s, _, _ := approvalService(t)
		ask := func(digest string) (string, error) {
			return s.Approved(t.Context(), ops.Approval{Who: agent, Op: "cancel", Shown: shown, Digest: digest}, &jobcontrol.CancelIn{Mine: true})
		}
		for _, digest := range []string{"+2", "+1,2"} {
			by, err := ask(digest)
			require.NoError(t, err)
			require.Empty(t, by)
		}
		list, err := s.Approvals(t.Context())
		require.NoError(t, err)
		require.Len(t, list, 1)
		_, err = s.Decide(t.Context(), list[0].ID, operator, "T1/U5", yes, "")
		require.NoError(t, err)
		by, err := ask("+2")
		require.Equal(t, yes, by != "")
		require.Equal(t, yes, err == nil)
		by, err = ask("+2")
		require.NoError(t, err)
		require.Empty(t, by, "it is asked about anew")
	}
}
