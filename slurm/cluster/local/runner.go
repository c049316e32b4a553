package local

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/megatron-ops/megatron-ops/slurm"
)

// killWait is the time between SIGTERM and SIGKILL, as Slurm's KillWait but shorter.
const killWait = 5 * time.Second

// A runner runs one job on its nodes, from the start of its batch script to the end of
// its last process.
type runner struct {
	store
	sub submission
	rec record
	// batch is the script's process; ended delivers its result.
	batch *exec.Cmd
	ended chan error
	errs  *os.File // the job's standard error
	sent  int      // the ordered signals that were sent, to this run or an earlier one
}

// runMain is the main function of the runner process; args are DIR and ID.
func runMain(args []string) int {
	if len(args) != 2 {
		return 2
	}
	r := runner{store: store{args[0]}}
	id := slurm.JobID(args[1])
	lock, ok, err := acquire(r.runLock(id))
	if err != nil || !ok {
		return 1
	}
	defer lock.Close()
	_ = adoptOrphans()
	if r.sub, err = r.submission(id); err == nil {
		r.rec, err = r.record(id)
	}
	if err == nil {
		err = r.main()
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "runner: job %s: %v\n", id, err)
		return 1
	}
	return 0
}

// main runs the job and records its end.
func (r *runner) main() error {
	j := &r.rec.Job
	j.State, j.Reason, j.StartedAt = slurm.Running, "None", new(time.Now())
	r.rec.Port = r.freePort(numbers(j.ID)[0])
	r.sent = len(r.control(j.ID).Signals)
	// A script that queries its own job must find it running, as under Slurm.
	if err := r.setRecord(r.rec); err != nil {
		return err
	}
	if err := r.start(); err != nil {
		// sbatch accepts a job whose output folder or directory does not exist; such a
		// job then fails without a message.
		r.free(j.ID, j.Nodes)
		r.rec.end(slurm.Failed, "JobLaunchFailure", "0:53", time.Now())
		fmt.Fprintf(os.Stderr, "runner: job %s: %v\n", j.ID, err)
		return r.setRecord(r.rec)
	}
	state, reason := r.watch()
	killAll()
	return r.finish(state, reason)
}

// start starts the batch script on the first node.
func (r *runner) start() error {
	j := r.rec.Job
	dir := r.jobDir(j.ID)
	bin := filepath.Join(dir, "bin")
	if err := writeCommands(bin, self()); err != nil {
		return err
	}
	mode := os.O_CREATE | os.O_WRONLY | os.O_APPEND
	if !r.sub.Request.Append {
		mode |= os.O_TRUNC
	}
	out, err := os.OpenFile(j.Stdout, mode, 0o644)
	if err != nil {
		return err
	}
	defer out.Close()
	if r.errs, err = os.OpenFile(j.Stderr, mode, 0o644); err != nil { // mostly the same file, to which nothing is written yet
		return err
	}
	cmd := exec.Command(filepath.Join(dir, "script"))
	cmd.Dir = j.WorkDir
	cmd.Env = batchEnviron(r.sub, r.rec, r.store, bin)
	cmd.Stdout, cmd.Stderr = out, r.errs
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		return err
	}
	r.batch, r.ended = cmd, make(chan error, 1)
	go func() { r.ended <- cmd.Wait() }()
	return nil
}

