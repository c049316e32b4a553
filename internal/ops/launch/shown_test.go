package launch

import (
	"flag"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/ops/opstest"
	"github.com/megatron-ops/megatron-ops/knowledge/megatron"
	"github.com/megatron-ops/megatron-ops/knowledge/recipes"
	"github.com/megatron-ops/megatron-ops/knowledge/rules"
	"github.com/megatron-ops/megatron-ops/slurm"
	"github.com/megatron-ops/megatron-ops/slurm/cluster"
	"github.com/megatron-ops/megatron-ops/slurm/job"
	"github.com/megatron-ops/megatron-ops/slurm/lint"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// The answers are pinned in both languages.
func TestAnswersAreShownAsTheyAre(t *testing.T) {
	t.Parallel()
	id, at := slurm.JobID("7"), time.Unix(0, 0).UTC()
	problems := []rules.Problem{
		{Rule: "a-note", Field: "args", Severity: rules.Note, Message: "noted"},
		{Rule: "a-warning", Field: "nodes", Severity: rules.Warning, Message: "warned", Fix: "do it", Effect: rules.PerformanceOnly, Source: "train.py:7"},
		{Rule: "an-error", Field: "gpu", Severity: rules.Error, Message: "wrong", Fix: "mend it", Effect: rules.ChangesExperiment, Follows: "another"},
		{Rule: "an-error", Field: "time", Severity: rules.Error, Message: "wrong", Fix: "mend it"},
	}
	layout := rules.Option{
		MicroBatch: 2, Microbatches: 8, Recompute: "selective", TFLOPs: 400, Low: 300, High: 500,
		Flags: []string{"--a", "b c"}, Reasons: []lang.Text{{EN: "why", ZH: "原因"}},
	}
	bare := layout
	bare.High = 0
	const gib = 1 << 30
	parts := megatron.Memory{Bytes: 20 * gib, Parts: []megatron.MemoryPart{{Name: megatron.PartParameters, Bytes: 15.1 * gib}, {Name: "other", Bytes: 4.9 * gib}}}
	files := make([]cluster.TreeChange, maxShown+2)
	for i := range files {
		files[i] = cluster.TreeChange{Path: "f" + string(rune('a'+i)), Bytes: int64(i)}
	}
	opstest.Pinned(t, *update, []opstest.Answer{
		{Name: "changes", Out: DiffOut{From: "1", To: "2", Changes: []job.Change{{Field: "nodes", Old: "1", New: "2"}}, Script: "-a\n+b\n"}},
		{Name: "no changes", Out: DiffOut{From: "1", To: "2"}},
		{Name: "imported", Out: ImportOut{Specs: []string{"name: a\n"}, notes: []string{"3: FOO: unknown"}}},
		{Name: "imported whole", Out: ImportOut{Specs: []string{"name: a\n", "name: b\n"}}},
		{Name: "commands", Out: ImageOut{Steps: []ImageStep{{Does: "build it", Command: "docker build ."}}}},
		{Name: "a script without faults", Out: LintOut{Name: "run.sh"}},
		{Name: "a script with faults", Out: LintOut{Name: "run.sh", Findings: []lint.Finding{
			{Line: 3, Severity: rules.Error, Message: "wrong", Fix: "mend it", Rule: "a-rule"}, {Line: 4, Severity: rules.Warning, Message: "odd", Rule: "b-rule"},
		}}},
		{Name: "a mended script", Out: LintOut{Name: "run.sh", Applied: []lint.Finding{{Line: 3, Fix: "mended so", Rule: "a-rule"}}}},
		{Name: "layouts", Out: RecommendOut{Considered: 9, Legal: 4, Options: []rules.Option{layout, bare}}},
		{Name: "no layout", Out: RecommendOut{GPUGiB: 80, SmallestGiB: 99.5}},
		{Name: "memory", Out: MemoryOut{Memory: parts, TotalGiB: 20, LowGiB: 18, HighGiB: 22}},
		{Name: "memory of a GPU", Out: MemoryOut{Memory: parts, TotalGiB: 20, LowGiB: 18, HighGiB: 22, GPU: "x", GPUGiB: 16}},
		{Name: "no memory", Out: MemoryOut{Memory: megatron.Memory{Parts: []megatron.MemoryPart{{Name: megatron.PartLogits}}}, GPUGiB: 16}},
		{Name: "models", Out: RecipesOut{Models: []recipes.Model{
			{Name: "a", Runs: []recipes.Run{{GPU: "h100", GPUs: 8, Type: "bf16", Batch: 64, TFLOPS: 468.4, Source: "one"}, {GPU: "gb200", GPUs: 16, Source: "one"}, {Source: "two"}}}, {Name: "b"},
		}}},
		{Name: "a model", Out: RecipesOut{Models: []recipes.Model{{Name: "b", Source: "its page"}}, Args: []string{"--num-layers", "2"}}},
		{Name: "a model's job", Out: RecipesOut{Models: []recipes.Model{{Name: "b"}}, Spec: "name: b\n", Script: "#!/bin/bash\n", Published: true}},
		{Name: "a model's larger job", Out: RecipesOut{Models: []recipes.Model{{Name: "b"}}, Spec: "name: b\n"}},
		{Name: "a script", Out: RenderOut{Script: "#!/bin/bash\n", Warnings: []string{"odd"}}},
		{Name: "submitted", Out: SubmitOut{JobID: &id, Name: "gpt", Cluster: "here", LogPaths: []string{"/w/7.out"}, Page: "https://ops/7", elsewhere: " --cluster here"}},
		{Name: "submitted before", Out: SubmitOut{JobID: &id, Name: "gpt", Cluster: "here", AlreadySubmitted: true}},
		{Name: "not submitted", Out: SubmitOut{Name: "gpt", Problems: problems}},
		{Name: "a dry run", Out: SubmitOut{Name: "gpt", DryRun: true, Script: "#!/bin/bash\n", Problems: problems[:2], Earlier: &EarlierOut{}}},
		{Name: "planned", Out: PlanOut{
			OK: true, Name: "gpt", Nodes: 1, WorldSize: 8, judged: true,
			Derived: map[string]any{"data_parallel_size": 2, "global_batch_size": nil, "other": 1},
		}},
		{Name: "not judged", Out: PlanOut{OK: true, Name: "gpt", Nodes: 2, WorldSize: 1}},
		{Name: "planned with a warning", Out: PlanOut{OK: true, Name: "gpt", Nodes: 1, WorldSize: 8, judged: true, Problems: problems[:2]}},
		{Name: "not judged, with warnings", Out: PlanOut{OK: true, Name: "gpt", Nodes: 2, WorldSize: 1, Problems: []rules.Problem{problems[1], problems[1]}}},
		{Name: "refused", Out: PlanOut{Name: "gpt", Nodes: 2, WorldSize: 16, judged: true, Problems: problems, Derived: map[string]any{"data_parallel_size": 2}}},
		{Name: "not ready", Out: PlanOut{
			OK: true, Name: "gpt", Problems: problems[2:3],
			Read: []job.Note{{Line: 3, What: "$A", Why: lang.Text{EN: "hidden", ZH: "看不出"}}, {What: "B", Why: lang.Same("b")}},
		}},
		{Name: "another release says the same", Out: PlanOut{OK: true, judged: true, Against: &Upgrade{Release: "0.1", OK: true, was: true}}},
		{Name: "another release refuses", Out: PlanOut{OK: true, judged: true, Against: &Upgrade{Release: "0.1", was: true, New: problems[3:]}}},
		{Name: "another release starts it", Out: PlanOut{judged: true, Against: &Upgrade{Release: "0.1", OK: true, Gone: problems[3:]}}},
		{Name: "another release refuses too", Out: PlanOut{judged: true, Against: &Upgrade{Release: "0.1"}}},
		{Name: "as it is here", Out: SyncOut{Cluster: "far", To: "/w", Same: 3}},
		{Name: "brought", Out: SyncOut{
			Cluster: "far", To: "/w", Brought: true, Bytes: 3000,
			Added: files, Changed: []cluster.TreeChange{{Path: "a\tb", EditedThere: true}}, Deleted: []cluster.TreeChange{{Path: "c", Bytes: 9, EditedThere: true}},
		}},
		{Name: "differs", Out: SyncOut{
			Cluster: "far", To: "/w", Changed: files[:maxShown], Unfinished: "then",
			LeftOut: []string{"a", "b"}, Jobs: []slurm.JobID{"7", "8"},
		}},
		{Name: "nothing differs", Out: SyncOut{Cluster: "far", To: "/w", Jobs: []slurm.JobID{"7"}}},
		{Name: "sooner", Out: SubmitOut{
			Name: "gpt", DryRun: true,
			Earlier: &EarlierOut{AsItIs: &at, Options: []EarlierStep{{Nodes: 1, Start: at}, {TimeLimitS: 1800, Start: at}, {TimeLimitS: 3600, Start: at}}},
		}},
	}, Diff(), Import(), Image(), Lint(), Plan(), Recipes(), Recommend(), Memory(), Render(), Submit(), Sync())
}

func TestTheSmallestChangeThatBringsAJobInSoonest(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 6, 11, 10, 0, 0, 0, time.UTC)
	for want, o := range map[string]*EarlierOut{
		"": nil,
		"As requested, its start is unknown; with `update 7 --nodes 1` it would start at 2026-06-11 10:00:00.": {Options: []EarlierStep{{Nodes: 1, Start: at}, {Nodes: 2, Start: at.Add(-30 * time.Second)}}},
		"As requested, it would start at 2026-06-11 10:00:00; `update 7 --time 00:30:00` brings that to 2026-06-11 08:00:00.": {
			AsItIs: &at, Options: []EarlierStep{{Nodes: 1, Start: at.Add(-time.Hour)}, {TimeLimitS: 1800, Start: at.Add(-2 * time.Hour)}},
		},
	} {
		require.Equal(t, want, o.Says("7").EN)
		require.Equal(t, want == "", o.Says("7").ZH == "")
	}
	none := (&EarlierOut{AsItIs: &at}).Section("7", lang.EN)
	require.Empty(t, none.Heading, "nothing is earlier")
	require.Equal(t, "Neither half nor a quarter of its time or nodes would start it sooner. As requested: 2026-06-11 10:00:00", none.Text)
	require.Contains(t, (&EarlierOut{Options: []EarlierStep{{TimeLimitS: 3600, Start: at}}}).Section("7", lang.EN).Items[0], "update 7 --time 01:00:00")
	require.Empty(t, (*EarlierOut)(nil).Says("7").EN)
}

