package answers

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/lazy"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/view"
	"github.com/megatron-ops/megatron-ops/slurm"
)

var (
	exitForm   = lazy.New(`^(?i:exit(?:ed)?(?: (?:code|status))?[ :]*)?([0-9]{1,3})$`)
	slurmForm  = lazy.New(`^(?i:exit ?code[ :]*)?([0-9]{1,3}):([0-9]{1,3})$`)
	signalForm = lazy.New(`^(?i:(?:signal|sig)[ -]?)?([0-9]{1,2}|[A-Za-z]+[0-9]?)$`)
)

// explainExit explains an exit code, Slurm's code:signal, or a signal.
func explainExit(c *ops.Call, word string) (ExplainOut, bool) {
	if m := slurmForm.FindStringSubmatch(word); m != nil {
		code, _ := strconv.Atoi(m[1])
		number, _ := strconv.Atoi(m[2])
		if mark, known := slurm.KnownSignalMark(number); known {
			return meaning(c, word, mark), true
		}
		if number == 0 {
			return exitCode(c, word, code)
		}
		return signalled(c, word, number, fmt.Sprintf(lang.Text{EN: "in Slurm's code:signal, signal %d ended it", ZH: "Slurm 的 退出码:信号 形式：被信号 %d 终止"}.In(c.Lang), number))
	}
	if m := exitForm.FindStringSubmatch(word); m != nil {
		code, _ := strconv.Atoi(m[1])
		return exitCode(c, word, code)
	}
	m := signalForm.FindStringSubmatch(word)
	if m == nil {
		return ExplainOut{}, false
	}
	s, known := slurm.SignalNamed(m[1])
	if !known {
		return ExplainOut{}, false
	}
	return signalled(c, word, s.Number, "")
}

// meaning explains an exit code with a meaning of its own.
func meaning(c *ops.Call, word string, m slurm.Meaning) ExplainOut {
	return ExplainOut{Word: word, Kind: "exit code", Says: m.Says.In(c.Lang), Do: m.Do.In(c.Lang)}
}

func exitCode(c *ops.Call, word string, code int) (ExplainOut, bool) {
	if code > 255 {
		return ExplainOut{}, false
	}
	known, signal := slurm.ExplainExitCode(code)
	if signal == 0 {
		return meaning(c, word, known), true
	}
	return signalled(c, word, signal, fmt.Sprintf(lang.Text{EN: "128 + %d: signal %d ended it", ZH: "128 + %d：被信号 %d 终止"}.In(c.Lang), signal, signal))
}

func signalled(c *ops.Call, word string, number int, how string) (ExplainOut, bool) {
	out := ExplainOut{Word: word, Kind: "signal", Says: how}
	s, known := slurm.KnownSignal(number)
	if !known {
		return out, how != ""
	}
	out.Says, out.Do = strings.TrimSpace(how+"\n"+s.Says.In(c.Lang)), s.Do.In(c.Lang)
	out.Facts = []view.Fact{
		{Name: lang.Text{EN: "signal", ZH: "信号"}.In(c.Lang), Value: fmt.Sprintf("%d %s", s.Number, s.Word)},
		{Name: lang.Text{EN: "exit code in a shell", ZH: "shell 中的退出码"}.In(c.Lang), Value: strconv.Itoa(128 + number)},
		{Name: lang.Text{EN: "in Slurm", ZH: "Slurm 中的写法"}.In(c.Lang), Value: "0:" + strconv.Itoa(number)},
	}
	return out, true
}
