package job_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/slurm/job"
)

// Validate reports all faults of all components at once, each with the component's number.
func TestComponentsThatMakeNoJob(t *testing.T) {
	for text, want := range map[string][]string{
		`{"components":["nodes=2"]}`:                                                               {"components"},
		`{"components":["nodes=2 bogus=1","nodes=0"]}`:                                             {"components.1", "components.2.nodes"},
		`{"components":["nodes=x","partition=a;b"]}`:                                               {"components.1.nodes", "components.2.partition"},
		`{"components":[{"gpus_per_node":8},{"gpus_per_node":4}]}`:                                 {"components.2.gpus_per_node"},
		`{"gpus_per_node":8,"components":[{"nodes":1},{"gpus_per_node":4}]}`:                       {"components.2.gpus_per_node"},
		`{"nodes":4,"components":[{"nodes":1},{"nodes":2}]}`:                                       {"nodes"},
		`{"array":"1-3","components":[{"nodes":1},{"nodes":2}]}`:                                   {"array"},
		`{"sweep":["lr=1,2"],"components":[{"nodes":1},{"nodes":2}]}`:                              {"array"},
		`{"nodelist":"gpu1","components":[{"nodes":1},{"nodes":2}]}`:                               {"nodelist"},
		`{"partition":"a b","components":[{"nodes":1},{"nodes":2}]}`:                               {"partition"},
		`{"components":["mem=1G mem_per_gpu=1G","nodes=2"]}`:                                       {"components.1.mem_per_gpu"},
		`{"components":["name","nodes="]}`:                                                         {"components.1", "components.2"},
		`{"nodes":3,"components":[{"nodes":1,"gpus-per-node":"2"},{"nodes":2,"gpus_per_node":2}]}`: nil,
	} {
		var m map[string]any
		require.NoError(t, json.Unmarshal([]byte(text), &m))
		m["worktree"] = "/lustre/a"
		raw, err := json.Marshal(m)
		require.NoError(t, err)
		s, err := job.Decode(raw)
		require.NoError(t, err, text)
		var fields []string
		for _, e := range s.Validate() {
			fields = append(fields, e.Field)
		}
		require.Equal(t, want, fields, text)
	}
	_, err := job.Decode([]byte(`{"components":[{"nodes":[1]},{"nodes":2}]}`))
	require.ErrorContains(t, err, "components.nodes")
	_, err = job.IntoStep(job.Spec{Worktree: "/lustre/a", Components: []string{"nodes=1", "nodes=2"}}, job.Options{}, "7")
	require.ErrorContains(t, err, "components")
}

// A component has its own fields, and the job's values in all other fields.
func TestPartsOfAJob(t *testing.T) {
	s, err := job.Decode([]byte("{worktree: /lustre/a, partition: p, qos: normal, components: [{nodes: 2, gpus_per_node: 4, partition: q}, nodes=3 gpus_per_node=4 exclusive=true]}"))
	require.NoError(t, err)
	require.Empty(t, s.Validate())
	parts := s.Parts()
	require.Len(t, parts, 2)
	require.Equal(t, "q", parts[0].Partition)
	require.Equal(t, "p", parts[1].Partition)
	require.Equal(t, "normal", parts[1].QOS)
	require.Equal(t, []int{2, 3}, []int{*parts[0].Nodes, *parts[1].Nodes})
	require.True(t, *parts[1].Exclusive)
	require.Nil(t, parts[0].Exclusive)
	require.Equal(t, 20, s.WorldSize())
	require.Equal(t, []job.Spec{parts[0]}, parts[0].Parts())
	again, err := job.Decode(job.Encode(s))
	require.NoError(t, err)
	require.Equal(t, s, again)
}

// The ranks run on all components, even if the components have different numbers of CPUs:
// from 25.11 on, srun refuses the CPUs of the first component unless the script unsets
// their variables.
func TestComponentsRunAsOneOnSlurm(t *testing.T) {
	d := onSlurm(t)
	s := d.spec("mixed", func(s *job.Spec) {
		s.Nodes = nil
		s.Components = []string{"nodes=1 constraint=a100 cpus_per_task=4", "nodes=2 constraint=h100"}
		s.LauncherArgv = []string{"bash", "-c", `echo "rank {node_rank} of {nnodes}, $GPUS_PER_NODE of {world_size}, at $MASTER_ADDR, on $SLURMD_NODENAME"`}
	})
	id := d.submit(s)
	d.becomes(id, "COMPLETED")
	out := d.log("mixed-"+id+".out", "rank 2 of 3")
	require.Regexp(t, `0: rank 0 of 3, 1 of 3, at (gpu[13]), on (gpu[13])\n`, out)
	require.Regexp(t, `1: rank 1 of 3, 1 of 3, at gpu[13], on gpu2\n`, out)
	require.Regexp(t, `2: rank 2 of 3, 1 of 3, at gpu[13], on gpu4\n`, out)
}

// Import keeps the components of a heterogeneous script.
func TestImportKeepsComponents(t *testing.T) {
	spec, notes := job.Import("het.sh", []byte(`#!/bin/bash
#SBATCH --job-name=het --nodes=2 --partition=a --gpus-per-node=8 --time=60
#SBATCH hetjob
#SBATCH --nodes=1 --partition=b --ntasks-per-node=1
#SBATCH --gpus-per-node=8 --job-name=other
cd /w
srun --het-group=0,1 --cpu-bind=cores python -m torch.distributed.run --nproc-per-node=8 pretrain_gpt.py --lr 1
`))
	require.Equal(t, []string{"nodes=2 partition=a gpus_per_node=8", "nodes=1 partition=b gpus_per_node=8"}, spec.Components)
	require.Equal(t, []string{"--cpu-bind=cores"}, spec.SrunArgs, "the launch names all components itself")
	require.Equal(t, 3, *spec.WithDefaults().Nodes)
	require.Equal(t, "het", spec.Name)
	said := []string{}
	for _, n := range notes {
		said = append(said, n.What)
	}
	require.Contains(t, said, "--job-name=other")
	script, err := job.Render(spec, job.Options{})
	require.NoError(t, err)
	require.Contains(t, script.Text, "#SBATCH hetjob")
}