// A job's code in one line.
func TestTheCodeOfAJobIsToldInOneLine(t *testing.T) {
	t.Parallel()
	for want, of := range map[string]cluster.GitSource{
		"commit 0123456789ab":                          {Commit: "0123456789abcdef"},
		"no git repository":                            {},
		"commit 01, changed: +2 −1 lines, 1 untracked": {Commit: "01", Changed: true, Diff: "--- a\n+++ b\n+x\n+y\n-z\n same\n", New: []string{"n"}},
		"commit 01, brought by ada":                    {Commit: "01", Brought: "ada"},
	} {
		require.Equal(t, want, SourceLine(&of).EN)
		require.NotEqual(t, want, SourceLine(&of).ZH)
	}
}

// The audit trail records why nothing was submitted, each rule once.
func TestTheAuditIsToldWhyNothingWasSubmitted(t *testing.T) {
	t.Parallel()
	id := slurm.JobID("7")
	wrong := []rules.Problem{{Rule: "a", Severity: rules.Error}, {Rule: "b", Severity: rules.Warning}, {Rule: "a", Severity: rules.Error}, {Rule: "c", Severity: rules.Error}}
	for _, c := range []struct {
		out   SubmitOut
		says  string
		found bool
	}{
		{SubmitOut{JobID: &id, Problems: wrong}, "", false},
		{SubmitOut{DryRun: true}, "dry run", false},
		{SubmitOut{Problems: wrong}, "refused: a, c", true},
	} {
		require.Equal(t, c.says, c.out.Undone())
		require.Equal(t, c.found, c.out.Found())
	}
	require.True(t, RecommendOut{}.Found())
	require.False(t, MemoryOut{TotalGiB: 16, GPUGiB: 16}.Found())
	require.False(t, MemoryOut{TotalGiB: 16}.Found())
	require.True(t, MemoryOut{TotalGiB: 17, GPUGiB: 16}.Found())
}

