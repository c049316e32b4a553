package mcp_test

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/ops/operations"
	"github.com/megatron-ops/megatron-ops/mcp"
	"github.com/megatron-ops/megatron-ops/mcp/clients"
	"github.com/megatron-ops/megatron-ops/skills"
)

// built is the real binary, built once as `make build` builds it.
var built = sync.OnceValues(func() (string, error) {
	wasBuilt.Store(true)
	dir, err := os.MkdirTemp("", "megatron-ops-mcp")
	if err != nil {
		return "", err
	}
	bin := filepath.Join(dir, "megatron-ops")
	cmd := exec.Command("go", "build", "-trimpath", "-o", bin, "../cmd/megatron-ops")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	out, err := cmd.CombinedOutput()
	if err != nil {
		return string(out), err
	}
	return bin, nil
})

// wasBuilt records that built was called, so that tests without the binary need not
// wait for it.
var wasBuilt atomic.Bool

func TestMain(m *testing.M) {
	code := m.Run()
	if wasBuilt.Load() {
		if bin, err := built(); err == nil {
			os.RemoveAll(filepath.Dir(bin))
		}
	}
	os.Exit(code)
}

// A home is a scratch folder for one real client: its HOME, a project, and the
// state of the server that it starts.
type home struct {
	t       *testing.T
	kit     nodeKit
	bin     string
	dir     string
	project string
	env     []string
}

func newHome(t *testing.T) *home {
	t.Helper()
	kit := needsNode(t)
	bin, err := built()
	require.NoError(t, err, bin)
	h := &home{t: t, kit: kit, bin: bin, dir: t.TempDir()}
	h.project = filepath.Join(h.dir, "project")
	require.NoError(t, os.Mkdir(h.project, 0o755))
	h.env = []string{
		"HOME=" + h.dir, "PATH=" + kit.path, "MEGATRON_OPS_STATE_DIR=" + filepath.Join(h.dir, "state"),
		// Some clients fetch news of their own: make that fail at once.
		"HTTPS_PROXY=http://127.0.0.1:9", "https_proxy=http://127.0.0.1:9", "NO_PROXY=127.0.0.1,localhost", "no_proxy=127.0.0.1,localhost",
		"DISABLE_AUTOUPDATER=1", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1", "GEMINI_CLI_TRUST_WORKSPACE=true",
	}
	return h
}

// run runs one of the installed programs in the project.
func (h *home) run(name string, args ...string) string {
	h.t.Helper()
	out, err := run(h.t, 2*time.Minute, h.project, h.env, h.program(name), args...)
	require.NoError(h.t, err, out)
	return out
}

// program is the path where npm installed it.
func (h *home) program(name string) string {
	if name == "node" {
		return h.kit.node
	}
	return filepath.Join(h.kit.modules, ".bin", name)
}

func TestInspectorListsAndCalls(t *testing.T) {
	h := newHome(t)
	out := h.run("inspector", "--cli", "--method", "tools/list", "--strict", "--", h.bin, "mcp")
	for _, name := range []string{"plan", "render", "submit", "status", "list", "cancel"} {
		require.Contains(t, out, `"name": "`+name+`"`)
	}
	out = h.run("inspector", "--cli", "--method", "tools/call", "--tool-name", "constants", "--tool-args-json", `{"gpu":"h100","tp":4}`,
		"--", h.bin, "mcp", "--toolsets", "all")
	require.Contains(t, out, "CUDA_DEVICE_MAX_CONNECTIONS")
	require.Contains(t, out, `"structuredContent"`)
	out = h.run("inspector", "--cli", "--method", "resources/read", "--uri", "skill://run-on-slurm/SKILL.md", "--", h.bin, "mcp")
	require.Contains(t, out, "MASTER_ADDR")
	out = h.run("inspector", "--cli", "--method", "prompts/get", "--prompt-name", "diagnose-job", "--prompt-args", "job=4711", "--", h.bin, "mcp")
	require.Contains(t, out, "4711")
	out = h.run("inspector", "--cli", "--protocol-era", "modern", "--method", "tools/list", "--", h.bin, "mcp")
	require.Contains(t, out, `"name": "submit"`)
}

func TestInspectorOverHTTP(t *testing.T) {
	h := newHome(t)
	cfg, _ := config(t, newSite())
	url := serve(t, cfg, mcp.HTTP{Tokens: map[string]ops.Caller{"secret": alice}})
	out := h.run("inspector", "--cli", url, "--transport", "http", "--header", "Authorization: Bearer secret",
		"--method", "tools/call", "--tool-name", "status", "--tool-arg", "job=4711")
	require.Contains(t, out, "RUNNING")
}

