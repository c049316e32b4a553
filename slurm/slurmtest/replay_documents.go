package slurmtest

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/megatron-ops/megatron-ops/slurm"
)

// inFormOf returns v in the form of the recorded value: bare, in a list, or as a number
// that may be unset.
func inFormOf(recorded, v any) any {
	switch old := recorded.(type) {
	case object:
		if _, has := old["set"]; has {
			if v == nil {
				return object{"set": false, "infinite": false, "number": 0}
			}
			return object{"set": true, "infinite": false, "number": v}
		}
	case []any:
		return []any{v}
	}
	return v
}

// put replaces fields of a recorded document and keeps their form.
func put(doc, values object) {
	for name, v := range values {
		doc[name] = inFormOf(doc[name], v)
	}
}

// exit returns an exit code in the recorded form.
func exit(recorded any, code *string) any {
	var value, signal int
	if code != nil {
		_, _ = fmt.Sscanf(*code, "%d:%d", &value, &signal)
	}
	old, whole := recorded.(object)
	if !whole {
		return value<<8 | signal
	}
	old = maps.Clone(old)
	old["return_code"] = inFormOf(old["return_code"], value)
	if sig, ok := old["signal"].(object); ok && signal != 0 {
		sig = maps.Clone(sig)
		sig["id"] = inFormOf(sig["id"], signal)
		old["signal"] = sig
	}
	return old
}

// jobs returns documents of the runner's jobs that id names, or of all jobs.
func (r *REST) jobs(q apiRequest, id slurm.JobID, write func(apiRequest, slurm.Job) object) []any {
	all := r.all(q.Context())
	id = known(all, id)
	docs := []any{}
	waiting := map[slurm.JobID][]slurm.Job{}
	for _, j := range all {
		if id != "" && j.ID != id && j.ID.Array() != id {
			continue
		}
		// Waiting elements share one entry until each has a number of its own.
		if array := j.ID.Array(); array != j.ID && j.State == slurm.Pending && j.Reason != "JobHeldUser" {
			waiting[array] = append(waiting[array], j)
			continue
		}
		docs = append(docs, write(q, j))
	}
	for array, elements := range waiting {
		var numbers []string
		for _, e := range elements {
			_, n, _ := strings.Cut(string(e.ID), "_")
			numbers = append(numbers, n)
		}
		j := elements[0]
		j.ID, j.RawID = array+"_["+slurm.JobID(strings.Join(numbers, ","))+"]", array
		docs = append(docs, write(q, j))
	}
	return docs
}

// parts returns the numbers of an array element in a document.
func parts(j slurm.Job) (own, array int64, element any, rest string) {
	number := func(id slurm.JobID) int64 {
		n, _ := strconv.ParseInt(string(id), 10, 64)
		return n
	}
	whole, part, isArray := strings.Cut(string(j.ID), "_")
	if !isArray {
		return number(j.ID), 0, nil, ""
	}
	own, array = number(j.RawID), number(slurm.JobID(whole))
	if list, waits := strings.CutPrefix(part, "["); waits {
		rest = strings.TrimSuffix(list, "]")
		if j.ArrayLimit > 0 {
			rest += fmt.Sprintf("%%%d", j.ArrayLimit)
		}
		return own, array, nil, rest
	}
	n, _ := strconv.ParseInt(part, 10, 64)
	return own, array, n, ""
}

func seconds(t *time.Time) int64 {
	if t == nil {
		return 0
	}
	return t.Unix()
}

