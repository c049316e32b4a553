package slurm

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Slurm's JSON changes its shape between releases (data_parser v0.0.38 of 22.05 to
// v0.0.45 of 26.05): a number may be {"set","infinite","number"}, a state may be a list
// of states. The readers below accept every form and decide by its shape.

// A jsonObject is a JSON object. Its readers return zero values for missing fields.
type jsonObject map[string]any

func (o jsonObject) object(names ...string) jsonObject {
	for _, name := range names {
		inner, _ := o[name].(map[string]any)
		o = inner
	}
	return o
}

// number reads a number in any form; ok is false for a number that is unset, null or
// infinite.
func number(v any) (n int64, ok bool) {
	switch v := v.(type) {
	case float64:
		return int64(v), true
	case string:
		n, err := strconv.ParseInt(v, 10, 64)
		return n, err == nil
	case map[string]any:
		if set, has := v["set"].(bool); has && !set {
			return 0, false
		}
		if infinite, _ := v["infinite"].(bool); infinite {
			return 0, false
		}
		return number(v["number"])
	}
	return 0, false
}

func (o jsonObject) number(name string) int64 {
	n, _ := number(o[name])
	return n
}

// text reads a string, or the first of a list of strings.
func (o jsonObject) text(name string) string {
	switch v := o[name].(type) {
	case string:
		return v
	case []any:
		if len(v) > 0 {
			s, _ := v[0].(string)
			return s
		}
	}
	return ""
}

// list reads a list of strings, or a string with commas.
func (o jsonObject) list(name string) []string {
	switch v := o[name].(type) {
	case string:
		if v == "" {
			return nil
		}
		return strings.Split(v, ",")
	case []any:
		var all []string
		for _, x := range v {
			if s, ok := x.(string); ok {
				all = append(all, s)
			}
		}
		return all
	}
	return nil
}

// stateFlags are the state flags of a job, ordered as squeue prefers them over the base
// state (job_state_string of slurm_protocol_defs.c).
var stateFlags = []string{
	"COMPLETING", "STAGE_OUT", "CONFIGURING", "EXPEDITING", "RESIZING", "REQUEUED", "REQUEUE_FED", "REQUEUE_HOLD",
	"SPECIAL_EXIT", "STOPPED", "REVOKED", "RESV_DEL_HOLD", "SIGNALING",
}

// state reads a job's state: one word, or a list of the base state and its flags. From
// a list it returns the word that squeue would show.
func (o jsonObject) state(name string) State {
	all := o.list(name)
	for _, flag := range stateFlags {
		if slices.Contains(all, flag) {
			return State(flag)
		}
	}
	if len(all) == 0 {
		return ""
	}
	return ParseState(all[0])
}

func (o jsonObject) time(name string) *time.Time {
	n, ok := number(o[name])
	if !ok || n <= 0 {
		return nil
	}
	t := time.Unix(n, 0)
	return &t
}

// limit reads a time limit in minutes and returns it in seconds; nil where there is
// none.
func (o jsonObject) limit(name string) *int64 {
	n, ok := number(o[name])
	if !ok || n >= 1<<32-2 { // Slurm's INFINITE and NO_VAL
		return nil
	}
	n *= 60
	return &n
}

// exit reads an exit code: a wait status, or an object with return_code and signal.
func (o jsonObject) exit(name string) *string {
	switch v := o[name].(type) {
	case float64:
		return exitCode(strconv.FormatInt(int64(v), 10))
	case map[string]any:
		x := jsonObject(v)
		if _, raw := v["number"]; raw {
			if n, ok := number(v); ok {
				return exitCode(strconv.FormatInt(n, 10))
			}
			return nil
		}
		code := max(x.number("return_code"), 0)
		sig := x.object("signal")
		signal := sig.number("signal_id")
		if signal == 0 {
			signal = sig.number("id")
		}
		s := fmt.Sprintf("%d:%d", code, signal)
		return &s
	}
	return nil
}

// arrayID returns the id of a job, of an array element, or of the waiting elements rest
// that Slurm lists as one row.
func arrayID(id, array int64, element any, rest string) JobID {
	if array == 0 {
		return JobID(strconv.FormatInt(id, 10))
	}
	if rest != "" {
		return JobID(fmt.Sprintf("%d_[%s]", array, rest))
	}
	if n, ok := number(element); ok {
		return JobID(fmt.Sprintf("%d_%d", array, n))
	}
	return JobID(strconv.FormatInt(array, 10))
}

