package main

import (
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/bot/slacktest"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/store"
)

// If agents require approval, each of their writes is decided in Slack, however small:
// by an operator or by the agent's own person, for one call, and for an hour. This
// holds for both transports.
func TestEveryWriteOfAnAgentIsDecidedInSlack(t *testing.T) {
	t.Parallel()
	me, err := user.Current()
	require.NoError(t, err)
	slack := slacktest.Start(t, slacktest.Config{SigningSecret: signingSecret})
	token, shared := "0123456789abcdef0123456789abcdef", filepath.Join(t.TempDir(), "shared.db")
	s := newServer(t, fmt.Sprintf(`
slack:
  operators: [U5]
  links: {U5: grace, U6: %[1]s, U7: bob}
  approval: {channel: C-ops, agents: true}
mcp:
  tokens: [{file: agent.token, id: nightly, user: %[1]s}]
`, me.Username), "SLACK_API_URL="+slack.APIURL, "SLACK_BOT_TOKEN=xoxb-1", "SLACK_SIGNING_SECRET="+signingSecret, "MEGATRON_OPS_STORE="+shared)
	require.NoError(t, os.WriteFile(filepath.Join(s.home, "agent.token"), []byte(token), 0o600))
	s.start("")
	slack.Target(s.url)

	doors := map[string]func(t *testing.T, tool string, args map[string]any) string{
		"mcp-http": func(t *testing.T, tool string, args map[string]any) string {
			t.Helper()
			return callTool(t, s.url, token, tool, args)
		},
		"mcp": func(t *testing.T, tool string, args map[string]any) string {
			t.Helper()
			return callStdio(t, s, tool, args)
		},
	}
	if testing.Short() {
		delete(doors, "mcp") // a process a call
	}
	ids := map[string]string{"mcp-http": "nightly", "mcp": me.Username}
	t.Run("doors", func(t *testing.T) {
		for door, through := range doors {
			t.Run(door, func(t *testing.T) {
				t.Parallel()
				call := func(tool string, args map[string]any) string { return through(t, tool, args) }
				by := map[string]string{} // what each decided about
				submit := func(name string) string { return call("submit", map[string]any{"spec": small(s, name)}) }
				said := func(words string) {
					t.Helper()
					slack.Wait(words, func(st slacktest.State) bool {
						for _, m := range st.Messages {
							if strings.Contains(m.Text+slacktest.JSON(m.Blocks), words) {
								return true
							}
						}
						return false
					})
				}

				// A call that changes nothing asks nobody, and no token is offered.
				dry := call("submit", map[string]any{"spec": small(s, "dry"), "dry_run": true})
				require.Contains(t, dry, `"job_id":null`, door)
				require.NotContains(t, call("plan", map[string]any{"spec": small(s, "dry")}), "confirm_token", door)

				// An operator approves; a stranger cannot.
				first := door + "-one"
				require.Contains(t, submit(first), "waits for an approval by an operator", door)
				q, value := agentAsked(t, slack, first)
				require.Contains(t, slacktest.JSON(q.Blocks), "test-agent")
				slack.Press(q, "agent_yes", value, "U7")
				said("only operators may approve this")
				require.Contains(t, submit(first), "waits for an approval", door)
				by["U5"] = value
				slack.Press(q, "agent_yes", value, "U5")
				decided(t, slack, q, "next call does it", "U5")
				require.Contains(t, submit(first), "submitted to local as job", door)
				require.Contains(t, submit(first), "waits for an approval", "an approval serves one call")

				// The agent's own person refuses.
				second := door + "-two"
				require.Contains(t, submit(second), "waits for an approval", door)
				q, value = agentAsked(t, slack, second)
				by["U6"] = value
				slack.Decline(q, "agent_no", value, "U6", "not on a Friday")
				decided(t, slack, q, "Declined: nothing was done", "U6")
				require.Contains(t, submit(second), "T1/U6 has declined this submit: not on a Friday; nothing was done", door)
				require.NotContains(t, call("list", map[string]any{}), second, "nothing was submitted")

				// A request that nobody decided in time, and an approval that nobody
				// used in time, are void.
				third := door + "-three"
				require.Contains(t, submit(third), "waits for an approval", door)
				q, value = agentAsked(t, slack, third)
				expire(t, shared, value)
				slack.Press(q, "agent_yes", value, "U5")
				said("older than 1 d")
				require.Contains(t, submit(third), "waits for an approval", door)
				old := value
				require.Eventually(t, func() bool { q, value = agentAsked(t, slack, third); return value != old }, 20*time.Second, 100*time.Millisecond)
				slack.Press(q, "agent_yes", value, "U6")
				decided(t, slack, q, "next call does it", "U6")
				expire(t, shared, value)
				require.Contains(t, submit(third), "waits for an approval", "the yes was an hour old")
				require.NotContains(t, call("list", map[string]any{}), third)

				// The audit names who asked, for whom, and who decided.
				out, err := s.command("audit", "--limit", "500", "-o", "json").Output()
				require.NoError(t, err)
				lines := strings.Join(strings.Fields(string(out)), " ")
				for _, who := range []string{
					fmt.Sprintf(`"surface": "%s", "who": "%s", "user": "%s", "agent": "test-agent", "op": "submit"`, door, ids[door], me.Username),
					`"who": "T1/U5", "user": "grace", "op": "approve", "input": "{\"agent\":\"test-agent\",\"digest\":\"`,
					fmt.Sprintf(`\"op\":\"submit\",\"reason\":\"\",\"request\":\"%s\",\"requester\":\"%s:%s\"}"`, by["U5"], door, ids[door]),
					fmt.Sprintf(`"who": "T1/U6", "user": "%s", "op": "decline", "input": "{\"agent\":\"test-agent\",\"digest\":\"`, me.Username),
					fmt.Sprintf(`\"op\":\"submit\",\"reason\":\"not on a Friday\",\"request\":\"%s\"`, by["U6"]),
				} {
					require.Contains(t, lines, who)
				}
			})
		}
	})
	if testing.Short() { // the card comes with the next look at the jobs, within half a minute
		return
	}
	for door := range doors { // the job gives the agent's person its card
		slack.WaitFor(3*time.Minute, "the card of a job submitted by "+door, func(st slacktest.State) bool {
			return slices.ContainsFunc(st.Messages, func(m *slacktest.Message) bool {
				return m.Channel == "DU6" && m.Thread == "" && strings.Contains(m.Text, door+"-one (")
			})
		})
	}
}

