package compute

import (
	"strconv"
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/lazy"
)

// englishNumber holds the words of English numbers below a hundred.
var englishNumber = map[string]int{
	"one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9, "ten": 10,
	"eleven": 11, "twelve": 12, "thirteen": 13, "fourteen": 14, "fifteen": 15, "sixteen": 16,
	"seventeen": 17, "eighteen": 18, "nineteen": 19, "twenty": 20, "thirty": 30, "forty": 40,
	"fifty": 50, "sixty": 60, "seventy": 70, "eighty": 80, "ninety": 90,
}

// chineseDigit and chineseUnit hold the characters of Chinese numbers, such as 一百二十八.
var (
	chineseDigit = map[rune]int{'零': 0, '一': 1, '二': 2, '两': 2, '三': 3, '四': 4, '五': 5, '六': 6, '七': 7, '八': 8, '九': 9}
	chineseUnit  = map[rune]int{'十': 10, '百': 100, '千': 1000}
)

// smallNumber matches an English number from two to ninety-nine. countable matches things
// that questions count.
const (
	onesWord    = `two|three|four|five|six|seven|eight|nine`
	smallNumber = `(?:twenty|thirty|forty|fifty|sixty|seventy|eighty|ninety)(?:[- ](?:one|` + onesWord + `))?|` + onesWord +
		`|ten|eleven|twelve|thirteen|fourteen|fifteen|sixteen|seventeen|eighteen|nineteen`
	countable = `nodes?|gpus?|cards?|machines?|boxe?s?|hosts?|servers?|racks?|layers?|heads?|groups?|experts?|replicas?|copies` +
		`|tasks?|elements?|runs|weeks?|hours?|days?|minutes?|seconds|stages?|chunks?|steps?|samples|sequences` +
		`|micro-?batches|batches|sockets?|cores?|threads?|cpus|processes|procs|ranks|workers|at a time|at once` +
		`|in parallel|concurrent(?:ly)?|simultaneous(?:ly)?|apiece|each|per (?:node|machine|box|host|server)` +
		`|g?[abhlv]\d{2,3}s?|gb\d00s?|\d+-gpu|\d+ gpu`
)

var (
	dozens = lazy.New(`\b(?:(a|two|three|four|five|six|half a) )?dozen\b`)
	words  = lazy.New(`\b(` + smallNumber + `)((?:[ -](?:more|extra|gpu|compute|dgx|hgx|array|attention|query|kv|pipeline|transformer|data[- ]parallel` +
		`|virtual|physical|cpu|full|such|identical))?[ -](?:` + countable + `)\b| of (?:the|our|my|them|these)\b|-way\b)`)
	// hundreds matches a number in words with "hundred" or "thousand". Such words need no
	// counted thing after them.
	hundreds = lazy.New(`\b(?:(?:` + smallNumber + `|an?|one)[- ])?(?:hundred|thousand)(?:[- ](?:and[- ])?(?:(?:` + smallNumber +
		`|one)[- ]hundred(?:[- ](?:and[- ])?(?:` + smallNumber + `|one))?|` + smallNumber + `|one))?\b`)
	// namedWord and namedHan match a number in words after the name of a size: "micro batch
	// two", "TP 八".
	namedWord = lazy.New(`\b((?:tp|pp|cp|dp|ep|etp|vpp|mbs|gbs|(?:micro|global)[- ]?batch(?:[- ]size)?|batch(?:[- ]size)?|(?:tensor` +
		`|pipeline|context|data|expert)(?:[- ](?:model[- ])?parallel\w*)?(?:[- ]size)?|accumulation(?: steps)?|size` +
		`|degree)(?: (?:of|is|to|at|set to|stays|equals))?[ =:]+)(` + smallNumber + `|one)\b`)
	namedHan = lazy.New(`((?:\b(?:tp|pp|cp|dp|ep|vpp|mbs|gbs)|并行度?|micro ?batch|微批|层数|头数)(?:大小)?(?:是|为|取|开|设|设为|设成|等于|=|:` +
		`| )*)([二两三四五六七八九十百千]{1,7})(?:$|[^\p{Han}]|[的时，路,个])`)
	hans = lazy.New(`(^|[^零一二两三四五六七八九十百千万几第])([零一二两三四五六七八九十百千]{1,7})( ?(?:台机|台|个节点|节点|个机|机|张卡|张|块卡|卡|个小时|小时|天|分钟|路|层|个头|头|个专家|个注意力头` +
		`|个微批|个副本|个 ?rank|步|个任务|个样本|个|次|条|份|颗|核|组|段|级))`)
	nthHan     = lazy.New(`第([一二三四五六七八九十]{1,3}) ?(个|台|张|块|号)`)
	halfBehind = lazy.New(`\b(\d+|` + smallNumber + `) (hours|days) and a half\b`)
	andHalf    = lazy.New(`(\d+|[一二两三四五六七八九十]+) ?个?(天|小时)半|(\d+|one|` + smallNumber + `) and a half (days|hours)`)
	halves     = strings.NewReplacer(
		"a day and a half", "1.5 days", "one and a half days", "1.5 days", "an hour and a half", "1.5 hours",
		"half a day", "12 hours", "half an hour", "30 minutes", "a quarter of an hour", "15 minutes",
		"一天半", "1.5 天", "一个半小时", "1.5 小时", "半个小时", "30 分钟", "半小时", "30 分钟", "半天", "12 小时",
	)
)

