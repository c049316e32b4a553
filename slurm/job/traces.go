package job

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

// traceSettings are the variables that make NCCL, torch and Python write traces for
// the diagnosis. Sources: NCCL's environment variables (NCCL_DEBUG_FILE, with %h and
// %p), torch's ProcessGroupNCCL.hpp, FlightRecorder.hpp and FlightRecorder.cpp.
//
// Two variables of the flight recorder have two names. Older releases of torch read only the
// older name. Newer ones prefer TORCH_FR_, and warn once about the older name if it is set at
// all. The script does not know the release, so it sets both names.
var traceSettings = []setting{
	{name: "PYTHONFAULTHANDLER", value: "1"},
	{name: "NCCL_DEBUG", value: "WARN"},
	{name: "NCCL_DEBUG_FILE", value: "nccl.%h.%p.log", inRunDir: true},
	{name: "TORCH_NCCL_DUMP_ON_TIMEOUT", value: "1"},
	{name: "TORCH_FR_BUFFER_SIZE", older: "TORCH_NCCL_TRACE_BUFFER_SIZE", value: "2000"},
	{name: "TORCH_FR_DUMP_TEMP_FILE", older: "TORCH_NCCL_DEBUG_INFO_TEMP_FILE", value: "flight-recorder-", inRunDir: true},
}

func (s setting) names() []string {
	if s.older == "" {
		return []string{s.name}
	}
	return []string{s.name, s.older}
}

// attempt is the folder of one attempt, relative to the folder of the logs.
const attempt = "$SLURM_JOB_ID/attempt-${SLURM_RESTART_COUNT:-0}"

// traces returns the commands that create a folder for this attempt, and that direct
// all traces there.
func (r *rendering) traces() string {
	if !r.traced() {
		return ""
	}
	var b strings.Builder
	b.WriteString("# What a diagnosis reads, one folder for each attempt (monitor: false leaves it out).\n")
	here := path.Clean(r.LogDir) + "/"
	run := quote(here) + attempt
	switch {
	case path.IsAbs(r.LogDir) && r.contained():
		fmt.Fprintf(&b, "RUN_DIR_HERE=%s\nmkdir -p \"$RUN_DIR_HERE\"\nexport RUN_DIR=%s\n", run, quote(r.inside(r.LogDir)+"/")+attempt)
	case path.IsAbs(r.LogDir):
		fmt.Fprintf(&b, "export RUN_DIR=%s\nmkdir -p \"$RUN_DIR\"\n", run)
	case r.contained():
		fmt.Fprintf(&b, "RUN_DIR_HERE=%s\nmkdir -p \"$RUN_DIR_HERE\"\nexport RUN_DIR=%s/$RUN_DIR_HERE\n", run, quote(r.inside(r.Worktree)))
	default:
		fmt.Fprintf(&b, "export RUN_DIR=$PWD/%s\nmkdir -p \"$RUN_DIR\"\n", run)
	}
	for line := range slices.Chunk(r.traceSettings(), 3) {
		b.WriteString("export")
		for _, s := range line {
			b.WriteString(" " + s.name + "=" + s.shell())
		}
		b.WriteString("\n")
	}
	b.WriteString(`DIRTY=$(git diff --no-ext-diff --no-textconv HEAD 2>/dev/null | sha256sum | cut -c1-12) || DIRTY=unknown
export DIRTY
` + r.marker())
	return b.String()
}

// traceSettings returns the trace variables that neither the user nor a preset sets, by any of
// their names: the name that torch prefers would hide a value that the user gave by the other.
func (r *rendering) traceSettings() []setting {
	var out []setting
	for _, s := range traceSettings {
		if slices.ContainsFunc(s.names(), r.given) {
			continue
		}
		for _, n := range s.names() {
			out = append(out, setting{name: n, value: s.value, inRunDir: s.inRunDir})
		}
	}
	return out
}

// given reports whether the user or a preset sets a variable, if only in the container.
func (r *rendering) given(name string) bool {
	_, inside := r.Container.Env[name]
	return inside || r.sets(name) || r.presetSets(name)
}

func (r *rendering) presetSets(name string) bool {
	return slices.ContainsFunc(r.presets, func(p setting) bool { return p.name == name })
}

// marker returns the command that prints one line per node and attempt about what was
// started there. Hashes in the line show whether nodes were started differently. The
// command runs on the nodes and is in single quotes here.
func (r *rendering) marker() string {
	last := "$(((SLURM_NODEID + 1) * GPUS_PER_NODE - 1))"
	first := "$((SLURM_NODEID * GPUS_PER_NODE))"
	if *r.GPUsPerNode == 0 {
		first, last = "$SLURM_NODEID", "$SLURM_NODEID"
	}
	return `MARK='  # one line a node: what was started there
short() { sha256sum | cut -c1-12; }
echo "start: attempt=${SLURM_RESTART_COUNT:-0} node=$SLURM_NODEID host=${SLURMD_NODENAME:-$HOSTNAME} ranks=` + first + "-" + last + ` \
commit=$(git rev-parse --short=12 HEAD 2>/dev/null || echo unknown) dirty=$DIRTY argv=$(printf "%s\0" "$@" | short) \
env=$(env | grep -E "^(CUDA_|NCCL_|TORCH_|PYTHON|UV_|OMP_|NVTE_)" | grep -v VISIBLE_DEVICES | LC_ALL=C sort | short)" | tee "$RUN_DIR/start-$SLURM_NODEID"
'`
}