// hetID returns the id of a component of a heterogeneous job, such as 12+1, or id for
// any other job. job and offset are the field names in o.
func hetID(id JobID, o jsonObject, job, offset string) JobID {
	whole := o.number(job)
	if whole <= 0 {
		return id
	}
	return JobID(fmt.Sprintf("%d+%d", whole, o.number(offset)))
}

// JobsFromJSON reads one job of squeue --json or of slurmrestd's jobs. Array elements
// that Slurm lists as one row become one job each.
func JobsFromJSON(m map[string]any) []Job {
	o := jsonObject(m)
	id := o.number("job_id")
	j := Job{
		ID:   arrayID(id, o.number("array_job_id"), o["array_task_id"], o.text("array_task_string")),
		Name: o.text("name"), User: o.text("user_name"), Account: o.text("account"),
		Partition: o.text("partition"), QOS: o.text("qos"),
		State: o.state("job_state"), Reason: emptyIfNone(o.text("state_reason")),
		Nodes: nodesOf(o.text("nodes")), NumNodes: int(o.number("node_count")),
		TimeLimitS: o.limit("time_limit"), SubmittedAt: o.time("submit_time"),
		Restarts: int(o.number("restart_cnt")), Dependency: o.text("dependency"), WorkDir: o.text("current_working_directory"), Comment: o.text("comment"),
	}
	if j.Nodes == nil {
		j.Nodes = []string{}
	}
	if n, ok := number(o["priority"]); ok {
		j.Priority = &n
	}
	start := o.time("start_time")
	if j.State == Pending {
		j.EstStart, j.ArrayLimit = j.estimated(start), int(o.number("array_max_tasks"))
	} else {
		j.StartedAt = start
	}
	if j.State.Ended() {
		j.EndedAt, j.ExitCode = o.time("end_time"), o.exit("exit_code")
	}
	j.forgetStart()
	j.ElapsedS = j.ran(o)
	j.preempted(o.time("preempt_time"), o.time("end_time"))
	j.GPUs = gpusInTRES(cmp.Or(o.text("tres_alloc_str"), o.text("tres_req_str")))
	if strings.Contains(string(j.ID), "_[") {
		return eachElement(j, o)
	}
	j.ID = hetID(j.ID, o, "het_job_id", "het_job_offset")
	if raw := JobID(strconv.FormatInt(id, 10)); raw != j.ID {
		j.RawID = raw
	}
	return []Job{withPaths(j, o)}
}

// ran returns how many seconds the job's run lasted, without the time for which it was
// suspended, as squeue computes it. Slurm keeps what it ran before the last suspension,
// and when that began or ended.
func (j *Job) ran(o jsonObject) int64 {
	if j.StartedAt == nil {
		return 0
	}
	since, end, before := *j.StartedAt, time.Now(), int64(0)
	if j.EndedAt != nil {
		end = *j.EndedAt
	}
	if at := o.time("suspend_time"); at != nil {
		since, before = *at, o.number("pre_sus_time")
	}
	if j.State == Suspended {
		return before
	}
	return max(int64(end.Sub(since)/time.Second), 0) + before
}

// eachElement returns one job for each array element of a row for several elements.
func eachElement(j Job, o jsonObject) []Job {
	var all []Job
	for _, id := range nodesOf(arrayLimit.ReplaceAllString(string(j.ID), "]")) {
		e := j
		e.ID = JobID(id)
		all = append(all, withPaths(e, o))
	}
	return all
}

func withPaths(j Job, o jsonObject) Job {
	out := o.text("standard_output")
	if out == "" {
		out = "slurm-%j.out"
		if j.ID != j.ID.Array() {
			out = "slurm-%A_%a.out"
		}
	}
	j.Stdout = ExpandPattern(out, j)
	j.Stderr = ExpandPattern(cmp.Or(o.text("standard_error"), out), j)
	return j
}

