package diagnose

import (
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/lazy"
	"github.com/megatron-ops/megatron-ops/knowledge/megatron"
)

// What a class's remedies ask for, in the order of its table. A remedy that the
// job has already, or that cannot help it, is not given. "" always is.
const (
	smallerBatch       = "micro-batch-size"
	recomputeAll       = "recompute"
	moreParallel       = "model-parallel"
	shardOptimizer     = "use-distributed-optimizer"
	expandableSegments = "expandable-segments"
	flightRecorder     = "flight-recorder"
	debugNCCL          = "debug-nccl"

	// AllMemory is all of each node's memory, ContainerVariables a container to
	// pass variables into: the specification tells of them, no log does.
	AllMemory          = "all-memory"
	ContainerVariables = "container-variables"
)

var asksFor = map[string][]string{
	HostOOM:        {AllMemory, ""},
	MaxConnections: {"", ContainerVariables},
	CUDAOOM:        {smallerBatch, recomputeAll, moreParallel, shardOptimizer, expandableSegments},
	NCCLTimeout:    {"", flightRecorder, ""},
	NCCLConnection: {"", debugNCCL},
	Container:      {noImage, noMount, noWorkdir, noRegistry, noRuntime, notReadable, noneOfThese},
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

// alreadyHas lists what the remedies of a class ask for and the job has, or
// cannot have: from its launch where that is known, from the arguments that it
// printed, and from what its logs show.
func (j *job) alreadyHas(r Report) (has []string) {
	has = append(has, j.given.Already...)
	add := func(what string, so bool) {
		if so {
			has = append(has, what)
		}
	}
	if run, _, ok := j.launch(); ok {
		args, _ := megatron.Parse(run)
		c := args.Effective()
		add(smallerBatch, c.MicroBatchSize.V == 1)
		add(recomputeAll, c.Recompute == "full")
		add(moreParallel, run.WorldSize > 0 && c.TP*c.PP*c.CP >= run.WorldSize)
		add(shardOptimizer, c.UseDistributedOptimizer || c.DP == 1) // over one rank nothing is sharded
	} else {
		add(smallerBatch, j.argument("micro_batch_size") == 1)
		add(recomputeAll, j.args["recompute_granularity"] == "full")
		add(shardOptimizer, j.args["use_distributed_optimizer"] == "True")
	}
	env := map[string]string{}
	if j.given.Launch != nil {
		env = j.given.Launch.Env
	}
	little := r.Memory != nil && r.Memory.TriedGiB > 0 && r.Memory.ReservedGiB < r.Memory.TriedGiB/2
	add(expandableSegments, little || strings.Contains(env["PYTORCH_CUDA_ALLOC_CONF"], "expandable_segments:True"))
	add(flightRecorder, j.missed != nil || env["TORCH_NCCL_TRACE_BUFFER_SIZE"] != "" || env["TORCH_FR_BUFFER_SIZE"] != "")
	spoke := env["NCCL_DEBUG"] == "INFO" || env["NCCL_DEBUG"] == "TRACE"
	for _, f := range j.files {
		spoke = spoke || len(f.addresses) > 0
	}
	add(debugNCCL, spoke)
	return has
}
