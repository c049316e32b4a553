package compute

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/megatron-ops/megatron-ops/internal/lazy"
	"github.com/megatron-ops/megatron-ops/knowledge/megatron"
	"github.com/megatron-ops/megatron-ops/knowledge/rules"
)

// The rules that judge a job judge a question's numbers too: an answer on one rule must not
// call valid what another refuses. What the question does not give is chosen so that it fits,
// so only given values break a rule.

type problem = rules.Problem

// sizeFlags are the flags of the quantities that rules judge.
var sizeFlags = []struct {
	flag string
	of   func(*config) *int
}{
	{"--tensor-model-parallel-size", func(c *config) *int { return &c.TP }},
	{"--pipeline-model-parallel-size", func(c *config) *int { return &c.PP }},
	{"--context-parallel-size", func(c *config) *int { return &c.CP }},
	{"--expert-model-parallel-size", func(c *config) *int { return &c.EP }},
	{"--expert-tensor-parallel-size", func(c *config) *int { return &c.ETP }},
	{"--num-virtual-stages-per-pipeline-rank", func(c *config) *int { return &c.VPP }},
	{"--num-layers-per-virtual-pipeline-stage", func(c *config) *int { return &c.Chunk }},
	{"--micro-batch-size", func(c *config) *int { return &c.MBS }},
	{"--global-batch-size", func(c *config) *int { return &c.GBS }},
	{"--num-attention-heads", func(c *config) *int { return &c.Heads }},
	{"--num-query-groups", func(c *config) *int { return &c.Groups }},
	{"--kv-channels", func(c *config) *int { return &c.HeadDim }},
	{"--num-layers", func(c *config) *int { return &c.Layers }},
	{"--hidden-size", func(c *config) *int { return &c.Hidden }},
	{"--ffn-hidden-size", func(c *config) *int { return &c.FFN }},
	{"--seq-length", func(c *config) *int { return &c.Seq }},
	{"--num-experts", func(c *config) *int { return &c.Experts }},
}

const (
	gqaFlag = "--group-query-attention"
	spFlag  = "--sequence-parallel"
)

// mostRanks bounds the products of sizes. No cluster is as large.
const mostRanks = 1 << 30

// multiply returns the product of sizes, or false where it is beyond any cluster.
func multiply(sizes ...int) (int, bool) {
	n := 1
	for _, s := range sizes {
		if s < 1 || s > mostRanks/n {
			return 0, false
		}
		n *= s
	}
	return n, true
}

// leastCommonMultiple returns the least number that both divide, or false where it is beyond
// any cluster.
func leastCommonMultiple(a, b int) (int, bool) {
	x, y := a, b
	for y > 0 {
		x, y = y, x%y
	}
	return multiply(a/x, b)
}

// leastWorld returns the least number of GPUs that the parallel sizes divide, the dense layers'
// and the experts'; false where it is beyond any cluster.
func (c *config) leastWorld() (int, bool) {
	dense, ok := multiply(orOne(c.TP), orOne(c.PP), orOne(c.CP))
	if !ok || c.EP == 0 && c.ETP == 0 {
		return dense, ok
	}
	expert, ok := multiply(cmp.Or(c.ETP, orOne(c.TP)), orOne(c.EP), orOne(c.PP))
	if !ok {
		return 0, false
	}
	return leastCommonMultiple(dense, expert)
}

// flagWord matches a flag as it stands in a question, with the word behind it.
var flagWord = lazy.New("(--[a-z][a-z0-9-]*[a-z0-9])(?:(?:=|\\s+)([^-\\s,;?!，；？！。`'\"]\\S*))?")

// flagsIn returns Megatron's flags that a text gives as such, other than the quantities; ok is
// false where one has a value that its parser refuses.
func flagsIn(text string) (argv []string, ok bool) {
	for _, m := range flagWord.FindAllStringSubmatch(text, -1) {
		f, known := megatron.LookupFlag(m[1])
		if !known || isSize(m[1]) {
			continue
		}
		words := []string{m[1]}
		if f.Type != megatron.Switch {
			words = append(words, strings.TrimRight(m[2], "),;?!.，；？！。`'\""))
		}
		if _, errs := megatron.Parse(megatron.Run{Argv: words}); len(errs) > 0 {
			return nil, false
		}
		argv = append(argv, words...)
	}
	return argv, true
}

func isSize(flag string) bool {
	return slices.ContainsFunc(sizeFlags, func(s struct {
		flag string
		of   func(*config) *int
	},
	) bool {
		return s.flag == flag
	})
}

// A judgement is what the rules say of a question's values.
type judgement struct {
	// refused are the rules that the values break. wanting are those that a switch would keep
	// which the question does not mention.
	refused, wanting []problem
	given            []string // the values, as flags
}

