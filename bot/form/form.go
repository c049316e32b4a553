// Package form draws the modal that submits a job: its fields, the problems with their values,
// the specification that they make, and the page that asks for confirmation.
package form

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/slack-go/slack"

	"github.com/megatron-ops/megatron-ops/bot/answer"
	"github.com/megatron-ops/megatron-ops/internal/lang"
)

// The callback ids of our modals, and the actions in the form that belong to no field.
const (
	SubmitCallback  = "submit"
	ConfirmCallback = "submit_confirm"
	ActBegin        = "form_begin" // value: what the form is to start from
	ActRead         = "form_read"
	actCheck        = "form_check"
)

// What a form can start from: the part of ActBegin's value before the colon.
const (
	BeginRun    = "run"    // :CLUSTER/ID
	BeginRecipe = "recipe" // :MODEL
	BeginPaste  = "paste"
)

// The form's texts. Other packages use TextAsked where a call waits for an operator.
var (
	TextAsked      = lang.Text{EN: "This needs an operator's approval", ZH: "该操作需要管理员审批"}
	Title          = lang.Text{EN: "Submit a job", ZH: "提交作业"}
	TextClose      = lang.Text{EN: "Close", ZH: "关闭"}
	SubmitLabel    = lang.Text{EN: "Submit", ZH: "提交"}
	TextFormLate   = lang.Text{EN: "The form could not be opened in time. Press the button to open it.", ZH: "表单未能及时打开，请点击按钮重试。"}
	textFormCheck  = lang.Text{EN: "Check", ZH: "检查"}
	textContinue   = lang.Text{EN: "Continue", ZH: "下一步"}
	textCheckNow   = lang.Text{EN: "Check now", ZH: "立即检查"}
	textBegin      = lang.Text{EN: "Begin with", ZH: "从何处开始"}
	textBeginHow   = lang.Text{EN: "a run, a recipe, or a paste", ZH: "以往运行、配方或粘贴"}
	textMyRuns     = lang.Text{EN: "My last runs", ZH: "我最近的运行"}
	textRecipes    = lang.Text{EN: "Recipes", ZH: "模型配方"}
	textOther      = lang.Text{EN: "Other", ZH: "其他"}
	textPasteIt    = lang.Text{EN: "Paste a script or YAML", ZH: "粘贴脚本或 YAML"}
	textReadIt     = lang.Text{EN: "Read it into the form", ZH: "读入表单"}
	textChoose     = lang.Text{EN: "the cluster's default", ZH: "集群默认"}
	textNone       = lang.Text{EN: "none", ZH: "不使用"}
	textKeptLong   = lang.Text{EN: "%s: longer than the %d characters that a form can show. The job keeps what it has; paste its YAML to change it.", ZH: "%s：超过表单可显示的 %d 个字符，作业沿用原有内容；如需修改，请粘贴 YAML。"}
	textChecking   = lang.Text{EN: "Looking at the cluster…", ZH: "正在检查集群…"}
	textCheckingOf = lang.Text{EN: "Partition, limits, files and the likely start of %s are being checked. Nothing is submitted yet.", ZH: "正在检查 %s 的分区、限额、文件与预计开始时间，尚未提交。"}
)

// A Choice is one option of a select.
type Choice struct{ Value, Label string }

// A State is the state of an open form.
type State struct {
	Values map[string]string
	// Choices are the values that the cluster offers, by field.
	Choices map[string][]string
	// Runs and Recipes are what the form can start from. Paste shows the field for a text to
	// start from.
	Runs    []Choice
	Recipes []string
	Paste   bool
	Verdict Verdict
	Meta    string
	// Gen is the generation of the form's blocks. It is increased when values are replaced,
	// since Slack keeps what was typed as long as a block keeps its id.
	Gen int
}

func (s State) blockID(field string) string {
	if s.Gen == 0 {
		return field
	}
	return fmt.Sprintf("%s~%d", field, s.Gen)
}

// AtBlocks changes the keys of errs from fields to block ids of the form's generation gen. A
// message about a field that is not among those shown is put at the name: Slack refuses a block
// that the form does not have.
func AtBlocks(errs map[string]string, gen int, shown map[string]string, l lang.Lang) map[string]string {
	s, out := State{Gen: gen}, map[string]string{}
	for _, f := range Fields { // the name is the first
		said, wrong := errs[f.Name]
		if _, there := shown[f.Name]; wrong && there {
			out[s.blockID(f.Name)] = said
		} else if wrong {
			at := s.blockID(Fields[0].Name)
			out[at] = strings.TrimPrefix(out[at]+"; "+f.Label.In(l)+answer.Colon.In(l)+said, "; ")
		}
	}
	return out
}

// View draws the form.
func View(s State, l lang.Lang) slack.ModalViewRequest {
	v := slack.ModalViewRequest{
		Type: slack.VTModal, CallbackID: SubmitCallback, PrivateMetadata: s.Meta,
		Title: answer.Label(Title.In(l)), Submit: answer.Label(textContinue.In(l)), Close: answer.Label(TextClose.In(l)),
	}
	add := func(bs ...slack.Block) { v.Blocks.BlockSet = append(v.Blocks.BlockSet, bs...) }
	add(s.startSelect(l)...)
	for _, f := range Fields {
		value, ok := s.Values[f.Name]
		if !ok {
			value = f.Initial
		}
		if f.kind == rare && value == "" && len(s.Choices[f.Name]) == 0 {
			continue
		}
		if f.TooLong(value) {
			add(answer.ContextLine(textKeptLong.With(f.Label, answer.MaxText).In(l)))
		} else {
			add(s.block(f, value, l))
		}
		for _, said := range s.Verdict.At[f.Name][:min(len(s.Verdict.At[f.Name]), 4)] {
			add(answer.ContextLine(answer.Cut(said, 600)))
		}
	}
	for _, said := range s.Verdict.Summary {
		add(answer.ContextMarkup(said))
	}
	add(slack.NewActionBlock("", slack.NewButtonBlockElement(actCheck, "check", answer.Label(textCheckNow.In(l)))))
	return v
}

