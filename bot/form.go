package bot

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/slack-go/slack"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/ops/operations"
	"github.com/megatron-ops/megatron-ops/internal/redact"
	"github.com/megatron-ops/megatron-ops/internal/store"
	"github.com/megatron-ops/megatron-ops/internal/view"
	"github.com/megatron-ops/megatron-ops/knowledge/rules"
)

// A formField is one field of the submit form; its name is the job
// specification's.
type formField struct {
	name    string
	label   lang.Text
	hint    lang.Text
	choices []string // a select instead of a line of text
	number  bool
	lines   bool // several lines
	needed  bool
	initial string
}

// formFields are the fields of the submit form. The specification has more:
// a YAML snippet has them all.
var formFields = []formField{
	{name: "name", label: lang.Text{EN: "Name", ZH: "名称"}, needed: true},
	{name: "worktree", label: lang.Text{EN: "Worktree", ZH: "工作树"}, needed: true, hint: lang.Text{EN: "the absolute path of a Megatron-LM checkout that every node sees", ZH: "所有节点都能访问的 Megatron-LM 代码目录的绝对路径"}},
	{name: "script", label: lang.Text{EN: "Program", ZH: "程序"}, initial: "pretrain_gpt.py", hint: lang.Text{EN: "relative to the worktree", ZH: "相对于工作树的路径"}},
	{name: "args", label: lang.Text{EN: "Megatron arguments", ZH: "Megatron 参数"}, lines: true, hint: lang.Text{EN: "as on a command line: --num-layers 24 --hidden-size 1024 …", ZH: "与命令行写法相同：--num-layers 24 --hidden-size 1024 …"}},
	{name: "nodes", label: lang.Text{EN: "Nodes", ZH: "节点数"}, number: true, needed: true, initial: "1"},
	{name: "gpus_per_node", label: lang.Text{EN: "GPUs per node", ZH: "每节点 GPU 数"}, number: true, initial: "8"},
	{name: "gpu", label: lang.Text{EN: "GPU", ZH: "GPU 型号"}, choices: []string{"h100", "h200", "a100", "b200", "gb200"}},
	{name: "partition", label: lang.Text{EN: "Partition", ZH: "分区"}},
	{name: "account", label: lang.Text{EN: "Account", ZH: "账户"}},
	{name: "qos", label: lang.Text{EN: "QOS", ZH: "QOS"}},
	{name: "time", label: lang.Text{EN: "Time limit", ZH: "时间上限"}, hint: lang.Text{EN: "HH:MM:SS or D-HH:MM:SS", ZH: "HH:MM:SS 或 D-HH:MM:SS"}},
	{name: "env", label: lang.Text{EN: "Environment", ZH: "环境变量"}, lines: true, hint: lang.Text{EN: "NAME=value, one a line", ZH: "每行一个 NAME=value"}},
}

// The callbacks of our modals.
const (
	viewSubmit  = "submit"
	viewConfirm = "submit_confirm"
)

var (
	textFormTitle  = lang.Text{EN: "Submit a job", ZH: "提交作业"}
	textFormCheck  = lang.Text{EN: "Check", ZH: "检查"}
	textFormClose  = lang.Text{EN: "Close", ZH: "关闭"}
	textFormSubmit = lang.Text{EN: "Submit", ZH: "提交"}
	textFormSure   = lang.Text{EN: "Look before it goes", ZH: "提交前确认"}
	textFormLate   = lang.Text{EN: "The form could not open in time. Press the button and it will.", ZH: "表单未能及时打开，请点击按钮重试。"}
	textFormNumber = lang.Text{EN: "a whole number, 0 or more", ZH: "应为不小于 0 的整数"}
	textFormEnv    = lang.Text{EN: "line %d is not NAME=value", ZH: "第 %d 行不是 NAME=value 的形式"}
	textFormCut    = lang.Text{EN: "The script has %d lines; the first ones are shown.", ZH: "脚本共 %d 行，此处只显示开头部分。"}
)

