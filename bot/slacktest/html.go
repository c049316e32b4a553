package slacktest

import (
	_ "embed"
	"encoding/json"
	"html"
	"html/template"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// blocksHTML has a template for each type of block, element and rich text.
//
//go:embed blocks.html
var blocksHTML string

// HTML draws blocks or a view roughly as Slack does, so that a person can look at them without
// a workspace.
func HTML(raw []byte) (string, error) {
	var v any
	if err := json.Unmarshal(raw, &v); err != nil {
		return "", err
	}
	var drawn *template.Template
	draw := func(x any, other string) (template.HTML, error) { // by the template of its type, or else by other
		one, _ := x.(m)
		t := drawn.Lookup(str(one["type"]))
		if t == nil {
			t = drawn.Lookup(other)
		}
		var b strings.Builder
		err := t.Execute(&b, one)
		return template.HTML(b.String()), err //nolint:gosec // a template has escaped it
	}
	functions := template.FuncMap{"draw": draw, "text": textOf, "line": lineOf, "ends": endsOf}
	drawn = template.Must(template.New("").Funcs(functions).Parse(blocksHTML))
	name := "view"
	if _, ok := v.([]any); ok {
		name = "message"
	}
	var b strings.Builder
	err := drawn.ExecuteTemplate(&b, name, v)
	return b.String(), err
}

// textOf returns a text object as HTML.
func textOf(x any) template.HTML {
	t, _ := x.(m)
	text := str(t["text"])
	if t["type"] == "mrkdwn" {
		return template.HTML(markup(text)) //nolint:gosec // Slack wants its text escaped
	}
	return template.HTML(strings.ReplaceAll(html.EscapeString(text), "\n", "<br>")) //nolint:gosec // escaped here
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
