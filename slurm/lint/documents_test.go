package lint

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// document is the text of the one document beside this checkout that holds a
// phrase.
func document(t *testing.T, phrase string) string {
	t.Helper()
	dir := os.Getenv("MEGATRON_OPS_SHARED")
	if dir == "" {
		dir = filepath.Join("..", "..", "..", "shared")
	}
	files, _ := filepath.Glob(filepath.Join(dir, "sources", "*.txt"))
	for _, f := range files {
		b, err := os.ReadFile(f)
		require.NoError(t, err)
		if strings.Contains(string(b), phrase) {
			return string(b)
		}
	}
	t.Skip("no documents beside this checkout: set MEGATRON_OPS_SHARED")
	return ""
}

// An expected finding is a rule and a part of the line that it must be found on.
type expected struct{ rule, line, why string }

// holds compares what lint finds in a script with its faults, no more and no less.
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
	text := document(t, "megatron_docker.slurm")
	_, script, _ := strings.Cut(text, "\nbash\n#!/bin/bash")
	script, _, ok := strings.Cut("#!/bin/bash"+script, "\n3. ")
	require.True(t, ok)
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
	text := document(t, "megatron_core_training_example.py")
	blocks := regexp.MustCompile("(?s)```bash\n(.*?)```").FindAllStringSubmatch(text, -1)
	require.Len(t, blocks, 13)
	for _, b := range blocks {
		var faults []expected
		if strings.Contains(b[1], "torchrun ") {
			faults = append(faults, expected{"bare-torchrun", "torchrun", "the PATH's torchrun may have another Python"})
		}
		if strings.Contains(b[1], "#SBATCH") {
			faults = append(faults, expected{"no-worktree-cd", "megatron_core_training_example.py", "a relative program, and no cd"})
		}
		holds(t, b[1], faults)
	}
	// Its advice on time-outs names a variable that is none, and one that is no
	// time-out.
	advice := "#!/bin/bash\n"
	for _, line := range regexp.MustCompile("(?m)^.*超时.*`(export [^`]+)`").FindAllStringSubmatch(text, -1) {
		advice += line[1] + "  # 超时\n"
	}
	holds(t, advice, []expected{{"no-such-timeout", "NCCL_TIMEOUT", "NCCL has no such variable"}, {"no-such-timeout", "NCCL_SOCKET_NTHREADS", "a thread count"}})
}

func TestEveryFaultOfTheUsersGuideIsFound(t *testing.T) {
	text := document(t, "tr8-104B")
	for _, c := range []struct {
		phrase string
		faults []expected
	}{
		{"export $GPUS_PER_NODE=8", []expected{
			{"bad-assignment", "export $GPUS_PER_NODE", "no name to assign to"},
		}},
		{"sbatch --dependency=CURRENTLY_RUNNING_JOB_ID", []expected{{"dependency-bare-id", "--dependency", "afterany, so it starts after a failure too"}}},
	} {
		var script string
		for _, b := range regexp.MustCompile("(?s)```(?:bash)?\n(.*?)```").FindAllStringSubmatch(text, -1) {
			if strings.Contains(b[1], c.phrase) {
				script = b[1]
			}
		}
		require.NotEmpty(t, script, c.phrase)
		holds(t, script, c.faults)
	}
}

// TestMegatronsExamplesAreLeftAlone reads a checkout of Megatron-LM. Those of its
// examples that cannot start are told why; in the others nothing but the torchrun
// of the PATH, and what is still to be filled in, is reported.
func TestMegatronsExamplesAreLeftAlone(t *testing.T) {
	root := os.Getenv("MEGATRON_LM")
	if root == "" {
		t.Skip("set MEGATRON_LM to a checkout of Megatron-LM")
	}
	cannotStart := map[string]string{
		"gpt3/train_gpt3_175b_distributed.sh":        "megatron-flag-type", // a schedule of several words without quotes
		"bert/train_bert_340m_distributed.sh":        "illegal-layout",     // 24 layers on 16 stages
		"gptoss/02_train.sh":                         "illegal-layout",     // 12 layers on 8 stages
		"megatron_fsdp/sbatch_checkpoint_convert.sh": "bad-directive",      // words to be filled in
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
			delete(got, "syntax-error") // <words to be filled in>, which bash itself refuses
		}
		if name == "mimo/scripts/run_mock_train.sh" {
			delete(got, "node-local-path") // checkpoints of a trial, below /tmp
		}
		require.Empty(t, got, name)
		return nil
	}))
	require.Greater(t, n, 50)
}
