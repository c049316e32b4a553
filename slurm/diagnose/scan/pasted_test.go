package scan_test

import (
	"testing"

	"github.com/megatron-ops/megatron-ops/slurm/diagnose"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/diagnosetest"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/outcome"
	"github.com/stretchr/testify/require"
)

// TestPieces diagnoses pieces of logs as people show them to each other: without what
// stood above, or cut off before the end.
func TestPieces(t *testing.T) {
	mayBe := "Worker exit type: SYSTEM_ERROR Worker exit detail: Worker unexpectedly exits. There are some potential root causes. (1) The process " +
		"is killed by SIGKILL by OOM killer. (2) ray stop --force is called. (3) The worker is crashed unexpectedly due to SIGSEGV.\n"
	for name, c := range map[string]struct{ log, class, line string }{
		"NCCL's last warning in an exception without a traceback": {
			"torch.distributed.DistBackendError: NCCL error in: /p/NCCLUtils.hpp:1, invalid usage (run with NCCL_DEBUG=WARN for details)\n" +
				"ncclInvalidUsage: This usually reflects invalid usage of NCCL library.\nLast error:\nDuplicate GPU detected : rank 5 and rank 4 both on CUDA device 3b\n",
			outcome.NodeCountMismatch, "Duplicate GPU",
		},
		"the exception of an error file": {
			"[ERROR] 2026-02-03 04:05:06,789 error_handler: {\n  \"message\": {\n    \"message\": \"RendezvousTimeoutError: \",\n" +
				"    \"extraInfo\": {\n      \"py_callstack\": \"Traceback (most recent call last):\\n  File \\\"/v/run.py\\\", line 3, in main\\n\n",
			outcome.Rendezvous, "RendezvousTimeoutError",
		},
		"data that look like an error file": {
			"{\n  \"message\": {\n    \"message\": \"what is a ValueError?\",\n    \"role\": \"user\"\n", outcome.UnknownExit, "",
		},
		"what an import needs": {
			"RuntimeError: Failed to import m.modeling_m because of the following error (look up to see its traceback):\n" +
				"/lib64/libc.so.6: version `GLIBC_2.39' not found (required by /v/fused_2.so)\n",
			outcome.ExtensionABI, "GLIBC_2.39",
		},
		"the store of a node that is gone": {
			"Traceback (most recent call last):\n  File \"/v/torch/distributed/elastic/rendezvous/c10d_rendezvous_backend.py\", line 11, in _call_store\n" +
				"    return getattr(self._store, store_op)(*args)\nRuntimeError: Broken pipe\n\n" +
				"The above exception was the direct cause of the following exception:\n\nTraceback (most recent call last):\n  File \"/v/torchrun\", line 3, in <module>\n",
			outcome.Rendezvous, "Broken pipe",
		},
		"Ray lists what may have ended a worker": {
			"ray.exceptions.ActorDiedError: The actor died unexpectedly before finishing this task.\n\tclass_name: Worker\n" +
				"The actor is dead because its worker process has died. " + mayBe, outcome.UnknownExit, "",
		},
		"Ray names an actor that does not answer": {
			"Traceback (most recent call last):\n  File \"/w/base.py\", line 55, in __call__\n    output = ray.get(output)\n" +
				"ray.exceptions.ActorUnavailableError: The actor d5a12869ca8466 is unavailable: RpcError: Socket closed. The task may not have run.\n" +
				"(raylet) A worker died or was killed by an unexpected system error.\n", outcome.UnknownExit, "is unavailable",
		},
		"Ray says of any worker on Kubernetes what may have ended it": {
			"ray.exceptions.ActorDiedError: The actor died unexpectedly before finishing this task.\n" +
				"Worker exit detail: Worker exits with an exit code None. The worker may have exceeded K8s pod memory limits.\n", outcome.UnknownExit, "memory limits",
		},
		"a launcher's word on what it started": {
			"Cuda failure 802 'system not yet initialized'\n  File \"/usr/lib/python3.11/subprocess.py\", line 5, in run\n    raise CalledProcessError(\n" +
				"subprocess.CalledProcessError: Command '['torchrun', '--nnodes', '1', '/w/a.py']' returned non-zero exit status 1.\n",
			outcome.CUDADriver, "system not yet initialized",
		},
		"accelerate's, with nothing before it": {
			"Traceback (most recent call last):\n  File \"/v/accelerate/commands/launch.py\", line 6, in simple_launcher\n    raise subprocess.CalledProcessError(\n" +
				"subprocess.CalledProcessError: Command '['/v/bin/python', 't.py']' returned non-zero exit status 1.\n",
			outcome.UnknownExit, "CalledProcessError",
		},
		"DeepSpeed's word on one of its children": {
			"Traceback (most recent call last):\n  File \"/v/deepspeed/launcher/launch.py\", line 6, in sigkill_handler\n    raise subprocess.CalledProcessError(\n" +
				"subprocess.CalledProcessError: Command '['/v/bin/python3.9', '-u', 't.py', '--local_rank=3']' returned non-zero exit status 1.\n",
			outcome.UnknownExit, "CalledProcessError",
		},
		"vLLM's word on its engine, whose own is not shown": {
			"Traceback (most recent call last):\n  File \"/v/vllm/v1/engine/utils.py\", line 7, in wait_for_engine_startup\n    raise RuntimeError(\n" +
				"RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {}\n",
			outcome.UnknownExit, "Engine core",
		},
		"a link puts its errors right": {
			"[  +0.2] pcieport 0000:0c:01.0: AER: Corrected error received: 0000:0c:01.0\n" +
				"[  +0.1] pcieport 0000:0c:01.0: PCIe Bus Error: severity=Corrected, type=Data Link Layer, (Transmitter ID)\n",
			outcome.UnknownExit, "",
		},
		"a link cannot": {
			"[ 12.5] pcieport 0000:0c:01.0: PCIe Bus Error: severity=Uncorrectable (Fatal), type=Transaction Layer, (Receiver ID)\n",
			outcome.GPUHardware, "Uncorrectable",
		},
		"nothing but pyxis, in a language that no row knows": {
			"pyxis: importing docker image ...\nslurmstepd: error: pyxis: child 17 failed with error code: 5\nslurmstepd: error: pyxis: failed to import docker image\n" +
				"slurmstepd: error: pyxis: printing enroot log file:\nslurmstepd: error: pyxis:     [INFO] Fetching image manifest\n" +
				"slurmstepd: error: pyxis:     [INFO] Downloading 7 missing layers...\nslurmstepd: error: pyxis:     [INFO] Extracting image layers...\n" +
				"slurmstepd: error: pyxis:     tar (child): /cache/0b: No se puede efectuar open: Permiso denegado\n" +
				"slurmstepd: error: pyxis:     tar: Child returned status 2\n",
			outcome.Container, "failed to import",
		},
		"mpirun guesses at what its daemon's shell said": {
			"bash: orted: command not found\n--------\nORTE was unable to reliably start one or more daemons.\nThis usually is caused by:\n\n" +
				"* not finding the required libraries and/or binaries on\n  one or more nodes.\n", outcome.EnvLaunch, "orted: command not found",
		},
		"and at why ssh did not reach a node": {
			"ssh: connect to host n7 port 2200: Connection refused\n--------\nORTE was unable to reliably start one or more daemons.\nThis usually is caused by:\n",
			outcome.EnvLaunch, "ssh: connect to host",
		},
		"Gloo failed for no reason that the system told": {
			"[rank1]:[E528 08:52:46.1 ProcessGroupGloo.cpp:145] Gloo connectFullMesh failed with [/p/gloo/transport/tcp/pair.cc:144] no error\n",
			outcome.NCCLConnection, "connectFullMesh",
		},
		"a CUDA call of NCCL's own": {
			"Traceback (most recent call last):\n  File \"/w/a.py\", line 3, in <module>\n    dist.barrier()\ntorch.distributed.DistBackendError: " +
				"NCCL error in: /p/NCCLUtils.hpp:9, unhandled cuda error (run with NCCL_DEBUG=INFO for details), NCCL version 2.14.3\n",
			outcome.UserException, "unhandled cuda error",
		},
		"NCCL has no socket, whose kinds it names": {
			"n1:17:17 [0] include/socket.h:344 NCCL WARN Socket creation failed : Address family not supported by protocol\n", outcome.NCCLConnection, "Socket creation",
		},
		"NCCL has no InfiniBand, and takes sockets": {
			"n1:17:17 [0] misc/ibvwrap.cc:63 NCCL WARN Failed to open libibverbs.so[.1]\nn1:17:17 [0] NCCL INFO Using network Socket\n", outcome.UnknownExit, "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := diagnosetest.With(t, c.log, diagnose.Context{JobState: "ENDED"})
			require.Equal(t, c.class, r.Class, "%+v", r)
			require.Contains(t, r.RootLine, c.line)
		})
	}
}