// watch waits for the script's end, for orders and for the time limit. It returns the
// state in which the job ends; "" means that the script's exit code decides.
func (r *runner) watch() (state slurm.State, reason string) {
	look := time.NewTicker(tick)
	defer look.Stop()
	limit := r.sub.Request.TimeLimit
	warned := r.sub.Request.Signal.Name == ""
	var killAt time.Time
	for {
		select {
		case err := <-r.ended:
			r.ended <- err
			return state, reason
		case <-look.C:
		}
		if state != "" {
			if time.Now().After(killAt) {
				signalAll(os.Getpid(), syscall.SIGKILL)
			}
			continue
		}
		c := r.control(r.rec.Job.ID)
		if c.TimeLimit != nil && *c.TimeLimit != limit {
			limit = *c.TimeLimit
			r.rec.Job.TimeLimitS = new(int64(limit / time.Second))
			_ = r.setRecord(r.rec)
		}
		for ; r.sent < len(c.Signals); r.sent++ {
			to, _ := slurm.ParseSignal(c.Signals[r.sent])
			r.signal(to)
		}
		ran := time.Since(*r.rec.Job.StartedAt)
		if ahead := r.sub.Request.Signal; !warned && limit > 0 && ran >= limit-ahead.Before {
			warned = true
			r.signal(ahead)
		}
		switch {
		case c.Cancel:
			state, reason = slurm.Cancelled, "None"
			r.logCancellation("")
		case c.Requeue > r.rec.Job.Restarts:
			state, reason = slurm.Requeued, "None"
			r.logCancellation(" DUE TO JOB REQUEUE")
		case limit > 0 && ran >= limit:
			state, reason = slurm.Timeout, "TimeLimit"
			r.logCancellation(" DUE TO TIME LIMIT")
		default:
			continue
		}
		killAt = time.Now().Add(killWait)
		signalAll(os.Getpid(), syscall.SIGCONT)
		signalAll(os.Getpid(), syscall.SIGTERM)
	}
}

// logCancellation writes slurmstepd's line about a job that is being stopped, which
// people and diagnoses recognize.
func (r *runner) logCancellation(why string) {
	fmt.Fprintf(r.errs, "slurmstepd: error: *** JOB %s ON %s CANCELLED AT %s%s ***\n",
		r.rec.Job.ID.Array(), r.rec.Job.Nodes[0], time.Now().Format("2006-01-02T15:04:05"), why)
}

// signal sends the signal that --signal asks for ahead of the time limit: to the batch
// shell alone, or to all steps but not to the shell.
func (r *runner) signal(s slurm.SignalAhead) {
	n, _ := slurm.SignalNumber(s.Name)
	sig := syscall.Signal(n)
	if s.BatchOnly {
		_ = r.batch.Process.Signal(sig)
		return
	}
	signalAll(os.Getpid(), sig, r.batch.Process.Pid)
}

// finish records the end of the run.
func (r *runner) finish(state slurm.State, reason string) error {
	defer r.errs.Close()
	now := time.Now()
	if state == slurm.Requeued {
		j := &r.rec.Job
		j.Requeues = append(j.Requeues, slurm.Requeued)
		run := j.Last()
		run.State, run.EndedAt = slurm.Requeued, &now
		if j.StartedAt != nil {
			run.ElapsedS = max(int64(now.Sub(*j.StartedAt)/time.Second), 0)
		}
		r.rec.Earlier = append(r.rec.Earlier, run)
		j.Restarts++
		r.free(j.ID, j.Nodes)
		j.State, j.Reason, j.StartedAt, j.Nodes = slurm.Pending, "BeginTime", nil, []string{}
		return r.setRecord(r.rec)
	}
	code := "0:0"
	if state == "" {
		state, reason = slurm.Completed, "None"
		if code = waitCode(<-r.ended); code != "0:0" {
			state, reason = slurm.Failed, "NonZeroExitCode"
		}
	}
	// Write the end last: whoever sees it may remove the directory.
	r.free(r.rec.Job.ID, r.rec.Job.Nodes)
	r.rec.end(state, reason, code, now)
	return r.setRecord(r.rec)
}

// waitCode returns the end of a process as "code:signal".
func waitCode(err error) string {
	if err == nil {
		return "0:0"
	}
	exit, ok := errors.AsType[*exec.ExitError](err)
	if !ok {
		return "1:0"
	}
	status := exit.Sys().(syscall.WaitStatus) //nolint:forcetypeassert // always so on Unix
	if status.Signaled() {
		return "0:" + strconv.Itoa(int(status.Signal()))
	}
	return strconv.Itoa(status.ExitStatus()) + ":0"
}
