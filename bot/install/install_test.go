package install

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/slack-go/slack"
	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/bot/people"
	"github.com/megatron-ops/megatron-ops/bot/record"
	"github.com/megatron-ops/megatron-ops/bot/slacktest"
	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/store"
)

var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// A place has an App and a Slack that gives each method the same answer.
type place struct {
	*App
	ctx   context.Context
	store *store.Slack
	at    time.Time
	says  map[string]string // by method
	// scopes are the token's scopes.
	scopes string
}

func open(t *testing.T, change ...func(*Config)) *place {
	t.Helper()
	db, err := store.Open(t.Context(), filepath.Join(t.TempDir(), "state.db"))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	p := &place{ctx: t.Context(), store: db.Slack(), at: noon, says: map[string]string{
		"auth.test": `{"ok":true,"user":"megatron","team":"ops","team_id":"T1"}`, "apps.connections.open": `{"ok":true,"url":"wss://x"}`,
		"oauth.v2.access": `{"ok":true,"access_token":"xoxb-of-T1","scope":"chat:write","team":{"id":"T1","name":"ops"}}`,
	}}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-OAuth-Scopes", p.scopes)
		_, _ = w.Write([]byte(p.says[r.URL.Path[strings.LastIndexByte(r.URL.Path, '/')+1:]]))
	}))
	t.Cleanup(srv.Close)
	cfg := Config{
		APIURL: srv.URL + "/api", Store: db.Slack(), Now: func() time.Time { return p.at }, Log: slog.New(slog.DiscardHandler),
		OAuth: &OAuth{ClientID: "1.2", ClientSecret: "s", RedirectURL: "https://ops.example.com/slack/oauth", Key: bytes.Repeat([]byte{7}, 32)},
	}
	for _, f := range change {
		f(&cfg)
	}
	p.scopes = strings.Join(Scopes(cfg.Policy), ",")
	p.App = New(cfg)
	return p
}

func withToken(c *Config) { c.BotToken = "xoxb-1" }

// begin opens /slack/install and returns the state and its cookie.
func (p *place) begin(t *testing.T) (state string, cookie *http.Cookie) {
	t.Helper()
	w := httptest.NewRecorder()
	p.ServeInstall(w, httptest.NewRequest(http.MethodGet, "/slack/install", nil))
	require.Equal(t, http.StatusFound, w.Code)
	to, err := url.Parse(w.Header().Get("Location"))
	require.NoError(t, err)
	require.Equal(t, []string{"https", "slack.com", "1.2", strings.Join(Scopes(p.cfg.Policy), ","), "https://ops.example.com/slack/oauth"},
		[]string{to.Scheme, to.Host, to.Query().Get("client_id"), to.Query().Get("scope"), to.Query().Get("redirect_uri")})
	cookie = w.Result().Cookies()[0]
	require.True(t, cookie.HttpOnly)
	require.Equal(t, strings.HasPrefix(p.cfg.OAuth.RedirectURL, "https:"), cookie.Secure)
	return to.Query().Get("state"), cookie
}

func (p *place) end(query string, cookie *http.Cookie) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodGet, "/slack/oauth?"+query, nil)
	if cookie != nil {
		r.AddCookie(cookie)
	}
	w := httptest.NewRecorder()
	p.ServeOAuth(w, r)
	return w
}

