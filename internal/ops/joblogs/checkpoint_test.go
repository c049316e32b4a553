package joblogs_test

import (
	"cmp"
	"encoding/json"
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
	"github.com/megatron-ops/megatron-ops/internal/store"
	"github.com/megatron-ops/megatron-ops/slurm"
	"github.com/megatron-ops/megatron-ops/slurm/job"
)

// localFilesSite is a site whose files this machine can read.
type localFilesSite struct{ *opstest.Site }

func (localFilesSite) Kind() string { return "cli" }

// TestAJobThatEndsBeforeItsNextCheckpointIsToldInTime uses a job of 16 GPUs with 40
// minutes left, one checkpoint each hour, and the last one five minutes ago.
func TestAJobThatEndsBeforeItsNextCheckpointIsToldInTime(t *testing.T) {
	for name, test := range map[string]struct {
		spec job.Spec
		late bool
		fix  string
	}{
		"told":           {job.Spec{}, true, "--save-interval"},
		"kill switch":    {job.Spec{KillSwitch: "/w/STOP"}, true, "killswitch on 7"},
		"saves at limit": {job.Spec{Signal: "USR1@300"}, false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			cl := &opstest.Site{}
			c := opstest.NewCall(t, cl)
			c.Clusters = map[string]ops.Cluster{"test": localFilesSite{cl}}
			dir := t.TempDir()
			opstest.SaveAt(t, dir, map[int]time.Duration{1000: 65 * time.Minute, 2000: 5 * time.Minute}, "2000")
			start, limit := time.Now().Add(-200*time.Minute), int64(240*60)
			j := slurm.Job{ID: "7", Name: "gpt", State: slurm.Running, GPUs: 16, StartedAt: &start, TimeLimitS: &limit, ElapsedS: 200 * 60, User: c.Who.User}
			cl.KnownJobs = map[slurm.JobID]slurm.Job{"7": j}
			test.spec.Args, test.spec.Worktree = []string{"--save", dir}, "/w"
			raw, err := json.Marshal(test.spec)
			require.NoError(t, err)
			st, err := c.Store()
			require.NoError(t, err)
			sub := store.Submission{Key: "k", Token: "k", Cluster: c.Default, Owner: c.Who.User, Name: "gpt", Spec: raw, CreatedAt: time.Now()}
			_, _, err = st.Begin(t.Context(), sub)
			require.NoError(t, err)
			require.NoError(t, st.Finish(t.Context(), "k", store.Submitted, "7", "", time.Now()))

			out, err := opstest.Do(t, c, jobcontrol.Status(), "7")
			require.NoError(t, err)
			o := out.(jobcontrol.StatusOut).Checkpoint
			require.NotNil(t, o)
			require.Equal(t, "2000", o.Iteration)
			require.InDelta(t, 5*60, *o.AgeS, 5)
			require.InDelta(t, 55*60, *o.NextS, 5)
			require.InDelta(t, 40*60, *o.LeftS, 5)
			require.InDelta(t, 16.0/12, o.GPUHours, 0.05)
			require.Equal(t, test.late, o.TooLate)
			require.Contains(t, opstest.Text(t, out, lang.EN), "iteration 2000, 5 min ago; 1.3 GPU hours would be lost now; the next is due in 55 min")
			require.Contains(t, opstest.Text(t, out, lang.ZH), "第 2000 次迭代，5 分钟 前")

			alarms, err := joblogs.Alarms(t.Context(), c, withCluster(j, c.Default))
			require.NoError(t, err)
			if !test.late {
				require.Empty(t, alarms)
				return
			}
			require.Len(t, alarms, 1)
			require.Contains(t, alarms[0].Says(lang.EN), "in 40 min, and the next checkpoint is due in 55 min: 12.0 GPU hours would be lost")
			require.Contains(t, alarms[0].Fix.EN, test.fix)
			require.NotEmpty(t, alarms[0].Notice(j).Title.ZH)
		})
	}
}

