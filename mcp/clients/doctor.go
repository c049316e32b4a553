package clients

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/client/transport"
	sdk "github.com/mark3labs/mcp-go/mcp"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/redact"
)

// A Finding is one thing that the doctor looked at: what is so, or what is wrong
// and what would mend it.
type Finding struct {
	What  lang.Text
	Note  lang.Text
	Wrong error
	Fix   lang.Text
}

// examineWithin bounds each start of a server.
const examineWithin = 20 * time.Second

// Examine tells what clients will see: it starts the server, or reaches the one
// that runs, as they do, and looks for the clients on the PATH.
func Examine(ctx context.Context, start Start, lookPath func(string) (string, error)) []Finding {
	var all []Finding
	if start.URL != "" {
		all = append(all, see(ctx, lang.Text{EN: "over HTTP: %s", ZH: "经 HTTP：%s"}.With(start.URL), overHTTP(start))...)
	} else {
		all = append(all, see(ctx, lang.Text{EN: "started with this environment", ZH: "以当前环境启动"}, started(start, os.Environ()))...)
		all = append(all, see(ctx, lang.Text{
			EN: "started as Codex does, with only the variables of its configuration", ZH: "像 Codex 那样启动，只带其配置中的变量",
		}, started(start, bare(start)))...)
	}
	return append(all, installed(ctx, lookPath)...)
}

// overHTTP is a client of the server that runs.
func overHTTP(s Start) func() (*client.Client, error) {
	return func() (*client.Client, error) {
		return client.NewStreamableHttpClient(s.URL, transport.WithHTTPHeaders(bearer(s)))
	}
}

// started is a client that starts the server with exactly that environment.
func started(s Start, env []string) func() (*client.Client, error) {
	return func() (*client.Client, error) {
		return client.NewStdioMCPClientWithOptions(s.Binary, nil, append([]string{"mcp"}, s.Args...),
			transport.WithCommandFunc(func(ctx context.Context, command string, _, args []string) (*exec.Cmd, error) {
				cmd := exec.CommandContext(ctx, command, args...)
				cmd.Env = env
				return cmd, nil
			}))
	}
}

// bare is what a client with a clean environment gives its servers.
func bare(s Start) []string {
	env := []string{"HOME=" + os.Getenv("HOME"), "PATH=" + os.Getenv("PATH"), "USER=" + os.Getenv("USER")}
	for name, value := range s.Env {
		env = append(env, name+"="+value)
	}
	return env
}

// see connects, lists the tools, and asks for the jobs, which shows whether the
// cluster answers.
func see(ctx context.Context, what lang.Text, connect func() (*client.Client, error)) []Finding {
	ctx, cancel := context.WithTimeout(ctx, examineWithin)
	defer cancel()
	f := Finding{What: what}
	began := time.Now()
	c, err := connect()
	if err == nil {
		defer func() { _ = c.Close() }() // what it was asked is answered
		err = c.Start(ctx)
	}
	if err != nil {
		f.Wrong = err
		return []Finding{f}
	}
	request := sdk.InitializeRequest{}
	request.Params.ProtocolVersion = sdk.LATEST_PROTOCOL_VERSION
	request.Params.ClientInfo = sdk.Implementation{Name: "megatron-ops mcp doctor", Version: "1"}
	hello, err := c.Initialize(ctx, request)
	if err != nil {
		f.Wrong = err
		f.Fix = lang.Text{
			EN: "over HTTP a token is needed: `megatron-ops mcp config --url` prints it to the account that may read it",
			ZH: "HTTP 需要令牌：有权读取的账户可用 `megatron-ops mcp config --url` 查看",
		}
		return []Finding{f}
	}
	took := time.Since(began)
	tools, err := c.ListTools(ctx, sdk.ListToolsRequest{})
	if err != nil {
		f.Wrong = err
		return []Finding{f}
	}
	size := 0
	for _, t := range tools.Tools {
		var schema map[string]any // as it was sent: the library escapes characters and adds an empty list
		raw, err := json.Marshal(t.InputSchema)
		if err == nil {
			err = json.Unmarshal(raw, &schema)
		}
		if required, _ := schema["required"].([]any); len(required) == 0 {
			delete(schema, "required")
		}
		if err != nil {
			continue
		}
		shown, err := jsonLine(map[string]any{"name": t.Name, "description": t.Description, "inputSchema": schema})
		if err == nil {
			size += len(shown)
		}
	}
	f.Note = lang.Text{
		EN: "%s %s, protocol %s, after %d ms; %d tools, about %d tokens",
		ZH: "%s %s，协议 %s，耗时 %d 毫秒；%d 个工具，约 %d 个 token",
	}.With(hello.ServerInfo.Name, hello.ServerInfo.Version, hello.ProtocolVersion, took.Milliseconds(), len(tools.Tools), size/bytesPerToken)
	return []Finding{f, ofCluster(ctx, c, tools.Tools)}
}

