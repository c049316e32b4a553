package notify

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/wneessen/go-mail"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/secretfile"
)

// A Target is one place that gets messages.
type Target struct {
	// Kind is the service.
	Kind string `json:"kind" enum:"webhook,mail,feishu,dingtalk,wecom,teams,discord,mattermost"`
	// URL is the service's incoming webhook, which is a secret by itself; URLFile is a
	// file with mode 600 that holds it. For mail: smtp://user@host:587.
	URL     string `json:"url,omitempty"`
	URLFile string `json:"url_file,omitempty"`
	// SecretFile holds the secret that signs a message (webhook, feishu, dingtalk), or
	// mail's password.
	SecretFile string `json:"secret_file,omitempty"`
	// Events are start, end, fail, alarm and ask; without events: fail and alarm.
	Events []string `json:"events,omitempty" enum:"start,end,fail,alarm,ask"`
	// Users are the cluster users whose jobs are reported; empty: everybody's.
	Users []string `json:"users,omitempty"`
	// Lang is en or zh.
	Lang string `json:"lang,omitempty" enum:"en,zh"`
	// From and To are mail's addresses.
	From string   `json:"from,omitempty"`
	To   []string `json:"to,omitempty"`
}

// Check refuses a target whose address could not be reached.
func (t Target) Check(field string) error {
	bad := func(name string, message, fix lang.Text) error { return ops.InputError(field+"."+name, message, fix) }
	address, err := t.address()
	if err != nil {
		return bad("url", lang.Said(err), lang.Text{EN: "url, or url_file: a file with mode 600", ZH: "填写 url，或 url_file（权限 600 的文件）"})
	}
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || t.Kind == "mail" && u.Scheme != "smtp" && u.Scheme != "smtps" || t.Kind != "mail" && u.Scheme != "https" && u.Scheme != "http" {
		return bad("url", lang.Text{EN: "it is not an address of the service", ZH: "不是该服务的地址"}, lang.Text{EN: "https://…; for mail smtp://user@host:587", ZH: "https://…；邮件为 smtp://user@host:587"})
	}
	if t.Kind == "mail" && (t.From == "" || len(t.To) == 0) {
		return bad("to", lang.Text{EN: "mail needs from and to", ZH: "邮件需要 from 与 to"}, lang.Text{EN: "from: ops@example.org, to: [team@example.org]", ZH: "例如 from: ops@example.org, to: [team@example.org]"})
	}
	return nil
}

func (t Target) address() (string, error) {
	if t.URL != "" {
		return t.URL, nil
	}
	return secretOf(t.URLFile)
}

// secretOf returns the content of a secret file, or "" if file is empty.
func secretOf(file string) (string, error) {
	if file == "" {
		return "", nil
	}
	return secretfile.Read(file)
}

func (t Target) wants(m Message) bool {
	events := t.Events
	if len(events) == 0 {
		events = []string{Fail, Alarm}
	}
	return (len(t.Users) == 0 || slices.Contains(t.Users, m.User)) &&
		slices.ContainsFunc(m.Events, func(e string) bool { return slices.Contains(events, e) })
}

func (t Target) lang() lang.Lang {
	l, _ := lang.Parse(t.Lang)
	return l
}

// errRejected is the error of a message that no retry helps.
var errRejected = lang.Text{EN: "the service will never accept it", ZH: "该服务不会接受此消息"}.Err()

// A retryAfterError says when a service may be tried again.
type retryAfterError struct{ after time.Duration }

func (e *retryAfterError) Error() string { return fmt.Sprintf("asked to wait %s", e.after) }

func (n *Notifier) send(ctx context.Context, t Target, m Message) error {
	address, err := t.address()
	if err != nil {
		return err
	}
	secret, err := secretOf(t.SecretFile)
	if err != nil {
		return err
	}
	to, err := url.Parse(address)
	if err != nil {
		return errRejected // the error's text would contain the address, which is secret
	}
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	if t.Kind == "mail" {
		return sendMail(ctx, t, to, secret, m)
	}
	f := formats[t.Kind]
	body := f.body(m, t.lang())
	h := http.Header{"Content-Type": {"application/json"}, "User-Agent": {"megatron-ops"}}
	marshal := func() []byte {
		b, err := json.Marshal(body)
		if err != nil {
			return nil
		}
		return b
	}
	if secret != "" && f.sign != nil {
		fields, _ := body.(map[string]any)
		f.sign(secret, delivery{key: m.Key, at: n.Now(), to: to, head: h, body: fields, raw: marshal})
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, to.String(), bytes.NewReader(marshal()))
	if err != nil {
		return errRejected
	}
	req.Header = h
	res, err := cmp.Or(n.Client, http.DefaultClient).Do(req)
	if err != nil {
		if wrapped := new(url.Error); errors.As(err, &wrapped) {
			err = wrapped.Err // the inner error does not contain the address
		}
		return err
	}
	defer res.Body.Close()
	answer, _ := io.ReadAll(io.LimitReader(res.Body, 64<<10))
	switch {
	case res.StatusCode == http.StatusTooManyRequests:
		wait, err := time.ParseDuration(res.Header.Get("Retry-After") + "s")
		if err != nil {
			wait = 30 * time.Second
		}
		return &retryAfterError{min(wait, maxRetryDelay)}
	case res.StatusCode >= 500:
		return lang.Text{EN: "status %d", ZH: "状态码 %d"}.Err(res.StatusCode)
	case res.StatusCode >= 300:
		n.Log.Error("notify: refused", "target", t.Kind, "message", m.Key, "status", res.StatusCode, "answer", truncate(string(answer), 200))
		return errRejected
	}
	if f.refused != nil {
		if why := f.refused(answer); why != "" {
			return lang.Text{EN: "refused: %s", ZH: "被拒绝：%s"}.Err(why)
		}
	}
	return nil
}

func sendMail(ctx context.Context, t Target, to *url.URL, password string, m Message) error {
	l := t.lang()
	letter := mail.NewMsg()
	if err := letter.From(t.From); err != nil {
		return err
	}
	if err := letter.To(t.To...); err != nil {
		return err
	}
	letter.Subject(strings.Join(strings.Fields(m.Headline.In(l)), " "))
	letter.SetGenHeader("X-Megatron-Ops-Key", m.Key)
	letter.SetBodyString(mail.TypeTextPlain, plainText(m, l)+"\n")
	options := []mail.Option{mail.WithTimeout(20 * time.Second), mail.WithTLSPolicy(mail.TLSOpportunistic)}
	if to.Scheme == "smtps" {
		options = append(options, mail.WithSSL())
	}
	if port := to.Port(); port != "" {
		p, err := strconv.Atoi(port)
		if err != nil {
			return err
		}
		options = append(options, mail.WithPort(p))
	}
	if user := to.User.Username(); user != "" {
		options = append(options, mail.WithSMTPAuth(mail.SMTPAuthAutoDiscover), mail.WithUsername(user), mail.WithPassword(password),
			mail.WithTLSPolicy(mail.TLSMandatory))
	}
	c, err := mail.NewClient(to.Hostname(), options...)
	if err != nil {
		return err
	}
	return c.DialAndSendWithContext(ctx, letter)
}
