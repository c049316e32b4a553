package local

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"path/filepath"
	"syscall"
	"time"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/slurm"
)

// Exec runs a command on the nodes of a running job, beside the job's own steps.
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
	e.Limit = cmp.Or(e.Limit, time.Minute)
	step := e
	step.Limit = 0 // enforced below, because not every machine has timeout(1)
	cmd, err := selfCommand(append([]string{"srun"}, step.Args(nodes)...)...)
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
	ctx, cancel := context.WithTimeout(ctx, e.Limit)
	defer cancel()
	// srun passes the signal on to its tasks, which run in process groups of their own.
	stop := context.AfterFunc(ctx, func() { _ = cmd.Process.Signal(syscall.SIGTERM) })
	defer stop()
	err = cmd.Wait()
	outputs := slurm.Outputs(out.String(), nodes)
	switch {
	case err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded):
		err = e.OutOfTime()
	case err != nil:
		err = &slurm.Error{Op: "run on " + string(e.Job), Msg: lang.Said(err), Kind: slurm.Rejected}
	}
	return outputs, err
}
