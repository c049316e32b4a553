package compute_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/knowledge/compute"
)

// What a person wants to keep is not cancelled, however they say it.
func TestTheCommandKeepsWhatTheQuestionKeeps(t *testing.T) {
	t.Parallel()
	for q, want := range map[string]string{
		"cancel all my jobs except 123 and 456":                          "`squeue --me -h -o %F | sort -u | grep -vxE '123|456' | xargs -r scancel`",
		"取消除了 123 以外的所有作业":                                               "`squeue --me -h -o %F | sort -u | grep -vxE '123' | xargs -r scancel`",
		"取消所有作业，但 123 别动":                                                "grep -vxE '123' |",
		"取消所有作业，123 除外":                                                  "grep -vxE '123' |",
		"把我的作业都取消，只留 5521":                                               "grep -vxE '5521' |",
		"keep 123 and 456, cancel everything else":                       "grep -vxE '123|456' |",
		"don't kill 123, but cancel all the other jobs":                  "grep -vxE '123' |",
		"kill everything but the one named X":                            "`squeue --me -h -o '%F %j' | awk '$2 != \"X\" {print $1}' | sort -u | xargs -r scancel`",
		"stop all my jobs other than 77 and the ones named eval and t-1": "awk '$1 != \"77\" && $2 != \"eval\" && $2 != \"t-1\" {print $1}'",
		"除 llama-8b 外全部取消":                                               "$2 != \"llama-8b\"",
		"how do I cancel all jobs except job 4711_3":                     "`squeue --me -h -r -o %i | grep -vxE '4711_3' |",
		"scancel all jobs apart from 55 and 66_2":                        "-r -o %i | grep -vxE '55(_[0-9]+)?|66_2' |",
		"取消数组 88 里除了 3 和 5 以外的任务":                                        "`squeue -j 88 -h -r -o %i | grep -vxE '88_3|88_5' |",
		"scancel all my pending jobs in partition dev except array 88":   "`squeue --me -t PENDING -p dev -h -o %F | sort -u | grep -vxE '88' |",
		"cancel all 30 jobs but 123":                                     "grep -vxE '123' |",
		"cancel all my jobs except the running ones":                     "`scancel -u $USER -t PENDING`",
	} {
		got, ok := compute.Answer(q, lang.Of(q))
		require.True(t, ok && got.Asked(), q)
		require.Contains(t, got.Text, want, q)
		require.True(t, compute.Keeps(q), q)
	}
	for _, q := range []string{
		"cancel job 123", "how do I exclude nodes", "cancel all my jobs", "cancel all my jobs except the newest", "cancel all jobs except the last 3",
		"cancel all my jobs but only the pending ones", "stop all jobs on gpu01 except 123", "cancel all jobs older than 123", "cancel job 5 but keep all the others",
		"cancel 123 and 456 but leave all other jobs alone", "cancel all jobs of everyone except 123", "why did slurm cancel all my jobs except 123",
		"all my jobs except 123 were cancelled", "为什么除了 123 所有作业都被取消了", "数组 88 保留 3，其余取消", "把 123 取消，其他的不要动",
		"delete all checkpoints except 1000 and 2000", "kill all processes except pid 123", "stop everything except 4 GPUs",
	} {
		require.False(t, compute.Keeps(q), q)
	}
}
