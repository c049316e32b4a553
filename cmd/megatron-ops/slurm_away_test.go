package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/bot/slacktest"
	"github.com/megatron-ops/megatron-ops/internal/store"
	"github.com/megatron-ops/megatron-ops/slurm/slurmtest"
)

// atOnce bounds the wait for an answer while the controller is down; Slurm's own
// commands take ten seconds and more. Half of it allows for a machine under load.
const atOnce = 8 * time.Second

// While the controller of a real Slurm does not answer, every surface shows a job as it
// was last seen, with the time, and at once. So do the shell, from what the server has
// stored, and a server that was started meanwhile.
func TestSlurmIsAwayAndEveryDoorTellsWhatItLastSaw(t *testing.T) {
	real := slurmtest.Start(t, slurmtest.Options{})
	slack := slacktest.Start(t, slacktest.Config{SigningSecret: signingSecret})
	site, err := os.MkdirTemp(real.Work, "away-")
	require.NoError(t, err)
	require.NoError(t, os.MkdirAll(filepath.Join(site, "logs"), 0o777))
	require.NoError(t, os.WriteFile(filepath.Join(site, "train.sh"), []byte("sleep 600\n"), 0o644))
	config := fmt.Sprintf("cluster: far\nclusters: {far: {kind: cli, slurm_conf: %s}}\nslack: {links: {U1: root}, per_minute: 600}\n", real.Conf())
	s := newServer(t, config, "MEGATRON_OPS_CLUSTER=far", "SLACK_BOT_TOKEN=xoxb-1", "SLACK_SIGNING_SECRET="+signingSecret, "SLACK_API_URL="+slack.APIURL)
	s.start("")
	slack.Target(s.url)
	out, err := s.command("submit", "--yes", "--force", "--name", "away", "--nodes", "1", "--gpus-per-node", "0", "--partition", "dev", "--time", "20", "--worktree", site,
		"--launcher", "custom", "--launcher-argv", "bash", "--script", "train.sh", "--no-guards", "--no-monitor", "-o", "json").Output()
	require.NoError(t, err, string(out))
	var made struct {
		ID string `json:"job_id"`
	}
	require.NoError(t, json.Unmarshal(out, &made))
	t.Cleanup(func() {
		_ = real.Signal("slurmctld", syscall.SIGCONT)
		_, _ = real.Run(context.Background(), "scancel", made.ID)
	})

	token, err := os.ReadFile(filepath.Join(s.home, "state", "mcp.token"))
	require.NoError(t, err)
	jar, err := cookiejar.New(nil)
	require.NoError(t, err)
	browser := &http.Client{Jar: jar}
	page := func(path string) string {
		res, err := browser.Get(s.url + path)
		require.NoError(t, err)
		defer res.Body.Close()
		b, err := io.ReadAll(res.Body)
		require.NoError(t, err)
		return string(b)
	}
	signIn := func() {
		link, err := s.command("web").Output()
		require.NoError(t, err)
		to, err := url.Parse(strings.TrimSpace(string(link)))
		require.NoError(t, err)
		res, err := browser.PostForm(s.url+"/web/login", to.Query())
		require.NoError(t, err)
		require.NoError(t, res.Body.Close())
	}
	shell := func(words ...string) string {
		out, _ := s.command(words...).CombinedOutput()
		return string(out)
	}
	agent := &session{s: s, token: strings.TrimSpace(string(token))}
	require.Equal(t, http.StatusOK, agent.send(initialize))
	said := 0
	doors := map[string]func() string{
		"shell status": func() string { return shell("status", made.ID) },
		"shell list":   func() string { return shell("list") },
		"agent status": func() string {
			return agent.ask(`{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"status","arguments":{"job":"` + made.ID + `"}}}`)
		},
		"agent list": func() string {
			return agent.ask(`{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"list","arguments":{"user":"all"}}}`)
		},
		"page of the job": func() string { return page("/web/jobs/far/" + made.ID) },
		"page of jobs":    func() string { return page("/web/jobs") },
		"Slack status": func() string {
			said++
			before := len(slack.State().Messages)
			require.Equal(t, http.StatusOK, slack.Slash("status "+made.ID).Status)
			st := slack.WaitFor(time.Minute, "an answer", func(st slacktest.State) bool { return len(st.Messages) > before })
			m := st.Messages[len(st.Messages)-1]
			return fmt.Sprint(m.Text, m.Blocks)
		},
	}
	signIn()
	require.Eventually(t, func() bool { return strings.Contains(strings.ToUpper(doors["page of the job"]()), "RUNNING") }, time.Minute, time.Second)
	for name, door := range doors { // lists may be as old as the server's last look
		require.Eventually(t, func() bool { return strings.Contains(door(), made.ID) }, 2*time.Minute, time.Second, name)
	}
	st, err := store.Open(t.Context(), filepath.Join(s.home, "state", "state.db"))
	require.NoError(t, err)
	defer st.Close()
	require.Eventually(t, func() bool { // the server has written down that it runs
		var kept struct{ Jobs []byte }
		ok, err := st.Slack().Get(t.Context(), "last-seen", "far", time.Now(), &kept)
		if err != nil || !ok {
			return false
		}
		r, err := gzip.NewReader(bytes.NewReader(kept.Jobs))
		require.NoError(t, err)
		raw, err := io.ReadAll(r)
		return err == nil && strings.Contains(string(raw), "RUNNING")
	}, 2*time.Minute, 100*time.Millisecond)

	require.NoError(t, real.Signal("slurmctld", syscall.SIGSTOP))
	ask := func(when string) {
		for name, door := range doors {
			began := time.Now()
			answer := door()
			took := time.Since(began)
			t.Logf("%s: %s took %s", when, name, took.Round(100*time.Millisecond))
			if !strings.Contains(answer, made.ID) || !strings.Contains(strings.ToUpper(answer), "RUNNING") ||
				!strings.Contains(answer, "seen_at") && !strings.Contains(answer, "does not answer") {
				t.Errorf("%s: %s says\n%s", when, name, answer)
			}
			if took > atOnce {
				t.Errorf("%s: %s took %s", when, name, took)
			}
		}
	}
	require.Eventually(t, func() bool { return strings.Contains(doors["agent status"](), "seen_at") }, 2*time.Minute, time.Second, "until then the server answers from memory")
	ask("the controller hangs")
	s.kill()
	s.start("")
	slack.Target(s.url)
	agent = &session{s: s, token: agent.token}
	require.Equal(t, http.StatusOK, agent.send(initialize))
	signIn()
	ask("a new server")
}
