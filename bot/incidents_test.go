package bot_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/bot/slacktest"
	"github.com/megatron-ops/megatron-ops/slurm"
)

const brokenDiskLog = "[rank0]: Traceback (most recent call last):\n[rank0]:   File \"/w/megatron/core/datasets/indexed_dataset.py\", line 310, in _read\n" +
	"[rank0]: OSError: [Errno 5] Input/output error: '/lustre/data/corpus.bin'\n"

func TestJobsThatFailOfOneCauseAreOneIncident(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := play(t, watched)
		s.Slash("subscribe all", map[string]any{"channel_id": "C9"})
		s.said("Followed here")
		dir := t.TempDir()
		fail := func(i int, user, log string) {
			file := filepath.Join(dir, fmt.Sprintf("%d.out", i))
			require.NoError(t, os.WriteFile(file, []byte(log), 0o600))
			at := time.Now()
			j := slurm.Job{ID: slurm.JobID(fmt.Sprint(5000 + i)), Name: fmt.Sprintf("run-%d", i), User: user, State: slurm.Running, Nodes: []string{fmt.Sprintf("gpu-%02d", i)}, Stdout: file, SubmittedAt: &at}
			s.yard.put(j)
			s.Wait("its card", func(st slacktest.State) bool { return len(cards(st, string(j.ID))) == 1 })
			j.State = slurm.Failed
			s.yard.put(j)
		}
		fail(1, "ada", brokenDiskLog)
		fail(2, "grace", brokenDiskLog)
		msg := s.said("🔥 2 jobs, one cause", "run-1", "run-2", "jobs of ada, grace")
		require.Equal(t, "C9", msg.Channel)
		fail(3, "grace", brokenDiskLog)
		s.said("🔥 3 jobs, one cause", "run-3")
		fail(4, "grace", oomLog) // another cause is no part of it
		s.said("run-4 (5004): ")
		st := s.Wait("a line for each in the thread", func(st slacktest.State) bool {
			n := 0
			for _, m := range st.Messages {
				if m.Thread == msg.TS {
					n++
				}
			}
			return n == 3
		})
		require.Equal(t, 1, posted(st, "jobs, one cause"))
		s.PressLabel(msg, "I look after it", "U5")
		s.Wait("who looks after it, on the incident and on each card", func(st slacktest.State) bool { return posted(st, "<@U5> looks after it") == 4 })
	})
}