// numerals replaces the number words of a folded question by digits: "two dozen nodes",
// "十六张卡", "a day and a half". "one" remains a word, because phrases such as "one task
// per node" give no count.
func numerals(s string) string {
	s = halves.Replace(halfBehind.ReplaceAllString(s, "$1 and a half $2"))
	s = rewrite(andHalf, s, func(g []string) string {
		if g[1] == "" {
			g = g[2:]
		}
		if n := chinese(g[1]) + english(g[1]); n > 0 {
			g[1] = strconv.Itoa(n)
		}
		return g[1] + ".5 " + g[2]
	})
	s = rewrite(dozens, s, func(g []string) string {
		switch g[1] {
		case "", "a":
			return "12"
		case "half a":
			return "6"
		default:
			return strconv.Itoa(12 * englishNumber[g[1]])
		}
	})
	s = hundreds.ReplaceAllStringFunc(s, func(m string) string { return strconv.Itoa(english(m)) })
	s = rewrite(words, s, func(g []string) string {
		return strconv.Itoa(english(g[1])) + g[2]
	})
	s = rewrite(namedWord, s, func(g []string) string {
		return g[1] + strconv.Itoa(english(g[2]))
	})
	s = rewrite(namedHan, s, func(g []string) string {
		return g[1] + strconv.Itoa(chinese(g[2])) + strings.TrimPrefix(g[0], g[1]+g[2])
	})
	s = rewrite(nthHan, s, func(g []string) string {
		return "第 " + strconv.Itoa(chinese(g[1])) + " " + g[2]
	})
	digits := func(g []string) string {
		if n := chinese(g[2]); n > 1 {
			return g[1] + strconv.Itoa(n) + g[3]
		}
		return g[0]
	}
	// Two passes: of two adjacent counts, as in "三十二台八卡", one pass replaces only the
	// first.
	return rewrite(hans, rewrite(hans, s, digits), digits)
}

// rewrite replaces each match of re in s by what with returns for the match and its groups.
func rewrite(re *lazy.Pattern, s string, with func(g []string) string) string {
	return re.ReplaceAllStringFunc(s, func(m string) string { return with(re.FindStringSubmatch(m)) })
}

// english parses an English number below a million.
func english(s string) int {
	sum, part := 0, 0
	for _, w := range strings.FieldsFunc(s, func(r rune) bool { return r == '-' || r == ' ' }) {
		switch w {
		case "hundred":
			part = max(part, 1) * 100
		case "thousand":
			sum, part = sum+max(part, 1)*1000, 0
		default:
			part += englishNumber[w]
		}
	}
	return sum + part
}

// chinese parses a Chinese number below ten thousand.
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
