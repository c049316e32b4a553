// Package packaging tests what users download: the packages of a release are built,
// installed, started, upgraded and removed.
package packaging

import (
	"archive/tar"
	"bufio"
	"compress/gzip"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// sh runs a command in the repository's folder and returns its output.
func sh(t *testing.T, name string, args ...string) string {
	t.Helper()
	c := exec.Command(name, args...)
	c.Dir = ".."
	out, err := c.CombinedOutput()
	require.NoErrorf(t, err, "%s %v\n%s", name, args, out)
	return string(out)
}

// tool is the path of a program that make setup has installed beside the code.
func tool(t *testing.T, name string) string {
	t.Helper()
	path, err := filepath.Abs("../.cache/tools/" + name)
	require.NoError(t, err)
	require.FileExists(t, path, "run make setup first")
	return path
}

// skipShort skips tests that take minutes and need root.
func skipShort(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("builds and installs packages")
	}
	require.Zero(t, os.Getuid(), "packages are installed by root")
}

func TestUnitIsSoundAndHardened(t *testing.T) {
	skipShort(t)
	// The program that the unit starts is not installed here: a placeholder is put in
	// its place.
	root := t.TempDir()
	for path, content := range map[string]string{"usr/bin/megatron-ops": "#!/bin/sh\n", "etc/passwd": "root:x:0:0:::\n"} {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(root, path)), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(root, path), []byte(content), 0o755))
	}
	unit, err := os.ReadFile("megatron-ops.service")
	require.NoError(t, err)
	copied := filepath.Join(root, "megatron-ops.service")
	local := strings.ReplaceAll(string(unit), "/usr/bin/megatron-ops", filepath.Join(root, "usr/bin/megatron-ops"))
	require.NoError(t, os.WriteFile(copied, []byte(local), 0o644))
	require.Empty(t, strings.TrimSpace(sh(t, "systemd-analyze", "verify", "--man=no", copied)))

	score := sh(t, "systemd-analyze", "security", "--offline=true", "--no-pager", copied)
	require.Regexp(t, regexp.MustCompile(`Overall exposure level for megatron-ops.service: [0-2]\.\d OK`), score)
}

// The release is built once for all tests of it.
func snapshot(t *testing.T) (dist string) {
	t.Helper()
	skipShort(t)
	sh(t, tool(t, "goreleaser"), "release", "--snapshot", "--clean", "--skip=publish")
	dist, err := filepath.Abs("../dist")
	require.NoError(t, err)
	return dist
}

func one(t *testing.T, pattern string) string {
	t.Helper()
	found, err := filepath.Glob(pattern)
	require.NoError(t, err)
	require.Len(t, found, 1, pattern)
	return found[0]
}

func TestRelease(t *testing.T) {
	dist := snapshot(t)
	for _, platform := range []string{"linux_amd64", "linux_arm64", "darwin_amd64", "darwin_arm64"} {
		t.Run(platform, func(t *testing.T) { inArchive(t, one(t, dist+"/megatron-ops_*_"+platform+".tar.gz")) })
		t.Run(platform+" SBOM", func(t *testing.T) {
			b, err := os.ReadFile(one(t, dist+"/megatron-ops_*_"+platform+"*.cdx.json"))
			require.NoError(t, err)
			var doc struct{ Components []struct{ Name string } }
			require.NoError(t, json.Unmarshal(b, &doc))
			require.Greater(t, len(doc.Components), 20)
		})
	}
	require.FileExists(t, dist+"/checksums.txt")
	one(t, dist+"/megatron-ops_*_linux_amd64.rpm")
	t.Run("deb", func(t *testing.T) { debLives(t, one(t, dist+"/megatron-ops_*_linux_"+runtime.GOARCH+".deb")) })
	t.Run("image", func(t *testing.T) { imageRuns(t, dist) })
}

// inArchive checks that an archive contains what a user needs without a package.
func inArchive(t *testing.T, path string) {
	f, err := os.Open(path)
	require.NoError(t, err)
	defer f.Close()
	z, err := gzip.NewReader(f)
	require.NoError(t, err)
	names := map[string]bool{}
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if err == io.EOF {
			break
		}
		require.NoError(t, err)
		names[filepath.Base(h.Name)] = true
	}
	for _, want := range []string{"megatron-ops", "LICENSE", "NOTICE", "README.md", "megatron-ops.1.gz", "megatron-ops.bash"} {
		require.True(t, names[want], want)
	}
}

