// Command mcpb makes MCP bundles of a release's archives, for clients that install a
// server from one file, and the registry's document about them:
//
//	go run ./packaging/mcpb dist
//
// It writes dist/megatron-ops_VERSION_OS_ARCH.mcpb beside each archive, and
// dist/server.json, which is server.json with the version and a package for each
// bundle, given by its address and digest.
package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"time"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: go run ./packaging/mcpb dist")
		os.Exit(2)
	}
	if err := bundleAll(os.Args[1], "server.json"); err != nil {
		fmt.Fprintln(os.Stderr, "mcpb:", err)
		os.Exit(1)
	}
}

// program is the file of an archive that a bundle starts.
const program = "megatron-ops"

// archive matches the name of one of a release's archives.
var archive = regexp.MustCompile(`^megatron-ops_(.+)_(linux|darwin)_(amd64|arm64)\.tar\.gz$`)

// bundleAll makes a bundle of each archive in dist, and the registry's document from
// the one at template.
func bundleAll(dist, template string) error {
	raw, err := os.ReadFile(template)
	if err != nil {
		return err
	}
	var document map[string]any
	if err := json.Unmarshal(raw, &document); err != nil {
		return fmt.Errorf("%s: %w", template, err)
	}
	entries, err := os.ReadDir(dist)
	if err != nil {
		return err
	}
	var packages []any
	for _, e := range entries {
		m := archive.FindStringSubmatch(e.Name())
		if m == nil {
			continue
		}
		document["version"] = m[1]
		bundle, err := bundled(filepath.Join(dist, e.Name()), m[1], m[2], document)
		if err != nil {
			return fmt.Errorf("%s: %w", e.Name(), err)
		}
		name := fmt.Sprintf("megatron-ops_%s_%s_%s.mcpb", m[1], m[2], m[3])
		if err := os.WriteFile(filepath.Join(dist, name), bundle, 0o644); err != nil { //nolint:gosec // it is published
			return err
		}
		sum := sha256.Sum256(bundle)
		packages = append(packages, map[string]any{
			"registryType": "mcpb",
			"identifier":   "https://github.com/megatron-ops/megatron-ops/releases/download/v" + m[1] + "/" + name,
			"fileSha256":   hex.EncodeToString(sum[:]),
			"transport":    map[string]any{"type": "stdio"},
		})
	}
	if len(packages) == 0 {
		return errors.New("there is no archive in " + dist)
	}
	document["packages"] = packages
	out, err := json.MarshalIndent(document, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dist, "server.json"), append(out, '\n'), 0o644) //nolint:gosec // it is published
}

// bundled returns the bundle of the archive at file: its program, its licences, and the
// manifest that tells a client how to start it. The same archive gives the same bytes.
func bundled(file, version, system string, document map[string]any) ([]byte, error) {
	manifest, err := json.MarshalIndent(map[string]any{
		"manifest_version": "0.3", "name": program, "display_name": document["title"], "version": version, "description": document["description"],
		"author": map[string]any{"name": program}, "license": "Apache-2.0", "keywords": []string{"slurm", "megatron-lm", "gpu", "hpc", "training"},
		"repository":    map[string]any{"type": "git", "url": "https://github.com/megatron-ops/megatron-ops"},
		"documentation": "https://github.com/megatron-ops/megatron-ops/blob/main/docs/mcp.md",
		"server": map[string]any{"type": "binary", "entry_point": "server/" + program, "mcp_config": map[string]any{
			"command": "${__dirname}/server/" + program, "args": []string{"mcp"},
		}},
		"tools_generated": true, "prompts_generated": true, "compatibility": map[string]any{"platforms": []string{system}},
	}, "", "  ")
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	z := zip.NewWriter(&out)
	if err := add(z, "manifest.json", 0o644, bytes.NewReader(manifest)); err != nil {
		return nil, err
	}
	if err := addArchived(z, file); err != nil {
		return nil, err
	}
	if err := z.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// addArchived adds the program and the licences of the archive at file.
func addArchived(z *zip.Writer, file string) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	unpacked, err := gzip.NewReader(f)
	if err != nil {
		return err
	}
	found := false
	for r := tar.NewReader(unpacked); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		switch name := path.Base(h.Name); name {
		case program:
			found = true
			err = add(z, "server/"+program, 0o755, r)
		case "LICENSE", "NOTICE":
			err = add(z, name, 0o644, r)
		}
		if err != nil {
			return err
		}
	}
	if !found {
		return errors.New("there is no " + program + " in it")
	}
	return nil
}

// add writes one file, always with the same time.
func add(z *zip.Writer, name string, mode os.FileMode, content io.Reader) error {
	h := &zip.FileHeader{Name: name, Method: zip.Deflate, Modified: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	h.SetMode(mode)
	w, err := z.CreateHeader(h)
	if err != nil {
		return err
	}
	_, err = io.Copy(w, content)
	return err
}
