// Package people knows who a person in Slack is: their cluster user and rights, who decides
// about approvals, and in which language and at which hours a person wants to be notified.
package people

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/slack-go/slack"

	"github.com/megatron-ops/megatron-ops/bot/incoming"
	"github.com/megatron-ops/megatron-ops/bot/record"
	"github.com/megatron-ops/megatron-ops/internal/ops"
)

// Config says where people and their rights come from.
type Config struct {
	Policy  Policy
	Store   record.Store
	Service *ops.Service
	// Client returns the API client of a workspace, which lists the members of groups and
	// channels.
	Client func(ctx context.Context, team string) (*slack.Client, error)
	Now    func() time.Time
	Log    *slog.Logger
}

// A Directory looks people up.
type Directory struct {
	cfg Config

	mu     sync.Mutex
	groups map[string]groupMembers // by workspace and id; channels too
}

// New returns a Directory.
func New(cfg Config) *Directory { return &Directory{cfg: cfg, groups: map[string]groupMembers{}} }

// A Link ties a person in Slack to a user of the cluster.
type Link struct {
	User string    `json:"user"`
	How  string    `json:"how"` // "code" or "operator"
	At   time.Time `json:"at"`
}

// Linked returns the proven cluster user of a person. The operator's mapping comes first, then
// the person's own code. A display name or an e-mail address proves nothing, since people can
// change them.
func (d *Directory) Linked(ctx context.Context, team, user string) (Link, bool) {
	l, ok, err := d.LinkOf(ctx, team, user)
	if err != nil {
		d.cfg.Log.Warn("slack: link", "err", err)
	}
	return l, ok && err == nil
}

// LinkOf is Linked for whoever must not take a store that does not answer for a link that is gone.
func (d *Directory) LinkOf(ctx context.Context, team, user string) (l Link, ok bool, err error) {
	for _, k := range []string{team + "/" + user, user} {
		if u := d.cfg.Policy.Links[k]; u != "" {
			return Link{User: u, How: "operator"}, true, nil
		}
	}
	ok, err = d.cfg.Store.Get(ctx, record.Link, team+"/"+user, d.cfg.Now(), &l)
	return l, ok, err
}

// caller returns who sends a request, as far as that is proven.
func (d *Directory) caller(ctx context.Context, a incoming.Ask) ops.Caller {
	if a.Terminal != nil {
		return ops.Caller{Surface: ops.Chat, ID: a.Terminal.User, User: a.Terminal.User}
	}
	c := ops.Caller{Surface: ops.Slack, ID: a.Team + "/" + a.User}
	if a.Foreign {
		c.ReadOnly = true
		return c
	}
	if l, ok := d.Linked(ctx, a.Team, a.User); ok {
		c.User = l.User
	}
	c.Operator = d.oneOf(ctx, a, d.cfg.Policy.Operators)
	c.ReadOnly = d.oneOf(ctx, a, d.cfg.Policy.Viewers)
	return c
}

// Person returns the caller for a person whom Slack has named outside of a request, such as by
// a sign-in elsewhere. It fails for a workspace that has not installed the app.
func (d *Directory) Person(ctx context.Context, team, user string) (ops.Caller, error) {
	api, err := d.cfg.Client(ctx, team)
	if err != nil {
		return ops.Caller{}, err
	}
	at, err := api.AuthTestContext(ctx)
	if err != nil {
		return ops.Caller{}, err
	}
	return d.caller(ctx, incoming.Ask{Team: team, User: user, Foreign: at.TeamID != team}), nil
}

// Call returns the operation call for a request. Where the person has chosen no language, the
// words that they typed decide.
func (d *Directory) Call(ctx context.Context, a incoming.Ask) *ops.Call {
	c := &ops.Call{Service: d.cfg.Service, Who: d.caller(ctx, a), Lang: d.LangOf(ctx, a)}
	if a.Terminal == nil {
		c.Key = a.Key
	} else {
		c.Dir, c.Stream, c.Width = a.Terminal.Dir, a.Terminal.Stream, a.Terminal.Width
	}
	return c
}

// oneOf reports whether list contains the person, by their id or by a user group or channel
// that they are a member of.
func (d *Directory) oneOf(ctx context.Context, a incoming.Ask, list []string) bool {
	for _, id := range list {
		if id == a.User || id == a.Team+"/"+a.User {
			return true
		}
		if id != "" && strings.ContainsRune("SCG", rune(id[0])) && slices.Contains(d.members(ctx, a.Team, id), a.User) {
			return true
		}
	}
	return false
}

type groupMembers struct {
	ids   []string
	until time.Time
}

// members lists the people of a user group or channel. Where Slack does not answer, the list is
// empty, so that an error grants no rights.
func (d *Directory) members(ctx context.Context, team, id string) []string {
	key := team + "/" + id
	d.mu.Lock()
	m, ok := d.groups[key]
	d.mu.Unlock()
	if ok && d.cfg.Now().Before(m.until) {
		return m.ids
	}
	api, err := d.cfg.Client(ctx, team)
	if err != nil {
		return nil
	}
	var ids []string
	if id[0] == 'S' {
		ids, err = api.GetUserGroupMembersContext(ctx, id)
	} else {
		cursor := ""
		for {
			var page []string
			page, cursor, err = api.GetUsersInConversationContext(ctx, &slack.GetUsersInConversationParameters{ChannelID: id, Cursor: cursor, Limit: 1000})
			ids = append(ids, page...)
			if err != nil || cursor == "" {
				break
			}
		}
	}
	keep := 5 * time.Minute
	if err != nil {
		about := []any{"of", id, "err", err}
		if refused, ok := errors.AsType[slack.SlackErrorResponse](err); ok && refused.Err == "missing_scope" {
			about = append(about, "fix", "update the app with `megatron-ops slack manifest` and install it again")
		}
		d.cfg.Log.Warn("slack: members", about...)
		ids, keep = nil, 30*time.Second
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.groups[key] = groupMembers{ids, d.cfg.Now().Add(keep)}
	return ids
}
