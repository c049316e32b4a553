package job_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/slurm/job"
)

// What a word processor, a chat or an input method made of a specification is told by the
// character, which nobody sees.
func TestCharactersThatLookLikeOthers(t *testing.T) {
	for name, tt := range map[string]struct{ line, fix, zh string }{
		"a no-break space":             {"nodes:\u00a02", "replace the character U+00A0, which looks like a blank, by a blank", "字符 U+00A0 只是看起来像空格，请改为普通空格"},
		"a full-width colon":           {"nodes：2", "write a colon and a blank in place of ： (U+FF1A)", "请把 ：（U+FF1A）改为半角冒号加空格"},
		"quotation marks":              {"time: “04:00:00”", "type \" in place of “ (U+201C)", "请把 “（U+201C）改为 \""},
		"marks around a name":          {"“nodes”: 2", "type \" in place of “ (U+201C)", ""},
		"nothing visible":              {"no\u200bdes: 2", "delete the invisible character U+200B", "请删除不可见字符 U+200B"},
		"a dash in a time":             {"time: 1–02:00:00", "type - in place of – (U+2013)", ""},
		"a dash before a flag":         {"args: [—bf16]", "write --bf16", "请写 --bf16"},
		"a dash in a flag":             {`args: ["–-lr=1e-4"]`, "write --lr=1e-4", ""},
		"a dash after a hyphen":        {`args: ["-–lr=1e-4"]`, "write --lr=1e-4", ""},
		"nothing visible before it":    {"args: [\u200b--bf16]", "write --bf16", ""},
		"marks around a flag":          {"args: [“--bf16”]", "write --bf16", ""},
		"what is no lookalike's fault": {"time: “soon”", "give minutes, ", ""},
	} {
		errs := faultsOf("name: gpt\nworktree: /w\n" + tt.line + "\n")
		require.Len(t, errs, 1, name)
		_, fix := errs[0].In(lang.EN)
		require.True(t, strings.HasPrefix(fix, tt.fix), "%s: %s", name, fix)
		if _, zh := errs[0].In(lang.ZH); tt.zh != "" {
			require.Equal(t, tt.zh, zh, name)
		}
	}
	meant, first := job.Plainly("\ufeff一\u3000－1−1，b＝２")
	require.Equal(t, "一 -1-1,b=２", meant)
	require.Equal(t, '\ufeff', first)
	require.Empty(t, faultsOf("name: gpt\nworktree: /w\ncomment: 学习率：一号\nargs: [--bf16, a – b]\nenv: {TITLE: “x”}\n"), "in texts they are no faults")
}

// faultsOf returns what is wrong with a specification.
func faultsOf(text string) []*job.FieldError {
	s, err := job.Decode([]byte(text))
	if err != nil {
		return job.AsFieldErrors(err)
	}
	return s.Validate()
}

// A path that begins with what a shell would expand is relative to nothing.
func TestAPathThatStaysAsWritten(t *testing.T) {
	for p, stays := range map[string]bool{"~/code": true, "$HOME/code": true, "code": false, "/lustre/$USER": false, "code/$X": false} {
		require.Equal(t, stays, job.StaysAsWritten(p), p)
	}
}

// Common slips in the words of a specification say what was meant.
func TestSlipsInASpecification(t *testing.T) {
	for line, want := range map[string]string{
		`nodes: "2"`:                     "is in quotes and so it is text (line 2); write it without quotes",
		"args: [--num-layers 32]":        "is a flag and its value in one word; write --num-layers=32, or two elements",
		`args: ["-j  4 "]`:               "write -j=4, or two elements",
		"worktree: ~/Megatron-LM":        "starts with '~', which is not expanded; give an absolute path",
		"worktree: $HOME/Megatron-LM":    "contains $HOME, which is not expanded; give an absolute path",
		"worktree: /lustre/${USER}/code": "contains ${USER}, which is not expanded; give an absolute path",
	} {
		text := "name: gpt\n" + line + "\n"
		if !strings.HasPrefix(line, "worktree") {
			text += "worktree: /w\n"
		}
		errs := faultsOf(text)
		require.Len(t, errs, 1, line)
		require.Contains(t, errs[0].Error(), want)
	}
	require.Empty(t, faultsOf("name: gpt\nworktree: /w\nlauncher: custom\nlauncher_argv: [run, --say all of it]\nargs: [--say all of it]\n"), "another program's words are its own")
}
