package index_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/knowledge/index"
)

// A word that nothing holds is told from a colloquial word, a slip and a value.
func TestStrangersAreWordsThatNothingHolds(t *testing.T) {
	x := index.New([]index.Doc{{
		Asks:  []string{"how do I start a training on several nodes", "怎么在多个节点上启动训练"},
		Title: "Start a training 启动训练",
		Body:  "Submit it with sbatch; a weather station is not needed.",
	}})
	for text, want := range map[string][]string{
		"how do I kick off training on two nodes":    nil,
		"how do I plonk a traiining on nodes":        nil, // a verb, a slip
		"start training on gpu-13 as user ottoline":  nil, // values
		"start /opt/zork/run.sh on a node":           nil,
		"how do I start GROMACS on two nodes":        {"gromacs"},
		"how do I start a zeppelin on two nodes":     {"zeppelin"},
		"what is the salary of whoever starts nodes": {"salary"},
		"训练老是起不来怎么办":                                 nil,
		"节点上怎么煮螺蛳粉":                                  {"煮螺蛳粉"},
		"训练期间天气如何":                                   {"天气"},
	} {
		var got []string
		for _, s := range x.Strangers(text, -1) {
			got = append(got, s.Word)
		}
		require.Equal(t, want, got, text)
	}
	require.Empty(t, x.Strangers("does the weather matter to a training", 0), "the text itself speaks of it")
	require.NotEmpty(t, x.Strangers("does the weather matter to a training", -1))
}
