// Package answer draws documents as Block Kit: within Slack's limits, with strangers'
// text inert and secrets masked, and with what is long in files beside the
// message. It knows nothing of jobs, people or sending.
package answer

import (
	"cmp"
	"encoding/json"
	"net/url"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/slack-go/slack"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/lazy"
	"github.com/megatron-ops/megatron-ops/internal/view"
)

// Slack's published limits, and one that it does not publish: a message whose
// blocks hold more than about 13,200 characters is refused (bolt-js issue 2509).
const (
	maxHeader  = 150
	MaxText    = 3000
	MaxBlocks  = 50
	maxButton  = 75
	MaxValue   = 2000
	maxMessage = 12000 // characters over all blocks of a message
	maxRows    = 100   // of a table
	maxColumns = 20
	maxCells   = 9500 // characters over all cells; Slack's own limit is 10,000
	// maxParts is how many messages one answer may become before the rest goes
	// into a file: a response_url may be used five times.
	maxParts = 4
	// Longer code is a file, because a wall of text hides the answer.
	inlineCode = 2800
	foldedCode = 2000
)

// A File is text that goes beside a message.
type File struct {
	Name    string
	Title   string
	Content string
	newest  bool // where it is too long, its end is kept
}

// A Rendered is a document as Slack takes it.
type Rendered struct {
	Text     string          // the notification, and what a screen reader says
	Messages [][]slack.Block // at most four
	Files    []File
}

// Blocks returns the first message of doc, for callers with room for one.
func Blocks(doc view.Doc, l lang.Lang) []slack.Block { return Render(doc, l).Messages[0] }

// Render draws doc within Slack's limits: it splits what is long over several
// messages and moves long code, and what is left after the last message, into
// files.
func Render(doc view.Doc, l lang.Lang) Rendered { return RenderIn(doc, l, MessageRoom) }

// A Room is how many characters of code a message shows before the rest goes
// into a file: all of it, and of what is folded.
type Room struct{ Code, Folded int }

// The rooms of a message in Slack, and of a terminal, which scrolls.
var (
	MessageRoom  = Room{inlineCode, foldedCode}
	TerminalRoom = Room{1 << 20, 1 << 20}
)

// RenderIn is Render in a place with room for more or less code.
func RenderIn(doc view.Doc, l lang.Lang, has Room) Rendered {
	r := Rendered{Text: summary(doc)}
	p := packer{}
	if OneLine(doc.Title) != "" {
		p.add(piece{Block: Header(toneMark[doc.Tone] + strings.ReplaceAll(OneLine(doc.Title), "`", "")), size: maxHeader})
	}
	for i, s := range doc.Sections {
		ps, files := SectionBlocks(s, i, l, has)
		if x, ok := fold(s, ps, l); ok {
			ps = []piece{x}
		}
		for _, x := range ps {
			p.add(x)
		}
		r.Files = append(r.Files, files...)
	}
	for i, f := range r.Files {
		r.Files[i].Content = bounded(f.Content, f.newest)
	}
	if b := NextButtons(doc.Next, l); b != nil {
		p.add(piece{Block: b, size: 500})
	}
	r.Messages = p.messages()
	if len(r.Messages) > maxParts {
		r.Messages = r.Messages[:maxParts]
		last := r.Messages[maxParts-1]
		note := lang.Text{EN: "The rest is in the attached file.", ZH: "其余内容见附件。"}.In(l)
		r.Messages[maxParts-1] = append(last[:min(len(last), MaxBlocks-1)], ContextLine(note))
		r.Files = append(r.Files, File{Name: "answer.txt", Title: OneLine(doc.Title), Content: plain(doc)})
	}
	return r
}

// toneMark is the sign before a title of that tone: colour never stands alone.
var toneMark = map[view.Tone]string{view.Good: "✅ ", view.Warn: "⚠️ ", view.Bad: "❌ "}

// summary is doc in one line, escaped.
func summary(doc view.Doc) string {
	s, colon := OneLine(doc.Title), Colon.In(LanguageOfDoc(doc))
	for _, sec := range doc.Sections {
		if sec.Text != "" {
			s += colon + OneLine(sec.Text)
			break
		}
		if len(sec.Items) > 0 && s == "" {
			s = colon + OneLine(sec.Items[0])
			break
		}
		if len(sec.Facts) > 0 {
			for _, f := range sec.Facts[:min(len(sec.Facts), 2)] {
				s += colon
				if _, err := strconv.Atoi(f.Value); err == nil {
					s += OneLine(f.Name) + " " // a number alone says nothing
				}
				s += OneLine(f.Value)
			}
			break
		}
	}
	s = strings.TrimPrefix(s, colon)
	if s == "" && len(doc.Sections) > 0 {
		s = OneLine(Cut(doc.Sections[0].Code, 200))
	}
	s = cmp.Or(s, "megatron")
	// A bare address would be made a link here.
	return Escape(strings.ReplaceAll(Cut(s, 300), "://", "[:]//"))
}

