package diagnose

import (
	"path"
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/lazy"
)

// An ImportKind is why a module was not found.
type ImportKind string

// The kinds of import error.
const (
	WrongWorktree ImportKind = "wrong_worktree" // the job runs in another checkout than was asked for
	StalePath     ImportKind = "stale_pythonpath"
	NoSync        ImportKind = "missing_uv_sync"
	OldCheckout   ImportKind = "old_checkout" // the checkout itself lacks the module
)

var (
	missingModule = lazy.New(`No module named ['"]?([\w.]+)`)
	importedFrom  = lazy.New(`cannot import name .* from (?:partially initialized module )?['"]?([\w.]+)['"]?.*\((/[^)]*)\)`)
)

// importKind decides from the traceback's paths, and the worktree where it is
// known, which of its usual causes an import error has.
func (j *job) importKind(r *Report, e *event) ImportKind {
	module, from := "", ""
	if m := importedFrom.FindStringSubmatch(r.RootLine); m != nil {
		module, from = m[1], m[2]
	} else if m := missingModule.FindStringSubmatch(r.RootLine); m != nil {
		module = m[1]
	}
	if module == "" {
		return ""
	}
	script, inner := "", ""
	if e != nil && e.stack != nil {
		for _, f := range e.stack.frames {
			if strings.HasPrefix(f.File, "/") && !strings.Contains(f.File, "-packages/") && !strings.Contains(f.File, "/lib/python") {
				if script == "" {
					script = path.Dir(f.File)
				}
				inner = f.File
			}
		}
	}
	own := module == "megatron" || strings.HasPrefix(module, "megatron.")
	within := func(file, dir string) bool { return strings.HasPrefix(file, strings.TrimSuffix(dir, "/")+"/") }
	switch {
	case script != "" && j.given.Worktree != "" && !within(script+"/", j.given.Worktree):
		r.ImportRoot = script
		return WrongWorktree
	case from != "" && script != "" && own && !within(from, script) && !strings.Contains(from, "-packages/"):
		r.ImportRoot = from
		return StalePath
	case own && script != "" && inner != "" && !within(inner, script):
		r.ImportRoot = inner
		return StalePath
	case own && script != "":
		r.ImportRoot = script
		return OldCheckout
	case own:
		return ""
	}
	return NoSync
}

// importAdvice says what to do about the kind of import error.
func (r Report) importAdvice() (lang.Text, bool) {
	root := r.ImportRoot
	module := ""
	if m := missingModule.FindStringSubmatch(r.RootLine); m != nil {
		module = strings.TrimRight(m[1], ".")
	}
	switch r.ImportKind {
	case WrongWorktree:
		return said("The script that ran lies in "+root+", not in the job's worktree: the job runs in the wrong worktree.",
			"实际运行的脚本位于 "+root+"，不在作业的 worktree 中：作业进入了错误的 "+
				"worktree。"), true
	case StalePath:
		return said("Megatron was imported from "+root+", another checkout than the script's: PYTHONPATH (or an editable install) points to a stale one.",
			"Megatron 是从 "+root+" 导入的，与脚本不在同一代码目录：PYTHONPATH（或可编辑安装）指向了旧的代码目录。"), true
	case OldCheckout:
		return said("The checkout in "+root+" has no such module: it is at another commit than the script expects, or is not the worktree that was meant.",
			root+" 中的代码没有该模块：其版本与脚本不符，或不是想用的 worktree。"), true
	case NoSync:
		if module == "" {
			return lang.Text{}, false
		}
		return said("`"+module+"` is not in the environment that ran: `uv sync` in the worktree, or an image that has it.",
			"运行环境中没有 `"+module+"`：在 worktree 中执行 `uv "+
				"sync`，"+
				"或换用包含它的镜像。"), true
	}
	if module == "megatron" || strings.HasPrefix(module, "megatron.") {
		return said("`"+module+"` is part of the worktree itself: the job runs in another worktree or PYTHONPATH names a stale checkout.",
			"`"+module+"` 属于 worktree 本身：作业进入了别的 worktree，或 "+
				"PYTHONPATH "+
				"指向了旧的代码目录。"), true
	}
	return lang.Text{}, false
}
