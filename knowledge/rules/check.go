package rules

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/knowledge/megatron"
)

// Check judges one launch, with messages in English.
func Check(run megatron.Run) Verdict { return CheckIn(run, lang.EN) }

// CheckIn judges one launch. It returns all problems: errors first, then warnings,
// then notes. Within a severity problems are in the order of Megatron's checks,
// and consequences of other problems come last.
func CheckIn(run megatron.Run, l lang.Lang) Verdict {
	args, errs := megatron.Parse(run)
	return judge(args.Effective(), errs, l)
}

// CheckConfig judges a parsed launch.
func CheckConfig(c *megatron.Config, l lang.Lang) Verdict { return judge(c, nil, l) }

// legal reports whether Megatron would start c. It stops at the first problem.
func legal(c *megatron.Config) bool {
	rows := tableOf(c.Release)
	for i := range rows {
		r := &rows[i]
		if r.stage != advising && r.severity == Error && r.broken(c) {
			return false
		}
	}
	return true
}

func judge(c *cfg, errs []megatron.ParseError, l lang.Lang) Verdict {
	v := Verdict{OK: true, Derived: derived(c)}
	// A flag with a bad value keeps its default. Rules about such a flag are
	// skipped, because they would judge the default.
	var unread []string
	for _, e := range errs {
		p := parserProblem(e, c, l)
		v.Problems = append(v.Problems, p)
		if p.Severity == Error {
			v.OK = false
		}
		if e.Known.Name != "" {
			unread = append(unread, e.Known.Name)
		}
	}
	rows := tableOf(c.Release)
	var hit []*row
	for i := range rows {
		r := &rows[i]
		if !r.broken(c) || slices.ContainsFunc(unread, func(f string) bool { return slices.Contains(r.names, f) }) {
			continue
		}
		hit = append(hit, r)
		if r.stage != advising && r.severity == Error {
			v.OK = false
		}
	}
	var consequences []Problem
	for _, r := range hit {
		p := r.problem(c, l)
		if cause := r.cause(hit); cause != "" {
			p.Follows = cause
			consequences = append(consequences, p)
			continue
		}
		v.Problems = append(v.Problems, p)
	}
	v.Problems = append(v.Problems, consequences...)
	slices.SortStableFunc(v.Problems, func(a, b Problem) int { return weight(a) - weight(b) })
	return v
}

// cause returns the id of the first row among hit whose consequence r is, or "".
func (r *row) cause(hit []*row) string {
	for id := range strings.FieldsSeq(r.after) {
		if slices.ContainsFunc(hit, func(other *row) bool { return other.id == id }) {
			return id
		}
	}
	return ""
}

// weight is the sort key of a problem: errors come before warnings before notes,
// and consequences after their causes.
func weight(p Problem) int {
	w := map[Severity]int{Error: 0, Warning: 2, Note: 4}[p.Severity]
	if p.Follows != "" {
		w++
	}
	return w
}

func (r *row) problem(c *cfg, l lang.Lang) Problem {
	p := Problem{Rule: r.id, Severity: r.severity, Field: r.names[0], Source: r.source, Effect: r.effect, Fix: r.do.In(l)}
	p.Message = r.must.In(l) + r.given(c, l)
	if r.fix != nil {
		p.Fix = cmp.Or(r.fix(c).In(l), p.Fix)
	}
	return p
}

// given lists the current values of the rule's flags, for a message.
func (r *row) given(c *cfg, l lang.Lang) string {
	var facts []string
	for _, name := range r.names {
		if v := r.valueOf(c, name, l); v != "" {
			facts = append(facts, name+" "+v)
		}
	}
	if len(facts) == 0 {
		return ""
	}
	if l == lang.ZH {
		return "（当前：" + strings.Join(facts, "，") + "）"
	}
	return " (now " + strings.Join(facts, ", ") + ")"
}

// valueOf returns the value of a flag that the message quotes: the given one where the rule is about it.
func (r *row) valueOf(c *cfg, name string, l lang.Lang) string {
	if f, ok := megatron.LookupFlagIn(c.Release, name); ok && r.asked && f.Type != megatron.Switch {
		return clip(f.Value(&c.Asked.Options))
	}
	return valueOf(c, name, l)
}

