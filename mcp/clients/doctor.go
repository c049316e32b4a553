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
	"github.com/megatron-ops/megatron-ops/internal/tree"
)

// A Finding is one thing that the doctor examined. Wrong is nil if it is all right;
// otherwise Fix says how to correct it.
type Finding struct {
	What  lang.Text
	Note  lang.Text
	Wrong error
	Fix   lang.Text
}

// examineTimeout bounds each start of a server.
const examineTimeout = 20 * time.Second

// Examine reports what clients will see: it starts the server, or connects to the
// running one, as clients do, and looks for the clients on the PATH.
func Examine(ctx context.Context, start Start, lookPath func(string) (string, error)) []Finding {
	var all []Finding
	if start.URL != "" {
		connect := func() (*client.Client, error) {
			return client.NewStreamableHttpClient(start.URL, transport.WithHTTPHeaders(bearer(start)))
		}
		all = append(all, examineServer(ctx, lang.Text{EN: "over HTTP: %s", ZH: "经 HTTP：%s"}.With(start.URL), connect)...)
	} else {
		all = append(all, examineServer(ctx, lang.Text{EN: "started with this environment", ZH: "以当前环境启动"}, overStdio(start, os.Environ()))...)
		all = append(all, examineServer(ctx, lang.Text{
			EN: "started as Codex does, with only the variables of its configuration", ZH: "像 Codex 那样启动，只带其配置中的变量",
		}, overStdio(start, cleanEnv(start)))...)
	}
	return append(all, installed(ctx, lookPath)...)
}

// overStdio returns a constructor of clients that start the server with exactly the
// environment env.
func overStdio(s Start, env []string) func() (*client.Client, error) {
	return func() (*client.Client, error) {
		return client.NewStdioMCPClientWithOptions(s.Binary, nil, append([]string{"mcp"}, s.Args...),
			transport.WithCommandFunc(func(ctx context.Context, command string, _, args []string) (*exec.Cmd, error) {
				cmd := exec.CommandContext(ctx, command, args...)
				cmd.Env = env
				return cmd, nil
			}))
	}
}

// cleanEnv is the environment that a client like Codex gives its servers.
func cleanEnv(s Start) []string {
	env := []string{"HOME=" + os.Getenv("HOME"), "PATH=" + os.Getenv("PATH"), "USER=" + os.Getenv("USER")}
	for name, value := range s.Env {
		env = append(env, name+"="+value)
	}
	return env
}

// examineServer connects, lists the tools, and calls list, which shows whether the
// cluster answers.
func examineServer(ctx context.Context, what lang.Text, connect func() (*client.Client, error)) []Finding {
	ctx, cancel := context.WithTimeout(ctx, examineTimeout)
	defer cancel()
	f := Finding{What: what}
	began := time.Now()
	c, err := connect()
	if err == nil {
		defer func() { _ = c.Close() }() // a failure to close is no finding
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
		var schema map[string]any // the schema as it was sent: the library escapes characters and adds an empty list
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
		shown, err := tree.JSON(map[string]any{"name": t.Name, "description": t.Description, "inputSchema": schema})
		if err == nil {
			size += len(shown)
		}
	}
	f.Note = lang.Text{
		EN: "%s %s, protocol %s, after %d ms; %d tools, about %d tokens",
		ZH: "%s %s，协议 %s，耗时 %d 毫秒；%d 个工具，约 %d 个 token",
	}.With(hello.ServerInfo.Name, hello.ServerInfo.Version, hello.ProtocolVersion, took.Milliseconds(), len(tools.Tools), size/bytesPerToken)
	return []Finding{f, examineCluster(ctx, c, tools.Tools)}
}

// bytesPerToken is roughly how many bytes of English and JSON make a token.
const bytesPerToken = 4

// examineCluster calls list and reports the error in its answer.
func examineCluster(ctx context.Context, c *client.Client, tools []sdk.Tool) Finding {
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

// programs are the program names of clients whose program is named differently.
var programs = map[string]string{"vscode": "code"}

// installed reports which clients are on the PATH, and which of them need a newer Node.
func installed(ctx context.Context, lookPath func(string) (string, error)) []Finding {
	var all []Finding
	for _, c := range clientTable {
		path, err := lookPath(cmp.Or(programs[c.name], c.name))
		if err != nil {
			continue
		}
		f := Finding{What: lang.Same(c.title), Note: lang.Text{
			EN: "%s; `megatron-ops mcp config --client %s`",
			ZH: "%s；`megatron-ops mcp config --client %s`",
		}.With(path, c.name)}
		if c.node > 0 && isNodeScript(path) {
			if has := nodeVersion(ctx, lookPath); has < c.node {
				f.Wrong = lang.Text{EN: "it needs Node %d or newer, but %s is installed here", ZH: "它需要 Node %d 或更新版本，而这里是 %s"}.Err(c.node, orNone(has))
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

// nodeVersion returns the major version of the Node on the PATH, or 0 if there is none.
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

// isNodeScript reports whether the program at path is a script for Node rather than a
// binary that includes its own Node.
func isNodeScript(path string) bool {
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
	n, _ := f.Read(line) // a file that cannot be read counts as no script
	first, _, _ := strings.Cut(string(line[:n]), "\n")
	return strings.HasPrefix(first, "#!") && strings.Contains(first, "node")
}

// oneLine cleans what a server said for a terminal.
func oneLine(s string) string { return strings.Join(strings.Fields(redact.Text(redact.Clean(s))), " ") }
