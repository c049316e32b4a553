package local

import (
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"time"

	"github.com/megatron-ops/megatron-ops/slurm"
)

// A supervisor decides when the elements of one submission start, and starts a runner
// for each. A lock ensures that each submission has only one supervisor.
type supervisor struct {
	store
	id  slurm.JobID
	sub submission

	mu      sync.Mutex
	running int // number of running elements, for an array's limit
}

// tick is the time between two looks of a supervisor or a runner.
const tick = 50 * time.Millisecond

// superviseMain is the main function of the supervisor process; args are DIR and ID.
func superviseMain(args []string) int {
	if len(args) != 2 {
		return 2
	}
	s := supervisor{store: store{args[0]}, id: slurm.JobID(args[1])}
	if err := s.main(); err != nil {
		fmt.Fprintln(os.Stderr, "supervisor:", err)
		return 1
	}
	return 0
}

// main supervises all elements until the last one has ended.
func (s *supervisor) main() error {
	lock, ok, err := acquire(s.supervisorLock(s.id))
	if err != nil || !ok {
		return err // another supervisor is at work
	}
	defer lock.Close()
	if s.sub, err = s.submission(s.id); err != nil {
		return err
	}
	ids, err := s.elements(s.id)
	if err != nil {
		return err
	}
	var all sync.WaitGroup
	for _, id := range ids {
		all.Go(func() {
			if err := s.superviseElement(id); err != nil {
				fmt.Fprintf(os.Stderr, "supervisor: job %s: %v\n", id, err)
			}
		})
	}
	all.Wait()
	return nil
}

// superviseElement accompanies one element from its present state to its end.
func (s *supervisor) superviseElement(id slurm.JobID) error {
	for {
		r, err := s.record(id)
		if err != nil || r.Job.State.Ended() {
			return err
		}
		if r.Job.State == slurm.Running {
			// An earlier supervisor started it.
			if isHeld(s.runLock(id)) {
				time.Sleep(tick)
				continue
			}
			if r, err = s.record(id); err == nil && r.Job.State == slurm.Running {
				return s.nodeFailed(&r)
			}
			continue
		}
		started, err := s.waitForStart(&r)
		if err != nil || !started {
			return err
		}
		s.run(id)
		s.mu.Lock()
		s.running--
		s.mu.Unlock()
	}
}

// waitForStart waits until r may start, and allocates its nodes. started is false where
// r is cancelled first. The wait also ends where the job's record is removed, because
// nobody could cancel the job any more.
func (s *supervisor) waitForStart(r *record) (started bool, err error) {
	for wait := tick; ; time.Sleep(wait) {
		if _, err := os.Stat(s.recordPath(r.Job.ID)); err != nil {
			return false, err
		}
		c := s.control(r.Job.ID)
		if c.Cancel {
			r.end(slurm.Cancelled, r.Job.Reason, "0:0", time.Now())
			return false, s.setRecord(*r)
		}
		if c.Nodes > 0 && c.Nodes != r.Job.NumNodes {
			r.Job.NumNodes, r.Job.GPUs = c.Nodes, c.Nodes*s.sub.Request.GPUsPerNode
			if err := s.setRecord(*r); err != nil {
				return false, err
			}
		}
		reason, err := s.waitingReason(r, c)
		if err != nil {
			return false, err
		}
		if reason == "" {
			return true, s.setRecord(*r)
		}
		if reason == neverSatisfied && s.sub.Request.KillOnInvalidDep {
			r.end(slurm.Cancelled, reason, "0:0", time.Now())
			return false, s.setRecord(*r)
		}
		if reason != r.Job.Reason {
			r.Job.Reason = reason
			if err := s.setRecord(*r); err != nil {
				return false, err
			}
		}
		wait = min(wait+10*time.Millisecond, 250*time.Millisecond)
	}
}

// neverSatisfied is Slurm's word for a dependency that cannot be satisfied any more.
const neverSatisfied = "DependencyNeverSatisfied"

// waitingReason returns the reason, in Slurm's words, why r cannot start. "" means that
// r has its nodes and starts now.
func (s *supervisor) waitingReason(r *record, c control) (string, error) {
	if held := cmp.Or(c.Hold, &s.sub.Request.Hold); *held { // --hold, until an order says otherwise
		return "JobHeldUser", nil
	}
	if time.Now().Before(s.sub.Request.Begin) {
		return "BeginTime", nil
	}
	if s.sub.Request.Dependency != "" {
		if met, never := s.dependencyMet(r.Job.ID, s.sub); never {
			return neverSatisfied, nil
		} else if !met {
			return "Dependency", nil
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if limit := s.sub.Request.ArrayLimit; limit > 0 && s.running >= limit {
		return "JobArrayTaskLimit", nil
	}
	nodes, err := s.allocate(r.Job.ID, r.Job.NumNodes, s.sub.Machine)
	if err != nil || nodes == nil {
		return "Resources", err
	}
	s.running++
	r.Job.Nodes = nodes
	return "", nil
}

// run runs one element in a process of its own, the ancestor of all of the element's
// processes, and waits for its end.
func (s *supervisor) run(id slurm.JobID) {
	cmd, err := selfCommand("run", s.dir, string(id))
	if err == nil {
		cmd.Path, cmd.Args[0] = self(), self()
		cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
		err = cmd.Run()
	}
	if _, exited := err.(*exec.ExitError); err != nil && !exited { //nolint:errorlint // cmd.Run gives the error itself
		fmt.Fprintf(os.Stderr, "supervisor: job %s: %v\n", id, err)
	}
	// A runner that was killed could not record the end.
	r, err := s.record(id)
	switch {
	case err != nil || r.Job.State.Ended():
		return
	case r.Job.State != slurm.Pending:
		_ = s.nodeFailed(&r)
	case r.Job.Restarts == 0: // a pending job with restarts was requeued
		s.free(id, r.Job.Nodes)
		r.end(slurm.Failed, "JobLaunchFailure", "0:53", time.Now())
		_ = s.setRecord(r)
	}
}
