package report_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/slurm/diagnose/diagnosetest"
)

// The advice follows what the line of the cause says, where the class alone would advise something else.
func TestTheAdviceFitsTheLine(t *testing.T) {
	for name, c := range map[string]struct{ log, says, not string }{
		"a node without NVIDIA's hook": {
			"FATAL:   container creation failed: exec: \"/usr/bin/nvidia-container-cli\": stat /usr/bin/nvidia-container-cli: no such file or directory\n",
			"The node itself cannot start containers", "image does not exist",
		},
		"a node without pyxis's folder": {
			"[2026-09-24T10:10:06.901] [321.0] error: pyxis: couldn't mkdir /run/pyxis/1005: No such file or directory\n" +
				"[2026-09-24T10:10:06.901] [321.0] error: spank: required plugin spank_pyxis.so: init_post_opt() failed with rc=-1\n",
			"The node itself cannot start containers", "image does not exist",
		},
		"a node without room for the image": {
			"pyxis: importing docker image: nvcr.io#nvidia/pytorch:25.04-py3\nslurmstepd: error: pyxis: failed to import docker image\n" +
				"slurmstepd: error: pyxis:     Write failed because No space left on device\n",
			"ENROOT_TEMP_PATH", "shared storage",
		},
		"an error that the driver only cleans up after": {
			"kernel: NVRM: Xid (PCI:0000:dc:00): 45, pid=18, name=python3, Ch 00000001 caused by previous Xid 149\n",
			"Xid 149 on NODE: NVLink error", "the program's own fault",
		},
		"a limit of the process": {
			diagnosetest.Raised("RuntimeError: Too many open files. Communication with the workers is no longer possible."),
			"ulimit -n", "innermost frame",
		},
		"a run without --eval-interval": {
			diagnosetest.Raised("TypeError: unsupported operand type(s) for //: 'int' and 'NoneType'"),
			"add --eval-interval 1000", "Read the innermost",
		},
		"sequence parallelism without Apex": {
			diagnosetest.Raised("AssertionError: sequence parallel not supported by torch LayerNorm when instantiating TransformerLayer"),
			"Transformer Engine", "innermost frame",
		},
		"a batch script that cannot be run": {
			"slurmstepd: error: execve(): /var/spool/slurmd/job77/slurm_script: No such file or directory\n",
			"first line", "virtual environment",
		},
		"a user whom Slurm does not know": {
			"srun: error: Munge encode failed: Failed to access \"/run/munge/munge.socket.2\": No such file or directory\n",
			"/run/munge", "partition",
		},
		"a package that does not build": {
			"ERROR: Failed building wheel for fused_kernels\nerror: failed-wheel-build-for-install\n", "compiler's first error", "Rebuild Transformer Engine",
		},
		"a runtime that the node lacks": {"slurmstepd-gpu1: error: execve(): singularity: No such file or directory\n", "runtime that the nodes have", "The image does not exist"},
		"a process that signal 9 ended": {"srun: error: gpu1: task 3: Killed\n", "See first whether it was memory", "unused"},
		"a process that ended for memory": {
			"slurmstepd: error: Detected 1 oom_kill event in StepId=7.0. Some of the step tasks have been OOM Killed.\n", "--mem", "See first whether it was memory",
		},
		"a peer that answered": {
			"gpu7:25146:25854 [0] transport/net_ib.cc:1105 NCCL WARN NET/IB : Got completion from peer 10.0.35.1<49189> with status=4 opcode=0 len=0 vendor err 81 (Send)\n",
			"port or queue pair", "could not be reached",
		},
		"a peer that did not": {
			"gpu7:25146:25854 [0] transport/net_ib.cc:1105 NCCL WARN NET/IB : Got completion from peer 10.0.35.1<49189> with status=12 opcode=0 len=0 vendor err 129 (Send)\n",
			"could not be reached is 10.0.35.1", "unused",
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := diagnosetest.Text(t, c.log)
			all := strings.Join(r.Advice, "\n")
			require.Contains(t, all, c.says, "%s: %s", r.Class, r.RootLine)
			require.NotContains(t, all, c.not)
		})
	}
}
