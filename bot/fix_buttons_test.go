package bot_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/bot"
	"github.com/megatron-ops/megatron-ops/bot/card"
	"github.com/megatron-ops/megatron-ops/bot/slacktest"
	"github.com/megatron-ops/megatron-ops/slurm"
)

// waitingCard waits until the job's card contains all of the words.
func waitingCard(s *stage, id string, words ...string) *slacktest.Message {
	s.t.Helper()
	var c *slacktest.Message
	s.Wait(fmt.Sprintf("a card of %s with %q", id, words), func(st slacktest.State) bool {
		list := cards(st, id)
		if len(list) != 1 {
			return false
		}
		for _, w := range words {
			if !strings.Contains(text(list[0]), w) {
				return false
			}
		}
		c = list[0]
		return true
	})
	return c
}

func TestAWaitingCardTellsItsPlaceAndStart(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := play(t, watched, func(c *bot.Config) { c.EditPace = 300 * time.Millisecond })
		high, low := int64(9000), int64(10)
		for i := range 3 {
			s.yard.put(slurm.Job{ID: slurm.JobID(fmt.Sprint(4000 + i)), Name: "other", User: "grace", Partition: "gpu", State: slurm.Pending, Reason: "Priority", Priority: &high})
		}
		submitted(t, s)
		start := time.Date(2026, 11, 21, 3, 30, 0, 0, time.UTC)
		job := slurm.Job{ID: "4711", Name: "gpt", User: "ada", Partition: "gpu", State: slurm.Pending, Reason: "Priority", Priority: &low, EstStart: &start}
		s.yard.put(job)
		waitingCard(s, "4711", "Place in line", "4 of 4", "2026-11-21 03:30 UTC")
		for i := range 2 {
			s.yard.put(slurm.Job{ID: slurm.JobID(fmt.Sprint(4000 + i)), Name: "other", User: "grace", State: slurm.Running})
		}
		waitingCard(s, "4711", "2 of 2")
		job.Reason = "JobHeldUser"
		s.yard.put(job)
		c := waitingCard(s, "4711", "JobHeldUser")
		buttonOf(t, c, "Release")
		s.Wait("no place for a held job", func(st slacktest.State) bool {
			return !strings.Contains(text(cards(st, "4711")[0]), "Place in the queue")
		})
	})
}

// failWith makes the watched job 4711 end with that log.
func failWith(t *testing.T, s *stage, lines string) {
	t.Helper()
	log := filepath.Join(t.TempDir(), "gpt-4711.out")
	require.NoError(t, os.WriteFile(log, []byte(lines), 0o600))
	exit := "1:0"
	s.yard.put(slurm.Job{
		ID:        "4711",
		Name:      "gpt",
		User:      "ada",
		Partition: "gpu",
		State:     slurm.Failed,
		ExitCode:  &exit,
		Nodes:     []string{"n1", "n2"},
		GPUs:      16,
		ElapsedS:  60,
		Stdout:    log,
	})
}

func TestAFixIsAppliedByAButtonOnceItsOwnerSaysYes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := play(t, watched)
		submitted(t, s)
		failWith(t, s, "[rank0]: Traceback (most recent call last):\n[rank0]:   File \"/w/pretrain_gpt.py\", line 12, in <module>\n"+
			"[rank0]: torch.distributed.DistNetworkError: The server socket has failed to listen on any local network address. port: 29500, useIpv6: false, code: -98, name: EADDRINUSE, message: address already in use\n")
		c := waitingCard(s, "4711", "failed", "A fix that fits", "master_port: 24711")
		action, value := buttonOf(t, c, "Apply fix and resubmit")
		s.Press(c, action, value, "U2")
		s.said("job 4711 belongs to ada")
		s.Press(c, action, value, "U1")
		q := s.said("Please confirm", "master_port: 24711")
		require.Equal(t, 1, s.yard.count())
		yes, id := buttonOf(t, q, "Yes, do it")
		for range 2 {
			s.Press(q, yes, id, "U1")
		}
		s.said("gpt submitted to yard as job 4712")
		require.Equal(t, 2, s.yard.count())
		require.Contains(t, s.yard.last().Script, "MASTER_PORT=24711")
		s.Press(c, action, strings.Replace(value, "4711", "4712", 1), "U1")
		s.said("no fix is known that could be applied to this job")
	})
}

