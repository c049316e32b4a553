package main

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/internal/store"
)

// A report goes to people who may not know a site's secrets: it contains none, wherever
// they come from.
func TestAReportHoldsNoSecret(t *testing.T) {
	t.Parallel()
	s := newServer(t, `slack: {operators: [U7OPERATOR], links: {U1: alice}}
mcp: {tokens: [{file: agent.token, id: nightly}]}
notify:
  hook: {kind: webhook, url: "https://hooks.example.org/services/T000/B000/pathSecretOfTheHook", secret_file: hook.secret}
  mail: {kind: mail, url: "smtp://robot:mailPassw0rd@mail.example.org:587", from: a@example.org, to: [b@example.org]}
clusters:
  api: {kind: rest, url: "http://127.0.0.1:1", token_file: rest.token}
`,
		"SLACK_BOT_TOKEN=xoxb-12345-botTokenValue", "SLACK_SIGNING_SECRET=signingSecretValue", "SLACK_API_URL=http://127.0.0.1:1/api/",
		"OPENAI_API_KEY=sk-keyOfTheModel", "OTEL_EXPORTER_OTLP_HEADERS=authorization=headerOfTheCollector", "MEGATRON_OPS_SLACK_KEY=keyThatEncryptsTokens")
	for name, text := range map[string]string{"agent.token": "tokenOfTheNightlyAgent", "hook.secret": "whsec_signerOfTheHook", "rest.token": "eyJhbGciOiJIUzI1NiJ9.e30.signatureOfRest"} {
		require.NoError(t, os.WriteFile(filepath.Join(s.home, name), []byte(text+"\n"), 0o600))
	}
	st, err := store.Open(t.Context(), filepath.Join(s.home, "state", "state.db"))
	require.NoError(t, err)
	require.NoError(t, st.AddAudit(t.Context(), store.Entry{
		At: time.Now(), Surface: "shell", Who: "alice", Op: "submit", Input: `{"env":{"WANDB_API_KEY":"inputOfTheChange"}}`,
		Result: "sbatch: error: host=db user=dbUserName password='dbPassw0rd one' postgres://ops:urlPassw0rd@db/ops?sslpassword=tlsPassw0rd https://hooks.example.org/services/anotherPathOfAHook tokenOfTheNightlyAgent",
	}))
	require.NoError(t, st.Close())
	for lang, says := range map[string][]string{
		"en": {"## Checks", "## Configuration", "## Clusters", "## Store", "SQLite, schema ", "- audit: 1", "submit (shell): sbatch: error:", "U7OPERATOR", "- OPENAI_API_KEY\n"},
		"zh": {"## 检查", "## 配置", "## 集群", "## 数据库", "## 最近失败的变更"},
	} {
		cmd := s.command("doctor", "--report", "--lang", lang)
		out, err := cmd.Output()
		require.NoError(t, err)
		for _, words := range says {
			require.Contains(t, string(out), words)
		}
		for _, secret := range []string{
			"pathSecretOfTheHook", "mailPassw0rd", "botTokenValue", "signingSecretValue", "keyOfTheModel", "headerOfTheCollector",
			"keyThatEncryptsTokens", "tokenOfTheNightlyAgent", "signerOfTheHook", "signatureOfRest", "inputOfTheChange", "dbPassw0rd", "urlPassw0rd", "tlsPassw0rd", "dbUserName", "anotherPathOfAHook",
		} {
			require.NotContains(t, string(out), secret)
		}
	}
	// A database's address in the error of a refused connection.
	s = newServer(t, "store: \"postgres://ops:storePassw0rd@127.0.0.1:1/ops?password=againPassw0rd\"\n")
	out, err := s.command("doctor", "--report").CombinedOutput()
	require.NoError(t, err, string(out))
	require.Contains(t, string(out), "postgres://127.0.0.1:1/…")
	require.NotContains(t, string(out), "Passw0rd")
	// A configuration that cannot be read.
	s = newServer(t, "notify: {x: {kind: webhook, urll: \"https://hooks.example.org/typoSecret\"}}\n")
	out, err = s.command("doctor", "--report").CombinedOutput()
	require.NoError(t, err, string(out))
	require.Contains(t, string(out), "notify.x.urll")
	require.NotContains(t, string(out), "typoSecret")
}
