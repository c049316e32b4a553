package answer

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/slack-go/slack"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/view"
)

// maxContent is the greatest size of a file in bytes.
const maxContent = 1 << 20

// cutFile cuts a file's text to maxContent bytes. With newest it keeps the end, otherwise the
// beginning. It cuts between lines where the line at the cut is shorter than half of the file.
func cutFile(text string, newest bool) string {
	if len(text) <= maxContent {
		return text
	}
	if newest {
		text = text[len(text)-maxContent:]
		if i := strings.IndexByte(text, '\n'); i >= 0 && i < maxContent/2 {
			return "…\n" + text[i+1:]
		}
		return "…" + strings.ToValidUTF8(text, "")
	}
	text = text[:maxContent]
	if i := strings.LastIndexByte(text, '\n'); i >= maxContent/2 {
		return text[:i+1] + "…\n"
	}
	return strings.ToValidUTF8(text, "") + "…\n"
}

// table draws a table. Where it exceeds Slack's limits, the whole table also goes into a file.
func table(s view.Section, n int) (ps []piece, files []File) {
	t := slack.NewTableBlock("")
	size, dropped := 0, len(s.Table.Header) > maxColumns
	row := func(cells []string) bool {
		var out []slack.TableCell
		more := 0
		for i, c := range cells {
			if i == maxColumns {
				break
			}
			c = Cut(OneLine(c), 500)
			c = cmp.Or(c, "–") // Slack refuses an empty cell
			more += utf8.RuneCountInString(c)
			out = append(out, slack.NewTableRawTextCell(inert(c)))
		}
		if size+more > maxCells || len(t.Rows) == maxRows {
			return false
		}
		size += more
		t.AddRow(out...)
		return true
	}
	if len(s.Table.Header) > 0 {
		row(s.Table.Header)
	}
	for _, r := range s.Table.Rows {
		if !row(r) {
			dropped = true
			break
		}
	}
	ps = append(ps, piece{Block: t, size: size, table: true})
	if dropped {
		files = append(files, File{Name: fmt.Sprintf("table-%d.txt", n+1), Title: OneLine(s.Heading), Content: plainTable(*s.Table)})
	}
	return ps, files
}

// code draws verbatim text. Of text that is too long it shows the newest lines of a log or the
// first lines of anything else, and names the file that holds the whole.
func code(s view.Section, n int, l lang.Lang, limits CodeLimits) (ps []piece, files []File) {
	text := Clean(strings.TrimRight(s.Code, "\n"))
	limit := limits.Code
	if s.Fold {
		limit = limits.Folded
	}
	shown := text
	if utf8.RuneCountInString(text) > limit {
		lines := strings.Split(text, "\n")
		newest := s.Lang == "log"
		kept := linesThatFit(lines, limit-100, newest)
		shown = strings.Join(kept, "\n")
		f := File{Name: fileName(s, n), Title: OneLine(s.Heading), Content: text + "\n", newest: newest}
		files = append(files, f)
		note, where := textFirstLines, textAll
		if newest {
			note = textLastLines
		}
		switch cut := len(f.Content) > maxContent; {
		case cut && newest:
			where = textEnd
		case cut:
			where = textBeginning
		}
		defer func() {
			c := ContextLine(fmt.Sprintf(note.In(l), len(kept), len(lines), where.With(f.Name).In(l)))
			ps = append(ps, piece{Block: c, size: 100})
		}()
	}
	if strings.TrimSpace(shown) != "" {
		el := slack.NewRichTextSectionTextElement(inert(strings.TrimRight(shown, "\n")), nil)
		ps = append(ps, rich(&slack.RichTextPreformatted{Type: slack.RTEPreformatted, Elements: []slack.RichTextSectionElement{el}}))
	}
	return ps, files
}

var (
	textFirstLines = lang.Text{EN: "%d of %d lines; %s", ZH: "显示 %d / %d 行；%s"}
	textLastLines  = lang.Text{EN: "the newest %d of %d lines; %s", ZH: "最新的 %d 行，共 %d 行；%s"}

	textAll       = lang.Text{EN: "all of them are in %s", ZH: "全文见 %s"}
	textBeginning = lang.Text{EN: "%s holds the first 1 MiB of them", ZH: "前 1 MiB 见 %s"}
	textEnd       = lang.Text{EN: "%s holds the newest 1 MiB of them", ZH: "最新的 1 MiB 见 %s"}
)

// linesThatFit returns the first lines that fit into limit characters, or with newest the last
// ones. Each line is cut to 300 characters.
func linesThatFit(lines []string, limit int, newest bool) []string {
	from := slices.All(lines)
	if newest {
		from = slices.Backward(lines)
	}
	var kept []string
	for _, line := range from {
		line = Cut(line, 300)
		if limit -= utf8.RuneCountInString(line) + 1; limit < 0 {
			break
		}
		kept = append(kept, line)
	}
	if newest {
		slices.Reverse(kept)
	}
	return kept
}

// fileName names the file of a code section by the section's language.
func fileName(s view.Section, n int) string {
	switch s.Lang {
	case "bash":
		return fmt.Sprintf("script-%d.sh", n+1)
	case "yaml":
		return fmt.Sprintf("job-%d.yaml", n+1)
	case "log":
		return fmt.Sprintf("output-%d.log", n+1)
	}
	return fmt.Sprintf("text-%d.txt", n+1)
}
