package diagnose_test

import (
	"fmt"
	"testing"

	"github.com/megatron-ops/megatron-ops/slurm/diagnose/diagnosetest"
	"github.com/stretchr/testify/require"
)

// The kernel's lines stand in the stream of whatever copies them: only the process in them tells a rank. A rank's own words about
// its GPU are its own.
func TestWhoseLineIsTheKernels(t *testing.T) {
	const (
		xid    = "[ 5123.456789] NVRM: Xid (PCI:0000:9a:00): 79, pid=%s, name=python3, GPU has fallen off the bus.\n"
		killed = "[ 5123.456789] Out of memory: Killed process %s (python3) total-vm:912345678kB, anon-rss:501234567kB, file-rss:120kB\n"
		syslog = "2026-11-23T10:00:05+00:00 gpu2 kernel: NVRM: Xid (PCI:0000:9a:00): 79, pid=%s, name=python3, GPU has fallen off the bus.\n"
		own    = "RuntimeError: CUDA error: uncorrectable ECC error encountered\n"
	)
	up := "  world_size ...................................... 4\n"
	for rank := range 4 {
		up += fmt.Sprintf("%d: gpu%d:410%d:420%d [%d] NCCL INFO Connected all rings\n", rank, rank/2+1, rank, rank, rank%2)
	}
	for name, c := range map[string]struct{ line, place string }{
		"an Xid of a process":              {fmt.Sprintf(xid, "4103"), "3 gpu2"},
		"an Xid of a process of no rank":   {fmt.Sprintf(xid, "99"), "- gpu2"},
		"an Xid of another node's process": {fmt.Sprintf(xid, "4101"), "- gpu2"},
		"an Xid of nobody knows whom":      {fmt.Sprintf(xid, "'<unknown>'"), "- gpu2"},
		"by syslog":                        {fmt.Sprintf(syslog, "4103"), "3 gpu2"},
		"a process killed for memory":      {fmt.Sprintf(killed, "4103"), "3 gpu2"},
		"another one killed for memory":    {fmt.Sprintf(killed, "99"), "- gpu2"},
		"the rank's own error":             {own, "2 gpu2"},
	} {
		log := up + "2: " + c.line + "srun: error: gpu2: tasks 2-3: Killed\n"
		require.Equal(t, c.place, place(diagnosetest.Old(t, log)), name)
	}
}