func TestWhatIsAskedForIsWritten(t *testing.T) {
	t.Parallel()
	c := opstest.NewCall(t, &opstest.Site{})
	dir := t.TempDir()
	opstest.Write(t, dir+"/run.sbatch", "#!/bin/bash\n#SBATCH --nodes=2\n#SBATCH --ntasks-per-node=8\nsrun python pretrain_gpt.py --num-layers 2\n")
	opstest.Write(t, dir+"/empty.sh", "")
	opstest.Write(t, dir+"/docker/.ngc_version.lts", "25.01")
	out, err := opstest.Do(t, c, Import(), dir+"/run.sbatch")
	require.NoError(t, err)
	text := out.(ImportOut).Verbatim()
	require.Contains(t, text, "nodes: 2\n")
	require.Contains(t, text, "# 3: ", "what could not be carried is a comment with its line")
	_, err = opstest.Do(t, c, Import(), dir+"/empty.sh")
	require.Equal(t, ops.BadInput, ops.AsError(err).Code)
	_, err = opstest.Do(t, c, Lint(), dir+"/empty.sh")
	require.Equal(t, ops.BadInput, ops.AsError(err).Code)
	c.Dir = filepath.Dir(dir)
	for _, tree := range []string{dir, filepath.Base(dir)} {
		out, err = opstest.Do(t, c, Image(), "lts", "--worktree", tree)
		require.NoError(t, err)
		require.NotEmpty(t, out.(ImageOut).Steps)
		require.Contains(t, opstest.Text(t, out, lang.EN), "25.01", "the base image of that checkout")
	}
	c.Dir = ""
	_, err = opstest.Do(t, c, Image(), "newest")
	require.Error(t, err)

	for words, says := range map[string]string{
		"--for hostfile --on-nodes gpu[1-2] --gpus-per-node 4": "gpu1 slots=4\ngpu2 slots=4\n",
		"--for shell --on-nodes gpu[1-2]":                      "# on gpu2\n",
		"--for shell":                                          "# on node 1\n",
		"--for session":                                        "megatron-ops submit --into JOBID",
		"--into 4711":                                          "4711",
		"--minimal":                                            "#SBATCH --nodes=2",
	} {
		out, err := opstest.Do(t, c, Render(), append(strings.Fields(words), opstest.GoodJob...)...)
		require.NoError(t, err, words)
		require.Contains(t, out.(RenderOut).Verbatim(), says, words)
	}
	for words, field := range map[string]string{"--for hostfile": "on_nodes", "--on-nodes gpu[": "on_nodes", "--for distribute": ""} {
		_, err := opstest.Do(t, c, Render(), append(strings.Fields(words), opstest.GoodJob...)...)
		require.Error(t, err, words)
		require.Contains(t, ops.AsError(err).Field, field, words)
	}
}

