package cluster_test

import (
	"fmt"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/slurm"
	"github.com/megatron-ops/megatron-ops/slurm/cluster/local"
	"github.com/megatron-ops/megatron-ops/slurm/slurmtest"
)

// launch is the command line that the program renders, with PyTorch's launcher on each
// of two nodes.
const launch = `set -euo pipefail
export PATH=%[1]s:$PATH OMP_NUM_THREADS=1
MASTER_ADDR=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
export MASTER_ADDR MASTER_PORT=${MASTER_PORT:-29500}
srun --kill-on-bad-exit=1 bash -c 'exec uv run python -m torch.distributed.run \
  --nnodes="$SLURM_NNODES" --nproc-per-node=2 --node-rank="$SLURM_NODEID" \
  --master-addr="$MASTER_ADDR" --master-port="$MASTER_PORT" %[1]s/train.py'`

func testTorch(t *testing.T, s site, port int) {
	tools := slurmtest.Torch(t)
	directives := "--job-name=torch --nodes=2 --ntasks-per-node=1 --gpus-per-node=2 --time=5 --output=logs/%x-%j.out --error=logs/%x-%j.err"
	with := func(env ...string) func(*slurm.Submission) {
		return func(sub *slurm.Submission) {
			sub.Env = append(environ(s), env...)
		}
	}
	t.Run("four ranks on two nodes train to the end", func(t *testing.T) {
		id := s.submit(t, directives, fmt.Sprintf(launch, tools), with(fmt.Sprintf("MASTER_PORT=%d", port)))
		s.state(t, id, slurm.Completed)
		out := s.log(t, fmt.Sprintf("logs/torch-%s.out", id))
		require.Contains(t, out, "iteration       10/      10")
		require.Contains(t, out, "after training is done")
		require.Contains(t, s.log(t, fmt.Sprintf("logs/torch-%s.err", id)), "rank 3 of 4")
	})
	t.Run("a rank that dies takes the job with it and leaves PyTorch's own words", func(t *testing.T) {
		id := s.submit(t, directives, fmt.Sprintf(launch, tools), with("FAIL_AT=2:3", fmt.Sprintf("MASTER_PORT=%d", port+1)))
		j := s.until(t, id, "FAILED", func(j slurm.Job) bool { return j.State == slurm.Failed && j.ExitCode != nil })
		require.NotEqual(t, "0:0", *j.ExitCode)
		errs := s.log(t, fmt.Sprintf("logs/torch-%s.err", id))
		require.Contains(t, errs, "mat1 and mat2 shapes cannot be multiplied (4x5 and 8x32)")
		require.Contains(t, errs, "ChildFailedError")
	})
}

// environ returns the environment that a submission from the site inherits.
func environ(s site) []string {
	if s.environ != nil {
		return s.environ()
	}
	return os.Environ()
}

func TestTorchOnLocal(t *testing.T) {
	t.Parallel() // with the other: they mostly wait
	testTorch(t, site{backend: local.New("here", slurmtest.Dir(t)), dir: slurmtest.Dir(t)}, 0)
}

func TestTorchOnSlurm(t *testing.T) {
	t.Parallel()
	s, real := realSite(t)
	testTorch(t, s, real.Port(0))
}
