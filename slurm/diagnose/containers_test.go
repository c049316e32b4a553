package diagnose_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/megatron-ops/megatron-ops/slurm/diagnose"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/diagnosetest"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/outcome"
	"github.com/stretchr/testify/require"
)

// Logs of jobs on two nodes under enroot 4.1.2 and pyxis 0.24.0 on Slurm 22.05. The reason why a
// container did not start is recognised; errors of the program inside are the program's.
func TestContainersThatRan(t *testing.T) {
	const notStarted = outcome.Container
	cases := map[string]struct{ class, line, advice string }{
		"pyxis-missing-image":            {notStarted, "No such file or directory: /images/gone.sqsh", "The image does not exist"},
		"pyxis-no-image-format":          {notStarted, "Invalid image format", "The image does not exist, or is not an image"},
		"pyxis-bad-workdir":              {notStarted, "couldn't chdir to /no/such/dir", "working directory"},
		"pyxis-missing-mount":            {notStarted, "source path does not exist", "mount's source"},
		"pyxis-registry-unresolved":      {notStarted, "Could not resolve host", "cannot reach the registry"},
		"pyxis-registry-refuses":         {notStarted, "Failed to connect", "cannot reach the registry"},
		"pyxis-registry-unauthorized":    {notStarted, "failed to import docker image", "not allowed to pull"},
		"pyxis-registry-too-many":        {notStarted, "429", "cannot reach the registry"},
		"pyxis-registry-has-none":        {notStarted, "404 Not Found", "The image does not exist"},
		"pyxis-program-not-in-image":     {outcome.EnvLaunch, "exec: python3: not found", "interpreter"},
		"pyxis-segfault":                 {outcome.Segfault, "Segmentation fault", "stack"},
		"pyxis-exit-3":                   {outcome.UnknownExit, "Exited with exit code 3", ""},
		"pyxis-exit-3-and-stuck-cleanup": {outcome.UnknownExit, "Exited with exit code 3", ""},
		"enroot-missing-image":           {notStarted, "Invalid argument: /images/gone.sqsh", "The image does not exist"},
		"enroot-registry-name":           {notStarted, "Invalid argument: docker://", "The image does not exist, or is not an image"},
		"enroot-missing-mount":           {notStarted, "failed to mount", "mount's source"},
		"enroot-without-squashfuse":      {notStarted, "Command not found: squashfuse", "The node itself"},
		"enroot-exit-3":                  {outcome.UnknownExit, "Exited with exit code 3", ""},
	}
	files, err := filepath.Glob("testdata/containers/*.log")
	require.NoError(t, err)
	require.Len(t, files, len(cases))
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".log")
		log, err := os.ReadFile(file)
		require.NoError(t, err)
		// Slurm has the exit code of the task that it ended last, not of the one that failed.
		r := diagnosetest.With(t, string(log), diagnose.Context{JobState: "FAILED", ExitCode: "143:0"})
		c := cases[name]
		require.Equal(t, c.class, r.Class, "%s: %s", name, r.RootLine)
		require.Contains(t, r.RootLine, c.line, name)
		require.Contains(t, r.Advice[0], c.advice, name)
		if c.class == outcome.UnknownExit {
			require.Contains(t, r.Summary, "exit code was 3", name)
		}
	}
}