func TestALayoutIsRecommendedOrItIsSaidWhyNot(t *testing.T) {
	t.Parallel()
	c := opstest.NewCall(t, &opstest.Site{})
	out, err := opstest.Do(t, c, Memory(), opstest.GoodJob...)
	require.NoError(t, err)
	m := out.(MemoryOut)
	require.Less(t, m.LowGiB, m.TotalGiB)
	require.Greater(t, m.HighGiB, m.TotalGiB)
	require.False(t, m.Found())
	require.Contains(t, opstest.Text(t, out, lang.EN), "Neither --bf16 nor --fp16 is given: weights and activations are in fp32")
	require.Contains(t, opstest.Text(t, out, lang.ZH), "没有使用 --bf16 或 --fp16")
	half, err := opstest.Do(t, c, Memory(), append(slices.Clip(opstest.GoodJob), "--fp16")...)
	require.NoError(t, err)
	require.NotContains(t, opstest.Text(t, half, lang.EN), "fp32")
	_, err = opstest.Do(t, c, Memory(), append(slices.Clip(opstest.GoodJob), "--no-such-flag")...)
	require.ErrorContains(t, err, "--no-such-flag")
	out, err = opstest.Do(t, c, Recommend(), append([]string{"--show", "1"}, opstest.GoodJob...)...)
	require.NoError(t, err)
	require.Len(t, out.(RecommendOut).Options, 1)
	out, err = opstest.Do(t, c, Recommend(), "--model", "llama3-70b", "--gpus", "1", "--gpu", "h100")
	require.NoError(t, err)
	require.True(t, out.(RecommendOut).Found())
	require.Greater(t, out.(RecommendOut).SmallestGiB, 80.0)
	for words, field := range map[string]string{"--show 0": "show", "--gpu abacus": "gpu"} {
		_, err := opstest.Do(t, c, Recommend(), append(strings.Fields(words), opstest.GoodJob[6:]...)...)
		require.Equal(t, field, ops.AsError(err).Field, words)
	}
}

