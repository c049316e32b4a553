package local

import (
	"strings"
	"time"

	"github.com/megatron-ops/megatron-ops/slurm"
)

// dependencyKinds maps a kind of dependency to a function of the job depended on. The
// function returns whether that job satisfies the dependency now and, if it does not,
// whether it never will.
var dependencyKinds = map[string]func(j slurm.Job) (satisfied, never bool){
	"after":      func(j slurm.Job) (bool, bool) { return j.State != slurm.Pending, false },
	"afterany":   func(j slurm.Job) (bool, bool) { return j.State.Ended(), false },
	"afterok":    func(j slurm.Job) (bool, bool) { return j.State == slurm.Completed, j.State.Ended() },
	"afternotok": func(j slurm.Job) (bool, bool) { return j.State.Ended() && j.State != slurm.Completed, j.State.Ended() },
	"aftercorr":  func(j slurm.Job) (bool, bool) { return j.State == slurm.Completed, j.State.Ended() },
}

// readDependency checks the form of --dependency, but not whether the jobs exist.
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

// splitDependency splits at "," (all clauses must hold) or "?" (one clause must hold);
// the two cannot be mixed.
func splitDependency(v string) []string {
	return strings.FieldsFunc(v, func(r rune) bool { return r == ',' || r == '?' })
}

// dependencyMet reports whether the dependency of id is satisfied, and whether it never
// will be. An unknown job counts as completed, as in Slurm.
func (s store) dependencyMet(id slurm.JobID, sub submission) (met, never bool) {
	anyOf := strings.Contains(sub.Request.Dependency, "?")
	clauses := splitDependency(sub.Request.Dependency)
	impossible := 0
	for _, clause := range clauses {
		ok, never := s.clauseMet(id, sub, clause)
		if ok && anyOf {
			return true, false
		}
		if !ok && !anyOf {
			return false, never
		}
		if never {
			impossible++
		}
	}
	if anyOf && len(clauses) > 0 {
		return false, impossible == len(clauses)
	}
	return true, false
}

// clauseMet reports the same for one clause, such as "afterok:12:13".
func (s store) clauseMet(id slurm.JobID, sub submission, clause string) (met, never bool) {
	kind, list, _ := strings.Cut(clause, ":")
	if kind == "singleton" {
		return !s.earlierOfSameName(id, sub), false
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
			ok, impossible := dependencyKinds[kind](r.Job)
			if ok && delay != "" && r.Job.StartedAt != nil {
				wait, _ := slurm.ParseDuration(delay) // a number alone is in minutes
				ok = time.Since(*r.Job.StartedAt) >= wait
			}
			if !ok {
				return false, impossible
			}
		}
	}
	return true, false
}

func (s store) earlierOfSameName(id slurm.JobID, sub submission) bool {
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
