package diagnose_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/slurm/diagnose/diagnosetest"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/outcome"
)

// The driver's words on a GPU, in the forms of dmesg and of syslog, and in those of several releases of the driver. The classes are
// those of NVIDIA's catalogue of Xids: a program's own error, one that needs a reset, or one to ignore.
func TestWhatXidsTell(t *testing.T) {
	const dmesg, syslog = "[1234567.123456] NVRM: Xid (PCI:0000:3b:00): ", "Mar  2 10:19:40 n3 kernel: NVRM: Xid (PCI:0000:3b:00): "
	const iso, old = "2026-03-02T10:19:40.123456+01:00 n3 kernel: [99.123456] NVRM: Xid (PCI:0000:3b:00): ", "Mar 02 10:19:40 n3 kernel: NVRM: Xid (0000:3b:00): "
	steps := diagnosetest.Rounds(8, " iteration {n}/ 60 | lm loss: 2.{n} |\n")
	cuda, own := diagnosetest.Raised("RuntimeError: CUDA error: unspecified launch failure"), diagnosetest.Raised("KeyError: 'tokens'")
	for said, class := range map[string]string{
		"13, pid='<unknown>', name=<unknown>, Graphics SM Warp Exception on (GPC 7, TPC 0, SM 1): Out Of Range Address":  outcome.CUDAIllegalAccess,
		"31, pid=7, name=python, Ch 0000000a, intr 00000000. MMU Fault: ENGINE GRAPHICS GPCCLIENT_T1_7 faulted @ 0x2b57": outcome.CUDAIllegalAccess,
		"45, pid=12542, name=python, Ch 00000002":                                                                        outcome.CUDAIllegalAccess,
		"48, pid=1234, name=python, DBE (double bit error) at 0x1234":                                                    outcome.GPUHardware,
		"61, pid=1234, name=python, 0cec(3098) 00000000 00000000":                                                        outcome.GPUHardware,
		"62, 323f0f30 0000c3d8 00000000 206dae68":                                                                        outcome.GPUHardware,
		"63, pid=1896, Row Remapper: New row marked for remapping, reset gpu to activate.":                               outcome.GPUHardware,
		"64, pid=1896, Row Remapper: Failed to record a row":                                                             outcome.GPUHardware,
		"74, pid=123, name=python, NVLink: fatal error detected on link 6(0x10000, 0x0, 0x0, 0x0, 0x0, 0x0, 0x0)":        outcome.GPUHardware,
		"79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.":                                               outcome.GPUHardware,
		"79, GPU has fallen off the bus.":                                                                                outcome.GPUHardware,
		"94, pid=7194, Contained: SM (0x1). RST: No, D-RST: No":                                                          outcome.GPUHardware,
		"95, pid=7194, Uncontained: LTC TAG (0x2,0x0). RST: Yes, D-RST: No":                                              outcome.GPUHardware,
		"119, pid=2, name=python, Timeout after 45s of waiting for RPC response from GPU3 GSP! Expected function 76":     outcome.GPUHardware,
		"120, GSP kernel exception: store access page fault (cause:0xf) @ pc:0xffffffff93003d42, partition:4#0":          outcome.GPUHardware,
		"140, pid='<unknown>', name=<unknown>, An uncorrectable ECC error detected (possible firmware handling failure)": outcome.GPUHardware,
		"149, NETIR_LINK_EVT Fatal XC0 i0 Link 10 (0x4 0x1)":                                                             outcome.GPUHardware,
		"154, GPU recovery action changed from 0x0 (None) to 0x2 (Node Reboot Required)":                                 outcome.GPUHardware,
		"154, GPU recovery action changed from 0x0 (None) to 0x1 (GPU Reset Required)":                                   outcome.GPUHardware,
	} {
		for _, head := range []string{dmesg, syslog, iso, old} {
			r := diagnosetest.Old(t, steps+head+said+"\n"+cuda)
			require.Equal(t, class, r.Class, head+said)
			require.Nil(t, r.RootRank, said)
			if class == outcome.GPUHardware && head != dmesg {
				require.Equal(t, []string{"n3"}, r.ExcludeNodes, head+said)
			}
		}
	}
	r := diagnosetest.Old(t, steps+syslog+"92, pid=11, High single-bit ECC error rate\n"+own)
	require.Equal(t, outcome.UserException, r.Class, "one to ignore")
	r = diagnosetest.Old(t, steps+syslog+"79, pid=5, GPU has fallen off the bus.\n"+syslog+"45, pid=7, name=python, Ch 00000002\n"+cuda)
	require.Equal(t, outcome.GPUHardware, r.Class, "the clean-up after another error")
}

