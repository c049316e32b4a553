package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/bot/slacktest"
	"github.com/megatron-ops/megatron-ops/internal/account"
	"github.com/megatron-ops/megatron-ops/internal/store"
	"github.com/megatron-ops/megatron-ops/slurm/slurmtest"
)

// An actingServer acts for the people of a real Slurm: by the operator's configuration,
// U1 in Slack is alice there and U2 is bob; U3 is not linked.
type actingServer struct {
	t     *testing.T
	real  *slurmtest.Cluster
	slack *slacktest.Slack
	dir   string
	state string
	// program is the server's own.
	program string
}

// newActingServer starts one. With sudo, the server runs as bob, in a mount namespace
// where the rule that it prints is in /etc/sudoers.d.
func newActingServer(t *testing.T, real *slurmtest.Cluster, cluster string, sudo bool) actingServer {
	t.Helper()
	dir, err := os.MkdirTemp(real.Work, "office-")
	require.NoError(t, err)
	o := actingServer{t: t, real: real, dir: dir, state: filepath.Join(dir, "state"), slack: slacktest.Start(t, slacktest.Config{SigningSecret: signingSecret})}
	for _, d := range []string{dir, filepath.Join(dir, "logs")} {
		require.NoError(t, os.MkdirAll(d, 0o777))
		require.NoError(t, os.Chmod(d, 0o777))
	}
	require.NoError(t, os.Mkdir(o.state, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "train.sh"), []byte("id -un; sleep $1\n"), 0o644))
	config := filepath.Join(dir, "megatron-ops.yaml")
	require.NoError(t, os.WriteFile(config, fmt.Appendf(nil, "cluster: far\nclusters: {far: {%s, act_as: true}}\nslack: {links: {U1: alice, U2: bob}, per_minute: 600}\n", cluster), 0o644))
	// Only root can write here: sudo starts it.
	o.program = filepath.Join(real.Dir, "bin-"+filepath.Base(dir), "megatron-ops")
	require.NoError(t, os.Mkdir(filepath.Dir(o.program), 0o755))
	require.NoError(t, os.Rename(binary(t), o.program))
	program := o.program
	argv := []string{program, "serve", "--listen", "127.0.0.1:0"}
	if sudo {
		print := exec.Command(program, "sudoers", "--login", "bob", "--group", "alice")
		print.Env = append(real.Environ(), "MEGATRON_OPS_CONFIG="+config)
		rule, err := print.Output()
		require.NoError(t, err)
		bob, err := account.ByName(t.Context(), "bob")
		require.NoError(t, err)
		require.NoError(t, os.Chown(o.state, bob.UID, bob.GID))
		rules := filepath.Join(real.Dir, "sudoers.d")
		require.NoError(t, os.MkdirAll(rules, 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(rules, "megatron-ops"), rule, 0o440))
		argv = append([]string{
			"unshare", "--mount", "--propagation", "private", "sh", "-c",
			`mount --bind "$1" /etc/sudoers.d && shift && exec setpriv --reuid=bob --regid=bob --init-groups "$@"`, "sh", rules,
		}, argv...)
	}
	s := &server{t: t, home: dir}
	s.env = append(real.Environ(), "MEGATRON_OPS_CONFIG="+config, "MEGATRON_OPS_STATE_DIR="+o.state, "HOME="+dir,
		"SLACK_BOT_TOKEN=xoxb-1", "SLACK_SIGNING_SECRET="+signingSecret, "SLACK_API_URL="+o.slack.APIURL)
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Env, cmd.Dir = s.env, dir
	s.run(cmd)
	o.slack.Target(s.url)
	return o
}

// command types a command as a Slack user.
func (o actingServer) command(user, words string) {
	o.t.Helper()
	require.Equal(o.t, http.StatusOK, o.slack.Slash(words, map[string]any{"user_id": user}).Status, words)
}

// awaitReply waits until a message contains what.
func (o actingServer) awaitReply(what string) {
	o.t.Helper()
	o.slack.Wait(what, func(s slacktest.State) bool {
		for _, m := range s.Messages {
			if strings.Contains(fmt.Sprint(m.Text, m.Blocks), what) {
				return true
			}
		}
		return false
	})
}

