package bot

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/slack-go/slack"

	"github.com/megatron-ops/megatron-ops/bot/answer"
	"github.com/megatron-ops/megatron-ops/bot/form"
	"github.com/megatron-ops/megatron-ops/bot/incoming"
	"github.com/megatron-ops/megatron-ops/bot/typed"
	"github.com/megatron-ops/megatron-ops/bot/wording"
	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/lazy"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/ops/joblogs"
	"github.com/megatron-ops/megatron-ops/internal/ops/launch"
	"github.com/megatron-ops/megatron-ops/internal/ops/operations"
	"github.com/megatron-ops/megatron-ops/internal/store"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/logfile"
)

// maxFile is how many bytes of a file are read.
const maxFile = 8 << 20

var textFileRead = lang.Text{EN: "the file %s could not be read: %s", ZH: "无法读取文件 %s：%s"}

var textSubmitIt = lang.Text{EN: "Submit it", ZH: "提交"}

// A paste is a text that somebody pasted or attached.
type paste struct{ name, text string }

// unread says why a file could not be read.
func unread(f incoming.File, err error) *ops.Error {
	return &ops.Error{Code: ops.Failed, Message: textFileRead.With(answer.Cut(answer.OneLine(f.Name), 80), lang.Said(err))}
}

// pastedIn answers a message that contains a log, a script or a specification in a code block
// or a file; ok is false for any other message.
func (b *Bot) pastedIn(ctx context.Context, a incoming.Ask, c *ops.Call, t typed.Text) (owed []store.SlackMessage, ok bool) {
	words, f := typed.TakeFlags(typed.Unglue(t.Words))
	if len(a.Files) > 0 {
		p, err := b.download(ctx, a, a.Files[0])
		if err != nil {
			return b.reply.Doc(a, answer.Error(unread(a.Files[0], err), c.Lang), true), true
		}
		f.Share = true
		return b.examine(ctx, a, c, p, words, f), true
	}
	text := strings.Join(t.Blocks, "\n")
	if looksLikeSpec(text) || looksLikeScript(text) || looksLikeLog(text) {
		f.Share = !f.Share || a.Direct
		return b.examine(ctx, a, c, paste{"message", text}, words, f), true
	}
	return nil, false
}

func looksLikeScript(s string) bool {
	return strings.HasPrefix(strings.TrimSpace(s), "#!") || strings.Contains(s, "#SBATCH ") ||
		strings.Contains(s, "\nsrun ") || strings.Contains(s, "torch.distributed.run") && strings.Contains(s, "\n")
}

// logSigns are words that logs contain and questions do not.
var logSigns = []string{
	"Traceback (most recent call last)", "Error:", "ERROR", "[rank", "NCCL WARN", "Watchdog caught", "slurmstepd:", "srun: error",
	"torch.OutOfMemoryError", "CUDA error", "elapsed time per iteration", "Segmentation fault", "ChildFailedError", "SIGKILL", "Bus error",
}

func looksLikeLog(s string) bool {
	return slices.ContainsFunc(logSigns, func(sign string) bool { return strings.Contains(s, sign) })
}

// examine does what suits the text: it plans a specification, or submits or renders it where the
// words say so; it lints a script; and it diagnoses anything else as a log.
func (b *Bot) examine(ctx context.Context, a incoming.Ask, c *ops.Call, p paste, words []string, f typed.Flags) []store.SlackMessage {
	verb := ""
	if len(words) > 0 {
		verb, _ = typed.Resolve(words[0])
	}
	if len(words) > 0 && (verb == "" || verb == "ask") {
		f.Output = "" // the question may be about that flag
	}
	if err := applyFlags(c, f); err != nil {
		return b.reply.Doc(a, answer.Error(err, c.Lang), f.Share)
	}
	spec := looksLikeSpec(p.text)
	switch {
	case spec && verb == "render":
		return b.perform(ctx, a, c, verb, withoutProse(words), typed.Text{Blocks: []string{p.text}}, f)
	case spec && (verb == "submit" || asksToSubmit.MatchString(strings.Join(words, " "))):
		return b.perform(ctx, a, c, "submit", withoutProse(words), typed.Text{Blocks: []string{p.text}}, f)
	case spec:
		return b.perform(ctx, a, c, "plan", nil, typed.Text{Blocks: []string{p.text}}, f)
	case looksLikeScript(p.text) && verb != "diagnose":
		return b.lintText(ctx, a, c, p, f)
	}
	return b.diagnoseText(ctx, a, c, p, f)
}

// asksToSubmit matches a sentence beside a specification that asks to submit it.
var asksToSubmit = lazy.New(`(?i)^(?:(?:please|pls|can you|could you|now|just|and)[ ,]+)*(?:submit|launch|sbatch)\b|^(?:请|麻烦)*(?:帮我|给我|直接)?(?:把.{0,12})?提交`)

// withoutProse returns the flags of what was typed beside a specification: in "submit my yaml
// --time 1:00:00" the words before the flags name the specification.
func withoutProse(words []string) []string {
	i := slices.IndexFunc(words, func(w string) bool { return strings.HasPrefix(w, "-") })
	if i < 0 {
		return nil
	}
	return words[i:]
}

