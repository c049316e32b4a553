package local

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"

	"github.com/megatron-ops/megatron-ops/slurm"
)

// Nodes lists the nodes that this machine stands for, with the feature slurm.Embedded.
// The machine's real GPUs belong to the first node. A job's nodes show at least as many
// GPUs as the job asked for, because the job is told that it has them.
func (c *Cluster) Nodes(context.Context) ([]slurm.Node, error) {
	var nodes []slurm.Node
	for i := range c.Size {
		n := slurm.Node{Name: nodeName(i + 1), State: "idle", Partitions: []string{"local"}, CPUs: runtime.NumCPU(), Features: []string{slurm.Embedded}}
		if i == 0 {
			n.GPUs = gpusHere()
		}
		if !c.store.isFree(n.Name) {
			n.State = "allocated"
			if holder, err := os.ReadFile(filepath.Join(c.store.dir, "nodes", n.Name)); err == nil {
				if sub, err := c.store.submission(slurm.JobID(holder)); err == nil {
					n.GPUsUsed = sub.Request.GPUsPerNode
					n.GPUs = max(n.GPUs, n.GPUsUsed)
				}
			}
		}
		nodes = append(nodes, n)
	}
	return nodes, nil
}

// gpusHere returns the number of NVIDIA GPUs of this machine.
func gpusHere() int {
	files, _ := filepath.Glob("/dev/nvidia[0-9]*")
	return len(files)
}

// Partitions returns the only partition, "local".
func (c *Cluster) Partitions(ctx context.Context) ([]slurm.Partition, error) {
	nodes, err := c.Nodes(ctx)
	p := slurm.Partition{
		Name: "local", Default: true, Up: true, State: "up", Total: len(nodes),
		Nodes: fmt.Sprintf("local[1-%d]", c.Size), Features: []string{slurm.Embedded},
	}
	for _, n := range nodes {
		p.GPUs = max(p.GPUs, n.GPUs)
		if n.State == "idle" {
			p.Idle++
		} else {
			p.Allocated++
		}
	}
	return []slurm.Partition{p}, err
}
