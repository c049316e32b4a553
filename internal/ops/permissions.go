package ops

import (
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/slurm"
)

// OwnHands reports whether this process runs as the person who asks, rather than as a
// server that acts for people.
func (c *Call) OwnHands() bool {
	switch c.Who.Surface {
	case Shell, Chat, MCP:
		return true
	}
	return c.Who.User != "" && c.Who.User == c.Self
}

// actingAs returns cl with the rights of the person who asks, where a server changes
// something on that person's behalf.
func (c *Call) actingAs(cl Cluster) (Cluster, error) {
	if c.OwnHands() || c.effect == Read || c.effect == "" || c.Who.User == "" {
		return cl, nil
	}
	if c.As == nil {
		return nil, &Error{
			Code: NotAllowed, Field: "cluster",
			Message: lang.Text{EN: "this server runs as %s on %s and cannot act as %s", ZH: "本服务在 %[2]s 上以 %[1]s 的身份运行，不能代表 %[3]s 操作"}.With(c.Self, cl.Name(), c.Who.User),
			Fix:     lang.Text{EN: "an operator sets clusters.%s.act_as; in your own shell it works at once", ZH: "请管理员设置 clusters.%s.act_as；在自己的 shell 中可直接执行"}.With(cl.Name()),
		}
	}
	as, err := c.As(cl, c.Who.User)
	if err != nil {
		return nil, &Error{Code: NotAllowed, Field: "cluster", Message: lang.Said(err), Fix: lang.Text{EN: "in your own shell it works at once", ZH: "在自己的 shell 中可直接执行"}}
	}
	return as, nil
}

// MayChange refuses a change that Slurm itself would refuse: one to another person's
// job. Operators may make it.
func (c *Call) MayChange(j slurm.Job) error {
	if j.User == "" || j.User == c.Who.User || c.Who.Operator {
		return nil
	}
	return &Error{
		Code: NotAllowed, Field: "job",
		Message: lang.Text{EN: "job %s belongs to %s, and you act as %s", ZH: "作业 %s 属于 %s，而您的身份是 %s"}.With(j.ID, j.User, c.Who.User),
		Fix:     lang.Text{EN: "ask its owner or an operator", ZH: "请联系其所有者或管理员"},
	}
}

// IsLogin reports whether word can be a user's name. It rejects anything that could be
// part of an option, a list or a pattern.
func IsLogin(word string) bool {
	return word != "" && len(word) <= 64 && word[0] != '-' && !strings.ContainsFunc(word, func(r rune) bool {
		return r != '_' && r != '-' && r != '.' && r != '$' && (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z')
	})
}

// AsOwner returns cl with the rights of owner, whose job is to be changed there.
func (c *Call) AsOwner(cl Cluster, owner string) (Cluster, error) {
	if owner == c.Self && c.Self != "" {
		return c.Clusters[cl.Name()], nil
	}
	if c.As == nil {
		return nil, &Error{Code: NotAllowed, Field: "cluster", Message: lang.Text{EN: "this server cannot act as %s", ZH: "本服务不能代表 %s 操作"}.With(owner), Fix: lang.Text{EN: "do it in a shell", ZH: "请在 shell 中操作"}}
	}
	as, err := c.As(c.Clusters[cl.Name()], owner)
	if err != nil {
		return nil, &Error{Code: NotAllowed, Field: "cluster", Message: lang.Said(err), Fix: lang.Text{EN: "do it in a shell", ZH: "请在 shell 中操作"}}
	}
	return as, nil
}

// Changing returns the cluster through which j is to be changed. An operator who asks
// through a server acts on another person's job as that person, because Slurm does not
// know this program's operators. The audit trail names who asked.
func (c *Call) Changing(cl Cluster, j slurm.Job) (Cluster, error) {
	if err := c.MayChange(j); err != nil {
		return nil, err
	}
	if c.Who.Operator && !c.OwnHands() && j.User != "" && j.User != c.Who.User {
		return c.AsOwner(cl, j.User)
	}
	return cl, nil
}
