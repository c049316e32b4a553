// Package local is the back end that needs no Slurm. It runs batch scripts as real
// processes on this machine, which stands for a number of nodes. It reads #SBATCH lines
// as sbatch does, sets the SLURM_ variables, and puts stand-ins for srun, scontrol,
// sbatch and scancel first in a job's PATH. It leaves out what Slurm does for a site:
// accounts, limits, priorities, sharing of nodes.
//
// A supervisor process belongs to each job, so a job survives the process that
// submitted it. The stand-ins and the supervisor are this same binary, started again: a
// program that uses the package must call Standin first in main:
//
// if code, ok := local.Standin(os.Args); ok { os.Exit(code) }
package local

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"time"

	"github.com/megatron-ops/megatron-ops/internal/account"
	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/slurm"
	"github.com/megatron-ops/megatron-ops/slurm/cluster"
)

// A Cluster is this machine in the role of a cluster. Create it with New.
type Cluster struct {
	name string
	// Size is the number of nodes that the machine stands for; GPUs is the number of
	// GPUs of each.
	Size, GPUs int
	store      store
}

// New returns the cluster with its state in dir, which must be absolute. Two processes
// with the same directory share the cluster's jobs.
func New(name, dir string) *Cluster {
	return &Cluster{name: name, Size: 64, GPUs: 8, store: store{dir}}
}

// Name is the cluster's name in the configuration.
func (c *Cluster) Name() string { return c.name }

// Kind is "local".
func (c *Cluster) Kind() string { return "local" }

// AskEvery is the interval at which a wait polls. It is short because polling only
// reads local files.
func (c *Cluster) AskEvery() time.Duration { return 300 * time.Millisecond }

// Submit stores the job and starts its supervisor.
func (c *Cluster) Submit(_ context.Context, s slurm.Submission) (slurm.JobID, error) {
	if !standinCalled {
		return "", errors.New("local: this program's main does not call local.Standin, so it cannot run jobs")
	}
	r, err := newRequest(s, c.Size, c.GPUs)
	if err != nil {
		return "", slurm.Refused("submit", err)
	}
	sub, err := c.newSubmission(s, r)
	if err != nil {
		return "", slurm.Refused("submit", err)
	}
	if s.LogDir != "" {
		if err := os.MkdirAll(cluster.Absolute(s.LogDir, s.Dir), 0o777); err != nil {
			return "", slurm.Refused("submit", lang.Text{EN: "log directory: %s", ZH: "日志目录：%s"}.Err(err))
		}
	}
	id, err := c.store.add(sub, s.Script)
	if err != nil {
		e := slurm.Refused("submit", lang.Text{EN: "the job cannot be stored: %s", ZH: "无法保存作业：%s"}.Err(err))
		e.Fix = lang.Text{
			EN: "make room in %[1]s and the right to write there, or name another folder in MEGATRON_OPS_STATE_DIR",
			ZH: "请确保 %[1]s 有空间且可写，或用 MEGATRON_OPS_STATE_DIR 指定其他目录",
		}.With(c.store.dir)
		return "", e
	}
	return id, c.store.startSupervisor(id)
}

func (c *Cluster) newSubmission(s slurm.Submission, r request) (submission, error) {
	dir := s.Dir
	if dir == "" {
		var err error
		if dir, err = os.Getwd(); err != nil {
			return submission{}, err
		}
	}
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return submission{}, slurm.Sayf("working directory %s does not exist", dir)
	}
	env := s.Env
	if env == nil {
		env = os.Environ()
	}
	who := "?"
	if u, err := account.Current(context.Background()); err == nil {
		who = u.Name
	}
	if s.Token != "" {
		r.Comment = slurm.TagComment(r.Comment, s.Token)
	}
	return submission{Request: r, Dir: dir, Env: inherited(env), User: who, Token: s.Token, At: time.Now(), Machine: c.Size}, nil
}

// room is the space that a job's run takes in the store. A job without it would wait for
// good, since its start could not be recorded.
const room = 64 << 10

// add stores a new job. The job's directory appears complete or not at all, and not
// where the disk has no room for its run.
func (s store) add(sub submission, script string) (id slurm.JobID, err error) {
	if err := os.MkdirAll(filepath.Join(s.dir, "jobs"), 0o755); err != nil {
		return "", err
	}
	err = s.lock(func() error {
		n, err := s.nextID(max(len(sub.Request.Array), 1))
		if err != nil {
			return err
		}
		id = slurm.JobID(strconv.Itoa(n))
		tmp, err := os.MkdirTemp(filepath.Join(s.dir, "jobs"), ".new-")
		if err != nil {
			return err
		}
		defer os.RemoveAll(tmp)
		if err := os.WriteFile(filepath.Join(tmp, "script"), []byte(script), 0o700); err != nil {
			return err
		}
		for _, r := range newRecords(id, n, sub) {
			if err := writeJSON(filepath.Join(tmp, string(r.Job.ID)+".json"), r); err != nil {
				return err
			}
		}
		if err := writeJSON(filepath.Join(tmp, "submission.json"), sub); err != nil {
			return err
		}
		spare := filepath.Join(tmp, "spare")
		if err := errors.Join(os.WriteFile(spare, make([]byte, room), 0o600), os.Remove(spare)); err != nil {
			return err
		}
		return os.Rename(tmp, s.jobDir(id))
	})
	return id, err
}

