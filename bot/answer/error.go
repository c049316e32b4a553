package answer

import (
	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/view"
)

var (
	textError = map[ops.Code]lang.Text{
		ops.BadInput:   {EN: "That does not work as typed", ZH: "输入有误"},
		ops.Failed:     {EN: "That failed", ZH: "操作失败"},
		ops.NotAllowed: {EN: "Not allowed", ZH: "没有权限"},
		ops.NotFound:   {EN: "Not found", ZH: "没有找到"},
		ops.Preflight:  {EN: "The preflight found problems", ZH: "预检发现问题"},
	}
	textField = lang.Text{EN: "Field", ZH: "字段"}
	textWhat  = lang.Text{EN: "Problem", ZH: "问题"}
	textFix   = lang.Text{EN: "What would work", ZH: "如何修正"}
)

// Error draws an error: the field, what is wrong with it, and what would work.
func Error(e *ops.Error, l lang.Lang) view.Doc {
	title, ok := textError[e.Code]
	if !ok {
		title = textError[ops.Failed]
	}
	d := view.Doc{Title: title.In(l), Tone: view.Bad}
	for _, x := range append([]*ops.Error{e}, e.More...) {
		var fs []view.Fact
		if x.Field != "" {
			fs = append(fs, view.Fact{Name: textField.In(l), Value: x.Field})
		}
		fs = append(fs, view.Fact{Name: textWhat.In(l), Value: x.Message.In(l)})
		if x.Fix.EN != "" {
			fs = append(fs, view.Fact{Name: textFix.In(l), Value: x.Fix.In(l)})
		}
		d.Sections = append(d.Sections, view.Section{Facts: fs})
	}
	return d
}

// LanguageOfDoc returns the language that a document is written in.
func LanguageOfDoc(d view.Doc) lang.Lang {
	if len(d.Sections) > 0 {
		return lang.Of(d.Title + d.Sections[0].Heading)
	}
	return lang.Of(d.Title)
}