// Slurm's words on a node that failed, in those of several releases.
func TestSlurmsWordsOnAFailedNode(t *testing.T) {
	const aborted, waited = "srun: Job step aborted: Waiting up to 32 seconds for job step to finish.\n", "srun: error: Timed out waiting for job step to complete\n"
	steps := diagnosetest.Rounds(8, " iteration {n}/ 60 | lm loss: 2.{n} |\n")
	for said, c := range map[string]struct{ class, node string }{
		"slurmstepd: error: *** JOB 1 ON n1 CANCELLED AT 2026-03-02T10:19:40 DUE TO NODE FAILURE, SEE SLURMCTLD LOG FOR DETAILS ***\n": {outcome.SlurmNodeFail, "n1"},
		"slurmstepd-n1: error: *** STEP 1.0 ON n1 CANCELLED AT 2026-03-02T10:19:40 DUE TO NODE FAILURE, SEE SLURMCTLD LOG FOR DETAILS ***\n": {
			outcome.SlurmNodeFail, "n1",
		},
		"slurmd[n3]: *** STEP 1.0 CANCELLED AT 2026-03-02T10:19:40 DUE TO NODE n3 FAILURE ***\n":                        {outcome.SlurmNodeFail, ""},
		"srun: error: Node failure on n3\n" + aborted + waited:                                                          {outcome.SlurmNodeFail, "n3"},
		"srun: error: step_launch_notify_io_failure: aborting, io error with slurmstepd on node 1\n" + aborted + waited: {outcome.SlurmNodeFail, ""},
		"srun: error: Task launch for StepId=2.5 failed on node n3: Transport endpoint is not connected\n" +
			"srun: error: Application launch failed: Transport endpoint is not connected\n" + aborted + waited: {outcome.SlurmNodeFail, "n3"},
		aborted + "slurmstepd-n3: error: *** STEP 1.0 ON n3 CANCELLED AT 2026-03-02T10:19:40 ***\n" + waited: {outcome.SlurmCancelled, ""},
		aborted + waited: {outcome.UnknownExit, ""},
	} {
		r := diagnosetest.Old(t, steps+said)
		require.Equal(t, c.class, r.Class, said)
		if c.node != "" {
			require.Equal(t, []string{c.node}, r.ExcludeNodes, said)
		}
	}
}

// An error that a GPU's memory corrected is no fault, and neither is a socket's error that of a file system.
func TestWhatWasCorrectedIsNoFault(t *testing.T) {
	const counted = "nvidia-smi: 1 volatile corrected ECC error on GPU 2 since boot\n"
	steps := diagnosetest.Rounds(8, " iteration {n}/ 60 | lm loss: 2.{n} |\n")
	for raised, class := range map[string]string{
		"OSError: [Errno 113] No route to host":                  outcome.UserException,
		"OSError: [Errno 22] Invalid argument: '/scratch/u/a:b'": outcome.UserException,
		"OSError: [Errno 62] Timer expired: '/scratch/u/x.bin'":  outcome.Filesystem,
	} {
		r := diagnosetest.Old(t, counted+steps+diagnosetest.Raised(raised))
		require.Equal(t, class, r.Class, raised)
		require.Empty(t, r.ExcludeNodes)
	}
	require.Equal(t, outcome.UnknownExit, diagnosetest.Old(t, counted+steps).Class)
}

// A file system that does not answer, as the kernel's client, Python and a shell's commands report it after steps of the training.
func TestAFileSystemThatDoesNotAnswer(t *testing.T) {
	steps := diagnosetest.Rounds(8, " iteration {n}/ 60 | lm loss: 2.{n} |\n")
	for _, said := range []string{
		"LustreError: 11-0: scratch-OST0003-osc-ffff9: operation ost_write to node 10.1.1.5@o2ib failed: rc = -5\n",
		"cp: error writing '/scratch/u/a.pt': Cannot send after transport endpoint shutdown\n",
		"cat: /scratch/u/x: Input/output error\n", "ls: cannot access '/scratch': Stale file handle\n",
		"bash: cd: /scratch/u: Transport endpoint is not connected\n",
		diagnosetest.Raised("OSError: [Errno 108] Cannot send after transport endpoint shutdown: '/scratch/u/a.pt'"),
		diagnosetest.Raised("OSError: [Errno 5] Input/output error: '/scratch/u/x.bin'"),
		diagnosetest.Raised("OSError: [Errno 116] Stale file handle: '/scratch/u/x.bin'"),
		diagnosetest.Raised("OSError: [Errno 70] Communication error on send: '/scratch/u/x.bin'"),
		diagnosetest.Raised("OSError: [Errno 61] No data available: '/scratch/u/x.bin'"),
	} {
		r := diagnosetest.Old(t, steps+said+"srun: error: n3: task 7: Exited with exit code 1\n")
		require.Equal(t, outcome.Filesystem, r.Class, said)
		require.Equal(t, 7, *r.RootRank, said)
		require.Equal(t, "n3", *r.RootNode, said)
	}
}