// A fix takes the place of a job that Slurm has put back into the queue since its end was shown,
// and is not submitted beside one that runs again.
func TestAFixOfAJobThatIsInTheQueueAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := play(t)
		submitted(t, s)
		j := slurm.Job{ID: "4711", Cluster: "yard", Name: "gpt", User: "ada", State: slurm.NodeFail}
		require.NoError(t, s.bot.Tell(t.Context(), card.News{Job: j, Class: "node_failure", Exclude: []string{"n2"}}))
		c := waitingCard(s, "4711", "node failed")
		action, value := buttonOf(t, c, "Retry without the bad node")
		j.State = slurm.Running
		s.yard.put(j)
		s.Press(c, action, value, "U1")
		s.said("job 4711 has been put back into the queue since and runs again", "ends it; then press the button again")
		require.Equal(t, 1, s.yard.count())
		j.State, j.Reason = slurm.Pending, "BeginTime"
		s.yard.put(j)
		s.Press(c, action, value, "U1")
		q := s.said("Please confirm", "takes the place of the waiting job 4711")
		yes, id := buttonOf(t, q, "Yes, do it")
		s.Press(q, yes, id, "U1")
		s.said("gpt submitted to yard as job 4712")
		s.said("4711", "cancelled")
		waiting, err := s.yard.Job(t.Context(), "4711")
		require.NoError(t, err)
		require.Equal(t, slurm.Cancelled, waiting.State)
	})
}

func TestAJobIsExtendedOneAfterTheOther(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := play(t)
		c := submitted(t, s)
		action, value := buttonOf(t, c, "Extend chain")
		for i, after := range []string{"4711", "4712"} {
			s.Press(c, action, value, "U1")
			q := s.said("Please confirm", "waits for the end of "+after)
			yes, id := buttonOf(t, q, "Yes, do it")
			s.Press(q, yes, id, "U1")
			s.said(fmt.Sprintf("gpt submitted to yard as job %d", 4712+i))
			require.Contains(t, s.yard.last().Script, "#SBATCH --dependency=afterany:"+after)
		}
		waitingCard(s, "4713")
		s.Press(c, action, value, "U2")
		s.said("job 4711 belongs to ada")
		require.Equal(t, 3, s.yard.count())
	})
}

func TestAChainGetsALongerNextLink(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := play(t)
		s.Slash("submit --yes " + strings.Replace(spec, "nodes: 2", "nodes: 2\nchain: 3", 1))
		c := waitingCard(s, "4711")
		action, value := buttonOf(t, c, "Extend chain")
		s.Press(c, action, value, "U1")
		s.said("this chain has not started")
		// The first link runs and has queued the second.
		s.yard.put(slurm.Job{ID: "4711", Name: "gpt", User: "ada", State: slurm.Running})
		s.yard.put(slurm.Job{ID: "5000", Name: "gpt", User: "ada", State: slurm.Pending, Reason: "Dependency"})
		s.Press(c, action, value, "U1")
		q := s.said("Please confirm", "takes the place of the waiting job 5000")
		yes, id := buttonOf(t, q, "Yes, do it")
		s.Press(q, yes, id, "U1")
		s.said("gpt submitted to yard as job 4712")
		s.said("5000", "cancelled")
		script := s.yard.last().Script
		require.Contains(t, script, "#SBATCH --dependency=afterany:4711")
		require.Contains(t, script, "A chain of 3 jobs", "two were left, and one more")
		j, err := s.yard.Job(t.Context(), "5000")
		require.NoError(t, err)
		require.Equal(t, slurm.Cancelled, j.State)
	})
}

// A job that somebody cancels is not extended: its card loses that button at once, and a window that was
// not drawn again is told. Another job keeps the button.
func TestACancelledJobIsNotExtended(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := play(t)
		c := submitted(t, s)
		action, value := buttonOf(t, c, "Extend chain")
		s.Slash("submit --yes " + strings.Replace(spec, "name: gpt", "name: other", 1))
		other := waitingCard(s, "4712")
		s.Slash("cancel 4711 --yes")
		s.said("4711 gpt: cancelled")
		settled(t, s.store)
		require.NotContains(t, s.at(c), "Extend chain")
		require.Contains(t, s.at(other), "Extend chain")
		s.Press(c, action, value, "U1")
		s.said("job 4711 has ended (cancelled)", "Change and resubmit")
		require.Equal(t, 2, s.yard.count())
	})
}