// AccountFromJSON reads one job of sacct --json or of slurmrestd's accounts.
func AccountFromJSON(m map[string]any) Job {
	o := jsonObject(m)
	times, array := o.object("time"), o.object("array")
	rest := array.text("task") // null, or the waiting elements that share this row
	j := Job{
		ID:   arrayID(o.number("job_id"), array.number("job_id"), array["task_id"], rest),
		Name: o.text("name"), User: cmp.Or(o.text("user"), o.object("association").text("user")),
		Account: o.text("account"), Partition: o.text("partition"), QOS: o.text("qos"),
		State: o.object("state").state("current"), Reason: emptyIfNone(o.object("state").text("reason")),
		Nodes: nodesOf(o.text("nodes")), NumNodes: int(o.number("allocation_nodes")),
		ElapsedS: times.number("elapsed"), TimeLimitS: times.limit("limit"),
		SubmittedAt: times.time("submission"), StartedAt: times.time("start"),
		WorkDir: o.text("working_directory"), Comment: o.object("comment").text("job"),
	}
	if j.Nodes == nil {
		j.Nodes = []string{}
	}
	j.ID = hetID(j.ID, o.object("het"), "job_id", "job_offset")
	if raw := JobID(strconv.FormatInt(o.number("job_id"), 10)); raw != j.ID && rest == "" {
		j.RawID = raw
	}
	if j.State.Ended() {
		j.ExitCode = o.exit("exit_code")
	}
	if j.State.Ended() || j.State == Requeued {
		j.EndedAt = times.time("end")
	}
	if out := o.text("stdout"); out != "" { // since 24.05
		j.Stdout, j.Stderr = ExpandPattern(out, j), ExpandPattern(cmp.Or(o.text("stderr"), out), j)
	}
	if who := o.text("kill_request_user"); j.State == Cancelled && who != "" {
		j.Reason = "by " + who
	}
	if n, ok := number(o["priority"]); ok {
		j.Priority = &n
	}
	allocated, _ := o.object("tres")["allocated"].([]any)
	for _, t := range allocated {
		tres, _ := t.(map[string]any)
		x := jsonObject(tres)
		if x.text("type") == "gres" && (x.text("name") == "gpu" || strings.HasPrefix(x.text("name"), "gpu:") && j.GPUs == 0) {
			j.GPUs = int(x.number("count"))
		}
	}
	return j
}

// NodeFromJSON reads one node of slurmrestd, or of scontrol show nodes --json.
func NodeFromJSON(m map[string]any) Node {
	o := jsonObject(m)
	states := o.list("state")
	flags := o.list("state_flags")
	if len(states) > 1 {
		flags = append(flags, states[1:]...)
	}
	state := "unknown"
	if len(states) > 0 {
		state = strings.ToLower(states[0])
	}
	n := Node{
		Name: o.text("name"), Partitions: o.list("partitions"),
		GPUs: gpusPerNode(o.text("gres")), GPUType: gpuType(o.text("gres")), GPUsUsed: gpusPerNode(o.text("gres_used")),
		CPUs: int(o.number("cpus")), CPUsUsed: int(o.number("alloc_cpus")), MemoryMB: o.number("real_memory"),
		Features: o.list("features"), Reason: o.text("reason"), ReasonBy: o.text("reason_set_by_user"), ReasonAt: o.time("reason_changed_at"),
	}
	n.State = nodeState(state, flags)
	return n
}

// PartitionFromJSON reads one partition of slurmrestd. nodes are all nodes of the
// cluster.
func PartitionFromJSON(m map[string]any, nodes []Node) Partition {
	o := jsonObject(m)
	state := strings.ToLower(cmp.Or(o.text("state"), o.object("partition").text("state")))
	p := Partition{Name: o.text("name"), State: state, Up: state == "up" || state == ""} // v0.0.39 has no state
	p.Default = slices.ContainsFunc(o.list("flags"), func(f string) bool { return strings.EqualFold(f, "default") })
	p.TimeLimitS = o.limit("max_time_limit") // 22.05; newer releases:
	if p.TimeLimitS == nil {
		p.TimeLimitS = o.object("maximums").limit("time")
	}
	most, ok := number(o["maximum_nodes_per_job"])
	if !ok {
		most, ok = number(o.object("maximums")["nodes"])
	}
	if ok && most > 0 && most < 1<<31 { // 22.05 writes -1 for no limit
		p.MaxNodes = int(most)
	}
	p.Nodes = cmp.Or(o.text("nodes"), o.object("nodes").text("configured"))
	member := map[string]bool{}
	for _, n := range nodesOf(p.Nodes) {
		member[n] = true
	}
	for _, n := range nodes {
		if !member[n.Name] {
			continue
		}
		p.Total++
		p.GPUs = max(p.GPUs, n.GPUs)
		switch n.share() {
		case "allocated":
			p.Allocated++
		case "idle":
			p.Idle++
		default:
			p.Other++
		}
	}
	return p
}
