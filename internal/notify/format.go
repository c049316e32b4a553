package notify

import (
	"cmp"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"maps"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/view"
)

// A format is how one service takes a message.
type format struct {
	// body is the JSON that is posted.
	body func(m Message, l lang.Lang) any
	// sign adds what proves the sender, where a secret is set.
	sign func(secret string, p posted)
	// refused says what a service answered with a status of success and meant as a
	// refusal; empty: it took the message.
	refused func(answer []byte) string
}

// posted is a message on its way to a service.
type posted struct {
	key  string // the message's own, the same in each attempt
	at   time.Time
	to   *url.URL
	head http.Header
	body map[string]any
	raw  func() []byte // body as it is sent
}

// formats are the services that take a POST, by their kinds. Each is as its own
// documentation has it.
var formats = map[string]format{
	// Standard Webhooks: github.com/standard-webhooks/standard-webhooks
	"webhook": {body: func(m Message, _ lang.Lang) any { return m }, sign: signStandard},
	// open.feishu.cn/document/client-docs/bot-v3/add-custom-bot; Lark alike
	"feishu": {body: feishu, sign: signFeishu, refused: code("code", "msg")},
	// open.dingtalk.com/document/robots/custom-robot-access
	"dingtalk": {body: func(m Message, l lang.Lang) any {
		text := "### " + markdown(m.Headline.In(l)) + "\n\n" + markdown(m.Text.In(l))
		for _, f := range m.Facts {
			text += "\n- " + markdown(f.Name.In(l)+": "+f.Value)
		}
		if m.Link != "" {
			text += "\n\n[" + open.In(l) + "](" + m.Link + ")"
		}
		return map[string]any{"msgtype": "markdown", "markdown": map[string]any{"title": m.Headline.In(l), "text": text}}
	}, sign: signDingTalk, refused: code("errcode", "errmsg")},
	// developer.work.weixin.qq.com/document/path/91770
	"wecom": {body: func(m Message, l lang.Lang) any {
		return map[string]any{"msgtype": "text", "text": map[string]any{"content": bounded(plainText(m, l), 2048)}}
	}, refused: code("errcode", "errmsg")},
	// learn.microsoft.com: post an adaptive card to a Teams workflow's webhook
	"teams": {body: teams},
	// discord.com/developers/docs/resources/webhook
	"discord": {body: discord},
	// developers.mattermost.com/integrate/webhooks/incoming
	"mattermost": {body: mattermost},
}

var open = lang.Text{EN: "Open", ZH: "打开"}

func signStandard(secret string, p posted) {
	stamp := strconv.FormatInt(p.at.Unix(), 10)
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
	if err != nil {
		key = []byte(secret)
	}
	p.head.Set("webhook-id", p.key)
	p.head.Set("webhook-timestamp", stamp)
	p.head.Set("webhook-signature", "v1,"+hash(key, p.key+"."+stamp+"."+string(p.raw())))
}

func signFeishu(secret string, p posted) {
	stamp := strconv.FormatInt(p.at.Unix(), 10)
	p.body["timestamp"], p.body["sign"] = stamp, hash([]byte(stamp+"\n"+secret), "")
}

func signDingTalk(secret string, p posted) {
	stamp := strconv.FormatInt(p.at.UnixMilli(), 10)
	q := p.to.Query()
	q.Set("timestamp", stamp)
	q.Set("sign", hash([]byte(secret), stamp+"\n"+secret))
	p.to.RawQuery = q.Encode()
}

// hash is the HMAC-SHA256 of text in base64.
func hash(key []byte, text string) string {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(text))
	return base64.StdEncoding.EncodeToString(mac.Sum(nil))
}

// code reads an answer whose field is 0 where the message was taken.
func code(field, why string) func([]byte) string {
	return func(answer []byte) string {
		var said map[string]any
		if json.Unmarshal(answer, &said) != nil {
			return "" // the status alone tells
		}
		if n, ok := said[field].(float64); ok && n != 0 {
			text, _ := said[why].(string)
			return field + " " + strconv.Itoa(int(n)) + " " + text
		}
		return ""
	}
}

// plainText is a message where nothing is marked up.
func plainText(m Message, l lang.Lang) string {
	lines := []string{m.Headline.In(l)}
	if text := m.Text.In(l); text != "" {
		lines = append(lines, text)
	}
	for _, f := range m.Facts {
		lines = append(lines, f.Name.In(l)+": "+f.Value)
	}
	if m.Link != "" {
		lines = append(lines, m.Link)
	}
	return strings.Join(lines, "\n")
}

