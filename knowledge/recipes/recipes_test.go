package recipes

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/knowledge/megatron"
	"github.com/megatron-ops/megatron-ops/knowledge/rules"
)

// plan returns the problems of a run in a release.
func plan(m Model, r Run, release megatron.Release) []rules.Problem {
	kind, _ := megatron.LookupGPU(r.GPU)
	run := megatron.Run{Entry: m.Entry, Argv: append(m.Argv(release), r.Argv()...), WorldSize: r.GPUs, Arch: kind.Arch, Env: map[string]string{}, Release: release}
	args, _ := megatron.Parse(run)
	c := args.Effective()
	if value, _ := rules.Connections(c.Arch, c.TP, c.CP, c.UseTorchFsdp2, c.UseMegatronFsdp, c.OverlapMoeExpertParallelComm); value != rules.Unset {
		run.Env["CUDA_DEVICE_MAX_CONNECTIONS"] = value
	}
	return rules.CheckIn(run, lang.EN).Problems
}

func TestEveryRunPassesPlanInItsReleases(t *testing.T) {
	for _, m := range Models() {
		since, ok := megatron.ParseRelease(m.Since)
		if m.Since == "" {
			since.Release, ok = 1, true
		}
		require.True(t, ok, m.Name)
		require.NotEmpty(t, m.Source, m.Name)
		runs := m.Runs
		if len(runs) == 0 {
			runs = []Run{{GPU: "h100", GPUs: 64, Type: "bf16", Batch: 64, Micro: 1, TP: 2, PP: 1, CP: 1, EP: 1}}
		}
		for _, r := range runs {
			for _, release := range megatron.Releases() {
				if release < since.Release {
					continue
				}
				for _, p := range plan(m, r, release) {
					require.NotEqual(t, rules.Error, p.Severity, "%s on %d %s in %s: %s", m.Name, r.GPUs, r.GPU, release, p.Message)
				}
			}
		}
		for _, r := range m.Runs {
			require.NotEmpty(t, r.Source, m.Name)
			kind, ok := megatron.LookupGPU(r.GPU)
			require.True(t, ok && kind.Name == r.GPU, r.GPU)
			_, ok = read().Types[r.Type]
			require.True(t, ok, r.Type)
		}
	}
}

// A published run has run, so the lower bound of its memory estimate must fit.
func TestEveryPublishedRunFits(t *testing.T) {
	for _, m := range Models() {
		for _, r := range m.Runs {
			kind, _ := megatron.LookupGPU(r.GPU)
			args, faults := megatron.Parse(megatron.Run{
				Entry:     m.Entry,
				Argv:      append(m.Argv(megatron.Main), r.Argv()...),
				WorldSize: r.GPUs,
				Arch:      kind.Arch,
				Env:       map[string]string{},
			})
			require.Empty(t, faults, m.Name)
			c := args.Effective()
			low, _ := c.Band()
			require.Less(t, low*c.Memory().GiB(), kind.MemoryGiB, "%s on %d %s as %s", m.Name, r.GPUs, r.GPU, r.Layout())
		}
	}
}

// TestOperationsMatchPublishedNumbers compares our count with tables that have both the
// tokens and the TFLOP/s of a run (NVIDIA-NeMo/Megatron-Bridge,
// docs/performance-summary.md). Their quotient is the cost of one token.
func TestOperationsMatchPublishedNumbers(t *testing.T) {
	for name, billions := range map[string]float64{
		"llama3-8b": 51.5, "llama3-70b": 449.2, "llama3.1-405b": 2524, "qwen3-30b-a3b": 23.0, "qwen3-235b-a22b": 148.0,
		"deepseek-v3": 260.0, "kimi-k2": 204.4, "gpt-oss-120b": 32.6, "nemotron3-nano-30b-a3b": 22.3, "nemotron3-super-120b-a12b": 84.6,
	} {
		m, ok := Lookup(name)
		require.True(t, ok, name)
		args, faults := megatron.Parse(megatron.Run{Entry: m.Entry, Argv: m.Argv(megatron.Main), WorldSize: 64, Env: map[string]string{}})
		require.Empty(t, faults, name)
		require.InEpsilon(t, billions, args.Effective().Shape().Operations().Total()/1e9, 0.02, name)
	}
}

func TestFind(t *testing.T) {
	m := Model{Runs: []Run{
		{GPU: "h100", GPUs: 64, Type: "bf16", Batch: 512, Micro: 1, TP: 2, PP: 2, CP: 1, EP: 1},
		{GPU: "h100", GPUs: 128, Type: "bf16", Batch: 512, Micro: 2, TP: 4, PP: 2, CP: 1, EP: 8},
	}}
	for _, c := range []struct {
		gpu    string
		gpus   int
		number string
		finds  int
		exact  bool
		why    string
	}{
		{"", 0, "", 64, true, "any"},
		{"h100", 128, "bf16", 128, true, "exactly this run"},
		{"h100", 256, "", 128, false, "both can be repeated: the larger"},
		{"h100", 68, "", 0, false, "17 replicas do not share 512 sequences"},
		{"h100", 4096, "", 0, false, "more replicas than sequences"},
		{"h100", 32, "", 0, false, "below each"},
		{"a100", 64, "", 0, false, "of another kind"},
		{"h100", 64, "fp8", 0, false, "of another type"},
	} {
		r, exact, ok := m.Find(c.gpu, c.gpus, c.number)
		require.Equal(t, c.finds, r.GPUs, c.why)
		require.Equal(t, c.exact, exact, c.why)
		require.Equal(t, c.finds > 0, ok, c.why)
	}
}

func TestLike(t *testing.T) {
	require.Equal(t, []string{"qwen3-30b-a3b"}, Like("qwen3 30b"))
	require.Equal(t, []string{"mixtral-8x7b"}, Like("mixtrl-8x7b"))
}

func TestNamed(t *testing.T) {
	for text, want := range map[string]string{
		"a layout for llama 3 70b on 64 h100":    "llama3-70b",
		"llama-3.1-405b with tp 8":               "llama3.1-405b",
		"a 70b llama 3 on 8 nodes":               "llama3-70b",
		"qwen3 30b-a3b 怎么切":                      "qwen3-30b-a3b",
		"qwen3-235b-a22b":                        "qwen3-235b-a22b",
		"用8x7b mixtral":                          "mixtral-8x7b",
		"deepseek v3.":                           "deepseek-v3",
		"gpt-oss 120b":                           "gpt-oss-120b",
		"a 70b model, or llama 70b":              "",
		"deepseek v3.9 and llama3 7b":            "",
		"qwen2.5-7b-vl or deepseek v3 lite":      "",
		"qwen2.5-7b-instruct and qwen2.5-72b ok": "qwen2.5-72b",
	} {
		m, rest, ok := Named(text)
		require.Equal(t, want, m.Name, text)
		require.Equal(t, want != "", ok, text)
		if ok {
			require.Less(t, len(rest), len(text), "the name is taken out")
		} else {
			require.Equal(t, text, rest)
		}
	}
}
