package slacktest

import (
	"fmt"
	"html"
	"slices"
	"strings"
)

// A Look is how a page is drawn: with dark colours, or as narrow as on a phone.
type Look struct{ Dark, Phone bool }

// Page returns an HTML page that contains drawn views.
func Page(title string, look Look, views ...string) string {
	var class []string
	if look.Dark {
		class = append(class, "dark")
	}
	if look.Phone {
		class = append(class, "phone")
	}
	return `<!doctype html><meta charset="utf-8"><title>` + html.EscapeString(title) + `</title><style>` + css +
		`</style><body class="` + strings.Join(class, " ") + `">` + strings.Join(views, "\n")
}

// A chartLine is one line of a chart: its points as SVG has them, and its range.
type chartLine struct {
	Points    string
	High, Low float64
}

// lineOf returns the line of a series, or nil where it has too few points.
func lineOf(points []any) *chartLine {
	var values []float64
	for _, p := range points {
		point, _ := p.(m)
		v, _ := point["value"].(float64)
		values = append(values, v)
	}
	if len(values) < 2 {
		return nil
	}
	low, high := slices.Min(values), slices.Max(values)
	var path []string
	for i, v := range values {
		y := 75.0
		if high > low {
			y = 130 - (v-low)/(high-low)*110
		}
		path = append(path, fmt.Sprintf("%.1f,%.1f", 50+float64(i)/float64(len(values)-1)*540, y))
	}
	return &chartLine{strings.Join(path, " "), high, low}
}

// endsOf returns the first and the last of several categories.
func endsOf(categories []any) []any {
	if len(categories) < 2 {
		return nil
	}
	return []any{categories[0], categories[len(categories)-1]}
}

const css = `:root{--fg:#1d1c1d;--bg:#fff;--soft:#616061;--line:#ddd;--code:#f8f8f8;--link:#1264a3;--tag:#e8f5fa}
.dark{--fg:#d1d2d3;--bg:#1a1d21;--soft:#ababad;--line:#393b3f;--code:#222529;--link:#1d9bd1;--tag:#1b3546}
body{overflow-wrap:anywhere;font:15px/1.46 "Lato","Noto Sans CJK SC","Noto Sans",sans-serif;color:var(--fg);background:var(--bg);margin:16px;width:680px}
body.phone{width:358px}
.message{display:flex;gap:10px;margin-bottom:18px}.icon{width:36px;height:36px;border-radius:6px;background:#2f6f4f;flex:none}.body{flex:1;min-width:0}
.app{background:var(--line);border-radius:3px;font-size:11px;padding:0 4px;color:var(--soft)}
.header{font-size:18px;font-weight:900;margin:8px 0 4px}.context,.hint{font-size:13px;color:var(--soft);margin:4px 0}
.rich{white-space:pre-wrap;margin:4px 0}ul{margin:4px 0;padding-left:24px}li{white-space:pre-wrap}
pre{background:var(--code);border:1px solid var(--line);border-radius:4px;padding:8px;font:12px/1.5 monospace;white-space:pre-wrap;overflow-wrap:anywhere;margin:4px 0}
code{background:var(--code);border:1px solid var(--line);border-radius:3px;color:#c01343;font:12px monospace;padding:1px 3px}.dark code{color:#e8912d}
.actions{margin:8px 0}
.button,.select{display:inline-block;border:1px solid var(--soft);border-radius:4px;padding:4px 12px;font-weight:700;margin:0 8px 6px 0;font-size:14px}
.menu{font-size:11px;color:var(--soft)}
.primary{background:#007a5a;color:#fff;border-color:#007a5a}.danger{color:#e01e5a;border-color:#e01e5a}.user{background:var(--tag);color:var(--link);border-radius:3px}
a{color:var(--link)}hr{border:0;border-top:1px solid var(--line);margin:14px 0}
table{border-collapse:collapse;margin:6px 0;font-size:13px}td,th{border:1px solid var(--line);padding:4px 8px;text-align:left}
.modal,.home{border:1px solid var(--line);border-radius:8px;padding:16px;margin-bottom:18px}
.title{font-size:20px;font-weight:900;display:flex;justify-content:space-between;margin-bottom:12px}
.input{margin:0 0 14px}.input label{font-weight:700}.input .select{margin-top:4px;display:block;width:200px}
.line{border:1px solid var(--soft);border-radius:4px;min-height:22px;padding:6px 10px;margin-top:4px;white-space:pre-wrap;overflow-wrap:anywhere}.tall{min-height:66px}
.foot{text-align:right;border-top:1px solid var(--line);padding-top:12px}
.section{display:flex;justify-content:space-between;align-items:center;gap:12px;margin:6px 0}.section>div:first-child{flex:1}.thumb{margin-right:10px;opacity:.7}
.fields{display:grid;grid-template-columns:1fr 1fr;gap:8px 16px}.phone .fields{grid-template-columns:1fr}
.chart{border:1px solid var(--line);border-radius:8px;padding:8px 12px;margin:6px 0}polyline{fill:none;stroke:#36c5f0;stroke-width:2.5}svg text{fill:var(--soft);font-size:12px}
.alert{border-left:4px solid #ecb22e;background:var(--code);padding:8px 12px;margin:6px 0}
.container{border:1px solid var(--line);border-radius:8px;padding:6px 12px;margin:6px 0}summary{font-weight:700;cursor:pointer}`