// bytesPerToken is about what a token of English and JSON has.
const bytesPerToken = 4

// ofCluster asks for the jobs and tells what the answer says is wrong.
func ofCluster(ctx context.Context, c *client.Client, tools []sdk.Tool) Finding {
	f := Finding{What: lang.Text{EN: "and its cluster", ZH: "及其集群"}}
	if !slices.ContainsFunc(tools, func(t sdk.Tool) bool { return t.Name == "list" }) {
		return f
	}
	request := sdk.CallToolRequest{}
	request.Params.Name = "list"
	request.Params.Arguments = map[string]any{}
	res, err := c.CallTool(ctx, request)
	if err != nil || !res.IsError {
		f.Wrong = err
		return f
	}
	var doc struct {
		Error struct{ Message, Fix string } `json:"error"`
	}
	raw, err := json.Marshal(res.StructuredContent)
	if err == nil {
		err = json.Unmarshal(raw, &doc)
	}
	if err != nil {
		f.Wrong = err
		return f
	}
	f.Wrong, f.Fix = errors.New(oneLine(doc.Error.Message)), lang.Same(oneLine(doc.Error.Fix))
	return f
}

// programs are the clients whose programs have other names.
var programs = map[string]string{"vscode": "code"}

// installed tells which clients are on the PATH, and which of them the Node here
// is too old for.
func installed(ctx context.Context, lookPath func(string) (string, error)) []Finding {
	var all []Finding
	for _, c := range table {
		path, err := lookPath(cmp.Or(programs[c.name], c.name))
		if err != nil {
			continue
		}
		f := Finding{What: lang.Same(c.title), Note: lang.Text{
			EN: "%s; `megatron-ops mcp config --client %s`",
			ZH: "%s；`megatron-ops mcp config --client %s`",
		}.With(path, c.name)}
		if c.node > 0 && isScript(path) {
			if has := nodeVersion(ctx, lookPath); has < c.node {
				f.Wrong = lang.Text{EN: "it runs on Node %d or newer, and here is %s", ZH: "它需要 Node %d 或更新版本，而这里是 %s"}.Err(c.node, orNone(has))
				f.Fix = lang.Text{
					EN: "Debian 12 has Node 18: install a newer one (nodejs.org, nvm, or a module of the site), or use a client that needs none, such as Codex",
					ZH: "Debian 12 自带 Node 18：请安装更新的版本（nodejs.org、nvm 或站点的 module），或改用不需要 Node 的客户端，例如 Codex",
				}
			}
		}
		all = append(all, f)
	}
	if len(all) == 0 {
		all = append(all, Finding{
			What: lang.Text{EN: "clients", ZH: "客户端"},
			Note: lang.Text{EN: "none of %s is on the PATH", ZH: "PATH 中没有 %s"}.With(strings.Join(Names(), ", ")),
		})
	}
	return all
}

func orNone(version int) string {
	if version == 0 {
		return "no Node"
	}
	return fmt.Sprintf("Node %d", version)
}

// nodeVersion is the main number of the Node on the PATH; 0: there is none.
func nodeVersion(ctx context.Context, lookPath func(string) (string, error)) int {
	node, err := lookPath("node")
	if err != nil {
		return 0
	}
	out, err := exec.CommandContext(ctx, node, "--version").Output()
	if err != nil {
		return 0
	}
	main, _, _ := strings.Cut(strings.TrimPrefix(strings.TrimSpace(string(out)), "v"), ".")
	n, err := strconv.Atoi(main)
	if err != nil {
		return 0
	}
	return n
}

// isScript reports whether a program is a script of Node's rather than a binary
// that carries its own.
func isScript(path string) bool {
	path, err := filepath.EvalSymlinks(path)
	if err != nil {
		return false
	}
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	line := make([]byte, 64)
	n, _ := f.Read(line) // what cannot be read is no script
	first, _, _ := strings.Cut(string(line[:n]), "\n")
	return strings.HasPrefix(first, "#!") && strings.Contains(first, "node")
}

// oneLine is what a server said, fit for a terminal.
func oneLine(s string) string { return strings.Join(strings.Fields(redact.Text(redact.Clean(s))), " ") }