// newRecords returns the initial records of a job, one for each array element.
func newRecords(id slurm.JobID, number int, sub submission) []record {
	r := sub.Request
	job := slurm.Job{
		ID: id, Name: r.Name, User: sub.User, Account: r.Account, Partition: r.Partition, QOS: r.QOS,
		State: slurm.Pending, Reason: "None", Nodes: []string{}, NumNodes: r.Nodes, GPUs: r.Nodes * r.GPUsPerNode,
		SubmittedAt: &sub.At, WorkDir: cluster.Absolute(r.Chdir, sub.Dir), Comment: r.Comment, ArrayLimit: r.ArrayLimit,
	}
	if r.TimeLimit > 0 {
		job.TimeLimitS = new(int64(r.TimeLimit / time.Second))
	}
	if r.Hold {
		job.Reason = "JobHeldUser"
	}
	if len(r.Array) == 0 {
		return []record{{Job: withOutputs(job, r)}}
	}
	var all []record
	for i, element := range r.Array {
		j := job
		j.ID = slurm.JobID(fmt.Sprintf("%s_%d", id, element))
		j.RawID = slurm.JobID(strconv.Itoa(number + i))
		all = append(all, record{Job: withOutputs(j, r)})
	}
	return all
}

func withOutputs(j slurm.Job, r request) slurm.Job {
	pattern := r.Output
	if pattern == "" {
		pattern = "slurm-%j.out"
		if j.RawID != "" {
			pattern = "slurm-%A_%a.out"
		}
	}
	numbered := j
	numbered.State = slurm.Running // the running state makes ExpandPattern use the element's own number
	j.Stdout = slurm.ExpandPattern(pattern, numbered)
	j.Stderr = slurm.ExpandPattern(cmp.Or(r.Error, pattern), numbered)
	return j
}

