package diagnose

import (
	"github.com/megatron-ops/megatron-ops/internal/lazy"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/scan"
)

// kernels matches the kernel's lines, with the time since the node's start or with syslog's head, and those of NVIDIA's driver in it.
// Whatever copies them writes them into some stream of the node.
var kernels = lazy.New(`^\[ *\d+\.\d{6}\] |\bkernel: |\bNVRM: `)

// ofKernels matches the process in a kernel's line: the one that used the GPU of an Xid, or that was killed for memory.
var ofKernels = lazy.New(`\bpid[=:] ?'?(\d{1,9})\b|\b[Kk]ill(?:ed)? process (\d{1,9})\b`)

// rankOfKernels returns the rank of the process in a kernel's line, by launchers' summaries or by NCCL's lines, or -1.
func (j *job) rankOfKernels(e *scan.Event, byPid map[string]int) int {
	g := ofKernels.FindStringSubmatch(e.Text)
	if g == nil || e.Node == "" {
		return -1
	}
	process := e.Node + ":" + g[1] + g[2]
	if r, ok := byPid[process]; ok {
		return r
	}
	for i, f := range j.files {
		if t, ok := f.TagOfPid[process]; ok {
			if r := j.rankOf(i, t); r >= 0 {
				return r
			}
		}
	}
	return -1
}
