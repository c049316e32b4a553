package operations

import (
	"cmp"
	"slices"
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/shellword"
	"github.com/megatron-ops/megatron-ops/slurm"
)

// onceMore holds words that ask to run a job once more. None of them is a command,
// because two commands do it in different ways.
var onceMore = map[string]bool{
	"retry": true, "rerun": true, "resubmit": true, "restart": true, "重试": true, "重跑": true, "重新提交": true, "重新运行": true,
}

// A Rerun is a command that runs a job once more.
type Rerun struct {
	Command string
	Does    lang.Text // what the command does, as a phrase that follows it
}

// OnceMore returns the commands that run a job once more, as a new job and under its old id, where words
// ask for that; nothing for other words. Flags may follow the job: then it returns the commands that take
// them, and as refused which of them another command does not take.
func OnceMore(words []string) (all []Rerun, refused *ops.Error) {
	if len(words) == 0 || !onceMore[strings.ToLower(words[0])] {
		return nil, nil
	}
	if len(words) == 1 || strings.HasPrefix(words[1], "-") {
		return Reruns("JOB"), nil
	}
	job, flags := words[1], words[2:]
	// "restart training" may be plain words; with flags behind it, the word is a job's name.
	if len(flags) == 0 && !slurm.IsJobID(job) || len(flags) > 0 && !strings.HasPrefix(flags[0], "-") {
		return nil, nil
	}
	given := ""
	for _, f := range flags {
		given += " " + shellword.POSIX(f)
	}
	for _, r := range Reruns(shellword.POSIX(job)) {
		name, _, _ := strings.Cut(r.Command, " ")
		op, _ := Lookup(name)
		own := []string{job}
		if name == "submit" {
			own = []string{"--from", job}
		}
		if e := ops.AsError(op.Words(op.NewIn(), slices.Concat(own, flags))); e != nil {
			refused = cmp.Or(refused, e)
			continue
		}
		r.Command += given
		all = append(all, r)
	}
	if refused != nil {
		refused.Message = lang.Text{EN: "there is no command %q; %s", ZH: "没有命令 %q；%s"}.With(words[0], refused.Message)
		if len(all) > 0 {
			refused.Message = lang.Text{EN: "%s: %s", ZH: "%s：%s"}.With(refused.Message, refused.Fix)
		}
	}
	return all, refused
}

// Reruns returns the commands that run that job once more.
func Reruns(job string) []Rerun {
	return []Rerun{
		{"submit --from " + job, lang.Text{EN: "submits it as a new job", ZH: "作为新作业再次提交"}},
		{"requeue " + job, lang.Text{EN: "puts it back into the queue under its id", ZH: "以原作业号重新排队"}},
	}
}