// bounded is the beginning of s, so many bytes at most.
func bounded(s string, most int) string {
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most-3], "") + "…"
}

// markdown is text that Markdown shows as it is, and that calls nobody.
func markdown(s string) string {
	var b strings.Builder
	for _, r := range s {
		switch {
		case r == '@':
			r = '＠' // nobody is called by what a log says
		case r == '\n':
			b.WriteString("  ")
		case strings.ContainsRune("\\`*_{}[]()#+-.!|<>~:", r):
			b.WriteByte('\\')
		}
		b.WriteRune(r)
	}
	return b.String()
}

func feishu(m Message, l lang.Lang) any {
	color := cmp.Or(map[view.Tone]string{view.Good: "green", view.Warn: "orange", view.Bad: "red"}[m.Tone], "blue")
	plain := func(text string) map[string]any { return map[string]any{"tag": "plain_text", "content": text} }
	elements := []any{}
	if text := m.Text.In(l); text != "" {
		elements = append(elements, map[string]any{"tag": "div", "text": plain(text)})
	}
	var fields []any
	for _, f := range m.Facts {
		fields = append(fields, map[string]any{"is_short": true, "text": plain(f.Name.In(l) + ": " + f.Value)})
	}
	if fields != nil {
		elements = append(elements, map[string]any{"tag": "div", "fields": fields})
	}
	if m.Link != "" {
		elements = append(elements, map[string]any{"tag": "action", "actions": []any{
			map[string]any{"tag": "button", "type": "primary", "text": plain(open.In(l)), "url": m.Link},
		}})
	}
	return map[string]any{"msg_type": "interactive", "card": map[string]any{
		"header": map[string]any{"title": plain(m.Headline.In(l)), "template": color}, "elements": elements,
	}}
}

func teams(m Message, l lang.Lang) any {
	run := func(text string, more map[string]any) map[string]any { // a run of text has no markup
		inline := map[string]any{"type": "TextRun", "text": text}
		maps.Copy(inline, more)
		return map[string]any{"type": "RichTextBlock", "inlines": []any{inline}}
	}
	color := cmp.Or(map[view.Tone]string{view.Good: "Good", view.Warn: "Warning", view.Bad: "Attention"}[m.Tone], "Default")
	body := []any{run(m.Headline.In(l), map[string]any{"weight": "Bolder", "size": "Medium", "color": color})}
	if text := m.Text.In(l); text != "" {
		body = append(body, run(text, nil))
	}
	for _, f := range m.Facts {
		body = append(body, run(f.Name.In(l)+": "+f.Value, map[string]any{"isSubtle": true}))
	}
	card := map[string]any{"$schema": "http://adaptivecards.io/schemas/adaptive-card.json", "type": "AdaptiveCard", "version": "1.4", "body": body}
	if m.Link != "" {
		card["actions"] = []any{map[string]any{"type": "Action.OpenUrl", "title": open.In(l), "url": m.Link}}
	}
	return map[string]any{"type": "message", "attachments": []any{
		map[string]any{"contentType": "application/vnd.microsoft.card.adaptive", "contentUrl": nil, "content": card},
	}}
}

func discord(m Message, l lang.Lang) any {
	color := map[view.Tone]int{view.Good: 0x2da44e, view.Warn: 0xbf8700, view.Bad: 0xcf222e}[m.Tone]
	embed := map[string]any{"title": bounded(markdown(m.Headline.In(l)), 256), "color": color, "timestamp": m.At.UTC().Format(time.RFC3339)}
	if text := m.Text.In(l); text != "" {
		embed["description"] = bounded(markdown(text), 4096)
	}
	if m.Link != "" {
		embed["url"] = m.Link
	}
	fields := []any{}
	for _, f := range m.Facts {
		fields = append(fields, map[string]any{"name": f.Name.In(l), "value": bounded(markdown(f.Value), 1024), "inline": true})
	}
	embed["fields"] = fields
	return map[string]any{"embeds": []any{embed}, "allowed_mentions": map[string]any{"parse": []string{}}}
}

func mattermost(m Message, l lang.Lang) any {
	color := map[view.Tone]string{view.Good: "#2da44e", view.Warn: "#bf8700", view.Bad: "#cf222e"}[m.Tone]
	fields := []any{}
	for _, f := range m.Facts {
		fields = append(fields, map[string]any{"short": true, "title": f.Name.In(l), "value": markdown(f.Value)})
	}
	return map[string]any{"attachments": []any{map[string]any{
		"fallback": m.Headline.In(l), "color": color, "title": markdown(m.Headline.In(l)), "title_link": m.Link, "text": markdown(m.Text.In(l)), "fields": fields,
	}}}
}
