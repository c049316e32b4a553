package mcp

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/shellword"
)

// A ClientSetup is how one agent is told of this server.
type ClientSetup struct {
	// Client is its short name, Title its own.
	Client, Title string
	// File is where the snippet goes; the client's command does the same.
	File    string
	Snippet string
	Command string
}

// A clientRow is one agent's way of keeping servers.
type clientRow struct {
	name, title, file string
	// key is the object that holds the servers, typed whether an entry says that
	// it is of the type stdio.
	key     string
	typed   bool
	command func(binary string, args []string) string
}

var clients = []clientRow{
	{"claude", "Claude Code", ".mcp.json (project) or ~/.claude.json", "mcpServers", true, func(bin string, args []string) string {
		return "claude mcp add megatron-ops -- " + shellWords(bin, args)
	}},
	{"codex", "Codex", "~/.codex/config.toml", "", false, func(bin string, args []string) string {
		return "codex mcp add megatron-ops -- " + shellWords(bin, args)
	}},
	{"gemini", "Gemini CLI", ".gemini/settings.json or ~/.gemini/settings.json", "mcpServers", false, func(bin string, args []string) string {
		return "gemini mcp add megatron-ops " + shellWords(bin, args)
	}},
	{"cursor", "Cursor", ".cursor/mcp.json or ~/.cursor/mcp.json", "mcpServers", false, nil},
	{"vscode", "VS Code", ".vscode/mcp.json", "servers", true, func(bin string, args []string) string {
		entry, err := jsonLine(map[string]any{"name": "megatron-ops", "command": bin, "args": args})
		if err != nil {
			return ""
		}
		return "code --add-mcp " + shellword.POSIX(entry)
	}},
}

// Clients are the names that ClientConfig knows.
func Clients() []string {
	ns := make([]string, len(clients))
	for i, c := range clients {
		ns[i] = c.name
	}
	return ns
}

// ClientConfig says how client starts binary as an MCP server over stdio.
func ClientConfig(client, binary string, args ...string) (ClientSetup, error) {
	args = append([]string{"mcp"}, args...)
	for _, c := range clients {
		if c.name != client {
			continue
		}
		setup := ClientSetup{Client: c.name, Title: c.title, File: c.file}
		if c.command != nil {
			setup.Command = c.command(binary, args)
		}
		if c.key == "" {
			setup.Snippet = toml(binary, args)
			return setup, nil
		}
		entry := map[string]any{"command": binary, "args": args}
		if c.typed {
			entry["type"] = "stdio"
		}
		raw, err := jsonDoc(map[string]any{c.key: map[string]any{"megatron-ops": entry}})
		setup.Snippet = raw
		return setup, err
	}
	return ClientSetup{}, &ops.Error{
		Code: ops.BadInput, Field: "client", Message: fmt.Sprintf("client %q is not known", client),
		Fix: "use one of " + strings.Join(Clients(), ", "),
	}
}

// toml is Codex's form. Go's quoting of printable text is TOML's basic string.
func toml(binary string, args []string) string {
	quoted := make([]string, len(args))
	for i, a := range args {
		quoted[i] = strconv.Quote(a)
	}
	return "[mcp_servers.megatron-ops]\ncommand = " + strconv.Quote(binary) + "\nargs = [" + strings.Join(quoted, ", ") + "]\n"
}

func jsonDoc(v any) (string, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	err := enc.Encode(v)
	return b.String(), err
}

func jsonLine(v any) (string, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return strings.TrimSpace(b.String()), err
}

func shellWords(bin string, args []string) string {
	words := []string{shellword.POSIX(bin)}
	for _, a := range args {
		words = append(words, shellword.POSIX(a))
	}
	return strings.Join(words, " ")
}
