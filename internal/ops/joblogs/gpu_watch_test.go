package joblogs_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/ops/jobcontrol"
	"github.com/megatron-ops/megatron-ops/internal/ops/joblogs"
	"github.com/megatron-ops/megatron-ops/internal/ops/opstest"
	"github.com/megatron-ops/megatron-ops/internal/view"
	"github.com/megatron-ops/megatron-ops/slurm"
)

// sampledJob returns a running job of two nodes with four GPUs each. It has sampled
// them every five minutes for half an hour, the last time so long ago. The GPUs in
// idle, written as n1:2, did nothing.
func sampledJob(t *testing.T, ago time.Duration, elapsed time.Duration, usedMB int, idle ...string) (*ops.Call, slurm.Job) {
	t.Helper()
	dir := t.TempDir()
	j := slurm.Job{
		ID: "79", Cluster: "test", Name: "gpt", User: "alice", State: slurm.Running, Nodes: []string{"n1", "n2"}, GPUs: 8, Restarts: 1,
		ElapsedS: int64(elapsed.Seconds()), WorkDir: dir, Stdout: filepath.Join(dir, "gpt-79.out"),
	}
	require.NoError(t, os.WriteFile(j.Stdout, []byte("loading\n"), 0o600))
	last := time.Now().Add(-ago)
	for _, attempt := range []string{"attempt-0", "attempt-1"} {
		at := filepath.Join(dir, "79", attempt)
		require.NoError(t, os.MkdirAll(at, 0o755))
		for _, node := range []string{"n1", "n2", "n3", "<!channel>"} { // the last two are not its nodes
			var b strings.Builder
			b.WriteString("0, 97, 4\n") // the line is cut
			for look := 6; look >= 0; look-- {
				for gpu := range 4 {
					busy, used := 90+gpu, 70000
					if node > "n2" || attempt == "attempt-0" || strings.Contains(strings.Join(idle, " "), fmt.Sprintf("%s:%d", node, gpu)) {
						busy, used = 0, usedMB
					}
					fmt.Fprintf(&b, "%d, %d, %d, %d\n", last.Add(-time.Duration(look)*5*time.Minute).Unix(), gpu, busy, used)
				}
			}
			require.NoError(t, os.WriteFile(filepath.Join(at, "gpus-"+node+".csv"), []byte(b.String()), 0o600))
		}
	}
	return opstest.NewCall(t, &opstest.Site{KnownJobs: map[slurm.JobID]slurm.Job{"79": j}}), j
}

// everyGPU holds all GPUs of such a job.
var everyGPU = strings.Fields("n1:0 n1:1 n1:2 n1:3 n2:0 n2:1 n2:2 n2:3")

func TestGPUsThatDoNothingRaiseAnAlarm(t *testing.T) {
	for name, c := range map[string]struct {
		ago, elapsed time.Duration
		usedMB       int
		idle         []string
		en, zh, fix  string
	}{
		"all work":                    {time.Minute, time.Hour, 3, nil, "", "", ""},
		"two do not":                  {time.Minute, 25 * time.Minute, 70000, []string{"n1:3", "n2:3"}, "2 of 8 GPUs did nothing at any look for 30 min: n[1-2]:3.", "8 张 GPU 中有 2 张在 30 分钟内每次查看都没有计算：n[1-2]:3。", "`logs 79 --node n1 --tail 20`"},
		"no rank runs there":          {time.Minute, time.Hour, 3, []string{"n2:2", "n2:3"}, "2 of 8 GPUs did nothing at any look for 30 min: n2:2-3. No rank holds memory there.", "其上也没有 rank 占用显存", "ask for fewer (--gpus-per-node)"},
		"none works, and it is young": {time.Minute, 29 * time.Minute, 70000, everyGPU, "", "", ""},
		"none works":                  {time.Minute, time.Hour, 70000, everyGPU, "8 of 8 GPUs did nothing", "8 张 GPU 中有 8 张", "`cancel 79` gives them back"},
		"nobody looks any more":       {time.Hour, 2 * time.Hour, 3, []string{"n2:3"}, "", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			call, j := sampledJob(t, c.ago, c.elapsed, c.usedMB, c.idle...)
			all, err := joblogs.Alarms(t.Context(), call, j)
			require.NoError(t, err)
			if c.en == "" {
				require.Empty(t, all)
				return
			}
			require.Len(t, all, 1)
			require.Equal(t, "gpus_idle", all[0].ID)
			require.Contains(t, all[0].Says(lang.EN), c.en)
			require.Contains(t, all[0].Says(lang.ZH), c.zh)
			require.Contains(t, all[0].Fix.EN, c.fix)
		})
	}
}

func TestStatusSaysHowBusyTheGPUsAre(t *testing.T) {
	for name, c := range map[string]struct {
		ago    time.Duration
		idle   []string
		en, zh string
	}{
		"all work":              {2 * time.Minute, nil, `8 GPUs, looked at 0\d:\d\d ago: 92 % busy \(median\), the least busy 90 %\n`, `8 张 GPU（0\d:\d\d 前查看）：利用率中位数 92%，最低 90%`},
		"one does not":          {2 * time.Minute, []string{"n1:0"}, `the least busy 0 %\. 1 of 8 GPUs did nothing at any look for 30 min: n1:0\.`, `最低 0%。8 张 GPU 中有 1 张`},
		"nobody looks any more": {time.Hour, []string{"n1:0"}, `looked at 01:\d\d:\d\d ago: 92 % busy \(median\), the least busy 0 %\n`, `01:\d\d:\d\d 前查看`},
	} {
		t.Run(name, func(t *testing.T) {
			call, _ := sampledJob(t, c.ago, time.Hour, 70000, c.idle...)
			out, err := opstest.Do(t, call, jobcontrol.Status(), "79")
			require.NoError(t, err)
			require.Regexp(t, c.en, opstest.Text(t, out, lang.EN))
			require.Regexp(t, c.zh, opstest.Text(t, out, lang.ZH))
		})
	}
}

// The metrics of a job with idle GPUs warn of them; the metrics of several jobs do not,
// because the answer has no room to say whose they are.
func TestMetricsSayHowBusyTheGPUsAre(t *testing.T) {
	for name, tt := range map[string]struct {
		idle  []string
		words []string
		says  string
		tone  view.Tone
	}{
		"all work":     {nil, []string{"79"}, "8 GPUs, looked at", ""},
		"one does not": {[]string{"n1:0"}, []string{"79"}, "1 of 8 GPUs did nothing at any look for 30 min: n1:0.", view.Warn},
		"of several":   {nil, []string{"79", "79"}, "", ""},
	} {
		call, j := sampledJob(t, 2*time.Minute, time.Hour, 70000, tt.idle...)
		require.NoError(t, os.WriteFile(j.Stdout, []byte(" [2026-06-11 10:00:00.000000] iteration        1/     100 | elapsed time per iteration (ms): 4000.0 | lm loss: 2.5E+00 |\n"), 0o600))
		out, err := opstest.Do(t, call, joblogs.Metrics(), tt.words...)
		require.NoError(t, err)
		text := opstest.Text(t, out, lang.EN)
		require.Contains(t, text, tt.says, name)
		require.Equal(t, tt.says != "", strings.Contains(text, "looked at"), name)
		require.Equal(t, tt.tone, out.(joblogs.MetricsOut).View(lang.EN).Tone, name)
	}
}
