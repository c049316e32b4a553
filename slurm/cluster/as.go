package cluster

import (
	"context"
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/account"
	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/slurm"
)

// As returns the same cluster for another user: over ssh under that login, on this
// machine through sudo. The caller must know that this process may act for the user. As
// itself refuses administrators.
func (c *CLI) As(login string) (*CLI, error) {
	if err := checkLogin(c.name, login); err != nil {
		return nil, err
	}
	other := *c
	if t, far := c.runner.(*sshRunner); far {
		o := t.SSHOptions
		o.User = login
		ssh, err := NewSSH(c.name, o)
		if err != nil {
			return nil, err
		}
		ssh.TokenInName, ssh.meter = c.TokenInName, c.meter
		return ssh, nil
	}
	if me, err := account.Current(context.Background()); err == nil && me.Name == login {
		return &other, nil
	}
	r := &sudoRunner{inner: c.runner, login: login, helper: c.Helper}
	other.runner = r
	other.mkdir = mkdirBy(r)
	return &other, nil
}

// As returns the same cluster for another user, with that user's tokens.
func (r *REST) As(login string, token func(context.Context) (string, error)) (*REST, error) {
	if err := checkLogin(r.name, login); err != nil {
		return nil, err
	}
	other, err := NewREST(r.name, r.base, login, token)
	if err == nil {
		other.meter, other.Client, other.Bin, other.DefaultPartition = r.meter, r.Client, r.Bin, r.DefaultPartition
	}
	return other, err
}

// checkLogin refuses a word that is no login name, and refuses root and slurm: no job
// runs as an administrator on somebody's request.
func checkLogin(cluster, login string) error {
	if !userForm.MatchString(login) || strings.Contains(login, "@") {
		return lang.Text{EN: "cluster %s: user %q is not a login name", ZH: "集群 %s：用户 %q 不是登录名"}.Err(cluster, login)
	}
	if login == "root" || login == "slurm" {
		return &slurm.Error{Op: "act as " + login, Kind: slurm.Denied, Msg: lang.Text{EN: "jobs are never run as an administrator", ZH: "从不以管理员身份运行作业"}}
	}
	return nil
}
