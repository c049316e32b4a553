package ops

import (
	"strings"

	"github.com/megatron-ops/megatron-ops/slurm"
)

// onceMore are words for running a job once more. None is a command: two commands do it,
// and they differ.
var onceMore = map[string]bool{
	"retry": true, "rerun": true, "resubmit": true, "restart": true, "重试": true, "重跑": true, "重新提交": true, "重新运行": true,
}

// OnceMore are the commands that words ask for which run a job once more: as a new job, and
// under its id. Other words have none.
func OnceMore(words []string) (anew, requeue string, ok bool) {
	if len(words) == 0 || len(words) > 2 || !onceMore[strings.ToLower(words[0])] {
		return "", "", false
	}
	job := "JOB"
	if len(words) == 2 {
		if job = words[1]; !slurm.IsJobID(job) {
			return "", "", false
		}
	}
	return "submit --from " + job, "requeue " + job, true
}
