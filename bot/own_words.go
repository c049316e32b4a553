package bot

import (
	"cmp"
	"context"
	"strings"

	"github.com/megatron-ops/megatron-ops/bot/answer"
	"github.com/megatron-ops/megatron-ops/bot/help"
	"github.com/megatron-ops/megatron-ops/bot/incoming"
	"github.com/megatron-ops/megatron-ops/bot/typed"
	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/store"
	"github.com/megatron-ops/megatron-ops/internal/view"
	"github.com/megatron-ops/megatron-ops/slurm"
)

// audit records a change that is not an operation.
func (b *Bot) audit(ctx context.Context, c *ops.Call, what string, in, result any) {
	if b.cfg.Service.Audit != nil {
		b.cfg.Service.Audit(ctx, ops.AuditEntry{At: b.now(), Who: c.Who, Op: what, In: in, Out: result})
	}
}

// warn logs an error that does not prevent the answer; a nil error is ignored.
func (b *Bot) warn(what string, err error, about ...any) {
	if err != nil {
		b.log.Warn("slack: "+what, append(about, "err", err)...)
	}
}

func (b *Bot) ownCommand(ctx context.Context, a incoming.Ask, c *ops.Call, name string, words []string, f typed.Flags) []store.SlackMessage {
	if a.Foreign && name != "help" && name != "whoami" {
		return b.reply.Doc(a, answer.Error(&ops.Error{Code: ops.NotAllowed, Message: textForeign}, c.Lang), false)
	}
	switch name {
	case "help":
		topic := ""
		if len(words) > 0 {
			topic = words[0]
		}
		return b.help(a, c, topic, f.Share)
	case "link":
		return b.profile.Link(ctx, a, c)
	case "unlink":
		return b.profile.Unlink(ctx, a, c)
	case "whoami":
		return b.reply.Doc(a, b.profile.WhoAmI(ctx, a, c), false)
	case "web":
		return b.page(ctx, a, c, words, f)
	case "settings":
		return b.profile.SetSettings(ctx, a, c, words)
	case "subscribe", "unsubscribe":
		return b.news.Subscribe(ctx, a, c, cmp.Or(f.Cluster, b.people.ClusterOf(ctx, a)), words, name == "subscribe")
	case "mute", "unmute":
		return b.news.Mute(ctx, a, c, cmp.Or(f.Cluster, b.people.ClusterOf(ctx, a)), words, name == "mute")
	}
	return b.reply.Doc(a, help.Unknown(name, c.Lang), false)
}

var (
	textJobPage = lang.Text{EN: "Job %s, once you are signed in", ZH: "作业 %s（登录之后）"}
	textWebOf   = lang.Text{EN: "%q is not a job id", ZH: "%q 不是作业号"}
	textWebOfTo = lang.Text{EN: "web alone, or with one job id: web 4711", ZH: "只写 web，或附一个作业号：web 4711"}
)

// page answers with the link to the page, and with a job's address if words name one.
func (b *Bot) page(ctx context.Context, a incoming.Ask, c *ops.Call, words []string, f typed.Flags) []store.SlackMessage {
	switch {
	case len(words) == 0:
		return b.profile.Page(ctx, a, c)
	case len(words) > 1 || !slurm.IsJobID(words[0]):
		return b.reply.Doc(a, answer.Error(ops.InputError("web", textWebOf.With(strings.Join(words, " ")), textWebOfTo), c.Lang), false)
	}
	address := b.cfg.Service.JobPage(cmp.Or(f.Cluster, b.people.ClusterOf(ctx, a)), slurm.JobID(words[0]))
	return b.profile.Page(ctx, a, c, view.Fact{Name: textJobPage.With(words[0]).In(c.Lang), Value: address})
}

// help answers with the common tasks, with all commands, or with one command's help. Where the
// bot was written to, everybody sees the answer.
func (b *Bot) help(a incoming.Ask, c *ops.Call, topic string, share bool) []store.SlackMessage {
	share = share || a.Kind == incoming.AsMessage
	if topic == "" && a.Terminal == nil {
		return b.reply.Blocks(a, help.Title.In(c.Lang), help.Tasks(c), share)
	}
	return b.reply.Doc(a, help.Doc(c, topic), share)
}