// A workspace installs the app in one browser, once, within ten minutes; its token is stored
// encrypted, and deleted with the app.
func TestAWorkspaceInstallsTheApp(t *testing.T) {
	t.Parallel()
	p := open(t)
	_, err := p.Token(p.ctx, "T1")
	require.ErrorContains(t, err, "has not installed the app")
	state, cookie := p.begin(t)
	require.Equal(t, http.StatusBadRequest, p.end("code=1&state="+state, nil).Code, "another browser")
	require.Equal(t, http.StatusBadRequest, p.end("code=1&state=guess", cookie).Code)
	require.Equal(t, http.StatusForbidden, p.end("error=access_denied&state="+state, cookie).Code)
	w := p.end("code=1&state="+state, cookie)
	require.Equal(t, http.StatusOK, w.Code)
	require.Contains(t, w.Body.String(), "megatron-ops is installed")
	require.Equal(t, http.StatusBadRequest, p.end("code=1&state="+state, cookie).Code, "a state works once")

	var kept install
	_, err = p.store.Get(p.ctx, record.Install, "team/T1", noon, &kept)
	require.NoError(t, err)
	require.NotContains(t, string(kept.Token), "xoxb")
	for _, team := range []string{"T1", ""} {
		token, err := p.Token(p.ctx, team)
		require.NoError(t, err)
		require.Equal(t, "xoxb-of-T1", token, "the operator's own words name no workspace where there is one only")
	}
	first, err := p.Client(p.ctx, "T1")
	require.NoError(t, err)
	again, err := p.Client(p.ctx, "T1")
	require.NoError(t, err)
	require.Same(t, first, again)

	p.says["oauth.v2.access"] = `{"ok":true,"access_token":"xoxb-of-T2","team":{"id":"T2"}}`
	state, cookie = p.begin(t)
	require.Equal(t, http.StatusOK, p.end("code=1&state="+state, cookie).Code)
	_, err = p.Token(p.ctx, "")
	require.Error(t, err, "of two workspaces none is meant")
	teams, err := p.teams(p.ctx)
	require.NoError(t, err)
	require.Equal(t, []string{"T1", "T2"}, teams)

	p.Uninstalled(p.ctx, "T1") // an event of an earlier removal: the token is valid
	_, err = p.Client(p.ctx, "T1")
	require.NoError(t, err)
	valid := p.says["auth.test"]
	p.says["auth.test"] = "busy" // Slack does not answer: the token may be valid
	p.Uninstalled(p.ctx, "T1")
	_, err = p.Client(p.ctx, "T1")
	require.NoError(t, err)
	p.says["auth.test"] = `{"ok":false,"error":"token_revoked"}`
	p.Uninstalled(p.ctx, "T1")
	p.says["auth.test"] = valid
	_, err = p.Client(p.ctx, "T1")
	require.Error(t, err)
	for _, bad := range []string{`{"ok":false,"error":"invalid_code"}`, `{"ok":true,"access_token":"x"}`, `{"ok":true,"team":{"id":"T3"}}`} {
		p.says["oauth.v2.access"] = bad
		state, cookie = p.begin(t)
		require.Equal(t, http.StatusBadGateway, p.end("code=1&state="+state, cookie).Code, bad)
	}
	state, cookie = p.begin(t)
	p.at = noon.Add(11 * time.Minute)
	require.Equal(t, http.StatusBadRequest, p.end("code=1&state="+state, cookie).Code, "it took too long")
}

// A sealed token can be decrypted with its key, for its workspace.
func TestATokenIsSealedForItsWorkspace(t *testing.T) {
	t.Parallel()
	key := bytes.Repeat([]byte{7}, 32)
	sealed, err := seal(key, "xoxb-1", "T1")
	require.NoError(t, err)
	token, err := unseal(key, sealed, "T1")
	require.NoError(t, err)
	require.Equal(t, "xoxb-1", token)
	for name, open := range map[string]func() (string, error){
		"another workspace":  func() (string, error) { return unseal(key, sealed, "T2") },
		"another key":        func() (string, error) { return unseal(bytes.Repeat([]byte{8}, 32), sealed, "T1") },
		"too short":          func() (string, error) { return unseal(key, sealed[:11], "T1") },
		"nothing in it":      func() (string, error) { return unseal(key, sealed[:12], "T1") },
		"a key that is none": func() (string, error) { return unseal(key[:5], sealed, "T1") },
	} {
		_, err := open()
		require.Error(t, err, name)
	}
	_, err = seal(key[:5], "x", "T1")
	require.Error(t, err)
	p := open(t)
	require.NoError(t, p.store.Put(p.ctx, record.Install, "team/T1", install{Token: sealed[:20]}, time.Time{}))
	_, err = p.Token(p.ctx, "T1")
	require.ErrorContains(t, err, "install the app again")
	for in, ok := range map[string]bool{"BwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwc=\n": true, "short": false, "BwcH": false, "!": false} {
		got, err := ParseKey(in)
		require.Equal(t, ok, err == nil, in)
		require.Equal(t, ok, bytes.Equal(got, key), in)
	}
	none := open(t, func(c *Config) { c.OAuth = nil })
	_, err = none.Token(none.ctx, "T1")
	require.ErrorContains(t, err, "no bot token")
}

