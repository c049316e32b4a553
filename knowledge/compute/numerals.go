package compute

import (
	"strconv"
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/lazy"
)

// englishNumber are the words that make up a small number.
var englishNumber = map[string]int{
	"one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9, "ten": 10,
	"eleven": 11, "twelve": 12, "thirteen": 13, "fourteen": 14, "fifteen": 15, "sixteen": 16,
	"seventeen": 17, "eighteen": 18, "nineteen": 19, "twenty": 20, "thirty": 30, "forty": 40,
	"fifty": 50, "sixty": 60, "seventy": 70, "eighty": 80, "ninety": 90,
}

// chineseDigit and chineseUnit make up a Chinese number: 一百二十八.
var (
	chineseDigit = map[rune]int{'零': 0, '一': 1, '二': 2, '两': 2, '三': 3, '四': 4, '五': 5, '六': 6, '七': 7, '八': 8, '九': 9}
	chineseUnit  = map[rune]int{'十': 10, '百': 100, '千': 1000}
)

var (
	dozens = lazy.New(`\b(?:(a|two|three|four|five|six|half a) )?dozen\b`)
	words  = lazy.New(`\b((?:twenty|thirty|forty|fifty|sixty|seventy|eighty|ninety)(?:[- ](?:one|two|three|four|five|six|seven|eight|nine))?|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|thirteen|fourteen|fifteen|sixteen|seventeen|eighteen|nineteen)` +
		`((?: (?:more|gpu|compute|dgx|array|attention|pipeline|transformer))? (?:nodes|gpus|cards|machines|boxes|hosts|servers|layers|heads|experts|replicas|tasks|elements|weeks|hours|days|minutes|stages|at a time|at once)\b| of (?:the|our|my|them|these)\b|-way\b)`)
	// A number in words behind the name of a size: "micro batch two", "TP 八".
	namedWord = lazy.New(`\b((?:tp|pp|cp|dp|ep|vpp|mbs|gbs|micro[- ]?batch(?: size)?|(?:tensor|pipeline|context|data|expert)[- ]parallel\w*|size|degree)(?: (?:of|is|to|at))?[ =:]+)(two|three|four|five|six|seven|eight|nine|ten|twelve|sixteen|twenty|thirty|forty|sixty)\b`)
	namedHan  = lazy.New(`((?:\b(?:tp|pp|cp|dp|ep|vpp|mbs|gbs)|并行度?|micro ?batch|微批|层数|头数)(?:大小)?(?:是|为|取|开|设|设为|设成|等于|=|:| )*)([二两三四五六七八九十百千]{1,7})(?:$|[^\p{Han}]|[的时，路,个])`)
	hans      = lazy.New(`(^|[^零一二两三四五六七八九十百千万几第])([零一二两三四五六七八九十百千]{1,7})( ?(?:台机|台|个节点|节点|个机|机|张卡|张|块卡|卡|个小时|小时|天|分钟|路|层|个头|头|个专家|个注意力头|个微批|个副本|个 ?rank|步|个任务|个样本|个|次|条|份|颗|核|组|段|级))`)
	andHalf   = lazy.New(`(\d+|[一二两三四五六七八九十]+) ?个?(天|小时)半|(\d+) and a half (days|hours)`)
	halves    = strings.NewReplacer(
		"a day and a half", "1.5 days", "one and a half days", "1.5 days", "an hour and a half", "1.5 hours",
		"half a day", "12 hours", "half an hour", "30 minutes", "a quarter of an hour", "15 minutes",
		"一天半", "1.5 天", "一个半小时", "1.5 小时", "半个小时", "30 分钟", "半小时", "30 分钟", "半天", "12 小时",
	)
)

// numerals writes the counts of a folded question in digits: "two dozen
// nodes", "十六张卡", "a day and a half". One stays a word: "one task per node"
// is no count that a question gives.
func numerals(s string) string {
	s = halves.Replace(s)
	s = andHalf.ReplaceAllStringFunc(s, func(m string) string {
		g := andHalf.FindStringSubmatch(m)
		if g[1] == "" {
			g = g[2:]
		}
		if n := chinese(g[1]); n > 0 {
			g[1] = strconv.Itoa(n)
		}
		return g[1] + ".5 " + g[2]
	})
	s = dozens.ReplaceAllStringFunc(s, func(m string) string {
		switch n := dozens.FindStringSubmatch(m)[1]; n {
		case "", "a":
			return "12"
		case "half a":
			return "6"
		default:
			return strconv.Itoa(12 * englishNumber[n])
		}
	})
	s = words.ReplaceAllStringFunc(s, func(m string) string {
		g, n := words.FindStringSubmatch(m), 0
		for _, w := range strings.FieldsFunc(g[1], func(r rune) bool { return r == '-' || r == ' ' }) {
			n += englishNumber[w]
		}
		return strconv.Itoa(n) + g[2]
	})
	s = namedWord.ReplaceAllStringFunc(s, func(m string) string {
		g := namedWord.FindStringSubmatch(m)
		return g[1] + strconv.Itoa(englishNumber[g[2]])
	})
	s = namedHan.ReplaceAllStringFunc(s, func(m string) string {
		g := namedHan.FindStringSubmatch(m)
		return g[1] + strconv.Itoa(chinese(g[2])) + strings.TrimPrefix(m, g[1]+g[2])
	})
	digits := func(m string) string {
		g := hans.FindStringSubmatch(m)
		if n := chinese(g[2]); n > 1 {
			return g[1] + strconv.Itoa(n) + g[3]
		}
		return m
	}
	// Twice: of two counts side by side, as in "三十二台八卡", a pass takes the first.
	return hans.ReplaceAllStringFunc(hans.ReplaceAllStringFunc(s, digits), digits)
}

// chinese reads a Chinese number below ten thousand.
func chinese(s string) int {
	sum, digit := 0, 0
	for _, r := range s {
		if unit, ok := chineseUnit[r]; ok {
			sum, digit = sum+max(digit, 1)*unit, 0
			continue
		}
		digit = chineseDigit[r]
	}
	return sum + digit
}
