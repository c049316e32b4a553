package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/account"
	"github.com/megatron-ops/megatron-ops/slurm"
)

// As returns the same cluster for another of its users: over ssh as that login,
// here by sudo. Whether this process may act for the user is the caller's to
// know; that the user is no administrator is checked.
func (c *CLI) As(login string) (*CLI, error) {
	if err := checkLogin(c.name, login); err != nil {
		return nil, err
	}
	other := *c
	if t, far := c.runner.(*there); far {
		o := t.SSHOptions
		o.User = login
		ssh, err := NewSSH(c.name, o)
		if err != nil {
			return nil, err
		}
		ssh.TokenInName = c.TokenInName
		return ssh, nil
	}
	if me, err := account.Current(context.Background()); err == nil && me.Name == login {
		return &other, nil
	}
	r := &sudo{inner: c.runner, login: login}
	other.runner = r
	other.mkdir = func(ctx context.Context, dir string) error {
		res, err := r.run(ctx, command{argv: []string{"mkdir", "-p", "--", dir}, env: c.Environ()})
		if err == nil && res.code != 0 {
			err = errors.New(strings.TrimSpace(res.stderr))
		}
		return err
	}
	return &other, nil
}

// As returns the same cluster for another of its users, with that user's tokens.
func (r *REST) As(login string, token func(context.Context) (string, error)) (*REST, error) {
	if err := checkLogin(r.name, login); err != nil {
		return nil, err
	}
	other, err := NewREST(r.name, r.base, login, token)
	if err == nil {
		other.Client, other.DefaultEnv, other.DefaultPartition = r.Client, r.DefaultEnv, r.DefaultPartition
	}
	return other, err
}

// checkLogin refuses what is no login, and root: no job runs as an
// administrator because somebody asked for one.
func checkLogin(cluster, login string) error {
	if !userForm.MatchString(login) || strings.Contains(login, "@") {
		return fmt.Errorf("cluster %s: user %q is no login name", cluster, login)
	}
	if login == "root" || login == "slurm" {
		return &slurm.Error{Op: "act as " + login, Kind: slurm.Denied, Msg: "jobs are never run as an administrator"}
	}
	return nil
}

// Sudoers is the rule that lets the bot's login act for the users of a group,
// with Slurm's commands and mkdir only; it goes into /etc/sudoers.d.
func Sudoers(bot, group string) string {
	var commands []string
	for _, name := range []string{"sbatch", "squeue", "sacct", "scancel", "scontrol", "sinfo", "srun", "sprio", "sshare", "sacctmgr"} {
		commands = append(commands, "/usr/bin/"+name)
	}
	return fmt.Sprintf("Cmnd_Alias MEGATRON_OPS = %s, /usr/bin/mkdir -p -- *\n%s ALL=(%%%s) NOPASSWD:SETENV: MEGATRON_OPS\n",
		strings.Join(commands, ", "), bot, group)
}

// sudo runs commands as another user of this machine.
type sudo struct {
	inner runner
	login string
}

// fromUs are variables that sudo sets or that are ours: the other user's own
// take their place.
var fromUs = []string{"PATH", "HOME", "USER", "LOGNAME", "SHELL", "MAIL", "TERM"}

func (s *sudo) run(ctx context.Context, c command) (result, error) {
	// Of a query's environment only what Slurm reads matters; of a job's, all.
	c.argv = s.argv(c, c.argv[0] == "sbatch")
	r, err := s.inner.run(ctx, c)
	ours, theirs := sudoSaid(r.stderr)
	r.stderr = theirs
	if err == nil && r.code == 1 && ours != "" && theirs == "" {
		return r, &slurm.Error{Op: "act as " + s.login, Kind: slurm.Denied, Msg: ours}
	}
	return r, err
}

// argv is the command line that runs c as the other user, with its whole
// environment or with what Slurm's commands read of it.
func (s *sudo) argv(c command, whole bool) []string {
	argv := []string{"sudo", "--non-interactive", "--set-home", "--user=" + s.login}
	var names []string
	for _, entry := range c.env {
		name, _, _ := strings.Cut(entry, "=")
		if slices.Contains(fromUs, name) || !envName.MatchString(name) || strings.HasPrefix(name, "SUDO_") {
			continue
		}
		if whole || strings.HasPrefix(name, "SLURM_") || name == "TZ" || name == "LC_ALL" {
			names = append(names, name)
		}
	}
	if len(names) > 0 {
		argv = append(argv, "--preserve-env="+strings.Join(names, ","))
	}
	return append(append(argv, "--"), c.argv...)
}

// sudoSaid parts sudo's own lines from the command's. sudo also warns and goes
// on ("unable to resolve host"): only where the command said nothing was it
// refused.
func sudoSaid(stderr string) (ours, theirs string) {
	for line := range strings.Lines(stderr) {
		if strings.HasPrefix(line, "sudo: ") {
			ours += line
		} else {
			theirs += line
		}
	}
	return strings.TrimSpace(ours), theirs
}
