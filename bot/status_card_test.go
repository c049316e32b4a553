package bot_test

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/bot"
	"github.com/megatron-ops/megatron-ops/bot/slacktest"
	"github.com/megatron-ops/megatron-ops/slurm"
)

const trainingLog = `[2026-11-20 12:00:01] iteration       10/     100 | consumed samples:          640 | elapsed time per iteration (ms): 2000.0 | throughput per GPU (TFLOP/s/GPU): 390.0 | lm loss: 6.500000E+00 | grad norm: 3.200 |
[2026-11-20 12:00:03] iteration       20/     100 | consumed samples:         1280 | elapsed time per iteration (ms): 2000.0 | throughput per GPU (TFLOP/s/GPU): 391.0 | lm loss: 5.250000E+00 | grad norm: 2.100 |
[2026-11-20 12:00:05] iteration       30/     100 | consumed samples:         1920 | elapsed time per iteration (ms): 2000.0 | throughput per GPU (TFLOP/s/GPU): 392.0 | lm loss: 4.125000E+00 | grad norm: 1.500 |
`

// train puts a job of ada's on the cluster that writes that log.
func (s *stage) train(t *testing.T, change ...func(*slurm.Job)) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "train.out")
	require.NoError(t, os.WriteFile(file, []byte(trainingLog), 0o600))
	began := time.Now().Add(-5 * time.Minute)
	j := slurm.Job{
		ID: "6001", Name: "moe", User: "ada", Partition: "prod", State: slurm.Running, Nodes: []string{"gpu-07", "gpu-08"}, GPUs: 16, ElapsedS: 300,
		StartedAt: &began, Stdout: file,
	}
	for _, f := range change {
		f(&j)
	}
	s.yard.put(j)
}

func kinds(msg *slacktest.Message) (all []string) {
	for _, x := range msg.Blocks {
		b, _ := x.(map[string]any)
		kind, _ := b["type"].(string)
		all = append(all, kind)
	}
	return all
}

// The answer to status is the job's card, whether a card stands anywhere or not.
func TestAStateIsTheJobsCard(t *testing.T) {
	t.Parallel()
	s := play(t)
	s.train(t)
	s.Slash("status 6001")
	msg := s.said("🔵 moe · running · 6001", "2 × 8 GPUs", "30 of 100", "4.125", "391 TFLOP/s/GPU", "Last line")
	require.Subset(t, kinds(msg), []string{"header", "context", "section", "data_visualization", "container", "actions"})
	for _, label := range []string{"Diagnose", "Logs", "Numbers", "Cancel", "Share here"} {
		buttonOf(t, msg, label)
	}
	require.NotContains(t, text(msg), "does not answer")
	s.train(t, func(j *slurm.Job) {
		j.State, j.Reason, j.Nodes, j.NumNodes, j.Stdout = slurm.Pending, "Priority", nil, 2, ""
	})
	s.Slash("状态 6001")
	msg = s.said("🟡 moe · 排队中 · 6001", "等待原因")
	buttonOf(t, msg, "为什么在排队？")
	buttonOf(t, msg, "能否提前开始？")
}

// Where the cluster does not answer, the card says of when it is.
func TestAStateThatIsOldSaysSo(t *testing.T) {
	t.Parallel()
	s := play(t)
	seen := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	s.train(t, func(j *slurm.Job) { j.SeenAt = &seen })
	s.Slash("status 6001")
	s.said("moe · running · 6001", "The cluster does not answer. This is how it was at", "2026-11-20 12:00 UTC")
	s.Slash("状态 6001")
	s.said("moe · 运行中 · 6001", "集群没有响应")
}

// The answer to metrics is the curve as Slack's own chart, the numbers above it.
func TestMetricsAreACurveWithItsNumbers(t *testing.T) {
	t.Parallel()
	s := play(t)
	s.train(t)
	s.Slash("metrics 6001")
	msg := s.said("📈 moe · running · 6001", "30 of 100", "4.125", "Time left", "Grad norm", "391 TFLOP/s/GPU")
	require.Contains(t, kinds(msg), "data_visualization")
	require.NotContains(t, text(msg), "ms/iteration", "no table beside it")
	require.Empty(t, s.State().Files)
	s.Slash("曲线 6001")
	msg = s.said("📈 moe · 运行中 · 6001", "梯度范数")
	require.Contains(t, kinds(msg), "data_visualization")
}

// A workspace that draws no charts is told the numbers in words, and shown the
// picture; the next time too.
func TestMetricsAreAPictureWhereNoChartIsDrawn(t *testing.T) {
	t.Parallel()
	s := play(t)
	s.train(t)
	s.Fault(slacktest.Fault{Method: "response_url", Times: 1, Status: http.StatusBadRequest, Error: "invalid_blocks"})
	s.Slash("metrics 6001")
	for n := 1; n <= 2; n++ {
		st := s.Wait("the picture", func(st slacktest.State) bool { return len(st.Files) == n && len(st.Messages) >= n })
		require.Equal(t, "loss-6001.png", st.Files[n-1].Name)
		msg := s.said("📈 moe · running · 6001", "4.125")
		require.NotContains(t, kinds(msg), "data_visualization")
		if n == 1 {
			s.Slash("metrics 6001 ")
		}
	}
}

// Where the chart on a card is refused, the picture comes into its thread at each
// quarter of the run, once.
func TestTheCurveOfARunningJobIsAPictureWhereNoChartIsDrawn(t *testing.T) {
	t.Parallel()
	s := play(t, watched, func(c *bot.Config) { c.EditPace = time.Millisecond })
	submitted(t, s)
	s.Fault(slacktest.Fault{Method: "chat.update", Times: 1, Error: "invalid_blocks"})
	s.train(t, func(j *slurm.Job) { j.ID, j.Name = "4711", "gpt" }) // 30 of 100
	st := s.Wait("the first quarter", func(st slacktest.State) bool { return stored(st, "loss-25.png") })
	c := cards(st, "4711")[0]
	require.NotContains(t, kinds(c), "data_visualization")
	for _, f := range st.Files {
		require.Equal(t, c.TS, f.Thread, f.Name)
	}
	j, err := s.yard.Job(t.Context(), "4711")
	require.NoError(t, err)
	later := strings.ReplaceAll(trainingLog, "       30/", "       80/")
	require.NoError(t, os.WriteFile(j.Stdout, []byte(trainingLog+later[strings.LastIndex(later[:len(later)-1], "\n")+1:]), 0o600))
	st = s.Wait("the third quarter", func(st slacktest.State) bool { return stored(st, "loss-75.png") })
	pictures := 0
	for _, f := range st.Files {
		if strings.HasPrefix(f.Name, "loss") {
			pictures++
		}
	}
	require.Equal(t, 2, pictures, "each once")
}
