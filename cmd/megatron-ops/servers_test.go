package main

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/bot/slacktest"
	"github.com/megatron-ops/megatron-ops/internal/store/pgtest"
	"github.com/megatron-ops/megatron-ops/slurm/slurmtest"
)

// leads reads a server's own metrics; a server that is down does not lead.
func leads(s *server) bool {
	res, err := http.Get(s.url + "/metrics")
	if err != nil {
		return false
	}
	defer res.Body.Close()
	b, _ := io.ReadAll(res.Body)
	return strings.Contains(string(b), "\nmegatron_ops_leads 1\n")
}

// Two servers on one PostgreSQL share the work. The leader is killed while jobs start
// and end: the other takes over, and everything about each job is reported once.
func TestTwoServersShareTheWork(t *testing.T) {
	real := slurmtest.Start(t, slurmtest.Options{})
	db := pgtest.Start(t)
	slack := slacktest.Start(t, slacktest.Config{SigningSecret: signingSecret})
	dir, err := os.MkdirTemp(real.Work, "two-")
	require.NoError(t, err)
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "logs"), 0o777))
	for _, d := range []string{dir, filepath.Join(dir, "logs")} {
		require.NoError(t, os.Chmod(d, 0o777))
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, "train.sh"), []byte("sleep $1\n"), 0o644))
	config := fmt.Sprintf(`cluster: far
store: %q
clusters: {far: {kind: cli, slurm_conf: %s, act_as: true}}
slack: {links: {U1: alice}, per_minute: 600}
`, db, real.Conf())
	program := publicProgram(t, dir)
	start := func() *server {
		s := newServer(t, config, "MEGATRON_OPS_CLUSTER=far",
			"SLACK_BOT_TOKEN=xoxb-1", "SLACK_SIGNING_SECRET="+signingSecret, "SLACK_API_URL="+slack.APIURL)
		s.program = program
		s.start("")
		return s
	}
	a, b := start(), start()
	require.Eventually(t, func() bool { return leads(a) != leads(b) }, 20*time.Second, 100*time.Millisecond)

	slash := func(to *server, words string) {
		t.Helper()
		slack.Target(to.url)
		require.Equal(t, http.StatusOK, slack.Slash(words).Status, words)
	}
	names := []string{}
	submit := func(to *server, seconds int) {
		t.Helper()
		name := fmt.Sprintf("two-%d", len(names))
		names = append(names, name)
		slash(to, fmt.Sprintf("submit --yes --force --name %s --nodes 1 --gpus-per-node 0 --time 5 --worktree %s --launcher custom --launcher-argv bash --script train.sh -- %d", name, dir, seconds))
	}
	// Commands work on both servers, whichever leads.
	for i := range 3 {
		submit(a, 15+12*i)
		submit(b, 20+12*i)
	}
	card := func(s slacktest.State, name string) (cards, started, ended int) {
		for _, m := range s.Messages {
			if m.Thread != "" || m.Only != "" || !strings.Contains(fmt.Sprint(m.Text, m.Blocks), name) || m.Via != "chat.postMessage" {
				continue
			}
			cards++
			for _, r := range s.Messages {
				if r.Thread != m.TS || r.Channel != m.Channel {
					continue
				}
				switch text := fmt.Sprint(r.Text, r.Blocks); {
				case strings.Contains(text, "): running"):
					started++
				case strings.Contains(text, "): completed"), strings.Contains(text, "): failed"):
					ended++
				}
			}
		}
		return cards, started, ended
	}
	slack.Wait("a card for each job", func(s slacktest.State) bool {
		for _, name := range names {
			if cards, _, _ := card(s, name); cards == 0 {
				return false
			}
		}
		return true
	})

	leader, other := a, b
	if leads(b) {
		leader, other = b, a
	}
	time.Sleep(10 * time.Second) // some run, none has ended
	leader.kill()
	killed := time.Now()
	submit(other, 5) // nobody leads now
	require.Eventually(t, func() bool { return leads(other) }, 30*time.Second, 100*time.Millisecond)
	t.Logf("replaced after %s", time.Since(killed).Round(100*time.Millisecond))
	submit(other, 5)

	deadline := time.Now().Add(3 * time.Minute)
	for all := false; !all; time.Sleep(time.Second) {
		s := slack.State()
		all = true
		for _, name := range names {
			cards, started, ended := card(s, name)
			require.LessOrEqual(t, max(cards, started, ended), 1, "%s is told of once", name)
			all = all && cards == 1 && ended == 1
		}
		if time.Now().After(deadline) {
			for _, name := range names {
				cards, started, ended := card(s, name)
				t.Logf("%s: %d cards, %d starts, %d ends", name, cards, started, ended)
			}
			t.Fatal("not every end was told")
		}
	}
	time.Sleep(3 * time.Second) // for one that is too many
	s := slack.State()
	for _, name := range names {
		cards, started, ended := card(s, name)
		require.Equal(t, []int{1, 1}, []int{cards, ended}, name)
		require.LessOrEqual(t, started, 1, name)
	}
	out, err := real.Run(t.Context(), "sacct", "-X", "-n", "-P", "-D", "-a", "-S", "now-1hour", "-o", "JobName,User")
	require.NoError(t, err)
	for _, name := range names {
		require.Equal(t, 1, strings.Count(out, name+"|alice"), name)
	}
}
