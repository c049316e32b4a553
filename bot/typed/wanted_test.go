package typed_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/bot/typed"
)

func TestWhatASentenceAsksForIsACommand(t *testing.T) {
	for text, want := range map[string]string{
		"please show me my jobs":            "list",
		"which of my running jobs are left": "list",
		"请列出我的作业":                           "list",
		"how many GPUs are free?":           "nodes",
		"any idle nodes in dev":             "nodes",
		"现在有多少空闲 GPU？":                      "nodes",
		"What can you do?":                  "help",
		"你能做什么？":                            "help",
		"which nodes are down?":             "nodes --drained",
		"哪些节点有问题？":                          "nodes --drained",
		"what happens when a node is down?": "",
		"which jobs failed today?":          "list --all --state FAILED,TIMEOUT,NODE_FAIL,OUT_OF_MEMORY",
		"show failed jobs":                  "list --all --state FAILED,TIMEOUT,NODE_FAIL,OUT_OF_MEMORY",
		"那个失败的任务呢":                          "list --all --state FAILED,TIMEOUT,NODE_FAIL,OUT_OF_MEMORY",
		"失败的任务有哪些":                          "list --all --state FAILED,TIMEOUT,NODE_FAIL,OUT_OF_MEMORY",
		"怎么重跑失败的任务":                         "",
		"who is using all the gpus":         "list --user all",
		"who is running what":               "list --user all",
		"list everyone's jobs":              "list --user all",
		"cancel everyone's jobs":            "",
		"谁在用卡":                              "list --user all",
		"谁占了所有的gpu":                         "list --user all",
		"is the cluster down?":              "nodes",
		"集群挂了吗":                             "nodes",
		"what is grace running?":            "list --user grace",
		"grace 在跑什么？":                       "list --user grace",
		"which partitions can I use?":       "partitions",
		"which partition is best for MoE?":  "",
		"open my settings":                  "settings",
		"打开设置":                              "settings",
		"how do I list my jobs":             "", // one does it oneself
		"怎么查看空闲的 GPU":                       "",
		"what does --gpus-per-node do":      "",
		"what is NCCL_DEBUG":                "",
	} {
		name, ok := typed.WantedCommand(text)
		require.Equal(t, want, name, text)
		require.Equal(t, want != "", ok, text)
	}
}

func TestNumbersInASentenceAreJobsWhereItAsksOfJobs(t *testing.T) {
	for text, want := range map[string]string{
		"#5001":                             "status 5001",
		"what's up with job 5001?":          "status 5001",
		"what is the loss of 5001?":         "metrics 5001",
		"show me the last lines of 5001.":   "logs 5001",
		"compare 5001 and 5002":             "compare 5001 5002",
		"why did 5001 fail":                 "diagnose 5001",
		"5001 怎么了？":                         "diagnose 5001",
		"5001怎么了？":                          "diagnose 5001",
		"对比 5001 和 5002_3":                  "compare 5001 5002_3",
		"is a sequence length of 4096 fine": "",
		"on 12 GPUs, why is it slow":        "diagnose",
		"what is llama-4096":                "",
		"see 10.0.0.1:5001/x for the loss":  "metrics",
	} {
		name, ids := typed.JobNumbers(text)
		require.Equal(t, want, strings.TrimSpace(name+" "+strings.Join(ids, " ")), text)
	}
}

func TestASentenceAsksForNews(t *testing.T) {
	for text, want := range map[string]string{
		"tell us here when moe-30b fails":       "name=moe-30b fails",
		"Please ping me when 4711 finishes.":    "4711 failed completed",
		"tell me when it fails":                 "it fails",
		"ping me when 4711 is done":             "4711 failed completed",
		"notify this channel if llama-* starts": "name=llama-* starts",
		"4711 失败了告诉我":                           "4711 失败",
		"moe-30b 完成时通知我们":                       "name=moe-30b 完成",
		"tell me when NCCL fails and why":       "",
		"tell me about checkpoints":             "",
	} {
		words, ok := typed.WantedSubscription(text)
		require.Equal(t, want, strings.Join(words, " "), text)
		require.Equal(t, want != "", ok, text)
	}
}

func TestThanksWantNoAnswer(t *testing.T) {
	for text, want := range map[string]bool{
		"thanks!": true, "Thank you so much": true, "ok, thanks.": true, "谢谢": true, "好的，谢谢！": true, "谢谢啦": true, "谢了": true, "thx man": true,
		"thanks, and why did it fail?": false, "no thanks to NCCL": false, "谢谢，那为什么失败？": false,
	} {
		require.Equal(t, want, typed.Thanks(text), text)
	}
}