// queued returns a job's document of the controller.
func (r *REST) queued(q apiRequest, j slurm.Job) object {
	doc := recordedDocument(r.t, r.release, q.name+"job-running.json")["jobs"].([]any)[0].(object) //nolint:forcetypeassert // recorded so
	own, array, element, rest := parts(j)
	start := j.StartedAt
	if j.State == slurm.Pending {
		start = j.EstStart
	}
	var limit any
	if j.TimeLimitS != nil {
		limit = *j.TimeLimitS / 60
	}
	reason := j.Reason
	if reason == "" {
		reason = "None"
	}
	output, errors := j.Stdout, j.Stderr
	if rest != "" && q.api >= 40 && q.api <= 44 {
		// These versions expand the path with the number for no element.
		_, n, _ := strings.Cut(strings.SplitN(string(j.ID), ",", 2)[0], "[")
		output = strings.ReplaceAll(output, "_"+strings.TrimSuffix(n, "]")+".", "_4294967294.")
		errors = output
	}
	put(doc, object{
		"job_id": own, "array_job_id": array, "array_task_id": element, "array_task_string": rest, "array_max_tasks": j.ArrayLimit,
		"name": j.Name, "user_name": r.Owner, "account": j.Account, "partition": j.Partition, "qos": j.QOS,
		"job_state": string(j.State), "state_reason": reason, "nodes": strings.Join(j.Nodes, ","), "node_count": max(j.NumNodes, 1),
		"time_limit": limit, "submit_time": seconds(j.SubmittedAt), "start_time": seconds(start), "end_time": seconds(j.EndedAt),
		"restart_cnt": j.Restarts, "current_working_directory": j.WorkDir, "comment": j.Comment,
		"standard_output": output, "standard_error": errors,
		"tres_alloc_str": fmt.Sprintf("cpu=2,node=2,gres/gpu=%d", j.GPUs), "tres_req_str": fmt.Sprintf("cpu=2,gres/gpu=%d", j.GPUs),
	})
	doc["exit_code"] = exit(doc["exit_code"], j.ExitCode)
	return doc
}

// accounted returns a job's document of the accounts.
func (r *REST) accounted(q apiRequest, j slurm.Job) object {
	doc := recordedDocument(r.t, r.release, q.name+"accounts-failed.json")["jobs"].([]any)[0].(object) //nolint:forcetypeassert // recorded so
	own, array, element, _ := parts(j)
	put(doc, object{"job_id": own, "name": j.Name, "user": r.Owner, "partition": j.Partition, "nodes": strings.Join(j.Nodes, ",")})
	within := func(name string, values object) {
		inner := maps.Clone(doc[name].(object)) //nolint:forcetypeassert // recorded so
		put(inner, values)
		doc[name] = inner
	}
	within("array", object{"job_id": array, "task_id": element})
	within("state", object{"current": string(j.State), "reason": "None"})
	within("comment", object{"job": j.Comment})
	within("time", object{"submission": seconds(j.SubmittedAt), "start": seconds(j.StartedAt), "end": seconds(j.EndedAt), "elapsed": j.ElapsedS})
	doc["exit_code"] = exit(doc["exit_code"], j.ExitCode)
	return doc
}

// nodes returns documents of the runner's nodes, made from a recorded one.
func (r *REST) nodes(q apiRequest) (docs []any) {
	all, err := r.run.Nodes(q.Context())
	if err != nil {
		r.t.Error(err)
	}
	template := recordedDocument(r.t, r.release, q.name+r.nearest(q, "nodes.json"))["nodes"].([]any)[0].(object) //nolint:forcetypeassert // recorded so
	for _, n := range all {
		doc := maps.Clone(template)
		put(doc, object{
			"name": n.Name, "gres": "gpu:8", "gres_used": fmt.Sprintf("gpu:%d", n.GPUsUsed),
			"cpus": n.CPUs, "alloc_cpus": n.CPUsUsed, "real_memory": n.MemoryMB, "reason": n.Reason,
		})
		if _, list := doc["state"].([]any); list {
			doc["state"] = []any{strings.ToUpper(n.State)}
		} else {
			doc["state"], doc["state_flags"] = n.State, []any{}
		}
		doc["partitions"] = n.Partitions
		if _, text := doc["features"].(string); text {
			doc["features"] = strings.Join(n.Features, ",")
		} else {
			doc["features"] = n.Features
		}
		docs = append(docs, doc)
	}
	return docs
}

// partitions returns documents of the runner's partitions, made from a recorded one.
// The recorded flags, those of the default partition, stay.
func (r *REST) partitions(q apiRequest) (docs []any) {
	all, err := r.run.Partitions(context.WithoutCancel(q.Context()))
	if err != nil {
		r.t.Error(err)
	}
	for _, p := range all {
		doc := recordedDocument(r.t, r.release, q.name+"partition.json")["partitions"].([]any)[0].(object) //nolint:forcetypeassert // recorded so
		doc["name"] = p.Name
		if inner, ok := doc["nodes"].(object); ok {
			inner["configured"] = p.Nodes
		} else {
			doc["nodes"] = p.Nodes
		}
		docs = append(docs, doc)
	}
	return slices.Clip(docs)
}
