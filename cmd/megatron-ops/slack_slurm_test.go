package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/bot/slacktest"
	"github.com/megatron-ops/megatron-ops/slurm/slurmtest"
)

// saying returns the messages that contain all of the words, including those that only
// one person sees.
func saying(st slacktest.State, words ...string) (found []*slacktest.Message) {
next:
	for _, m := range st.Messages {
		drawn := m.Text + slacktest.JSON(m.Blocks)
		for _, w := range words {
			if !strings.Contains(drawn, w) {
				continue next
			}
		}
		found = append(found, m)
	}
	return found
}

// idOf is the job's id in a card's headline: "🟡 gpt (4711): waiting".
func idOf(headline string) string {
	_, rest, _ := strings.Cut(headline, "(")
	id, _, _ := strings.Cut(rest, ")")
	return id
}

// until waits for a message that contains all of the words.
func until(slack *slacktest.Slack, words ...string) *slacktest.Message {
	var m *slacktest.Message
	slack.WaitFor(time.Minute, fmt.Sprintf("a message with %q", words), func(st slacktest.State) bool {
		found := saying(st, words...)
		if len(found) > 0 {
			m = found[0]
		}
		return len(found) > 0
	})
	return m
}

// training prints three of Megatron's iteration lines, as a script would.
const training = "for i in 10 20 30; do echo \" [2026-11-20 12:$i:00] iteration       $i/     100 | consumed samples:          640 |" +
	" elapsed time per iteration (ms): 60000.0 | lm loss: $((7 - i / 10)).125000E+00 | grad norm: 1.500 |\"; done\n"

