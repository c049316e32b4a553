package pattern

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestWhatALineSaysOfWhatItsProgramDoesNext(t *testing.T) {
	for text, goes := range map[string]bool{
		"micro batch 16 does not fit, trying 8":             true,
		"[rank 1] WARNING: no room, trying with half":       true,
		"dashboard is away, going on without it":            true,
		"could not write x, trying again in 0.2 s":          true,
		"rank 3: the store does not answer, attempt 1/5":    true,
		"read failed, attempt 1 of 3, trying again":         true,
		"写入失败，重试":                                           true,
		"自动调参: 24 放不下, 改为 12":                               true,
		"rank 3: the store does not answer, attempt 5 of 5": false,
		"read failed, attempt 3 of 3, trying again":         false,
		"retrying again and again, giving up":               false,
		"rank 3: training failed":                           false,
		"attempt 1 of 3":                                    false, // it says what comes, and not that anything failed
		"trying 8":                                          false,
		"training goes on from iteration 10":                false,
		"the file is broken, please check it and try again": false,
		"no data, cannot go on without it, exiting":         false,
		"从检查点 1000 继续训练":                                    false,
		"训练失败，无法继续":                                         false,
		"数据损坏，请检查后重试":                                       false,
		"not tried, entry 9":                                false,
	} {
		require.Equal(t, goes, GoesOn(text), text)
	}
}
