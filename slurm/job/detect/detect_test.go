package detect_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/slurm/job"
	"github.com/megatron-ops/megatron-ops/slurm/job/detect"
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
		"one kind, which no request has to name": {
			map[string]string{"nodes": "gpu|up|6|gpu:h100:4|96|2|1-00:00:00|ib\n"},
			job.Site{Partition: "gpu", GPUsPerNode: 4, GPU: "h100", CPUsPerTask: 96, CPUsPerNode: 96, ThreadsPerCore: 2},
		},
		"one kind here and another there, by features": {
			map[string]string{"nodes": "dev|up|2|gpu:8|64|1|1:00:00|a100,nvlink\ndev|up|2|gpu:8|64|1|1:00:00|h100,nvlink\n"},
			job.Site{Partition: "dev", GPUsPerNode: 8, CPUsPerTask: 64, CPUsPerNode: 64, ThreadsPerCore: 1},
		},
		"a program of containers": {
			map[string]string{"programs": "/usr/bin/docker\n/usr/bin/apptainer\n"},
			job.Site{Container: job.Container{Runtime: job.Apptainer}},
		},
		"lines of another form": {map[string]string{"nodes": "sinfo: error\n|||\n", "mounts": "x\n"}, job.Site{}},
	} {
		t.Run(name, func(t *testing.T) {
			site, found := detect.Site(c.output, nil)
			require.Equal(t, c.want, site)
			for _, f := range found {
				require.NotEmpty(t, f.Why.EN)
				require.NotEmpty(t, f.Why.ZH)
			}
		})
	}
}

// Site asks for a field that has several acceptable values or none. An answer decides how
// later fields are derived.
func TestWhatIsOpenIsAskedFor(t *testing.T) {
	output := map[string]string{
		"nodes":      "cpu|up|4|(null)|64|1|1:00:00|(null)\nbig|up|40|gpu:8|64|1|7-00:00:00|ib\nmixed|up|2|gpu:h100:4|96|2|1:00:00|ib\nmixed|up|1|gpu:a100:8|128|2|1:00:00|ib\ndown|down|1|gpu:8|1|1|1|x\n",
		"partitions": "PartitionName=cpu Default=YES\n",
		"config":     "SelectType = select/cons_tres\n",
		"account":    "research\n",
		"accounts":   "research\nteam\n",
		"programs":   "/usr/bin/docker\n/usr/bin/apptainer\n",
	}
	asked := func(said map[string]string) (job.Site, map[string][]string) {
		site, found := detect.Site(output, said)
		open := map[string][]string{}
		for _, f := range found {
			if f.Asks {
				open[f.Field] = f.Choices
			}
		}
		return site, open
	}
	site, open := asked(nil)
	require.Equal(t, map[string][]string{
		"partition": {"big", "mixed"}, "gpu": nil, "account": {"research", "team"}, "gpu_request": {"gpus-per-node", "gres", "gpus"},
		"container.runtime": {"apptainer", "docker"}, "shared": nil,
	}, open)
	require.Equal(t, "big", site.Partition)
	require.Empty(t, site.GPU)

	said := map[string]string{"partition": "mixed", "account": "team"}
	site, open = asked(said)
	require.Equal(t, []string{"h100", "a100"}, open["gres_type"])
	require.NotContains(t, open, "partition")
	require.NotContains(t, open, "gpu", "the nodes of this partition say it")
	require.Equal(t, "team", site.Account)
	said["gres_type"], said["shared"], said["container.runtime"] = "a100", "/lustre,/home", ""
	site, _ = asked(said)
	require.Equal(t, job.Site{
		Partition: "mixed", CPUPartition: "cpu", Account: "team", GPUsPerNode: 8, GPU: "a100", GRESType: "a100", GPURequest: "gpus-per-node",
		CPUsPerTask: 128, CPUsPerNode: 128, ThreadsPerCore: 2, Shared: []string{"/lustre", "/home"},
	}, site)

	site, _ = asked(map[string]string{"partition": "elsewhere"})
	require.Equal(t, "elsewhere", site.Partition)
	require.Zero(t, site.GPUsPerNode, "sinfo shows no such partition")
	for gpus, cpus := range map[string]int{"8": 64, "4": 32} {
		site, _ = detect.Site(map[string]string{"nodes": "gpu|up|40|gpu:8|64|1|1:00:00|ib\ngpu|up|2|gpu:4|32|1|1:00:00|ib\n"}, map[string]string{"gpus_per_node": gpus})
		require.Equal(t, cpus, site.CPUsPerNode, "of the nodes with %s GPUs", gpus)
	}

	for field, answers := range map[string][2]string{"partition": {"mixed", "down"}, "gpu": {"H100", "abacus"}, "shared": {"/a,/b", "/a,b"}} {
		_, found := detect.Site(output, nil)
		f := found[slices.IndexFunc(found, func(f detect.Finding) bool { return f.Field == field })]
		require.Empty(t, f.Refuses(answers[0]))
		require.NotEmpty(t, f.Refuses(answers[1]).ZH)
	}
}

func TestProbesAreLists(t *testing.T) {
	for _, p := range detect.Probes("alice") {
		require.NotEmpty(t, p.Argv, p.Name)
	}
}
