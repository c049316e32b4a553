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

// detachedLaunch is a shell script that saves the launch's script beside its logs and
// starts it in a session of its own, so that it survives this process and the login. It
// prints the process id.
const detachedLaunch = `base=$1; shift
cat >"$base.sh" && { setsid bash "$base.sh" "$@" </dev/null >"$base.out" 2>"$base.err" & } && echo $!`

// launchWait bounds the wait for the step of a launch. A script may check its nodes
// first.
const launchWait = 30 * time.Second

// Launch starts a script that starts a step in a running job, and returns the step's id
// once Slurm knows it. Where the script has not started its step when launchWait is
// over, Launch returns the job's own id.
func (c *CLI) Launch(ctx context.Context, l slurm.Launch) (slurm.JobID, error) {
	op := "launch in " + string(l.Job)
	if !slurm.IsJobID(string(l.Job)) {
		return "", slurm.JobNotFound(l.Job)
	}
	base := Absolute(l.Base, l.Dir)
	if err := c.mkdir(ctx, filepath.Dir(base)); err != nil {
		return "", &slurm.Error{Op: op, Kind: slurm.Rejected, Msg: lang.Text{EN: "log directory: %s", ZH: "日志目录：%s"}.With(err)}
	}
	p, err := c.startLaunch(ctx, op, l, base)
	if err != nil {
		return "", err
	}
	defer p.cleanup()
	for end := time.Now().Add(launchWait); ; {
		// The process is checked before the queue: if it has ended by now, its step has
		// already been in the queue.
		alive, err := p.runner.run(ctx, command{argv: []string{"sh", "-c", `kill -0 "$1" 2>/dev/null`, "sh", p.pid}, env: c.Environ()})
		if err != nil {
			return "", withOp(op, err)
		}
		id, found, err := c.FindStep(ctx, l.Job, l.Step)
		switch {
		case err != nil:
			return "", withOp(op, err)
		case found:
			return id, nil
		case alive.code != 0:
			return c.resultAfterExit(ctx, op, l, base, p)
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

// resultAfterExit returns the step of a script that has ended and whose step is not in
// the queue. The accounts may list the step a moment later; if they do not, the script
// started none.
func (c *CLI) resultAfterExit(ctx context.Context, op string, l slurm.Launch, base string, p launchProcess) (slurm.JobID, error) {
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
	said := lang.Text{EN: "the script ended without any output", ZH: "脚本没有任何输出就结束了"}
	if r, err := p.runner.run(ctx, command{argv: []string{"tail", "-n", "5", "--", p.stderr}, env: c.Environ()}); err == nil && strings.TrimSpace(r.stdout) != "" {
		said = lang.Same(strings.TrimSpace(r.stdout))
	}
	return "", &slurm.Error{Op: op, Kind: slurm.Rejected, Msg: lang.Text{EN: "no step was started: %s", ZH: "没有启动步骤：%s"}.With(said), Fix: lang.Text{
		EN: "the full output is in " + base + ".err", ZH: "完整输出见 " + base + ".err",
	}}
}

// A launchProcess is the process that runs the script of a launch.
type launchProcess struct {
	runner runner // runs commands on the process's machine
	pid    string
	stderr string // the file with the process's error output
	// cleanup removes what is not needed any more once the step exists.
	cleanup func()
}

// startLaunch starts the script on the machine where Slurm's commands run. For a user
// whose commands run through sudo it starts the script on a node of the job.
func (c *CLI) startLaunch(ctx context.Context, op string, l slurm.Launch, base string) (launchProcess, error) {
	if s, other := c.runner.(*sudoRunner); other {
		return s.startLaunch(ctx, op, l, base, launchEnviron(c.Environ()))
	}
	r, err := c.run(ctx, command{
		argv: append([]string{"sh", "-c", detachedLaunch, "sh", base}, l.Args...),
		env:  launchEnviron(c.Environ()), dir: l.Dir, stdin: l.Script,
	})
	if err != nil {
		return launchProcess{}, withOp(op, err)
	}
	pid := strings.TrimSpace(r.stdout)
	if r.code != 0 || pid == "" {
		return launchProcess{}, refusal(op, r)
	}
	return launchProcess{c.runner, pid, base + ".err", func() {}}, nil
}

// launchEnviron returns a job's environment without the variables of a job that this
// process itself runs in. The script names its job explicitly.
func launchEnviron(environ []string) []string {
	return slices.DeleteFunc(JobEnviron(environ), func(entry string) bool {
		return strings.HasPrefix(entry, "SLURM_") && !strings.HasPrefix(entry, "SLURM_CONF=") && !strings.HasPrefix(entry, "SLURM_CLUSTERS=")
	})
}

// FindStep searches the step of a job by its name, first among the running steps and
// then in the accounts.
func (c *CLI) FindStep(ctx context.Context, job slurm.JobID, name string) (slurm.JobID, bool, error) {
	steps, err := c.stepsOf(ctx, job)
	for _, s := range steps {
		if s.Name == name {
			return slurm.JobID(s.ID), true, nil
		}
	}
	return "", false, err
}

// Step returns one step of a job. Fields that only the job has, such as its owner and
// its time limit, come from the job.
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

// stepsOf returns a job's running steps, followed by the steps in the accounts, which
// lag behind.
func (c *CLI) stepsOf(ctx context.Context, job slurm.JobID) ([]slurm.Step, error) {
	steps, err := c.runningSteps(ctx, "--jobs="+string(job))
	if err != nil && !errors.Is(err, slurm.ErrNotFound) {
		return nil, err
	}
	past, err := c.Steps(ctx, job)
	if noAccounts(err) {
		err = nil
	}
	return append(steps, past...), err
}
