package lint_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/slurm/job"
	"github.com/megatron-ops/megatron-ops/slurm/lint"
)

// A character that a word processor put into a script is named, where a shell reads it; in
// texts for people it is no fault.
func TestLookalikeCharacters(t *testing.T) {
	head := "#!/bin/bash\n#SBATCH --nodes=1 --gpus-per-node=8 --time=60\ncd /work/x\n"
	run := "uv run torchrun --standalone --nproc_per_node 8 train.py"
	for line, fix := range map[string]string{
		run + " —bf16":                                "type - in place of — (U+2014)",
		run + " -–lr 1":                               "type - in place of – (U+2013)",
		run + " --name “a b”":                         "type \" in place of “ (U+201C)",
		run + " --name=“a”":                           "type \" in place of “ (U+201C)",
		"export A=“x”\n" + run:                        "type \" in place of “ (U+201C)",
		"uv\u00a0run x\n" + run:                       "replace the character U+00A0, which looks like a blank, by a blank",
		"#SBATCH –N 4\n" + run:                        "type - in place of – (U+2013)",
		"#SBATCH --comment=a\u3000b\n" + run:          "replace the character U+3000, which looks like a blank, by a blank",
		"A=“a b\"\n" + run:                            "type \" in place of “ (U+201C)",
		"A=\"a b”\n" + run:                            "type \" in place of ” (U+201D)",
		run + " --name a”":                            "type \" in place of ” (U+201D)",
		"A=“x”\n" + run:                               "type \" in place of “ (U+201C)",
		":\n# – a comment\n" + run + " --name \"a b”": "type \" in place of ” (U+201D)", // bash refuses it
	} {
		var found []lint.Finding
		text := head + line + "\n"
		if strings.HasPrefix(line, "#") {
			text = strings.Replace(head, "cd ", line[:strings.Index(line, "\n")+1]+"cd ", 1) + run + "\n"
		}
		for _, f := range lint.Check("a.sbatch", []byte(text)) {
			if f.Rule == "lookalike-character" {
				found = append(found, f)
			}
		}
		require.Len(t, found, 1, line)
		require.Equal(t, fix, found[0].Fix, line)
		_, at := job.Plainly(strings.Split(text, "\n")[found[0].Line-1])
		require.NotZero(t, at, "the line that has it: %s", line)
	}
	for _, line := range []string{
		"echo 训练：开始——“一号” it’s – done", `x="“a” – b"`, "# “a” —bf16", "cat <<EOF\n“a” —bf16\nEOF", "printf '%s' “a”",
		"TITLE=我的“模型”", "grep -c “ notes.txt", "case $1 in “) exit 1 ;; esac",
		"#SBATCH –N 4", "if true; then echo “a”", // an ignored line, and one that bash refuses for another cause
	} {
		for _, f := range lint.CheckIn("a.sbatch", []byte(head+line+"\n"+run+"\n"), lang.ZH) {
			require.NotEqual(t, "lookalike-character", f.Rule, line)
		}
	}
}

// A directive with such a character is reported beside a command that bash refuses for one.
func TestLookalikesOfADirectiveAndOfARefusedCommand(t *testing.T) {
	var lines []int
	for _, f := range lint.Check("a.sbatch", []byte("#!/bin/bash\n#SBATCH –N 4\npython train.py --name \"a b”\n")) {
		if f.Rule == "lookalike-character" {
			lines = append(lines, f.Line)
		}
	}
	require.ElementsMatch(t, []int{2, 3}, lines)
}

// sbatch reads no comment behind an option.
func TestALookalikeInADirectivesCommentIsText(t *testing.T) {
	const file = "#!/bin/bash\n#SBATCH --nodes=1 --output=%j.out # “7.out”, one – not two\nset -euo pipefail\nhostname\n"
	for _, f := range lint.CheckIn("a.sbatch", []byte(file), lang.EN) {
		require.NotEqual(t, "lookalike-character", f.Rule)
	}
}
