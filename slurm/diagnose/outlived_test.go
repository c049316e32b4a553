package diagnose_test

import (
	"testing"

	"github.com/megatron-ops/megatron-ops/slurm/diagnose/diagnosetest"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/outcome"
	"github.com/stretchr/testify/require"
)

// The line before or behind a traceback says what its program does next.
func TestAnExceptionWhoseProgramSaysThatItGoesOn(t *testing.T) {
	const oom = "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 4.00 GiB"
	const files = "OSError: [Errno 24] Too many open files: 'x'"
	ends := diagnosetest.RaisedIn("build", files) + diagnosetest.Raised(lostPeer) + exitedWith("gpu1", 1, 0, 1)
	for log, line := range map[string]string{
		"micro batch 16 does not fit, trying 8\n" + diagnosetest.RaisedIn("build", oom):                         files,
		"[rank 1] WARNING: no room, trying with half\n" + diagnosetest.RaisedIn("build", oom):                   files,
		"no room, attempt 1 of 5\n" + diagnosetest.RaisedIn("build", oom):                                       files,
		"申请显存失败，改用更小的批\n" + diagnosetest.RaisedIn("build", oom):                                                 files,
		diagnosetest.RaisedIn("build", oom) + "the fused kernel is away, going on without it\n":                 files,
		diagnosetest.RaisedIn("build", oom) + "no room, attempt 2 of 5\n" + diagnosetest.RaisedIn("build", oom): files,
		"no room, attempt 5 of 5\n" + diagnosetest.RaisedIn("build", oom):                                       oom,
		"no room\n" + diagnosetest.RaisedIn("build", oom):                                                       oom,
		"no room, please try again\n" + diagnosetest.RaisedIn("build", oom):                                     oom,
		"从检查点继续训练\n" + diagnosetest.RaisedIn("build", oom):                                                      oom,
		"attempt 1 of 5\n" + diagnosetest.Raised(oom):                                                           oom, // a script started the program again
		diagnosetest.RaisedIn("build", oom) + "trying 8 times was not enough, giving up\n":                      oom,
		"micro batch 16 does not fit, trying 8\n" + diagnosetest.RaisedIn("build", oom) + "loading\n":           files,
	} {
		r := diagnosetest.Text(t, log+ends)
		require.Equal(t, line, r.RootLine, log)
	}
	refused := diagnosetest.RaisedIn("build", "ConnectionRefusedError: [Errno 111] Connection refused")
	r := diagnosetest.Text(t, "no store, attempt 1 of 5\n"+refused+exitedWith("gpu1", 1, 0, 1))
	require.Equal(t, outcome.UnknownExit, r.Class, r.RootLine)
	r = diagnosetest.Text(t, "no store\n"+refused+exitedWith("gpu1", 1, 0, 1))
	require.Equal(t, outcome.UserException, r.Class, "nothing says that it went on")
}
