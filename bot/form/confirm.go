package form

import (
	"fmt"
	"strings"
	"time"

	"github.com/slack-go/slack"

	"github.com/megatron-ops/megatron-ops/bot/answer"
	"github.com/megatron-ops/megatron-ops/internal/lang"
)

// A Summary describes a submission for the person who is to confirm it.
type Summary struct {
	Name, Cluster, Headline string
	Partition, Account, QOS string
	// Start is the expected start; zero means that Slurm gives no estimate. Memory is the
	// estimate for the GPU that needs most.
	Start    time.Time
	Memory   string
	Warnings []string
	// Changes are the differences from the job Since, the last successful run with this name.
	Since   string
	Changes []string
	// Script is the whole script and Digest its SHA-256. Approval says why an operator must
	// agree, and is empty where none must.
	Script, Digest, Approval string
}

var (
	textSure     = lang.Text{EN: "Submit this?", ZH: "确认提交？"}
	textStart    = lang.Text{EN: "Likely start", ZH: "预计开始"}
	textMemory   = lang.Text{EN: "GPU memory", ZH: "显存"}
	textQueue    = lang.Text{EN: "Partition", ZH: "分区"}
	textAccount  = lang.Text{EN: "Account", ZH: "账户"}
	textQOS      = lang.Text{EN: "QOS", ZH: "QOS"}
	textWarnings = lang.Text{EN: "Warnings", ZH: "警告"}
	textSince    = lang.Text{EN: "Changed since job %s, your last good run", ZH: "与上次成功的作业 %s 相比"}
	textSame     = lang.Text{EN: "Nothing has changed since job %s, your last good run.", ZH: "与上次成功的作业 %s 完全相同。"}
	textScript   = lang.Text{EN: "Script: %d lines, SHA-256 %s; exactly this one is submitted; it comes as a file into the job's thread.", ZH: "脚本共 %d 行，SHA-256 %s；只会提交该脚本，提交后作为文件附在作业的讨论串中。"}
	textMoreSaid = lang.Text{EN: "and %d more", ZH: "另有 %d 条"}
)

// mostLines is how many warnings are shown, and how many changes.
const mostLines = 8

// ConfirmView draws the page that asks for confirmation. id is the held call's.
func ConfirmView(s Summary, id string, l lang.Lang) slack.ModalViewRequest {
	v := slack.ModalViewRequest{
		Type: slack.VTModal, CallbackID: ConfirmCallback, PrivateMetadata: id,
		Title: answer.Label(textSure.In(l)), Submit: answer.Label(SubmitLabel.In(l)), Close: answer.Label(TextClose.In(l)),
	}
	bs := []slack.Block{answer.Header(answer.OneLine(s.Name + " → " + s.Cluster)), slack.NewSectionBlock(answer.Label(answer.OneLine(s.Headline)), nil, nil)}
	if s.Approval != "" {
		bs = append(bs, answer.ContextLine(warnMark+TextAsked.In(l)+answer.Colon.In(l)+s.Approval))
	}
	var fields []*slack.TextBlockObject
	add := func(name lang.Text, markup string) {
		if markup != "" {
			fields = append(fields, answer.Markup("*"+name.In(l)+"*\n"+markup))
		}
	}
	add(textQueue, answer.Escape(s.Partition))
	add(textAccount, answer.Escape(s.Account))
	add(textQOS, answer.Escape(s.QOS))
	add(textMemory, answer.Escape(s.Memory))
	if !s.Start.IsZero() {
		add(textStart, fmt.Sprintf("<!date^%d^{date_short_pretty} {time}|%s>", s.Start.Unix(), s.Start.UTC().Format("2006-01-02 15:04 UTC")))
	}
	if len(fields) > 0 {
		bs = append(bs, slack.NewSectionBlock(nil, fields, nil))
	}
	list := func(heading string, lines []string) {
		if len(lines) == 0 {
			return
		}
		markup := "*" + answer.Escape(heading) + "*"
		for i, line := range lines {
			if i == mostLines {
				markup += "\n" + fmt.Sprintf(textMoreSaid.In(l), len(lines)-i)
				break
			}
			markup += "\n• " + answer.Escape(answer.Cut(answer.OneLine(line), 220))
		}
		bs = append(bs, slack.NewSectionBlock(answer.Markup(markup), nil, nil))
	}
	list(textWarnings.In(l), s.Warnings)
	if s.Since != "" && len(s.Changes) == 0 {
		bs = append(bs, answer.ContextLine(fmt.Sprintf(textSame.In(l), s.Since)))
	}
	list(fmt.Sprintf(textSince.In(l), s.Since), s.Changes)
	lines := strings.Count(strings.TrimRight(s.Script, "\n"), "\n") + 1
	bs = append(bs, answer.ContextLine(fmt.Sprintf(textScript.In(l), lines, s.Digest[:min(len(s.Digest), 12)])))
	v.Blocks.BlockSet = bs
	return v
}
