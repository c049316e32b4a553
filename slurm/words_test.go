package slurm

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/internal/lang"
)

func TestEveryOptionAndVariableIsSaidInBothLanguages(t *testing.T) {
	seen := map[string]bool{}
	for _, o := range optionMeanings {
		for _, name := range []string{"--" + o.Long, "-" + o.Short} {
			require.False(t, name != "-" && seen[name], "%s twice", name)
			seen[name] = true
		}
		require.NotEmpty(t, o.Says.EN, o.Long)
		require.Equal(t, lang.ZH, lang.Of(o.Says.ZH), o.Long)
	}
	for _, v := range variableMeanings {
		require.False(t, seen[v.Name], "%s twice", v.Name)
		seen[v.Name] = true
		require.NotEmpty(t, v.Says.EN, v.Name)
		require.Equal(t, lang.ZH, lang.Of(v.Says.ZH), v.Name)
		if v.With != "" {
			_, known := ExplainOption(v.With)
			require.True(t, known, "%s is set with %s", v.Name, v.With)
		}
	}
}

func TestOptionsAreFoundUnderTheirNames(t *testing.T) {
	for word, want := range map[string]string{
		"--nodes": "--nodes=MIN[-MAX], -N", "-N": "--nodes=MIN[-MAX], -N", "--nodes=2": "--nodes=MIN[-MAX], -N",
		"--tasks-per-node": "--ntasks-per-node=N", "--overlap": "--overlap", "-t": "--time=TIME, -t",
	} {
		o, ok := ExplainOption(word)
		require.True(t, ok, word)
		require.Equal(t, want, o.Usage(), word)
	}
	for _, word := range []string{"-", "--", "N", "nodes", "-Nn", ""} {
		_, ok := ExplainOption(word)
		require.False(t, ok, word)
	}
	v, ok := ExplainVariable("SLURM_JOBID")
	require.True(t, ok)
	require.Equal(t, "SLURM_JOB_ID", v.Name)
	v, _ = ExplainVariable("SLURM_GPUS_PER_NODE")
	require.Equal(t, "--gpus-per-node", v.With)
}
