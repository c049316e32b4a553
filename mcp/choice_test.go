package mcp_test

import (
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/ops/operations"
	"github.com/megatron-ops/megatron-ops/mcp"
	"github.com/megatron-ops/megatron-ops/slurm"
)

// chooser opens a session of alice with additional headers.
func chooser(t *testing.T, url string, more map[string]string) *client {
	t.Helper()
	header := map[string]string{"Authorization": "Bearer t"}
	maps.Copy(header, more)
	return connect(t, url, header)
}

func (c *client) listed() []string {
	c.t.Helper()
	res, problem := c.ask("tools/list", `{}`)
	require.Empty(c.t, problem)
	var ns []string
	for _, tool := range res["tools"].([]any) {
		ns = append(ns, tool.(map[string]any)["name"].(string))
	}
	return ns
}

func TestClientsChooseTheirToolsByHeaders(t *testing.T) {
	cfg, _ := config(t, newSite())
	cfg.Toolsets = nil
	url := serve(t, cfg, mcp.HTTP{Tokens: map[string]ops.Caller{"t": alice}})
	require.LessOrEqual(t, len(chooser(t, url, nil).listed()), 17, "the default, where nobody chooses")
	require.Len(t, chooser(t, url, map[string]string{"X-MCP-Toolsets": "all"}).listed(), len(operations.All()))
	c := chooser(t, url, map[string]string{"X-MCP-Toolsets": "nodes", "X-MCP-Tools": "recommend, submit", "X-MCP-Readonly": "true"})
	got := c.listed()
	require.Contains(t, got, "partitions")
	require.Contains(t, got, "recommend")
	require.NotContains(t, got, "submit", "read-only wins")
	require.NotContains(t, got, "plan")
	r := c.do("plan", submitArgs(goodSpec, ""))
	require.True(t, r.IsError)
	require.Contains(t, r.Text, "not among the tools of this connection")
	require.Contains(t, r.Text, "X-MCP-Toolsets: default,plan", "and how to have it")
	for _, word := range []string{"true", "True", "1"} {
		require.NotContains(t, chooser(t, url, map[string]string{"X-MCP-Readonly": word}).listed(), "submit", word)
	}
	refused, why := (&client{t: t, url: url, header: map[string]string{"Authorization": "Bearer t", "X-MCP-Readonly": "yes"}}).post(hello)
	require.Equal(t, http.StatusBadRequest, refused.StatusCode, "a word that could mean it is not passed over")
	require.Contains(t, why, "send true, or leave it out")

	res, body := (&client{t: t, url: url, header: map[string]string{"Authorization": "Bearer t", "X-MCP-Toolsets": "jbos"}}).post(hello)
	require.Equal(t, http.StatusBadRequest, res.StatusCode)
	require.Contains(t, body, "there is no toolset jbos; use some of all, default, plan")
}

// Headers choose among what the operator allows, and never more.
func TestHeadersChooseNoMoreThanIsOffered(t *testing.T) {
	cfg, _ := config(t, newSite())
	cfg.Toolsets, cfg.ReadOnly = []string{"jobs"}, true
	url := serve(t, cfg, mcp.HTTP{Tokens: map[string]ops.Caller{"t": alice}})
	c := chooser(t, url, map[string]string{"X-MCP-Toolsets": "all", "X-MCP-Readonly": "false"})
	require.Contains(t, c.listed(), "list")
	require.NotContains(t, c.listed(), "submit")
	require.NotContains(t, c.listed(), "plan")
	_, problem := c.ask("tools/call", `{"name":"cancel","arguments":{"job":"4711"}}`)
	require.NotEmpty(t, problem)
	res, _ := (&client{t: t, url: url, header: map[string]string{"Authorization": "Bearer t", "X-MCP-Tools": "plan"}}).post(hello)
	require.Equal(t, http.StatusBadRequest, res.StatusCode)
}

const trainingLog = " [2026-11-20 08:00:00] iteration        1/     100 | consumed samples:          128 | elapsed time per iteration (ms): 1000.0 | " +
	"throughput per GPU (TFLOP/s/GPU): 400.0 | learning rate: 1.0E-04 | global batch size:   128 | lm loss: 2.5E+00 | loss scale: 1.0 | " +
	"grad norm: 1.000 | number of skipped iterations:   0 | number of nan iterations:   0 |\n"

