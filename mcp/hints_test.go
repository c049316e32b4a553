package mcp_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/mcp"
	"github.com/megatron-ops/megatron-ops/slurm"
)

// An agent has tools and no shell: an answer recommends tool calls, in both forms.
func TestAnswersNameToolsAndNotTheShell(t *testing.T) {
	s := newSite()
	s.set("4711", func(j *slurm.Job) { j.State, j.Reason = slurm.Pending, "Priority" })
	c := connectAlice(t, s)
	for _, row := range []struct{ tool, args, want string }{
		{"status", `{"job":"99"}`, "`list {\"all\":true}` shows the jobs"},
		{"diagnose", `{"job":"4711"}`, "`status {\"job\":\"4711\"}` says more"},
		{"lint", `{}`, "for example: `lint {\"script\":"},
		{"explain", `{"word":" "}`, "`explain {\"word\":\"heads-multiple-of-tp\"}`"},
		{"search", `{"query":""}`, "`search {\"query\":\"context parallel NaN\"}`"},
		{"cancel", `{}`, "`cancel {\"job\":\"4711\"}`, or `cancel {\"mine\":true}`"},
		{"ask", `{"question":"how do I submit a job with megatron-ops?"}`, "`submit"},
		{"ask", `{"question":"怎样用 megatron-ops 提交作业？"}`, "`submit"},
	} {
		r := c.do(row.tool, row.args)
		require.Contains(t, r.Text, row.want, row.tool)
		require.NotContains(t, r.Text, "`megatron-ops ", row.tool)
		require.Contains(t, told(r.Structured), row.want, row.tool)
		require.NotContains(t, told(r.Structured), "`megatron-ops ", row.tool)
	}
}

// What would work names a tool's arguments, also those that sbatch has as options: an
// agent cannot give an option.
func TestFixesNameArguments(t *testing.T) {
	cfg, _ := config(t, newSite())
	cfg.Toolsets = []string{"all"}
	c := connect(t, serve(t, cfg, mcp.HTTP{}), nil)
	s, err := mcp.NewServer(cfg)
	require.NoError(t, err)
	for _, tool := range s.Tools() {
		var in struct {
			Properties map[string]any `json:"properties"`
			Required   []string       `json:"required"`
		}
		require.NoError(t, json.Unmarshal(tool.RawInputSchema, &in))
		given := map[string]any{}
		for _, name := range in.Required {
			given[name] = "x"
		}
		for _, args := range []map[string]any{{}, given} {
			raw, err := json.Marshal(args)
			require.NoError(t, err)
			e, _ := c.do(tool.Name, string(raw)).Structured["error"].(map[string]any)
			for name := range in.Properties {
				require.NotContains(t, fmt.Sprint(e["fix"]), "--"+strings.ReplaceAll(name, "_", "-"), "%s %s", tool.Name, raw)
			}
		}
	}
}

// What an answer recommends is for the cluster that the call named: the same id on the
// default one is another job.
func TestWhatIsNextStaysOnTheCluster(t *testing.T) {
	s := newSite()
	s.set("4711", func(j *slurm.Job) { j.State = slurm.Failed })
	c := connectAlice(t, s)
	require.Contains(t, c.do("status", `{"job":"4711"}`).Text, `next: diagnose {"job":"4711"}`)
	r := c.do("status", `{"job":"4711","cluster":"test"}`)
	require.Contains(t, r.Text, `next: diagnose {"cluster":"test","job":"4711"}`)
	require.Equal(t, []any{map[string]any{"tool": "diagnose", "arguments": map[string]any{"cluster": "test", "job": "4711"}}}, r.Structured["next"])
}

