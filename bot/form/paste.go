package form

import (
	"github.com/slack-go/slack"

	"github.com/megatron-ops/megatron-ops/bot/answer"
	"github.com/megatron-ops/megatron-ops/internal/lang"
)

// PasteCallback is the callback id of the modal that takes a text, and PasteField is its field.
const (
	PasteCallback = "paste"
	PasteField    = "text"
)

var (
	textPaste     = lang.Text{EN: "Check a text", ZH: "检查文本"}
	textPasteWhat = lang.Text{EN: "A script, a job in YAML, or a log", ZH: "脚本、YAML 作业规格或日志"}
	textPasteHint = lang.Text{EN: "A script is linted, a job is planned, a log is diagnosed. Nothing is submitted.", ZH: "脚本做检查，作业规格做预检，日志做诊断；不会提交任何作业。"}
)

// PasteView draws the modal that takes a text to look at.
func PasteView(meta string, l lang.Lang) slack.ModalViewRequest {
	e := slack.NewPlainTextInputBlockElement(nil, PasteField)
	e.Multiline = true
	return slack.ModalViewRequest{
		Type: slack.VTModal, CallbackID: PasteCallback, PrivateMetadata: meta,
		Title: answer.Label(textPaste.In(l)), Submit: answer.Label(textFormCheck.In(l)), Close: answer.Label(TextClose.In(l)),
		Blocks: slack.Blocks{BlockSet: []slack.Block{slack.NewInputBlock(PasteField, answer.Label(textPasteWhat.In(l)), answer.Label(textPasteHint.In(l)), e)}},
	}
}
