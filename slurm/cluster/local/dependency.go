package local

import (
	"strings"
	"time"

	"github.com/megatron-ops/megatron-ops/slurm"
)

// dependencyKinds are the kinds of dependency and when a job that is waited for
// satisfies each, or never will.
var dependencyKinds = map[string]func(j slurm.Job) (satisfied, never bool){
	"after":      func(j slurm.Job) (bool, bool) { return j.State != slurm.Pending, false },
	"afterany":   func(j slurm.Job) (bool, bool) { return j.State.Ended(), false },
	"afterok":    func(j slurm.Job) (bool, bool) { return j.State == slurm.Completed, j.State.Ended() },
	"afternotok": func(j slurm.Job) (bool, bool) { return j.State.Ended() && j.State != slurm.Completed, j.State.Ended() },
	"aftercorr":  func(j slurm.Job) (bool, bool) { return j.State == slurm.Completed, j.State.Ended() },
}

// readDependency checks the form; which jobs exist is known at submission only.
func readDependency(r *request, v string) error {
	for _, clause := range splitDependency(v) {
		kind, ids, _ := strings.Cut(clause, ":")
		if kind == "singleton" && ids == "" {
			continue
		}
		if _, ok := dependencyKinds[kind]; !ok || ids == "" {
			return slurm.Sayf("Job dependency problem: %q", clause)
		}
		for id := range strings.SplitSeq(ids, ":") {
			id, _, _ = strings.Cut(id, "+")
			if !slurm.IsJobID(id) {
				return slurm.Sayf("Job dependency problem: %q is no job id", id)
			}
		}
	}
	r.Dependency = v
	return nil
}

// splitDependency splits at "," (all) or "?" (any); the two cannot be mixed.
func splitDependency(v string) []string {
	return strings.FieldsFunc(v, func(r rune) bool { return r == ',' || r == '?' })
}

// dependencyMet reports whether the dependency of id is satisfied, and whether
// it never will be. A job that is not known counts as ended well, as in Slurm.
func (s store) dependencyMet(id slurm.JobID, sub submission) (met, never bool) {
	anyOf := strings.Contains(sub.Request.Dependency, "?")
	clauses := splitDependency(sub.Request.Dependency)
	hopeless := 0
	for _, clause := range clauses {
		ok, lost := s.clauseMet(id, sub, clause)
		if ok && anyOf {
			return true, false
		}
		if !ok && !anyOf {
			return false, lost
		}
		if lost {
			hopeless++
		}
	}
	if anyOf && len(clauses) > 0 {
		return false, hopeless == len(clauses)
	}
	return true, false
}

func (s store) clauseMet(id slurm.JobID, sub submission, clause string) (met, never bool) {
	kind, list, _ := strings.Cut(clause, ":")
	if kind == "singleton" {
		return !s.twinBefore(id, sub), false
	}
	for word := range strings.SplitSeq(list, ":") {
		word, delay, _ := strings.Cut(word, "+")
		elements, err := s.elements(slurm.JobID(word))
		if err != nil {
			continue
		}
		for _, e := range elements {
			r, err := s.record(e)
			if err != nil {
				continue
			}
			ok, lost := dependencyKinds[kind](r.Job)
			if ok && delay != "" && r.Job.StartedAt != nil {
				wait, _ := slurm.ParseDuration(delay) // minutes
				ok = time.Since(*r.Job.StartedAt) >= wait
			}
			if !ok {
				return false, lost
			}
		}
	}
	return true, false
}

// twinBefore reports whether an earlier job of the same name has not ended.
func (s store) twinBefore(id slurm.JobID, sub submission) bool {
	ids, err := s.ids()
	if err != nil {
		return false
	}
	for _, other := range ids {
		if other.Array() == id.Array() || numbers(other)[0] > numbers(id)[0] {
			continue
		}
		if r, err := s.record(other); err == nil && r.Job.Name == sub.Request.Name && !r.Job.State.Ended() {
			return true
		}
	}
	return false
}
