package eval_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/knowledge"
	"github.com/megatron-ops/megatron-ops/knowledge/eval"
	"github.com/megatron-ops/megatron-ops/skills"
)

// The minimal shares of right answers without a model.
const (
	floor       = 0.97
	floorByKind = 0.94
)

func TestBuiltInAnswersReachTheFloor(t *testing.T) {
	bySkill, err := eval.Load(eval.Questions)
	require.NoError(t, err)
	var all []eval.Question
	for _, s := range skills.All() {
		require.NotEmpty(t, bySkill[s.Name], "%s has no questions", s.Name)
		all = append(all, bySkill[s.Name]...)
	}
	require.GreaterOrEqual(t, len(all), 150)
	score, err := eval.Run(context.Background(), knowledge.New(knowledge.Options{}), all)
	require.NoError(t, err)
	for _, f := range score.Failed {
		t.Logf("%s %q: %s", f.ID, f.Q, f.Why)
	}
	require.GreaterOrEqual(t, score.Share(), floor)
	for key, c := range score.By {
		require.GreaterOrEqual(t, float64(c.Passed)/float64(c.Total), floorByKind, key)
	}
}

func TestJudge(t *testing.T) {
	q := eval.Question{Lang: "zh", Must: [][]string{{"scancel"}}}
	require.Empty(t, eval.Judge(q, knowledge.Answer{Answer: "用 `scancel` 取消"}))
	require.Equal(t, "not in Chinese", eval.Judge(q, knowledge.Answer{Answer: "scancel JOB"}))
	require.Equal(t, "missing scancel", eval.Judge(q, knowledge.Answer{Answer: "不知道"}))
	require.Equal(t, "declined", eval.Judge(q, knowledge.Answer{Refused: true}))
	require.NotEmpty(t, eval.Judge(eval.Question{Refuse: true}, knowledge.Answer{Answer: "yes"}))
}
