package job_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/slurm/job"
)

func TestASiteFillsWhatIsLeftOut(t *testing.T) {
	site := job.Site{
		Account: "research", Partition: "gpu", CPUPartition: "cpu", GPUsPerNode: 4, GPU: "h100", GRESType: "h100",
		GPURequest: "gres", CPUsPerTask: 96, Time: "1:00:00", Container: job.Container{Runtime: job.Pyxis},
	}
	full := site.Fill(job.Spec{Worktree: "/w"})
	require.Equal(t, "gpu", full.Partition)
	require.Equal(t, 4, *full.GPUsPerNode)
	require.Equal(t, job.Spec{Worktree: "/w"}.Container, full.Container, "no container unless one is asked for")

	own := job.Spec{Worktree: "/w", Partition: "mine", GPUsPerNode: new(2), Time: "5"}
	full = site.Fill(own)
	require.Equal(t, "mine", full.Partition)
	require.Equal(t, 2, *full.GPUsPerNode)
	require.Equal(t, "5", full.Time)

	cpu := site.Fill(job.Spec{Worktree: "/w", GPUsPerNode: new(0)})
	require.Equal(t, "cpu", cpu.Partition)
	require.Nil(t, cpu.CPUsPerTask, "the CPUs of a GPU node are not those of another")

	script, err := job.Render(job.Spec{Worktree: "/w", Container: job.Container{Image: "/i.sqsh"}}, job.Options{Site: site})
	require.NoError(t, err)
	require.Contains(t, script.Text, "#SBATCH --gres=gpu:h100:4\n")
	require.Contains(t, script.Text, "--container-image=/i.sqsh")
}