// judge runs the rules on the values of a question. ok is false where they cannot be judged.
func (q *question) judge() (j judgement, ok bool) {
	c := q.cfg
	if c.Nodes > 0 && c.PerNode == 0 && c.World == 0 && c.DP == 0 && c.GBS == 0 {
		c.World = c.Nodes * defaultPerNode // as the answer says
	}
	given, ok := flagsIn(q.text)
	if !ok {
		return j, false
	}
	if c.SP && !slices.Contains(given, spFlag) {
		given = append(given, spFlag)
	}
	if c.Groups > 0 && !slices.Contains(given, gqaFlag) {
		given = append(given, gqaFlag)
	}
	if c.PP == 0 {
		c.VPP, c.Chunk = 0, 0 // they are nothing without stages
	}
	for _, s := range sizeFlags {
		if n := *s.of(&c); n > 0 {
			given = append(given, s.flag, strconv.Itoa(n))
		}
	}
	j.given = given
	world, ok := c.fill()
	if !ok {
		return j, false
	}
	argv := slices.Clone(given)
	for _, s := range sizeFlags {
		if n := *s.of(&c); n > 0 && !slices.Contains(given, s.flag) {
			argv = append(argv, s.flag, strconv.Itoa(n))
		}
	}
	v := rules.CheckIn(megatron.Run{Argv: append(argv, fillers(c, given)...), WorldSize: world, Arch: 10}, q.lang)
	for _, p := range v.Problems {
		if p.Severity != rules.Error || p.Follows != "" || slices.Contains(alwaysBroken(), p.Rule) || !strings.HasPrefix(p.Field, "--") && p.Field != "WORLD_SIZE" {
			continue
		}
		p = plainest(p, v.Problems, given)
		if q.wants(p, given) {
			j.wanting = append(j.wanting, p)
		} else {
			j.refused = append(j.refused, p)
		}
	}
	return j, true
}

// plainest returns the problem itself, or the one that only follows from it where that speaks of
// more of the given values: of the global batch, and not of that of the evaluation.
func plainest(p problem, all []problem, given []string) problem {
	unsaid := func(p problem) (n int) {
		r, _ := rules.Explain(p.Rule)
		for _, f := range r.Flags {
			if strings.HasPrefix(f, "--") && !slices.Contains(given, f) {
				n++
			}
		}
		return n
	}
	best := p
	for _, other := range all {
		if other.Follows == p.Rule && unsaid(other) < unsaid(best) {
			best = other
		}
	}
	return best
}

// fill chooses what the question does not give so that it fits, and returns the number of ranks.
func (c *config) fill() (world int, ok bool) {
	c.MBS = orOne(c.MBS)
	if c.Experts == 0 && c.EP > 1 {
		c.Experts = c.EP
	}
	size, ok := multiply(orOne(c.TP), orOne(c.PP), orOne(c.CP))
	if !ok {
		return 0, false
	}
	world = c.World
	if world == 0 && c.DP > 0 {
		world, ok = multiply(size, c.DP)
	} else if world == 0 {
		world, ok = c.leastWorld()
	}
	if !ok || world > mostRanks {
		return 0, false
	}
	if c.GBS == 0 {
		dp := max(world/size, 1)
		if c.GBS, ok = multiply(c.MBS, dp, cmp.Or(c.Accum, orOne(c.PP))); !ok {
			return 0, false
		}
	}
	if c.Layers == 0 {
		if c.Layers, ok = multiply(orOne(c.PP), orOne(c.VPP), orOne(c.Chunk)); !ok {
			return 0, false
		}
	}
	if c.Heads == 0 {
		heads, fits := leastCommonMultiple(orOne(c.TP), orOne(c.Groups))
		if !fits {
			return 0, false
		}
		c.Heads = heads
		if c.Hidden > 0 && c.HeadDim == 0 {
			c.HeadDim = 1 // hidden size and heads are not both given
		}
	}
	if c.Hidden == 0 {
		if c.Hidden, ok = multiply(c.Heads, 64); !ok {
			return 0, false
		}
	}
	if c.FFN == 0 {
		if c.FFN, ok = multiply(64, orOne(c.TP)); !ok {
			return 0, false
		}
	}
	if c.Seq == 0 {
		c.Seq, ok = multiply(2, orOne(c.CP), orOne(c.TP))
	}
	return world, ok
}

// fillers returns the other flags that every job gives.
func fillers(c config, given []string) (argv []string) {
	for flag, value := range map[string]string{"--max-position-embeddings": strconv.Itoa(c.Seq), "--train-iters": "1", "--lr": "1e-4"} {
		if !slices.Contains(given, flag) {
			argv = append(argv, flag, value)
		}
	}
	return argv
}

