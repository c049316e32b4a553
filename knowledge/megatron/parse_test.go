package megatron

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func parse(t *testing.T, line string) (*Args, []ParseError) {
	t.Helper()
	return Parse(Run{Argv: strings.Fields(line), WorldSize: 8, Arch: 9})
}

func TestParseReadsValuesAsMegatronDoes(t *testing.T) {
	a, errs := parse(t, `--num-layers 12 --lr=1e-4 --bf16 --moe-layer-freq ([0]*3+[1])*2 --data-path 0.3 a 0.7 b
		--save-interval 1_000 --min-lr -1 --disable-bias-linear --persistent-save-interval 7 --cp-comm-type p2p a2a --num-layers 16`)
	require.Empty(t, errs)
	require.Equal(t, Some(16), a.NumLayers, "the last one counts")
	require.Equal(t, Some(1e-4), a.Lr)
	require.True(t, a.Bf16)
	require.Equal(t, Freq{List: []int{0, 0, 0, 1, 0, 0, 0, 1}, IsList: true}, a.MoeLayerFreq)
	require.Equal(t, []string{"0.3", "a", "0.7", "b"}, a.DataPath)
	require.Equal(t, Some(7), a.SaveInterval, "an alias writes the same value")
	require.InDelta(t, -1, a.MinLr, 0, "a negative number is a value, not a flag")
	require.False(t, a.AddBiasLinear)
	require.Equal(t, []string{"p2p", "a2a"}, a.CpCommType)
	require.True(t, a.Given("--save-interval"))
	require.False(t, a.Given("--load"))
}

func TestParseKeepsDefaults(t *testing.T) {
	a, errs := parse(t, "")
	require.Empty(t, errs)
	require.Equal(t, 1, a.TensorModelParallelSize)
	require.Equal(t, "torch_dist", a.CkptFormat)
	require.False(t, a.NumLayers.OK)
	require.Nil(t, a.DataPath, "not given is not the same as empty")
	require.True(t, a.OverlapP2pComm)
}

func TestParseFaults(t *testing.T) {
	for line, want := range map[string]struct {
		fault  Fault
		flag   string
		values []string
	}{
		"--num-layers 1.5":                      {BadValue, "--num-layers", []string{"1.5"}},
		"--lr fast":                             {BadValue, "--lr", []string{"fast"}},
		"--moe-layer-freq [1]*3+x":              {BadValue, "--moe-layer-freq", []string{"[1]*3+x"}},
		"--optimizer adamw":                     {BadChoice, "--optimizer", []string{"adamw"}},
		"--attention-backend flash2":            {BadChoice, "--attention-backend", []string{"flash2"}},
		"--cuda-graph-modules attn heads":       {BadChoice, "--cuda-graph-modules", []string{"attn", "heads"}},
		"--num-layers":                          {MissingValue, "--num-layers", nil},
		"--num-layers --bf16":                   {MissingValue, "--num-layers", nil},
		"--lr -1e-5":                            {MissingValue, "--lr", nil},
		"--bf16=true":                           {ExtraValue, "--bf16", []string{"true"}},
		"--bf16 true":                           {StrayValue, "--bf16", []string{"true"}},
		"--num-layer 12":                        {UnknownFlag, "--num-layer", []string{"12"}},
		"--micro-batch 1":                       {UnknownFlag, "--micro-batch", []string{"1"}},
		"--step-batch-size-schedule 0:32 1B:64": {StrayValue, "--step-batch-size-schedule", []string{"1B:64"}},
		"--help":                                {AsksForHelp, "--help", nil},
		"--rampup-batch-size 32 32":             {MissingValue, "--rampup-batch-size", nil},
		"-- leftover":                           {StrayValue, "", []string{"leftover"}},
		"--bf16 1 2 --swiglu":                   {StrayValue, "--bf16", []string{"1", "2"}},
	} {
		_, errs := parse(t, line)
		require.NotEmpty(t, errs, line)
		require.Equal(t, want.fault, errs[0].Fault, line)
		require.Equal(t, want.flag, errs[0].Flag, line)
		if want.values != nil {
			require.Equal(t, want.values, errs[0].Values, line)
		}
	}
}

