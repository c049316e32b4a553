package report

import (
	"slices"
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/lazy"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/outcome"
)

// What a class's remedies ask for, in the order of its table. A remedy that the
// job has already, or that cannot help it, is not given. "" always is.
const (
	SmallerBatch       = "micro-batch-size"
	RecomputeAll       = "recompute"
	MoreParallel       = "model-parallel"
	ShardOptimizer     = "use-distributed-optimizer"
	ExpandableSegments = "expandable-segments"
	FlightRecorder     = "flight-recorder"
	DebugNCCL          = "debug-nccl"

	// AllMemory is all of each node's memory, ContainerVariables a container to
	// pass variables into: the specification tells of them, no log does.
	AllMemory          = "all-memory"
	ContainerVariables = "container-variables"

	// syncEnvironment is an environment that has what the worktree asks for.
	syncEnvironment = "uv-sync"
)

// AsksFor is what each remedy of a class asks for, in the order of its advice.
var AsksFor = map[string][]string{
	outcome.HostOOM:        {AllMemory, ""},
	outcome.MaxConnections: {"", ContainerVariables},
	outcome.CUDAOOM:        {SmallerBatch, RecomputeAll, MoreParallel, ShardOptimizer, ExpandableSegments},
	outcome.NCCLTimeout:    {"", FlightRecorder, ""},
	outcome.NCCLConnection: {"", DebugNCCL},
	outcome.ImportError:    {syncEnvironment, ""},
	outcome.Container:      {noImage, noMount, noWorkdir, noRegistry, noRuntime, notReadable, noneOfThese},
}

// pointless reports whether a remedy cannot help: the job has it, it is
// proposed already, or it is for another fault of a container than this one.
func (r Report) pointless(asks string) bool {
	if r.Class == outcome.Container {
		return asks != containerFault(r.RootLine)
	}
	return slices.Contains(r.Already, asks) || r.proposes(asks)
}

// proposes reports whether what this case adds asks for something already, so
// that the class's own words would say it twice.
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

// What a container did not find, or had not of its node.
const (
	noImage     = "image"
	noMount     = "mount"
	noWorkdir   = "workdir"
	noRegistry  = "registry"
	noRuntime   = "runtime"
	notReadable = "readable"
	noneOfThese = "container"
)

// containerFaults tell what a container did not find, the first that matches.
var containerFaults = []struct {
	what string
	says *lazy.Pattern
}{
	{noImage, lazy.New(`(?i)manifest unknown|name unknown|no matching manifest|repository does not exist|error code: 404` +
		`|\[ERROR\] Invalid (?:argument|image reference): `)},
	{notReadable, lazy.New(`(?i)not readable by the current user`)},
	{noRuntime, lazy.New(`(?i)session directory|loop device|extraction failed|squashfuse|command not found|user.?namespace|operation not permitted`)},
	{noRegistry, lazy.New(`(?i)curl: \(\d+\)|could not resolve|registry|unauthorized|toomanyrequests|pull access denied|manifest|failed to (?:import` +
		`|pull)|HTTP|denied`)},
	{noWorkdir, lazy.New(`(?i)chdir|work(?:ing)?[ -_]?dir`)},
	{noMount, lazy.New(`(?i)mount`)},
	{noImage, lazy.New(`(?i)no such file|not found|does not exist|invalid image|image`)},
}

// containerFault tells which of them a line is about.
func containerFault(line string) string {
	for _, f := range containerFaults {
		if f.says.MatchString(line) {
			return f.what
		}
	}
	return noneOfThese
}
