package joblogs_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/ops/jobcontrol"
	"github.com/megatron-ops/megatron-ops/internal/ops/joblogs"
	"github.com/megatron-ops/megatron-ops/internal/ops/opstest"
	"github.com/megatron-ops/megatron-ops/internal/store"
	"github.com/megatron-ops/megatron-ops/slurm"
	"github.com/megatron-ops/megatron-ops/slurm/job"
)

// running returns a running job that logs iterations, of which the last ones have no
// finite loss.
func running(t *testing.T, lost int) (*ops.Call, slurm.Job) {
	t.Helper()
	dir := t.TempDir()
	var b strings.Builder
	for i := 1; i <= 60; i++ {
		loss := "2.500000E+00"
		if i > 60-lost {
			loss = "NAN"
		}
		fmt.Fprintf(&b, " [2026-06-11 10:%02d:%02d.000000] iteration %8d/     100 | consumed samples: %12d | elapsed time per iteration (ms): 4000.0 | throughput per GPU (TFLOP/s/GPU): 400.0 | learning rate: 1.5E-04 | global batch size:   256 | lm loss: %s | loss scale: 1.0 | grad norm: 0.5 |\n", i/15, i%15*4, i, 256*i, loss)
	}
	j := slurm.Job{ID: "77", Cluster: "test", Name: "gpt", User: "alice", State: slurm.Running, Nodes: []string{"n1", "n2"}, GPUs: 16, WorkDir: dir, Stdout: filepath.Join(dir, "gpt-77.out")}
	require.NoError(t, os.WriteFile(j.Stdout, []byte(b.String()), 0o600))
	return opstest.NewCall(t, &opstest.Site{KnownJobs: map[slurm.JobID]slurm.Job{"77": j}}), j
}

func TestWaitingHearsOfWhatGoesWrongOnce(t *testing.T) { synctest.Test(t, waitingHearsOnce) }

func waitingHearsOnce(t *testing.T) {
	c, _ := running(t, 5)
	var steps []string
	c.Progress = func(_, _ int, what string) { steps = append(steps, what) }
	for _, words := range [][]string{{"77", "--timeout", "1"}, {"77", "--artifact", "result.json", "--timeout", "1"}} {
		steps = nil
		out, err := opstest.Do(t, c, jobcontrol.Wait(), words...)
		require.NoError(t, err)
		w := out.(jobcontrol.WaitOut)
		require.True(t, w.TimedOut)
		require.Len(t, w.Alarms, 1)
		require.Contains(t, w.Alarms[0], "NaN or infinite since iteration 56")
		require.Contains(t, w.Alarms[0], "n[1-2]", "with the nodes")
		require.Equal(t, 1, strings.Count(strings.Join(steps, "\n"), "NaN or infinite"), "shown at once, and once")
		require.Contains(t, steps, "RUNNING, iteration 60 of 100, loss NaN, 4 s each", "how far it is")
		require.Contains(t, opstest.Text(t, w, lang.ZH), "运行期间")
	}
	c, _ = running(t, 0)
	out, err := opstest.Do(t, c, jobcontrol.Wait(), "77", "--timeout", "1")
	require.NoError(t, err)
	require.Empty(t, out.(jobcontrol.WaitOut).Alarms)
}

// A waiting person reads in words how long the job has run; an agent's client draws it.
func TestWaitingSaysHowLongTheJobRuns(t *testing.T) { synctest.Test(t, waitingSaysHowLong) }

