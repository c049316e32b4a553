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

// A format is how one service accepts a message.
type format struct {
	// body returns the JSON to post.
	body func(m Message, l lang.Lang) any
	// sign adds the proof of the sender, if a secret is set.
	sign func(secret string, p delivery)
	// refused returns the reason if a service answered with a status of success but
	// refused the message, else "".
	refused func(answer []byte) string
}

// A delivery is a message on its way to a service.
type delivery struct {
	key  string // the message's own key, the same in each attempt
	at   time.Time
	to   *url.URL
	head http.Header
	body map[string]any
	raw  func() []byte // encodes body
}

// formats are the services that accept a POST, by kind. Each follows the service's own
// documentation.
var formats = map[string]format{
	// Standard Webhooks: github.com/standard-webhooks/standard-webhooks
	"webhook": {body: func(m Message, _ lang.Lang) any { return m }, sign: signStandard},
	// open.feishu.cn/document/client-docs/bot-v3/add-custom-bot; Lark alike
	"feishu": {body: feishu, sign: signFeishu, refused: refusedBy("code", "msg")},
	// open.dingtalk.com/document/robots/custom-robot-access
	"dingtalk": {body: func(m Message, l lang.Lang) any {
		text := "### " + markdown(m.Headline.In(l)) + "\n\n" + markdown(m.Text.In(l))
		for _, f := range m.Facts {
			text += "\n- " + markdown(f.Name.In(l)+": "+f.Value)
		}
		if m.Link != "" {
			text += "\n\n[" + openLabel.In(l) + "](" + m.Link + ")"
		}
		return map[string]any{"msgtype": "markdown", "markdown": map[string]any{"title": m.Headline.In(l), "text": text}}
	}, sign: signDingTalk, refused: refusedBy("errcode", "errmsg")},
	// developer.work.weixin.qq.com/document/path/91770
	"wecom": {body: func(m Message, l lang.Lang) any {
		return map[string]any{"msgtype": "text", "text": map[string]any{"content": truncate(plainText(m, l), 2048)}}
	}, refused: refusedBy("errcode", "errmsg")},
	// learn.microsoft.com: post an adaptive card to a Teams workflow's webhook
	"teams": {body: teams},
	// discord.com/developers/docs/resources/webhook
	"discord": {body: discord},
	// developers.mattermost.com/integrate/webhooks/incoming
	"mattermost": {body: mattermost},
}

var openLabel = lang.Text{EN: "Open", ZH: "打开"}

func signStandard(secret string, p delivery) {
	stamp := strconv.FormatInt(p.at.Unix(), 10)
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
	if err != nil {
		key = []byte(secret)
	}
	p.head.Set("webhook-id", p.key)
	p.head.Set("webhook-timestamp", stamp)
	p.head.Set("webhook-signature", "v1,"+hmacBase64(key, p.key+"."+stamp+"."+string(p.raw())))
}

func signFeishu(secret string, p delivery) {
	stamp := strconv.FormatInt(p.at.Unix(), 10)
	p.body["timestamp"], p.body["sign"] = stamp, hmacBase64([]byte(stamp+"\n"+secret), "")
}

func signDingTalk(secret string, p delivery) {
	stamp := strconv.FormatInt(p.at.UnixMilli(), 10)
	q := p.to.Query()
	q.Set("timestamp", stamp)
	q.Set("sign", hmacBase64([]byte(secret), stamp+"\n"+secret))
	p.to.RawQuery = q.Encode()
}

// hmacBase64 is the HMAC-SHA256 of text in base64.
func hmacBase64(key []byte, text string) string {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(text))
	return base64.StdEncoding.EncodeToString(mac.Sum(nil))
}

// refusedBy reads an answer whose field code is 0 if the service accepted the message.
func refusedBy(field, why string) func([]byte) string {
	return func(answer []byte) string {
		var said map[string]any
		if json.Unmarshal(answer, &said) != nil {
			return "" // the status alone decides
		}
		if n, ok := said[field].(float64); ok && n != 0 {
			text, _ := said[why].(string)
			return field + " " + strconv.Itoa(int(n)) + " " + text
		}
		return ""
	}
}

// plainText renders a message without markup.
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

// truncate shortens s to at most maxBytes bytes.
func truncate(s string, most int) string {
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most-3], "") + "…"
}

// markdown escapes text so that Markdown shows it unchanged and nobody is mentioned.
func markdown(s string) string {
	var b strings.Builder
	for _, r := range s {
		switch {
		case r == '@':
			r = '＠' // text from a log must not mention anybody
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
			map[string]any{"tag": "button", "type": "primary", "text": plain(openLabel.In(l)), "url": m.Link},
		}})
	}
	return map[string]any{"msg_type": "interactive", "card": map[string]any{
		"header": map[string]any{"title": plain(m.Headline.In(l)), "template": color}, "elements": elements,
	}}
}

func teams(m Message, l lang.Lang) any {
	run := func(text string, more map[string]any) map[string]any { // a TextRun has no markup
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
		card["actions"] = []any{map[string]any{"type": "Action.OpenUrl", "title": openLabel.In(l), "url": m.Link}}
	}
	return map[string]any{"type": "message", "attachments": []any{
		map[string]any{"contentType": "application/vnd.microsoft.card.adaptive", "contentUrl": nil, "content": card},
	}}
}

func discord(m Message, l lang.Lang) any {
	color := map[view.Tone]int{view.Good: 0x2da44e, view.Warn: 0xbf8700, view.Bad: 0xcf222e}[m.Tone]
	embed := map[string]any{"title": truncate(markdown(m.Headline.In(l)), 256), "color": color, "timestamp": m.At.UTC().Format(time.RFC3339)}
	if text := m.Text.In(l); text != "" {
		embed["description"] = truncate(markdown(text), 4096)
	}
	if m.Link != "" {
		embed["url"] = m.Link
	}
	fields := []any{}
	for _, f := range m.Facts {
		fields = append(fields, map[string]any{"name": f.Name.In(l), "value": truncate(markdown(f.Value), 1024), "inline": true})
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
