package joblogs

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/ops/launch"
	"github.com/megatron-ops/megatron-ops/internal/ops/opstest"
	"github.com/megatron-ops/megatron-ops/slurm"
)

// TestCompareSetsAFailedRunBesideTheLastGoodOne uses two submissions of one name that
// differ in everything that compare looks at.
func TestCompareSetsAFailedRunBesideTheLastGoodOne(t *testing.T) {
	s := &opstest.Site{KnownJobs: map[slurm.JobID]slurm.Job{}}
	c := opstest.NewCall(t, s)
	submit := func(words ...string) slurm.JobID {
		out, err := opstest.Do(t, c, launch.Submit(), append([]string{"--yes", "--force"}, words...)...)
		require.NoError(t, err)
		return *out.(launch.SubmitOut).JobID
	}
	changed := append([]string{"--env", "NCCL_IB_DISABLE=1", "--container-image", "nvcr.io#nvidia/pytorch:25.04-py3", "--container-runtime", "pyxis"}, opstest.GoodJob...)
	good, bad := submit(opstest.GoodJob...), submit(append(changed, "--seed", "7")...)
	dir := t.TempDir()
	for id, said := range map[slurm.JobID]string{
		good: "start: attempt=0 node=0 host=gpu1 ranks=0-7 commit=aaaa dirty=0 argv=1 env=1\n  micro_batch_size ................................ 2\ngpu1:1:2 [0] NCCL INFO x\nall is well\n",
		bad:  "start: attempt=0 node=0 host=gpu9 ranks=0-7 commit=bbbb dirty=0 argv=2 env=2\n  micro_batch_size ................................ 4\ngpu9:1:2 [0] NCCL INFO x\nWARNING: the link of mlx5_3 trains at 100 Gb/s\nRuntimeError: no\n",
	} {
		log := filepath.Join(dir, "gpt-"+string(id)+".out")
		require.NoError(t, os.WriteFile(log, []byte(said), 0o600))
		state := slurm.Completed
		if id == bad {
			state = slurm.Failed
		}
		s.KnownJobs[id] = slurm.Job{ID: id, Name: "gpt", User: "alice", State: state, Stdout: log, WorkDir: dir}
	}
	out, err := opstest.Do(t, c, Compare(), string(bad))
	require.NoError(t, err)
	o := out.(CompareOut)
	require.Equal(t, string(good), o.Good, "the last of the same name that completed")
	fields := map[string]bool{}
	for _, ch := range o.Changes {
		fields[ch.Field] = true
	}
	require.True(t, fields["env.NCCL_IB_DISABLE"] || fields["env"], "%+v", o.Changes)
	require.True(t, fields["container.image"], "%+v", o.Changes)
	require.True(t, fields["args"] || fields["args.--seed"], "%+v", o.Changes)
	require.Contains(t, o.Script, "NCCL_IB_DISABLE=1")
	require.Equal(t, "micro_batch_size", o.Arguments[0].Name)
	starts := map[string]string{}
	for _, ch := range o.Start {
		starts[ch.Name] = ch.Good + "→" + ch.Bad
	}
	require.Equal(t, map[string]string{"commit": "aaaa→bbbb", "argv": "1→2"}, starts)
	require.Equal(t, []string{"gpu9"}, o.Nodes)
	require.Contains(t, o.New[0].Text, "trains at 100 Gb/s")
	require.NotEmpty(t, opstest.Text(t, o, lang.ZH))
	_, err = opstest.Do(t, c, Compare(), string(good))
	require.ErrorContains(t, err, "no earlier run of the same name")
}

// Logs can also be compared by their paths; an error says why something cannot be
// compared.
func TestWhatCanBeCompared(t *testing.T) {
	dir := t.TempDir()
	good, bad := filepath.Join(dir, "good.out"), filepath.Join(dir, "bad.out")
	require.NoError(t, os.WriteFile(good, []byte("all is well\n"), 0o600))
	require.NoError(t, os.WriteFile(bad, []byte("RuntimeError: no\n"), 0o600))
	s := &opstest.Site{KnownJobs: map[slurm.JobID]slurm.Job{"7": {ID: "7", User: "alice", State: slurm.Failed, Stdout: filepath.Join(dir, "x-7.out")}}}
	for name, tt := range map[string]struct {
		words []string
		shows string
		code  ops.Code
		says  string
	}{
		"two logs":                 {[]string{bad, good}, "RuntimeError: no", "", ""},
		"one log alone":            {[]string{bad}, "", ops.BadInput, "there is no earlier run of the same name that completed"},
		"a log that is not there":  {[]string{bad, filepath.Join(dir, "none.out")}, "", ops.BadInput, "none.out"},
		"a job that left no log":   {[]string{"7", good}, "", ops.NotFound, "no log was found at"},
		"a job that nobody knows":  {[]string{"8", good}, "", ops.NotFound, "8"},
		"a job of somebody's hand": {[]string{"7"}, "", ops.NotFound, "7"},
	} {
		out, err := opstest.Do(t, opstest.NewCall(t, s), Compare(), tt.words...)
		if tt.code != "" {
			require.ErrorContains(t, err, tt.says, name)
			require.Equal(t, tt.code, ops.AsError(err).Code, "%s: %v", name, err)
			continue
		}
		require.NoError(t, err, name)
		text := opstest.Text(t, out, lang.EN)
		require.Contains(t, text, tt.shows, name)
		require.NotContains(t, text, "specification", "it is known of neither")
	}
}