// Doctor says what is there and what is not, and what would help, in both languages.
func TestDoctorNamesWhatIsMissing(t *testing.T) {
	t.Parallel()
	say := func(p *place) (lines []string) {
		for _, c := range p.Doctor(p.ctx) {
			mark := "bad "
			if c.OK {
				mark = "ok "
				require.Empty(t, c.Fix.EN)
			}
			require.Equal(t, lang.ZH == lang.Of(c.Fix.ZH), c.Fix.EN != "", c.Fix.ZH)
			detail, _, _ := strings.Cut(c.Detail.EN, ", answered")
			lines = append(lines, mark+c.Name.EN+": "+detail+" | "+c.Fix.EN)
		}
		return lines
	}
	p := open(t, withToken)
	require.Equal(t, []string{
		"ok Slack bot token: megatron in ops (T1) | ", fmt.Sprintf("ok Slack scopes: all %d, and no more | ", len(Scopes(people.Policy{}))),
		"ok Slack HTTP: requests are verified with the signing secret | ", "ok Slack outbox: nothing was refused | ",
	}, say(p))
	p.scopes += ", users:read"
	require.Equal(t, "ok Slack scopes: all there; not needed: users:read | ", say(p)[1])
	p.scopes = "chat:write,commands"
	require.Contains(t, say(p)[1], "bad Slack scopes: missing: app_mentions:read")
	require.Contains(t, say(p)[1], "slack manifest")
	p.says["auth.test"] = `{"ok":false,"error":"invalid_auth"}`
	require.Contains(t, say(p)[0], "copy the xoxb- token again")
	p.says["auth.test"] = `no JSON`
	require.Contains(t, say(p)[0], "check the network")

	p = open(t, withToken, func(c *Config) { c.AppToken = "xapp-1" })
	require.Equal(t, "ok Slack app token: Socket Mode opens a connection | ", say(p)[2])
	p.says["apps.connections.open"] = `{"ok":false,"error":"not_allowed_token_type"}`
	require.Contains(t, say(p)[2], "connections:write")

	for i, why := range []string{"sent another way: x", "is_archived", "channel_not_found"} {
		key := string(rune('a' + i))
		require.NoError(t, p.store.Enqueue(p.ctx, store.SlackMessage{Key: key, Lane: key, Body: "{}", Queued: noon}))
		due, err := p.store.Due(p.ctx, noon.Add(time.Hour), 9)
		require.NoError(t, err)
		require.NoError(t, p.store.Bury(p.ctx, due[0].ID, why))
		last := say(p)[3]
		if i == 0 {
			require.Contains(t, last, "ok Slack outbox: nothing was refused")
		} else {
			require.Contains(t, last, "bad Slack outbox: "+string(rune('0'+i))+" messages were refused for good")
		}
	}
	many := open(t)
	require.Equal(t, "ok Slack workspaces: 0 have installed the app at /slack/install | ", say(many)[0])
	state, cookie := many.begin(t)
	require.Equal(t, http.StatusOK, many.end("code=1&state="+state, cookie).Code)
	many.scopes = ""
	lines := say(many)
	require.Contains(t, lines[1], "ok Slack bot token of T1")
	require.Contains(t, lines[2], "bad Slack scopes of T1: missing")
	require.Contains(t, lines[2], "install the app again at /slack/install")
}

var update = flag.Bool("update", false, "write the golden files")

// The manifest is what it was: what it switches on or off, an operator pastes unseen.
func TestTheManifestIsWhatItWas(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]ManifestOptions{
		"socket": {}, "http": {URL: "https://ops.example.com/", Install: "https://ops.example.com/", Policy: people.Policy{LinkDomain: "ops.example.com", Operators: []string{"S1"}}},
	} {
		raw, err := Manifest(o)
		require.NoError(t, err)
		slacktest.SameView(t, filepath.Join("testdata", "manifest."+name+".json"), raw, *update)
	}
}

