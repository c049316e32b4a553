package launch

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/ops/opstest"
	"github.com/megatron-ops/megatron-ops/knowledge/rules"
	"github.com/megatron-ops/megatron-ops/slurm/job"
)

// smallModel is a model that every release would start.
var smallModel = []string{
	"--num-layers", "4", "--hidden-size", "128", "--num-attention-heads", "4", "--seq-length", "64", "--max-position-embeddings", "64",
	"--micro-batch-size", "1", "--global-batch-size", "8", "--lr", "1e-4", "--train-iters", "10", "--bf16", "--ckpt-format", "torch",
	"--mock-data", "--tokenizer-type", "NullTokenizer", "--vocab-size", "1000",
}

// worktreeOf returns a checkout of that version.
func worktreeOf(t *testing.T, major, minor, patch string) string {
	dir := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "megatron/core"), 0o755))
	text := "MAJOR = " + major + "\nMINOR = " + minor + "\nPATCH = " + patch + "\nPRE_RELEASE = ''\n"
	require.NoError(t, os.WriteFile(filepath.Join(dir, "megatron/core/package_info.py"), []byte(text), 0o644))
	return dir
}

func planned(t *testing.T, c *ops.Call, words ...string) PlanOut {
	out, err := opstest.Do(t, c, Plan(), words...)
	require.NoError(t, err)
	return out.(PlanOut)
}

func refuses(o PlanOut, rule, field string) bool {
	for _, p := range o.Problems {
		if p.Rule == rule && p.Field == field && p.Severity == rules.Error {
			return true
		}
	}
	return false
}

func TestPlanJudgesByTheWorktreesRelease(t *testing.T) {
	c := opstest.NewCall(t, &opstest.Site{OfKind: "cli"})
	words := func(minor string) []string {
		return append([]string{"--worktree", worktreeOf(t, "0", minor, "1"), "--gpu", "h100", "--"}, append(smallModel, "--use-legacy-models")...)
	}
	old := planned(t, c, words("17")...)
	require.True(t, old.OK)
	require.Equal(t, "0.17.1", old.Megatron.Release)
	require.Equal(t, "worktree", old.Megatron.From)
	require.Contains(t, opstest.Text(t, old, lang.EN), "package_info.py says 0.17.1")
	newer := planned(t, c, words("19")...)
	require.True(t, refuses(newer, "unknown-flag", "--use-legacy-models"))
	require.Contains(t, newer.Problems[0].Message, "0.17.1 was the last release with it")
	told := planned(t, c, append([]string{"--megatron", "0.16.1"}, words("19")...)...)
	require.True(t, told.OK, "the specification wins")
}

func TestPlanAgainstTellsWhatAnUpgradeBreaks(t *testing.T) {
	c := opstest.NewCall(t, &opstest.Site{OfKind: "cli"})
	words := append([]string{"--worktree", worktreeOf(t, "0", "17", "1"), "--against", "main", "--"}, append(smallModel, "--use-legacy-models")...)
	out := planned(t, c, words...)
	require.True(t, out.OK)
	require.False(t, out.Against.OK)
	require.Equal(t, "--use-legacy-models", out.Against.New[0].Field)
	for l, says := range map[lang.Lang]string{lang.EN: "Megatron-LM main would refuse it", lang.ZH: "Megatron-LM main 会拒绝启动"} {
		require.Contains(t, opstest.Text(t, out, l), says)
	}
	both := opstest.Text(t, planned(t, c, append([]string{"--megatron", "0.18.2"}, words...)...), lang.EN)
	require.Contains(t, both, "Megatron-LM main would refuse it as well\nits verdict on these arguments is the same")
	back := append([]string{"--worktree", worktreeOf(t, "0", "15", "3"), "--against", "0.17.1", "--"}, append(smallModel, "--moe-latent-size", "64")...)
	text := opstest.Text(t, planned(t, c, back...), lang.EN)
	require.Contains(t, text, "Megatron-LM 0.17.1 would refuse it as well")
	require.Contains(t, text, "new: --moe-latent-size: the model must have experts")
	require.Contains(t, text, "no longer: --moe-latent-size: Megatron 0.15.3 has no flag")
	_, err := opstest.Do(t, c, Plan(), "--worktree", "/w", "--against", "bananas")
	require.Equal(t, "against", ops.AsError(err).Field)
}

func TestFlagsOfAForkArePassedOn(t *testing.T) {
	c := opstest.NewCall(t, &opstest.Site{})
	own := append(append([]string{"--worktree", "/w", "--gpu", "h100"}, "--"), append(smallModel, "--our-own", "3")...)
	require.True(t, refuses(planned(t, c, own...), "unknown-flag", "--our-own"))
	require.True(t, planned(t, c, append([]string{"--extra-flags=--our-own"}, own...)...).OK)
	c.Sites = func(string) job.Site { return job.Site{ExtraFlags: []string{"--our-own"}, Megatron: "0.18.2"} }
	out := planned(t, c, own...)
	require.True(t, out.OK)
	require.Equal(t, "configuration", out.Megatron.From)
	for _, op := range []ops.Op{Memory(), Recommend()} {
		_, err := opstest.Do(t, c, op, own...)
		require.NoError(t, err, op.Name)
	}
	script, err := opstest.Do(t, c, Render(), own...)
	require.NoError(t, err)
	require.Contains(t, script.(RenderOut).Script, "--our-own")
}