// valueOf returns the effective value of a flag, of an environment variable, or of
// WORLD_SIZE, DP or gpu.
func valueOf(c *cfg, name string, l lang.Lang) string {
	switch name {
	case "WORLD_SIZE":
		return strconv.Itoa(c.World)
	case "DP":
		return strconv.Itoa(c.DP)
	case "gpu":
		return c.Asked.Run.GPU
	case epFlag:
		return strconv.Itoa(c.EP)
	case "--expert-tensor-parallel-size":
		return strconv.Itoa(c.ETP)
	}
	if !strings.HasPrefix(name, "--") {
		v, ok := c.Env(name)
		if !ok {
			return t("unset", "未设置").In(l)
		}
		return clip(v)
	}
	f, ok := megatron.LookupFlagIn(c.Release, name)
	if !ok {
		return ""
	}
	if f.Type == megatron.Switch {
		return switchValue(f, f.Value(&c.Options) == "true").In(l)
	}
	return clip(f.Value(&c.Options))
}

// switchValue says whether a switch is on. A switch that turns a feature off, such
// as --disable-bias-linear, is on where the feature's value is false.
func switchValue(f megatron.Flag, value bool) lang.Text {
	if value == (f.Action != megatron.SetFalse) {
		return t("on", "已启用")
	}
	return t("off", "未启用")
}

// clip shortens a value from outside for a message.
func clip(s string) string {
	const most = 60
	if r := []rune(s); len(r) > most {
		return string(r[:most]) + "…"
	}
	return s
}

// derived returns the values that Megatron derives from the arguments, under
// Megatron's own names.
func derived(c *cfg) map[string]any {
	value, _ := recommendedConnections(c)
	return map[string]any{
		"data_parallel_size":                   c.DP,
		"expert_data_parallel_size":            c.EDP,
		"num_microbatches":                     c.Microbatches,
		"micro_batch_size":                     orNull(c.MicroBatchSize),
		"global_batch_size":                    orNull(c.GlobalBatchSize),
		"expert_tensor_parallel_size":          c.ETP,
		"sequence_parallel":                    c.SequenceParallel,
		"use_distributed_optimizer":            c.UseDistributedOptimizer,
		"overlap_grad_reduce":                  c.OverlapGradReduce,
		"overlap_param_gather":                 c.OverlapParamGather,
		"overlap_p2p_comm":                     c.OverlapP2pComm,
		"ffn_hidden_size":                      orNull(c.FfnHiddenSize),
		"kv_channels":                          orNull(c.KvChannels),
		"num_query_groups":                     c.NumQueryGroups,
		"num_layers":                           orNull(c.NumLayers),
		"recompute_granularity":                orNull(c.RecomputeGranularity),
		"params_dtype":                         c.ParamsDtype,
		"ckpt_format":                          c.CkptFormat,
		"cuda_device_max_connections":          value,
		"virtual_pipeline_model_parallel_size": orNull(c.VP),
	}
}

func orNull[T any](o megatron.Opt[T]) any {
	if !o.OK {
		return nil
	}
	return o.V
}

// parserRules are the rules that Megatron's command-line parser enforces.
var parserRules = []Rule{
	parserRule("unknown-flag", t("Megatron's own entry scripts; elsewhere a warning", "Megatron 自带的入口脚本；其他脚本只警告"), t("every flag must be one that Megatron's parser knows, written in full", "每个参数都必须是 Megatron 解析器认识的完整写法"),
		t("abbreviations are off: one unknown word and the job ends before any GPU work", "不支持缩写：出现一个不认识的词，作业在用到 GPU 之前就结束"), t("use the nearest name that exists", "改用最接近的已有名称")),
	parserRule("stray-value", t("a word that belongs to no flag", "不属于任何参数的词"), t("every word must be a flag or a flag's value", "每个词都必须是参数或参数的值"),
		t("Megatron takes no positional arguments; a value with blanks must be one quoted word", "Megatron 不接受位置参数；含空格的值必须用引号括成一个词"), t("quote the value, or remove the word", "给值加引号，或去掉多余的词")),
	parserRule("bad-value", t("a flag with a typed value", "带类型的参数值"), t("the value must be of the flag's type", "值必须符合参数的类型"),
		t("the parser converts the word and refuses what it cannot read", "解析器转换失败即拒绝"), t("give a value of the type", "给出符合类型的值")),
	parserRule("bad-choice", t("a flag with a fixed list of values", "取值固定的参数"), t("the value must be one of the list", "值必须在列表之内"),
		t("the parser refuses every other word", "其他取值一律被解析器拒绝"), t("use one of the values", "从列表中选择")),
	parserRule("missing-value", t("a flag that takes a value", "需要取值的参数"), t("the value must follow", "后面必须跟值"),
		t("the next word is a flag again, or the line ends; a negative number in scientific notation also reads as a flag", "后面又是参数或已到行尾；科学计数法的负数也会被当成参数"), t("add the value; write --flag=-1e-5 for such a number", "补上取值；这类数写成 --flag=-1e-5")),
	parserRule("value-for-switch", t("--flag=value on a switch", "给开关写 --flag=value"), t("a switch takes no value", "开关参数不带值"),
		t("the presence of a switch turns it on", "开关写上即生效"), t("write the flag alone, or leave it out", "只写参数名，或去掉")),
	parserRule("asks-for-help", t("-h or --help", ""), t("the help flag must not be among a job's arguments", "作业参数里不能有帮助参数"),
		t("the parser prints its help and exits with status 0, so Slurm reports success", "解析器打印帮助后以状态 0 退出，Slurm 会报告成功"), t("remove it", "去掉它")),
}