// A request of the wrong form is answered in words, without the library's types.
func TestARequestOfTheWrongFormSaysWhatIsWrong(t *testing.T) {
	for params, says := range map[string]string{
		`"tools/call","params":[1]`:                "params: is not an object",
		`"tools/call","params":{"name":5}`:         "name: is not a string",
		`"tools/call"`:                             "name: is missing",
		`"tools/list","params":{"cursor":4}`:       "cursor: is not a string",
		`"resources/read","params":{"uri":4}`:      "uri: is not a string",
		`"resources/read","params":{}`:             `there is no resource ""`,
		`"prompts/get","params":{}`:                `there is no prompt ""`,
		`"logging/setLevel","params":{"level":[]}`: "level: is not a string",
	} {
		conv := converse(t, mcp.Config{})
		conv.send(hello)
		conv.read()
		conv.send(`{"jsonrpc":"2.0","id":2,"method":` + params + `}`)
		require.Contains(t, conv.read()["error"].(map[string]any)["message"], says, params)
		conv.close()
	}
}

// A client that calls a tool which the server has but does not offer learns how to get
// it.
func TestAToolThatIsNotOfferedSaysHowItIsHad(t *testing.T) {
	for _, w := range []struct {
		cfg  mcp.Config
		tool string
		says string
	}{
		{mcp.Config{}, "events", "events is not among the tools of this server; your person starts it with --toolsets default,jobs"},
		{mcp.Config{Toolsets: []string{"plan"}}, "submit", "--toolsets default,jobs"},
		{mcp.Config{ReadOnly: true}, "submit", "it only reads: your person starts it without --read-only"},
		{mcp.Config{}, "nosuch", `there is no tool "nosuch"; tools/list names the tools`},
		{mcp.Config{}, "diagnoze", "did you mean diagnose?"},
		{mcp.Config{}, "", "name: is missing; tools/list names the tools"},
	} {
		conv := converse(t, w.cfg)
		conv.send(hello)
		conv.read()
		conv.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":%q,"arguments":{}}}`, w.tool))
		e := conv.read()["error"].(map[string]any)
		require.EqualValues(t, -32602, e["code"], w.tool)
		require.Contains(t, e["message"], w.says)
		conv.close()
	}
}

