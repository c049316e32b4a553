// Package form is the modal that submits a job: its fields, what is wrong with
// them, the specification that they make, and the page that asks for a yes.
package form

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/slack-go/slack"

	"github.com/megatron-ops/megatron-ops/bot/answer"
	"github.com/megatron-ops/megatron-ops/bot/typed"
	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/ops/launch"
	"github.com/megatron-ops/megatron-ops/internal/view"
	"github.com/megatron-ops/megatron-ops/knowledge/rules"
)

// A Field is one field of the submit form; its name is the job
// specification's.
type Field struct {
	Name    string
	Label   lang.Text
	Hint    lang.Text
	Choices []string // a select instead of a line of text
	number  bool
	lines   bool // several lines
	Needed  bool
	Initial string
}

// Fields are the fields of the submit form. The specification has more:
// a YAML snippet has them all.
var Fields = []Field{
	{Name: "name", Label: lang.Text{EN: "Name", ZH: "名称"}, Needed: true},
	{Name: "worktree", Label: lang.Text{EN: "Worktree", ZH: "工作树"}, Needed: true, Hint: lang.Text{EN: "the absolute path of a Megatron-LM checkout that every node sees", ZH: "所有节点都能访问的 Megatron-LM 代码目录的绝对路径"}},
	{Name: "script", Label: lang.Text{EN: "Program", ZH: "程序"}, Initial: "pretrain_gpt.py", Hint: lang.Text{EN: "relative to the worktree", ZH: "相对于工作树的路径"}},
	{Name: "args", Label: lang.Text{EN: "Megatron arguments", ZH: "Megatron 参数"}, lines: true, Hint: lang.Text{EN: "as on a command line: --num-layers 24 --hidden-size 1024 …", ZH: "与命令行写法相同：--num-layers 24 --hidden-size 1024 …"}},
	{Name: "nodes", Label: lang.Text{EN: "Nodes", ZH: "节点数"}, number: true, Needed: true, Initial: "1"},
	{Name: "gpus_per_node", Label: lang.Text{EN: "GPUs per node", ZH: "每节点 GPU 数"}, number: true, Initial: "8"},
	{Name: "gpu", Label: lang.Text{EN: "GPU", ZH: "GPU 型号"}, Choices: []string{"h100", "h200", "a100", "b200", "gb200"}},
	{Name: "partition", Label: lang.Text{EN: "Partition", ZH: "分区"}},
	{Name: "account", Label: lang.Text{EN: "Account", ZH: "账户"}},
	{Name: "qos", Label: lang.Text{EN: "QOS", ZH: "QOS"}},
	{Name: "time", Label: lang.Text{EN: "Time limit", ZH: "时间上限"}, Hint: lang.Text{EN: "HH:MM:SS or D-HH:MM:SS", ZH: "HH:MM:SS 或 D-HH:MM:SS"}},
	{Name: "env", Label: lang.Text{EN: "Environment", ZH: "环境变量"}, lines: true, Hint: lang.Text{EN: "NAME=value, one a line", ZH: "每行一个 NAME=value"}},
}

// The callbacks of our modals.
const (
	SubmitCallback  = "submit"
	ConfirmCallback = "submit_confirm"
)

// What the form says; TextAsked is said too where a call waits for an operator.
var (
	TextAsked      = lang.Text{EN: "This needs an operator's approval", ZH: "该操作需要管理员审批"}
	Title          = lang.Text{EN: "Submit a job", ZH: "提交作业"}
	textFormCheck  = lang.Text{EN: "Check", ZH: "检查"}
	TextClose      = lang.Text{EN: "Close", ZH: "关闭"}
	SubmitLabel    = lang.Text{EN: "Submit", ZH: "提交"}
	textFormSure   = lang.Text{EN: "Look before it goes", ZH: "提交前确认"}
	TextFormLate   = lang.Text{EN: "The form could not open in time. Press the button and it will.", ZH: "表单未能及时打开，请点击按钮重试。"}
	textFormNumber = lang.Text{EN: "a whole number, 0 or more", ZH: "应为不小于 0 的整数"}
	textFormEnv    = lang.Text{EN: "line %d is not NAME=value", ZH: "第 %d 行不是 NAME=value 的形式"}
	textFormCut    = lang.Text{EN: "The script has %d lines; the first ones are shown.", ZH: "脚本共 %d 行，此处只显示开头部分。"}
)

