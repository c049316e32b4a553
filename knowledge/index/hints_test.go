package index_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/knowledge/index"
)

// TestHostNamesSlotsAndTimes has host names, array slots and times in their usual forms,
// and texts that only resemble them.
func TestHostNamesSlotsAndTimes(t *testing.T) {
	t.Parallel()
	for key, texts := range map[string][]string{
		"=nodelist": {"why is node-3 idle", "GPU07 is broken", "look at dgx12.", "n1"},
		"%slots":    {"--array=1-50%5"},
		"=begin": {
			"run it at 4 pm", "at 11:30 PM", "start 4p.m. sharp", "at 18:30", "six O'Clock", "at midnight", "on Monday", "next tuesday", "Saturday", "on friday",
			"in the morning", "in the Evening", "in the afternoon", "八点半", "十二点开始", "12点跑", "两点再跑", "两点", "周一", "星期日", "礼拜天",
		},
	} {
		for _, text := range texts {
			require.True(t, has(text, key), "%s: %s", key, text)
		}
	}
	for key, texts := range map[string][]string{
		"=nodelist": {"node 3", "h100 and bf16", "my-node-3x", "a-gpu7", "8 nodes"},
		"%slots":    {"50% of 5", "a %5"},
		"=begin":    {"4 parameters", "at 18:305", "at 18", "someday", "in the middle", "有一点慢", "两点之间", "周期", "10 amps"},
	} {
		for _, text := range texts {
			require.False(t, has(text, key), "%s: %s", key, text)
		}
	}
}

func has(text, key string) bool {
	return slices.ContainsFunc(index.Terms(text), func(t index.Term) bool { return t.Key == key })
}
