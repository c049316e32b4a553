package typed

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestASentenceAboutAJobIsItsOperation(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"whats wrong with job 3":                              "diagnose 3",
		"What's wrong with job #4711?":                        "diagnose 4711",
		"why did job 4711 fail":                               "diagnose 4711",
		"job 4711_3 crashed, what happened":                   "diagnose 4711_3",
		"why is job 12 pending?":                              "status 12",
		"how is job 12 doing":                                 "status 12",
		"is job 12 still running?":                            "status 12",
		"when will job 12 start":                              "status 12",
		"作业 4711 怎么了":                                         "diagnose 4711",
		"任务4711为什么失败":                                         "diagnose 4711",
		"cancel job 7 please":                                 "cancel 7",
		"please cancel job 7":                                 "cancel 7",
		"can you cancel 7?":                                   "cancel 7",
		"取消作业 7":                                              "cancel 7",
		"帮我把 7 取消掉":                                           "cancel 7",
		"不要取消 7":                                              "",
		"don't cancel 7":                                      "",
		"what happens if I cancel job 7":                      "",
		"show me the logs of 9":                               "logs 9",
		"rerun job 3":                                         "again 3",
		"what is job 6 doing":                                 "status 6",
		"which nodes is job 6 on":                             "status 6",
		"is job 6 stuck?":                                     "diagnose 6",
		"4711 作业":                                             "",
		"作业4711挂了":                                            "diagnose 4711",
		"作业 12 跑到哪了":                                          "status 12",
		"作业 12 为什么一直在排队？":                                     "status 12",
		"作业12什么时候能开始":                                         "status 12",
		"why does job 12 need CUDA_DEVICE_MAX_CONNECTIONS=32": "",
		"how do I cancel job 12":                              "",
		"how do I cancel job 12 of an array of 40":            "",
		"what does exit code 137 mean":                        "",
		"my job died with SIGKILL":                            "",
		"作业失败了怎么办":                                            "",
		"一个作业 8 卡够吗":                                          "",
		"why did job 4711 fail after we moved it from gpu01 to gpu02?": "",
	} {
		name, id, ok := AboutJob(text)
		got := ""
		if ok {
			got = name + " " + id
		}
		require.Equal(t, want, got, text)
	}
}

func TestFillersBeforeAJobsIdAreLeftOut(t *testing.T) {
	t.Parallel()
	for _, row := range [][2][]string{
		{{"cancel", "job", "4711"}, {"cancel", "4711"}},
		{{"cancel", "#4711"}, {"cancel", "4711"}},
		{{"logs", "for", "job", "4711", "--tail", "5"}, {"logs", "4711", "--tail", "5"}},
		{{"取消", "作业", "4711"}, {"取消", "4711"}},
		{{"submit", "the", "job"}, {"submit", "the", "job"}},
		{{"ask", "job", "4711"}, {"ask", "job", "4711"}},
		{{"status"}, {"status"}},
	} {
		require.Equal(t, row[1], Unglue(row[0]))
	}
}

func TestAShortQuestionThatNamesNothingElseAsksOn(t *testing.T) {
	t.Parallel()
	for text, on := range map[string]bool{
		"which node?": true, "was it like that last time?": true, "should I retry": true, "哪个节点？": true, "上次也是这样吗？": true,
		"what does --tp-comm-overlap do on that node?": false, "why does CUDA_DEVICE_MAX_CONNECTIONS have to be 1 here": false,
		"why did job 4711 fail": false, "which\nnode": false,
		"how do I choose between tensor parallel and pipeline parallel for a node": false, "在 64 个节点上训练 70B 模型时应该怎样选择张量并行和流水线并行": false,
	} {
		require.Equal(t, on, AsksOn(text), text)
	}
}