// Of two submissions of one name, the newer is compared with the one before it.
func TestSubmissionsAreCompared(t *testing.T) {
	t.Parallel()
	s := &opstest.Site{KnownJobs: map[slurm.JobID]slurm.Job{}}
	c := opstest.NewCall(t, s)
	now := time.Date(2026, 6, 11, 10, 0, 0, 0, time.UTC)
	c.Now = func() time.Time { now = now.Add(time.Second); return now }
	for _, micro := range []string{"2", "1", "4"} {
		_, err := opstest.Do(t, c, Submit(), append(append([]string{"--yes", "--idempotency-key", "k" + micro}, opstest.GoodJob...), "--micro-batch-size", micro)...)
		require.NoError(t, err)
	}
	for words, want := range map[string][2]slurm.JobID{"4702": {"4701", "4702"}, "4703": {"4702", "4703"}, "4703 4701": {"4701", "4703"}} {
		out, err := opstest.Do(t, c, Diff(), strings.Fields(words)...)
		require.NoError(t, err, words)
		d := out.(DiffOut)
		require.Equal(t, want, [2]slurm.JobID{d.From, d.To}, words)
		require.NotEmpty(t, d.Changes, words)
		require.Contains(t, d.Script, "micro-batch-size", words)
	}
	for words, code := range map[string]ops.Code{"4701": ops.NotFound, "99": ops.NotFound, "x;y": ops.BadInput, "4701 98": ops.NotFound} {
		_, err := opstest.Do(t, c, Diff(), strings.Fields(words)...)
		require.Equal(t, code, ops.AsError(err).Code, words)
	}

	for key, known := range map[string]bool{"k2": true, "other": false, "": false} {
		var given []string
		if key != "" {
			given = []string{"--idempotency-key=" + key}
		}
		in := &SubmitIn{}
		require.NoError(t, Submit().Words(in, append(given, opstest.GoodJob...)))
		require.Equal(t, known, AlreadySubmitted(t.Context(), c, in), key)
		in.Into = "9"
		require.False(t, AlreadySubmitted(t.Context(), c, in), "a step is begun anew")
		in.Into, c.Who.User = "", ""
		require.False(t, AlreadySubmitted(t.Context(), c, in), "nobody on the cluster has submitted nothing")
		c.Who.User = "alice"
	}
}

// An estimate without a model would mean nothing, so it is refused.
func TestMemoryOfNoModelIsRefused(t *testing.T) {
	t.Parallel()
	c := opstest.NewCall(t, &opstest.Site{})
	_, err := opstest.Do(t, c, Memory())
	e := ops.AsError(err)
	require.Equal(t, ops.BadInput, e.Code)
	require.Contains(t, e.In(lang.EN).Message, "--num-layers, --hidden-size")
	require.Contains(t, e.In(lang.ZH).Message, "模型不完整")
}

// Slurm makes no folder for the output, and a job without it ends at once.
func TestRenderTellsTheFolderThatTheOutputNeeds(t *testing.T) {
	c := opstest.NewCall(t, &opstest.Site{})
	for logs, want := range map[string]string{"": "before sbatch: mkdir -p logs", "/scratch/my logs": "before sbatch: mkdir -p '/scratch/my logs'", ".": ""} {
		words := []string{"--worktree", "/w", "--nodes", "1"}
		if logs != "" {
			words = append(words, "--log-dir", logs)
		}
		out, err := opstest.Do(t, c, Render(), words...)
		require.NoError(t, err)
		require.Equal(t, want, out.(RenderOut).Aside(lang.EN))
		require.NotContains(t, out.(RenderOut).Verbatim(), "before sbatch")
		out, err = opstest.Do(t, c, Render(), append(words, "--for", "shell")...)
		require.NoError(t, err)
		require.Empty(t, out.(RenderOut).Aside(lang.ZH))
	}
}
