package cluster

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A connection may break, or this process may be killed, while the script is being
// sent. A part of the script must submit nothing.
func TestAScriptCutOffOnItsWayDoesNothing(t *testing.T) {
	dir := t.TempDir()
	sbatch, taken := filepath.Join(dir, "sbatch"), filepath.Join(dir, "taken")
	require.NoError(t, os.WriteFile(sbatch, []byte("#!/bin/sh\ncat >"+taken+"\n"), 0o755))
	script := "#!/bin/bash\n#SBATCH -N 2\nsrun train\n"
	sent := remoteScript(command{argv: []string{sbatch, "--parsable"}, dir: dir, stdin: script}, []string{"A=b c"}, "", "hello")
	for n := len(sent); n > 0; n -= 3 {
		cmd := exec.Command("/bin/sh", "-s")
		cmd.Stdin = strings.NewReader(sent[:n])
		_ = cmd.Run() // it fails with a syntax error
		if n >= len(sent)-1 {
			got, err := os.ReadFile(taken)
			require.NoError(t, err, "the whole script is run")
			require.Equal(t, script, string(got))
			require.NoError(t, os.Remove(taken))
			continue
		}
		require.NoFileExists(t, taken, "after %q", sent[:n])
	}
}