// job waits for the first job of that name, and returns its id, owner and state. A
// chain's next job has the same name and may be listed before it.
func (o actingServer) job(name string) (id, owner, state string) {
	o.t.Helper()
	require.Eventually(o.t, func() bool {
		out, err := o.real.Run(o.t.Context(), "squeue", "-h", "-a", "--name="+name, "-S", "i", "-o", "%i %u %T")
		if err != nil || out == "" {
			return false
		}
		_, err = fmt.Sscan(out, &id, &owner, &state)
		return err == nil
	}, 20*time.Second, 200*time.Millisecond)
	return id, owner, state
}

// submits checks that people act as themselves on the cluster, and cannot act on
// others' jobs. It returns the job that alice has submitted.
func (o actingServer) submits(name string) (job string) {
	o.t.Helper()
	submit := func(user, name string) {
		o.command(user, fmt.Sprintf("submit --yes --force --name %s --nodes 1 --gpus-per-node 0 --time 5 --worktree %s --kill-switch STOP-%s --team bob --launcher custom --launcher-argv bash --script train.sh -- 60", name, o.dir, name))
	}
	submit("U1", name+"-1")
	id, owner, _ := o.job(name + "-1")
	require.Equal(o.t, "alice", owner)

	// Nobody but its owner can cancel a job; Slurm would refuse it too.
	o.command("U2", "cancel "+id+" --yes")
	o.awaitReply("alice")
	time.Sleep(time.Second)
	_, _, state := o.job(name + "-1")
	require.NotContains(o.t, []string{"CANCELLED", "COMPLETING"}, state)

	// A person who is not linked sees no job, and changes nothing.
	submit("U3", name+"-3")
	o.awaitReply("not linked to a cluster user")
	o.command("U2", "status "+id)
	o.awaitReply(name + "-1")
	out, err := o.real.Run(o.t.Context(), "squeue", "-h", "--name="+name+"-3")
	require.NoError(o.t, err)
	require.Empty(o.t, out)
	return id
}

// launches lets the owner start a step in the running job, and nobody else.
func (o actingServer) launches(id, name string) {
	o.t.Helper()
	require.Eventually(o.t, func() bool { _, _, state := o.job(name); return state == "RUNNING" }, 20*time.Second, 200*time.Millisecond)
	for user, step := range map[string]string{"U1": "mine", "U2": "theirs"} {
		o.command(user, fmt.Sprintf("submit --yes --force --into %s --name %s-%s --nodes 1 --gpus-per-node 0 --worktree %s --launcher custom --launcher-argv bash --script train.sh -- 1", id, name, step, o.dir))
	}
	require.Eventually(o.t, func() bool {
		files, _ := filepath.Glob(filepath.Join(o.dir, "logs", "*"+name+"-mine*.out"))
		if len(files) != 1 {
			return false
		}
		text, _ := os.ReadFile(files[0])
		owner, _ := exec.Command("stat", "-c", "%U", files[0]).Output()
		return strings.Contains(string(text), "alice\n") && string(owner) == "alice\n"
	}, 40*time.Second, 300*time.Millisecond)
	o.awaitReply(name + "-mine")
	files, err := filepath.Glob(filepath.Join(o.dir, "logs", "*"+name+"-theirs*"))
	require.NoError(o.t, err)
	require.Empty(o.t, files, "the job is alice's")
}

// stops lets bob throw the kill switch of alice's job. He may, because he is in the
// job's team, a group of that name. The owner is notified, and the audit records it.
func (o actingServer) stops(id, name, by string) {
	o.t.Helper()
	require.Eventually(o.t, func() bool { _, _, state := o.job(name); return state == "RUNNING" }, 20*time.Second, 200*time.Millisecond)
	o.command("U3", "killswitch on "+id)
	o.command("U2", "killswitch on "+id+" --yes")
	stop := filepath.Join(o.dir, "STOP-"+name)
	require.Eventually(o.t, func() bool { _, err := os.Stat(stop); return err == nil }, 20*time.Second, 200*time.Millisecond)
	owner, err := exec.Command("stat", "-c", "%U", stop).Output()
	require.NoError(o.t, err)
	require.Equal(o.t, by+"\n", string(owner))
	o.ownerCalled("kill switch")
	audit := o.audited("killswitch by T1/U2 as bob", "submit by T1/U1 as alice", "cancel by T1/U2 as bob")
	require.NotContains(o.t, audit, "by T1/U3 as b")
}

// ownerCalled waits until a message in a card's thread mentions the job's owner, U1,
// and contains all of words.
func (o actingServer) ownerCalled(words ...string) {
	o.t.Helper()
	o.slack.Wait("the owner called in the thread of the job's card", func(s slacktest.State) bool {
		return slices.ContainsFunc(s.Messages, func(m *slacktest.Message) bool {
			return m.Thread != "" && containsAll(fmt.Sprint(m.Text, m.Blocks), append(words, "U1"))
		})
	})
}

