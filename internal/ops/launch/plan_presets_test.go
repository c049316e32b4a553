package launch

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/ops/opstest"
	"github.com/megatron-ops/megatron-ops/slurm/job"
)

// plan does not call a job ready whose presets submit would refuse.
func TestPlanKnowsTheSitesPresets(t *testing.T) {
	c := opstest.NewCall(t, &opstest.Site{OfKind: "cli"})
	c.Sites = func(string) job.Site {
		return job.Site{Presets: map[string]map[string]string{"fabric": {"NCCL_SOCKET_IFNAME": "eth0"}, "bad": {"BASH_ENV": "/x"}}}
	}
	tree := worktreeOf(t, "0", "17", "1")
	require.NoError(t, os.WriteFile(filepath.Join(tree, job.TrainingProgram), nil, 0o600))
	words := func(preset string) []string {
		return append([]string{"--worktree", tree, "--gpu", "h100", "--preset", preset, "--"}, smallModel...)
	}
	for _, preset := range []string{"gpu-use", "fabric"} {
		require.True(t, planned(t, c, words(preset)...).Ready, preset)
	}
	for preset, says := range map[string][2]string{
		"gpu_use": {"is not a preset", "did you mean gpu-use?"},
		"no-such": {"is not a preset", "one of bad, fabric, debug-nccl"},
		"bad":     {"sets \"BASH_ENV\", which a script may not set", "mend the preset"},
	} {
		for _, op := range []ops.Op{Plan(), Submit()} {
			_, err := opstest.Do(t, c, op, words(preset)...)
			e := ops.AsError(err)
			require.NotNil(t, e, "%s %s", op.Name, preset)
			require.Equal(t, ops.BadInput, e.Code)
			require.Equal(t, "preset", e.Field)
			require.Contains(t, e.Message.In(lang.EN), says[0], op.Name)
			require.Contains(t, e.Fix.In(lang.EN), says[1], op.Name)
		}
	}
}

// A program of one's own is nothing that Megatron would refuse.
func TestAProgramThatIsNotMegatronsIsNotRefused(t *testing.T) {
	c := opstest.NewCall(t, &opstest.Site{})
	out := planned(t, c, "--worktree", "/w", "--nodes", "1", "--gpus-per-node", "0", "--time", "5", "--launcher", "custom", "--launcher-argv", "bash", "--script", "own.sh")
	require.True(t, out.OK)
	require.Contains(t, opstest.Text(t, out, lang.EN), "Megatron's rules do not apply to its arguments")
}

// Files are checked on the machine that holds them, with the rights of the caller.
func TestWhoseFilesAPlanLooksAt(t *testing.T) {
	tree := worktreeOf(t, "0", "17", "1")
	for name, tt := range map[string]struct {
		kind, self string
		surface    ops.Surface
		says       string // empty: the files are checked
	}{
		"in one's own shell":     {"cli", "alice", ops.Shell, ""},
		"in a shell of nobody's": {"cli", "", ops.Shell, ""},
		"by one's own server":    {"cli", "alice", ops.Slack, ""},
		"by another's process":   {"cli", "bot", ops.Slack, "this process is bot"},
		"on another machine":     {"ssh", "alice", ops.Shell, "only on this machine's own clusters"},
	} {
		c := opstest.NewCall(t, &opstest.Site{OfKind: tt.kind})
		c.Self, c.Who = tt.self, ops.Caller{Surface: tt.surface, User: "alice"}
		words := append([]string{"--worktree", tree, "--gpu", "h100", "--time", "10", "--check-files", "--"}, smallModel...)
		out, err := opstest.Do(t, c, Plan(), append(words, "--load", "nowhere")...)
		if tt.says != "" {
			require.ErrorContains(t, err, tt.says, name)
			continue
		}
		require.NoError(t, err, name)
		require.Contains(t, opstest.Text(t, out, lang.EN), "nowhere", name)
	}
}
