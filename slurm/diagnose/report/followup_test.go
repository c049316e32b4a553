package report_test

import (
	"testing"
	"time"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/diagnosetest"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/outcome"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/report"
	"github.com/stretchr/testify/require"
)

// stale is the diagnosis of rank 3 on gpu07, whose node lost its storage.
func stale(t *testing.T) report.Report {
	t.Helper()
	return diagnosetest.With(t, "[2026-06-11 10:00:00] iteration      120/  500000 | consumed samples: 64 | elapsed time per iteration (ms): 4000.0 "+
		"| lm loss: 2.1E+00 |\n"+
		"gpu08: [rank5]: loading\n gpu08: [rank6]:   File \"/w/train.py\", line 9, in read\n"+
		"gpu07: [rank3]: Traceback (most recent call last):\ngpu07: [rank3]:   File \"/w/train.py\", line 9, in read\n"+
		"gpu07: [rank3]: OSError: [Errno 116] Stale file handle\n"+
		"srun: error: gpu07: task 3: Exited with exit code 1\n", diagnose.Context{JobState: "FAILED"})
}

func TestFollowUpsAreAnsweredFromTheEvidence(t *testing.T) {
	r := stale(t)
	require.Equal(t, outcome.Filesystem, r.Class)
	for _, c := range []struct{ question, en, zh string }{
		{"why did it fail?", "Stale file handle (slurm-7.out:6)", "slurm-7.out:6"},
		{"为什么失败？", "Stale file handle", "Stale file handle"},
		{"which node?", "gpu07. A retry should avoid gpu07.", "gpu07。重试时应避开 gpu07。"},
		{"哪台机器？", "gpu07", "gpu07"},
		{"which rank was it", "Rank 3, node gpu07.", "rank 3，节点 gpu07。"},
		{"should I exclude something?", "gpu07 (--exclude).", "gpu07（--exclude）。"},
		{"how many ranks were hurt", "No other rank reports a consequence.", "没有其他 rank"},
		{"is it worth a retry?", "Yes, without gpu07.", "可以，但要避开 gpu07。"},
		{"what should I do now", "--exclude=gpu07", "--exclude=gpu07"},
		{"怎么办", "--exclude=gpu07", "--exclude=gpu07"},
		{"whose fault is it?", "the administrators", "管理员"},
		{"is it the hardware?", "the administrators", "管理员"},
		{"是硬件问题还是代码问题？", "the administrators", "管理员"},
		{"is this the first time?", "No earlier run", "没有同名的更早一次运行"},
		{"what is the actual error", "slurm-7.out:6", "slurm-7.out:6"},
		{"when did it happen", "the last iteration was 120", "第 120 次"},
		{"show me the line", "slurm-7.out:6", "slurm-7.out:6"},
		{"was it like that last time?", "No earlier run of the same name is known.", "没有同名的更早一次运行。"},
	} {
		for l, want := range map[lang.Lang]string{lang.EN: c.en, lang.ZH: c.zh} {
			got, ok := r.FollowUp(c.question, nil, l)
			require.True(t, ok, c.question)
			require.Contains(t, got, want, c.question)
		}
	}
	_, ok := r.FollowUp("sing me a song", nil, lang.EN)
	require.False(t, ok)
}

func TestLastTimeIsComparedByCauseNodeAndLine(t *testing.T) {
	r, same := stale(t), stale(t)
	answer := func(earlier report.Report) string {
		got, ok := r.FollowUp("was it like that last time?", &earlier, lang.EN)
		require.True(t, ok)
		return got
	}
	require.Contains(t, answer(same), "Yes, the same cause")
	require.Contains(t, answer(same), "On the same node, gpu07.")
	require.Contains(t, answer(same), "With the same line.")
	elsewhere := stale(t)
	other := "gpu09"
	elsewhere.RootNode = &other
	require.Contains(t, answer(elsewhere), "Not on the same node.")
	require.Contains(t, answer(diagnosetest.With(t, diagnosetest.Raised("KeyError: 'x'"), diagnose.Context{JobState: "FAILED"})), "No: the run before failed for another reason.")
	fresh := int64(time.Minute / time.Second)
	require.Contains(t, answer(diagnosetest.With(t, "[after training is done] datetime: 2026-06-11 10:00:00\n",
		diagnose.Context{SecondsSinceLastWrite: &fresh})), "No: the run before did not fail.")
	require.True(t, report.AsksForEarlier("上次也这样吗"))
	require.False(t, report.AsksForEarlier("which node?"))
}

func TestFollowUpsOfAHealthyRun(t *testing.T) {
	r := diagnosetest.With(t, "[after training is done] datetime: 2026-06-11 10:00:00\n", diagnose.Context{JobState: "COMPLETED"})
	for _, q := range []string{"why did it fail?", "which node?", "which rank?", "should I rerun it?"} {
		got, ok := r.FollowUp(q, nil, lang.EN)
		require.True(t, ok)
		require.Contains(t, got, "nothing failed", q)
	}
	got, _ := r.FollowUp("what should I do?", nil, lang.EN)
	require.Equal(t, "Nothing.", got)
}
