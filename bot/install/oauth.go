package install

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/slack-go/slack"

	"github.com/megatron-ops/megatron-ops/bot/outbox"
	"github.com/megatron-ops/megatron-ops/bot/record"
	"github.com/megatron-ops/megatron-ops/internal/lang"
)

// OAuth lets workspaces install the app themselves. Their tokens are stored encrypted.
type OAuth struct {
	ClientID     string
	ClientSecret string
	// RedirectURL is the address of our /slack/oauth as Slack reaches it.
	RedirectURL string
	// Key encrypts tokens: 32 bytes for AES-256-GCM. Who loses it installs again.
	Key []byte
}

// An install is one workspace's encrypted token.
type install struct {
	Team   string    `json:"team"`
	Name   string    `json:"name"`
	Scopes string    `json:"scopes"`
	Token  []byte    `json:"token"` // the nonce followed by the sealed token
	At     time.Time `json:"at"`
}

const stateCookie = "megatron_ops_install"

// ServeInstall sends the browser to Slack. A cookie ties the OAuth state to this browser, and
// the state works once, so that nobody can be made to finish somebody else's installation.
func (p *App) ServeInstall(w http.ResponseWriter, r *http.Request) {
	state := rand.Text()
	if err := p.cfg.Store.Put(r.Context(), record.Install, "state/"+state, true, p.cfg.Now().Add(10*time.Minute)); err != nil {
		http.Error(w, "not stored", http.StatusServiceUnavailable)
		return
	}
	http.SetCookie(w, &http.Cookie{
		Name: stateCookie, Value: state, Path: "/slack/", MaxAge: 600, HttpOnly: true, SameSite: http.SameSiteLaxMode,
		Secure: strings.HasPrefix(p.cfg.OAuth.RedirectURL, "https:"),
	})
	to := url.URL{Scheme: "https", Host: "slack.com", Path: "/oauth/v2/authorize"}
	to.RawQuery = url.Values{
		"client_id": {p.cfg.OAuth.ClientID}, "scope": {strings.Join(Scopes(p.cfg.Policy), ",")},
		"redirect_uri": {p.cfg.OAuth.RedirectURL}, "state": {state},
	}.Encode()
	http.Redirect(w, r, to.String(), http.StatusFound)
}

