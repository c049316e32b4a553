package bot

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/store"
	"github.com/megatron-ops/megatron-ops/internal/view"
	"github.com/megatron-ops/megatron-ops/knowledge"
)

type OAuth struct{}

type LinkProof func(ctx context.Context, code string) (user string, at time.Time, err error)

func (b *Bot) installed(ctx context.Context, team string) (string, error) {
	return "", errors.New("no")
}
func (b *Bot) serveInstall(w http.ResponseWriter, r *http.Request) {}
func (b *Bot) serveOAuth(w http.ResponseWriter, r *http.Request)   {}
func (b *Bot) form(ctx context.Context, a ask) (any, error)        { return nil, nil }
func (b *Bot) shortcut(ctx context.Context, a ask) []store.SlackMessage {
	return nil
}
func (b *Bot) submitted(ctx context.Context, a ask) []store.SlackMessage { return nil }
func (b *Bot) home(ctx context.Context, a ask) []store.SlackMessage      { return nil }
func (b *Bot) unfurl(ctx context.Context, a ask) []store.SlackMessage    { return nil }
func (b *Bot) pasted(ctx context.Context, a ask, c *ops.Call, t Typed, share bool) []store.SlackMessage {
	return nil
}

func (b *Bot) pastedIn(ctx context.Context, a ask, c *ops.Call, t Typed) ([]store.SlackMessage, bool) {
	return nil, false
}
func (b *Bot) needsApproval(c *ops.Call, op ops.Op, in any) string { return "" }
func (b *Bot) askApproval(ctx context.Context, a ask, c *ops.Call, op ops.Op, t typedCall, why string) []store.SlackMessage {
	return nil
}

func (b *Bot) approved(ctx context.Context, a ask, c *ops.Call, h held, op ops.Op) []store.SlackMessage {
	return nil
}
func (b *Bot) tellRequester(a ask, h held, doc view.Doc) []store.SlackMessage { return nil }

func (b *Bot) said(ctx context.Context, a ask) []knowledge.Turn { return nil }

var (
	textScript    = lang.Text{EN: "The script", ZH: "脚本"}
	textFourEyes  = lang.Text{EN: "somebody else must approve", ZH: "必须由他人审批"}
	textOperators = lang.Text{EN: "only operators approve", ZH: "仅管理员可审批"}
	textRefused   = lang.Text{EN: "An operator refused it", ZH: "管理员已拒绝"}
)
