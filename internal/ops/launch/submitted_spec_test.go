package launch

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/ops/opstest"
	"github.com/megatron-ops/megatron-ops/knowledge/megatron"
	"github.com/megatron-ops/megatron-ops/slurm"
	"github.com/megatron-ops/megatron-ops/slurm/job"
)

// A job is submitted again with one flag changed, one left out and one variable added;
// everything else stays as it was.
func TestAJobIsSubmittedAgainWithChanges(t *testing.T) {
	s := &opstest.Site{KnownJobs: map[slurm.JobID]slurm.Job{}}
	c := opstest.NewCall(t, s)
	_, err := opstest.Do(t, c, Submit(), append([]string{"--yes", "--env", "A=1"}, append(slices.Clone(opstest.GoodJob), "--no-rope-fusion")...)...)
	require.NoError(t, err)

	again := []string{
		"--from", "4701", "--yes", "--time", "2:00:00", "--env", "B=2", "--without", "A", "--without", "no-rope-fusion",
		"--", "--micro-batch-size", "1",
	}
	planned, err := opstest.Do(t, c, Plan(), slices.Concat(again[:2], again[3:])...)
	require.NoError(t, err)
	require.False(t, planned.(PlanOut).Found())
	_, err = opstest.Do(t, c, Submit(), again...)
	require.NoError(t, err)
	script := s.Submitted[1].Script
	for _, kept := range []string{"--job-name=gpt", "--nodes=2", "--num-layers 24", "--time=2:00:00", "B=2", "--micro-batch-size 1"} {
		require.Contains(t, script, kept)
	}
	for _, gone := range []string{"A=1", "--no-rope-fusion", "--micro-batch-size 2"} {
		require.NotContains(t, script, gone)
	}

	_, err = opstest.Do(t, c, Plan(), "--from", "4701", "--without", "no-rope-fusoin")
	require.Equal(t, "without", ops.AsError(err).Field)
	require.Equal(t, ops.BadInput, ops.AsError(err).Code)
	require.Contains(t, ops.AsError(err).Fix.EN, "--no-rope-fusion, A", "what may be left out")

	c.Who = ops.Caller{Surface: ops.MCPHTTP, ID: "bob", User: "bob"}
	for _, op := range []ops.Op{Plan(), Render()} {
		_, err = opstest.Do(t, c, op, "--from", "4701")
		require.ErrorContains(t, err, "is its owner's", op.Name)
	}
	c.Who.User = ""
	_, err = opstest.Do(t, c, Render(), "--from", "4701")
	require.ErrorContains(t, err, "is its owner's", "nobody on the cluster is not the owner")
	_, err = opstest.Do(t, c, Render(), "--from", "99")
	require.ErrorContains(t, err, "not known")
}

// Errors of the plan and a script other than the agreed one stop a submission; only the errors
// yield to force.
func TestWhatStopsASubmission(t *testing.T) {
	s := &opstest.Site{}
	c := opstest.NewCall(t, s)
	wrong := append(slices.Clone(opstest.GoodJob), "--num-query-groups", "3", "--group-query-attention")
	out, err := opstest.Do(t, c, Submit(), append([]string{"--yes"}, wrong...)...)
	require.NoError(t, err)
	require.Contains(t, out.(SubmitOut).Refused, "the plan has errors: ")
	require.True(t, out.(SubmitOut).Found())
	c.Agreed = strings.Repeat("0", 64)
	_, err = opstest.Do(t, c, Submit(), append([]string{"--yes", "--force"}, wrong...)...)
	require.Equal(t, ops.NotAllowed, ops.AsError(err).Code)
	require.ErrorContains(t, err, "the script is not the one that was agreed to")
	require.Empty(t, s.Submitted)
	c.Agreed = ""
	_, err = opstest.Do(t, c, Submit(), append([]string{"--yes", "--force"}, wrong...)...)
	require.NoError(t, err)
	require.Len(t, s.Submitted, 1)
}

