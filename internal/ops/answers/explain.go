package answers

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/near"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/view"
	"github.com/megatron-ops/megatron-ops/knowledge"
	"github.com/megatron-ops/megatron-ops/knowledge/megatron"
	"github.com/megatron-ops/megatron-ops/knowledge/rules"
	"github.com/megatron-ops/megatron-ops/slurm"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/outcome"
	"github.com/megatron-ops/megatron-ops/slurm/job"
	"github.com/megatron-ops/megatron-ops/slurm/lint"
)

// ExplainIn is the word to explain.
type ExplainIn struct {
	Words []string `json:"-" arg:"" passthrough:"" text:"" name:"word" help:"a rule, Megatron flag, job or node state, pending reason, failure class, field, exit code, signal or SLURM_ variable" zh:"规则、Megatron 参数、作业或节点状态、等待原因、故障类别、规格字段、退出码、信号或 SLURM_ 变量"`
	Word  string   `json:"word" kong:"-" help:"a rule, Megatron flag, job or node state, pending reason, failure class, field, exit code, signal or SLURM_ variable"`
}

// ExplainOut explains the word.
type ExplainOut struct {
	Word  string     `json:"word"`
	Kind  string     `json:"kind"`
	Says  string     `json:"says"`
	Do    string     `json:"do,omitempty"`
	Facts view.Facts `json:"facts,omitempty"`
	// Rules lists the rules that check a flag.
	Rules []string `json:"rules,omitempty"`
}

// explainers each know one kind of word. The first one that knows the word answers.
var explainers = []func(c *ops.Call, word string) (ExplainOut, bool){
	explainRule, explainFlag, explainOption, explainVariable, explainJobState, explainReason, explainNodeState,
	explainClass, explainLint, explainField, explainExit,
}

// Explain returns the operation explain.
func Explain() ops.Op {
	return ops.Define(ops.Op{
		Name: "explain", Effect: ops.Read, Toolset: ops.KnowledgeSet, Closed: true,
		Summary: lang.Text{EN: "what a rule, flag, state, pending reason, failure class or field means", ZH: "解释规则、参数、状态、等待原因、故障类别或规格字段"},
		Help:    lang.Text{EN: "Use for one word. For a question in words use ask.", ZH: "用于查一个词。完整的问题请用 ask。"},
		Example: "explain --tensor-model-parallel-size",
	}, explain)
}

func explain(ctx context.Context, c *ops.Call, in ExplainIn) (ExplainOut, error) {
	word := strings.TrimSpace(strings.Join(append(in.Words, in.Word), " "))
	word = strings.TrimPrefix(word, "--flag ") // --flag is an ordinary word here, which names the kind of what follows
	if word == "" {
		return ExplainOut{}, ops.InputError("word",
			lang.Text{EN: "there is nothing to explain", ZH: "没有要解释的内容"},
			lang.Text{EN: "for example: `megatron-ops explain heads-multiple-of-tp`", ZH: "例如：`megatron-ops explain heads-multiple-of-tp`"})
	}
	for _, e := range explainers {
		if out, ok := e(c, word); ok {
			return out, nil
		}
	}
	if bare := "--" + strings.ReplaceAll(word, "_", "-"); !strings.HasPrefix(word, "-") { // a flag that was written without its dashes
		if out, ok := explainFlag(c, bare); ok {
			return out, nil
		}
	}
	names := nearest(word)
	// A card may explain a word that no table has.
	if c.Answerer != nil {
		a, err := c.Answerer().Ask(ctx, knowledge.Question{Text: questionAbout(word, c.Lang), Lang: c.Lang})
		if err == nil && !a.Refused && about(word, a.Answer, len(names) > 0) {
			return ExplainOut{Word: word, Kind: "knowledge", Says: a.Answer}, nil
		}
	}
	fix := lang.Text{EN: "a rule id, a Megatron flag, a Slurm state, reason or option", ZH: "规则编号、Megatron 参数，或 Slurm 的状态、原因、选项"}
	if len(names) > 0 {
		fix = ops.DidYouMean.With(strings.Join(names, ", "))
	}
	return ExplainOut{}, ops.NotFoundError("word", lang.Text{EN: "%q is not known here", ZH: "这里没有 %q 的说明"}.With(word), fix)
}

// about reports whether a card's text is about word. Where the word is a name, the text must contain it; one with hyphens
// may also be ordinary words, unless it is nearly a name of the tables.
func about(word, text string, nearName bool) bool {
	name, _, more := strings.Cut(word, " ")
	switch {
	case strings.HasPrefix(word, "-") || strings.Contains(word, "_"):
		return strings.Contains(text, name)
	case !more && strings.Contains(name, "-") && nearName:
		return strings.Contains(strings.ReplaceAll(fold(text), " ", ""), fold(name))
	}
	return true
}