func waitingSaysHowLong(t *testing.T) {
	limit := int64(18000)
	for name, tt := range map[string]struct {
		surface ops.Surface
		l       lang.Lang
		limit   *int64
		want    string
	}{
		"shell":             {ops.Shell, lang.EN, &limit, "[0/0] RUNNING for 06:10 of 05:00:00, iteration 60 of 100, loss 2.5, 4 s each"},
		"shell, in Chinese": {ops.Shell, lang.ZH, &limit, "[0/0] RUNNING 已运行 06:10（时限 05:00:00），第 60/100 次迭代，损失 2.5，每次 4 秒"},
		"without a limit":   {ops.Shell, lang.EN, nil, "[0/0] RUNNING for 06:10, iteration 60 of 100, loss 2.5, 4 s each"},
		"agent":             {ops.MCP, lang.EN, &limit, "[370/18000] RUNNING, iteration 60 of 100, loss 2.5, 4 s each"},
	} {
		c, j := running(t, 0)
		j.ElapsedS, j.TimeLimitS = 370, tt.limit
		c.Clusters["test"].(*opstest.Site).Put(j)
		c.Who.Surface, c.Lang = tt.surface, tt.l
		var steps []string
		c.Progress = func(done, total int, what string) {
			steps = append(steps, fmt.Sprintf("[%d/%d] %s", done, total, what))
		}
		_, err := opstest.Do(t, c, jobcontrol.Wait(), "77", "--timeout", "1")
		require.NoError(t, err)
		require.Contains(t, steps, tt.want, name)
	}
}

func TestMetricsOfARunningJobTellAHang(t *testing.T) {
	c, j := running(t, 0)
	old := time.Now().Add(-time.Hour)
	require.NoError(t, os.Chtimes(j.Stdout, old, old))
	out, err := opstest.Do(t, c, joblogs.Metrics(), "77")
	require.NoError(t, err)
	require.Len(t, out.(joblogs.MetricsOut).Findings, 1)
	require.Contains(t, out.(joblogs.MetricsOut).Findings[0], "No progress for 01:00:00, where an iteration took 4.0 s; the last one was 60. Node: n[1-2].")
}

func TestFollowingTellsNewLinesUntilTheEnd(t *testing.T) { synctest.Test(t, followingTellsNewLines) }

func followingTellsNewLines(t *testing.T) {
	c, j := running(t, 0)
	s := c.Clusters["test"].(*opstest.Site)
	s.OfKind = "local"
	var streamed strings.Builder
	c.Progress = func(_, _ int, what string) { t.Errorf("told beside the lines: %s", what) }
	c.Stream = func(text string) {
		streamed.WriteString(text)
		if strings.Contains(text, "all is done") {
			j.State = slurm.Completed
			s.Put(j)
		}
	}
	go func() {
		time.Sleep(500 * time.Millisecond)
		f, err := os.OpenFile(j.Stdout, os.O_APPEND|os.O_WRONLY, 0)
		if err != nil {
			return
		}
		defer f.Close()
		fmt.Fprint(f, "[rank1]: hello\n[rank2]: hello\n[rank3]: hello\nall is done\n")
	}()
	out, err := opstest.Do(t, c, joblogs.Logs(), "77", "--follow", "--collapse", "--tail", "2")
	require.NoError(t, err)
	require.Empty(t, opstest.Text(t, out, lang.EN), "nothing is shown twice")
	lines := strings.Split(strings.TrimSpace(streamed.String()), "\n")
	require.Len(t, lines, 4, streamed.String())
	require.Contains(t, lines[1], "iteration       60/")
	require.Equal(t, "× 3 ranks | [rank1]: hello", lines[2])
	require.Contains(t, lines[3], "all is done")

	// An agent's answer is bounded by what the agent may read at once.
	c.Stream, c.Progress, c.Who.Surface = nil, nil, ops.MCP
	out, err = opstest.Do(t, c, joblogs.Logs(), "77", "--follow", "--tail", "600")
	require.NoError(t, err)
	require.Len(t, out.(joblogs.LogsOut).Lines, 64, "the job has ended: all at once")
}

func TestMetricsSayWhetherTheTimeLimitSuffices(t *testing.T) {
	c, j := running(t, 0) // 60 of 100 iterations of 4 s: 160 s remain
	for limit, want := range map[int64][]string{
		400: {"the time limit will suffice, with this to spare: 02:20", "时间上限够用，还余 02:20"},
		200: {"the time limit will not suffice: short by 01:00", "时间上限不够，还差 01:00"},
	} {
		j.TimeLimitS, j.ElapsedS = &limit, 100
		c.Clusters["test"].(*opstest.Site).Put(j)
		out, err := opstest.Do(t, c, joblogs.Metrics(), "77")
		require.NoError(t, err)
		require.Equal(t, int64(160), *out.(joblogs.MetricsOut).Runs[0].ETASeconds)
		require.Contains(t, opstest.Text(t, out, lang.EN), want[0])
		require.Contains(t, opstest.Text(t, out, lang.ZH), want[1])
	}
	_, err := opstest.Do(t, c, joblogs.Metrics(), "77", "--sample", "1")
	require.ErrorContains(t, err, "not supported by this kind of cluster")
}

