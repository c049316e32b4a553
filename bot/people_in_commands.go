package bot

import (
	"context"
	"slices"
	"strings"

	"github.com/megatron-ops/megatron-ops/bot/incoming"
	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/lazy"
	"github.com/megatron-ops/megatron-ops/internal/ops"
)

// Commands name people by their cluster users. In Slack one mentions them instead, and calls
// oneself "me".

var (
	mentioned = lazy.New(`<@([UW][A-Z0-9]+)(?:\|[^>]*)?>`)
	slackUser = lazy.New(`^@[UW][A-Z0-9]+$`) // a mention that namePeople left

	textNoCluster    = lang.Text{EN: "the person whom you mention is not linked to a cluster user", ZH: "您提到的人尚未绑定集群用户"}
	textNoClusterFix = lang.Text{EN: "write the name of their cluster user, or ask them to run /megatron link", ZH: "请直接写对方的集群用户名，或请对方执行 /megatron link"}
)

// namePeople returns the text of a with the cluster users of the people whom it mentions, where
// they are linked.
func (b *Bot) namePeople(ctx context.Context, a incoming.Ask) string {
	return mentioned.ReplaceAllStringFunc(a.Text, func(m string) string {
		if l, ok := b.people.Linked(ctx, a.Team, mentioned.FindStringSubmatch(m)[1]); ok && l.User != "" {
			return l.User
		}
		return m
	})
}

// peopleIn replaces the words by which the person names themselves and others in a command. It
// refuses a person who has no cluster user: nothing would be found of them, or followed.
func peopleIn(c *ops.Call, name string, words []string) ([]string, *ops.Error) {
	words = slices.Clone(words)
	follows := name == "subscribe" || name == "unsubscribe"
	for i, w := range words {
		kind, value, has := strings.Cut(w, "=")
		switch {
		case !has && follows, !has && i > 0 && words[i-1] == "--user":
			kind, value = "", w
		case has && (kind == "--user" || follows && kind == "user"):
			kind += "="
		default:
			if slackUser.MatchString(w) {
				return nil, ops.InputError("user", textNoCluster, textNoClusterFix)
			}
			continue
		}
		switch {
		case slackUser.MatchString(value):
			return nil, ops.InputError("user", textNoCluster, textNoClusterFix)
		case c.Who.User != "" && slices.Contains([]string{"me", "mine", "my", "我", "我的"}, strings.ToLower(value)):
			value = c.Who.User
		default:
			value = strings.TrimPrefix(value, "@")
		}
		words[i] = kind + value
	}
	return words, nil
}
