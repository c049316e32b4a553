package launch

import (
	"image/png"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/ops/opstest"
)

// Whoever gives something wrong is told the field, what is wrong, and what would work.
func TestWhatIsGivenWrongIsNamed(t *testing.T) {
	t.Parallel()
	c := opstest.NewCall(t, &opstest.Site{})
	c.Dir = t.TempDir()
	for name, text := range map[string]string{
		"empty.sh": "", "binary.sh": "a\x00b", "a.yaml": "name: a\n", "b.yaml": "name: b\n",
	} {
		opstest.Write(t, filepath.Join(c.Dir, name), text)
	}
	for _, tt := range []struct {
		op                ops.Op
		words             []string
		field, says, does string
	}{
		{Lint(), []string{"empty.sh"}, "script", "empty.sh is empty", "a script that starts something"},
		{Lint(), nil, "script", "there is no script to read", "megatron-ops lint run.sbatch"},
		{Import(), nil, "script", "there is no script to read", "megatron-ops import run.sbatch"},
		{Lint(), []string{"binary.sh"}, "script", "binary.sh is no text", "UTF-8"},
		{Import(), []string{"none.sh"}, "script", "none.sh", ""},
		{Plan(), []string{"-f", "a.yaml", "b.yaml"}, "file", "several specifications are given: a.yaml, b.yaml", "give one"},
		{Plan(), []string{"-f", "a.yaml", "--yaml", "name: b"}, "file", "several specifications are given: a.yaml, --yaml", "give one"},
		{Render(), []string{"--worktree", "/w", "--for", "hostfile"}, "on_nodes", "a hostfile needs the nodes' names", "--on-nodes gpu[01-02]"},
		{Render(), []string{"--worktree", "/w", "--for", "hostfile", "--on-nodes", "gpu[1"}, "on_nodes", "gpu[1", "gpu[01-02]"},
		{Plan(), []string{"--worktree", "w*\n", "--", "--bf16"}, "worktree", "", ""},
		{Memory(), []string{"--gpu", "h10", "--recipe", "llama3-8b"}, "gpu", `"h10" is no kind of GPU`, "did you mean"},
		{Memory(), []string{"--gpu", "zzzzzz", "--recipe", "llama3-8b"}, "gpu", `"zzzzzz" is no kind of GPU`, "a kind such as h100"},
		{Memory(), []string{"--", "--no-such-flag"}, "args", "the arguments are not Megatron's: --no-such-flag", "plan"},
	} {
		_, err := opstest.Do(t, c, tt.op, tt.words...)
		require.Error(t, err, "%v", tt.words)
		e := ops.AsError(err)
		require.Equal(t, ops.BadInput, e.Code, "%v: %v", tt.words, err)
		require.Equal(t, tt.field, e.Field, "%v: %v", tt.words, err)
		require.Contains(t, e.Message.In(lang.EN), tt.says)
		require.Contains(t, e.Fix.In(lang.EN), tt.does)
	}
	_, err := lintOp(t.Context(), c, LintIn{Script: "/home/ada/run.sh"})
	require.ErrorContains(t, err, "is a file's name and no script", "an agent gives the text")
	_, err = lintOp(t.Context(), c, LintIn{Script: "hostname"})
	require.NoError(t, err, "one word may be a command")
}

// The parts of the memory are drawn beside what the GPU has.
func TestMemoryIsDrawn(t *testing.T) {
	t.Parallel()
	c := opstest.NewCall(t, &opstest.Site{})
	c.Dir = t.TempDir()
	_, err := opstest.Do(t, c, Memory(), "--recipe", "llama3-8b", "--gpu", "h100", "--png", "memory.png")
	require.NoError(t, err)
	f, err := os.Open(filepath.Join(c.Dir, "memory.png"))
	require.NoError(t, err)
	defer f.Close()
	_, err = png.Decode(f)
	require.NoError(t, err)
}