// manifestOf decodes a manifest with slack-go's own type, which must know every field.
func manifestOf(t *testing.T, o ManifestOptions) (m slack.Manifest) {
	t.Helper()
	raw, err := Manifest(o)
	require.NoError(t, err)
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	require.NoError(t, d.Decode(&m))
	return m
}

func TestTheManifestSaysWhatTheBotUses(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]ManifestOptions{
		"socket mode": {},
		"http":        {URL: "https://ops.example.com/", Install: "https://ops.example.com", Policy: people.Policy{LinkDomain: "ops.example.com", Operators: []string{"S1", "C1"}}},
	} {
		m := manifestOf(t, o)
		require.Equal(t, Scopes(o.Policy), m.OAuthConfig.Scopes.Bot, name)
		require.Equal(t, "/megatron", m.Features.SlashCommands[0].Command)
		require.True(t, m.Features.AppHome.HomeTabEnabled)
		require.Nil(t, m.Features.AssistantView, "the earlier kind of agent is no more for new apps")
		raw, err := Manifest(o)
		require.NoError(t, err)
		require.Contains(t, string(raw), `"agent_view"`)
		require.Contains(t, string(raw), `"agent_description"`)
		require.Len(t, m.Features.Shortcuts, 3)
		if o.Install != "" {
			require.Equal(t, []string{"https://ops.example.com/slack/oauth"}, m.OAuthConfig.RedirectUrls)
		}
		for _, e := range []string{"app_mention", "message.im", "app_home_opened"} {
			require.Contains(t, m.Settings.EventSubscriptions.BotEvents, e, name)
		}
		require.Equal(t, o.URL == "", m.Settings.SocketModeEnabled, name)
		if o.URL != "" {
			require.Equal(t, "https://ops.example.com/slack/commands", m.Features.SlashCommands[0].Url)
			require.Equal(t, "https://ops.example.com/slack/interactions", m.Settings.Interactivity.RequestUrl)
			require.Equal(t, "https://ops.example.com/slack/events", m.Settings.EventSubscriptions.RequestUrl)
			require.Contains(t, m.Settings.EventSubscriptions.BotEvents, "link_shared")
			require.Contains(t, m.OAuthConfig.Scopes.Bot, "usergroups:read")
		}
	}
	all := people.Policy{LinkDomain: "ops.example.com", Operators: []string{"S1", "C1"}}
	events := map[string]string{"app_mention": "app_mentions:read", "link_shared": "links:read", "message.im": "im:history"}
	subscribed := manifestOf(t, ManifestOptions{Policy: all}).Settings.EventSubscriptions.BotEvents
	for _, sc := range scopesFor(all) {
		require.NotEmpty(t, sc.For, "%s: every right is there for something", sc.Name)
		for _, use := range sc.For {
			needed, method := slacktest.Needs(use)
			switch {
			case use == "/megatron" || use == "url_private":
			case method:
				require.Contains(t, needed, sc.Name, use)
			default:
				require.Equal(t, events[use], sc.Name, use)
				require.Contains(t, subscribed, use)
			}
		}
	}
	for event, scope := range events {
		require.Contains(t, subscribed, event)
		require.Contains(t, Scopes(all), scope)
	}
	for _, p := range []people.Policy{{Operators: []string{"U1", "S1"}}, {Viewers: []string{"S1"}}, {ApprovalChannel: "S1"}, {ApprovalChannel: "T1/S1"}} {
		require.Contains(t, manifestOf(t, ManifestOptions{Policy: p}).OAuthConfig.Scopes.Bot, "usergroups:read", "%+v", p)
	}
	for _, p := range []people.Policy{{Operators: []string{"", "U1"}}, {ApprovalChannel: "C1"}, {ApprovalChannel: "T1/C1"}, {Channels: []string{"C1"}}} {
		require.NotContains(t, Scopes(p), "usergroups:read", "%+v", p)
	}
	require.False(t, slices.ContainsFunc(Scopes(people.Policy{}), func(s string) bool {
		return strings.HasPrefix(s, "users:") || strings.HasPrefix(s, "usergroups:") || strings.HasSuffix(s, ":manage")
	}), "no more than what is used")
}