// People of a real Slurm link themselves with a code that they write there, act as
// themselves and not as the server, and follow the job in its thread.
func TestALifeInSlackOnSlurm(t *testing.T) {
	t.Parallel()
	real := slurmtest.Start(t, slurmtest.Options{Enforce: true})
	slack := slacktest.Start(t, slacktest.Config{SigningSecret: signingSecret})

	// What a site's administrator sets up: a folder for codes, and a program that
	// everybody may run.
	site := filepath.Join(real.Work, "site")
	codes := filepath.Join(site, "codes")
	munged := filepath.Join(real.Dir, "run", "munge.sock")
	require.NoError(t, os.MkdirAll(codes, 0o755))
	require.NoError(t, os.Chmod(codes, os.ModeSticky|0o777))
	tree := filepath.Join(site, "tree")
	require.NoError(t, os.MkdirAll(tree, 0o755))
	require.NoError(t, os.Chmod(tree, 0o777))
	require.NoError(t, os.WriteFile(filepath.Join(tree, "train.sh"), []byte(training+"id -un; sleep \"${1:-1}\"\n"), 0o644))
	config := fmt.Sprintf("slack:\n  link_dir: %s\n  munge_socket: %s\n  operators: [U9]\n  links: {U9: root}\nclusters:\n  real: {kind: cli, slurm_conf: %s, act_as: true}\ncluster: real\n", codes, munged, real.Conf())
	s := newServer(t, config, "SLACK_API_URL="+slack.APIURL, "SLACK_BOT_TOKEN=xoxb-1", "SLACK_SIGNING_SECRET="+signingSecret, "MEGATRON_OPS_CLUSTER=")
	program := publicProgram(t, site)
	s.program = program // alice runs it too, by sudo
	public := filepath.Join(site, "megatron-ops.yaml")
	require.NoError(t, os.WriteFile(public, []byte("slack: {link_dir: "+codes+", munge_socket: "+munged+"}\n"), 0o644))
	s.start("")
	slack.Target(s.url)
	as := func(user string) map[string]any { return map[string]any{"user_id": user} }

	slack.Slash("submit --yes --name x --nodes 1 --worktree "+tree, as("U1"))
	until(slack, "not linked to a cluster user")
	link := func(user, login string) {
		t.Helper()
		slack.Slash("link", as(user))
		var m *slacktest.Message
		slack.Wait("the code of "+user, func(st slacktest.State) bool {
			for _, x := range saying(st, "Prove which cluster user you are") {
				if x.Only == user {
					m = x
				}
			}
			return m != nil
		})
		drawn := slacktest.JSON(m.Blocks)
		i := strings.Index(drawn, "megatron-ops link ")
		code := drawn[i+len("megatron-ops link ") : i+len("megatron-ops link ")+26]
		out, err := real.RunAs(t.Context(), login, "env", "HOME=/home/"+login, "MEGATRON_OPS_CONFIG="+public, program, "link", code)
		require.NoError(t, err, out)
		if login != "bob" {
			proofs, err := filepath.Glob(filepath.Join(codes, "megatron-ops-link-*"))
			require.NoError(t, err)
			require.Len(t, proofs, 1)
			_, err = real.RunAs(t.Context(), "bob", "rm", "-f", proofs[0])
			require.Error(t, err, "nobody takes another person's code away")
		}
		slack.PressLabel(m, "I have run it", user)
		until(slack, "you are "+login+" on the cluster")
	}
	link("U1", "alice")
	// Writing somebody else's code does not make one that person: the code links the
	// person who asked for it to the login that wrote it, and they see which.
	slack.Slash("whoami", as("U1"))
	until(slack, "T1/U1", "alice", "a code written on the cluster")

	spec := "```name: life\nnodes: 1\ngpus_per_node: 1\ngpu: a100\npartition: dev\ntime: \"5\"\nlauncher: custom\nlauncher_argv: [bash]\nscript: train.sh\nguards: false\nmonitor: false\nworktree: " + tree + "\nargs: [\"%s\"]\n```"
	slack.Slash("submit --yes "+fmt.Sprintf(spec, "600"), as("U1"))
	card := until(slack, "life (") // waiting, or running already
	id := idOf(card.Text)
	until(slack, "life ("+id+"): running", "<@U1>")
	j, err := real.Run(t.Context(), "squeue", "-h", "-j", id, "-o", "%u %a")
	require.NoError(t, err)
	require.Equal(t, "alice research", j, "the job is the person's, not the server's")

	// The training's own progress is shown while it runs, from the log files in Slurm's
	// record.
	require.Eventually(t, func() bool {
		return exec.Command("grep", "-rqF", "iteration       30/", tree).Run() == nil
	}, time.Minute, 100*time.Millisecond, "the training has written")
	slack.Slash("metrics "+id, as("U1"))
	until(slack, "📈 life · running · "+id, "4.125", "data_visualization")

	// Others may look but not change, and a person who is not linked sees no job.
	slack.Slash("status "+id, as("U3"))
	slack.Wait("what is said to a stranger", func(st slacktest.State) bool {
		return slices.ContainsFunc(saying(st, "Jobs and logs are shown to people of the cluster"), func(m *slacktest.Message) bool { return m.Only == "U3" })
	})
	link("U2", "bob")
	slack.Slash("status "+id, as("U2"))
	until(slack, "life · running · "+id)
	slack.Slash("cancel "+id+" --yes", as("U2"))
	until(slack, "job "+id+" belongs to alice, and you act as bob")
	card = until(slack, "life ("+id+"): running", "<@U1>")
	slack.PressLabel(card, "Cancel", "U1")
	slack.PressLabel(until(slack, "Please confirm", "Cancelling "+id), "Yes, do it", "U1")
	until(slack, "life ("+id+"): cancelled", "<@U1>")
	st := slack.WaitFor(time.Minute, "the curve in its thread", func(st slacktest.State) bool {
		return slices.ContainsFunc(st.Files, func(f *slacktest.Stored) bool { return f.Name == "loss.png" && f.Done && f.Thread == card.TS })
	})
	require.Len(t, channelMessages(st, "C1"), 1, "one message for the whole life of the job")
	news := 2 // its start and its end
	for _, c := range st.Calls {
		if c.Method == "chat.postMessage" && strings.Contains(fmt.Sprint(c.Args["text"]), "life ("+id+"): running") && c.Args["thread_ts"] == nil {
			news = 1 // it ran before it had a card, which said so
		}
	}
	slack.Wait("what became of it in the thread", func(st slacktest.State) bool {
		thread := 0
		for _, m := range st.Messages {
			if m.Thread == card.TS {
				thread++
			}
		}
		return thread >= news
	})

	out, err := s.command("audit", "-o", "json").CombinedOutput()
	require.NoError(t, err, "%s", out)
	for _, part := range []string{`"op": "link"`, `"op": "submit"`, `"user": "alice"`, `"surface": "slack"`, `"T1/U1"`, `"op": "cancel"`, "belongs to alice"} {
		require.Contains(t, string(out), part)
	}
	slack.Slash("audit", as("U1"))
	until(slack, "the audit trail is for operators")
	slack.Slash("audit", as("U9"))
	require.Equal(t, "U9", until(slack, "T1/U1", "submit", "alice").Only)
}

// channelMessages returns the messages that everybody sees in a channel itself.
func channelMessages(st slacktest.State, channel string) (list []*slacktest.Message) {
	for _, m := range st.Messages {
		if m.Only == "" && m.Thread == "" && m.Channel == channel {
			list = append(list, m)
		}
	}
	return list
}

// publicProgram copies the program to dir, where everybody may run it.
func publicProgram(t *testing.T, dir string) string {
	t.Helper()
	exe, err := os.Executable()
	require.NoError(t, err)
	program := filepath.Join(dir, "megatron-ops")
	copyProgram(t, exe, program)
	return program
}

// copyProgram copies with a separate program: a child of another test may inherit a
// file that this process has open for writing, and then nobody can start it.
func copyProgram(t *testing.T, from, to string) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "install", "-m", "755", from, to).CombinedOutput()
	require.NoError(t, err, string(out))
}
