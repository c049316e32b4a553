package main

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/bot/slacktest"
	"github.com/megatron-ops/megatron-ops/internal/store"
)

// Two servers on one SQLite file: the leader is suspended, as by a debugger or a frozen
// machine, while a job runs. The other takes over and reports the end; the first
// resumes and does not act.
func TestAStoppedLeaderIsReplacedOnSQLite(t *testing.T) {
	if testing.Short() {
		t.Skip("waits for a lease to run out; not with -short")
	}
	t.Parallel()
	slack := slacktest.Start(t, slacktest.Config{SigningSecret: signingSecret})
	state, tree := t.TempDir(), t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(tree, "train.sh"), []byte("until [ -e stop ]; do sleep 0.2; done\n"), 0o600))
	start := func() *server {
		s := newServer(t, "slack: {links: {U1: "+osUser("shell").User+"}, per_minute: 600}\n", "MEGATRON_OPS_STATE_DIR="+state,
			"SLACK_BOT_TOKEN=xoxb-1", "SLACK_SIGNING_SECRET="+signingSecret, "SLACK_API_URL="+slack.APIURL)
		s.start("")
		t.Cleanup(func() { _ = s.cmd.Process.Signal(syscall.SIGCONT) })
		return s
	}
	first := start()
	first.logged("this server leads", 1)
	second := start()
	second.logged("this one stands by", 1)
	slack.Target(second.url)
	require.Equal(t, http.StatusOK, slack.Slash("submit --yes --force --name stopped --nodes 1 --gpus-per-node 1 --gpu a100 --time 5 --worktree "+tree+
		" --launcher custom --launcher-argv bash --script train.sh --no-guards --no-monitor").Status)
	ends := func(st slacktest.State) (n int) {
		for _, m := range st.Messages {
			if m.Thread != "" && strings.Contains(fmt.Sprint(m.Text, m.Blocks), "): completed") {
				n++
			}
		}
		return n
	}
	slack.WaitFor(time.Minute, "the job runs", func(st slacktest.State) bool {
		return strings.Contains(fmt.Sprint(slacktest.JSON(st.Messages)), "unning")
	})

	// If it was suspended during a write it would hold the file's lock: try another
	// moment.
	st, err := store.Open(t.Context(), filepath.Join(state, "state.db"))
	require.NoError(t, err)
	defer st.Close()
	require.Eventually(t, func() bool {
		require.NoError(t, first.cmd.Process.Signal(syscall.SIGSTOP))
		if st.Slack().Put(t.Context(), "test", "k", 1, time.Time{}) == nil {
			return true
		}
		require.NoError(t, first.cmd.Process.Signal(syscall.SIGCONT))
		return false
	}, 2*time.Minute, 300*time.Millisecond)
	second.logged("this server leads", 1)
	require.NoError(t, os.WriteFile(filepath.Join(tree, "stop"), nil, 0o600))
	slack.WaitFor(2*time.Minute, "the end is told", func(st slacktest.State) bool { return ends(st) == 1 })

	require.NoError(t, first.cmd.Process.Signal(syscall.SIGCONT))
	first.logged("this server leads no more", 1)
	require.False(t, leads(first))
	require.True(t, leads(second))
	first.logged("this one stands by", 1)
	require.NoError(t, second.cmd.Process.Signal(syscall.SIGTERM))
	first.logged("this server leads", 3) // at first, no more, and again
	require.Equal(t, 1, ends(slack.State()), "each thing is told once")
}