func (s store) startSupervisor(id slurm.JobID) error {
	dir := s.jobDir(id)
	log, err := os.OpenFile(filepath.Join(dir, "supervisor.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer log.Close()
	cmd, err := selfCommand("supervise", s.dir, string(id))
	if err != nil {
		return err
	}
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return lang.Text{EN: "job %s: start its supervisor: %s", ZH: "作业 %s：启动其监管进程：%s"}.Err(id, err)
	}
	go func() { _ = cmd.Wait() }() // reaps the supervisor if it ends before this process
	return nil
}

// selfCommand returns a command that starts this binary again as one of its stand-ins.
func selfCommand(args ...string) (*exec.Cmd, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(self, append([]string{standinWord}, args...)...)
	cmd.Env = append(os.Environ(), standinMark+"=1")
	return cmd, nil
}

// refresh returns the record of id. It notices where a job's processes are gone, as
// after a reboot: it starts a new supervisor for a pending job, and ends a running job
// with NODE_FAIL.
func (s store) refresh(id slurm.JobID) (record, error) {
	r, err := s.record(id)
	if err != nil || r.Job.State.Ended() || isHeld(s.supervisorLock(id)) {
		return r, err
	}
	if time.Since(*r.Job.SubmittedAt) < 2*time.Second && r.Job.State == slurm.Pending {
		return r, nil // the supervisor is starting
	}
	if r.Job.State == slurm.Pending {
		return r, s.startSupervisor(id)
	}
	if isHeld(s.runLock(id)) {
		return r, nil
	}
	// The job may have ended between the two checks.
	if r, err = s.record(id); err != nil || r.Job.State != slurm.Running {
		return r, err
	}
	err = s.nodeFailed(&r)
	return r, err
}

// nodeFailed ends a job whose processes are gone, and releases its nodes.
func (s store) nodeFailed(r *record) error {
	s.free(r.Job.ID, r.Job.Nodes)
	r.end(slurm.NodeFail, "NodeDown", "0:0", time.Now())
	return s.setRecord(*r)
}

func (r *record) end(state slurm.State, reason, code string, at time.Time) {
	r.Job.State, r.Job.Reason, r.Job.ExitCode, r.Job.EndedAt = state, reason, &code, &at
}

// view returns the job as callers see it.
func (c *Cluster) view(r record) slurm.Job {
	j := r.Job
	j.Cluster, j.Earlier = c.name, r.Earlier
	ctl := c.store.control(j.ID)
	if ctl.TimeLimit != nil {
		j.TimeLimitS = new(int64(*ctl.TimeLimit / time.Second))
	}
	if j.State != slurm.Pending {
		j.ArrayLimit = 0
	} else if sub, err := c.store.submission(j.ID); err == nil && (j.Reason == neverSatisfied || j.Reason == "Dependency") {
		j.Dependency = sub.Request.Dependency
	}
	if j.StartedAt != nil {
		end := time.Now()
		if j.EndedAt != nil {
			end = *j.EndedAt
		}
		j.ElapsedS = max(int64(end.Sub(*j.StartedAt)/time.Second), 0) // a clock may be set back
	}
	return j
}

// Job returns one job, an array element, or a summary of an array.
func (c *Cluster) Job(_ context.Context, id slurm.JobID) (slurm.Job, error) {
	if !slurm.IsJobID(string(id)) {
		return slurm.Job{}, unknownJob(id)
	}
	ids, err := c.store.elements(id)
	if err != nil {
		return slurm.Job{}, err
	}
	var rows []slurm.Job
	for _, e := range ids {
		r, err := c.store.refresh(e)
		if err != nil {
			return slurm.Job{}, err
		}
		rows = append(rows, c.view(r))
	}
	j, _ := slurm.Fold(id, rows)
	return j, nil
}

// Jobs lists jobs, oldest first.
func (c *Cluster) Jobs(_ context.Context, f slurm.Filter) ([]slurm.Job, error) {
	ids, err := c.store.ids()
	if err != nil {
		return nil, err
	}
	jobs, match := []slurm.Job{}, f.Matcher()
	for _, id := range ids {
		r, err := c.store.refresh(id)
		if errors.Is(err, slurm.ErrNotFound) {
			continue
		}
		if err != nil {
			return jobs, err
		}
		if j := c.view(r); match(j) {
			jobs = append(jobs, j)
		}
	}
	return jobs, nil
}

// Past lists the jobs of f, ended ones included.
func (c *Cluster) Past(ctx context.Context, f slurm.Filter) ([]slurm.Job, error) {
	f.All = f.All || f.Since.IsZero()
	return c.Jobs(ctx, f)
}

// Find searches the job that was submitted with token.
func (c *Cluster) Find(_ context.Context, token string, since time.Time) (slurm.JobID, bool, error) {
	dirs, err := os.ReadDir(filepath.Join(c.store.dir, "jobs"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", false, err
	}
	for _, d := range slices.Backward(dirs) {
		if !slurm.IsJobID(d.Name()) {
			continue
		}
		sub, err := c.store.submission(slurm.JobID(d.Name()))
		if err == nil && token != "" && sub.Token == token && sub.At.After(since.Add(-time.Hour)) {
			return slurm.JobID(d.Name()), true, nil
		}
	}
	return "", false, nil
}

// forEachElement gives order the record of every element that id names. As in Slurm, an
// element that the order does not concern is no error while it concerns another.
func (c *Cluster) forEachElement(id slurm.JobID, order func(r record) error) error {
	if !slurm.IsJobID(string(id)) {
		return unknownJob(id)
	}
	ids, err := c.store.elements(id)
	if err != nil {
		return err
	}
	var refused error
	done := false
	for _, e := range ids {
		r, err := c.store.refresh(e)
		if err == nil {
			err = order(r)
		}
		if _, ok := errors.AsType[*slurm.Error](err); ok {
			refused = cmp.Or(refused, err)
		} else if err != nil {
			return err
		}
		done = done || err == nil
	}
	if done {
		return nil
	}
	return refused
}

// Cancel ends a job, an array or an array element; one that has already ended is no
// error.
func (c *Cluster) Cancel(_ context.Context, id slurm.JobID) error {
	return c.forEachElement(id, func(r record) error {
		if r.Job.State.Ended() {
			return nil
		}
		return c.store.updateControl(r.Job.ID, func(ctl *control) { ctl.Cancel = true })
	})
}

// Signal sends a signal to the tasks of a running job, but not to its batch script; B:NAME to the
// batch script alone.
func (c *Cluster) Signal(_ context.Context, id slurm.JobID, name string) error {
	return c.forEachElement(id, func(r record) error {
		if r.Job.State != slurm.Running {
			return nil
		}
		return c.store.updateControl(r.Job.ID, func(ctl *control) { ctl.Signals = append(ctl.Signals, name) })
	})
}

// Test returns the error that Submit would return, or the time at which the job would
// start.
func (c *Cluster) Test(_ context.Context, s slurm.Submission) (slurm.Estimate, error) {
	r, err := newRequest(s, c.Size, c.GPUs)
	if err != nil {
		return slurm.Estimate{}, slurm.Refused("test", err)
	}
	if c.store.freeNodes(r.Nodes, c.Size) == nil {
		return slurm.Estimate{}, nil // the job has to wait until others end
	}
	e := slurm.Estimate{Start: time.Now()}
	if r.Begin.After(e.Start) {
		e.Start = r.Begin
	}
	return e, nil
}
