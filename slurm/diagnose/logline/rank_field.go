package logline

import (
	"github.com/megatron-ops/megatron-ops/internal/lazy"
)

// A RankField is the field of a log record that tells the rank of its writer. World is 0 where it does not tell the
// number of ranks. Form is the way in which it is written; a logger writes all its records in one.
type RankField struct {
	Rank, World, Form int
}

// InBrackets is the form "[rank 2]", AsSetting "rank=2 ".
const (
	InBrackets = 1
	AsSetting  = 3
)

// rankField matches a rank's field at the beginning of a record, behind times, levels and names of hosts, loggers and source
// files, in three forms: in brackets, "[Rank 2/8 @ gpu1] ", "| rank=2 |"; with a mark behind it, "rank 2: ", "rank 2 on gpu1: ", "进程 2> "; and
// with one before its number or in glog's head, "rank=2 ", "E1127 20:38:30.123 rank2 train.py:33] ".
var rankField = lazy.On("rank|Rank|RANK|进程", `^(?:(?:\[[^\]\[]{0,60}\]|[\d:.,TZ/+-]+|[IWEFC](?: ?\d{4})?\b|(?i:info|warn(?:ing)?|error|critical|fatal|debug|exception)\b|`+
	`[\w./-]{1,60}(?::\w+)*[:|\]]|[|:-])[ :-]*){0,8}?`+
	`(?:[\[(<{|] ?(?:[\w.-]{1,40}[ :,])?`+rankWord+`[ :=_#-]{0,2}(\d{1,6})(?: ?(?:/|of) ?(\d{1,6}))?(?:[ ,;@][^\])>}|]{0,40})? ?[\])>}|]:? ?`+
	`|`+rankWord+`[ :=_-]?(\d{1,6})(?: ?(?:/|of) ?(\d{1,6}))?(?: on [\w.-]{1,60})? ?(?:[:：|>] ?|- )`+
	`|`+rankWord+`(?:[:=](\d{1,6}) | ?(\d{1,6}) [\w.]+:\d+\] ))`)

const rankWord = `(?:[Gg]lobal[ _-]?)?(?:[Rr]ank|RANK|进程)`

// CutRank removes everything up to the end of a rank's field from a record.
func CutRank(line string) (rest string, f RankField, ok bool) {
	g := rankField.FindStringSubmatch(line[:min(len(line), 200)])
	if g == nil {
		return line, f, false
	}
	for i, n := range []string{g[1], g[3], g[5] + g[6]} {
		if n != "" {
			f.Rank, f.Form = mustNumber(n), i+1
		}
	}
	f.World = mustNumber(g[2] + g[4])
	return line[len(g[0]):], f, true
}

func mustNumber(s string) int {
	n, _ := Number(s)
	return n
}
