package lint

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// document reads a script that a published document shows as an example.
func document(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", "documents", name+".sh"))
	require.NoError(t, err)
	return string(b)
}

// An expected finding has a rule and a part of the line on which lint must report it.
type expected struct{ rule, line, why string }

// holds requires that lint finds exactly the expected faults in a script.
func holds(t *testing.T, script string, faults []expected) {
	t.Helper()
	lines := strings.Split(script, "\n")
	got := Check("", []byte(script))
	for _, want := range faults {
		found := false
		for _, f := range got {
			found = found || f.Rule == want.rule && strings.Contains(lines[f.Line-1], want.line)
		}
		require.True(t, found, "%s on %q (%s) is not among %v", want.rule, want.line, want.why, got)
	}
	for _, f := range got {
		known := false
		for _, want := range faults {
			known = known || f.Rule == want.rule && strings.Contains(lines[f.Line-1], want.line)
		}
		require.True(t, known, "%s on line %d is no fault of %q: %s", f.Rule, f.Line, lines[f.Line-1], f.Message)
	}
}

func TestEveryFaultOfTheDockerTemplateIsFound(t *testing.T) {
	script := document(t, "docker-template")
	holds(t, script, []expected{
		{"no-time-limit", "#SBATCH", "no --time among the directives"},
		{"container-env-missing", "WORLD_SIZE=", "docker passes no environment: SLURM_NTASKS is empty inside, and what it counts are nodes"},
		{"container-env-missing", "RANK=", "SLURM_PROCID is empty inside, so --node_rank swallows the next word"},
		{"container-env-missing", "MASTER_ADDR=", "SLURM_NODELIST is empty inside"},
		{"scontrol-in-container", "MASTER_ADDR=", "the image has no Slurm"},
		{"docker-privileged", "--privileged", "full rights on the host"},
	})
	for _, f := range Check("", []byte(script)) {
		if f.Rule == "container-env-missing" && strings.Contains(f.Message, "SLURM_NTASKS") {
			require.Contains(t, f.Fix, "name it NNODES", "the name of the node count is told")
		}
	}
}

func TestEveryFaultOfTheTrainingGuidesScriptsIsFound(t *testing.T) {
	for n := 1; n <= 13; n++ {
		script := document(t, fmt.Sprintf("training-guide-%02d", n))
		var faults []expected
		if strings.Contains(script, "torchrun ") {
			faults = append(faults, expected{"bare-torchrun", "torchrun", "the PATH's torchrun may have another Python"})
		}
		if strings.Contains(script, "#SBATCH") {
			faults = append(faults, expected{"no-worktree-cd", "megatron_core_training_example.py", "a relative program, and no cd"})
		}
		holds(t, script, faults)
	}
	// For time-outs, the document recommends a variable that does not exist, and one that
	// sets no time-out.
	holds(t, document(t, "training-guide-timeouts"), []expected{
		{"no-such-timeout", "NCCL_TIMEOUT", "NCCL has no such variable"}, {"no-such-timeout", "NCCL_SOCKET_NTHREADS", "a thread count"},
	})
}

func TestEveryFaultOfTheUsersGuideIsFound(t *testing.T) {
	holds(t, document(t, "users-guide-assignment"), []expected{{"bad-assignment", "export $GPUS_PER_NODE", "no name to assign to"}})
	holds(t, document(t, "users-guide-dependency"), []expected{{"dependency-bare-id", "--dependency", "afterany, so it starts after a failure too"}})
}