// A piece is one block with its weight against the limits of a message.
type piece struct {
	Block slack.Block
	size  int
	table bool
}

// A packer fills messages with pieces in order.
type packer struct {
	done   [][]slack.Block
	now    []slack.Block
	size   int
	tables int
}

func (p *packer) add(x piece) {
	full := len(p.now) == MaxBlocks || p.size+x.size > maxMessage || x.table && p.tables == 1
	if full && len(p.now) > 0 {
		p.done = append(p.done, p.now)
		p.now, p.size, p.tables = nil, 0, 0
	}
	p.now = append(p.now, x.Block)
	p.size += x.size
	if x.table {
		p.tables++
	}
}

func (p *packer) messages() [][]slack.Block {
	if len(p.now) > 0 || len(p.done) == 0 {
		return append(p.done, p.now)
	}
	return p.done
}

// SectionBlocks draws one section; n numbers it for the names of files.
func SectionBlocks(s view.Section, n int, l lang.Lang, has Room) (ps []piece, files []File) {
	if heading := OneLine(s.Heading); heading != "" {
		ps = append(ps, rich(slack.NewRichTextSection(Bold(sentence(heading)))))
	}
	for _, part := range Chunks(Clean(strings.TrimSpace(s.Text)), MaxText) {
		ps = append(ps, rich(slack.NewRichTextSection(Prose(part)...)))
	}
	ps = append(ps, factRows(s.Facts)...)
	if s.Table != nil && len(s.Table.Rows) > 0 {
		tp, tf := table(s, n)
		ps, files = append(ps, tp...), append(files, tf...)
	}
	ps = append(ps, items(s.Items)...)
	if s.Code != "" {
		cp, cf := code(s, n, l, has)
		ps, files = append(ps, cp...), append(files, cf...)
	}
	return ps, files
}

// sentence begins words of ours with a capital: what the shell prints small
// reads as a heading here. A name, which may hold anything but spaces, stays.
func sentence(words string) string {
	for i, r := range words {
		if i > 0 && !unicode.IsLower(r) && r != ' ' {
			return words
		}
	}
	return lang.Capital(words)
}

// Header is a header block.
func Header(text string) slack.Block { return slack.NewHeaderBlock(Label(Cut(text, maxHeader))) }

// Label is a plain_text object: Slack reads no markup in it.
func Label(text string) *slack.TextBlockObject {
	if text = inert(text); text == "" {
		text = "–" // an empty text is refused
	}
	return slack.NewTextBlockObject(slack.PlainTextType, text, false, false)
}

// Markup is text that Slack reads as its markup. What comes from outside is
// escaped by whoever makes it.
func Markup(markup string) *slack.TextBlockObject {
	return slack.NewTextBlockObject(slack.MarkdownType, Cut(markup, MaxText-1000), false, true)
}

// ContextMarkup is a small grey line of markup.
func ContextMarkup(markup string) slack.Block { return slack.NewContextBlock("", Markup(markup)) }

// ContextLine is a small grey line.
func ContextLine(text string) slack.Block {
	return slack.NewContextBlock("", Label(Cut(inert(Clean(text)), MaxText)))
}

// rich is a block of rich text.
func rich(e ...slack.RichTextElement) piece {
	size := 0
	for _, x := range e {
		size += richSize(x)
	}
	return piece{Block: slack.NewRichTextBlock("", e...), size: size}
}

func richSize(e slack.RichTextElement) (n int) {
	count := func(list []slack.RichTextSectionElement) {
		for _, x := range list {
			switch x := x.(type) {
			case *slack.RichTextSectionTextElement:
				n += utf8.RuneCountInString(x.Text)
			case *slack.RichTextSectionLinkElement:
				n += utf8.RuneCountInString(x.Text) + utf8.RuneCountInString(x.URL)
			}
		}
	}
	switch e := e.(type) {
	case *slack.RichTextSection:
		count(e.Elements)
	case *slack.RichTextPreformatted:
		count(e.Elements)
	case *bullets:
		for _, x := range e.Elements {
			n += richSize(x)
		}
	}
	return n
}

// Bold is bold text within rich text.
func Bold(s string) slack.RichTextSectionElement {
	s = cmp.Or(s, "–")
	return slack.NewRichTextSectionTextElement(inert(s), &slack.RichTextSectionTextStyle{Bold: true})
}

