package main

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/bot/slacktest"
	"github.com/megatron-ops/megatron-ops/internal/store"
	"github.com/megatron-ops/megatron-ops/internal/store/pgtest"
)

// Two servers on one PostgreSQL get the same calls at the same moment, and the leader is
// killed while it answers and while an operator decides. Operators are asked once, an
// approval serves one call, each command is answered once and each job is submitted once.
func TestALeaderKilledOnPostgreSQLDoesNothingTwice(t *testing.T) {
	db := pgtest.Start(t)
	t.Parallel()
	slack := slacktest.Start(t, slacktest.Config{SigningSecret: signingSecret})
	slack.Fault(slacktest.Fault{Method: "chat.postMessage", Rate: 1, DelayMS: 40}) // so that kills hit sends
	me, state, tree := osUser("shell").User, t.TempDir(), t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(tree, "train.sh"), []byte("true\n"), 0o600))
	token := filepath.Join(state, "agent.token")
	require.NoError(t, os.WriteFile(token, []byte("0123456789abcdef0123456789abcdef"), 0o600))
	config := fmt.Sprintf(`store: %q
slack: {links: {U1: %s, U5: grace}, operators: [U5], per_minute: 600, approval: {channel: C-ops, agents: true}}
mcp: {tokens: [{file: %s, id: nightly, user: %s}]}
`, db, me, token, me)
	servers := []*server{}
	for range 2 {
		s := newServer(t, config, "MEGATRON_OPS_STATE_DIR="+state, "SLACK_BOT_TOKEN=xoxb-1", "SLACK_SIGNING_SECRET="+signingSecret, "SLACK_API_URL="+slack.APIURL)
		s.start("")
		servers = append(servers, s)
	}
	oneLeads := func() bool { return leads(servers[0]) != leads(servers[1]) }
	require.Eventually(t, oneLeads, 20*time.Second, 50*time.Millisecond)

	// both calls the tool at both servers at the same moment, and returns their answers.
	both := func(name string) (answers []string) {
		args := map[string]any{"force": true, "spec": map[string]any{
			"name": name, "nodes": 1, "gpus_per_node": 1, "gpu": "a100", "time": "5", "worktree": tree,
			"launcher": "custom", "launcher_argv": []string{"bash"}, "script": "train.sh", "guards": false, "monitor": false,
		}}
		answers = make([]string, len(servers))
		var all sync.WaitGroup
		for i, s := range servers {
			all.Go(func() { answers[i] = callTool(t, s.url, "0123456789abcdef0123456789abcdef", "submit", args) })
		}
		all.Wait()
		return answers
	}
	asked := func(st slacktest.State, name string) (n int) {
		for _, m := range st.Messages {
			if drawn := slacktest.JSON(m.Blocks); m.Channel == "C-ops" && strings.Contains(drawn, name) && strings.Contains(drawn, "approv") {
				n++
			}
		}
		return n
	}
	var typed, called []string
	for round := range 3 {
		agents := fmt.Sprintf("agent-%d", round)
		called = append(called, agents)
		for _, said := range both(agents) {
			require.Contains(t, said, "waits for an approval", agents)
		}
		_, request := agentAsked(t, slack, agents)
		leader, other := servers[0], servers[1]
		if leads(other) {
			leader, other = other, leader
		}
		for i, s := range servers {
			name := fmt.Sprintf("typed-%d-%d", round, i)
			slack.Target(s.url)
			require.Equal(t, http.StatusOK, slack.Slash("submit --yes --force --name "+name+" --nodes 1 --gpus-per-node 1 --gpu a100 --time 5 --worktree "+tree+
				" --launcher custom --launcher-argv bash --script train.sh --no-guards --no-monitor").Status)
			typed = append(typed, name)
		}
		slack.Target(other.url)
		st := slack.State()
		for _, m := range st.Messages {
			if m.Channel == "C-ops" && strings.Contains(slacktest.JSON(m.Blocks), request) {
				slack.Press(m, "agent_yes", request, "U5")
			}
		}
		time.Sleep(time.Duration(30+120*round) * time.Millisecond)
		leader.kill()
		leader.start("")
		require.Eventually(t, oneLeads, 30*time.Second, 50*time.Millisecond)
		slack.Wait("the decision", func(st slacktest.State) bool {
			return slices.ContainsFunc(st.Messages, func(m *slacktest.Message) bool {
				drawn := slacktest.JSON(m.Blocks)
				return m.Channel == "C-ops" && strings.Contains(drawn, agents) && strings.Contains(drawn, "next call does it")
			})
		})
		submitted := 0
		for _, said := range both(agents) {
			if strings.Contains(said, "submitted to local as job") {
				submitted++
			} else {
				require.Contains(t, said, "waits for an approval", agents)
			}
		}
		require.Equal(t, 1, submitted, "one approval of %s", agents)
	}
	slack.Calm()
	st, err := store.Open(t.Context(), db)
	require.NoError(t, err)
	defer st.Close()
	names := slices.Concat(typed, called)
	for _, name := range names {
		require.Eventually(t, func() bool {
			subs, err := st.Submissions(t.Context(), "", name, 10)
			return err == nil && len(subs) == 1 && subs[0].State == store.Submitted
		}, time.Minute, 100*time.Millisecond, name)
	}
	// A number that a killed server had taken is lost, so the jobs are counted, not their numbers.
	jobs, err := filepath.Glob(filepath.Join(state, "local", "jobs", "[0-9]*"))
	require.NoError(t, err)
	require.Len(t, jobs, len(names), "one job a submission")
	// A server that takes over from one that was killed after the submission answers "had been submitted to local already".
	told := func(st slacktest.State, name string) (n int) {
		for _, m := range st.Messages {
			if m.Thread == "" && strings.Contains(fmt.Sprint(m.Text, m.Blocks), name) && strings.Contains(fmt.Sprint(m.Text, m.Blocks), "submitted to local ") {
				n++
			}
		}
		return n
	}
	slack.WaitFor(time.Minute, "an answer to each command", func(st slacktest.State) bool {
		for _, name := range typed {
			if told(st, name) == 0 {
				return false
			}
		}
		return true
	})
	time.Sleep(3 * time.Second) // for one that is too many
	for _, name := range typed {
		require.Equal(t, 1, told(slack.State(), name), name)
	}
	for _, name := range called {
		require.LessOrEqual(t, asked(slack.State(), name), 2, "%s: the decided request, and at most one of the call that came second", name)
	}
}