// status of a job that failed names the checkpoint from which another run goes on, what is
// lost since then, and the command.
func TestStatusOfAFailedJobNamesItsLastCheckpoint(t *testing.T) {
	for name, c := range map[string]struct {
		state        slurm.State
		saved        map[int]time.Duration
		user         string
		says, saysZH string
		resumes      bool
	}{
		"saved":           {slurm.Failed, map[int]time.Duration{1000: 65 * time.Minute, 2000: 35 * time.Minute}, "", "iteration 2000, 35 min ago; the 8.0 GPU hours since then are lost", "此后的 8.0 GPU 小时已损失", true},
		"nothing saved":   {slurm.Timeout, nil, "", "none; the 48.0 GPU hours are lost", "没有；48.0 GPU 小时已损失", false},
		"by a later run":  {slurm.NodeFail, map[int]time.Duration{2000: time.Minute}, "", "iteration 2000, 1 min ago; saved after this job had ended", "保存于该作业结束之后", false},
		"as it ended":     {slurm.Timeout, map[int]time.Duration{2000: 4 * time.Minute}, "", "iteration 2000, 4 min ago; the 0.0 GPU hours since then are lost", "此后的 0.0 GPU 小时已损失", true},
		"somebody else's": {slurm.Failed, map[int]time.Duration{2000: 35 * time.Minute}, "grace", "the 8.0 GPU hours since then are lost", "已损失", false},
		"completed":       {slurm.Completed, map[int]time.Duration{2000: 35 * time.Minute}, "", "", "", false},
	} {
		t.Run(name, func(t *testing.T) {
			cl := &opstest.Site{}
			call := opstest.NewCall(t, cl)
			call.Clusters = map[string]ops.Cluster{"test": localFilesSite{cl}}
			dir := t.TempDir()
			if c.saved != nil {
				opstest.SaveAt(t, dir, c.saved, "2000")
			}
			start, end := time.Now().Add(-185*time.Minute), time.Now().Add(-5*time.Minute)
			j := slurm.Job{ID: "7", Name: "gpt", State: c.state, GPUs: 16, StartedAt: &start, EndedAt: &end, ElapsedS: 180 * 60, User: cmp.Or(c.user, call.Who.User)}
			cl.KnownJobs = map[slurm.JobID]slurm.Job{"7": j}
			raw, err := json.Marshal(job.Spec{Worktree: "/w", Args: []string{"--load", "/base", "--finetune", "--save", dir}})
			require.NoError(t, err)
			st, err := call.Store()
			require.NoError(t, err)
			_, _, err = st.Begin(t.Context(), store.Submission{Key: "k", Token: "k", Cluster: call.Default, Owner: call.Who.User, Name: "gpt", Spec: raw, CreatedAt: start})
			require.NoError(t, err)
			require.NoError(t, st.Finish(t.Context(), "k", store.Submitted, "7", "", start))

			out, err := opstest.Do(t, call, jobcontrol.Status(), "7")
			require.NoError(t, err)
			text := opstest.Text(t, out, lang.EN)
			if c.says == "" {
				require.NotContains(t, text, "last checkpoint")
				return
			}
			require.Contains(t, text, c.says)
			require.Contains(t, opstest.Text(t, out, lang.ZH), c.saysZH)
			require.Equal(t, c.resumes, strings.Contains(text, "submit --from 7 --without finetune --command-line '--load "+dir+"'"), text)
			retry := store.Submission{Key: "k" + joblogs.RetryMark + "1", Token: "r", Cluster: call.Default, JobID: "8", Owner: call.Who.User, Spec: raw, CreatedAt: end}
			require.NoError(t, st.Adopt(t.Context(), retry))
			out, err = opstest.Do(t, call, jobcontrol.Status(), "7")
			require.NoError(t, err)
			require.NotContains(t, opstest.Text(t, out, lang.EN), "submit --from 7", "its retry goes on already")
		})
	}
}

func withCluster(j slurm.Job, name string) slurm.Job {
	j.Cluster = name
	return j
}

func TestResume(t *testing.T) {
	c := opstest.NewCall(t, &opstest.Site{})
	c.Clusters = map[string]ops.Cluster{"test": localFilesSite{&opstest.Site{}}}
	dir := t.TempDir()
	s := job.Spec{Args: []string{"--load", "/base", "--finetune", "--no-load-rng", "--save", dir, "--lr", "1e-4"}}
	same, _, ok := joblogs.ResumeSpec(t.Context(), c, s)
	require.False(t, ok, "nothing was saved yet")
	require.Equal(t, s.Args, same.Args, "it begins from its base again")
	bare, _, _ := joblogs.ResumeSpec(t.Context(), c, job.Spec{Args: []string{"--save", dir}})
	require.Equal(t, []string{"--save", dir, "--load", dir}, bare.Args)

	opstest.SaveAt(t, dir, map[int]time.Duration{40: time.Hour}, "40")
	on, last, ok := joblogs.ResumeSpec(t.Context(), c, s)
	require.True(t, ok)
	require.Equal(t, "40", last.Iteration)
	require.Equal(t, []string{"--save", dir, "--lr", "1e-4", "--load", dir}, on.Args)

	// A tracker that was written before its folder was complete is not trusted.
	require.NoError(t, os.WriteFile(filepath.Join(dir, "latest_checkpointed_iteration.txt"), []byte("80"), 0o644))
	on, last, ok = joblogs.ResumeSpec(t.Context(), c, s)
	require.True(t, ok)
	require.Equal(t, "40", last.Iteration)
	require.Equal(t, []string{"--load", dir, "--ckpt-step", "40"}, on.Args[len(on.Args)-4:])
}