// An array keeps its limit of tasks at a time; a sweep that replaces another counts its
// own points.
func TestAnArrayIsSubmittedAgainWithItsLimit(t *testing.T) {
	s := &opstest.Site{KnownJobs: map[slurm.JobID]slurm.Job{}}
	c := opstest.NewCall(t, s)
	for _, words := range [][]string{
		append([]string{"--yes", "--array", "1-10%2"}, opstest.GoodJob...),
		{"--yes", "--from", "4701", "--time", "2:00:00"},
		{"--yes", "--from", "4701", "--array", "1-3"},
		append([]string{"--yes", "--array", "0-1%1", "--sweep", "lr=1e-4,3e-4"}, opstest.GoodJob...),
		{"--yes", "--from", "4704", "--sweep", "lr=1e-4,2e-4,3e-4"},
		{"--yes", "--from", "4704", "--sweep", "lr=1e-4,2e-4,3e-4", "--array", "0-2%3"},
		{"--yes", "--from", "4701", "--sweep", "lr=1e-4,3e-4"},
	} {
		_, err := opstest.Do(t, c, Submit(), words...)
		require.NoError(t, err, words)
	}
	var arrays []string
	for _, sub := range s.Submitted {
		_, rest, _ := strings.Cut(sub.Script, "#SBATCH --array=")
		array, _, _ := strings.Cut(rest, "\n")
		arrays = append(arrays, array)
	}
	require.Equal(t, []string{"1-10%2", "1-10%2", "1-3", "0-1%1", "0-2%1", "0-2%3", "0-1%2"}, arrays)
	_, err := opstest.Do(t, c, Submit(), "--yes", "--from", "4704", "--sweep", "lr=1e-4,2e-4,3e-4", "--array", "0-5")
	require.ErrorContains(t, err, "does not count the 3 points")
}

// A patch as shell words, applied to the failed job, gives the specification of the
// remedy.
func TestAPatchMakesWhatTheRemedyMade(t *testing.T) {
	s := &opstest.Site{KnownJobs: map[slurm.JobID]slurm.Job{}}
	c := opstest.NewCall(t, s)
	_, err := opstest.Do(t, c, Submit(), append([]string{"--yes", "--env", "A=1"}, opstest.GoodJob...)...)
	require.NoError(t, err)
	before, err := SubmittedSpec(t.Context(), c, "test", "4701")
	require.NoError(t, err)
	yes, port := true, 24711
	for name, change := range map[string]func(*job.Spec){
		"a flag": func(s *job.Spec) {
			s.Args = append(megatron.WithoutFlags(s.Args, []string{"--micro-batch-size"}), "--micro-batch-size", "1")
		},
		"a flag more":         func(s *job.Spec) { s.Args = append(s.Args, "--load", "/a path/it's") },
		"a flag less":         func(s *job.Spec) { s.Args = megatron.WithoutFlags(s.Args, []string{"--lr"}) },
		"a variable":          func(s *job.Spec) { s.Env = map[string]string{"A": "2", "B": "x y"} },
		"a variable less":     func(s *job.Spec) { s.Env = nil },
		"fields of the job":   func(s *job.Spec) { s.Exclusive, s.Mem, s.MasterPort = &yes, "0", &port },
		"nodes to stay clear": func(s *job.Spec) { s.Exclude = "gpu[1-2]" },
	} {
		after := before
		after.Args, after.Env = slices.Clone(before.Args), maps.Clone(before.Env)
		change(&after)
		patch, ok := PatchOf("4701", before, after)
		require.True(t, ok, name)
		words, err := megatron.SplitWords(patch.Command())
		require.NoError(t, err, name)
		in := &SubmitIn{}
		op := Submit()
		require.NoError(t, op.Words(in, words[1:]), "%s: %v", name, words)
		got, err := Resolve(c, in.SpecIn)
		require.NoError(t, err, name)
		require.ElementsMatch(t, flagGroups(after.Args), flagGroups(got.Args), name)
		got.Args, after.Args = nil, nil
		if len(after.Env)+len(got.Env) == 0 {
			got.Env, after.Env = nil, nil
		}
		require.Equal(t, after, got, name)
	}
	_, ok := PatchOf("4701", before, job.Spec{Args: before.Args})
	require.False(t, ok, "a patch cannot empty a field")
}

// A job that waits in the queue again is changed there where nothing but nodes are to be left
// out; any other change takes a new job in its place.
func TestHowAWaitingJobIsMended(t *testing.T) {
	for _, tt := range []struct {
		patch SpecPatch
		want  []string
	}{
		{SpecPatch{From: "7", Spec: job.Spec{Exclude: "gpu[1-2]"}}, []string{"update 7 --exclude 'gpu[1-2]'"}},
		{SpecPatch{From: "7", Spec: job.Spec{Exclude: "gpu1", Time: "1:00:00"}}, []string{"cancel 7", `submit --from 7 --yaml '{"time":"1:00:00","exclude":"gpu1"}'`}},
		{SpecPatch{From: "7", Spec: job.Spec{Exclude: "gpu1"}, Without: []string{"--bf16"}}, []string{"cancel 7", `submit --from 7 --without bf16 --yaml '{"exclude":"gpu1"}'`}},
		{SpecPatch{From: "7", Spec: job.Spec{Args: []string{"--lr", "1e-4"}}}, []string{"cancel 7", "submit --from 7 --command-line '--lr 1e-4'"}},
	} {
		require.Equal(t, tt.want, tt.patch.CommandsInQueue())
	}
}
