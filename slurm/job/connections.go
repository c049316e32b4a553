package job

import (
	"maps"
	"path"
	"strings"

	"github.com/megatron-ops/megatron-ops/knowledge/megatron"
	"github.com/megatron-ops/megatron-ops/knowledge/rules"
)

// hopper is the architecture that Run assumes if the specification does not name a
// known GPU: the one with the strictest rules among those in use.
const hopper = 9

// Run returns the launch of s as Megatron sees it. Its environment has only the
// variables of the specification itself.
func (s Spec) Run() megatron.Run {
	s = s.WithDefaults()
	arch, ok := megatron.GPUArch(s.GPU)
	if !ok {
		arch = hopper
	}
	entry, ok := megatron.OwnEntry(s.Script)
	if !ok {
		entry = strings.TrimSuffix(path.Base(s.Script), ".py")
	}
	env := map[string]string{}
	maps.Copy(env, s.Env)
	version, _ := megatron.ParseRelease(s.Megatron)
	return megatron.Run{
		Entry: entry, Argv: s.Args, WorldSize: s.WorldSize(), Arch: arch, Env: env,
		Release: version.Release, Extra: s.ExtraFlags, Image: s.Container.Image, GPU: s.GPU,
	}
}

// RecommendedConnections returns the value of CUDA_DEVICE_MAX_CONNECTIONS that the
// script of s sets, with the reason. It returns the zero value if the script does not
// set the variable.
func RecommendedConnections(s Spec) Connections {
	s = s.WithDefaults()
	if *s.GPUsPerNode == 0 || s.Launcher == Custom {
		return Connections{}
	}
	args, _ := megatron.Parse(s.Run())
	c := args.Effective()
	value, reason := rules.Connections(c.Arch, c.TP, c.CP, c.UseTorchFsdp2, c.UseMegatronFsdp, c.OverlapMoeExpertParallelComm)
	if value == rules.Unset {
		return Connections{}
	}
	return Connections{Value: value, Reason: reason.EN}
}
