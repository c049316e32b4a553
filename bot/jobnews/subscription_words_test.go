package jobnews

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/slurm"
)

// What is typed is read, kept under its key, said to a reader, and typed again by
// the button that ends it.
func TestASubscriptionIsReadKeptAndSaid(t *testing.T) {
	t.Parallel()
	for typed, want := range map[string]struct{ key, shown, zh string }{
		"":                               {"all@T1/C1", "all jobs", "全部作业"},
		"all":                            {"all@T1/C1", "all jobs", "全部作业"},
		"@grace":                         {"user/grace@T1/C1", "jobs of grace", "grace 的作业"},
		"grace failed":                   {"user/grace failed@T1/C1", "jobs of grace · when one fails", "grace 的作业 · 失败时"},
		"所有 失败":                          {"all failed@T1/C1", "all jobs · when one fails", "全部作业 · 失败时"},
		"all 失败 完成":                      {"all completed failed@T1/C1", "all jobs · when one fails · when one completes", "全部作业 · 失败时 · 完成时"},
		"project=research digest":        {"account/research digest@T1/C1", "jobs of the project research · every morning, in one message", "项目 research 的作业 · 每天早上汇总"},
		"分区=gpu starts":                  {"partition/gpu started@T1/C1", "jobs in the partition gpu · when one starts", "分区 gpu 的作业 · 开始时"},
		"name=llama-* expected expected": {"name/llama-* expected@T1/C1", "jobs named llama-* · an alarm while none waits or runs", "名为 llama-* 的作业 · 没有排队或运行时报警"},
		"4711":                           {"job/slurm/4711@T1/C1", "job 4711", "作业 4711"},
	} {
		s, bad := readSubscription(strings.Fields(typed), "slurm")
		require.Empty(t, bad, typed)
		s.place.Team, s.place.Channel = "T1", "C1"
		require.Equal(t, want.key, s.key(), typed)
		require.Equal(t, want.shown, s.shown(lang.EN), typed)
		require.Equal(t, want.zh, s.shown(lang.ZH), typed)
		back, ok := parseSubscription(s.key())
		require.True(t, ok)
		require.Equal(t, s.key(), back.key())
		words := strings.Fields(strings.ReplaceAll(s.words(), " --cluster slurm", ""))
		again, bad := readSubscription(words, "slurm")
		require.Empty(t, bad, s.words())
		again.place = s.place
		require.Equal(t, s.key(), again.key())
	}
	for typed, bad := range map[string]string{
		"colour=red": "colour=red", "user=": "user=", "a@b": "a@b", "grace research": "research", "user=a/b": "user=a/b",
		"name=x[": "name=x[", "我的 失败": "我的",
	} {
		_, got := readSubscription(strings.Fields(typed), "slurm")
		require.Equal(t, bad, got, typed)
	}
	for _, key := range []string{"all", "@T1/C1", "all@T1"} {
		_, ok := parseSubscription(key)
		require.False(t, ok, key)
	}
}

func TestASubscriptionTellsOfItsJobsInItsStates(t *testing.T) {
	t.Parallel()
	job := func(state slurm.State) slurm.Job {
		return slurm.Job{ID: "4711", Cluster: "slurm", Name: "Llama-8b", User: "grace", Account: "research", Partition: "gpu", State: state}
	}
	for typed, tells := range map[string][]slurm.State{
		"all":                   {slurm.Pending, slurm.Running, slurm.Completed, slurm.Failed, slurm.Cancelled, slurm.Timeout},
		"grace failed":          {slurm.Failed, slurm.Timeout},
		"project=research done": {slurm.Completed},
		"partition=gpu started": {slurm.Running},
		"name=llama-* failed completed cancelled": {slurm.Completed, slurm.Failed, slurm.Cancelled, slurm.Timeout},
		"4711 cancelled":         {slurm.Cancelled},
		"ada":                    nil,
		"project=other":          nil,
		"name=llama":             nil,
		"4712":                   nil,
		"all digest":             nil,
		"name=llama-8b expected": nil,
	} {
		s, bad := readSubscription(strings.Fields(typed), "slurm")
		require.Empty(t, bad)
		var told []slurm.State
		for _, state := range []slurm.State{slurm.Pending, slurm.Running, slurm.Completed, slurm.Failed, slurm.Cancelled, slurm.Timeout} {
			if s.shows(job(state)) {
				told = append(told, state)
			}
		}
		require.Equal(t, tells, told, typed)
	}
}
