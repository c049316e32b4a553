package bot_test

import (
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/bot"
	"github.com/megatron-ops/megatron-ops/bot/slacktest"
	"github.com/megatron-ops/megatron-ops/internal/store"
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

// The answer to status is the job's card, also where no card was sent before.
func TestAStateIsTheJobsCard(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := play(t)
		s.train(t)
		s.Slash("status 6001")
		msg := s.said("🔵 moe · running · 6001", "2 × 8 GPUs", "30 of 100", "4.125", "391 TFLOP/s/GPU", "Last line")
		require.Subset(t, kinds(msg), []string{"header", "context", "section", "data_visualization", "container", "actions"})
		for _, label := range []string{"Diagnose", "Logs", "Numbers", "Cancel", "Share here"} {
			buttonOf(t, msg, label)
		}
		require.NotContains(t, text(msg), "does not answer")
		require.NotContains(t, text(msg), "last line ", "the card says how old the last line is")
		s.train(t, func(j *slurm.Job) {
			j.ID = "6002"
			hour := time.Now().Add(-time.Hour)
			require.NoError(t, os.Chtimes(j.Stdout, hour, hour))
		})
		s.Slash("status 6002")
		s.said("moe · running · 6002", "perhaps a hang")
		s.train(t, func(j *slurm.Job) {
			j.State, j.Reason, j.Nodes, j.NumNodes, j.Stdout = slurm.Pending, "Priority", nil, 2, ""
		})
		s.Slash("状态 6001")
		msg = s.said("🟡 moe · 排队中 · 6001", "等待原因")
		buttonOf(t, msg, "为什么在排队？")
		buttonOf(t, msg, "能否提前开始？")
	})
}

// The person who submitted a job is mentioned where that notifies nobody: in a private answer,
// but not in one that all can read.
func TestAStateNamesItsPersonWhereThatCallsNobody(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := play(t)
		submitted(t, s)
		settled(t, s.store)
		require.Contains(t, slacktest.JSON(s.next("status 4711").Blocks), "<@U1>")
		all := s.next("status 4711 --share", map[string]any{"channel_id": "C7"})
		require.Empty(t, all.Only)
		require.NotContains(t, slacktest.JSON(all.Blocks), "U1")
		s.Event(map[string]any{"type": "app_mention", "user": "U1", "channel": "C1", "ts": "1.1", "text": "<@UBOT> status 4711"})
		mine := s.answered("1.1", "status 4711")
		require.Equal(t, "U1", mine.Only)
		require.Contains(t, slacktest.JSON(mine.Blocks), "<@U1>")
	})
}

// Where the cluster does not answer, the card says since when.
func TestAStateThatIsOldSaysSo(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := play(t)
		seen := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
		s.train(t, func(j *slurm.Job) { j.SeenAt = &seen })
		s.Slash("status 6001")
		s.said("moe · running · 6001", "The cluster does not answer. This is how it was at", "2026-11-20 12:00 UTC")
		s.Slash("状态 6001")
		s.said("moe · 运行中 · 6001", "集群没有响应")
	})
}

// The answer to metrics is Slack's chart of the curve, with the numbers above it.
func TestMetricsAreACurveWithItsNumbers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := play(t)
		s.train(t)
		s.Slash("metrics 6001")
		msg := s.said("📈 moe · running · 6001", "30 of 100", "4.125", "Time left", "Grad norm", "391 TFLOP/s/GPU")
		require.Contains(t, kinds(msg), "data_visualization")
		require.NotContains(t, text(msg), "ms/iteration", "no table beside it")
		require.NotContains(t, text(msg), "last line ", "nor what goes as it should")
		require.Empty(t, s.State().Files)
		s.Slash("曲线 6001")
		msg = s.said("📈 moe · 运行中 · 6001", "梯度范数")
		require.Contains(t, kinds(msg), "data_visualization")
	})
}

// A workspace that draws no charts gets the numbers as text and a picture, also the next time.
func TestMetricsAreAPictureWhereNoChartIsDrawn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
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
	})
}

