package slurm

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/megatron-ops/megatron-ops/slurm/hostlist"
)

// Fold returns the job with that id from rows. Where id names a whole array or a whole
// heterogeneous job, Fold returns a summary of its elements or components. Where id is
// the own number of an element or a component, the job has the id of that element. ok is
// false where no row belongs to id.
func Fold(id JobID, rows []Job) (j Job, ok bool) {
	var parts []Job
	array := id.Array() == id
	for i := range rows { // by pointer, because an array may have thousands of rows
		r := &rows[i]
		if r.ID == id {
			return r.withLeader(rows), true
		}
		if !array {
			if r.covers(id) {
				part := *r
				part.ID, part.ArrayLimit = id, max(r.ArrayLimit, ArrayLimit(string(r.ID)))
				return part, true
			}
			continue
		}
		if r.ID.Array() == id {
			parts = append(parts, *r)
		}
	}
	if len(parts) == 0 {
		// An element's or a component's own number, as the job itself sees it in SLURM_JOB_ID.
		if i := slices.IndexFunc(rows, func(r Job) bool { return r.RawID == id }); i >= 0 {
			return rows[i].withLeader(rows), true
		}
		return Job{}, false
	}
	// The state that a person would look at first represents the whole job.
	j = parts[0]
	nodes, held, gpus, asked, tasks, limit := []string{}, map[string]bool{}, 0, 0, map[State]int{}, 0
	var first *FailedTask
	for _, p := range parts {
		limit = max(limit, p.ArrayLimit, ArrayLimit(string(p.ID)))
		if strings.Contains(string(p.ID), "+") {
			asked += p.NumNodes
		} else {
			tasks[p.State] += len(p.ID.elements())
			first = first.orEarlier(p)
		}
		// Among components in the same state the first represents the job, because it
		// has the log; among tasks the one that failed first.
		if like := precedence(p.State) - precedence(j.State); like > 0 || like == 0 && (p.ID == id+"+0" || first != nil && p.ID == first.ID) {
			j = p
		}
		for _, n := range p.Nodes { // elements may share a node
			if !held[n] {
				held[n], nodes = true, append(nodes, n)
			}
		}
		// All components of a heterogeneous job run together; of an array only the
		// elements in state RUNNING hold GPUs.
		if strings.Contains(string(p.ID), "+") || p.State == Running {
			gpus += p.GPUs
		}
	}
	j.ID, j.RawID, j.ArrayLimit = id, "", limit
	j.Nodes, j.NumNodes, j.GPUs = nodes, max(j.NumNodes, asked, len(nodes)), max(j.GPUs, gpus)
	if len(tasks) > 0 {
		j.Tasks, j.FirstFailed = tasks, first
		j.patternPaths()
	}
	j = j.withLeader(parts)
	return j, true
}

// A FailedTask is a task of an array that failed.
type FailedTask struct {
	ID       JobID      `json:"job_id"`
	State    State      `json:"state"`
	ExitCode *string    `json:"exit_code"`
	EndedAt  *time.Time `json:"ended_at"`
}

// orEarlier returns the task of row where it failed before t did, else t. nil is no task.
func (t *FailedTask) orEarlier(row Job) *FailedTask {
	later := t != nil && (row.EndedAt == nil || t.EndedAt != nil && !row.EndedAt.Before(*t.EndedAt))
	if !row.State.Failed() || later {
		return t
	}
	return &FailedTask{ID: row.ID, State: row.State, ExitCode: row.ExitCode, EndedAt: row.EndedAt}
}

// FailedTasks counts the tasks of a whole array that failed.
func (j Job) FailedTasks() (n int) {
	for state, of := range j.Tasks {
		if state.Failed() {
			n += of
		}
	}
	return n
}