// linkHosts are the hosts that an answer may link to: the documents that our
// own words cite. Any other address stays text.
var linkHosts = map[string]bool{
	"docs.nvidia.com": true, "github.com": true, "slurm.schedmd.com": true,
	"pytorch.org": true, "docs.pytorch.org": true, "docs.slack.dev": true,
}

var (
	address = lazy.New(`https?://[^\s<>"'` + "`" + `，。；、（）)\]]+`)
	ticks   = lazy.New("`([^`\n]+)`")
)

// Prose turns a paragraph into rich text: `words` become code, addresses of
// known documents become links, and everything else is plain.
func Prose(s string) []slack.RichTextSectionElement {
	var es []slack.RichTextSectionElement
	text := func(t string) {
		for t != "" {
			at := address.FindStringIndex(t)
			if at == nil {
				break
			}
			link := strings.TrimRight(t[at[0]:at[1]], ".,;:")
			u, err := url.Parse(link)
			end := at[0] + len(link)
			if err == nil && u.Scheme == "https" && u.User == nil && linkHosts[u.Host] && len(link) < MaxText {
				if at[0] > 0 {
					es = append(es, slack.NewRichTextSectionTextElement(inert(t[:at[0]]), nil))
				}
				es = append(es, slack.NewRichTextSectionLinkElement(link, link, nil))
			} else {
				es = append(es, slack.NewRichTextSectionTextElement(inert(t[:end]), nil))
			}
			t = t[end:]
		}
		if t != "" {
			es = append(es, slack.NewRichTextSectionTextElement(inert(t), nil))
		}
	}
	for {
		at := ticks.FindStringSubmatchIndex(s)
		if at == nil {
			break
		}
		text(s[:at[0]])
		es = append(es, slack.NewRichTextSectionTextElement(inert(s[at[2]:at[3]]), &slack.RichTextSectionTextStyle{Code: true}))
		s = s[at[1]:]
	}
	text(s)
	if len(es) == 0 {
		es = append(es, slack.NewRichTextSectionTextElement(" ", nil))
	}
	return es
}

// factRows draws names and values as lines.
func factRows(fs []view.Fact) (ps []piece) {
	var es []slack.RichTextSectionElement
	size := 0
	flush := func() {
		if len(es) > 0 {
			ps = append(ps, rich(slack.NewRichTextSection(es...)))
		}
		es, size = nil, 0
	}
	for _, f := range fs {
		name, value := OneLine(f.Name), Cut(Clean(strings.TrimSpace(f.Value)), MaxText-500)
		value = cmp.Or(value, "–")
		n := utf8.RuneCountInString(name) + utf8.RuneCountInString(value) + 4
		if size+n > MaxText {
			flush()
		}
		if len(es) > 0 {
			es = append(es, slack.NewRichTextSectionTextElement("\n", nil))
		}
		es = append(es, Bold(Cut(name, 200)), slack.NewRichTextSectionTextElement("  ", nil))
		es = append(es, Prose(value)...)
		size += n
	}
	flush()
	return ps
}

// bullets is a list as Slack's own types have it: slack-go's always writes an
// offset, which they do not know.
type bullets struct {
	Type     slack.RichTextElementType     `json:"type"`
	Style    slack.RichTextListElementType `json:"style"`
	Elements []slack.RichTextElement       `json:"elements"`
}

// RichTextElementType makes bullets an element of rich text.
func (b *bullets) RichTextElementType() slack.RichTextElementType { return b.Type }

// items draws a list.
func items(list []string) (ps []piece) {
	var es []slack.RichTextElement
	size := 0
	flush := func() {
		if len(es) > 0 {
			ps = append(ps, rich(&bullets{Type: slack.RTEList, Style: slack.RTEListBullet, Elements: es}))
		}
		es, size = nil, 0
	}
	for _, it := range list {
		it = Cut(Clean(strings.TrimSpace(it)), MaxText)
		n := utf8.RuneCountInString(it)
		if size+n > MaxText {
			flush()
		}
		es = append(es, slack.NewRichTextSection(Prose(it)...))
		size += n
	}
	flush()
	return ps
}

// BlocksJSON is blocks as Slack reads them; nil where there are none.
func BlocksJSON(bs []slack.Block) json.RawMessage {
	if len(bs) == 0 {
		return nil
	}
	raw, err := json.Marshal(slack.Blocks{BlockSet: bs})
	if err != nil {
		panic("bot: blocks are always JSON: " + err.Error())
	}
	return raw
}