func parserRule(id string, condition, requirement, reason, remedy lang.Text) Rule {
	return Rule{
		ID: id, Topic: "command line", Condition: condition, Requirement: requirement, Reason: reason, Remedy: remedy,
		Severity: Error, Stage: "argparse", Effect: PerformanceOnly, Source: inArgs + "132",
	}
}

var parserRuleOf = map[megatron.Fault]string{
	megatron.UnknownFlag:  "unknown-flag",
	megatron.StrayValue:   "stray-value",
	megatron.BadValue:     "bad-value",
	megatron.BadChoice:    "bad-choice",
	megatron.MissingValue: "missing-value",
	megatron.ExtraValue:   "value-for-switch",
	megatron.AsksForHelp:  "asks-for-help",
}

// parserProblem turns a parse error into a problem. A script of the user's own may
// add flags, so an unknown flag of such a script is only a warning.
func parserProblem(e megatron.ParseError, c *cfg, l lang.Lang) Problem {
	rule := parserRules[slices.IndexFunc(parserRules, func(r Rule) bool { return r.ID == parserRuleOf[e.Fault] })]
	p := Problem{Rule: rule.ID, Severity: Error, Field: cmp.Or(e.Flag, "argv"), Source: rule.Source, Effect: rule.Effect, Fix: rule.Remedy.In(l)}
	words := clip(strings.Join(e.Values, " "))
	var message, fix lang.Text
	switch e.Fault {
	case megatron.UnknownFlag:
		message, fix = unknownFlag(e, c.Release)
		p.Effect = "" // it depends on what the flag was meant to do
	case megatron.StrayValue:
		message = t("%q belongs to no flag", "%q 不属于任何参数").With(words)
		if e.Flag != "" {
			message = t(fmt.Sprintf("%q after %s belongs to no flag", words, e.Flag), fmt.Sprintf("%s 之后的 %q 不属于任何参数", e.Flag, words))
		}
	case megatron.BadValue:
		message = t(fmt.Sprintf("%s takes %s, not %q", e.Flag, kindOf(e.Known).EN, words), fmt.Sprintf("%s 需要%s，而不是 %q", e.Flag, kindOf(e.Known).ZH, words))
	case megatron.BadChoice:
		message = t("%s has no choice %q", "%s 没有取值 %q").With(e.Flag, words)
		if len(e.Known.Choices) > 0 {
			fix = t("use one of "+strings.Join(e.Known.Choices, ", "), "取其一："+strings.Join(e.Known.Choices, "、"))
		}
	case megatron.MissingValue:
		message = t("%s needs a value", "%s 缺少取值").With(e.Flag)
	case megatron.ExtraValue:
		message = t("%s takes no value, but %q was given", "%s 不带值，却给了 %q").With(e.Flag, words)
	case megatron.AsksForHelp:
		message = t("%s prints the help and ends the job with status 0", "%s 会打印帮助并以状态 0 结束作业").With(e.Flag)
	}
	p.Message = message.In(l)
	if fix.EN != "" {
		p.Fix = fix.In(l)
	}
	if (e.Fault == megatron.UnknownFlag || e.Fault == megatron.StrayValue) && !megatron.KnownEntry(c.Asked.Run.Entry) {
		p.Severity = Warning
	}
	return p
}

func kindOf(f megatron.Flag) lang.Text {
	switch f.Type {
	case megatron.Int, megatron.Tuple:
		return t("a whole number", "整数")
	case megatron.Float:
		return t("a number", "数值")
	case megatron.Pattern:
		return t("a whole number or a list such as ([0]*3+[1])*8", "整数或形如 ([0]*3+[1])*8 的列表")
	}
	return t("another value", "其他值")
}
