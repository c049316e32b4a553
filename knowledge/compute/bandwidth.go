package compute

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/lazy"
)

// The benchmark of collectives prints two bandwidths: algbw is the size over the
// time, busbw what that takes of the wires (nccl-tests, doc/PERFORMANCE.md).

// A collective is one operation and how its bus bandwidth comes out of the
// algorithm bandwidth: the factor is 2(n-1)/n, (n-1)/n or 1.
type collective struct {
	name  string
	named *lazy.Pattern
	twice int // how often (n-1)/n is taken; 0 where the factor is 1
}

var collectives = []collective{
	{"all-reduce", lazy.New(`all-? ?reduc|全[局]?[归规]约`), 2},
	{"all-gather", lazy.New(`all-? ?gather|全(?:收集|聚合)`), 1},
	{"reduce-scatter", lazy.New(`reduce-? ?scatter|[归规]约(?:-| )?(?:散射|分散|散发)`), 1},
	{"all-to-all", lazy.New(`all-? ?(?:to|2)-? ?all|\ba2a\b|全交换`), 1},
	{"broadcast", lazy.New(`broadcast|\bbcast\b|广播`), 0},
	{"reduce", lazy.New(`(?:^|[^l\w -]|[^l] )reduce(?:$|[^\w -]| [^s])`), 0},
	{"send/recv", lazy.New(`send-?/? ?recv|点对点`), 0},
}

const (
	algorithmBandwidth = `alg-?(?:o(?:rithm)?)? ?-?(?:bw|bandwidth)|算法带宽`
	busBandwidth       = `bus ?-?(?:bw|bandwidth)|总线带宽`
	perSecond          = `(\d+(?:\.\d+)?) ?(?:gib|gb|g)(?:/s|ps|/sec)?\b`
	// toNumber stands between the name of a bandwidth and its number.
	toNumber = `(?:[^\d,;?]{0,14}?)`
)

var (
	algorithmGiven = lazy.New(`(?:` + algorithmBandwidth + `)` + toNumber + `\b(\d+(?:\.\d+)?)|` + perSecond + ` ?(?:of |的 ?)?(?:` + algorithmBandwidth + `)`)
	busGiven       = lazy.New(`(?:` + busBandwidth + `)` + toNumber + `\b(\d+(?:\.\d+)?)|` + perSecond + ` ?(?:of |的 ?)?(?:` + busBandwidth + `)`)
	rateOf         = lazy.New(perSecond + ` ?(?:of |的 ?)?(?:` + algorithmBandwidth + `)`)
	algorithmNamed = lazy.New(algorithmBandwidth)
	busNamed       = lazy.New(busBandwidth)
	ranksNamed     = lazy.New(`\b(?:n|ranks?|nranks|gpus|卡数|rank ?数) ?(?:=|:|is|of|为|是)? ?(\d+)\b|(\d+)[- ]?(?:个 ?|张 ?|块 ?)?(?:ranks?\b|gpus?\b|卡|进程|processes\b|procs\b)`)
	anyRate        = lazy.New(perSecond)
)

// bandwidth turns one of the two bandwidths into the other.
func bandwidth(q *question) string {
	alg, bus := algorithmNamed.MatchString(q.low), busNamed.MatchString(q.low)
	if !alg && !bus {
		return ""
	}
	n := q.cfg.World
	if m := ranksNamed.FindStringSubmatch(q.low); n == 0 && m != nil {
		n = first(m)
	}
	low := ranksNamed.ReplaceAllString(q.low, " ; ")
	given, toBus := group(low, algorithmGiven.FindStringSubmatchIndex(low)), true
	if other := group(low, busGiven.FindStringSubmatchIndex(low)); given == "" {
		given, toBus = other, false
	} else if other == given { // one number between the two names: "busbw from 45 GB/s algbw"
		given, toBus = group(low, rateOf.FindStringSubmatchIndex(low)), rateOf.MatchString(low)
	} else if other != "" {
		return ""
	}
	if given == "" && alg != bus { // "busbw of an all-reduce that moves 100 GB/s"
		given, toBus = group(low, anyRate.FindStringSubmatchIndex(low)), bus
	}
	rate, err := strconv.ParseFloat(given, 64)
	if err != nil || n < 2 {
		return ""
	}
	var said []string
	for _, c := range collectives {
		if c.named.MatchString(q.low) {
			said = append(said, c.bandwidth(q, rate, n, toBus))
		}
	}
	if said == nil {
		said = []string{collectives[0].bandwidth(q, rate, n, toBus) + q.say(" All-gather, reduce-scatter and all-to-all have (n-1)/n, broadcast and reduce 1.", " all-gather、reduce-scatter、all-to-all 的系数为 (n-1)/n,broadcast、reduce 为 1。")}
	}
	return strings.Join(said, "\n")
}

// bandwidth is the one bandwidth of a collective for the other.
func (c collective) bandwidth(q *question, rate float64, n int, toBus bool) string {
	factor, how := 1.0, "1"
	if c.twice > 0 {
		factor = float64(c.twice) * float64(n-1) / float64(n)
		how = fmt.Sprintf("%[1]s(n-1)/n = %[1]s%[2]d/%[3]d", strings.Repeat("2 × ", c.twice-1), n-1, n)
	}
	if toBus {
		return q.say("busbw %[1]s GB/s: algbw %[2]s GB/s × %[3]s (%[4]s, n = %[5]d ranks).", "busbw = %[1]s GB/s:algbw %[2]s GB/s × %[3]s(%[4]s,n = %[5]d 个 rank)。", short(rate*factor), short(rate), how, c.name, n)
	}
	return q.say("algbw %[1]s GB/s: busbw %[2]s GB/s / (%[3]s) (%[4]s, n = %[5]d ranks).", "algbw = %[1]s GB/s:busbw %[2]s GB/s /(%[3]s)(%[4]s,n = %[5]d 个 rank)。", short(rate/factor), short(rate), how, c.name, n)
}