// The specification's own checker accepts every skill. The installer that agents share
// finds the skills in the repository and copies only what agents read.
func TestSkillsAreValidAndInstalled(t *testing.T) {
	h := newHome(t)
	root, err := filepath.Abs("..")
	require.NoError(t, err)
	h.run("skills", "add", root, "--skill", "*", "--agent", "claude-code", "--copy", "-y")
	installed := os.DirFS(filepath.Join(h.project, ".claude", "skills"))
	for _, s := range skills.All() {
		require.Contains(t, h.run("skills-ref", "validate", filepath.Join(root, "skills", s.Name)), "Valid skill")
		var files []string
		require.NoError(t, fs.WalkDir(installed, s.Name, func(path string, d fs.DirEntry, err error) error {
			if err == nil && !d.IsDir() {
				files = append(files, strings.TrimPrefix(path, s.Name+"/"))
			}
			return err
		}))
		require.ElementsMatch(t, s.Files, files, s.Name)
	}
}

// The official TypeScript client checks every structured answer against its tool's
// schema, and answers the question that cancel asks.
func TestTypeScriptClient(t *testing.T) {
	h := newHome(t)
	s := newSite()
	cfg, _ := config(t, s)
	url := serve(t, cfg, mcp.HTTP{Tokens: map[string]ops.Caller{"secret": alice}})
	script, err := filepath.Abs("testdata/drive.mjs")
	require.NoError(t, err)
	// Node looks for packages from the script's own folder upwards.
	work := filepath.Join(filepath.Dir(h.kit.modules), "node_modules", ".drive.mjs")
	raw, err := os.ReadFile(script)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(work, raw, 0o644))
	out := h.run("node", work, url, "secret")
	var got struct {
		Protocol  string   `json:"protocol"`
		Tools     []string `json:"tools"`
		Templates []string `json:"templates"`
		Prompts   []string `json:"prompts"`
		Status    struct {
			State string `json:"state"`
		} `json:"status"`
		Asked     string `json:"asked"`
		Cancelled bool   `json:"cancelled"`
		Refused   bool   `json:"refused"`
	}
	require.NoError(t, json.Unmarshal([]byte(out), &got), out)
	require.Equal(t, "2025-11-25", got.Protocol)
	require.Len(t, got.Tools, len(operations.All()))
	require.Len(t, got.Templates, 6)
	require.Len(t, got.Prompts, 4)
	require.Equal(t, "RUNNING", got.Status.State)
	require.True(t, got.Refused, "a tool error is a result, not an exception")
	require.Contains(t, got.Asked, "cancel job 4711")
	require.True(t, got.Cancelled)
}

func TestRegistryDocument(t *testing.T) {
	raw, err := os.ReadFile("../server.json")
	require.NoError(t, err)
	rules, err := os.ReadFile("testdata/registry.schema.json")
	require.NoError(t, err)
	var schema jsonschema.Schema
	require.NoError(t, json.Unmarshal(rules, &schema))
	resolved, err := schema.Resolve(nil)
	require.NoError(t, err)
	var doc map[string]any
	require.NoError(t, json.Unmarshal(raw, &doc))
	require.NoError(t, resolved.Validate(doc))
	for field, wrong := range map[string]any{
		"name": "megatron-ops", "description": strings.Repeat("x", 101), "version": 1,
		"packages": []any{map[string]any{"registryType": "mcpb"}},
	} {
		bad := maps.Clone(doc)
		bad[field] = wrong
		require.Error(t, resolved.Validate(bad), field)
	}
	pkg := doc["packages"].([]any)[0].(map[string]any)
	require.Contains(t, pkg["identifier"], "v"+doc["version"].(string), "the package is of this version")
	require.Contains(t, fmt.Sprint(pkg["packageArguments"]), "value:mcp", "it starts the server")
}

// The vendors' plugins have the same version and start the server. Codex's passes on
// the variables that decide which Slurm and which state the program uses.
func TestPluginsStartTheServer(t *testing.T) {
	versions := map[string]string{}
	for _, file := range []string{"../.claude-plugin/plugin.json", "../.codex-plugin/plugin.json", "../gemini-extension.json"} {
		raw, err := os.ReadFile(file)
		require.NoError(t, err)
		var plugin struct {
			Name, Version string
			Servers       map[string]struct {
				Command string
				Args    []string
				EnvVars []string `json:"env_vars"`
			} `json:"mcpServers"`
		}
		require.NoError(t, json.Unmarshal(raw, &plugin))
		require.Equal(t, "megatron-ops", plugin.Name, file)
		versions[file] = plugin.Version
		server := plugin.Servers["megatron-ops"]
		require.Equal(t, "megatron-ops mcp", server.Command+" "+strings.Join(server.Args, " "), file)
		if strings.Contains(file, "codex") {
			setup, err := clients.Config("codex", clients.Start{})
			require.NoError(t, err)
			for _, name := range server.EnvVars {
				require.Contains(t, setup.Snippet, `"`+name+`"`)
			}
			_, passed, _ := strings.Cut(setup.Snippet, "env_vars")
			require.Len(t, server.EnvVars, strings.Count(passed, `"`)/2)
		}
	}
	raw, err := os.ReadFile("../server.json")
	require.NoError(t, err)
	for file, version := range versions {
		require.Contains(t, string(raw), `"version": "`+version+`"`, file)
	}
}
