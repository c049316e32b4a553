package rules

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/knowledge/megatron"
)

// TestSourcesNameRules finds rules in sources.csv that do not exist any more. The
// file's columns are the releases from the oldest on. A release without a column has
// main's sources.
func TestSourcesNameRules(t *testing.T) {
	header, _, _ := strings.Cut(sourcesFile, "\n")
	columns := strings.Split(header, ",")[1:]
	for i, name := range columns {
		require.Equal(t, megatron.Releases()[i].String(), name)
	}
	for id, in := range sources() {
		_, ok := Explain(id)
		require.True(t, ok, "%s is no rule", id)
		require.Len(t, in, len(columns), id)
	}
	for _, r := range table() {
		if r.until != 0 {
			_, listed := sources()[r.id]
			require.True(t, listed, "%s is gone from the newest release, and sources.csv does not say where it was", r.id)
		}
	}
}

func TestRulesApplyToTheirReleasesOnly(t *testing.T) {
	groups := "--num-query-groups 2 --group-query-attention --tensor-model-parallel-size 8"
	for _, c := range []struct {
		name, rule, edits string
		refused           []megatron.Release
	}{
		{"query groups that divide TP", "query-groups-fit-tp", groups, []megatron.Release{megatron.V015}},
		{"a ramp-up with --train-iters", "ramp-up-needs-samples", "--rampup-batch-size 32 32 100000", []megatron.Release{megatron.V015, megatron.V016, megatron.V017}},
		{"evaluation batch", "eval-batch-divisible", "--eval-global-batch-size 33", []megatron.Release{megatron.V018, megatron.V019, megatron.Main}},
		{"NCCL_ALGO unset", "deterministic-nccl-algo-set", "--deterministic-mode", []megatron.Release{megatron.V015, megatron.V016, megatron.V017, megatron.V018}},
		{"Muon overlaps", "muon-no-grad-overlap", "--optimizer muon --overlap-grad-reduce", []megatron.Release{megatron.V016, megatron.V017}},
		{"dist_muon overlaps", "muon-no-grad-overlap", "--optimizer dist_muon --overlap-grad-reduce", []megatron.Release{megatron.V016}},
		{"lion", "optimizer-kind", "--optimizer lion", []megatron.Release{megatron.V017}},
	} {
		d := newDraft(bases["dense"])
		d.edit(c.edits)
		for _, release := range []megatron.Release{megatron.V015, megatron.V016, megatron.V017, megatron.V018, megatron.V019, megatron.Main} {
			run := d.carried("", "", true, "")
			v := Check(megatron.Run{Entry: run.Entry, Argv: run.Argv, WorldSize: run.World, Arch: run.Arch, Env: run.Env, Release: release})
			told := slices.ContainsFunc(v.Problems, func(p Problem) bool { return p.Rule == c.rule })
			require.Equal(t, slices.Contains(c.refused, release), told, "%s in %s", c.name, release)
		}
	}
}

func TestSourceIsTheReleasesOwn(t *testing.T) {
	run := megatron.Run{Argv: strings.Fields("--num-layers 4"), WorldSize: 8, Arch: 9, Release: megatron.V017}
	for _, p := range Check(run).Problems {
		if p.Rule == "hidden-size-given" {
			rule, _ := Explain(p.Rule)
			require.NotEqual(t, rule.Source, p.Source)
			require.True(t, strings.HasPrefix(p.Source, "megatron/training/arguments.py:"), p.Source)
			return
		}
	}
	t.Fatal("--hidden-size is not asked for")
}

func TestUnknownFlagNamesItsReleases(t *testing.T) {
	for _, c := range []struct {
		release               megatron.Release
		flag, message, fix    string
		messageZH, fixChinese string
	}{
		{megatron.V016, "--hybrid-layer-pattern", "Megatron 0.16.1 has no flag --hybrid-layer-pattern: it came with 0.17.1", "leave it out, or use Megatron 0.17.1 or later", "该参数自 0.17.1 起才有", "0.17.1"},
		{megatron.Main, "--moe-extended-tp", "Megatron has no flag --moe-extended-tp: 0.16.1 was the last release with it", "use --expert-tensor-parallel-size", "0.16.1 是最后一个支持它的版本", "改用 --expert-tensor-parallel-size"},
		{megatron.V018, "--use-legacy-models", "Megatron 0.18.2 has no flag --use-legacy-models: 0.17.1 was the last release with it", "leave it out", "最后一个", "去掉该参数"},
		{megatron.V018, "--num-layer", "Megatron 0.18.2 has no flag --num-layer", "use --num-layers", "没有参数", "改用 --num-layers"},
		{megatron.Main, "--our-own", "Megatron has no flag --our-own", "remove it; if your copy of Megatron-LM adds it, name it in extra_flags", "没有参数", "写进 extra_flags"},
		{megatron.Main, "--activations-checkpoint-method", "Megatron has no flag --activations-checkpoint-method", "use --recompute-method", "没有参数", "改用 --recompute-method"},
	} {
		run := megatron.Run{Argv: []string{c.flag, "1"}, WorldSize: 8, Arch: 9, Release: c.release}
		p := Check(run).Problems[0]
		require.Equal(t, c.message, p.Message)
		require.Contains(t, p.Fix, c.fix)
		p = CheckIn(run, lang.ZH).Problems[0]
		require.Contains(t, p.Message, c.messageZH)
		require.Contains(t, p.Fix, c.fixChinese)
	}
}

func TestExtraFlagsAreNotJudged(t *testing.T) {
	run := megatron.Run{Argv: strings.Fields("--our-own 3 4 --num-layers 4"), WorldSize: 8, Arch: 9}
	told := func(v Verdict) bool {
		return slices.ContainsFunc(v.Problems, func(p Problem) bool { return p.Rule == "unknown-flag" })
	}
	require.True(t, told(Check(run)))
	run.Extra = []string{"--our-own"}
	require.False(t, told(Check(run)))
}

func TestBatchJudgesByTheRelease(t *testing.T) {
	line := func(version string) string {
		return string(Batch([]byte(`{"id":1,"argv":["--use-legacy-models"],"world_size":8,"megatron":` + version + `}`)))
	}
	require.NotContains(t, line(`"0.17.1"`), "unknown-flag")
	require.NotContains(t, line(`"core_v0.16.1"`), "unknown-flag")
	require.Contains(t, line(`"main"`), "unknown-flag")
	require.Contains(t, line(`null`), "unknown-flag")
	require.Contains(t, line(`"nonsense"`), `"field":"megatron"`)
	require.Contains(t, line(`17`), `"field":"megatron"`)
}
