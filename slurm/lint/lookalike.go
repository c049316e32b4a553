package lint

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/lazy"
	"github.com/megatron-ops/megatron-ops/knowledge/rules"
	"github.com/megatron-ops/megatron-ops/slurm/job"
	"github.com/megatron-ops/megatron-ops/slurm/script"
)

var lookalikeRules = []Rule{{
	ID: "lookalike-character", Severity: rules.Error, check: lookalike,
	Why: lang.Text{
		EN: "this character only looks like one of the shell's, as word processors and chats write it: it becomes part of a word",
		ZH: "该字符只是看起来像 shell 的符号（文字处理软件或聊天工具会这样替换），实际会成为单词的一部分",
	},
	Fix: lang.Text{EN: "type the plain character", ZH: "请改为普通字符"},
}}

// misplaced finds a lookalike where a shell's own character belongs: a dash before a
// flag, a quotation mark at the edge of a word or a value, a blank anywhere. A pair of
// quotation marks within a word is text, and one alone is what the command looks for.
var misplaced = lazy.New(`^-?[‐‑‒–—―−－]+-?[A-Za-z]|(?:^|=)[“”„‘’].|^[^“„]+[“”]$|[\x{a0}\x{2007}\x{2009}\x{202f}\x{3000}\x{200b}\x{2060}]`)

// lookalike reports the first such character of each line.
func lookalike(c *checker) {
	report := func(line int, word string) {
		if at := misplaced.FindString(word); at != "" {
			_, first := job.Plainly(at)
			c.reportWithFix(line, word, job.WrongCharacter(first))
		}
	}
	for _, d := range c.job.Directives {
		if d.Ignored == "" {
			code, _ := script.Uncommented(d.Text) // sbatch reads no comment
			for _, word := range strings.FieldsFunc(code, func(r rune) bool { return r == ' ' || r == '\t' }) {
				report(d.Line, word)
			}
		}
	}
	for _, src := range c.job.Sources {
		if src.Syntax == nil {
			continue
		}
		syntax.Walk(src.Syntax, func(n syntax.Node) bool {
			switch n := n.(type) {
			case *syntax.DblQuoted, *syntax.SglQuoted, *syntax.Redirect:
				return false
			case *syntax.CallExpr:
				return len(n.Args) == 0 || !says[n.Args[0].Lit()]
			case *syntax.Word:
				if lit, ok := n.Parts[0].(*syntax.Lit); ok {
					report(src.Line(lit.Pos()), lit.Value)
				}
			}
			return true
		})
	}
	if len(c.job.Refusals) > 0 {
		refused(c)
	}
}

// says are the commands whose words are for people.
var says = map[string]bool{"echo": true, "printf": true, ":": true, "logger": true}

// refused reports the first lookalike of a script that bash would accept without them.
func refused(c *checker) {
	s := c.job.Script
	meant, _ := job.Plainly(strings.Join(s.Lines, "\n"))
	if len(script.Read(s.Name, []byte(meant)).Jobs[0].Refusals) > 0 {
		return
	}
	for i, line := range s.Lines {
		if _, r := job.Plainly(line); r != 0 && !strings.HasPrefix(strings.TrimSpace(line), "#") {
			c.reportWithFix(i+1, string(r), job.WrongCharacter(r))
			return
		}
	}
}
