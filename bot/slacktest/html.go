package slacktest

import (
	"encoding/json"
	"fmt"
	"html"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// HTML draws blocks or a view roughly as Slack does, so that a person can look at them without
// a workspace.
func HTML(raw []byte) (string, error) {
	var v any
	if err := json.Unmarshal(raw, &v); err != nil {
		return "", err
	}
	var b strings.Builder
	switch v := v.(type) {
	case []any:
		b.WriteString(`<div class="message"><div class="icon"></div><div class="body"><b>megatron</b> <span class="app">APP</span>`)
		drawBlocks(&b, v)
		b.WriteString(`</div></div>`)
	case m:
		kind := str(v["type"])
		fmt.Fprintf(&b, `<div class="%s">`, html.EscapeString(kind))
		if kind == "modal" {
			fmt.Fprintf(&b, `<div class="title">%s<span>×</span></div>`, textOf(v["title"]))
		}
		list, _ := v["blocks"].([]any)
		drawBlocks(&b, list)
		if kind == "modal" {
			b.WriteString(`<div class="foot">`)
			for _, k := range []string{"close", "submit"} {
				if v[k] != nil {
					fmt.Fprintf(&b, `<span class="button %s">%s</span>`, map[string]string{"submit": "primary"}[k], textOf(v[k]))
				}
			}
			b.WriteString(`</div>`)
		}
		b.WriteString(`</div>`)
	}
	return b.String(), nil
}

// textOf returns a text object as HTML.
func textOf(x any) string {
	t, _ := x.(m)
	text := str(t["text"])
	if t["type"] == "mrkdwn" {
		return markup(text)
	}
	return strings.ReplaceAll(html.EscapeString(text), "\n", "<br>")
}

var (
	dateMarkup   = regexp.MustCompile(`<!date\^(\d+)\^([^|>]*)\|[^>]*>`)
	personMarkup = regexp.MustCompile(`<@([A-Z0-9]+)>`)
	boldMarkup   = regexp.MustCompile(`\*([^*\n]+)\*`)
	codeMarkup   = regexp.MustCompile("`([^`\n]+)`")
)

// markup turns mrkdwn into HTML. Characters that Slack wants escaped are escaped in s already.
func markup(s string) string {
	s = dateMarkup.ReplaceAllStringFunc(s, func(found string) string {
		part := dateMarkup.FindStringSubmatch(found)
		at, _ := strconv.ParseInt(part[1], 10, 64)
		t := time.Unix(at, 0).UTC()
		return strings.NewReplacer("{date_short_pretty}", t.Format("Jan 2"), "{time}", t.Format("15:04"), "{ago}", "3 seconds ago").Replace(part[2])
	})
	s = personMarkup.ReplaceAllString(s, `<span class="user">@$1</span>`)
	s = boldMarkup.ReplaceAllString(s, `<b>$1</b>`)
	s = codeMarkup.ReplaceAllString(s, `<code>$1</code>`)
	return strings.ReplaceAll(s, "\n", "<br>")
}

func drawBlocks(b *strings.Builder, list []any) {
	for _, x := range list {
		blk, _ := x.(m)
		drawBlock(b, blk)
	}
}

func drawBlock(b *strings.Builder, blk m) {
	es, _ := blk["elements"].([]any)
	switch blk["type"] {
	case "header":
		fmt.Fprintf(b, `<div class="header">%s</div>`, textOf(blk["text"]))
	case "divider":
		b.WriteString(`<hr>`)
	case "section":
		b.WriteString(`<div class="section"><div>` + textOf(blk["text"]))
		if fields, ok := blk["fields"].([]any); ok {
			b.WriteString(`<div class="fields">`)
			for _, f := range fields {
				b.WriteString(`<div>` + textOf(f) + `</div>`)
			}
			b.WriteString(`</div>`)
		}
		b.WriteString(`</div>`)
		if a, ok := blk["accessory"].(m); ok {
			drawElement(b, a)
		}
		b.WriteString(`</div>`)
	case "context":
		b.WriteString(`<div class="context">`)
		for _, e := range es {
			b.WriteString(textOf(e) + " ")
		}
		b.WriteString(`</div>`)
	case "actions", "context_actions":
		b.WriteString(`<div class="actions">`)
		for _, e := range es {
			x, _ := e.(m)
			drawElement(b, x)
		}
		b.WriteString(`</div>`)
	case "input":
		fmt.Fprintf(b, `<div class="input"><label>%s</label>`, textOf(blk["label"]))
		if blk["optional"] == true {
			b.WriteString(` <span class="hint">(optional)</span>`)
		}
		e, _ := blk["element"].(m)
		drawElement(b, e)
		fmt.Fprintf(b, `<div class="hint">%s</div></div>`, textOf(blk["hint"]))
	case "rich_text":
		for _, e := range es {
			x, _ := e.(m)
			drawRich(b, x)
		}
	case "container":
		open := " open"
		if blk["default_collapsed"] == true {
			open = ""
		}
		list, _ := blk["child_blocks"].([]any)
		fmt.Fprintf(b, `<details class="container"%s><summary>%s</summary>`, open, textOf(blk["title"]))
		drawBlocks(b, list)
		b.WriteString(`</details>`)
	case "data_visualization":
		drawChart(b, blk)
	case "image":
		fmt.Fprintf(b, `<div class="context">🖼 %s</div>`, html.EscapeString(str(blk["alt_text"])))
	case "alert":
		fmt.Fprintf(b, `<div class="alert %s">%s</div>`, html.EscapeString(str(blk["level"])), textOf(blk["text"]))
	case "table":
		b.WriteString(`<table>`)
		rows, _ := blk["rows"].([]any)
		for i, r := range rows {
			b.WriteString(`<tr>`)
			cells, _ := r.([]any)
			for _, c := range cells {
				tag := "td"
				if i == 0 {
					tag = "th"
				}
				fmt.Fprintf(b, "<%s>%s</%s>", tag, textOf(c), tag)
			}
			b.WriteString(`</tr>`)
		}
		b.WriteString(`</table>`)
	default:
		fmt.Fprintf(b, `<div class="context">[%s]</div>`, html.EscapeString(str(blk["type"])))
	}
}

func drawElement(b *strings.Builder, e m) {
	switch e["type"] {
	case "button":
		fmt.Fprintf(b, `<span class="button %s">%s</span>`, html.EscapeString(str(e["style"])), textOf(e["text"]))
	case "overflow":
		options, _ := e["options"].([]any)
		var labels []string
		for _, o := range options {
			option, _ := o.(m)
			labels = append(labels, textOf(option["text"]))
		}
		fmt.Fprintf(b, `<span class="button" title="%s">⋯</span>`, strings.Join(labels, ", "))
	case "static_select", "multi_static_select":
		shown := "▾"
		if p, ok := e["placeholder"].(m); ok {
			shown = textOf(p) + " ▾"
		}
		if o, ok := e["initial_option"].(m); ok {
			shown = textOf(o["text"]) + " ▾"
		}
		fmt.Fprintf(b, `<span class="select">%s</span>`, shown)
	case "plain_text_input":
		class := "line"
		if e["multiline"] == true {
			class = "line tall"
		}
		fmt.Fprintf(b, `<div class="%s">%s</div>`, class, html.EscapeString(str(e["initial_value"])))
	case "feedback_buttons":
		b.WriteString(`<span class="thumb">👍</span><span class="thumb">👎</span>`)
	}
}

func drawRich(b *strings.Builder, x m) {
	es, _ := x["elements"].([]any)
	switch x["type"] {
	case "rich_text_preformatted":
		b.WriteString(`<pre>`)
		drawSpans(b, es)
		b.WriteString(`</pre>`)
	case "rich_text_list":
		b.WriteString(`<ul>`)
		for _, it := range es {
			y, _ := it.(m)
			list, _ := y["elements"].([]any)
			b.WriteString(`<li>`)
			drawSpans(b, list)
			b.WriteString(`</li>`)
		}
		b.WriteString(`</ul>`)
	default:
		b.WriteString(`<div class="rich">`)
		drawSpans(b, es)
		b.WriteString(`</div>`)
	}
}

func drawSpans(b *strings.Builder, es []any) {
	for _, e := range es {
		x, _ := e.(m)
		style, _ := x["style"].(m)
		text := html.EscapeString(str(x["text"]))
		switch x["type"] {
		case "link":
			text = `<a>` + text + `</a>`
		case "user":
			text = `<span class="user">@` + html.EscapeString(str(x["user_id"])) + `</span>`
		}
		if style["bold"] == true {
			text = "<b>" + text + "</b>"
		}
		if style["code"] == true {
			text = "<code>" + text + "</code>"
		}
		b.WriteString(text)
	}
}
