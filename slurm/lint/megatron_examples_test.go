//go:build megatron

package lint

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestMegatronsExamplesAreLeftAlone reads the checkout of Megatron-LM that MEGATRON_LM
// names: go test -tags megatron ./slurm/lint. Lint reports the faults of the examples that
// cannot start. In all others it reports only torchrun from the PATH, and placeholders.
func TestMegatronsExamplesAreLeftAlone(t *testing.T) {
	root := os.Getenv("MEGATRON_LM")
	require.NotEmpty(t, root, "set MEGATRON_LM to a checkout of Megatron-LM")
	cannotStart := map[string]string{
		"gpt3/train_gpt3_175b_distributed.sh":        "megatron-flag-type", // a schedule of several words without quotes
		"bert/train_bert_340m_distributed.sh":        "illegal-layout",     // 24 layers on 16 stages
		"gptoss/02_train.sh":                         "illegal-layout",     // 12 layers on 8 stages
		"megatron_fsdp/sbatch_checkpoint_convert.sh": "bad-directive",      // placeholders
		"megatron_fsdp/sbatch_mfsdp_deepseek_v3.sh":  "bad-directive",
	}
	n := 0
	require.NoError(t, filepath.WalkDir(filepath.Join(root, "examples"), func(p string, _ os.DirEntry, err error) error {
		if err != nil || filepath.Ext(p) != ".sh" {
			return err
		}
		n++
		name, _ := filepath.Rel(filepath.Join(root, "examples"), p)
		src, err := os.ReadFile(p)
		require.NoError(t, err)
		got := map[string]bool{}
		for _, f := range Check(p, src) {
			got[f.Rule] = true
		}
		if why := cannotStart[name]; why != "" {
			require.True(t, got[why], "%s: %v", name, got)
			delete(got, why)
		}
		delete(got, "bare-torchrun")
		if strings.HasPrefix(name, "academic_paper_scripts") {
			delete(got, "syntax-error") // placeholders such as <WORDS>, which bash itself rejects
		}
		if name == "mimo/scripts/run_mock_train.sh" {
			delete(got, "node-local-path") // checkpoints of a trial, below /tmp
		}
		require.Empty(t, got, name)
		return nil
	}))
	require.Greater(t, n, 50)
}
