package scan_test

import (
	"bytes"
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/megatron-ops/megatron-ops/slurm/diagnose"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/diagnosetest"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/outcome"
	"github.com/stretchr/testify/require"
)

// TestStepdLinesWithATimeInPlaceOfTheirName holds every labelled case with the
// lines of slurmstepd as Slurm prints them since 25.05: a time stands where its
// name and node stood. The cause and its rank stay, and the node where other
// lines name it too.
func TestStepdLinesWithATimeInPlaceOfTheirName(t *testing.T) {
	changed := 0
	reports := diagnosetest.Reports(t)
	for _, l := range diagnosetest.Cases(t) {
		if !hasStepd(t, l.Path()) {
			continue
		}
		changed++
		to := filepath.Join(t.TempDir(), filepath.Base(l.Path()))
		copyWithTimedStepd(t, l.Path(), to)
		before := reports[l.ID]
		after, err := diagnose.Path(context.Background(), to, l.Context)
		require.NoError(t, err)
		require.Equal(t, before.Class, after.Class, "%s: %s", l.ID, after.RootLine)
		require.Equal(t, before.RootRank, after.RootRank, "%s: %s", l.ID, after.RootLine)
		require.Equal(t, before.Retry, after.Retry, l.ID)
	}
	require.Greater(t, changed, 10)
}

var (
	stepdName = regexp.MustCompile(`slurmstepd(?:-[\w.-]+)?: error: `)
	dateTime  = regexp.MustCompile(`\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d`)
)

// hasStepd reports whether a log, or one of a folder of logs, has a line of slurmstepd.
func hasStepd(t *testing.T, path string) (has bool) {
	t.Helper()
	require.NoError(t, filepath.WalkDir(path, func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(p)
		has = has || bytes.Contains(b, []byte("slurmstepd")) && stepdName.Match(b)
		return err
	}))
	return has
}

// copyWithTimedStepd copies a log, or a folder of logs. Lines of slurmstepd get the time
// that they or the lines before name.
func copyWithTimedStepd(t *testing.T, from, to string) {
	t.Helper()
	require.NoError(t, filepath.WalkDir(from, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(from, p)
		target := filepath.Join(to, rel)
		if d.IsDir() {
			return os.MkdirAll(target, 0o755)
		}
		b, err := os.ReadFile(p)
		if err != nil {
			return err
		}
		at := "2026-06-11T10:00:00"
		if m := dateTime.Find(b); m != nil {
			at = strings.Replace(string(m), " ", "T", 1)
		}
		var out bytes.Buffer
		for line := range bytes.Lines(b) {
			if m := dateTime.Find(line); m != nil {
				at = strings.Replace(string(m), " ", "T", 1)
			}
			if stepdName.Match(line) {
				line = stepdName.ReplaceAll(line, []byte("["+at+".072] error: "))
			}
			out.Write(line)
		}
		return os.WriteFile(target, out.Bytes(), 0o644)
	}))
}

// TestPyxisSaysWhatFailed has what pyxis 0.24 says under Slurm 25.11: its own
// clean-up fails after every job in this place, which is no failure of the job.
func TestPyxisSaysWhatFailed(t *testing.T) {
	const at, cleanUp = "0: [2026-11-21T01:09:05.876] error: ", "pyxis: child 26154 failed with error code: 1\n"
	spank := at + "spank: required plugin spank_pyxis.so: task_init() failed with rc=-1\n" + at + "Failed to invoke spank plugin stack\n"
	exits := "srun: error: gpu3: task 0: Exited with exit code 1\n"
	printed := at + "pyxis: printing enroot log file:\n"
	for name, c := range map[string]struct{ log, class, line string }{
		"missing image": {
			at + cleanUp + at + "pyxis: failed to create container filesystem for image: /images/nosuch.sqsh\n" + printed + at +
				"pyxis:     [ERROR] No such file or directory: /images/nosuch.sqsh\n" + spank + at + cleanUp + exits,
			outcome.Container, "/images/nosuch.sqsh",
		},
		"not an image": {at + "pyxis: failed to create container filesystem for image: /w/up.sh\n" + printed + at +
			"pyxis:     [ERROR] Invalid image format: /w/up.sh\n" + spank + exits, outcome.Container, "Invalid image format"},
		"missing mount": {at + "pyxis: --container-mounts: source path does not exist: /nosuch\n" + at +
			"pyxis: couldn't create enroot start configuration script\n" + printed +
			at + "pyxis:     [INFO] Extracting squashfs filesystem...\n" + spank + exits, outcome.Container, "source path does not exist"},
		"bad workdir": {
			at + "pyxis: couldn't chdir to /nosuch: No such file or directory\n" + spank + exits + at + cleanUp, outcome.Container,
			"couldn't chdir",
		},
		"registry": {
			"0: pyxis: importing docker image: nvcr.io#nvidia/nemo:25.04\n" + at +
				"pyxis: failed to import docker image: nvcr.io#nvidia/nemo:25.04\n" + printed + at + "pyxis:     curl: (6) Could not resolve host: nvcr.io\n" + spank + exits,
			outcome.Container, "resolve host",
		},
		"no program": {at + "execve(): torchrun: No such file or directory\n" + at + cleanUp +
			"srun: error: gpu2: task 0: Exited with exit code 2\n", outcome.EnvLaunch, "execve"},
		"the program failed": {at + cleanUp + "srun: error: gpu3: task 0: Exited with exit code 3\n", outcome.UnknownExit, "exit code 3"},
		"nothing failed":     {"0: node 0 in Debian GNU/Linux 12 (bookworm)\n" + at + cleanUp + "0: done\n", outcome.Success, ""},
	} {
		t.Run(name, func(t *testing.T) {
			r := diagnosetest.With(t, c.log, diagnose.Context{JobState: "ENDED"})
			require.Equal(t, c.class, r.Class, r.RootLine)
			require.Contains(t, r.RootLine, c.line)
		})
	}
}

// TestTheTimeLimitHasNoRankAndNoNode has the daemon's word, which srun labels with the
// first task of its node.
func TestTheTimeLimitHasNoRankAndNoNode(t *testing.T) {
	for _, form := range []string{"slurmstepd: error: ", "[2026-05-27T00:26:27.019] error: "} {
		r := diagnosetest.With(t, "0: loading\n 4: loading\n 0: "+form+"*** STEP 77.1 ON gpu-07 CANCELLED AT 2026-05-27T00:26:27 DUE TO TIME LIMIT ***\n",
			diagnose.Context{})
		require.Equal(t, outcome.SlurmTimeLimit, r.Class)
		require.Nil(t, r.RootRank, form)
		require.Nil(t, r.RootNode, "%s: the daemon's node is not at fault", form)
	}
}