// audited waits until the newest entries of the audit trail contain all of want, and
// returns them, one line each.
func (o actingServer) audited(want ...string) (audit string) {
	o.t.Helper()
	st, err := store.Open(o.t.Context(), filepath.Join(o.state, "state.db"))
	require.NoError(o.t, err)
	defer st.Close()
	require.Eventually(o.t, func() bool {
		entries, err := st.Audit(o.t.Context(), 20)
		require.NoError(o.t, err)
		audit = ""
		for _, e := range entries {
			audit += fmt.Sprintf("%s by %s as %s: %s\n", e.Op, e.Who, e.Owner, e.Result)
		}
		return containsAll(audit, want)
	}, 10*time.Second, 200*time.Millisecond)
	return audit
}

func containsAll(text string, words []string) bool {
	return !slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(text, w) })
}

// shares lets bob throw the kill switch of a job of alice without a team, if and only
// if he may write the switch's folder, which his group can.
func (o actingServer) shares(name string) {
	o.t.Helper()
	ids := map[string]string{}
	for folder, own := range map[string]struct {
		who  string
		mode os.FileMode
	}{"group": {"alice:bob", 0o770}, "own": {"alice:alice", 0o755}} {
		dir := filepath.Join(o.dir, folder)
		require.NoError(o.t, os.MkdirAll(dir, 0o700))
		require.NoError(o.t, exec.Command("chown", own.who, dir).Run())
		require.NoError(o.t, os.Chmod(dir, own.mode))
		o.command("U1", fmt.Sprintf("submit --yes --force --name %s-%s --nodes 1 --gpus-per-node 0 --time 5 --worktree %s --kill-switch %s/STOP --launcher custom --launcher-argv bash --script train.sh -- 60", name, folder, o.dir, dir))
		require.Eventually(o.t, func() bool {
			id, _, state := o.job(name + "-" + folder)
			ids[folder] = id
			return state == "RUNNING"
		}, 30*time.Second, 200*time.Millisecond)
	}
	o.command("U2", "killswitch on "+ids["own"]+" --yes")
	o.awaitReply("may write the folder of " + filepath.Join(o.dir, "own", "STOP"))
	o.command("U2", "killswitch on "+ids["group"]+" --yes")
	stop := filepath.Join(o.dir, "group", "STOP")
	require.Eventually(o.t, func() bool { _, err := os.Stat(stop); return err == nil }, 20*time.Second, 200*time.Millisecond)
	require.NoFileExists(o.t, filepath.Join(o.dir, "own", "STOP"))
	owner, err := exec.Command("stat", "-c", "%U", stop).Output()
	require.NoError(o.t, err)
	require.Equal(o.t, "alice\n", string(owner))
	o.ownerCalled("bob", "kill switch")
	o.audited("killswitch by T1/U2 as bob: done", "killswitch by T1/U2 as bob: job: the switch belongs to alice")
	for _, id := range ids {
		o.command("U1", "cancel "+id+" --yes")
	}
}

// chains lets alice submit a chain of two. The second job, which the first queues
// itself, gets a card of its own, belongs to her in the store, and is reported to its
// end.
func (o actingServer) chains(name string) {
	o.t.Helper()
	o.command("U1", fmt.Sprintf("submit --yes --force --name %s --chain 2 --nodes 1 --gpus-per-node 0 --time 5 --worktree %s --launcher custom --launcher-argv bash --script train.sh -- 5", name, o.dir))
	first, _, _ := o.job(name)
	next := ""
	card := func(id string, word string) bool {
		for _, m := range o.slack.State().Messages {
			if text := fmt.Sprint(m.Text, m.Blocks); m.Thread == "" && strings.Contains(text, id) && strings.Contains(text, name) && strings.Contains(text, word) {
				return true
			}
		}
		return false
	}
	o.slack.WaitFor(2*time.Minute, "the first job's thread", func(s slacktest.State) bool {
		for _, m := range s.Messages {
			if _, after, ok := strings.Cut(fmt.Sprint(m.Text, m.Blocks), "of the chain's 2 is queued as "); ok && m.Thread != "" {
				next = strings.TrimRight(strings.Fields(after)[0], ";")
			}
		}
		return next != ""
	})
	require.NotEqual(o.t, first, next)
	require.Eventually(o.t, func() bool { return card(first, "completed") && card(next, "completed") }, 2*time.Minute, 500*time.Millisecond)
}