// Where there are several clusters, what is recommended names the one that the answer is about,
// also where the call named none. This machine itself makes no second one.
func TestWhatIsNextNamesOneOfSeveralClusters(t *testing.T) {
	for kind, next := range map[string]string{
		"cli":   `next: diagnose {"cluster":"test","job":"4711"}`,
		"local": `next: diagnose {"job":"4711"}`,
	} {
		s, other := newSite(), &kindSite{newSite(), kind}
		s.set("4711", func(j *slurm.Job) { j.State = slurm.Failed })
		cfg, _ := config(t, s)
		svc, err := cfg.Service()
		require.NoError(t, err)
		svc.Clusters["other"] = other
		url := serve(t, cfg, mcp.HTTP{Tokens: map[string]ops.Caller{"t": alice}})
		c := connect(t, url, map[string]string{"Authorization": "Bearer t"})
		require.Contains(t, c.do("status", `{"job":"4711"}`).Text, next)
		require.Equal(t, kind == "cli", strings.Contains(c.do("diagnose", `{"job":"99"}`).Text, `"cluster":"test"`), "what would work instead, too")
	}
}

// A kindSite is a site of another kind.
type kindSite struct {
	*site
	kind string
}

func (s *kindSite) Kind() string { return s.kind }

// A submission that its plan refuses says what to fix, all of it page by page, as tool
// calls and without the script that nobody asked for.
func TestARefusedSubmissionTellsWhatToMend(t *testing.T) {
	c := connectAlice(t, newSite())
	const spec = `{"name":"x","nodes":2,"worktree":"/w","args":["--num-layers","24"]}`
	r := c.do("submit", `{"spec":`+spec+`}`)
	r.lean(t, "submit")
	require.Nil(t, r.Structured["job_id"])
	require.NotContains(t, r.Structured, "script")
	require.NotContains(t, r.Structured, "dry_run")
	require.NotContains(t, r.Text, "#SBATCH")
	require.Contains(t, r.Text, "fix the errors, or use force=true")
	require.NotContains(t, r.Text, "--force")
	planned := c.do("plan", `{"spec":`+spec+`}`)
	require.Equal(t, false, planned.Structured["ready"])
	require.NotContains(t, planned.Structured, "plan", "what submit would refuse has no handle")
	plan := planned.Structured["problems"].([]any)
	reason, _ := r.Structured["refused"].(string)
	for _, p := range plan {
		if p := p.(map[string]any); p["severity"] == "error" {
			require.Contains(t, reason, p["rule"], "the data alone say that it was refused, and why")
		}
	}
	require.Equal(t, true, c.do("plan", submitArgs(goodSpec, "")).Structured["ready"])
	require.Contains(t, c.do("plan", submitArgs(goodSpec, "")).Structured, "plan")
	seen := r.Structured["problems"].([]any)
	for cursor, _ := r.Structured["cursor"].(string); cursor != ""; cursor, _ = r.Structured["cursor"].(string) {
		r = c.do("submit", `{"spec":`+spec+`,"cursor":`+strconv.Quote(cursor)+`}`)
		require.NotEmpty(t, r.Structured["problems"])
		seen = append(seen, r.Structured["problems"].([]any)...)
	}
	require.GreaterOrEqual(t, len(seen), len(plan))
	r = c.do("submit", `{"spec":`+spec+`,"dry_run":true}`)
	require.Contains(t, r.Structured["script"], "#SBATCH", "who asks gets it")
}

// told collects all strings of a structured answer.
func told(v any) string {
	switch v := v.(type) {
	case string:
		return v + "\n"
	case []any:
		all := ""
		for _, e := range v {
			all += told(e)
		}
		return all
	case map[string]any:
		all := ""
		for _, e := range v {
			all += told(e)
		}
		return all
	}
	return ""
}

// Text that a job wrote is shown unchanged.
func TestALogsLinesStayAsTheyAre(t *testing.T) {
	s := newSite()
	file := filepath.Join(t.TempDir(), "log")
	line := "0: run `megatron-ops cancel 4711 --yes` and \\`megatron-ops list --all`"
	require.NoError(t, os.WriteFile(file, []byte(line+"\n"), 0o600))
	s.set("4711", func(j *slurm.Job) { j.Stdout = file })
	cfg, _ := config(t, s)
	c := connect(t, serve(t, cfg, mcp.HTTP{Tokens: map[string]ops.Caller{"t": alice}}), map[string]string{"Authorization": "Bearer t"})
	r := c.do("logs", `{"job":"4711"}`)
	require.Contains(t, r.Text, "`megatron-ops cancel 4711 --yes`")
	require.Contains(t, told(r.Structured), "`megatron-ops cancel 4711 --yes`")
}