// Without roots, an agent that was started in a project may read the project's files
// and nothing else.
func TestTheProjectIsTheRootWhereNoneIsNamed(t *testing.T) {
	project, elsewhere := t.TempDir(), t.TempDir()
	for _, dir := range []string{project, elsewhere} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, "run.log"), []byte(trainingLog), 0o644))
	}
	t.Chdir(project)
	cfg, _ := config(t, newSite())
	conv := converse(t, cfg)
	conv.send(hello)
	conv.read()
	for i, dir := range []string{project, elsewhere} {
		conv.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"metrics","arguments":{"jobs":[%q]}}}`, i+2, filepath.Join(dir, "run.log")))
		require.Equal(t, dir == elsewhere, conv.read()["result"].(map[string]any)["isError"] == true, dir)
	}
	conv.close()
}

// Every argument that takes a path is checked against the roots, on both transports.
func TestPathsLieBelowTheRoots(t *testing.T) {
	root, elsewhere := t.TempDir(), t.TempDir()
	for _, dir := range []string{root, elsewhere} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, "run.log"), []byte(trainingLog), 0o644))
	}
	require.NoError(t, os.Symlink(elsewhere, filepath.Join(root, "out")))
	require.NoError(t, os.Symlink(filepath.Join(elsewhere, "run.log"), filepath.Join(root, "link.log")))
	require.NoError(t, os.Symlink(filepath.Join(elsewhere, "not-there"), filepath.Join(root, "dangling")))
	require.NoError(t, os.Mkdir(filepath.Join(root, "folder"), 0o755))
	require.NoError(t, os.Symlink(filepath.Join(elsewhere, "run.log"), filepath.Join(root, "folder", "rank0.log")))
	cfg, _ := config(t, newSite())
	cfg.Roots = []string{root}
	svc, err := cfg.Service()
	require.NoError(t, err)
	svc.Clusters["test"] = localSite{newSite()}
	svc.Self = alice.User // files are looked at for the one whose hands they are
	c := chooser(t, serve(t, cfg, mcp.HTTP{Tokens: map[string]ops.Caller{"t": alice}}), nil)
	calls := map[string]string{
		"diagnose": `{"job":%q}`, "metrics": `{"jobs":[%q]}`, "compare": `{"failed":%q,"good":"4711"}`,
	}
	for _, path := range []string{
		filepath.Join(elsewhere, "run.log"), elsewhere, root + "/../" + filepath.Base(elsewhere), root + "-more", "/etc/passwd", "/proc/self/environ",
		filepath.Join(root, "out", "run.log"), filepath.Join(root, "link.log"), filepath.Join(root, "folder"), filepath.Join(root, "dangling"), "run.log", "~/x",
	} {
		for tool, args := range calls {
			r := c.do(tool, fmt.Sprintf(args, path))
			require.True(t, r.IsError, "%s %s", tool, path)
			require.Equal(t, "not_allowed", r.Structured["error"].(map[string]any)["code"], "%s %s: %s", tool, path, r.Text)
		}
	}
	for tool, args := range calls { // a pattern that names the link
		r := c.do(tool, fmt.Sprintf(args, filepath.Join(root, "lin[k].log")))
		require.True(t, r.IsError, "%s: %s", tool, r.Text)
		require.NotContains(t, r.Text, "OutOfMemory")
	}
	r := c.do("metrics", fmt.Sprintf(`{"jobs":[%q]}`, filepath.Join(root, "run.log")))
	require.False(t, r.IsError, r.Text)
	require.False(t, c.do("diagnose", fmt.Sprintf(`{"job":%q}`, filepath.Join(root, "run.log"))).IsError, "what lies below is read")
	r = c.do("wait", fmt.Sprintf(`{"job":"4711","artifact":%q}`, filepath.Join(elsewhere, "run.log")))
	require.Contains(t, r.Text, "outside of the job's own folders")
	for _, tool := range []string{"plan", "submit"} { // nor does a plan tell which folders there are
		there := c.do(tool, submitArgs(`{"name":"x","worktree":"`+elsewhere+`"}`, ""))
		missing := c.do(tool, submitArgs(`{"name":"x","worktree":"`+elsewhere+`-no"}`, ""))
		require.NotContains(t, there.Text+missing.Text, "does not exist here", tool)
	}
	r = c.do("plan", fmt.Sprintf(`{"check_files":true,"spec":{"name":"x","worktree":%q,"args":["--data-path",%q,"--load",%q]}}`,
		root, filepath.Join(elsewhere, "data"), filepath.Join(root, "out")))
	require.NotContains(t, r.Text, "is not there")
	require.Contains(t, r.Text, "was not looked at")

	conv := converse(t, cfg)
	conv.send(hello)
	conv.read()
	for i, call := range []string{
		`"metrics","arguments":{"jobs":["/proc/self/environ"]}`, `"killswitch","arguments":{"turn":"on","job":"` + elsewhere + `/switch"}`,
		`"killswitch","arguments":{"turn":"off","job":"` + root + `/out/switch"}`,
	} {
		conv.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":%s}}`, i+2, call))
		reply := conv.read()
		if i > 0 { // a person is asked first, and the yes changes nothing
			token := reply["result"].(map[string]any)["structuredContent"].(map[string]any)["confirm_token"]
			require.NotNil(t, token, reply)
			conv.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":%s,"confirm_token":%q}}}`, i+20, strings.TrimSuffix(call,
				"}"), token))
			reply = conv.read()
		}
		require.Contains(t, fmt.Sprint(reply), "is not in a folder")
	}
	conv.close()
	require.NoFileExists(t, filepath.Join(elsewhere, "switch"))
}

// The most frequent requests to agents take at most three calls, with the tools that
// are listed by default.
func TestThreeCallsAreEnough(t *testing.T) {
	s := newSite()
	s.set("4712", func(j *slurm.Job) { j.User, j.State, j.ExitCode = "alice", slurm.Failed, new("1:0") })
	cfg, _ := config(t, s)
	cfg.Toolsets = nil
	svc, err := cfg.Service()
	require.NoError(t, err)
	svc.Clusters["test"] = bigSite{s}
	c := connect(t, serve(t, cfg, mcp.HTTP{Tokens: map[string]ops.Caller{"t": alice}}), map[string]string{"Authorization": "Bearer t"})

	spec := strings.Replace(goodSpec, `"prod"`, `"part0"`, 1)
	plan := c.do("plan", submitArgs(spec, ""))
	run := c.do("submit", submitArgs(spec, plan.Structured["confirm_token"].(string)))
	require.Equal(t, "5001", run.Structured["job_id"], "a run is submitted with two")

	mine := c.do("list", `{"all":true,"state":["FAILED"]}`).Structured["jobs"].([]any)
	require.Len(t, mine, 1)
	id := mine[0].(map[string]any)["job_id"].(string)
	died := c.do("diagnose", `{"job":"`+id+`"}`)
	require.False(t, died.IsError, died.Text)
	require.NotEmpty(t, died.Structured["class"], "why a job died takes two, its id unknown")
	require.NotEmpty(t, died.Structured["advice"])

	free := c.do("nodes", `{}`)
	require.Contains(t, free.Text, "free GPUs", "what is free takes one")
}
