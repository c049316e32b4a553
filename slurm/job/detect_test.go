package job_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/slurm/job"
)

func TestASiteIsReadFromWhatSlurmPrints(t *testing.T) {
	for name, c := range map[string]struct {
		output map[string]string
		want   job.Site
	}{
		"nothing": {nil, job.Site{}},
		"default partition with GPUs, features name the kind": {
			map[string]string{
				"nodes":      "dev|up|2|gpu:8|64|1|1:00:00|a100,nvlink\nprod|up|40|gpu:8|64|1|7-00:00:00|a100,nvlink\n",
				"partitions": "PartitionName=dev AllowGroups=ALL AllocNodes=ALL Default=YES QoS=N/A\nPartitionName=prod AllowGroups=ALL Default=NO QoS=N/A\n",
				"config":     "Configuration data as of 2030\nSelectType              = select/cons_tres\n",
				"account":    "research\n",
			},
			job.Site{Partition: "dev", Account: "research", GPUsPerNode: 8, GPU: "a100", GPURequest: "gpus-per-node", CPUsPerTask: 64, CPUsPerNode: 64, ThreadsPerCore: 1},
		},
		"a CPU partition is the default, two kinds of GPU in one partition": {
			map[string]string{
				"nodes": "cpu|up|100|(null)|128|2|2-00:00:00|(null)\ngpu|up|6|gpu:h100:4(S:0-1)|96|2|1-00:00:00|ib\n" +
					"gpu|up|2|gpu:a100:8(S:0,1)|128|2|1-00:00:00|ib\nold|down|99|gpu:v100:4|40|2|infinite|ib\n",
				"partitions": "PartitionName=cpu Default=YES\n",
				"config":     "SelectType = select/cons_res\n",
				"accounts":   "zeta\nalpha\nalpha\n",
				"srun":       "      --container-image=[USER@][REGISTRY#]IMAGE[:TAG]|PATH\n",
				"mounts":     "/ ext4\n/lustre lustre\n/home nfs4\n/proc proc\n",
			},
			job.Site{
				Partition: "gpu", CPUPartition: "cpu", Account: "alpha", GPUsPerNode: 4, GPU: "h100", GRESType: "h100", GPURequest: "gres",
				CPUsPerTask: 96, CPUsPerNode: 96, ThreadsPerCore: 2, Container: job.Container{Runtime: job.Pyxis}, Shared: []string{"/lustre", "/home"},
			},
		},
		"a program of containers": {
			map[string]string{"programs": "/usr/bin/docker\n/usr/bin/apptainer\n"},
			job.Site{Container: job.Container{Runtime: job.Apptainer}},
		},
		"lines of another form": {map[string]string{"nodes": "sinfo: error\n|||\n", "mounts": "x\n"}, job.Site{}},
	} {
		t.Run(name, func(t *testing.T) {
			site, found := job.Detect(c.output)
			require.Equal(t, c.want, site)
			for _, f := range found {
				require.NotEmpty(t, f.Why.EN)
				require.NotEmpty(t, f.Why.ZH)
			}
		})
	}
}

func TestASiteFillsWhatIsLeftOut(t *testing.T) {
	site := job.Site{
		Account: "research", Partition: "gpu", CPUPartition: "cpu", GPUsPerNode: 4, GPU: "h100", GRESType: "h100",
		GPURequest: "gres", CPUsPerTask: 96, Time: "1:00:00", Container: job.Container{Runtime: job.Pyxis},
	}
	full := site.Fill(job.Spec{Worktree: "/w"})
	require.Equal(t, "gpu", full.Partition)
	require.Equal(t, 4, *full.GPUsPerNode)
	require.Equal(t, job.Spec{Worktree: "/w"}.Container, full.Container, "no container unless one is asked for")

	own := job.Spec{Worktree: "/w", Partition: "mine", GPUsPerNode: ptr(2), Time: "5"}
	full = site.Fill(own)
	require.Equal(t, "mine", full.Partition)
	require.Equal(t, 2, *full.GPUsPerNode)
	require.Equal(t, "5", full.Time)

	cpu := site.Fill(job.Spec{Worktree: "/w", GPUsPerNode: ptr(0)})
	require.Equal(t, "cpu", cpu.Partition)
	require.Nil(t, cpu.CPUsPerTask, "the CPUs of a GPU node are not those of another")

	script, err := job.Render(job.Spec{Worktree: "/w", Container: job.Container{Image: "/i.sqsh"}}, job.Options{Site: site})
	require.NoError(t, err)
	require.Contains(t, script.Text, "#SBATCH --gres=gpu:h100:4\n")
	require.Contains(t, script.Text, "--container-image=/i.sqsh")
}

func TestProbesAreLists(t *testing.T) {
	for _, p := range job.Probes("alice") {
		require.NotEmpty(t, p.Argv, p.Name)
	}
}