// submitForm draws the form with its first values.
func submitForm(values map[string]string, meta string, l lang.Lang) slack.ModalViewRequest {
	v := slack.ModalViewRequest{
		Type: slack.VTModal, CallbackID: viewSubmit, PrivateMetadata: meta,
		Title: plain(textFormTitle.In(l)), Submit: plain(textFormCheck.In(l)), Close: plain(textFormClose.In(l)),
	}
	for _, f := range formFields {
		value, ok := values[f.name]
		if !ok {
			value = f.initial
		}
		v.Blocks.BlockSet = append(v.Blocks.BlockSet, f.block(value, l))
	}
	return v
}

func (f formField) block(value string, l lang.Lang) slack.Block {
	var e slack.BlockElement
	if f.choices != nil {
		choices := f.choices
		if value != "" && !slices.Contains(choices, value) {
			choices = append([]string{value}, choices...)
		}
		var opts []*slack.OptionBlockObject
		var first *slack.OptionBlockObject
		for _, c := range choices {
			o := slack.NewOptionBlockObject(cut(c, 150), plain(cut(c, 75)), nil)
			opts = append(opts, o)
			if c == value {
				first = o
			}
		}
		s := slack.NewOptionsSelectBlockElement(slack.OptTypeStatic, nil, f.name, opts...)
		s.InitialOption = first
		e = s
	} else {
		t := slack.NewPlainTextInputBlockElement(nil, f.name)
		t.Multiline = f.lines
		t.InitialValue = cut(visible(value), maxText)
		e = t
	}
	var hint *slack.TextBlockObject
	if f.hint.EN != "" {
		hint = plain(f.hint.In(l))
	}
	b := slack.NewInputBlock(f.name, plain(f.label.In(l)), hint, e)
	b.Optional = !f.needed
	return b
}

// openForm opens the submit form, which Slack allows for three seconds after
// the command or the press.
func (b *Bot) openForm(ctx context.Context, a ask, c *ops.Call) []store.SlackMessage {
	return b.openFormWith(ctx, a, c, b.formValues(ctx, a), "")
}

func (b *Bot) openFormWith(ctx context.Context, a ask, c *ops.Call, values map[string]string, began string) []store.SlackMessage {
	meta, err := json.Marshal(formMeta{Channel: a.Channel, Direct: a.Direct, Lang: c.Lang, Base: began})
	if a.local != nil && err == nil {
		a.local.form, a.local.values = string(meta), values
		return nil
	}
	late := err != nil || a.Trigger == "" || b.now().Sub(a.At) > 2500*time.Millisecond
	if !late {
		var api *slack.Client
		if api, err = b.client(ctx, a.Team); err == nil {
			_, err = api.OpenViewContext(ctx, a.Trigger, submitForm(values, string(meta), c.Lang))
		}
		if err == nil {
			return nil
		}
		b.log.Warn("slack: form not opened", "err", err)
	}
	open := slack.NewActionBlock("", slack.NewButtonBlockElement(actRun+":form", "submit", plain(textFormTitle.In(c.Lang))))
	return b.replyWith(a, view.Doc{Title: textFormLate.In(c.Lang)}, false, open)
}

// formValues are the form's first values: the site's profile, then the person's
// last run.
func (b *Bot) formValues(ctx context.Context, a ask) map[string]string {
	values := map[string]string{}
	if b.cfg.Site != nil {
		maps.Copy(values, b.cfg.Site(b.clusterOf(ctx, a)))
	}
	var last map[string]string
	if _, err := b.cfg.Store.Get(ctx, docLast, a.Team+"/"+a.User, b.now(), &last); err == nil {
		maps.Copy(values, last)
	}
	return values
}

