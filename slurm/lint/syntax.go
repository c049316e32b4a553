package lint

import (
	"mvdan.cc/sh/v3/syntax"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/lazy"
	"github.com/megatron-ops/megatron-ops/knowledge/rules"
)

// syntaxRules are about text that bash parses differently than the author intended.
var syntaxRules = []Rule{
	{
		ID: "broken-continuation", Severity: rules.Error, check: brokenContinuation,
		Why: lang.Text{EN: "the command ends before this line: the rest of the flags becomes a command of its own", ZH: "命令在这一行之前就结束了：后面的参数会被当作另一条命令"},
		Fix: lang.Text{
			EN: "end every line of the command but the last with a backslash and nothing after it; no comment or blank line between",
			ZH: "命令除最后一行外每行都以反斜杠结尾，反斜杠后不能有空格，中间不能夹注释或空行",
		},
	},
	{
		ID: "syntax-error", Severity: rules.Error, check: syntaxError,
		Why: lang.Text{EN: "bash refuses the script here", ZH: "bash 在这里拒绝该脚本"},
		Fix: lang.Text{EN: "close or correct it (bash -n shows the place)", ZH: "补全或改正此处（bash -n 可检查）"},
	},
	{
		ID: "bash-in-sh", Severity: rules.Error, check: bashInSh,
		Why: lang.Text{
			EN: "the first line asks for sh, but this is bash syntax: the script fails if sh is dash",
			ZH: "首行指定的是 sh，而这里用了 bash 语法：在 sh 为 dash 的系统上会失败",
		},
		Fix: lang.Text{EN: "#!/bin/bash", ZH: "首行改为 #!/bin/bash"},
	},
}

func syntaxError(c *checker) {
	for _, r := range c.job.Refusals {
		c.report(r.Line, r.Message)
	}
}

func brokenContinuation(c *checker) {
	for _, b := range c.job.Breaks {
		if !b.Escapes() {
			c.report(b.Line, b.Text)
			continue
		}
		c.reportThat(b.Line, b.Text, lang.Text{
			EN: "the backslash escapes the blank after it and continues no line: the program gets the blank as a word, and a comment right behind it too",
			ZH: "反斜杠转义了后面的空格，并不续行：这个空格会成为程序的参数，紧跟其后的注释也是",
		})
	}
}

var shShebang = lazy.New(`^#!\s*(/usr)?/bin/(env\s+)?(sh|dash)(\s|$)`)

// bashInSh finds the first use of syntax or commands that dash does not have.
func bashInSh(c *checker) {
	if !shShebang.MatchString(c.job.Shebang) {
		return
	}
	src := c.job.Sources[0]
	line, what := 0, ""
	found := func(p syntax.Pos, w string) {
		if line == 0 {
			line, what = src.Line(p), w
		}
	}
	syntax.Walk(src.Syntax, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.ArrayExpr:
			found(n.Pos(), "array")
		case *syntax.TestClause:
			found(n.Pos(), "[[ … ]]")
		case *syntax.ArithmCmd:
			found(n.Pos(), "(( … ))")
		case *syntax.ProcSubst:
			found(n.Pos(), "<( … )")
		case *syntax.FuncDecl:
			if n.RsrvWord {
				found(n.Pos(), "function")
			}
		case *syntax.Redirect:
			if n.Op == syntax.WordHdoc {
				found(n.OpPos, "<<<")
			}
		case *syntax.ForClause:
			if _, ok := n.Loop.(*syntax.CStyleLoop); ok {
				found(n.Pos(), "for ((…))")
			}
		case *syntax.DeclClause:
			if v := n.Variant.Value; v == "declare" || v == "typeset" {
				found(n.Pos(), v)
			}
		case *syntax.ParamExp:
			if n.Index != nil || n.Slice != nil || n.Repl != nil {
				found(n.Pos(), src.Slice(n.Pos(), n.End()))
			}
		case *syntax.CallExpr:
			if len(n.Args) > 0 {
				switch n.Args[0].Lit() {
				case "source", "shopt", "mapfile", "readarray":
					found(n.Pos(), n.Args[0].Lit())
				case "set":
					for _, a := range n.Args[1:] {
						if a.Lit() == "pipefail" {
							found(n.Pos(), "pipefail")
						}
					}
				}
			}
		}
		return true
	})
	if line > 0 {
		c.report(line, what)
	}
}
