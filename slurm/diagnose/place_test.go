package diagnose_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/megatron-ops/megatron-ops/slurm/diagnose"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/diagnosetest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The name of its file or the tag of its line shows the rank and node of an exception.
func TestTheFileTellsThePlace(t *testing.T) {
	world := func(n int) string {
		return fmt.Sprintf("using world size: %d, data-parallel size: %d, context-parallel size: 1, tensor-model-parallel size: 1, pipeline-model-parallel size: 1\n", n, n)
	}
	raised := diagnosetest.Raised("KeyError: 'tokens'")
	tagged := "[default3]:Traceback (most recent call last):\n[default3]:  File \"/w/t.py\", line 3, in f\n[default3]:KeyError: 'tokens'\n"
	const seven = "[default7]:loading\n"
	nodes := []string{"gpu1", "gpu2"}
	for name, c := range map[string]struct {
		logs map[string]string
		rank int // -1 if nothing shows it
		node string
	}{
		"a node's name ends the file's":            {map[string]string{"train-gpu1": "loading\n", "train-gpu2": raised}, -1, "gpu2"},
		"a node's name within another":             {map[string]string{"train-gpu12.log": "loading\n", "train-gpu22.log": raised}, -1, ""},
		"a node that is called like a rank":        {map[string]string{"gpu1.log": "loading\n", "node1-worker7.log": raised + exitedWith("worker7", 1, 2, 3)}, -1, "worker7"},
		"a rank's file, and its node's name in it": {map[string]string{"slurm-1.out": exitedWith("k1", 1, 0, 1), "rank0_k1.log": "loading\n", "rank1_k1.log": raised}, 1, "k1"},
		"a file for each rank":                     {map[string]string{"train-0.log": world(2), "train-1.log": raised}, 1, "gpu2"},
		"a file for each node":                     {map[string]string{"train-0.log": world(16), "train-1.log": raised}, -1, ""},
		"a local rank of one node":                 {map[string]string{"train.log": world(8) + seven + tagged}, 3, "gpu1"},
		"a local rank of one of two nodes":         {map[string]string{"train.log": world(16) + seven + tagged}, -1, ""},
		"a local rank of the only node, two files": {map[string]string{"train.out": world(8) + seven, "train.err": tagged}, 3, "gpu1"},
		"a local rank, the world is not known":     {map[string]string{"train.log": seven + tagged}, 3, "gpu1"},
		"a local rank, two files, no world":        {map[string]string{"train.out": seven, "train.err": tagged}, -1, ""},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for file, text := range c.logs {
				require.NoError(t, os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600))
			}
			r, err := diagnose.Path(context.Background(), dir, diagnose.Context{JobState: "FAILED", Nodes: nodes})
			require.NoError(t, err)
			require.Contains(t, r.RootLine, "KeyError")
			rank, node := -1, ""
			if r.RootRank != nil {
				rank = *r.RootRank
			}
			if r.RootNode != nil {
				node = *r.RootNode
			}
			assert.Equal(t, c.rank, rank)
			assert.Equal(t, c.node, node)
		})
	}
}
