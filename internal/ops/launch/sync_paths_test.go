package launch

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/slurm/cluster"
)

// A file's name may be anybody's text: a name that a terminal would interpret is
// quoted.
func TestPathsOfATreeAreShownAsTheyCanBe(t *testing.T) {
	for path, shown := range map[string]string{
		"src/train.py":   "src/train.py",
		"模型/训练 1.py":     "模型/训练 1.py",
		"a\x1b[31mb":     `"a\x1b[31mb"`,
		"two\nlines":     `"two\nlines"`,
		"broken\xff.txt": `"broken\xff.txt"`,
	} {
		require.Equal(t, []cluster.TreeChange{{Path: shown, Bytes: 7, EditedThere: true}}, shownFiles([]cluster.TreeChange{{Path: path, Bytes: 7, EditedThere: true}}))
	}
	require.Equal(t, []cluster.TreeChange{}, shownFiles(nil), "a list for agents, never null")
}