// nearest returns the words of the tables that word was probably meant to be: flags, or
// the nearest other one.
func nearest(word string) []string {
	if flags := megatron.Nearest(word); len(flags) > 0 {
		return flags
	}
	if name := tableWord(word, min(4, 1+len(word)/4)); name != "" {
		return []string{name}
	}
	return nil
}

// tableWord returns the word of the tables that differs from word in fewer letters than
// limit, whatever its capitals and hyphens; "" if there is none.
func tableWord(word string, limit int) string {
	var folded []string
	names := map[string]string{}
	add := func(name string) {
		if f := fold(name); f != "" && names[f] == "" {
			folded, names[f] = append(folded, f), name
		}
	}
	for _, r := range rules.Table() {
		add(r.ID)
	}
	for _, r := range lint.Rules() {
		add(r.ID)
	}
	for _, k := range outcome.Classes() {
		add(k.ID)
	}
	for _, m := range slurm.States() {
		add(m.Word)
	}
	for _, m := range slurm.Reasons() {
		add(m.Word)
	}
	for _, f := range job.Fields() {
		add(f.Name)
	}
	return names[near.Word(fold(word), folded, limit)]
}

// fold removes what people write differently in a name.
func fold(name string) string {
	return strings.NewReplacer("-", "", "_", "").Replace(strings.ToLower(name))
}

func questionAbout(word string, l lang.Lang) string {
	return fmt.Sprintf(lang.Text{EN: "what does %s do?", ZH: "%s 是什么意思？"}.In(l), word)
}

func explainRule(c *ops.Call, word string) (ExplainOut, bool) {
	r, ok := rules.Explain(word)
	if !ok {
		return ExplainOut{}, false
	}
	out := ExplainOut{Word: r.ID, Kind: "rule", Says: r.Requirement.In(c.Lang) + "\n" + r.Reason.In(c.Lang), Do: r.Remedy.In(c.Lang)}
	out.Facts.Add(c.Lang, "when", "适用条件", r.Condition.In(c.Lang))
	out.Facts.Add(c.Lang, "severity", "严重程度", r.Severity.Says().In(c.Lang))
	out.Facts.Add(c.Lang, "source", "来源", r.Source)
	out.Facts.Add(c.Lang, "releases", "版本", releasesOfRule(r).In(c.Lang))
	return out, true
}

func explainFlag(c *ops.Call, word string) (ExplainOut, bool) {
	foreign, successor := "", ""
	own := megatron.FlagHistory(word)
	if to, ok := megatron.Renamed(word); ok {
		if newest := megatron.Releases()[len(megatron.Releases())-1]; len(own) > 0 && own[len(own)-1].Until == newest {
			successor = to // Megatron has both: the newer flag does what this one did
		} else {
			foreign, word = word, to
		}
	}
	if !strings.HasPrefix(word, "--") {
		return ExplainOut{}, false
	}
	spans := megatron.FlagHistory(word)
	if len(spans) == 0 {
		return ExplainOut{}, false
	}
	f := spans[len(spans)-1].Flag
	out := ExplainOut{Word: f.Name, Kind: "flag", Says: lang.Text{EN: "a flag of Megatron-LM, of type ", ZH: "Megatron-LM 的参数，类型 "}.In(c.Lang) + string(f.Type)}
	if f.Action != megatron.Store {
		out.Says = lang.Text{EN: "a switch of Megatron-LM: it takes no value", ZH: "Megatron-LM 的开关参数，不带取值"}.In(c.Lang)
	}
	if about, ok := rules.About(f.Name); ok {
		out.Says = about.In(c.Lang)
	}
	if successor != "" {
		out.Says = fmt.Sprintf(lang.Text{EN: "%s; its successor is %s", ZH: "%s；后继参数是 %s"}.In(c.Lang), out.Says, successor)
	}
	if foreign != "" {
		out.Says = fmt.Sprintf(lang.Text{EN: "%s is another program's or an older name: Megatron-LM calls it %s", ZH: "%s 是其他程序或旧版本的名称：在 Megatron-LM 中是 %s"}.In(c.Lang), foreign, f.Name)
	}
	add := func(en, zh, v string) { out.Facts.Add(c.Lang, en, zh, v) }
	add("also", "别名", strings.Join(f.Aliases, ", "))
	add("choices", "可选值", strings.Join(f.Choices, ", "))
	add("default", "默认值", f.Default)
	add("values", "取值个数", f.Nargs)
	add("group", "分组", f.Group)
	if foreign != "" && len(own) > 0 {
		add("releases with "+foreign, "有 "+foreign+" 的版本", releasesOf(own).In(c.Lang))
	}
	add("releases", "版本", releasesOf(spans).In(c.Lang))
	for _, change := range changesOf(spans) {
		add("changed with "+change.since, "变更于 "+change.since, change.says.In(c.Lang))
	}
	for _, r := range rules.Table() {
		if slices.Contains(r.Flags, f.Name) {
			out.Rules = append(out.Rules, r.ID+": "+requirement(r, f.Name, spans[0].Since).In(c.Lang))
		}
	}
	return out, true
}