// debLives installs the package over an older one, starts the server as its own user as
// the unit would, upgrades and removes the package, and checks that the state stays.
func debLives(t *testing.T, deb string) {
	const state = "/var/lib/megatron-ops"
	if exec.Command("dpkg", "-s", "megatron-ops").Run() == nil {
		t.Skip("megatron-ops is installed on this machine: its package is not touched")
	}
	_, err := user.Lookup("megatron-ops")
	strangers := err == nil // a user of that name was here before
	require.NoDirExists(t, state)
	t.Cleanup(func() {
		_ = exec.Command("dpkg", "--purge", "megatron-ops").Run()
		require.NoError(t, os.RemoveAll(state))
		require.NoError(t, os.RemoveAll("/etc/megatron-ops"))
		if !strangers {
			_ = exec.Command("userdel", "megatron-ops").Run()
		}
	})

	sh(t, "dpkg", "-i", older(t, deb))
	u, err := user.Lookup("megatron-ops")
	require.NoError(t, err, "the package makes the server's user")
	require.Contains(t, sh(t, "stat", "-c", "%a %U %G", "/etc/megatron-ops/environment"), "640 root megatron-ops")
	sh(t, "install", "-d", "-m", "700", "-o", u.Username, "-g", u.Username, state) // StateDirectory=
	// Only a comment, because other packages' tests run at the same time and read this
	// file too.
	require.NoError(t, os.WriteFile("/etc/megatron-ops/megatron-ops.yaml", []byte("# ours\n"), 0o644))
	starts(t)

	sh(t, "dpkg", "-i", "--force-confold", deb)
	require.Contains(t, sh(t, "megatron-ops", "version"), "-snapshot")
	kept, err := os.ReadFile("/etc/megatron-ops/megatron-ops.yaml")
	require.NoError(t, err)
	require.Equal(t, "# ours\n", string(kept), "an upgrade leaves the configuration alone")
	starts(t)
	require.Contains(t, sh(t, "gzip", "-dc", "/usr/share/man/man1/megatron-ops.1.gz"), `megatron\-ops diagnose`)

	sh(t, "dpkg", "--remove", "megatron-ops")
	require.NoFileExists(t, "/usr/bin/megatron-ops")
	require.FileExists(t, state+"/state.db", "what was submitted stays known")
}

// older is the same package with the previous version number.
func older(t *testing.T, deb string) string {
	dir := t.TempDir()
	sh(t, "dpkg-deb", "-R", deb, dir+"/tree")
	control := dir + "/tree/DEBIAN/control"
	b, err := os.ReadFile(control)
	require.NoError(t, err)
	b = regexp.MustCompile(`(?m)^Version: .*$`).ReplaceAll(b, []byte("Version: 0.0.0~before"))
	require.NoError(t, os.WriteFile(control, b, 0o644))
	sh(t, "dpkg-deb", "-b", dir+"/tree", dir+"/older.deb")
	return dir + "/older.deb"
}

// starts runs the server as the unit does, until it reports that it is healthy.
func starts(t *testing.T) {
	c := exec.Command("setpriv", "--reuid=megatron-ops", "--regid=megatron-ops", "--clear-groups",
		"/usr/bin/megatron-ops", "serve", "--listen", "127.0.0.1:0")
	c.Dir = "/"
	c.Env = []string{"MEGATRON_OPS_STATE_DIR=/var/lib/megatron-ops", "MEGATRON_OPS_LANG=en", "PATH=/usr/bin:/bin", "HOME=/var/lib/megatron-ops"}
	out, err := c.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, c.Start())
	address := make(chan string, 1)
	go func() {
		found := regexp.MustCompile(`127\.0\.0\.1:\d+`)
		for s := bufio.NewScanner(out); s.Scan(); {
			if a := found.FindString(s.Text()); a != "" {
				select {
				case address <- a:
				default:
				}
			}
		}
		close(address)
	}()
	select {
	case a := <-address:
		require.NotEmpty(t, a, "the server ended before it listened")
		resp, err := http.Get("http://" + a + "/healthz")
		require.NoError(t, err)
		resp.Body.Close()
		require.Equal(t, http.StatusOK, resp.StatusCode)
	case <-time.After(2 * time.Minute):
		t.Error("the server did not start")
	}
	require.NoError(t, c.Process.Signal(syscall.SIGTERM))
	require.NoError(t, c.Wait(), "SIGTERM is an orderly end")
}

// imageRuns builds the container image and runs its binary with only the image's own
// files.
func imageRuns(t *testing.T, dist string) {
	binary := one(t, dist+"/megatron-ops_linux_"+runtime.GOARCH+"*/megatron-ops")
	image := filepath.Join(t.TempDir(), "image.tar")
	sh(t, "go", "run", "./packaging/image", binary, image, "test")
	unpacked := t.TempDir()
	sh(t, "tar", "-xf", image, "-C", unpacked)
	root := t.TempDir()
	sh(t, "tar", "-xzf", one(t, unpacked+"/*.tar.gz"), "-C", root)
	require.Contains(t, sh(t, "chroot", "--userspec=65532:65532", root, "/usr/bin/megatron-ops", "version"), "megatron-ops ")
	manifest, err := os.ReadFile(unpacked + "/manifest.json")
	require.NoError(t, err)
	require.Contains(t, string(manifest), "megatron-ops:test")
}
