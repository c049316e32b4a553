package launch

import (
	"cmp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/ops/opstest"
	"github.com/megatron-ops/megatron-ops/knowledge/recipes"
	"github.com/megatron-ops/megatron-ops/knowledge/rules"
	"github.com/megatron-ops/megatron-ops/slurm/job"
)

func TestEveryRecipeIsAJobThatMegatronStarts(t *testing.T) {
	c := opstest.NewCall(t, &opstest.Site{})
	for _, m := range recipes.Models() {
		if len(m.Runs) == 0 {
			continue
		}
		out := planned(t, c, "--recipe", m.Name, "--worktree", "/w")
		require.True(t, out.OK, "%s: %+v", m.Name, out.Problems)
		require.Equal(t, m.Runs[0].GPUs, out.WorldSize, m.Name)
	}
}

// What a release calls hybrid models decides the script and the layers.
func TestAHybridRecipeIsTheReleases(t *testing.T) {
	c := opstest.NewCall(t, &opstest.Site{})
	for release, want := range map[string]string{
		"":       "pretrain_hybrid.py megatron.core.models.hybrid.hybrid_layer_specs hybrid_stack_spec",
		"0.18.2": "pretrain_hybrid.py megatron.core.models.hybrid.hybrid_layer_specs hybrid_stack_spec",
		"0.17.1": "pretrain_mamba.py megatron.core.models.mamba.mamba_layer_specs mamba_stack_spec",
	} {
		s, err := ReadSpec(c, SpecIn{Recipe: "nemotron3-nano-30b-a3b", Spec: job.Spec{Worktree: "/w", Megatron: release}})
		require.NoError(t, err)
		at := slices.Index(s.Args, "--spec")
		require.Positive(t, at)
		require.Equal(t, want, s.Script+" "+strings.Join(s.Args[at+1:at+3], " "), release)
		out := planned(t, c, "--recipe", "nemotron3-nano-30b-a3b", "--worktree", "/w", "--megatron", cmp.Or(release, "main"))
		require.True(t, out.OK, "%+v", out.Problems)
	}
	s, err := ReadSpec(c, SpecIn{Recipe: "llama3-70b", Spec: job.Spec{Worktree: "/w"}})
	require.NoError(t, err)
	require.Equal(t, "pretrain_gpt.py", s.Script)
	require.NotContains(t, s.Args, "--spec")
}

// A layout is wanted before the layers are chosen.
func TestALayoutOfAHybridModelNeedsNoSpec(t *testing.T) {
	c := opstest.NewCall(t, &opstest.Site{})
	out, err := opstest.Do(t, c, Recommend(), "--gpus", "16", "--gpu", "h100", "--script", "pretrain_hybrid.py", "--",
		"--hybrid-layer-pattern", "MEM*MEM*", "--hidden-size", "2048", "--num-attention-heads", "16", "--seq-length", "4096",
		"--max-position-embeddings", "4096", "--global-batch-size", "64")
	require.NoError(t, err)
	require.NotEmpty(t, out.(RecommendOut).Options)
}

// A model where a file is expected is told the flag that takes it.
func TestAModelInPlaceOfAFileIsToldItsFlag(t *testing.T) {
	c := opstest.NewCall(t, &opstest.Site{})
	for file, fix := range map[string]string{"llama3-70b": "--recipe llama3-70b", "llama3-70b.yaml": "check the path"} {
		_, err := opstest.Do(t, c, Recommend(), file)
		e := ops.AsError(err)
		require.NotNil(t, e)
		require.Equal(t, ops.BadInput, e.Code)
		require.Contains(t, e.Fix.In(lang.EN), fix)
		require.Contains(t, e.Message.In(lang.ZH), file)
	}
}

func TestARecipeIsFilledByWhatIsAskedFor(t *testing.T) {
	c := opstest.NewCall(t, &opstest.Site{})
	value := func(s job.Spec, flag string) string {
		for i := len(s.Args) - 2; i >= 0; i-- {
			if s.Args[i] == flag {
				return s.Args[i+1]
			}
		}
		return ""
	}
	s, err := ReadSpec(c, SpecIn{Recipe: "Meta-Llama-3-70B:fp8", Spec: job.Spec{Worktree: "/w", GPU: "H100"}})
	require.NoError(t, err)
	require.Equal(t, "8", value(s, "--pipeline-model-parallel-size"))
	require.Equal(t, "tensorwise", value(s, "--fp8-recipe"))
	require.Equal(t, 8, *s.Nodes)
	require.Equal(t, 8, *s.GPUsPerNode)

	s, err = ReadSpec(c, SpecIn{Recipe: "llama3-70b", GPUs: 128, Spec: job.Spec{Worktree: "/w", GPU: "gb200", Args: []string{"--data-path", "/data/c4"}}})
	require.NoError(t, err)
	require.Equal(t, 32, *s.Nodes, "a node has 4 of them")
	require.NotContains(t, s.Args, "--mock-data")

	s, err = ReadSpec(c, SpecIn{Recipe: "qwen3-0.6b", Spec: job.Spec{Worktree: "/w"}})
	require.NoError(t, err)
	require.Equal(t, []int{1, 1}, []int{*s.Nodes, *s.GPUsPerNode})

	none := 0
	for _, given := range []*int{nil, &none} {
		s, err = ReadSpec(c, SpecIn{GPUs: 16, Spec: job.Spec{Worktree: "/w", GPUsPerNode: given}})
		require.NoError(t, err)
		require.Equal(t, 2, *s.Nodes)
	}
}

