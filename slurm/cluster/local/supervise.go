package local

import (
	"fmt"
	"os"
	"os/exec"
	"sync"
	"time"

	"github.com/megatron-ops/megatron-ops/slurm"
)

// A supervisor decides when the elements of one submission start, and starts a
// runner for each. There is one for each submission; a lock sees to that.
type supervisor struct {
	store
	id   slurm.JobID
	sub  submission
	tick time.Duration

	mu      sync.Mutex
	running int // elements, for an array's limit
}

// superviseMain is the supervisor's process: supervise DIR ID.
func superviseMain(args []string) int {
	if len(args) != 2 {
		return 2
	}
	s := supervisor{store: store{args[0]}, id: slurm.JobID(args[1]), tick: 50 * time.Millisecond}
	if err := s.main(); err != nil {
		fmt.Fprintln(os.Stderr, "supervisor:", err)
		return 1
	}
	return 0
}

func (s *supervisor) main() error {
	lock, ok, err := take(s.supervisorLock(s.id))
	if err != nil || !ok {
		return err // another one supervises already
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
			if err := s.see(id); err != nil {
				fmt.Fprintf(os.Stderr, "supervisor: job %s: %v\n", id, err)
			}
		})
	}
	all.Wait()
	return nil
}

// see takes one element from where it is to its end.
func (s *supervisor) see(id slurm.JobID) error {
	for {
		r, err := s.record(id)
		if err != nil || r.Job.State.Ended() {
			return err
		}
		if r.Job.State == slurm.Running {
			// A supervisor before this one started it.
			if isHeld(s.runLock(id)) {
				time.Sleep(s.tick)
				continue
			}
			if r, err = s.record(id); err == nil && r.Job.State == slurm.Running {
				r.end(slurm.NodeFail, "NodeDown", "0:0", time.Now())
				s.free(id, r.Job.Nodes)
				return s.setRecord(r)
			}
			continue
		}
		started, err := s.await(&r)
		if err != nil || !started {
			return err
		}
		s.run(id)
		s.mu.Lock()
		s.running--
		s.mu.Unlock()
	}
}

// await waits until r may start, and gives it its nodes. started is false where
// it was cancelled first. A job whose record was removed waits no longer: nobody
// could cancel it any more.
func (s *supervisor) await(r *record) (started bool, err error) {
	for wait := s.tick; ; time.Sleep(wait) {
		if _, err := os.Stat(s.recordPath(r.Job.ID)); err != nil {
			return false, err
		}
		c := s.asked(r.Job.ID)
		if c.Cancel {
			now := time.Now()
			r.end(slurm.Cancelled, r.Job.Reason, "0:0", now)
			return false, s.setRecord(*r)
		}
		if c.Nodes > 0 && c.Nodes != r.Job.NumNodes {
			r.Job.NumNodes, r.Job.GPUs = c.Nodes, c.Nodes*s.sub.Request.GPUsPerNode
			if err := s.setRecord(*r); err != nil {
				return false, err
			}
		}
		reason, err := s.obstacle(r, c)
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

// asked is what was asked of an element, as part of its array too.
func (s *supervisor) asked(id slurm.JobID) control {
	c := s.control(id)
	if c.Hold == nil {
		c.Hold = &s.sub.Request.Hold
	}
	return c
}

// obstacle names, in Slurm's words, why r cannot start; "" means that it has its
// nodes and starts now.
func (s *supervisor) obstacle(r *record, c control) (string, error) {
	if *c.Hold {
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

// run runs one element in a process of its own, which is the ancestor of all of
// the element's processes, and waits for it.
func (s *supervisor) run(id slurm.JobID) {
	cmd, err := again("run", s.dir, string(id))
	if err == nil {
		cmd.Path, cmd.Args[0] = self(), self()
		cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
		err = cmd.Run()
	}
	if _, exited := err.(*exec.ExitError); err != nil && !exited { //nolint:errorlint // cmd.Run gives the error itself
		fmt.Fprintf(os.Stderr, "supervisor: job %s: %v\n", id, err)
	}
	// A runner that was killed could not write the end down.
	r, err := s.record(id)
	switch {
	case err != nil || r.Job.State.Ended():
		return
	case r.Job.State != slurm.Pending:
		s.free(id, r.Job.Nodes)
		r.end(slurm.NodeFail, "NodeDown", "0:0", time.Now())
	case r.Job.Restarts == 0:
		s.free(id, r.Job.Nodes)
		r.end(slurm.Failed, "JobLaunchFailure", "0:53", time.Now())
	default:
		return // it was requeued
	}
	_ = s.setRecord(r)
}