// ends lets the owner end the job.
func (o actingServer) ends(id string) {
	o.t.Helper()
	o.command("U1", "cancel "+id+" --yes")
	require.Eventually(o.t, func() bool {
		out, err := o.real.Run(o.t.Context(), "sacct", "-X", "-n", "-P", "-j", id, "-o", "State,User")
		return err == nil && strings.HasPrefix(out, "CANCELLED") && strings.HasSuffix(out, "|alice")
	}, 30*time.Second, 300*time.Millisecond)
}

func TestEveryoneActsAsThemselves(t *testing.T) {
	real := slurmtest.Start(t, slurmtest.Options{Enforce: true})

	t.Run("sudo", func(t *testing.T) {
		if _, err := exec.LookPath("sudo"); err != nil {
			t.Skip("no sudo to test with: apt-get install sudo")
		}
		o := newActingServer(t, real, "kind: cli, slurm_conf: "+real.Conf(), true)
		id := o.submits("sudo")

		o.launches(id, "sudo-1")
		o.stops(id, "sudo-1", "bob") // who is the server's own login
		o.ends(id)

		// The rule lets bob start the helper as alice, and nothing else: none of
		// Slurm's commands directly, no other arguments, and no variable that would
		// load a library of his own.
		rules := filepath.Join(real.Dir, "sudoers.d")
		helper := o.program + " as-user --slurm-conf " + real.Conf()
		if bin := real.Bin(); bin != "/usr/bin" {
			helper = o.program + " as-user --slurm-bin " + bin + " --slurm-conf " + real.Conf()
		}
		for words, may := range map[string]bool{
			"sudo -n -u alice " + helper: true, "sudo -n -u root " + helper: false,
			"sudo -n -u alice squeue": false, "sudo -n -u alice sh -c id": false, "sudo -n -u alice cat /etc/hostname": false,
			"sudo -n -u alice " + o.program + " as-user --slurm-conf /tmp/x.conf": false, "sudo -n -u alice " + o.program + " serve": false,
			"sudo -n -u alice LD_PRELOAD=/tmp/x.so " + helper: false, "sudo -n -E -u alice " + helper: false,
			"sudo -n --preserve-env=BASH_ENV -u alice " + helper: false,
		} {
			argv := append([]string{
				"--mount", "--propagation", "private", "sh", "-c",
				`mount --bind "$1" /etc/sudoers.d && shift && exec setpriv --reuid=bob --regid=bob --init-groups "$@"`, "sh", rules,
			}, strings.Fields(words)...)
			cmd := exec.CommandContext(context.Background(), "unshare", argv...)
			cmd.Env = append(real.Environ(), "BASH_ENV=/tmp/x")
			cmd.Stdin = strings.NewReader(`{"argv":["squeue","--noheader","--me","--format=%u"]}`)
			out, err := cmd.CombinedOutput()
			if may {
				require.NoError(t, err, "%s: %s", words, out)
			} else {
				require.Error(t, err, words)
				require.Contains(t, string(out), "sudo:", words)
			}
		}
	})
	t.Run("ssh", func(t *testing.T) {
		config := real.SSHD(t)
		shareConnections(t, config)
		// Without a User in ssh_config, each person's own login is used.
		o := newActingServer(t, real, fmt.Sprintf("kind: ssh, host: login, ssh_config: %s, slurm_bin: %s", config, real.Bin()), false)
		id := o.submits("ssh")
		o.launches(id, "ssh-1")
		o.stops(id, "ssh-1", "alice") // it acts as the job's owner
		o.ends(id)
		o.shares("ssh")
	})
	t.Run("a folder of a group's, by sudo", func(t *testing.T) {
		o := newActingServer(t, real, "kind: cli, slurm_conf: "+real.Conf(), false)
		o.shares("cli")
		o.chains("cli-chain")
	})
	t.Run("rest", func(t *testing.T) {
		dir, err := os.MkdirTemp(real.Dir, "tokens-")
		require.NoError(t, err)
		for _, user := range []string{"root", "alice", "bob"} {
			jwt, err := real.Token(t.Context(), user)
			require.NoError(t, err)
			require.NoError(t, os.WriteFile(filepath.Join(dir, user), []byte(jwt), 0o600))
		}
		o := newActingServer(t, real, fmt.Sprintf(`kind: rest, url: %q, token_file: "%s/%%u"`, real.REST, dir), false)
		o.ends(o.submits("rest"))
	})
}