// A list expression expands up to a length that a model could need, and no further.
func TestOverlongListOfLayersIsRejected(t *testing.T) {
	a, errs := parse(t, "--moe-layer-freq [0,1]*32768")
	require.Empty(t, errs)
	require.Len(t, a.MoeLayerFreq.List, 65536)
	for _, list := range []string{"[0]*65537", "[0]*65536+[0]", "[0]*4294967296", "2147483648*2147483648*2*[0]", strings.Repeat("(", 101) + "[0]" + strings.Repeat(")", 101)} {
		_, errs := parse(t, "--moe-layer-freq "+list)
		require.Len(t, errs, 1, list)
		require.Equal(t, BadValue, errs[0].Fault, list)
	}
}

func TestWordWithABlankIsAValue(t *testing.T) {
	_, errs := Parse(Run{Argv: []string{"--num-layers 12"}})
	require.Len(t, errs, 1)
	require.Equal(t, StrayValue, errs[0].Fault, "argparse takes a word with a blank for a value")
}

func TestNearest(t *testing.T) {
	for given, want := range map[string]string{
		"--num-layer":              "--num-layers",
		"--micro-batchsize":        "--micro-batch-size",
		"--pipeline-parallel-size": "--pipeline-model-parallel-size",
		"--seq-len":                "--seq-length",
		"--train-steps":            "--train-iters",
		"--gradient-clip-val":      "--clip-grad",
		"--global-batch-sizes":     "--global-batch-size",
		"--num_layers":             "--num-layers",
		"--fp8":                    "--fp8-format",
	} {
		require.Contains(t, Nearest(given), want, given)
	}
	require.Empty(t, Nearest("--qqqqzzzz"))
}

// Every unknown flag is told, but only some with its nearest: of an endless list nobody
// waits for all.
func TestAnEndlessListOfUnknownFlagsIsReadSoon(t *testing.T) {
	var argv []string
	for i := range 200 {
		argv = append(argv, fmt.Sprintf("--num-layer%d", i))
	}
	_, faults := Parse(Run{Argv: argv, WorldSize: 8})
	require.Len(t, faults, len(argv))
	require.NotEmpty(t, faults[0].Nearest)
	require.Empty(t, faults[len(faults)-1].Nearest)
}

func TestRenamedFlagsExist(t *testing.T) {
	for from, to := range renamed {
		_, known := LookupFlag(to)
		require.True(t, known, "%s should lead to a flag that exists, not %s", from, to)
	}
}

func TestFlagTableIsConsistent(t *testing.T) {
	require.Greater(t, len(Flags()), 800)
	seen := map[string]bool{}
	for _, f := range Flags() {
		for _, name := range append([]string{f.Name}, f.Aliases...) {
			require.False(t, seen[name], "%s twice", name)
			seen[name] = true
		}
		require.NotPanics(t, func() { f.Value(&defaultOptions) })
	}
}

// FuzzParse checks that any command line parses without a panic, and that parsing
// it twice has the same result.
func FuzzParse(f *testing.F) {
	f.Add("--num-layers 12 --bf16 --data-path a b --lr=1e-4")
	f.Add("--moe-layer-freq ([0]*3+[1])*8 --pipeline-model-parallel-layout Ettt|(tt|)*29,m|L")
	f.Add("--hybrid-layer-pattern M-M-|M*M-/M*/M* --step-batch-size-schedule 0:8,1B:16 --tensor-model-parallel-size -9223372036854775808")
	f.Fuzz(func(t *testing.T, text string) {
		run := Run{Argv: strings.Split(text, " "), WorldSize: 8, Arch: 9}
		a, errs := Parse(run)
		b, again := Parse(run)
		require.Equal(t, len(errs), len(again))
		require.NotNil(t, a.Effective())
		require.Equal(t, b.NumLayers, a.NumLayers)
	})
}
