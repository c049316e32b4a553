package compute

import (
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/lazy"
	"github.com/megatron-ops/megatron-ops/knowledge/megatron"
)

// releasesAsked matches questions for which releases of Megatron-LM the answers are
// valid.
var releasesAsked = lazy.New(`\b(?:versions?|releases?|commits?)\b.*\b(?:your|the|these) (?:rules?|checks?|answers?|verdicts?|flag tables?)\b` +
	`|\b(?:your|the|these) (?:rules?|checks?|answers?|verdicts?|flag tables?)\b.*\b(?:versions?|releases?|commits?)\b` +
	`|\b(?:versions?|releases?)\b.*\bmegatron\b.*\b(?:do|can|are) you\b|\bmegatron\b.*\b(?:versions?|releases?)\b.*\b(?:do|can) you (?:know|support|judge|check)` +
	`|(?:规则|检查|判断|参数表).*(?:版本|哪个提交|commit)|(?:哪个|哪些|什么)(?:megatron)?.*版本.*(?:规则|检查|判断)|(?:你|机器人).*(?:支持|认识|知道).*megatron.*版本|支持哪些.*megatron.*版本`)

// releases answers from which releases of Megatron-LM the rules were read, and which
// release applies to a job.
func releases(q *question) string {
	if !releasesAsked.MatchString(q.low) {
		return ""
	}
	var names []string
	all := megatron.Releases()
	for _, r := range all {
		names = append(names, r.String())
	}
	newest := all[len(all)-1]
	return q.say(
		"From the code of Megatron-LM %s; main is commit %s of %s. A job is judged by the release that it runs: `megatron:` in its specification, else what the worktree says "+
			"(megatron/core/package_info.py, git), the image's tag, the configuration, else the newest. The answer of `plan` names it; `plan --against RELEASE` judges by another.",
		"来自 Megatron-LM %s 的代码；main 指 %[3]s 的提交 %[2]s。作业按其实际运行的版本判断：规格中的 `megatron:`，其次是工作树"+
			"（megatron/core/package_info.py、git）、镜像标签、配置，最后取最新版本。`plan` 的结果会写明所用版本；`plan --against 版本` 可按另一版本判断。",
		strings.Join(names, ", "), newest.Commit()[:8], newest.Date())
}