// View draws the form with its first values.
func View(values map[string]string, meta string, l lang.Lang) slack.ModalViewRequest {
	v := slack.ModalViewRequest{
		Type: slack.VTModal, CallbackID: SubmitCallback, PrivateMetadata: meta,
		Title: answer.Label(Title.In(l)), Submit: answer.Label(textFormCheck.In(l)), Close: answer.Label(TextClose.In(l)),
	}
	for _, f := range Fields {
		value, ok := values[f.Name]
		if !ok {
			value = f.Initial
		}
		v.Blocks.BlockSet = append(v.Blocks.BlockSet, f.block(value, l))
	}
	return v
}

func (f Field) block(value string, l lang.Lang) slack.Block {
	var e slack.BlockElement
	if f.Choices != nil {
		choices := f.Choices
		if value != "" && !slices.Contains(choices, value) {
			choices = append([]string{value}, choices...)
		}
		var opts []*slack.OptionBlockObject
		var first *slack.OptionBlockObject
		for _, c := range choices {
			o := slack.NewOptionBlockObject(answer.Cut(c, 150), answer.Label(answer.Cut(c, 75)), nil)
			opts = append(opts, o)
			if c == value {
				first = o
			}
		}
		s := slack.NewOptionsSelectBlockElement(slack.OptTypeStatic, nil, f.Name, opts...)
		s.InitialOption = first
		e = s
	} else {
		t := slack.NewPlainTextInputBlockElement(nil, f.Name)
		t.Multiline = f.lines
		t.InitialValue = answer.Cut(answer.Visible(value), answer.MaxText)
		e = t
	}
	var hint *slack.TextBlockObject
	if f.Hint.EN != "" {
		hint = answer.Label(f.Hint.In(l))
	}
	b := slack.NewInputBlock(f.Name, answer.Label(f.Label.In(l)), hint, e)
	b.Optional = !f.Needed
	return b
}

// Open shows everything at once: modals and unfurled links have no containers.
func Open(doc view.Doc) view.Doc {
	doc.Sections = slices.Clone(doc.Sections)
	for i := range doc.Sections {
		doc.Sections[i].Fold = false
	}
	return doc
}

// ConfirmView shows what would be submitted.
func ConfirmView(o launch.SubmitOut, id, approval string, l lang.Lang) slack.ModalViewRequest {
	doc := o.View(l)
	doc.Title, doc.Next = "", nil
	doc.Sections = slices.DeleteFunc(doc.Sections, func(s view.Section) bool { return s.Code != "" })
	doc = Open(doc)
	v := slack.ModalViewRequest{
		Type: slack.VTModal, CallbackID: ConfirmCallback, PrivateMetadata: id,
		Title: answer.Label(textFormSure.In(l)), Submit: answer.Label(SubmitLabel.In(l)), Close: answer.Label(TextClose.In(l)),
	}
	bs := []slack.Block{answer.Header(answer.OneLine(o.Name + " → " + o.Cluster))}
	if approval != "" {
		bs = append(bs, answer.ContextLine("⚠️ "+TextAsked.In(l)+answer.Colon.In(l)+approval))
	}
	bs = append(bs, answer.Render(doc, l).Messages[0]...)
	lines := strings.Split(strings.TrimRight(o.Script, "\n"), "\n")
	shown := answer.Chunks(answer.Clean(o.Script), answer.MessageRoom.Code)
	if len(shown) > 0 {
		el := slack.NewRichTextSectionTextElement(answer.Inert(shown[0]), nil)
		bs = append(bs, answer.Rich(slack.NewRichTextSection(answer.Bold(answer.Script.In(l)))).Block,
			answer.Rich(&slack.RichTextPreformatted{Type: slack.RTEPreformatted, Elements: []slack.RichTextSectionElement{el}}).Block)
		if len(shown) > 1 {
			bs = append(bs, answer.ContextLine(fmt.Sprintf(textFormCut.In(l), len(lines))))
		}
	}
	v.Blocks.BlockSet = bs
	return v
}

