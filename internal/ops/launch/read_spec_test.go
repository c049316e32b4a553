package launch

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/ops/opstest"
)

func TestFlagsWinOverTheFile(t *testing.T) {
	c := opstest.NewCall(t, &opstest.Site{})
	s, err := ReadSpec(c, SpecIn{YAML: "name: a\nnodes: 2\nworktree: /w\nargs: [--lr, '1']\nenv: {A: '1'}\n"})
	require.NoError(t, err)
	require.Equal(t, 2, *s.Nodes)
	in := SpecIn{YAML: "name: a\nnodes: 2\nworktree: /w\nargs: [--lr, '1']\nenv: {A: '1'}\n"}
	four := 4
	in.Spec.Nodes, in.Spec.Env = &four, map[string]string{"B": "2"}
	in.AfterDashes([]string{"--lr", "2"})
	s, err = ReadSpec(c, in)
	require.NoError(t, err)
	require.Equal(t, 4, *s.Nodes)
	require.Equal(t, []string{"--lr", "1", "--lr", "2"}, s.Args)
	require.Equal(t, map[string]string{"A": "1", "B": "2"}, s.Env)
}

func TestArgumentsAsOneQuotedLine(t *testing.T) {
	c := opstest.NewCall(t, &opstest.Site{})
	s, err := ReadSpec(c, SpecIn{YAML: "worktree: /w\nargs: [--lr, '1']\n", Line: `--data-path '/data/my set' --bf16`})
	require.NoError(t, err)
	require.Equal(t, []string{"--lr", "1", "--data-path", "/data/my set", "--bf16"}, s.Args)
	for _, words := range [][]string{{"--command-line", "--num-layers 2 --bf16"}, {"--command-line=--num-layers 2 --bf16"}} {
		out, err := opstest.Do(t, c, Render(), append([]string{"--worktree", "/w"}, words...)...)
		require.NoError(t, err)
		require.Contains(t, out.(RenderOut).Script, "--num-layers")
	}
	_, err = ReadSpec(c, SpecIn{YAML: "worktree: /w\n", Line: "--save $HOME/x"})
	require.Equal(t, "command_line", ops.AsError(err).Field, "what a shell would expand is not known here")
}

// A file without a word is no specification, and is named instead of all that is missing in it.
func TestAnEmptyFileIsCalledEmpty(t *testing.T) {
	c := opstest.NewCall(t, &opstest.Site{})
	for name, text := range map[string]string{"empty.yaml": "", "blank.yaml": "\n \n", "comments.yaml": "# nodes: 2\n", "run.sh": ""} {
		path := filepath.Join(t.TempDir(), name)
		opstest.Write(t, path, text)
		for _, op := range []ops.Op{Plan(), Render()} {
			_, err := opstest.Do(t, c, op, path, "--", "--bf16")
			require.Equal(t, ops.BadInput, ops.AsError(err).Code, name)
			require.Equal(t, path+" is empty, or has only comments", ops.AsError(err).Message.EN)
		}
	}
}

// A relative worktree lies in the shell's current folder.
func TestWhereAWorktreeLies(t *testing.T) {
	c := opstest.NewCall(t, &opstest.Site{})
	for _, row := range [][3]string{{"/home/ada", "m", "/home/ada/m"}, {"/home/ada", "../m", "/home/m"}, {"/home/ada", "/w", "/w"}, {"", "/w", "/w"}} {
		c.Dir = row[0]
		s, err := ReadSpec(c, SpecIn{YAML: "worktree: " + row[1] + "\n"})
		require.NoError(t, err)
		require.Equal(t, row[2], s.Worktree)
	}
	c.Dir = "/home/ada"
	for _, tree := range []string{"~/m", "$HOME/m", "/lustre/$USER/m"} {
		_, err := ReadSpec(c, SpecIn{YAML: "worktree: " + tree + "\n"})
		require.ErrorContains(t, err, "which is not expanded", "a shell's words are no folder's name")
	}
	for dir, text := range map[string]string{"/home/ada": "name: a\n", "": "worktree: m\n"} {
		c.Dir = dir
		_, err := ReadSpec(c, SpecIn{YAML: text})
		require.Equal(t, "worktree", ops.AsError(err).Field, "none is told, and no folder is known that it is in")
	}
}
