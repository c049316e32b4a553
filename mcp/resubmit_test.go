package mcp_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/slurm"
)

// From a job that ran out of memory to one that fits: the diagnosis returns the change,
// plan accepts it, and submit takes the plan's handle.
func TestADiagnosisIsMendedAndResubmitted(t *testing.T) {
	s := newSite()
	c := connectAlice(t, s)
	confirmed := func(args map[string]any) result {
		raw, err := json.Marshal(args)
		require.NoError(t, err)
		args["confirm_token"] = c.do("submit", string(raw)).Structured["confirm_token"]
		raw, err = json.Marshal(args)
		require.NoError(t, err)
		return c.do("submit", string(raw))
	}
	var spec map[string]any
	require.NoError(t, json.Unmarshal([]byte(strings.Replace(goodSpec, `"--micro-batch-size","1"`, `"--micro-batch-size","8"`, 1)), &spec))
	spec["gpu"], spec["args"] = "h100", append(spec["args"].([]any), "--num-layers", "48", "--hidden-size", "6144", "--num-attention-heads", "48",
		"--ffn-hidden-size", "24576")
	first := confirmed(map[string]any{"spec": spec, "force": true})
	require.False(t, first.IsError, first.Text)
	require.NotContains(t, first.Structured, "script", "what was submitted was seen before")
	job := first.Structured["job_id"].(string)
	require.Equal(t, map[string]any{"tool": "wait", "arguments": map[string]any{"job": job}}, first.Structured["next"].([]any)[0], "not status, again and again")

	file := filepath.Join(t.TempDir(), "log")
	require.NoError(t, os.WriteFile(file, []byte("0: [rank0]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a "+
		"total capacity of 79.11 GiB of which 1.00 GiB is free.\n"), 0o600))
	s.set(slurm.JobID(job), func(j *slurm.Job) { j.State, j.Stdout, j.ExitCode = slurm.Failed, file, new("1:0") })
	r := c.do("diagnose", fmt.Sprintf(`{"job":%q}`, job))
	fix := r.Structured["fix"].(map[string]any)
	require.Equal(t, job, fix["from"])
	require.Len(t, fix["spec"], 1, "the change and nothing else: %v", fix)
	changes := fix["spec"].(map[string]any)["args"].([]any)
	require.NotEmpty(t, changes)
	next := r.Structured["next"].([]any)[0].(map[string]any)
	require.Equal(t, "submit", next["tool"])
	require.Equal(t, map[string]any{"from": job, "command_line": strings.Trim(fmt.Sprint(changes), "[]")}, next["arguments"])

	delete(fix, "changes")
	raw, err := json.Marshal(fix)
	require.NoError(t, err)
	plan := c.do("plan", string(raw))
	require.Equal(t, true, plan.Structured["ok"], plan.Text)
	require.Contains(t, plan.Text, plan.Structured["plan"], "the handle is in both forms")
	again := confirmed(map[string]any{"plan": plan.Structured["plan"]})
	require.False(t, again.IsError, again.Text)
	require.Len(t, s.subs, 2)
	require.Contains(t, s.subs[1].Script, fmt.Sprint(changes[0])+" "+fmt.Sprint(changes[1]))
}