// AddEndedTasks adds to a whole array what past, its record in the accounts, tells of the
// tasks that have left the queue, and the exit code of the task that failed first. The
// accounts may lag behind the queue, and may know the id as another user's.
func (j *Job) AddEndedTasks(past Job) {
	if !j.SameJob(past) {
		return
	}
	count := func(tasks map[State]int) (n int) {
		for _, of := range tasks {
			n += of
		}
		return n
	}
	if count(past.Tasks) > count(j.Tasks) {
		j.Tasks = past.Tasks
	}
	now, then := j.FirstFailed, past.FirstFailed
	if later := now != nil && now.EndedAt != nil && (then == nil || then.EndedAt == nil || then.EndedAt.After(*now.EndedAt)); then != nil && !later {
		j.FirstFailed = then
	}
}

// patternPaths turns the output paths of an array, which are those of one element, into
// patterns: each element writes its own log.
func (j *Job) patternPaths() {
	each := regexp.MustCompile(`\b` + regexp.QuoteMeta(string(j.ID)) + `_[0-9]+`)
	j.Stdout, j.Stderr = each.ReplaceAllString(j.Stdout, string(j.ID)+"_%a"), each.ReplaceAllString(j.Stderr, string(j.ID)+"_%a")
}

// withLeader returns j. Where j belongs to a heterogeneous job and rows hold its first
// component, the copy has that component's log paths, because the batch script runs
// only there.
func (j *Job) withLeader(rows []Job) Job {
	part := *j
	if whole := j.ID.Array(); whole != j.ID && !strings.Contains(string(j.ID), "+") {
		return part
	}
	for i := range rows {
		if rows[i].ID == j.ID.Array()+"+0" && rows[i].Stdout != "" {
			part.Stdout, part.Stderr = rows[i].Stdout, rows[i].Stderr
		}
	}
	return part
}

// precedence orders the states of an array's elements. While one element runs, the
// array counts as running; while one waits, as waiting; once all have ended, the worst
// end counts.
func precedence(s State) int {
	switch s {
	case Running, Completing:
		return 5
	case Completed:
		return 0
	case Cancelled:
		return 1
	}
	if s.Ended() {
		return 2
	}
	return 4
}

var arrayLimit = regexp.MustCompile(`%([0-9]+)\]`)

// ArrayLimit returns how many elements of an array may run at a time, read from the ids
// that squeue and sacct print for its waiting elements, such as "34_[1-4%2]"; 0 means
// no limit.
func ArrayLimit(ids string) int {
	if m := arrayLimit.FindStringSubmatch(ids); m != nil {
		return parseCount(m[1])
	}
	return 0
}

// covers reports whether j is the one row for several waiting elements of an array,
// such as "34_[1-4%1]", and id is one of them.
func (j *Job) covers(id JobID) bool {
	return strings.Contains(string(j.ID), "_[") && slices.Contains(j.ID.elements(), string(id))
}

// elements returns the array tasks that id stands for: id itself, or each waiting task
// of an id such as "34_[1-4%1]".
func (id JobID) elements() []string {
	if !strings.Contains(string(id), "_[") {
		return []string{string(id)}
	}
	elements, err := hostlist.Expand(arrayLimit.ReplaceAllString(string(id), "]"))
	if err != nil {
		return []string{string(id)}
	}
	return elements
}

// Vanished makes up a job for an array element that neither the queue nor the accounts
// list, from the rows of its array. Slurm keeps no record of an element that is
// cancelled before it starts (seen in 22.05). ok is false where array has no other
// element.
func Vanished(id JobID, array []Job) (j Job, ok bool) {
	_, word, isElement := strings.Cut(string(id), "_")
	if _, err := strconv.Atoi(word); !isElement || err != nil {
		return Job{}, false
	}
	others := false
	for _, r := range array {
		if r.ID.Array() != id.Array() {
			continue
		}
		_, word, _ := strings.Cut(string(r.ID), "_")
		if other, err := strconv.Atoi(word); err == nil && other >= 0 {
			j, others = r, true
		}
	}
	if !others {
		return Job{}, false
	}
	return Job{
		ID: id, Cluster: j.Cluster, Name: j.Name, User: j.User, Account: j.Account, Partition: j.Partition, QOS: j.QOS,
		State: Cancelled, Reason: ReasonVanished, Nodes: []string{}, TimeLimitS: j.TimeLimitS,
		SubmittedAt: j.SubmittedAt, WorkDir: j.WorkDir, Comment: j.Comment,
	}, true
}
