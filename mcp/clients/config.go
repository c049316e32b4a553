// Package clients knows how coding agents are configured to reach the MCP server, and
// examines what they will see there.
package clients

import (
	"bytes"
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/shellword"
	"github.com/megatron-ops/megatron-ops/internal/tree"
)

// A Start is how a client reaches this server: it starts the program Binary, or it
// connects to the running server at URL.
type Start struct {
	Binary string
	Args   []string // after "mcp"
	// Env are variables that the program needs and that a client does not pass on.
	Env map[string]string
	// URL and Token belong to a running server.
	URL, Token string
}

// A Setup is the configuration with which one agent reaches this server.
type Setup struct {
	Title string // the name that the agent gives itself
	// File is where the snippet belongs; Command does the same from a shell.
	File    string
	Snippet string
	Command string
}

// A clientRow is how one agent stores its servers: entry returns the settings, format
// renders the entry as its file wants it, and command returns a shell command that does
// the same.
type clientRow struct {
	name, title, file string
	entry             func(Start) any
	format            func(entry any) (string, error)
	command           func(Start) string
	node              int // the oldest major version of Node that it runs on; 0: it needs no Node
}

var clientTable = []clientRow{
	{"claude", "Claude Code", ".mcp.json (project) or ~/.claude.json", typedEntry, jsonUnder("mcpServers"), claudeCommand, 22},
	{"codex", "Codex", "~/.codex/config.toml", nil, nil, codexCommand, 16},
	{"gemini", "Gemini CLI", ".gemini/settings.json or ~/.gemini/settings.json", geminiEntry, jsonUnder("mcpServers"), geminiCommand, 20},
	{"cursor", "Cursor", ".cursor/mcp.json or ~/.cursor/mcp.json", plainEntry, jsonUnder("mcpServers"), nil, 0},
	{"vscode", "VS Code", ".vscode/mcp.json", typedEntry, jsonUnder("servers"), vscodeCommand, 0},
	{"opencode", "OpenCode", "opencode.json or ~/.config/opencode/opencode.json", opencodeEntry, jsonUnder("mcp"), nil, 0},
	{"goose", "Goose", "~/.config/goose/config.yaml", gooseEntry, yamlUnder("extensions"), nil, 0},
}

// Names returns the names of the clients that Config knows.
func Names() []string {
	ns := make([]string, len(clientTable))
	for i, c := range clientTable {
		ns[i] = c.name
	}
	return ns
}

// Config returns the configuration with which client reaches the server. The error for
// an unknown client names the known ones.
func Config(client string, start Start) (Setup, error) {
	start.Args = append([]string{"mcp"}, start.Args...)
	for _, c := range clientTable {
		if c.name != client {
			continue
		}
		setup := Setup{Title: c.title, File: c.file}
		if c.command != nil {
			setup.Command = c.command(start)
		}
		if c.format == nil {
			setup.Snippet = codexTable(start)
			return setup, nil
		}
		raw, err := c.format(c.entry(start))
		setup.Snippet = raw
		return setup, err
	}
	return Setup{}, ops.InputError("client",
		lang.Text{EN: "client %q is not known", ZH: "没有客户端 %q"}.With(client),
		lang.Text{EN: "use one of %s", ZH: "请使用其中之一：%s"}.With(strings.Join(Names(), ", ")))
}

// plainEntry is the form that most clients share.
func plainEntry(s Start) any {
	if s.URL != "" {
		return map[string]any{"url": s.URL, "headers": bearer(s)}
	}
	entry := map[string]any{"command": s.Binary, "args": s.Args}
	if len(s.Env) > 0 {
		entry["env"] = s.Env
	}
	return entry
}

// typedEntry is plainEntry with the kind of connection.
func typedEntry(s Start) any {
	entry := plainEntry(s).(map[string]any)
	entry["type"] = "stdio"
	if s.URL != "" {
		entry["type"] = "http"
	}
	return entry
}

func geminiEntry(s Start) any {
	if s.URL != "" {
		return typedEntry(s)
	}
	return plainEntry(s)
}

func opencodeEntry(s Start) any {
	if s.URL != "" {
		return map[string]any{"type": "remote", "enabled": true, "url": s.URL, "headers": bearer(s)}
	}
	entry := map[string]any{"type": "local", "enabled": true, "command": append([]string{s.Binary}, s.Args...)}
	if len(s.Env) > 0 {
		entry["environment"] = s.Env
	}
	return entry
}

func gooseEntry(s Start) any {
	entry := map[string]any{"name": "megatron-ops", "enabled": true, "timeout": 900}
	if s.URL != "" {
		entry["type"], entry["uri"], entry["headers"] = "streamable_http", s.URL, bearer(s)
		return entry
	}
	entry["type"], entry["cmd"], entry["args"] = "stdio", s.Binary, s.Args
	if len(s.Env) > 0 {
		entry["envs"] = s.Env
	}
	return entry
}