func explainOption(c *ops.Call, word string) (ExplainOut, bool) {
	word, _, _ = strings.Cut(word, " ") // the option's value may follow
	o, ok := slurm.ExplainOption(word)
	if !ok {
		return ExplainOut{}, false
	}
	out := ExplainOut{Word: o.Usage(), Kind: "option of sbatch or srun", Says: o.Says.In(c.Lang)}
	for _, f := range job.Fields() {
		if f.Name == strings.ReplaceAll(o.Long, "-", "_") {
			out.Facts.Add(c.Lang, "in a specification", "在作业规格中", f.Name)
		}
	}
	return out, true
}

func explainVariable(c *ops.Call, word string) (ExplainOut, bool) {
	v, ok := slurm.ExplainVariable(word)
	if !ok {
		return ExplainOut{}, false
	}
	out := ExplainOut{Word: v.Name, Kind: "variable of Slurm's", Says: v.Says.In(c.Lang)}
	out.Facts.Add(c.Lang, "set only with", "仅在使用该选项时设置", v.With)
	return out, true
}

func meaningOf(c *ops.Call, kind string, m slurm.Meaning) ExplainOut {
	return ExplainOut{Word: m.Word, Kind: kind, Says: m.Says.In(c.Lang), Do: m.Do.In(c.Lang)}
}

func explainJobState(c *ops.Call, word string) (ExplainOut, bool) {
	for _, m := range slurm.States() {
		if strings.EqualFold(m.Word, word) || m.Short == strings.ToUpper(word) {
			return meaningOf(c, "job state", m.Meaning), true
		}
	}
	return ExplainOut{}, false
}

func explainReason(c *ops.Call, word string) (ExplainOut, bool) {
	m, known := slurm.KnownReason(word)
	return meaningOf(c, "pending reason", m), known
}

func explainNodeState(c *ops.Call, word string) (ExplainOut, bool) {
	if base, flag, ok := strings.Cut(word, "+"); ok { // as scontrol writes: IDLE+DRAIN
		a, okA := explainNodeState(c, base)
		b, okB := explainNodeState(c, flag)
		return ExplainOut{Word: word, Kind: "node state", Says: a.Says + "; " + b.Says, Do: cmp.Or(b.Do, a.Do)}, okA && okB
	}
	m := slurm.ExplainNode(word)
	if strings.Contains(m.Says.EN, "does not know") {
		return ExplainOut{}, false
	}
	return meaningOf(c, "node state", m), true
}

func explainClass(c *ops.Call, word string) (ExplainOut, bool) {
	for _, k := range outcome.Classes() {
		if fold(k.ID) == fold(word) {
			out := ExplainOut{Word: k.ID, Kind: "failure class", Says: k.Name.In(c.Lang)}
			for _, a := range k.Advice {
				out.Do += a.In(c.Lang) + "\n"
			}
			out.Do = strings.TrimSpace(out.Do)
			return out, true
		}
	}
	return ExplainOut{}, false
}

func explainLint(c *ops.Call, word string) (ExplainOut, bool) {
	for _, r := range lint.Rules() {
		if r.ID == word {
			return ExplainOut{Word: r.ID, Kind: "lint rule", Says: r.Why.In(c.Lang), Do: r.Fix.In(c.Lang)}, true
		}
	}
	return ExplainOut{}, false
}

func explainField(c *ops.Call, word string) (ExplainOut, bool) {
	for _, f := range job.Fields() {
		if f.Name == word {
			out := ExplainOut{Word: f.Name, Kind: "field of the job specification", Says: f.Doc.In(c.Lang)}
			out.Facts.Add(c.Lang, "example", "示例", f.Example)
			out.Facts.Add(c.Lang, "default", "默认值", f.Default)
			return out, true
		}
	}
	return ExplainOut{}, false
}

// View explains the word first, and then says what to do.
func (o ExplainOut) View(l lang.Lang) view.Doc {
	d := view.Doc{Title: o.Word, Sections: []view.Section{{Text: o.Says, Facts: o.Facts}}}
	d.Add(
		view.Section{Heading: lang.Text{EN: "what to do", ZH: "怎么办"}.In(l), Text: o.Do},
		view.Section{Heading: lang.Text{EN: "rules that check it", ZH: "相关规则"}.In(l), Items: o.Rules},
	)
	return d
}
