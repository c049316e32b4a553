package slurm_test

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/slurm"
	"github.com/megatron-ops/megatron-ops/slurm/slurmtest"
)

var update = flag.Bool("update", false, "write what is said today into testdata")

// explanation returns the explanation of a word of that kind.
func explanation(t *testing.T, kind, word string) (m slurm.Meaning, known bool) {
	t.Helper()
	switch kind {
	case "reason":
		return slurm.KnownReason(word)
	case "state":
		m = slurm.State(word).Explain().Meaning
	case "node":
		m = slurm.ExplainNode(word)
	default:
		require.Fail(t, "no such kind of word", kind)
	}
	return m, !strings.Contains(m.Says.EN, "does not know")
}

// Every word of Slurm 22.05 to 26.05 for a reason, a job's state or a node's state is
// explained in both languages. testdata/words.said.txt holds the explanations.
func TestEveryWordOfSlurmIsExplained(t *testing.T) {
	table, err := os.ReadFile("testdata/words.tsv")
	require.NoError(t, err)
	var all strings.Builder
	say := func(kind, word string) {
		m, known := explanation(t, kind, word)
		require.True(t, known, "%s %s", kind, word)
		require.Equal(t, word, m.Word)
		require.Equal(t, m.Do.EN == "", m.Do.ZH == "", word)
		require.Equal(t, lang.ZH, lang.Of(m.Says.ZH), word)
		require.NotContains(t, m.Says.EN+m.Says.ZH+m.Do.EN+m.Do.ZH, "%!", word)
		fmt.Fprintf(&all, "%s %s: %s; %s | %s；%s\n", kind, word, m.Says.EN, m.Do.EN, m.Says.ZH, m.Do.ZH)
	}
	for line := range strings.Lines(string(table)) {
		f := strings.Split(strings.TrimSpace(line), "\t")
		require.Len(t, f, 3, line)
		say(f[0], f[1])
	}
	for _, sentence := range []string{
		"Nodes required for job are DOWN, DRAINED or reserved for jobs in higher priority partitions",
		"ReqNodeNotAvail, Reserved for maintenance", "ReqNodeNotAvail, May be reserved for other job", "ReqNodeNotAvail, UnavailableNodes:gpu[3-4]",
		"Job's QOS not permitted to use this partition (qosonly allows urgent not normal)",
		"Job's account not permitted to use this partition (locked allows infra not research)",
		"uid 1001 not in group permitted to use this partition (grouponly). groups allowed: slurm",
		"Reservation maint1 was deleted", "Reservation maint1 is invalid", "Reservation maint1, which this job was running under, has ended",
		"_reset_job_reservation: Holding JobId=7, reservation maint1 was deleted", "_set_job_requeue_exit_value: Holding JobId=7, requeue-hold exit",
		"launch failed requeued held", "launch failure limit exceeded requeued held", "user env retrieval failed requeued held", "job requeued in held state",
		"Burst buffer pre_run error", "burst_buffer/lua: post_run: it failed", "Unable to load job batch script",
		"Job is at or exceeds QOS short's group wall limit of 60 with 61",
		"Job is at or exceeds association (acc=research/user=alice/part=prod) group max TRES(gres/gpu) minutes of 5 with 6",
		"RaisedSignal:53(Real-time signal 19)", "RaisedSignal:11(Segmentation fault)",
	} {
		say("reason", sentence)
	}
	if *update {
		require.NoError(t, os.WriteFile("testdata/words.said.txt", []byte(all.String()), 0o644))
	}
	want, err := os.ReadFile("testdata/words.said.txt")
	require.NoError(t, err)
	require.Equal(t, string(want), all.String(), "run with -update and read the difference")
}

// Every recorded job's state and reason is explained.
func TestEveryRecordedReasonIsExplained(t *testing.T) {
	for _, release := range slurmtest.Releases {
		looked := 0
		for line := range strings.Lines(slurmtest.Recorded(t, release, "text/squeue-array-long.txt")) {
			f := strings.Split(line, "|")
			if len(f) < 5 || f[0] == "JOBID" {
				continue
			}
			_, known := explanation(t, "state", f[2])
			require.True(t, known, line)
			_, known = explanation(t, "reason", f[3])
			require.True(t, known, line)
			looked++
		}
		require.Greater(t, looked, 30, release)
	}
}

// A word of a future Slurm stays unchanged.
func TestUnknownWordsStayAsTheyCame(t *testing.T) {
	require.Equal(t, "SomethingNew, behind", slurm.ExplainReason("SomethingNew, behind").Word)
	require.Equal(t, "NEW_STATE", slurm.State("NEW_STATE").Explain().Word)
	require.Equal(t, "weird*", slurm.ExplainNode("weird*").Word)
	_, known := slurm.KnownReason("QOSMaxQuantumPerUser")
	require.False(t, known)
}

// The limits of a QOS for one user are found in every release's form of the user.
func TestLimitsOfAUserAreReadInEveryRelease(t *testing.T) {
	for _, release := range slurmtest.Releases {
		out := slurmtest.Recorded(t, release, "text/scontrol-show-assoc_mgr.txt")
		of := map[string][]string{}
		for _, l := range slurm.ParseLimits(out, "alice", "research", "tiny") {
			of[l.Of] = append(of[l.Of], fmt.Sprintf("%s %s=%d", l.Name, l.TRES, l.Max))
		}
		require.Equal(t, []string{"MaxJobsPU =1", "MaxSubmitJobsPU =2"}, of["alice under QOS tiny"], release)
		require.Equal(t, []string{"MaxTRESPJ node=1"}, of["QOS tiny"], release)
		require.Len(t, slurm.ParseLimits(out, "research", "", "tiny"), 1, "%s: an account is no user", release)
	}
}
