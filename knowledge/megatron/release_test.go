package megatron

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestParseRelease(t *testing.T) {
	for _, c := range []struct {
		text  string
		want  Release
		exact bool
	}{
		{"0.17.1", V017, true},
		{"core_v0.17.1", V017, true},
		{"core_r0.17.0", V017, false},
		{"0.17.0rc0", V017, false},
		{"0.17", V017, true},
		{"v0.18.2", V018, true},
		{"megatron-core==0.15.3", V015, true},
		{"0.19.1", V019, false},
		{"0.19.1+g5be9626", V019, false},
		{"0.99.0", Main, false},
		{"0.9.0", V015, false},
		{"main", Main, true},
		{"dev", Main, false},
		{"266f1c97dca4", V017, true},
		{"d98e8a64", Main, true},
		{">=0.16,<0.18", V017, true},
		{">=0.16.1, <=0.16.1", V016, true},
		{"<0.17", V016, true},
		{">0.17", V019, true},
		{"~=0.18.0", V018, true},
		{"==0.15.3", V015, true},
	} {
		m, ok := ParseRelease(c.text)
		require.True(t, ok, c.text)
		require.Equal(t, c.want.String(), m.Release.String(), c.text)
		require.Equal(t, c.exact, m.Exact, c.text)
	}
	for _, text := range []string{"", "nemo", "1", "0123456789abcdef", ">=0.30", "<0.15", "0.17..1", "core_v", "=>0.17"} {
		_, ok := ParseRelease(text)
		require.False(t, ok, text)
	}
}

func TestReleasesAreOrdered(t *testing.T) {
	all := Releases()
	require.Equal(t, V015, all[0])
	require.Equal(t, Main, all[len(all)-1])
	require.Equal(t, Main, Release(0).OrNewest())
	require.Equal(t, "main", Release(0).String())
	require.Equal(t, "core_v0.16.1", V016.Tag())
	for i := 1; i < len(all); i++ {
		require.Less(t, all[i-1].Date(), all[i].Date())
	}
}

// TestFlagsOfReleases counts the flags of each release's parser.
func TestFlagsOfReleases(t *testing.T) {
	for release, count := range map[Release]int{V015: 582, V016: 669, V017: 723, V018: 769, V019: 828, Main: 860} {
		require.Len(t, flagsOf(release), count, release.String())
	}
	require.Len(t, Flags(), 860)
}

func TestFlagHistory(t *testing.T) {
	spans := FlagHistory("cuda-graph-scope")
	require.Len(t, spans, 4)
	require.Equal(t, V015, spans[0].Until)
	require.Equal(t, []string{"full", "attn", "full_iteration"}, spans[0].Flag.Choices)
	require.Equal(t, V018, spans[3].Since)
	require.Empty(t, FlagHistory("--no-such-flag"))
	require.Len(t, FlagHistory("--no-rl-persist-cuda-graphs"), 1, "found by an alias")
}

func TestOlderDefault(t *testing.T) {
	value, until, ok := OlderDefault("--data-parallel-sharding-strategy")
	require.True(t, ok)
	require.Equal(t, "no_shard", value)
	require.Equal(t, V017, until)
	for _, name := range []string{"--seq-length", "--tensor-model-parallel-size", "--no-such-flag"} {
		_, _, ok = OlderDefault(name)
		require.False(t, ok, name)
	}
}

func TestParseByRelease(t *testing.T) {
	parse := func(r Release, argv ...string) (*Args, []ParseError) {
		return Parse(Run{Argv: argv, WorldSize: 1, Release: r})
	}
	_, errs := parse(V017, "--moe-extended-tp")
	require.Equal(t, UnknownFlag, errs[0].Fault)
	_, errs = parse(V016, "--moe-extended-tp")
	require.Empty(t, errs)

	args, _ := parse(V017)
	require.Equal(t, "no_shard", args.DataParallelShardingStrategy)
	args, _ = parse(V018)
	require.Equal(t, "optim_grads_params", args.DataParallelShardingStrategy)
	args, _ = parse(V015)
	require.Equal(t, Some(1000), args.EvalInterval)
	require.Equal(t, []string{"full"}, args.CudaGraphScope)

	args, errs = parse(V015, "--apply-layernorm-1p", "--disable-gloo-process-groups", "--export-kv-cache-quant", "--lazy-mpu-init", "x")
	require.Empty(t, errs)
	require.True(t, args.LayernormZeroCenteredGamma, "the destination had another name")
	require.False(t, args.UseGlooProcessGroups)
	require.Equal(t, "true", args.ExportKvCacheQuant, "a switch then, a word now")
	require.True(t, args.LazyMpuInit)
	require.True(t, args.Given("--apply-layernorm-1p"))
}

func TestGraphScopeOfOlderReleases(t *testing.T) {
	config := func(r Release, argv ...string) *Config {
		args, errs := Parse(Run{Argv: argv, WorldSize: 1, Release: r})
		require.Empty(t, errs)
		return args.Effective()
	}
	c := config(V017, "--cuda-graph-impl", "local", "--cuda-graph-scope", "full_iteration")
	require.Equal(t, "full_iteration", c.CudaGraphImpl)
	require.Empty(t, c.CudaGraphModules)
	c = config(V016, "--cuda-graph-impl", "transformer_engine", "--cuda-graph-scope", "attn", "moe_router")
	require.Equal(t, []string{"attn", "moe_router"}, c.CudaGraphModules)
	require.Equal(t, "transformer_engine", c.CudaGraphImpl)
	require.Empty(t, config(V015).CudaGraphModules)
}

func TestAllocateHybrid(t *testing.T) {
	require.Equal(t, "MMM*MMM*MMM", AllocateHybrid(11, 2.0/11, 0))
	require.Equal(t, "MMMM", AllocateHybrid(4, 0, 0))
	require.Equal(t, "M-M-", AllocateHybrid(4, 0, 0.5))
	require.Equal(t, "M-M-M--*M-M-M-M-*M--M-M-", AllocateHybrid(24, 0.08, 0.5))
	require.Empty(t, AllocateHybrid(0, 0.5, 0))
}
