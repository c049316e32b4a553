package bot

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/slack-go/slack"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/lazy"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/store"
	"github.com/megatron-ops/megatron-ops/internal/view"
)

// A LinkProof says which cluster user wrote the file of a code, and when. It
// returns fs.ErrNotExist while there is none.
type LinkProof func(ctx context.Context, code string) (owner string, at time.Time, err error)

// codeLife is how long a code may be used.
const codeLife = 10 * time.Minute

// codePrefix names the file of a code.
const codePrefix = "megatron-ops-link-"

var codeForm = lazy.New(`^[A-Z2-7]{26}$`)

// WriteCode writes the file of a code into dir, as the person who runs it: the
// file's owner is the proof.
func WriteCode(dir, code string) error {
	code = strings.ToUpper(strings.TrimSpace(code))
	if !codeForm.MatchString(code) {
		return fmt.Errorf("%q is not a code: copy the 26 letters that /megatron link shows", code)
	}
	f, err := os.OpenFile(filepath.Join(dir, codePrefix+code), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return errors.New("this code was written already: press the button in Slack, or ask for a new one")
	}
	if err != nil {
		return err
	}
	return f.Close()
}

// FolderProof reads proofs from a folder of this machine. The folder must be
// sticky and belong to root or to us: in another one, anybody could move
// anybody's file.
func FolderProof(dir string) LinkProof {
	return func(_ context.Context, code string) (string, time.Time, error) {
		d, err := os.Lstat(dir)
		if err != nil {
			return "", time.Time{}, fmt.Errorf("folder of link codes: %w", err)
		}
		owner, ok := ownerOf(d)
		if !d.IsDir() || d.Mode()&os.ModeSticky == 0 && d.Mode().Perm()&0o022 != 0 || !ok || owner != 0 && owner != os.Geteuid() {
			return "", time.Time{}, fmt.Errorf("folder of link codes %s: must belong to root or to this server, and be sticky where others may write: chmod 1777", dir)
		}
		f, err := os.Lstat(filepath.Join(dir, codePrefix+code))
		if err != nil {
			return "", time.Time{}, err
		}
		st, ok := f.Sys().(*syscall.Stat_t)
		if !ok || !f.Mode().IsRegular() || st.Nlink != 1 {
			return "", time.Time{}, errors.New("the code's file is not a plain file of its own")
		}
		u, err := user.LookupId(strconv.Itoa(int(st.Uid)))
		if err != nil {
			return "", time.Time{}, err
		}
		return u.Username, f.ModTime(), nil
	}
}

func ownerOf(f os.FileInfo) (int, bool) {
	st, ok := f.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, false
	}
	return int(st.Uid), true
}

// A linkCode waits to be written on the cluster.
type linkCode struct {
	Team string    `json:"team"`
	User string    `json:"user"`
	Code string    `json:"code"`
	At   time.Time `json:"at"`
}

const actLinked = "linked" // value: nothing; the code is looked up by who presses

var (
	textLinkTitle = lang.Text{EN: "Prove which cluster user you are", ZH: "证明您的集群身份"}
	textLinkHow   = lang.Text{
		EN: "On a login node of the cluster, as yourself, run the command below within ten minutes. Then press the button. Do not run a code that somebody else sent you: it would make them you.",
		ZH: "请在十分钟内，用您自己的账号在集群登录节点上运行下面的命令，然后点按钮。切勿运行别人发给您的代码，否则对方将以您的身份操作。",
	}
	textLinkDone   = lang.Text{EN: "Done: you are `%s` on the cluster", ZH: "绑定成功：您在集群上的用户是 `%s`"}
	textLinkNotYet = lang.Text{EN: "the code was not written on the cluster yet", ZH: "集群上还没有写入该代码"}
	textLinkOff    = lang.Text{EN: "linking by code is not set up here", ZH: "这里没有启用代码绑定"}
	textLinkOffFix = lang.Text{EN: "ask your operator to map your Slack id %s to your cluster user", ZH: "请管理员把您的 Slack ID %s 映射到集群用户"}
	textLinkBy     = lang.Text{EN: "your operator has mapped you to `%s`; only they can change that", ZH: "管理员已将您映射为 `%s`，只有管理员可以更改"}
	textPressed    = lang.Text{EN: "I have run it", ZH: "我已运行"}
	textUnlinked   = lang.Text{EN: "You are not linked to a cluster user any more", ZH: "已解除与集群用户的绑定"}
)

