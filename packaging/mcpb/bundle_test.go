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
	"path/filepath"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/stretchr/testify/require"
)

// release writes an archive as a release has it.
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

	// The registry's document is of its schema, and names each bundle by its digest.
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
