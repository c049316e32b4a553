package slacktest

import (
	"encoding/json"
	"fmt"
	"html"
	"strings"
)

// HTML draws blocks, or a view, roughly as Slack does, so that a person can look
// at them without a workspace.
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

// textOf is a text object's text.
func textOf(x any) string {
	t, _ := x.(m)
	return strings.ReplaceAll(html.EscapeString(str(t["text"])), "\n", "<br>")
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
		b.WriteString(`<div class="section"><div>` + textOf(blk["text"]) + `</div>`)
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
	case "static_select":
		shown := "▾"
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

// Page is a whole HTML page around drawn views.
func Page(title string, views ...string) string {
	return `<!doctype html><meta charset="utf-8"><title>` + html.EscapeString(title) + `</title><style>` + css + `</style>` + strings.Join(views, "\n")
}

const css = `body{font:15px/1.46 "Lato","Noto Sans CJK SC","Noto Sans",sans-serif;color:#1d1c1d;margin:16px;width:680px;background:#fff}
.message{display:flex;gap:10px;margin-bottom:18px}.icon{width:36px;height:36px;border-radius:6px;background:#1d2b1f;flex:none}.body{flex:1;min-width:0}
.app{background:#e8e8e8;border-radius:3px;font-size:11px;padding:0 4px;color:#616061}
.header{font-size:18px;font-weight:900;margin:8px 0 4px}.context,.hint{font-size:13px;color:#616061;margin:4px 0}
.rich{white-space:pre-wrap;margin:4px 0}ul{margin:4px 0;padding-left:24px}li{white-space:pre-wrap}
pre{background:#f8f8f8;border:1px solid #ddd;border-radius:4px;padding:8px;font:12px/1.5 monospace;white-space:pre-wrap;margin:4px 0}
code{background:#f8f8f8;border:1px solid #ddd;border-radius:3px;color:#c01343;font:12px monospace;padding:1px 3px}
.actions{margin:8px 0}.button,.select{display:inline-block;border:1px solid #bbb;border-radius:4px;padding:4px 12px;font-weight:700;margin:0 8px 6px 0;font-size:14px}
.primary{background:#007a5a;color:#fff;border-color:#007a5a}.danger{color:#e01e5a;border-color:#e01e5a}.user{background:#e8f5fa;color:#1264a3;border-radius:3px}
a{color:#1264a3}hr{border:0;border-top:1px solid #ddd;margin:14px 0}table{border-collapse:collapse;margin:6px 0;font-size:13px}td,th{border:1px solid #ddd;padding:4px 8px;text-align:left}
.modal,.home{border:1px solid #ccc;border-radius:8px;padding:16px;margin-bottom:18px}.title{font-size:20px;font-weight:900;display:flex;justify-content:space-between;margin-bottom:12px}
.input{margin:0 0 14px}.input label{font-weight:700}.line{border:1px solid #868686;border-radius:4px;min-height:22px;padding:6px 10px;margin-top:4px;white-space:pre-wrap}.tall{min-height:66px}
.foot{text-align:right;border-top:1px solid #ddd;padding-top:12px}.section{display:flex;justify-content:space-between;align-items:center;margin:6px 0}.thumb{margin-right:10px;opacity:.7}
.container{border:1px solid #ddd;border-radius:8px;padding:6px 12px;margin:6px 0}summary{font-weight:700;cursor:pointer}
.input .select{margin-top:4px;display:block;width:200px}`
