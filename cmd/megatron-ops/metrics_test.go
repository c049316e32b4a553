package main

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// /metrics has the metrics that the dashboard and the alerts query, under the names
// that Prometheus expects.
func TestMetricsAreWhatTheDashboardAndTheAlertsAsk(t *testing.T) {
	if testing.Short() {
		t.Skip("waits for a job; not with -short")
	}
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, closed.Close()) // a service that is away
	s := newServer(t, fmt.Sprintf("notify: {team: {kind: webhook, url: \"http://%s\", events: [start]}}\n", closed.Addr()), "SLACK_BOT_TOKEN=")
	tree := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(tree, "train.sh"), []byte(`for i in $(seq 1 400); do
echo " [$(date '+%Y-%m-%d %H:%M:%S')] iteration $i/ 400 | consumed samples: $i | elapsed time per iteration (ms): 500.1 | throughput per GPU (TFLOP/s/GPU): 400.1 | learning rate: 1.0E-04 | global batch size: 32 | lm loss: 2.5E+00 | loss scale: 1.0 | grad norm: 0.3 | number of skipped iterations: 0 | number of nan iterations: 0 |"
sleep 0.5; done
`), 0o600))
	out, err := s.command("submit", "--yes", "--name", "gpt", "--nodes", "1", "--gpus-per-node", "1", "--gpu", "a100", "--time", "30", "--launcher", "custom",
		"--launcher-argv", "bash", "--script", "train.sh", "--no-guards", "--no-monitor", "--worktree", tree).CombinedOutput()
	require.NoError(t, err, string(out))
	t.Cleanup(func() { s.cancel("1") })
	s.start("")
	scrape := func(token string) string {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.url+"/metrics", nil)
		require.NoError(t, err)
		if token != "" {
			req.Header.Set("Authorization", "Bearer "+token)
		}
		res, err := http.DefaultClient.Do(req)
		require.NoError(t, err)
		defer res.Body.Close()
		require.Equal(t, http.StatusOK, res.StatusCode)
		b, err := io.ReadAll(res.Body)
		require.NoError(t, err)
		return string(b)
	}
	token, err := os.ReadFile(filepath.Join(s.home, "state", "mcp.token"))
	require.NoError(t, err)
	var scraped string
	require.Eventually(t, func() bool {
		scraped = scrape(strings.TrimSpace(string(token)))
		return strings.Contains(scraped, `megatron_ops_job_loss{cluster="local",job="1"} 2.5`) &&
			strings.Contains(scraped, `megatron_ops_notify_messages{kind="webhook",target="team"} 1`) &&
			strings.Contains(scraped, "megatron_ops_http_request_duration_seconds_bucket") // of the scrape before
	}, 2*time.Minute, time.Second)

	for _, token := range []string{"", "a-guess-of-16-chars"} {
		strangers := scrape(token)
		require.Contains(t, strangers, "megatron_ops_leads 1")
		require.NotContains(t, strangers, "megatron_ops_job", "what a job logs is its people's")
	}

	has := regexp.MustCompile(`(?m)^# TYPE (megatron_ops_\w+)`).FindAllStringSubmatch(scraped, -1)
	var names []string
	for _, m := range has {
		names = append(names, m[1])
	}
	for _, file := range []string{"dashboard.json", "alerts.yaml"} {
		text, err := os.ReadFile(filepath.Join("..", "..", "packaging", "monitoring", file))
		require.NoError(t, err)
		for _, name := range regexp.MustCompile(`megatron_ops_\w+`).FindAllString(string(text), -1) {
			if strings.HasPrefix(name, "megatron_ops_slurm_") {
				continue // of clusters that are a Slurm
			}
			require.True(t, slices.Contains(names, strings.TrimSuffix(name, "_bucket")), "%s asks for %s, which /metrics has not", file, name)
		}
	}
	promtool, err := exec.LookPath("promtool")
	if err != nil && os.Getenv("CI") != "true" {
		t.Skip("no promtool: run `make setup`")
	}
	require.NoError(t, err)
	check := exec.Command(promtool, "check", "metrics")
	check.Stdin = strings.NewReader(scraped)
	out, err = check.CombinedOutput()
	require.NoError(t, err, string(out))
	for _, words := range [][]string{{"check", "rules", "alerts.yaml"}, {"test", "rules", "alerts_test.yaml"}} {
		cmd := exec.Command(promtool, words...)
		cmd.Dir = filepath.Join("..", "..", "packaging", "monitoring")
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, string(out))
	}
}
