package slurm

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/megatron-ops/megatron-ops/slurm/hostlist"
)

// Fold returns the one job that id means among rows: the row itself, or, for an
// array or a heterogeneous job asked for as a whole, a summary of its elements.
// ok is false when no row belongs to id.
func Fold(id JobID, rows []Job) (j Job, ok bool) {
	var parts []Job
	array := id.Array() == id
	for i := range rows { // by pointer: an array may have thousands
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
		return Job{}, false
	}
	// The part that a person would look at first speaks for the whole.
	j = parts[0]
	nodes, held, gpus, asked, tasks, limit := []string{}, map[string]bool{}, 0, 0, map[State]int{}, 0
	for _, p := range parts {
		limit = max(limit, p.ArrayLimit, ArrayLimit(string(p.ID)))
		// Of components that are in the same state the first does: it has the log.
		if weight(p.State) > weight(j.State) || weight(p.State) == weight(j.State) && p.ID == id+"+0" {
			j = p
		}
		if strings.Contains(string(p.ID), "+") {
			asked += p.NumNodes
		} else {
			tasks[p.State] += len(p.ID.elements())
		}
		for _, n := range p.Nodes { // elements may share a node
			if !held[n] {
				held[n], nodes = true, append(nodes, n)
			}
		}
		// The components of a heterogeneous job run together; of an array, those
		// elements that run now.
		if strings.Contains(string(p.ID), "+") || p.State == Running {
			gpus += p.GPUs
		}
	}
	j.ID, j.RawID, j.ArrayLimit = id, "", limit
	j.Nodes, j.NumNodes, j.GPUs = nodes, max(j.NumNodes, asked, len(nodes)), max(j.GPUs, gpus)
	if len(tasks) > 0 { // each writes a log of its own
		each := regexp.MustCompile(`\b` + regexp.QuoteMeta(string(id)) + `_[0-9]+`)
		j.Tasks = tasks
		j.Stdout, j.Stderr = each.ReplaceAllString(j.Stdout, string(id)+"_%a"), each.ReplaceAllString(j.Stderr, string(id)+"_%a")
	}
	j = j.withLeader(parts)
	return j, true
}

// withLeader returns a part of a heterogeneous job with the log of its first
// component, where that is among rows: only there does the batch script run.
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

// weight orders the states of an array's elements: while one runs the array
// runs, while one waits it waits, and when all have ended the worst end counts.
func weight(s State) int {
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

// ArrayLimit is how many elements of an array may run at a time, by the ids that
// squeue and sacct print of those that wait, such as "34_[1-4%2]"; 0: all of them.
func ArrayLimit(ids string) int {
	if m := arrayLimit.FindStringSubmatch(ids); m != nil {
		return parseCount(m[1])
	}
	return 0
}

// covers reports whether j is the one line for elements of an array that have
// not been split off it, such as "34_[1-4%1]", and id is among them.
func (j *Job) covers(id JobID) bool {
	return strings.Contains(string(j.ID), "_[") && slices.Contains(j.ID.elements(), string(id))
}

// elements are the tasks of an array that id stands for: itself, or those that
// have not been split off, such as "34_[1-4%1]".
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

// Vanished makes the job of an array's element that neither the queue nor the
// accounts have, from what they have of its array: Slurm forgets an element that
// is cancelled before it starts (seen in 22.05). ok is false where the array is
// not known either, or has no other element.
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