// formMeta travels in the form; it comes back from the client and gives no
// rights.
type formMeta struct {
	Channel string    `json:"channel"`
	Direct  bool      `json:"direct,omitempty"`
	Lang    lang.Lang `json:"lang"`
	// Base names the specification that the form began with, where it was a job's.
	Base string `json:"base,omitempty"`
}

// form answers a sent form at once: with errors at the fields, with the script
// to look at, or by taking the confirmed job.
func (b *Bot) form(ctx context.Context, a ask) (any, error) {
	switch a.Callback {
	case viewSubmit:
		return b.checkForm(ctx, a)
	case viewConfirm:
		if err := b.accept(ctx, a); err != nil {
			return nil, err
		}
		return object{"response_action": "clear"}, nil
	}
	return nil, nil
}

func (b *Bot) checkForm(ctx context.Context, a ask) (any, error) {
	var meta formMeta
	_ = json.Unmarshal([]byte(a.Meta), &meta) // what cannot be read is empty
	a.Channel, a.Direct = meta.Channel, meta.Direct
	c := b.call(ctx, a)
	if meta.Lang != "" {
		c.Lang = meta.Lang
	}
	typed, errs := specOf(a.Fields, c.Lang)
	if len(errs) > 0 {
		return object{"response_action": "errors", "errors": errs}, nil
	}
	spec, err := yaml.Marshal(b.withBase(ctx, a, meta.Base, typed))
	if err != nil {
		return nil, err
	}
	op, ok := operations.Lookup("submit")
	if !ok {
		return nil, nil
	}
	t := typedCall{Op: "submit", Blocks: []string{string(spec)}, Key: a.Key, Cluster: b.settings(ctx, a.Team, a.User).Cluster}
	in, err := fill(op, t)
	if err != nil {
		return object{"response_action": "errors", "errors": atFields(c.Lang, err, nil)}, nil
	}
	dry, ok := in.(*ops.SubmitIn)
	if !ok {
		return nil, nil
	}
	dry.DryRun = true
	// The preflight is arithmetic; Slack waits three seconds.
	quick, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	result, err := op.Run(quick, c, in)
	planned, ok := result.(ops.SubmitOut)
	if err != nil || !ok || rules.Blocking(planned.Problems) {
		return object{"response_action": "errors", "errors": atFields(c.Lang, err, planned.Problems)}, nil
	}
	dry.DryRun = false
	a.Kind, a.Response = asButton, "" // what comes of it is told in the channel or directly
	id, err := b.hold(ctx, a, t, false)
	if err != nil {
		return nil, err
	}
	return object{"response_action": "update", "view": confirmView(planned, id, b.needsApproval(c, op, in), c.Lang)}, nil
}

// open shows everything at once: modals and unfurled links have no containers.
func open(doc view.Doc) view.Doc {
	doc.Sections = slices.Clone(doc.Sections)
	for i := range doc.Sections {
		doc.Sections[i].Fold = false
	}
	return doc
}

// confirmView shows what would be submitted.
func confirmView(o ops.SubmitOut, id, approval string, l lang.Lang) slack.ModalViewRequest {
	doc := o.View(l)
	doc.Title, doc.Next = "", nil
	doc.Sections = slices.DeleteFunc(doc.Sections, func(s view.Section) bool { return s.Code != "" })
	doc = open(doc)
	v := slack.ModalViewRequest{
		Type: slack.VTModal, CallbackID: viewConfirm, PrivateMetadata: id,
		Title: plain(textFormSure.In(l)), Submit: plain(textFormSubmit.In(l)), Close: plain(textFormClose.In(l)),
	}
	bs := []slack.Block{header(oneLine(o.Name + " → " + o.Cluster))}
	if approval != "" {
		bs = append(bs, contextLine("⚠️ "+textAsked.In(l)+textColon.In(l)+approval))
	}
	bs = append(bs, Render(doc, l).Messages[0]...)
	lines := strings.Split(strings.TrimRight(o.Script, "\n"), "\n")
	shown := chunks(clean(o.Script), inlineCode)
	if len(shown) > 0 {
		el := slack.NewRichTextSectionTextElement(Inert(shown[0]), nil)
		bs = append(bs, rich(slack.NewRichTextSection(bold(textScript.In(l)))).block,
			rich(&slack.RichTextPreformatted{Type: slack.RTEPreformatted, Elements: []slack.RichTextSectionElement{el}}).block)
		if len(shown) > 1 {
			bs = append(bs, contextLine(fmt.Sprintf(textFormCut.In(l), len(lines))))
		}
	}
	v.Blocks.BlockSet = bs
	return v
}