// startSelect draws the select for what the form starts from, and the field for a pasted text.
func (s State) startSelect(l lang.Lang) (bs []slack.Block) {
	var groups []*slack.OptionGroupBlockObject
	group := func(label lang.Text, cs []Choice) {
		var opts []*slack.OptionBlockObject
		for _, c := range cs[:min(len(cs), maxOptions)] {
			opts = append(opts, option(c))
		}
		if len(opts) > 0 {
			groups = append(groups, slack.NewOptionGroupBlockElement(answer.Label(label.In(l)), opts...))
		}
	}
	group(textMyRuns, s.Runs)
	var recipes []Choice
	for _, r := range s.Recipes {
		recipes = append(recipes, Choice{BeginRecipe + ":" + r, r})
	}
	group(textRecipes, recipes)
	group(textOther, []Choice{{BeginPaste, textPasteIt.In(l)}})
	e := slack.NewOptionsGroupSelectBlockElement(slack.OptTypeStatic, answer.Label(textBeginHow.In(l)), ActBegin, groups...)
	section := slack.NewSectionBlock(answer.Markup("*"+textBegin.In(l)+"*"), nil, slack.NewAccessory(e))
	section.BlockID = s.blockID(ActBegin)
	bs = append(bs, section)
	if s.Paste {
		t := slack.NewPlainTextInputBlockElement(nil, PasteField)
		t.Multiline = true
		in := slack.NewInputBlock(s.blockID(PasteField), answer.Label(textPasteIt.In(l)), nil, t)
		in.Optional = true
		bs = append(bs, in, slack.NewActionBlock("", slack.NewButtonBlockElement(ActRead, "read", answer.Label(textReadIt.In(l)))))
	}
	return append(bs, slack.NewDividerBlock())
}

// maxOptions is how many options Slack accepts in a select.
const maxOptions = 100

// option draws an option. Its value is whole, since it is what is submitted.
func option(c Choice) *slack.OptionBlockObject {
	return slack.NewOptionBlockObject(c.Value, answer.Label(answer.Cut(c.Label, 75)), nil)
}

// selectable reports whether a select can hold values; a person types them otherwise.
func selectable(values []string) bool {
	return len(values) > 0 && len(values) <= maxOptions &&
		!slices.ContainsFunc(values, func(v string) bool { return utf8.RuneCountInString(v) > answer.MaxOption })
}

// options returns an option for each value, and those that are chosen.
func options(values, chosen []string) (all, initial []*slack.OptionBlockObject) {
	for _, v := range values {
		o := option(Choice{v, v})
		all = append(all, o)
		if slices.Contains(chosen, v) {
			initial = append(initial, o)
		}
	}
	return all, initial
}

// block draws a field. Slack reports a change when one leaves a select, or presses return in a
// field of one line.
func (s State) block(f Field, value string, l lang.Lang) slack.Block {
	var e slack.BlockElement
	switch offered := s.Choices[f.Name]; {
	case !selectable(offered) || f.kind != choices && !selectable([]string{value}):
		t := slack.NewPlainTextInputBlockElement(nil, f.Name)
		t.Multiline = f.kind == someLines
		t.InitialValue = answer.Visible(value)
		e = t
	case f.kind == choices:
		opts, first := options(offered, strings.Split(value, ","))
		m := slack.NewOptionsMultiSelectBlockElement(slack.MultiOptTypeStatic, nil, f.Name, opts...)
		m.InitialOptions = first
		e = m
	default:
		if value != "" && !slices.Contains(offered, value) {
			offered = append([]string{value}, offered[:min(len(offered), maxOptions-1)]...)
		}
		opts, first := options(offered, []string{value})
		unset := textChoose
		if f.Rare() { // a cluster has a default partition, but no default reservation
			unset = textNone
		}
		x := slack.NewOptionsSelectBlockElement(slack.OptTypeStatic, answer.Label(unset.In(l)), f.Name, opts...)
		if len(first) > 0 {
			x.InitialOption = first[0]
		}
		e = x
	}
	var hint *slack.TextBlockObject
	if f.Hint.EN != "" {
		hint = answer.Label(f.Hint.In(l))
	}
	b := slack.NewInputBlock(s.blockID(f.Name), answer.Label(f.Label.In(l)), hint, e)
	b.Optional = !f.Needed
	b.DispatchAction = f.kind != someLines
	return b
}

// CheckingView is the page that is shown while the cluster is being asked.
func CheckingView(name, meta string, l lang.Lang) slack.ModalViewRequest {
	said := answer.OneLine(fmt.Sprintf(textCheckingOf.In(l), name))
	return slack.ModalViewRequest{
		Type: slack.VTModal, CallbackID: SubmitCallback + "_checking", PrivateMetadata: meta,
		Title: answer.Label(Title.In(l)), Close: answer.Label(TextClose.In(l)),
		Blocks: slack.Blocks{BlockSet: []slack.Block{answer.Header(textChecking.In(l)), slack.NewSectionBlock(answer.Label(said), nil, nil)}},
	}
}