// linkMe begins a link, or finishes one whose code was written meanwhile.
func (b *Bot) linkMe(ctx context.Context, a ask, c *ops.Call) []store.SlackMessage {
	l := c.Lang
	if a.local != nil {
		return b.reply(a, b.whoamiDoc(ctx, a, c), false)
	}
	if have, ok := b.linked(ctx, a.Team, a.User); ok && have.How == "operator" {
		return b.reply(a, view.Doc{Title: fmt.Sprintf(strings.ReplaceAll(textLinkBy.In(l), "`", ""), have.User)}, false)
	}
	if b.cfg.Policy.LinkProof == nil {
		return b.reply(a, errorDoc(&ops.Error{
			Code: ops.NotAllowed, Message: textLinkOff.In(l), Fix: fmt.Sprintf(textLinkOffFix.In(l), a.User),
		}, l), false)
	}
	var k linkCode
	waiting, err := b.cfg.Store.Get(ctx, docCode, a.Team+"/"+a.User, b.now(), &k)
	if err == nil && waiting {
		if owed, ok := b.prove(ctx, a, c, k); ok {
			return owed
		}
	} else {
		k = linkCode{Team: a.Team, User: a.User, Code: rand.Text(), At: b.now()}
		if err := b.cfg.Store.Put(ctx, docCode, a.Team+"/"+a.User, k, b.now().Add(codeLife)); err != nil {
			return b.reply(a, errorDoc(ops.AsError(err), l), false)
		}
	}
	return b.replyWith(a, linkDoc(k.Code, l), false, linkRow(l))
}

// linkDoc says how to prove who one is.
func linkDoc(code string, l lang.Lang) view.Doc {
	return view.Doc{Title: textLinkTitle.In(l), Sections: []view.Section{
		{Text: textLinkHow.In(l)}, {Code: "megatron-ops link " + code, Lang: "bash"},
	}}
}

func linkRow(l lang.Lang) slack.Block {
	done := slack.NewButtonBlockElement(actLinked, "", plain(textPressed.In(l)))
	done.Style = slack.StylePrimary
	return slack.NewActionBlock("", done)
}

// linkPressed looks for the code that the presser, and nobody else, was given.
func (b *Bot) linkPressed(ctx context.Context, a ask) []store.SlackMessage {
	c := b.call(ctx, a)
	var k linkCode
	waiting, err := b.cfg.Store.Get(ctx, docCode, a.Team+"/"+a.User, b.now(), &k)
	if err != nil || !waiting || b.cfg.Policy.LinkProof == nil {
		return b.linkMe(ctx, a, c)
	}
	if owed, ok := b.prove(ctx, a, c, k); ok {
		return owed
	}
	return b.reply(a, errorDoc(&ops.Error{
		Code: ops.NotFound, Message: textLinkNotYet.In(c.Lang), Fix: "megatron-ops link " + k.Code,
	}, c.Lang), false)
}

// prove links the person when the code's file is there; ok is false while it is
// not.
func (b *Bot) prove(ctx context.Context, a ask, c *ops.Call, k linkCode) (owed []store.SlackMessage, ok bool) {
	owner, at, err := b.cfg.Policy.LinkProof(ctx, k.Code)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, false
	case err != nil:
		return b.reply(a, errorDoc(ops.AsError(err), c.Lang), false), true
	}
	// A file from before the code, or much later, is not the answer to it. A minute
	// is left for clocks that differ.
	if at.Before(k.At.Add(-time.Minute)) || at.After(k.At.Add(codeLife+time.Minute)) || owner == "root" {
		return nil, false
	}
	if err := b.cfg.Store.Put(ctx, docLink, a.Team+"/"+a.User, link{User: owner, How: "code", At: b.now()}, time.Time{}); err != nil {
		return b.reply(a, errorDoc(ops.AsError(err), c.Lang), false), true
	}
	_ = b.cfg.Store.Delete(ctx, docCode, a.Team+"/"+a.User)
	b.audit(ctx, c, "link", map[string]string{"slack": a.Team + "/" + a.User}, map[string]string{"user": owner})
	doc := view.Doc{Title: fmt.Sprintf(strings.ReplaceAll(textLinkDone.In(c.Lang), "`", ""), owner), Tone: view.Good, Next: []string{"help", "list"}}
	return b.reply(a, doc, false), true
}

func (b *Bot) unlinkMe(ctx context.Context, a ask, c *ops.Call) []store.SlackMessage {
	if have, ok := b.linked(ctx, a.Team, a.User); ok && have.How == "operator" {
		return b.reply(a, view.Doc{Title: fmt.Sprintf(strings.ReplaceAll(textLinkBy.In(c.Lang), "`", ""), have.User)}, false)
	}
	if err := b.cfg.Store.Delete(ctx, docLink, a.Team+"/"+a.User); err != nil {
		return b.reply(a, errorDoc(ops.AsError(err), c.Lang), false)
	}
	b.audit(ctx, c, "unlink", map[string]string{"slack": a.Team + "/" + a.User}, nil)
	return b.reply(a, view.Doc{Title: textUnlinked.In(c.Lang)}, false)
}

// audit writes a change down that is the bot's own and not an operation.
func (b *Bot) audit(ctx context.Context, c *ops.Call, what string, in, result any) {
	if b.cfg.Service.Audit != nil {
		b.cfg.Service.Audit(ctx, ops.AuditEntry{At: b.now(), Who: c.Who, Op: what, In: in, Out: result})
	}
}
