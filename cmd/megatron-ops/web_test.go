package main

import (
	"bytes"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/bot"
	"github.com/megatron-ops/megatron-ops/internal/config"
	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/store"
)

// A misconfigured provider is reported when serve starts, not to those who sign in.
func TestProvidersOfTheConfiguration(t *testing.T) {
	secret := filepath.Join(t.TempDir(), "secret")
	require.NoError(t, os.WriteFile(secret, []byte("hush\n"), 0o600))
	open := filepath.Join(t.TempDir(), "open")
	require.NoError(t, os.WriteFile(open, []byte("hush\n"), 0o644))
	const page = "https://ops.example.org"
	oidc := config.OIDC{Issuer: "https://login.example.org", ClientID: "m", ClientSecretFile: secret, Scopes: []string{"profile"}}
	for name, c := range map[string]struct {
		web  config.Web
		slk  *bot.Bot
		says string
	}{
		"no address":    {config.Web{OIDC: oidc}, nil, "web.url"},
		"no client":     {config.Web{URL: page, OIDC: config.OIDC{Issuer: oidc.Issuer}}, nil, "web.oidc.client_id"},
		"plain http":    {config.Web{URL: page, OIDC: config.OIDC{Issuer: "http://login.example.org", ClientID: "m"}}, nil, "web.oidc.issuer"},
		"no issuer":     {config.Web{URL: page, OIDC: config.OIDC{ClientID: "m"}}, nil, "web.oidc.issuer"},
		"open secret":   {config.Web{URL: page, OIDC: config.OIDC{Issuer: oidc.Issuer, ClientID: "m", ClientSecretFile: open}}, nil, "web.oidc.client_secret_file"},
		"without Slack": {config.Web{URL: page, Slack: config.WebClient{ClientID: "1.2"}}, nil, "web.slack"},
		"Slack, no id":  {config.Web{URL: page, Slack: config.WebClient{ClientSecretFile: secret}}, &bot.Bot{}, "web.slack.client_id"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := providers(c.web, c.slk)
			require.ErrorContains(t, err, c.says+":")
		})
	}
	all, err := providers(config.Web{URL: page, OIDC: oidc, Slack: config.WebClient{ClientID: "1.2", ClientSecretFile: secret}}, &bot.Bot{})
	require.NoError(t, err)
	require.Equal(t, "hush", all["oidc"].ClientSecret)
	require.Equal(t, "使用 login.example.org 登录", all["oidc"].Label.In(lang.ZH))
	require.Equal(t, "https://slack.com", all["slack"].Issuer)
	all, err = providers(config.Web{}, nil)
	require.NoError(t, err)
	require.Empty(t, all)
}

// The page is served only to this machine, unless the configuration says how browsers
// reach it.
func TestWhereAPageIsServed(t *testing.T) {
	here, everywhere := &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1}, &net.TCPAddr{IP: net.IPv4zero, Port: 1}
	for _, c := range []struct {
		url string
		at  net.Addr
		is  bool
	}{
		{"", here, true},
		{"", everywhere, false},
		{"", &net.TCPAddr{IP: net.IPv4(10, 0, 0, 1), Port: 1}, false},
		{"", &net.UnixAddr{Name: "/run/ops", Net: "unix"}, false},
		{"https://ops.example.org", everywhere, true},
		{"https://ops.example.org", here, true},
	} {
		svc := &ops.Service{Store: func() (*store.Store, error) { return store.Open(t.Context(), filepath.Join(t.TempDir(), "s.db")) }}
		page, err := webPage(config.Config{Web: config.Web{URL: c.url}}, svc, nil, c.at, slog.New(slog.DiscardHandler))
		require.NoError(t, err, c.at)
		require.Equal(t, c.is, page != nil, "%q at %s", c.url, c.at)
	}
}

// web prints a link to the page that this account serves: the list, or one job.
func TestALinkToTheOwnPage(t *testing.T) {
	state := t.TempDir()
	t.Setenv("MEGATRON_OPS_STATE_DIR", state)
	t.Setenv("MEGATRON_OPS_CLUSTER", localCluster)
	said := func(words ...string) (int, string) {
		var out bytes.Buffer
		code := run(t.Context(), append([]string{"web"}, words...), streams{in: strings.NewReader(""), out: &out, err: &out})
		return code, out.String()
	}
	code, text := said()
	require.NotZero(t, code)
	require.Contains(t, text, "this account serves no page")
	require.NoError(t, os.WriteFile(filepath.Join(state, addressFile), []byte("http://127.0.0.1:8000\n"), 0o600))
	for word, to := range map[string]string{"": "%2Fweb%2Fjobs", "4711": "%2Fweb%2Fjobs%2Flocal%2F4711"} {
		code, text = said(strings.Fields(word)...)
		require.Zero(t, code, text)
		require.Regexp(t, `^http://127\.0\.0\.1:8000/web/login\?ticket=\w+&to=`+to+`\n$`, text)
	}
	code, text = said("4711", "4712")
	require.NotZero(t, code)
	require.Contains(t, text, `web does not know what to do with "4712"`)
}