// later writes a line with that iteration to the log of ada's job.
func (s *stage) later(t *testing.T, iteration string) {
	t.Helper()
	j, err := s.yard.Job(t.Context(), "4711")
	require.NoError(t, err)
	log, err := os.ReadFile(j.Stdout)
	require.NoError(t, err)
	line := strings.Replace(trainingLog[strings.LastIndex(trainingLog[:len(trainingLog)-1], "\n")+1:], "30/", iteration+"/", 1)
	require.NoError(t, os.WriteFile(j.Stdout, append(log, line...), 0o600))
}

// pictures returns the messages that show a file, and the files' names.
func pictures(st slacktest.State) (in []*slacktest.Message, names []string) {
	for _, m := range st.Messages {
		for _, f := range st.Files {
			if len(m.Blocks) == 1 && strings.Contains(slacktest.JSON(m.Blocks), `"slack_file":{"id":"`+f.ID+`"}`) {
				in, names = append(in, m), append(names, f.Name)
			}
		}
	}
	return in, names
}

// Where the chart on a card is refused, the card's thread gets one picture, which is replaced
// at each quarter of the run and at its end. Slack shows a file only after it has processed it.
func TestTheCurveOfARunningJobIsAPictureWhereNoChartIsDrawn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := play(t, watched, func(c *bot.Config) { c.EditPace = time.Millisecond })
		submitted(t, s)
		s.Fault(slacktest.Fault{Method: "chat.update", Times: 1, Error: "invalid_blocks"})
		s.train(t, func(j *slurm.Job) { j.ID, j.Name = "4711", "gpt" }) // 30 of 100
		shown := func(name string) *slacktest.Message {
			t.Helper()
			st := s.Wait("the picture "+name, func(st slacktest.State) bool {
				_, names := pictures(st)
				return slices.Contains(names, name)
			})
			in, names := pictures(st)
			require.Equal(t, []string{name}, names, "and no other")
			c := cards(st, "4711")[0]
			require.NotContains(t, kinds(c), "data_visualization")
			require.Equal(t, c.TS, in[0].Thread)
			require.Eventually(t, func() bool { // it is noted where the message stands
				_, ok, err := s.store.Slack().Find(t.Context(), store.SlackRef{Channel: in[0].Channel, TS: in[0].TS})
				return err == nil && ok
			}, time.Minute, 20*time.Millisecond)
			return in[0]
		}
		first := shown("loss-25.png")
		require.Contains(t, first.Text, "gpt (4711) · loss 4.125")
		s.later(t, "80")
		require.Equal(t, first.TS, shown("loss-75.png").TS)
		j, err := s.yard.Job(t.Context(), "4711")
		require.NoError(t, err)
		j.State = slurm.Completed
		s.yard.put(j)
		require.Equal(t, first.TS, shown("loss.png").TS)
		for _, f := range s.State().Files {
			require.True(t, f.Channel == "" || !strings.HasPrefix(f.Name, "loss"), "%s came as a file too", f.Name)
		}
	})
}

// Where no message may show a file, each picture is uploaded to the thread.
func TestTheCurveIsAFileWhereNoMessageShowsOne(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		began := time.Now() // Slack may look at a picture for twenty seconds: this clock runs twenty times as fast
		s := play(t, watched, func(c *bot.Config) {
			c.EditPace, c.Now = time.Millisecond, func() time.Time { return began.Add(20 * time.Since(began)) }
		})
		submitted(t, s)
		s.Fault(slacktest.Fault{Method: "slack_file", Error: "invalid_blocks"})
		s.Fault(slacktest.Fault{Method: "chat.update", Times: 1, Error: "invalid_blocks"})
		s.train(t, func(j *slurm.Job) { j.ID, j.Name = "4711", "gpt" })
		sent := func(name string) {
			t.Helper()
			s.Wait("the file "+name, func(st slacktest.State) bool {
				return slices.ContainsFunc(st.Files, func(f *slacktest.Stored) bool {
					return f.Name == name && f.Thread == cards(st, "4711")[0].TS
				})
			})
		}
		sent("loss-25.png")
		s.later(t, "80")
		sent("loss-75.png")
		in, _ := pictures(s.State())
		require.Empty(t, in)
	})
}
