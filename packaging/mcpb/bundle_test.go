package main

import (
	"archive/tar"
	"archive/zip"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/stretchr/testify/require"
)

// The program of a bundle, unpacked as a client unpacks it and started by its
// manifest's command, is the MCP server.
func TestABundlesProgramIsTheServer(t *testing.T) {
	if testing.Short() {
		t.Skip("builds the binary; not with -short")
	}
	dist := t.TempDir()
	built := filepath.Join(dist, "megatron-ops")
	out, err := exec.Command("go", "build", "-o", built, "../../cmd/megatron-ops").CombinedOutput()
	require.NoError(t, err, string(out))
	program, err := os.ReadFile(built)
	require.NoError(t, err)
	release(t, dist, "megatron-ops_1.2.3_linux_amd64.tar.gz", map[string]string{"megatron-ops": string(program), "LICENSE": "free"})
	require.NoError(t, bundleAll(dist, "../../server.json"))

	unpacked := t.TempDir()
	z, err := zip.OpenReader(filepath.Join(dist, "megatron-ops_1.2.3_linux_amd64.mcpb"))
	require.NoError(t, err)
	defer z.Close()
	for _, f := range z.File {
		r, err := f.Open()
		require.NoError(t, err)
		raw, err := io.ReadAll(r)
		require.NoError(t, err)
		to := filepath.Join(unpacked, f.Name)
		require.NoError(t, os.MkdirAll(filepath.Dir(to), 0o755))
		require.NoError(t, os.WriteFile(to, raw, f.Mode()))
	}
	raw, err := os.ReadFile(filepath.Join(unpacked, "manifest.json"))
	require.NoError(t, err)
	var manifest struct {
		Server struct {
			Config struct {
				Command string   `json:"command"`
				Args    []string `json:"args"`
			} `json:"mcp_config"`
		} `json:"server"`
	}
	require.NoError(t, json.Unmarshal(raw, &manifest))
	command := strings.ReplaceAll(manifest.Server.Config.Command, "${__dirname}", unpacked)
	server := exec.CommandContext(t.Context(), command, manifest.Server.Config.Args...)
	server.Env = []string{"HOME=" + t.TempDir(), "PATH=" + os.Getenv("PATH")}
	server.Stdin = strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}
{"jsonrpc":"2.0","method":"notifications/initialized"}
{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"constants","arguments":{"gpu":"h100","tp":4}}}
`)
	answers, err := server.Output()
	require.NoError(t, err)
	require.Contains(t, string(answers), `"name":"megatron-ops"`)
	require.Contains(t, string(answers), "CUDA_DEVICE_MAX_CONNECTIONS")
}

// release writes an archive with the layout of a release.
func release(t *testing.T, dist, name string, files map[string]string) {
	t.Helper()
	f, err := os.Create(filepath.Join(dist, name))
	require.NoError(t, err)
	defer f.Close()
	z := gzip.NewWriter(f)
	w := tar.NewWriter(z)
	for path, content := range files {
		require.NoError(t, w.WriteHeader(&tar.Header{Name: path, Mode: 0o755, Size: int64(len(content))}))
		_, err := io.WriteString(w, content)
		require.NoError(t, err)
	}
	require.NoError(t, w.Close())
	require.NoError(t, z.Close())
}

func TestABundleOfEachArchive(t *testing.T) {
	dist := t.TempDir()
	require.ErrorContains(t, bundleAll(dist, "../../server.json"), "there is no archive")
	for _, system := range []string{"linux_amd64", "darwin_arm64"} {
		release(t, dist, "megatron-ops_1.2.3_"+system+".tar.gz", map[string]string{"megatron-ops": "program of " + system, "LICENSE": "free", "dist-files/NOTICE": "others", "README.md": "x"})
	}
	release(t, dist, "something_1.2.3_linux_amd64.tar.gz", map[string]string{"x": "y"})
	require.NoError(t, bundleAll(dist, "../../server.json"))

	bundle := filepath.Join(dist, "megatron-ops_1.2.3_linux_amd64.mcpb")
	z, err := zip.OpenReader(bundle)
	require.NoError(t, err)
	defer z.Close()
	content := map[string]string{}
	for _, f := range z.File {
		r, err := f.Open()
		require.NoError(t, err)
		raw, err := io.ReadAll(r)
		require.NoError(t, err)
		content[f.Name] = string(raw)
		if f.Name == "server/megatron-ops" {
			require.Equal(t, os.FileMode(0o755), f.Mode(), "a client can start it")
		}
	}
	require.Len(t, content, 4)
	require.Equal(t, "program of linux_amd64", content["server/megatron-ops"])
	require.Equal(t, "free", content["LICENSE"])
	var manifest struct {
		Version string `json:"version"`
		Server  struct {
			Type   string `json:"type"`
			Entry  string `json:"entry_point"`
			Config struct {
				Command string   `json:"command"`
				Args    []string `json:"args"`
			} `json:"mcp_config"`
		} `json:"server"`
		Compatibility struct{ Platforms []string } `json:"compatibility"`
	}
	require.NoError(t, json.Unmarshal([]byte(content["manifest.json"]), &manifest))
	require.Equal(t, "1.2.3", manifest.Version)
	require.Equal(t, "binary", manifest.Server.Type)
	require.Contains(t, content, manifest.Server.Entry)
	require.Equal(t, "${__dirname}/"+manifest.Server.Entry, manifest.Server.Config.Command)
	require.Equal(t, []string{"mcp"}, manifest.Server.Config.Args)
	require.Equal(t, []string{"linux"}, manifest.Compatibility.Platforms)

	// The registry's document is valid by its schema, and lists each bundle with its
	// digest.
	raw, err := os.ReadFile(filepath.Join(dist, "server.json"))
	require.NoError(t, err)
	rules, err := os.ReadFile("../../mcp/testdata/registry.schema.json")
	require.NoError(t, err)
	var schema jsonschema.Schema
	require.NoError(t, json.Unmarshal(rules, &schema))
	resolved, err := schema.Resolve(nil)
	require.NoError(t, err)
	var document map[string]any
	require.NoError(t, json.Unmarshal(raw, &document))
	require.NoError(t, resolved.Validate(document))
	require.Equal(t, "1.2.3", document["version"])
	packages := document["packages"].([]any)
	require.Len(t, packages, 2)
	first, err := os.ReadFile(bundle)
	require.NoError(t, err)
	sum := sha256.Sum256(first)
	last := packages[1].(map[string]any)
	require.Equal(t, "https://github.com/megatron-ops/megatron-ops/releases/download/v1.2.3/megatron-ops_1.2.3_linux_amd64.mcpb", last["identifier"])
	require.Equal(t, hex.EncodeToString(sum[:]), last["fileSha256"])

	require.NoError(t, bundleAll(dist, "../../server.json"))
	again, err := os.ReadFile(bundle)
	require.NoError(t, err)
	require.Equal(t, first, again, "the same bytes")

	release(t, dist, "megatron-ops_1.2.3_darwin_amd64.tar.gz", map[string]string{"README.md": "x"})
	require.ErrorContains(t, bundleAll(dist, "../../server.json"), "there is no megatron-ops in it")
}