// ServeOAuth takes the browser back from Slack, exchanges the code for a token, and stores the
// token.
func (p *App) ServeOAuth(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	if q.Get("error") != "" {
		http.Error(w, "the installation was not allowed in Slack", http.StatusForbidden)
		return
	}
	var known bool
	cookie, err := r.Cookie(stateCookie)
	if err == nil && cookie.Value == q.Get("state") {
		_, err = p.cfg.Store.Take(r.Context(), record.Install, "state/"+q.Get("state"), p.cfg.Now(), &known)
	}
	if err != nil || !known {
		http.Error(w, "this installation did not begin here, or took longer than ten minutes: open /slack/install again", http.StatusBadRequest)
		return
	}
	if err := p.install(r.Context(), q.Get("code")); err != nil {
		p.cfg.Log.Error("slack: install", "err", err)
		http.Error(w, "Slack did not give a token: open /slack/install again", http.StatusBadGateway)
		return
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	fmt.Fprintln(w, "megatron-ops is installed. Type /megatron help in Slack.")
}

func (p *App) install(ctx context.Context, code string) error {
	o := p.cfg.OAuth
	var opts []slack.OAuthOption
	if p.cfg.APIURL != "" {
		opts = append(opts, slack.OAuthOptionAPIURL(strings.TrimSuffix(p.cfg.APIURL, "/")+"/"))
	}
	res, err := slack.GetOAuthV2ResponseContext(ctx, &http.Client{Timeout: 20 * time.Second}, o.ClientID, o.ClientSecret, code, o.RedirectURL, opts...)
	if err != nil {
		return err
	}
	if res.Team.ID == "" || res.AccessToken == "" {
		return lang.Text{EN: "no workspace in Slack's answer", ZH: "Slack 的返回中没有工作区"}.Err()
	}
	sealed, err := seal(o.Key, res.AccessToken, res.Team.ID)
	if err != nil {
		return err
	}
	p.clients.Delete(res.Team.ID)
	return p.cfg.Store.Put(ctx, record.Install, "team/"+res.Team.ID,
		install{Team: res.Team.ID, Name: res.Team.Name, Scopes: res.Scope, Token: sealed, At: p.cfg.Now()}, time.Time{})
}

// teams returns the workspaces that have installed the app.
func (p *App) teams(ctx context.Context) (ids []string, err error) {
	keys, err := p.cfg.Store.Keys(ctx, record.Install, p.cfg.Now())
	for _, k := range keys {
		if team, ok := strings.CutPrefix(k, "team/"); ok {
			ids = append(ids, team)
		}
	}
	return ids, err
}

// installed returns the token of a workspace that has installed the app.
func (p *App) installed(ctx context.Context, team string) (string, error) {
	if p.cfg.OAuth == nil {
		return "", outbox.Permanent(lang.Text{EN: "no bot token", ZH: "没有机器人令牌"}.Err())
	}
	if team == "" {
		// Requests of the operator, such as the doctor's, name no workspace where there is only
		// one.
		if all, err := p.teams(ctx); err == nil && len(all) == 1 {
			team = all[0]
		}
	}
	var i install
	ok, err := p.cfg.Store.Get(ctx, record.Install, "team/"+team, p.cfg.Now(), &i)
	if err != nil {
		return "", err
	}
	if !ok {
		return "", outbox.Permanent(lang.Text{EN: "workspace %q has not installed the app", ZH: "工作区 %q 尚未安装本应用"}.Err(team))
	}
	token, err := unseal(p.cfg.OAuth.Key, i.Token, team)
	if err != nil {
		return "", outbox.Permanent(lang.Text{
			EN: "the token of workspace %q cannot be read with this key: install the app again",
			ZH: "用当前密钥无法读取工作区 %q 的令牌：请重新安装本应用",
		}.Err(team))
	}
	return token, nil
}

// Uninstalled removes a workspace whose token Slack has revoked. Slack sends the events of a
// removal in no order, also after the workspace has installed the app again, so a token that is
// valid stays.
func (p *App) Uninstalled(ctx context.Context, team string) {
	p.clients.Delete(team)
	if api, err := p.Client(ctx, team); err == nil {
		ask, cancel := context.WithTimeout(ctx, 10*time.Second)
		defer cancel()
		_, err := api.AuthTestContext(ask)
		if _, refused := errors.AsType[slack.SlackErrorResponse](err); !refused { // valid, or Slack does not answer
			p.cfg.Log.Info("slack: a token was revoked, and the workspace may have another one", "team", team, "err", err)
			return
		}
		p.clients.Delete(team)
	}
	if err := p.cfg.Store.Delete(ctx, record.Install, "team/"+team); err != nil {
		p.cfg.Log.Warn("slack: uninstall", "err", err)
	}
}

// seal encrypts a token for one workspace. It cannot be decrypted for another one.
func seal(key []byte, token, team string) ([]byte, error) {
	g, err := gcm(key)
	if err != nil {
		return nil, err
	}
	nonce := make([]byte, g.NonceSize())
	_, _ = rand.Read(nonce) // rand.Read never fails
	return g.Seal(nonce, nonce, []byte(token), []byte(team)), nil
}

func unseal(key, sealed []byte, team string) (string, error) {
	g, err := gcm(key)
	if err != nil {
		return "", err
	}
	if len(sealed) < g.NonceSize() {
		return "", lang.Text{EN: "too short", ZH: "长度不足"}.Err()
	}
	token, err := g.Open(nil, sealed[:g.NonceSize()], sealed[g.NonceSize():], []byte(team))
	return string(token), err
}

func gcm(key []byte) (cipher.AEAD, error) {
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, lang.Text{EN: "the key for Slack's tokens: %s", ZH: "Slack 令牌的密钥：%s"}.Err(err)
	}
	return cipher.NewGCM(block)
}

// ParseKey reads OAuth.Key from base64.
func ParseKey(s string) ([]byte, error) {
	key, err := base64.StdEncoding.DecodeString(strings.TrimSpace(s))
	if err != nil || len(key) != 32 {
		return nil, lang.Text{
			EN: "the key for Slack's tokens must be 32 bytes in base64: openssl rand -base64 32",
			ZH: "Slack 令牌的密钥须为 base64 编码的 32 字节：openssl rand -base64 32",
		}.Err()
	}
	return key, nil
}
