package report

import (
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/lazy"
)

// An ImportKind says why a module was not found.
type ImportKind string

// The kinds of import error.
const (
	WrongWorktree ImportKind = "wrong_worktree" // the job runs in another checkout than the specified one
	StalePath     ImportKind = "stale_pythonpath"
	NoSync        ImportKind = "missing_uv_sync"
	OldCheckout   ImportKind = "old_checkout" // the checkout itself lacks the module
)

// MissingModule matches Python's message about a module that it did not find.
var MissingModule = lazy.New(`No module named ['"]?([\w.]+)`)

// missingModule returns the name of the module that was not found, or the empty string.
func (r Report) missingModule() string {
	if m := MissingModule.FindStringSubmatch(r.RootLine); m != nil {
		return strings.TrimRight(m[1], ".")
	}
	return ""
}

// ImportAdvice returns the remedy for the kind of import error.
func (r Report) ImportAdvice() (lang.Text, bool) {
	root, module := r.ImportRoot, r.missingModule()
	switch r.ImportKind {
	case WrongWorktree:
		return said("The script that ran lies in "+root+", not in the job's worktree: the job runs in the wrong worktree.",
			"实际运行的脚本位于 "+root+"，不在作业的 worktree 中：作业进入了错误的 worktree。"), true
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
		return said("`"+module+"` is not in the environment that ran: run `uv sync` in the worktree and start Python through that environment, or take an image that has it.",
			"运行环境中没有 `"+module+"`：在 worktree 中执行 `uv sync` 并用该环境启动 Python，或换用包含它的镜像。"), true
	}
	if module == "megatron" || strings.HasPrefix(module, "megatron.") {
		return said("`"+module+"` is part of the worktree itself: the job runs in another worktree or PYTHONPATH names a stale checkout.",
			"`"+module+"` 属于 worktree 本身：作业进入了别的 worktree，或 PYTHONPATH 指向了旧的代码目录。"), true
	}
	return lang.Text{}, false
}