// submitted carries the confirmed job out. Sent twice, it is carried out once.
func (b *Bot) submitted(ctx context.Context, a ask) []store.SlackMessage {
	if a.Callback != viewConfirm {
		return nil
	}
	a.Value = a.Meta
	var h held
	if ok, err := b.cfg.Store.Get(ctx, docHeld, a.Meta, b.now(), &h); err == nil && ok {
		a.Channel, a.Direct = h.Ask.Channel, h.Ask.Direct
		last := maps.Clone(h.Ask.Fields)
		if redact.Text(last["env"]) != last["env"] {
			delete(last, "env") // secrets are not kept
		}
		if err := b.cfg.Store.Put(ctx, docLast, a.Team+"/"+a.User, last, time.Time{}); err != nil {
			b.log.Warn("slack: last run", "err", err)
		}
	}
	a.Kind = asButton
	owed := b.answered(ctx, a, true)
	// There is no message to rewrite: the form is closed.
	return slices.DeleteFunc(owed, func(m store.SlackMessage) bool { return m.Key == a.Key+"/replace" || m.Key == a.Key+"/0/replace" })
}

// specOf is the job specification of a form's values; errs are by field.
func specOf(values map[string]string, l lang.Lang) (s map[string]any, errs map[string]string) {
	errs = map[string]string{}
	s = map[string]any{}
	for _, f := range formFields {
		v := strings.TrimSpace(visible(values[f.name]))
		if v == "" {
			continue
		}
		switch {
		case f.number:
			n, err := strconv.Atoi(v)
			if err != nil || n < 0 {
				errs[f.name] = textFormNumber.In(l)
				continue
			}
			s[f.name] = n
		case f.name == "args":
			s[f.name] = split(dashes(curly.Replace(lineJoin.ReplaceAllString(v, " "))))
		case f.name == "env":
			env := map[string]string{}
			for i, line := range strings.Split(v, "\n") {
				if line = strings.TrimSpace(line); line == "" {
					continue
				}
				name, value, ok := strings.Cut(strings.TrimPrefix(line, "export "), "=")
				if !ok || name == "" {
					errs[f.name] = fmt.Sprintf(textFormEnv.In(l), i+1)
					continue
				}
				env[name] = value
			}
			s[f.name] = env
		default:
			s[f.name] = v
		}
	}
	return s, errs
}

// atFields puts each problem at the field that it is about; what belongs to no
// field of the form stands at the arguments.
func atFields(l lang.Lang, err error, problems []rules.Problem) map[string]string {
	at := map[string][]string{}
	add := func(field, message, fix string) {
		root, _, _ := strings.Cut(field, ".")
		root, _, _ = strings.Cut(root, "[")
		if !slices.ContainsFunc(formFields, func(f formField) bool { return f.name == root }) {
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
		e := ops.AsError(err).In(l)
		for _, x := range append([]*ops.Error{e}, e.More...) {
			add(x.Field, x.Message, x.Fix)
		}
	}
	for _, p := range problems {
		if p.Severity == rules.Error {
			add(p.Field, p.Message, p.Fix)
		}
	}
	out := map[string]string{}
	for f, ms := range at {
		out[f] = cut(strings.Join(ms, "\n"), maxText)
	}
	if len(out) == 0 {
		out["name"] = textBroken.In(l)
	}
	return out
}
