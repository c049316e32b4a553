package cluster

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/slurm"
)

// apart keeps the script that comes on standard input beside its logs and
// starts it in a session of its own, so that it outlives this process and the
// login. It says the script's process id.
const apart = `base=$1; shift
cat >"$base.sh" && { setsid bash "$base.sh" "$@" </dev/null >"$base.out" 2>"$base.err" & } && echo $!`

// launchWait is how long the step of a launch is waited for: a script may look
// at its nodes first.
const launchWait = 30 * time.Second

// Launch starts a script that starts a step in a running job, and returns the
// step's id once Slurm knows it. A script that is still at work before its step
// when launchWait is over gives the job's own id.
func (c *CLI) Launch(ctx context.Context, l slurm.Launch) (slurm.JobID, error) {
	op := "launch in " + string(l.Job)
	if !slurm.IsJobID(string(l.Job)) {
		return "", slurm.JobNotFound(l.Job)
	}
	base := l.Base
	if !filepath.IsAbs(base) {
		base = filepath.Join(l.Dir, base)
	}
	if err := c.mkdir(ctx, filepath.Dir(base)); err != nil {
		return "", &slurm.Error{Op: op, Kind: slurm.Rejected, Msg: lang.Text{EN: "log directory: %s", ZH: "日志目录：%s"}.With(err)}
	}
	p, err := c.begin(ctx, op, l, base)
	if err != nil {
		return "", err
	}
	defer p.forget()
	for end := time.Now().Add(launchWait); ; {
		// The process first: one that has gone by now has had its step.
		alive, err := p.by.run(ctx, command{argv: []string{"sh", "-c", `kill -0 "$1" 2>/dev/null`, "sh", p.pid}, env: c.Environ()})
		if err != nil {
			return "", named(op, err)
		}
		id, found, err := c.FindStep(ctx, l.Job, l.Step)
		switch {
		case err != nil:
			return "", named(op, err)
		case found:
			return id, nil
		case alive.code != 0:
			return c.ended(ctx, op, l, base, p)
		case time.Now().After(end):
			return l.Job, nil
		}
		select {
		case <-ctx.Done():
			return "", ctx.Err()
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// ended is what became of a script that is over and whose step is not in the
// queue: the accounts may know it a moment later, and if not, there was none.
func (c *CLI) ended(ctx context.Context, op string, l slurm.Launch, base string, p begun) (slurm.JobID, error) {
	for range 5 {
		select {
		case <-ctx.Done():
			return "", ctx.Err()
		case <-time.After(500 * time.Millisecond):
		}
		if id, found, err := c.FindStep(ctx, l.Job, l.Step); err == nil && found {
			return id, nil
		}
	}
	said := lang.Text{EN: "the script ended without a word", ZH: "脚本没有任何输出就结束了"}
	if r, err := p.by.run(ctx, command{argv: []string{"tail", "-n", "5", "--", p.says}, env: c.Environ()}); err == nil && strings.TrimSpace(r.stdout) != "" {
		said = lang.Same(strings.TrimSpace(r.stdout))
	}
	return "", &slurm.Error{Op: op, Kind: slurm.Rejected, Msg: lang.Text{EN: "no step was started: %s", ZH: "没有启动步骤：%s"}.With(said), Fix: lang.Text{
		EN: "the whole of it is in " + base + ".err", ZH: "完整输出见 " + base + ".err",
	}}
}

// A begun launch is the process that carries a script out.
type begun struct {
	by   runner // who sees the process, and the file
	pid  string
	says string // the file in which its last words are
	// forget lets go of what is needed no longer once the step is there.
	forget func()
}

// begin starts the script where it is to run: here, or, for somebody whose
// commands are run by sudo, on a node of the job.
func (c *CLI) begin(ctx context.Context, op string, l slurm.Launch, base string) (begun, error) {
	if s, other := c.runner.(*sudo); other {
		return s.begin(ctx, op, l, base, launchEnviron(c.Environ()))
	}
	r, err := c.run(ctx, command{
		argv: append([]string{"sh", "-c", apart, "sh", base}, l.Args...),
		env:  launchEnviron(c.Environ()), dir: l.Dir, stdin: l.Script,
	})
	if err != nil {
		return begun{}, named(op, err)
	}
	pid := strings.TrimSpace(r.stdout)
	if r.code != 0 || pid == "" {
		return begun{}, refusal(op, r)
	}
	return begun{c.runner, pid, base + ".err", func() {}}, nil
}

// launchEnviron is a job's environment without what a job's own shell would add:
// the script says itself where it goes.
func launchEnviron(environ []string) []string {
	return slices.DeleteFunc(JobEnviron(environ), func(entry string) bool {
		return strings.HasPrefix(entry, "SLURM_") && !strings.HasPrefix(entry, "SLURM_CONF=") && !strings.HasPrefix(entry, "SLURM_CLUSTERS=")
	})
}

// FindStep looks for a job's step of that name: among those that run, and then
// in the accounts.
func (c *CLI) FindStep(ctx context.Context, job slurm.JobID, name string) (slurm.JobID, bool, error) {
	steps, err := c.stepsOf(ctx, job)
	for _, s := range steps {
		if s.Name == name {
			return slurm.JobID(s.ID), true, nil
		}
	}
	return "", false, err
}

// Step tells of one step of a job. What only the job has, such as its owner and
// its time limit, is told of the job.
func (c *CLI) Step(ctx context.Context, id slurm.JobID) (slurm.Job, error) {
	if !slurm.IsStepID(string(id)) {
		return slurm.Job{}, slurm.JobNotFound(id)
	}
	job, err := c.Job(ctx, id.Job())
	if err != nil {
		return slurm.Job{}, err
	}
	steps, err := c.stepsOf(ctx, job.ID)
	for _, s := range steps {
		if s.ID == string(id) {
			return s.As(job), nil
		}
	}
	if err != nil {
		return slurm.Job{}, err
	}
	return slurm.Job{}, slurm.JobNotFound(id)
}

// stepsOf are a job's steps: those that run, then those of the accounts, which
// lag behind.
func (c *CLI) stepsOf(ctx context.Context, job slurm.JobID) ([]slurm.Step, error) {
	steps, err := c.runningSteps(ctx, "--jobs="+string(job))
	if err != nil && !errors.Is(err, slurm.ErrNotFound) {
		return nil, err
	}
	past, err := c.Steps(ctx, job)
	if err != nil && strings.Contains(err.Error(), "accounting storage is disabled") {
		err = nil
	}
	return append(steps, past...), err
}