// alwaysBroken are the rules that the fillers alone break: they say nothing of a question.
var alwaysBroken = sync.OnceValue(func() (ids []string) {
	var c config
	world, _ := c.fill()
	var argv []string
	for _, s := range sizeFlags {
		if n := *s.of(&c); n > 0 {
			argv = append(argv, s.flag, strconv.Itoa(n))
		}
	}
	for _, p := range rules.Check(megatron.Run{Argv: append(argv, fillers(c, nil)...), WorldSize: world, Arch: 10}).Problems {
		ids = append(ids, p.Rule)
	}
	return ids
})

// withoutSP matches that sequence parallelism is off.
var withoutSP = lazy.New(`(?:\b(?:no|not|non|without|w/o|disabl\w+|turn(?:ed|ing)? off)|不用|不开|没开|没有|没用|未开|未用|不加|没加` +
	`|关闭?了?|禁用|无)[ -]*(?:using |use |any |the )?(?:sequence[- ]parallel\w*|\bsp\b|序列并行)|(?:sequence[- ]parallel\w*|\bsp\b|序列并行)` +
	` ?(?:is |are |=|:|set to )*(?:off|disabled|false|not (?:on|set|given|used|enabled)|没开|不开|关|未开|没有)`)

// wants reports whether a flag that the question does not mention would keep the rule.
func (q *question) wants(p problem, given []string) bool {
	r, _ := rules.Explain(p.Rule)
	if strings.HasPrefix(p.Field, "--") && p.Field != spFlag && !isSize(p.Field) && !slices.Contains(given, p.Field) {
		return true
	}
	return slices.ContainsFunc(r.Flags, func(name string) bool {
		f, known := megatron.LookupFlag(name)
		return known && f.Type != megatron.Int && !slices.Contains(given, name) && (name != spFlag || !withoutSP.MatchString(q.low))
	})
}

// told writes broken rules, each with what would keep it.
func (q *question) told(list []problem) string {
	var parts []string
	for _, p := range list {
		s := p.Message
		if p.Fix != "" {
			s += q.say("; %s", "；%s", p.Fix)
		}
		parts = append(parts, s)
	}
	return strings.Join(parts, q.say(". And ", "。另外，"))
}

// judged returns an answer on a layout as the rules leave it: they may refuse what it calls
// valid.
func (q *question) judged(answer string) string {
	if q.cfg.Huge {
		return q.sayInvalid("Not judged: no layout has a size or a number of GPUs above %d.", "不作判断:没有哪个布局的大小或 GPU 数超过 %d。", maxNumber)
	}
	if q.invalid || q.refused {
		return answer
	}
	j, ok := q.judge()
	if !ok {
		return answer + q.say(" The other rules were not checked: a value is not readable or too large. `megatron-ops plan` checks the whole job.",
			" 其余规则没有检查:有的值无法识别或太大。`megatron-ops plan` 会检查整个作业。")
	}
	if len(j.refused) > 0 {
		return q.refusal(j)
	}
	if len(j.wanting) > 0 && (q.asksWhether() || strings.Contains(answer, "alid") || strings.Contains(answer, "合法")) {
		return answer + q.say(" But Megatron-LM refuses it without more flags: %s.", " 但还缺参数,否则 Megatron-LM 会拒绝:%s。", q.told(j.wanting))
	}
	return answer
}

func (q *question) refusal(j judgement) string {
	return q.sayInvalid("Not valid, Megatron-LM refuses this: %s.", "不合法,Megatron-LM 会拒绝:%s。", q.told(append(j.refused, j.wanting...)))
}

// verdict answers whether values are valid that no other answerer combines.
func verdict(q *question) string {
	if q.asksForCommand() || !q.asksWhether() || q.describesProblem(setting) {
		return ""
	}
	j, ok := q.judge()
	if c := q.cfg; !ok || c.TP+c.PP+c.CP+c.EP+c.ETP == 0 || len(j.given) < 4 {
		return ""
	}
	switch {
	case len(j.refused) > 0:
		return q.refusal(j)
	case len(j.wanting) > 0:
		return q.say("Valid only with more flags, else Megatron-LM refuses it: %s.", "还缺参数,否则 Megatron-LM 会拒绝:%s。", q.told(j.wanting))
	}
	return q.say("No rule refuses these values (%s). What the question does not give was not judged: `megatron-ops plan` checks the whole job.",
		"没有规则拒绝这些值(%s)。问题没有给出的没有判断:`megatron-ops plan` 会检查整个作业。", strings.Join(j.given, " "))
}

// mayAsked matches further questions that expect a yes or a no.
const mayAsked = `\b(?:can|could|may|will|does|would) (?:i|we|you|it|this|that|megatron)\b|会不会|能用|能起|可不可以|接受|会报错|会拒绝`

// asksWhether reports whether the question expects a yes or a no.
func (q *question) asksWhether() bool {
	return validAsked.MatchString(q.low) || compiled(mayAsked).MatchString(q.low)
}