// If nobody can be asked in Slack, no token replaces the approval.
func TestApprovalsForAgentsNeedAPlaceToBeGiven(t *testing.T) {
	t.Parallel()
	s := newServer(t, "slack:\n  approval: {agents: true}\n")
	spec := map[string]any{"spec": small(s, "alone")}
	require.NotContains(t, callStdio(t, s, "plan", spec), "confirm_token")
	require.Contains(t, callStdio(t, s, "submit", spec), "approvals are required for agents here, so a person has to say yes, and this client cannot ask one")
}

// decided waits until a request is updated with these words and this person.
func decided(t *testing.T, slack *slacktest.Slack, q *slacktest.Message, words, by string) {
	t.Helper()
	slack.Wait(words, func(st slacktest.State) bool {
		for _, m := range st.Messages {
			if drawn := slacktest.JSON(m.Blocks); m.TS == q.TS && m.Edits > 0 {
				return strings.Contains(drawn, words) && strings.Contains(drawn, by)
			}
		}
		return false
	})
}

// expire makes one request an hour old.
func expire(t *testing.T, database, id string) {
	t.Helper()
	st, err := store.Open(t.Context(), database)
	require.NoError(t, err)
	defer st.Close()
	key, _, _ := strings.Cut(id, ".")
	var a ops.Approval
	docs := st.Slack()
	ok, err := docs.Get(t.Context(), "approval", key, time.Now(), &a)
	require.NoError(t, err)
	require.True(t, ok)
	a.Until = time.Now().Add(-time.Second)
	require.NoError(t, docs.Put(t.Context(), "approval", key, a, a.Until))
}
