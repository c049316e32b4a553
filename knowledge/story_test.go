package knowledge_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/knowledge"
)

// What people tell beside their question neither hides it nor answers another.
func TestStoryBesideQuestion(t *testing.T) {
	a := knowledge.New(knowledge.Options{})
	for _, c := range []struct{ q, holds string }{
		{"my husband waits in the car, how do i hold a queued job until i release it", "scontrol hold"},
		{"we have guests for dinner, mail me when the job fails", "--mail-type"},
		{"going to my sister's wedding. how do I see when a pending job is expected to start", "--start"},
		{"老婆在等我吃饭 怎么看我的作业优先级由什么组成", "sprio"},
		{"孩子在哭 前一个作业成功结束后才跑第二个 提交时怎么写", "afterok"},
		// no question about the field, though a word of it stands there
		{"my husband waits in the car, what should we cook", ""},
		{"my dentist has a long queue, can i hold my place and come back later", ""},
		{"how do i stop my dog from barking at the node outside", ""},
		{"my wife uses ray on kubernetes, how does she set the number of workers", ""},
		{"kids are sick, is job 55120 done yet", ""},
		{"陪孩子写作业老发火 有什么办法", ""},
		{"点杯咖啡 顺便看看我的作业跑完没", ""},
	} {
		t.Run(c.q, func(t *testing.T) {
			ans, err := a.Ask(context.Background(), knowledge.Question{Text: c.q})
			require.NoError(t, err)
			require.Equal(t, c.holds == "", ans.Refused, ans.Answer)
			require.Contains(t, ans.Answer, c.holds)
		})
	}
}
