package preflight

import (
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/lazy"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/knowledge/megatron"
	"github.com/megatron-ops/megatron-ops/slurm/job"
)

// argumentRules are about what the job's arguments do once it runs.
var argumentRules = []documentRule{
	{id: "signal-saves", field: "signal", check: func(_ *ops.Call, s job.Spec) lang.Text {
		if save, _ := megatron.ValueOf(s.Args, "--save"); save != "" || !savesOnSignal(s) {
			return lang.Text{}
		}
		return lang.Text{
			EN: "on the signal the ranks end without a checkpoint: no --save is given",
			ZH: "没有给出 --save：收到信号后各 rank 会直接结束，不保存检查点",
		}
	}},
	{id: "signal-heard", field: "signal", check: func(_ *ops.Call, s job.Spec) lang.Text {
		if !savesOnSignal(s) {
			return lang.Text{}
		}
		sent := "SIG" + s.ExitSignal()
		release, _ := megatron.ParseRelease(s.Megatron)
		if _, named := megatron.LookupFlagIn(release.Release.OrNewest(), "--exit-signal"); !named && sent != "SIGTERM" {
			return phrase("the ranks are sent %s, and Megatron %s saves on SIGTERM only: it has no --exit-signal", "各 rank 会收到 %s，而 Megatron %s 只在 SIGTERM 时保存：它没有 --exit-signal", sent, release.Release)
		}
		if awaited, _ := megatron.ValueOf(s.Args, "--exit-signal"); awaited != "" && awaited != sent {
			return phrase("the ranks are sent %s, and --exit-signal %s waits for another", "各 rank 会收到 %s，而 --exit-signal %s 等待的是另一个信号", sent, awaited)
		}
		return lang.Text{}
	}},
	{id: "arguments-not-expanded", field: "args", check: func(_ *ops.Call, s job.Spec) lang.Text {
		for _, word := range s.Args {
			if strings.HasPrefix(word, "-") {
				_, word, _ = strings.Cut(word, "=")
			}
			if expanded.MatchString(word) {
				return phrase("%s reaches the program as it is written: arguments are quoted, and no shell expands them", "%s 会原样传给程序：参数都带引号，没有 shell 会展开它", word)
			}
		}
		return lang.Text{}
	}},
}

// expanded matches a path that only a shell makes whole: ~, ~/x, $HOME/x, ${SCRATCH}/x.
var expanded = lazy.New(`^(~[A-Za-z0-9._-]*|\$[A-Za-z_]\w*|\$\{[A-Za-z_]\w*\})(/|$)`)

// savesOnSignal reports whether the job is one of Megatron's trainings that somebody wants to save
// on a signal.
func savesOnSignal(s job.Spec) bool { return s.Signalled() && s.OwnProgram() == "" && s.Pretrains() }