// submitRow returns the button that submits a pasted specification below its plan, in a row of its
// own; no row where the plan stops it, or where a button cannot carry it. The submission asks for
// confirmation as any other does.
func submitRow(c *ops.Call, t typed.Call, result any) []slack.Block {
	plan, ok := result.(launch.PlanOut)
	if !ok || !plan.Ready || len(t.Blocks) != 1 || t.JSON || c.Who.User == "" || c.Who.ReadOnly {
		return nil
	}
	words := "submit ```\n" + t.Blocks[0] + "\n```"
	if len(words) > answer.MaxValue {
		return nil
	}
	return []slack.Block{slack.NewActionBlock("", slack.NewButtonBlockElement(answer.ActRun, words, answer.Label(textSubmitIt.In(c.Lang))))}
}

// lintText answers with the problems of a pasted script.
func (b *Bot) lintText(ctx context.Context, a incoming.Ask, c *ops.Call, p paste, f typed.Flags) []store.SlackMessage {
	op, _ := operations.Lookup("lint")
	in := &launch.LintIn{Script: p.text}
	result, err := op.Run(ctx, c, in)
	if err != nil {
		return b.reply.Doc(a, b.failed(ops.AsError(err), result, c), f.Share)
	}
	return b.answerResult(ctx, a, c, op, in, result, typed.Call{Op: op.Name, Share: f.Share, JSON: f.Json})
}

// diagnoseText finds the root cause in a pasted log.
func (b *Bot) diagnoseText(ctx context.Context, a incoming.Ask, c *ops.Call, p paste, f typed.Flags) []store.SlackMessage {
	src, err := logfile.Read(p.name, strings.NewReader(p.text))
	if err != nil {
		return b.reply.Doc(a, answer.Error(ops.AsError(err), c.Lang), f.Share)
	}
	r, err := diagnose.Run(ctx, src, diagnose.Context{JobState: "ENDED"})
	if err != nil {
		return b.reply.Doc(a, answer.Error(ops.AsError(err), c.Lang), f.Share)
	}
	out := joblogs.DiagnoseOut{Report: r}
	if f.Json {
		return b.answerJSON(ctx, a, "diagnose", out, f.Share)
	}
	return b.reply.Doc(a, wording.Diagnosis(out, c.Lang), f.Share, feedback("diagnose", c.Lang))
}

// takeText are the commands that open a modal for a text where they are given nothing to work
// on.
var takeText = []string{"lint", "plan", "import", "render"}

// openPaste opens that modal, and reports whether it could be opened.
func (b *Bot) openPaste(ctx context.Context, a incoming.Ask, c *ops.Call) bool {
	meta := formMeta{Channel: a.Channel, Direct: a.Direct, Lang: c.Lang}
	return b.openView(ctx, a, form.PasteView(meta.String(), c.Lang))
}

// pastedInForm handles the text of that modal.
func (b *Bot) pastedInForm(ctx context.Context, a incoming.Ask) []store.SlackMessage {
	_, c := b.readMeta(ctx, &a)
	a.Kind = incoming.AsButton
	return b.examine(ctx, a, c, paste{"message", a.Fields[form.PasteField]}, nil, typed.Flags{})
}

// typedText returns a message's text as it was typed: without the fences of code blocks and
// Slack's markup.
func typedText(s string) string { return typed.Unescaped(strings.ReplaceAll(s, "```", "\n")) }

// download reads an attached file. It accepts addresses of Slack only.
func (b *Bot) download(ctx context.Context, a incoming.Ask, f incoming.File) (paste, error) {
	u, err := url.Parse(f.URL)
	if err != nil || !b.fileHost(u) {
		return paste{}, lang.Text{EN: "it is not on Slack", ZH: "它不在 Slack 上"}.Err()
	}
	token, err := b.app.Token(ctx, a.Team)
	if err != nil {
		return paste{}, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return paste{}, err
	}
	req.Header.Set("Authorization", "Bearer "+token)
	res, err := b.plain.Do(req)
	if err != nil {
		return paste{}, err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return paste{}, lang.Text{EN: "Slack answers %s", ZH: "Slack 返回 %s"}.Err(res.Status)
	}
	raw, err := io.ReadAll(io.LimitReader(res.Body, maxFile))
	if err != nil {
		return paste{}, err
	}
	if strings.ContainsRune(string(raw[:min(len(raw), 512)]), 0) {
		return paste{}, lang.Text{EN: "it is not text", ZH: "它不是文本"}.Err()
	}
	return paste{f.Name, string(raw)}, nil
}

// fileHost reports whether u is on a host where Slack keeps files.
func (b *Bot) fileHost(u *url.URL) bool {
	if b.api != nil {
		return u.Scheme == b.api.Scheme && u.Host == b.api.Host
	}
	return u.Scheme == "https" && (u.Host == "files.slack.com" || u.Host == "files.slack-gov.com") && u.User == nil
}

// looksLikeSpec reports whether s is a YAML mapping with a field of the job specification.
func looksLikeSpec(s string) bool {
	if strings.HasPrefix(strings.TrimSpace(s), "#!") {
		return false
	}
	var m map[string]any
	if yaml.Unmarshal([]byte(s), &m) != nil {
		return false
	}
	return slices.ContainsFunc([]string{"name", "nodes", "args", "partition", "worktree", "gpus_per_node", "preset"}, func(k string) bool {
		_, ok := m[k]
		return ok
	})
}
