package launch_test

import (
	"context"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/ops/launch"
	"github.com/megatron-ops/megatron-ops/internal/ops/opstest"
	"github.com/megatron-ops/megatron-ops/slurm/cluster"
)

// A sourceSite knows the code of every folder.
type sourceSite struct{ *opstest.Site }

func (sourceSite) Source(_ context.Context, dir string) (cluster.GitSource, bool) {
	return cluster.GitSource{Commit: "of " + dir}, true
}

// A job's code is known where the person who submits it can read the folder.
func TestTheCodeOfAJobIsKnown(t *testing.T) {
	dir := t.TempDir()
	opstest.Write(t, filepath.Join(dir, "train.py"), "print(1)\n")
	for _, words := range [][]string{{"init", "-q"}, {"add", "."}, {"-c", "user.name=a", "-c", "user.email=a@example.org", "commit", "-qm", "one"}} {
		out, err := exec.Command("git", append([]string{"-C", dir}, words...)...).CombinedOutput()
		require.NoError(t, err, string(out))
	}
	for name, tt := range map[string]struct {
		kind  string
		by    ops.Caller
		asks  bool // the cluster itself is asked
		known bool
	}{
		"on this machine":         {"cli", ops.Caller{Surface: ops.Shell, User: "alice"}, false, true},
		"by this process's own":   {"cli", ops.Caller{Surface: ops.Slack, User: "service"}, false, true},
		"by another in Slack":     {"cli", ops.Caller{Surface: ops.Slack, User: "alice"}, false, false},
		"on another machine":      {"rest", ops.Caller{Surface: ops.Shell, User: "alice"}, false, false},
		"where the cluster tells": {"ssh", ops.Caller{Surface: ops.Shell, User: "alice"}, true, true},
	} {
		site := &opstest.Site{OfKind: tt.kind}
		c := opstest.NewCall(t, site)
		c.Who, c.Self = tt.by, "service"
		c.As = func(cl ops.Cluster, _ string) (ops.Cluster, error) { return cl, nil }
		if tt.asks {
			c.Clusters["test"] = sourceSite{site}
		}
		words := slices.Concat([]string{"--yes", "--force"}, opstest.GoodJob)
		words[slices.Index(words, "/lustre/m")] = dir
		out, err := opstest.Do(t, c, launch.Submit(), words...)
		require.NoError(t, err, name)
		id := *out.(launch.SubmitOut).JobID
		of := launch.SourceOf(t.Context(), c, "test", id)
		require.Equal(t, of, launch.SourceOf(t.Context(), c, "test", id+"_2"), "an array's task has the array's")
		require.Equal(t, tt.known, of != nil, name)
		require.Nil(t, launch.SourceOf(t.Context(), c, "test", "99999"), "another job's is not known")
		if tt.asks {
			require.Equal(t, "of "+dir, of.Commit)
		}
	}
}
