// Package agents asks twenty things of an agent that has this program's tools and
// nothing else, on a real Slurm, and looks afterwards at Slurm alone, never at
// what the agent says. The agent is a script, whose calls and tokens are pinned,
// or any model behind OpenAI's API.
package agents

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/client/transport"
	sdk "github.com/mark3labs/mcp-go/mcp"
	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/slurm/slurmtest"
)

// A bench is where one task is done: the cluster, a folder for its work, and a
// client of the server, whose person says yes.
type bench struct {
	t            *testing.T
	slurm        *slurmtest.Cluster
	work         string // with sleep.py, the program that its jobs run
	name         string // of the task, and of its job
	client       *client.Client
	tools        []sdk.Tool
	instructions string
	calls        int
	text         int // bytes of the answers' text, of all together
	typed        int // and of their structured content
	longest      int // of one answer, in tokens, in either form
}

// bytesPerToken is about what a token of English and JSON has.
const bytesPerToken = 4

// yes is a person who agrees.
type yes struct{}

func (yes) Elicit(context.Context, sdk.ElicitationRequest) (*sdk.ElicitationResult, error) {
	return &sdk.ElicitationResult{ElicitationResponse: sdk.ElicitationResponse{
		Action: sdk.ElicitationResponseActionAccept, Content: map[string]any{"ok": true},
	}}, nil
}

// wasBuilt says that binary was called.
var wasBuilt atomic.Bool

var binary = sync.OnceValues(func() (string, error) {
	wasBuilt.Store(true)
	dir, err := os.MkdirTemp("", "megatron-ops-evals")
	if err != nil {
		return "", err
	}
	bin := filepath.Join(dir, "megatron-ops")
	cmd := exec.Command("go", "build", "-o", bin, "../../cmd/megatron-ops")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w: %s", err, out)
	}
	return bin, nil
})

// newBench starts a server for one task.
func newBench(t *testing.T, cluster *slurmtest.Cluster, name string) *bench {
	t.Helper()
	bin, err := binary()
	require.NoError(t, err)
	b := &bench{t: t, slurm: cluster, name: name, work: filepath.Join(cluster.Work, name)}
	require.NoError(t, os.MkdirAll(b.work, 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(b.work, "sleep.py"), []byte("import sys, time\ntime.sleep(float(sys.argv[1]) if len(sys.argv) > 1 "+
		"else 300)\n"), 0o600))
	stdio := transport.NewStdioWithOptions(bin, nil, []string{"mcp", "--toolsets", "all"},
		transport.WithCommandFunc(func(ctx context.Context, command string, _, args []string) (*exec.Cmd, error) {
			cmd := exec.CommandContext(ctx, command, args...)
			cmd.Env = append(cluster.Environ(), "MEGATRON_OPS_STATE_DIR="+filepath.Join(t.TempDir(), "state"), "MEGATRON_OPS_CLUSTER=slurm")
			cmd.Dir = b.work
			return cmd, nil
		}))
	b.client = client.NewClient(stdio, client.WithElicitationHandler(yes{}))
	require.NoError(t, b.client.Start(t.Context()))
	t.Cleanup(func() { _ = b.client.Close() })
	hello := sdk.InitializeRequest{}
	hello.Params.ProtocolVersion = "2025-11-25"
	hello.Params.ClientInfo = sdk.Implementation{Name: "evals", Version: "1"}
	told, err := b.client.Initialize(t.Context(), hello)
	require.NoError(t, err)
	b.instructions = told.Instructions
	list, err := b.client.ListTools(t.Context(), sdk.ListToolsRequest{})
	require.NoError(t, err)
	b.tools = list.Tools
	return b
}

// do calls a tool as an agent does and returns its structured content; what it
// costs is counted.
func (b *bench) do(tool string, args any) map[string]any {
	b.t.Helper()
	req := sdk.CallToolRequest{}
	req.Params.Name, req.Params.Arguments = tool, args
	res, err := b.client.CallTool(b.t.Context(), req)
	require.NoError(b.t, err, tool)
	text := ""
	for _, c := range res.Content {
		if t, ok := c.(sdk.TextContent); ok {
			text += t.Text
		}
	}
	typed, err := json.Marshal(res.StructuredContent)
	require.NoError(b.t, err)
	b.calls++
	b.text += len(text)
	b.typed += len(typed)
	if !strings.Contains(string(typed), `"script":"#!`) { // which comes whole
		b.longest = max(b.longest, len(text)/bytesPerToken, len(typed)/bytesPerToken)
	}
	var out map[string]any
	require.NoError(b.t, json.Unmarshal(typed, &out), "%s: %s", tool, text)
	return out
}

// must is do of a call that is not refused.
func (b *bench) must(tool string, args any) map[string]any {
	b.t.Helper()
	out := b.do(tool, args)
	require.Nil(b.t, out["error"], "%s %v", tool, args)
	return out
}

// spec is the task's job, with changes.
func (b *bench) spec(changes map[string]any) map[string]any {
	s := map[string]any{
		"name": b.name, "nodes": 1, "gpus_per_node": 1, "time": "00:10:00", "worktree": b.work,
		"script": "sleep.py", "launcher": "custom", "launcher_argv": []string{"/usr/bin/python3"},
	}
	for field, value := range changes {
		s[field] = value
	}
	return s
}

// submit starts the task's job, with changes, and returns its id.
func (b *bench) submit(changes map[string]any) string {
	b.t.Helper()
	return b.must("submit", map[string]any{"spec": b.spec(changes)})["job_id"].(string)
}

// sh runs one of Slurm's commands and returns what it printed.
func (b *bench) sh(argv ...string) string {
	b.t.Helper()
	out, err := b.slurm.Run(b.t.Context(), argv...)
	require.NoError(b.t, err)
	return out
}

// given is a job that is there before the agent comes, made by sbatch.
func (b *bench) given(name string, options ...string) string {
	b.t.Helper()
	argv := append([]string{"sbatch", "--parsable", "--job-name", name, "--output", filepath.Join(b.work, "%j.out")}, options...)
	return b.sh(append(argv, "--wrap", "sleep 300")...)
}

// of is one field of a job as scontrol shows it; "" where the job is gone.
func (b *bench) of(job, field string) string {
	out, err := b.slurm.Run(b.t.Context(), "scontrol", "show", "job", "-o", job)
	if err != nil {
		return ""
	}
	for word := range strings.FieldsSeq(out) {
		if value, ok := strings.CutPrefix(word, field+"="); ok {
			return value
		}
	}
	return ""
}

// named are the ids of the jobs of that name that wait or run.
func (b *bench) named(name string) []string {
	return strings.Fields(b.sh("squeue", "--noheader", "--array", "--format", "%i", "--name", name))
}

// comes waits until ok holds.
func (b *bench) comes(what string, ok func() bool) {
	b.t.Helper()
	for deadline := time.Now().Add(60 * time.Second); !ok(); time.Sleep(100 * time.Millisecond) {
		if time.Now().After(deadline) {
			require.Fail(b.t, "it does not come: "+what, b.sh("scontrol", "show", "jobs"))
		}
	}
}