// SpecOf is the job specification of a form's values; errs are by field.
func SpecOf(values map[string]string, l lang.Lang) (s map[string]any, errs map[string]string) {
	errs = map[string]string{}
	s = map[string]any{}
	for _, f := range Fields {
		v := strings.TrimSpace(answer.Visible(values[f.Name]))
		if v == "" {
			continue
		}
		switch {
		case f.number:
			n, err := strconv.Atoi(v)
			if err != nil || n < 0 {
				errs[f.Name] = textFormNumber.In(l)
				continue
			}
			s[f.Name] = n
		case f.Name == "args":
			s[f.Name] = typed.Words(v)
		case f.Name == "env":
			env := map[string]string{}
			for i, line := range strings.Split(v, "\n") {
				if line = strings.TrimSpace(line); line == "" {
					continue
				}
				name, value, ok := strings.Cut(strings.TrimPrefix(line, "export "), "=")
				if !ok || name == "" {
					errs[f.Name] = fmt.Sprintf(textFormEnv.In(l), i+1)
					continue
				}
				env[name] = value
			}
			s[f.Name] = env
		default:
			s[f.Name] = v
		}
	}
	return s, errs
}

// AtFields puts each problem at the field that it is about; what belongs to no
// field of the form stands at the arguments.
func AtFields(l lang.Lang, err error, problems []rules.Problem) map[string]string {
	at := map[string][]string{}
	add := func(field, message, fix string) {
		root, _, _ := strings.Cut(field, ".")
		root, _, _ = strings.Cut(root, "[")
		if !slices.ContainsFunc(Fields, func(f Field) bool { return f.Name == root }) {
			if root = "args"; field != "" {
				message = field + ": " + message
			}
		}
		if fix != "" {
			message += " → " + fix
		}
		at[root] = append(at[root], message)
	}
	if err != nil {
		e := ops.AsError(err)
		for _, x := range append([]*ops.Error{e}, e.More...) {
			add(x.Field, x.Message.In(l), x.Fix.In(l))
		}
	}
	for _, p := range problems {
		if p.Severity == rules.Error {
			add(p.Field, p.Message, p.Fix)
		}
	}
	out := map[string]string{}
	for f, ms := range at {
		out[f] = answer.Cut(strings.Join(ms, "\n"), answer.MaxText)
	}
	if len(out) == 0 {
		out["name"] = answer.Broken.In(l)
	}
	return out
}

// FieldsOfSpec are the form's values for a specification.
func FieldsOfSpec(spec map[string]any) map[string]string {
	values := map[string]string{}
	for _, f := range Fields {
		switch v := spec[f.Name].(type) {
		case string:
			values[f.Name] = v
		case uint64, int64, int:
			values[f.Name] = fmt.Sprint(v)
		case []any:
			var words []string
			for _, w := range v {
				words = append(words, quoted(fmt.Sprint(w)))
			}
			values[f.Name] = strings.Join(words, " ")
		case map[string]any:
			var lines []string
			for _, k := range slices.Sorted(maps.Keys(v)) {
				lines = append(lines, k+"="+fmt.Sprint(v[k]))
			}
			values[f.Name] = strings.Join(lines, "\n")
		}
	}
	return values
}

// quoted writes a word so that split reads it back as one.
func quoted(w string) string {
	if w != "" && !strings.ContainsAny(w, " \t\n\"'") {
		return w
	}
	if strings.Contains(w, `"`) {
		return "'" + w + "'"
	}
	return `"` + w + `"`
}
