package ops

import (
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/lang"
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

// OnceMore returns the commands that run a job once more, as a new job and under its
// old id, where words ask for that; nil for other words.
func OnceMore(words []string) []Rerun {
	if len(words) == 0 || len(words) > 2 || !onceMore[strings.ToLower(words[0])] {
		return nil
	}
	job := "JOB"
	if len(words) == 2 {
		if job = words[1]; !slurm.IsJobID(job) {
			return nil
		}
	}
	return Reruns(job)
}

// Reruns returns the commands that run that job once more.
func Reruns(job string) []Rerun {
	return []Rerun{
		{"submit --from " + job, lang.Text{EN: "submits it as a new job", ZH: "作为新作业再次提交"}},
		{"requeue " + job, lang.Text{EN: "puts it back into the queue under its id", ZH: "以原作业号重新排队"}},
	}
}
