package slurmtest

import (
	"embed"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

//go:embed torch
var torch embed.FS

// Torch writes the files that a script needs to launch a real torch.distributed.run on
// this machine into a new directory, and returns it: "uv", which must come first in
// PATH, and "train.py". It skips the test where PyTorch is missing; with CI=true that
// fails the test.
func Torch(t testing.TB) string {
	t.Helper()
	if testing.Short() {
		t.Skip("PyTorch is not for -short")
	}
	if err := exec.Command("/usr/bin/python3", "-c", "import importlib.util as u, sys; sys.exit(not u.find_spec('torch'))").Run(); err != nil {
		skip(t, "PyTorch", "apt-get install python3-torch")
	}
	dir := t.TempDir()
	err := fs.WalkDir(torch, "torch", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		to, _ := filepath.Rel("torch", path)
		to = filepath.Join(dir, to)
		if d.IsDir() {
			return os.MkdirAll(to, 0o755)
		}
		text, err := torch.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(to, text, 0o755)
	})
	if err == nil {
		err = os.Mkdir(filepath.Join(dir, "tmp"), 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	return dir
}
