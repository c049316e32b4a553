package report

import (
	"slices"
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/lazy"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/outcome"
)

// Conditions of a class's remedies. A remedy is left out of the advice if the job meets its condition
// already or cannot meet it. A remedy with the condition "" is always given.
const (
	SmallerBatch       = "micro-batch-size"
	RecomputeAll       = "recompute"
	MoreParallel       = "model-parallel"
	ShardOptimizer     = "use-distributed-optimizer"
	ExpandableSegments = "expandable-segments"
	FlightRecorder     = "flight-recorder"
	DebugNCCL          = "debug-nccl"

	// AllMemory is all memory of each node, ContainerVariables a container into which variables must be
	// passed. Only the specification shows these, not the logs.
	AllMemory          = "all-memory"
	ContainerVariables = "container-variables"

	// syncEnvironment is an environment with the packages that the worktree requires.
	syncEnvironment = "uv-sync"
)

// AsksFor holds the condition of each remedy of a class, in the order of the class's advice.
var AsksFor = map[string][]string{
	outcome.HostOOM:        {AllMemory, ""},
	outcome.MaxConnections: {"", ContainerVariables},
	outcome.CUDAOOM:        {SmallerBatch, RecomputeAll, MoreParallel, ShardOptimizer, ExpandableSegments},
	outcome.NCCLTimeout:    {"", FlightRecorder, ""},
	outcome.NCCLConnection: {"", DebugNCCL},
	outcome.ImportError:    {syncEnvironment, ""},
	outcome.Container:      {noImage, noMount, noWorkdir, noRegistry, noRuntime, notReadable, noSpace, noneOfThese},
}

// pointless reports whether a remedy cannot help: the job meets its condition already, the report's own
// advice covers it, or it is for another container fault.
func (r Report) pointless(asks string) bool {
	if r.Class == outcome.Container {
		return asks != containerFault(r.RootLine)
	}
	return slices.Contains(r.Already, asks) || r.proposes(asks)
}

// proposes reports whether the advice that the report derives from the run covers a condition already,
// so that the class's remedy would repeat it.
func (r Report) proposes(what string) bool {
	if what == syncEnvironment {
		return r.ImportKind == NoSync && r.missingModule() != ""
	}
	if r.Fit != nil {
		return slices.Contains(r.Fit.Flags, "--"+what) || what == RecomputeAll && slices.Contains(r.Fit.Flags, "--recompute-granularity") ||
			what == MoreParallel && strings.Contains(strings.Join(r.Fit.Flags, " "), "-parallel-size") || what == SmallerBatch
	}
	return what == SmallerBatch && r.Layout != nil && r.Layout.MicroBatchSize > 1
}

// What a container did not find, or what its node lacked.
const (
	noImage     = "image"
	noMount     = "mount"
	noWorkdir   = "workdir"
	noRegistry  = "registry"
	noRuntime   = "runtime"
	notReadable = "readable"
	noSpace     = "space"
	noneOfThese = "container"
)

// containerFaults recognise what a container did not find. The first match decides.
var containerFaults = []struct {
	what string
	says *lazy.Pattern
}{
	{noSpace, lazy.New(`(?i)no space left|quota exceeded|not enough (?:disk )?space`)},
	{noImage, lazy.New(`(?i)manifest unknown|name unknown|no matching manifest|repository does not exist|error code: 404` +
		`|\[ERROR\] Invalid (?:argument|image reference): `)},
	{notReadable, lazy.New(`(?i)not readable by the current user`)},
	{noRuntime, lazy.New(`(?i)session directory|loop device|extraction failed|squashfuse|command not found|user.?namespace|operation not permitted` +
		`|nvidia-container-cli|couldn't mkdir|mkdir: cannot create`)},
	{noRegistry, lazy.New(`(?i)curl: \(\d+\)|could not resolve|registry|unauthorized|toomanyrequests|pull access denied|manifest|failed to (?:import` +
		`|pull)|HTTP|denied`)},
	{noWorkdir, lazy.New(`(?i)chdir|work(?:ing)?[ -_]?dir`)},
	{noMount, lazy.New(`(?i)mount`)},
	{noImage, lazy.New(`(?i)no such file|not found|does not exist|invalid image|image`)},
}

// containerFault returns the fault in a line, or noneOfThese.
func containerFault(line string) string {
	for _, f := range containerFaults {
		if f.says.MatchString(line) {
			return f.what
		}
	}
	return noneOfThese
}
