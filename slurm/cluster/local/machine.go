package local

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"time"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/slurm"
)

// Nodes lists the nodes that this machine stands for, marked as stand-ins. The
// GPUs that it has are the first one's; a job that asks for some is told that it
// has them, so its nodes show as many.
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

// gpusHere counts the NVIDIA GPUs of this machine.
func gpusHere() int {
	files, _ := filepath.Glob("/dev/nvidia[0-9]*")
	return len(files)
}

// Partitions is the one partition "local".
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

// Exec runs a command on the nodes of a running job, beside its own steps.
func (c *Cluster) Exec(ctx context.Context, e slurm.Exec) ([]slurm.NodeOutput, error) {
	r, err := c.store.refresh(e.Job)
	if err != nil {
		return nil, err
	}
	nodes, err := slurm.ExecNodes(r.Job, e.Nodes)
	if err != nil {
		return nil, err
	}
	sub, err := c.store.submission(e.Job)
	if err != nil {
		return nil, err
	}
	limit := e.Limit
	if e.Limit = 0; limit == 0 { // held to here: not every machine has timeout(1)
		limit = time.Minute
	}
	cmd, err := again(append([]string{"srun"}, e.Args(nodes)...)...)
	if err != nil {
		return nil, err
	}
	cmd.Env = append(batchEnviron(sub, r, c.store, filepath.Join(c.store.jobDir(e.Job), "bin")), standinMark+"=1")
	cmd.Dir = r.Job.WorkDir
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.WaitDelay = killWait + time.Second
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	// srun passes the signal on to its tasks, which have groups of their own.
	stop := context.AfterFunc(ctx, func() { _ = cmd.Process.Signal(syscall.SIGTERM) })
	defer stop()
	err = cmd.Wait()
	outputs := slurm.Outputs(out.String(), nodes)
	switch e.Limit = limit; {
	case err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded):
		err = e.OutOfTime()
	case err != nil:
		err = &slurm.Error{Op: "run on " + string(e.Job), Msg: lang.Said(err), Kind: slurm.Rejected}
	}
	return outputs, err
}
