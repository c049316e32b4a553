package compute

import (
	"strconv"
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/lazy"
)

// counted are the words for small numbers. One is not among them: "one task
// per node" is no count that a question gives.
var counted = map[string]int{
	"two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8,
	"nine": 9, "ten": 10, "eleven": 11, "twelve": 12, "sixteen": 16, "twenty": 20,
	"thirty-two": 32, "sixty-four": 64,
	"两": 2, "二": 2, "三": 3, "四": 4, "五": 5, "六": 6, "七": 7, "八": 8, "九": 9, "十": 10,
	"十二": 12, "十六": 16, "二十": 20, "三十二": 32, "六十四": 64,
}

var (
	dozens = lazy.New(`\b(a|two|three|four|five|six|half a)? ?dozen\b`)
	words  = lazy.New(`(\b)(two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|sixteen|twenty|thirty-two|sixty-four)( (?:more |gpu |compute |dgx |array |attention |pipeline |transformer )?(?:nodes|gpus|cards|machines|boxes|hosts|servers|layers|heads|experts|replicas|tasks|elements|hours|days|minutes|stages)\b)`)
	hans   = lazy.New(`(^|[^一二三四五六七八九十百千万两几第])(六十四|三十二|二十|十六|十二|十|两|三|四|五|六|七|八|九)( ?(?:台机|台|个节点|节点|个机|机|张卡|张|块卡|卡|个小时|小时|天|分钟))`)
	halves = strings.NewReplacer(
		"a day and a half", "1.5 days", "one and a half days", "1.5 days", "an hour and a half", "1.5 hours",
		"half a day", "12 hours", "half an hour", "30 minutes", "a quarter of an hour", "15 minutes",
		"一天半", "1.5 天", "一个半小时", "1.5 小时", "半个小时", "30 分钟", "半小时", "30 分钟", "半天", "12 小时",
	)
)

// numerals writes the counts of a folded question in digits: "two dozen
// nodes", "十六张卡", "a day and a half".
func numerals(s string) string {
	s = halves.Replace(s)
	s = dozens.ReplaceAllStringFunc(s, func(m string) string {
		n, _, _ := strings.Cut(m, "dozen")
		switch n = strings.TrimSpace(n); n {
		case "", "a":
			return "12"
		case "half a":
			return "6"
		default:
			return strconv.Itoa(12 * counted[n])
		}
	})
	for _, re := range []*lazy.Pattern{words, hans} {
		s = re.ReplaceAllStringFunc(s, func(m string) string {
			g := re.FindStringSubmatch(m)
			return g[1] + strconv.Itoa(counted[g[2]]) + g[3]
		})
	}
	return s
}