// Only a job that was submitted to train is expected to log iterations.
func TestGPUsThatNoIterationUsesRaiseAnAlarm(t *testing.T) {
	for name, tt := range map[string]struct {
		spec    string
		elapsed time.Duration
		log     string
		alarm   bool
	}{
		"no iteration for long":  {"script: pretrain_gpt.py", 40 * time.Minute, "loading\n", true},
		"just for so long":       {"script: pretrain_gpt.py", 30 * time.Minute, "loading\n", true},
		"not for long yet":       {"script: pretrain_gpt.py", 30*time.Minute - time.Second, "loading\n", false},
		"it iterates":            {"script: pretrain_gpt.py", 40 * time.Minute, " [2026-06-11 10:00:00.000000] iteration        1/     100 | elapsed time per iteration (ms): 4000.0 | lm loss: 2.5E+00 |\n", false},
		"another program's job":  {"launcher: custom\nlauncher_argv: [bash]", 40 * time.Minute, "loading\n", false},
		"nobody's specification": {"", 40 * time.Minute, "loading\n", false},
	} {
		dir := t.TempDir()
		j := slurm.Job{ID: "78", Cluster: "test", Name: "gpt", User: "alice", State: slurm.Running, Nodes: []string{"n1"}, GPUs: 8, ElapsedS: int64(tt.elapsed.Seconds()), WorkDir: dir, Stdout: filepath.Join(dir, "gpt-78.out")}
		require.NoError(t, os.WriteFile(j.Stdout, []byte(tt.log), 0o600))
		c := opstest.NewCall(t, &opstest.Site{KnownJobs: map[slurm.JobID]slurm.Job{"78": j}})
		if tt.spec != "" {
			remember(t, c, "78", "name: gpt\nnodes: 1\ngpus_per_node: 8\nworktree: /lustre/m\n"+tt.spec+"\n")
		}
		all, err := joblogs.Alarms(t.Context(), c, j)
		require.NoError(t, err, name)
		var ids []string
		for _, a := range all {
			ids = append(ids, a.ID)
			require.Contains(t, a.Says(lang.EN), fmt.Sprintf("%.1f GPU hours", 8*tt.elapsed.Hours()), name)
		}
		require.Equal(t, tt.alarm, len(ids) == 1 && ids[0] == "gpus_unused", "%s: %v", name, ids)
	}
}

// remember stores a specification as the one of job id.
func remember(t *testing.T, c *ops.Call, id, spec string) {
	t.Helper()
	s, err := job.Decode([]byte(spec))
	require.NoError(t, err)
	raw, err := json.Marshal(s)
	require.NoError(t, err)
	st, err := c.Store()
	require.NoError(t, err)
	_, _, err = st.Begin(t.Context(), store.Submission{Key: "k", Token: "k", Cluster: c.Default, Owner: c.Who.User, Name: "gpt", Spec: raw, CreatedAt: time.Now()})
	require.NoError(t, err)
	require.NoError(t, st.Finish(t.Context(), "k", store.Submitted, slurm.JobID(id), "", time.Now()))
}

// An agent that asks for the numbers of a run whose loss is not a number gets the
// others.
func TestMetricsWithoutALossAreStillAnAnswer(t *testing.T) {
	c, _ := running(t, 5)
	out, err := opstest.Do(t, c, joblogs.Metrics(), "77")
	require.NoError(t, err)
	raw, err := json.Marshal(out)
	require.NoError(t, err)
	require.Contains(t, string(raw), `"loss":null,"best_loss":2.5,`)
	require.Contains(t, opstest.Text(t, out, lang.EN), "NaN", "a person reads what it is")
}
