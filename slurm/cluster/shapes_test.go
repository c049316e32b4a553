package cluster_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/slurm"
	"github.com/megatron-ops/megatron-ops/slurm/slurmtest"
)

// A shape describes how a later data_parser writes what v0.0.38 of Slurm 22.05 wrote,
// after the parsers.c of each. The recorded documents are converted to that shape, and
// must give the same jobs, nodes and partitions.
type shape struct {
	version int
}

// number writes a number that may be unset.
func (s shape) number(v any) any {
	if s.version < 39 {
		return v
	}
	n, set := v.(float64)
	return map[string]any{"set": set, "infinite": false, "number": n}
}

func (s shape) limit(v any) any {
	if v == nil && s.version >= 39 {
		return map[string]any{"set": false, "infinite": true, "number": 0}
	}
	return s.number(v)
}

// states writes a state, which is a list of states since v0.0.40.
func (s shape) states(v any) any {
	if s.version < 40 {
		return v
	}
	return []any{v}
}

func (s shape) exit(v any) any {
	raw, ok := v.(float64)
	if !ok || s.version < 40 {
		return s.number(v)
	}
	n := int(raw)
	return map[string]any{
		"status": []any{"ERROR"}, "return_code": s.number(float64(n >> 8)),
		"signal": map[string]any{"id": s.number(float64(n & 127)), "name": ""},
	}
}

func (s shape) job(m map[string]any) {
	for _, name := range []string{"array_job_id", "array_task_id", "node_count", "priority", "het_job_id", "het_job_offset", "cpus"} {
		m[name] = s.number(m[name])
	}
	if s.version >= 40 {
		for _, name := range []string{"start_time", "end_time", "submit_time"} {
			m[name] = s.number(m[name])
		}
	}
	m["time_limit"] = s.limit(m["time_limit"])
	m["job_state"], m["exit_code"] = s.states(m["job_state"]), s.exit(m["exit_code"])
	if s.version >= 42 {
		for name, v := range m {
			if v == "" {
				m[name] = nil // an empty object or text is null
			}
		}
	}
}

func (s shape) account(m map[string]any) {
	state := m["state"].(map[string]any) //nolint:forcetypeassert // recorded so
	state["current"] = s.states(state["current"])
	times := m["time"].(map[string]any) //nolint:forcetypeassert // recorded so
	times["limit"] = s.limit(times["limit"])
	array := m["array"].(map[string]any) //nolint:forcetypeassert // recorded so
	array["task_id"] = s.number(array["task_id"])
	if s.version >= 40 {
		code := m["exit_code"].(map[string]any) //nolint:forcetypeassert // recorded so
		code["status"], code["return_code"] = []any{code["status"]}, s.number(code["return_code"])
	}
}

func (s shape) node(m map[string]any) {
	if s.version < 39 {
		return
	}
	states := []any{m["state"]}
	flags, _ := m["state_flags"].([]any)
	m["state"] = append(states, flags...)
	delete(m, "state_flags")
	for _, name := range []string{"state"} {
		list := m[name].([]any) //nolint:forcetypeassert // made above
		for i, x := range list {
			list[i] = strings.ToUpper(x.(string)) //nolint:forcetypeassert // states
		}
	}
	if f, ok := m["features"].(string); ok {
		list := []any{}
		for word := range strings.SplitSeq(f, ",") {
			list = append(list, word)
		}
		m["features"] = list
	}
	m["reason_changed_at"] = s.number(m["reason_changed_at"])
}

func (s shape) partition(m map[string]any) {
	if s.version < 39 {
		return
	}
	m["maximums"] = map[string]any{"time": s.limit(m["max_time_limit"]), "nodes": s.limit(m["maximum_nodes_per_job"])}
	m["nodes"] = map[string]any{"configured": m["nodes"], "total": m["total_nodes"]}
	m["partition"] = map[string]any{"state": []any{m["state"]}}
	for _, name := range []string{"max_time_limit", "maximum_nodes_per_job", "total_nodes", "state"} {
		delete(m, name)
	}
}

// recordedList reads a list of a recorded document and converts it to that shape.
func recordedList(t *testing.T, file, list string, change func(map[string]any)) []map[string]any {
	t.Helper()
	text := slurmtest.Recorded(t, "22.05", file)
	var doc map[string]any
	require.NoError(t, json.Unmarshal([]byte(text), &doc))
	var all []map[string]any
	for _, e := range doc[list].([]any) { //nolint:forcetypeassert // a list
		m := e.(map[string]any) //nolint:forcetypeassert // of objects
		change(m)
		all = append(all, m)
	}
	require.NotEmpty(t, all)
	return all
}

func TestEveryShapeIsReadAlike(t *testing.T) {
	type reading struct {
		jobs, past []slurm.Job
		nodes      []slurm.Node
		parts      []slurm.Partition
	}
	read := func(s shape) (r reading) {
		for _, m := range recordedList(t, "rest-jobs.json", "jobs", s.job) {
			r.jobs = append(r.jobs, slurm.JobsFromJSON(m)...)
		}
		for _, m := range recordedList(t, "rest-accounts.json", "jobs", s.account) {
			r.past = append(r.past, slurm.AccountFromJSON(m))
		}
		for _, m := range recordedList(t, "rest-nodes.json", "nodes", s.node) {
			r.nodes = append(r.nodes, slurm.NodeFromJSON(m))
		}
		for _, m := range recordedList(t, "rest-partitions.json", "partitions", s.partition) {
			r.parts = append(r.parts, slurm.PartitionFromJSON(m, r.nodes))
		}
		for i := range r.jobs {
			r.jobs[i].ElapsedS = 0 // of a running job it goes on
		}
		return r
	}
	want := read(shape{38})
	var ids []slurm.JobID
	for _, j := range want.jobs {
		ids = append(ids, j.ID)
	}
	require.True(t, slices.ContainsFunc(ids, func(id slurm.JobID) bool { return strings.Contains(string(id), "_") }), "%v", ids)
	require.True(t, slices.ContainsFunc(ids, func(id slurm.JobID) bool { return strings.Contains(string(id), "+") }), "%v", ids)
	for version := 39; version <= 44; version++ {
		got := read(shape{version})
		require.Equal(t, want.jobs, got.jobs, "v0.0.%d", version)
		require.Equal(t, want.past, got.past, "v0.0.%d", version)
		require.Equal(t, want.nodes, got.nodes, "v0.0.%d", version)
		require.Equal(t, want.parts, got.parts, "v0.0.%d", version)
	}
}