// A recipe fills nodes of the site's size.
func TestARecipeFillsTheSitesNodes(t *testing.T) {
	c := opstest.NewCall(t, &opstest.Site{})
	for _, tt := range []struct{ perNode, nodes, each int }{{0, 8, 8}, {8, 8, 8}, {4, 16, 4}, {64, 1, 64}, {128, 1, 64}} {
		c.Sites = func(string) job.Site { return job.Site{GPUsPerNode: tt.perNode} }
		s, err := ReadSpec(c, SpecIn{Recipe: "Meta-Llama-3-70B:fp8", Spec: job.Spec{Worktree: "/w", GPU: "h100"}})
		require.NoError(t, err)
		require.Equal(t, []int{tt.nodes, tt.each}, []int{*s.Nodes, *s.GPUsPerNode}, tt)
	}
}

func TestRecipesSayWhatIsNotPublished(t *testing.T) {
	c := opstest.NewCall(t, &opstest.Site{})
	for _, tt := range []struct{ words, field, fix string }{
		{"plan --recipe lama3-70b", "recipe", "did you mean llama3-70b?"},
		{"plan --recipe mixtral", "recipe", "did you mean mixtral-8x7b, mixtral-8x22b?"},
		{"plan --recipe llama3-8b:int4", "recipe", "nvfp4"},
		{"plan --recipe llama3-70b --gpu a100", "recipe", "`recommend --model llama3-70b` finds one"},
		{"plan --recipe llama3-70b --gpu abacus", "gpu", "h100"},
		{"plan --gpus 12 --gpus-per-node 8", "gpus", "a multiple of 8"},
		{"plan --gpus 16 --nodes 3", "gpus", "give nodes or gpus"},
		{"recommend --model nothing-like-it", "model", "recipes list shows all"},
		{"plan --gpus=-7", "gpus", "a number of 1 or more"},
		{"recipes show", "recipe", ""},
	} {
		words := strings.Fields(tt.words)
		op := map[string]ops.Op{"plan": Plan(), "recommend": Recommend(), "recipes": Recipes()}[words[0]]
		_, err := opstest.Do(t, c, op, words[1:]...)
		e := ops.AsError(err)
		require.NotNil(t, e, tt.words)
		require.Equal(t, tt.field, e.Field, tt.words)
		require.Contains(t, e.Fix.EN, tt.fix, tt.words)
		message := e.Message.In(lang.ZH)
		require.Equal(t, lang.ZH, lang.Of(message), tt.words)
	}
}

func TestRecommendTakesAModelByName(t *testing.T) {
	c := opstest.NewCall(t, &opstest.Site{})
	out, err := opstest.Do(t, c, Recommend(), "--model", "llama3-70b", "--gpus", "64", "--gpu", "h100")
	require.NoError(t, err)
	o := out.(RecommendOut)
	require.NotEmpty(t, o.Options)
	require.Equal(t, "h100", o.GPU)
	require.True(t, slices.ContainsFunc(o.Options, func(op rules.Option) bool { return op.Layout.TP >= 2 }))
}

func TestRecipesShowsAndRenders(t *testing.T) {
	c := opstest.NewCall(t, &opstest.Site{})
	out, err := opstest.Do(t, c, Recipes())
	require.NoError(t, err)
	require.Len(t, out.(RecipesOut).Models, len(recipes.Models()))
	out, err = opstest.Do(t, c, Recipes(), "show", "mixtral-8x7b")
	require.NoError(t, err)
	text := opstest.Text(t, out, lang.EN)
	require.Contains(t, text, "468")
	require.Contains(t, text, "moe/README.md")
	require.Contains(t, text, "--num-experts 8")
	out, err = opstest.Do(t, c, Recipes(), "show", "deepseek-v3")
	require.NoError(t, err)
	require.Contains(t, opstest.Text(t, out, lang.EN), "--moe-layer-freq '([0]*3+[1]*58)'", "a shell reads it back as it is")
	out, err = opstest.Do(t, c, Recipes(), "render", "deepseek-v3", "--gpu", "gb200")
	require.NoError(t, err)
	o := out.(RecipesOut)
	require.True(t, o.Published)
	s, err := job.Decode([]byte(o.Spec))
	require.NoError(t, err)
	require.Equal(t, 64, *s.Nodes)
	require.Contains(t, o.Script, "--expert-model-parallel-size")
}

// Where a word is missing or a flag has another command's name, the error has the right one.
func TestARecipeAskedForInOtherWordsIsToldThem(t *testing.T) {
	c := opstest.NewCall(t, &opstest.Site{})
	_, err := opstest.Do(t, c, Recipes(), "llama3-8b")
	require.Contains(t, ops.AsError(err).Fix.In(lang.EN), "for example: recipes show llama3-8b")
	_, err = opstest.Do(t, c, Memory(), "--model", "llama3-8b")
	require.Equal(t, "did you mean --recipe?", ops.AsError(err).Fix.In(lang.EN))
}

func TestLayoutsThatAreFoldedSayWhatIsFolded(t *testing.T) {
	c := opstest.NewCall(t, &opstest.Site{})
	out, err := opstest.Do(t, c, Recommend(), "--model", "llama3-8b", "--gpu", "h100", "--nodes", "1", "--gpus-per-node", "8")
	require.NoError(t, err)
	for _, s := range out.(RecommendOut).View(lang.EN).Sections {
		require.Equal(t, s.Fold, strings.HasPrefix(s.Heading, "the reasons for TP "), s.Heading)
	}
}

// A count has the singular where it is one.
func TestASizeThatDoesNotFitIsToldInWholeNodes(t *testing.T) {
	c := opstest.NewCall(t, &opstest.Site{})
	_, err := opstest.Do(t, c, Plan(), "--recipe", "llama3-8b", "--nodes", "2", "--gpus", "8")
	require.ErrorContains(t, err, "8 GPUs, at 8 a node, make 1 node, not 2")
}