func bearer(s Start) map[string]string {
	return map[string]string{"Authorization": "Bearer " + cmp.Or(s.Token, "TOKEN")}
}

func jsonUnder(key string) func(any) (string, error) {
	return func(entry any) (string, error) {
		return jsonDoc(map[string]any{key: map[string]any{"megatron-ops": entry}})
	}
}

func yamlUnder(key string) func(any) (string, error) {
	return func(entry any) (string, error) {
		raw, err := yaml.Marshal(map[string]any{key: map[string]any{"megatron-ops": entry}})
		return string(raw), err
	}
}

func claudeCommand(s Start) string {
	if s.URL != "" {
		return "claude mcp add --transport http megatron-ops " + shellword.POSIX(s.URL) + " --header " + shellword.POSIX("Authorization: "+bearer(s)["Authorization"])
	}
	return "claude mcp add megatron-ops " + envFlags("--env", s) + "-- " + shellWords(s)
}

func codexCommand(s Start) string {
	if s.URL != "" {
		return "codex mcp add megatron-ops --url " + shellword.POSIX(s.URL) + " --bearer-token-env-var " + tokenVariable
	}
	return "codex mcp add megatron-ops " + envFlags("--env", s) + "-- " + shellWords(s)
}

func geminiCommand(s Start) string {
	if s.URL != "" {
		return "gemini mcp add --transport http --header " + shellword.POSIX("Authorization: "+bearer(s)["Authorization"]) + " megatron-ops " + shellword.POSIX(s.URL)
	}
	return "gemini mcp add " + envFlags("-e", s) + "megatron-ops " + shellWords(s)
}

func vscodeCommand(s Start) string {
	entry := typedEntry(s).(map[string]any)
	entry["name"] = "megatron-ops"
	line, err := tree.JSON(entry)
	if err != nil {
		return ""
	}
	return "code --add-mcp " + shellword.POSIX(string(line))
}

// tokenVariable is the environment variable from which Codex reads a running server's
// token: Codex stores no token in its file.
const tokenVariable = "MEGATRON_OPS_MCP_TOKEN"

// passedOn are the variables that decide which Slurm, state and language the program
// uses. A client that starts it with an empty environment has to pass them on.
var passedOn = []string{
	"PATH", "SLURM_CONF", "MEGATRON_OPS_CONFIG", "MEGATRON_OPS_STATE_DIR", "MEGATRON_OPS_CLUSTER",
	"MEGATRON_OPS_STORE", "MEGATRON_OPS_LANG", "XDG_STATE_HOME", "XDG_CONFIG_HOME", "SSH_AUTH_SOCK", "KRB5CCNAME",
}

// PassedOn returns those of the variables that getenv has, except PATH, which every
// client passes on itself.
func PassedOn(getenv func(string) string) map[string]string {
	env := map[string]string{}
	for _, name := range passedOn[1:] {
		if v := getenv(name); v != "" {
			env[name] = v
		}
	}
	return env
}

// codexTable is Codex's form. Codex starts servers with only a few environment
// variables; env_vars lists the ones to add from its own environment.
func codexTable(s Start) string {
	var b strings.Builder
	b.WriteString("[mcp_servers.megatron-ops]\n")
	if s.URL != "" {
		b.WriteString("url = " + tomlString(s.URL) + "\nbearer_token_env_var = " + tomlString(tokenVariable) + "\n")
		return b.String()
	}
	b.WriteString("command = " + tomlString(s.Binary) + "\nargs = " + tomlList(s.Args) + "\nenv_vars = " + tomlList(passedOn) + "\n")
	b.WriteString("startup_timeout_sec = 20\ntool_timeout_sec = 900\n")
	if len(s.Env) > 0 {
		b.WriteString("\n[mcp_servers.megatron-ops.env]\n")
		for _, name := range slices.Sorted(maps.Keys(s.Env)) {
			b.WriteString(name + " = " + tomlString(s.Env[name]) + "\n")
		}
	}
	return b.String()
}

// tomlString quotes s as JSON does: JSON's strings are TOML's basic strings.
func tomlString(s string) string {
	line, err := tree.JSON(s)
	if err != nil {
		return `""`
	}
	return string(line)
}

func tomlList(words []string) string {
	quoted := make([]string, len(words))
	for i, w := range words {
		quoted[i] = tomlString(w)
	}
	return "[" + strings.Join(quoted, ", ") + "]"
}

func jsonDoc(v any) (string, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	err := enc.Encode(v)
	return b.String(), err
}

// envFlags renders s's variables as flags of a client, each followed by a space.
func envFlags(flag string, s Start) string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(s.Env)) {
		b.WriteString(flag + " " + shellword.POSIX(name+"="+s.Env[name]) + " ")
	}
	return b.String()
}

func shellWords(s Start) string { return shellword.Line(append([]string{s.Binary}, s.Args...)) }
