// Package answer draws documents as Block Kit: within Slack's limits, with strangers' text made
// harmless and secrets masked, and with long texts as files beside the message. It knows
// nothing about jobs, people or sending.
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

// Slack's published limits, and one that is not published: Slack refuses a message whose blocks
// hold more than about 13,200 characters (bolt-js issue 2509).
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
	// maxParts is how many messages one answer may take before the rest goes into a file. A
	// response_url may be used five times.
	maxParts = 4
	// Code longer than this goes into a file, because a long text hides the answer.
	inlineCode = 2800
	foldedCode = 2000
)

// A File is a text that is sent as a file with a message.
type File struct {
	Name    string
	Title   string
	Content string
	newest  bool // a content that is too long keeps its end
}

// A Rendered is a document drawn for Slack.
type Rendered struct {
	Text     string          // one escaped line for notifications and screen readers
	Messages [][]slack.Block // at most four
	Files    []File
}

// Blocks returns the blocks of doc's first message, for callers that send one message.
func Blocks(doc view.Doc, l lang.Lang) []slack.Block { return Render(doc, l).Messages[0] }

// Render draws doc within Slack's limits. It splits long documents over several messages. Long
// code, and what does not fit into the last message, goes into files.
func Render(doc view.Doc, l lang.Lang) Rendered { return RenderIn(doc, l, MessageLimits) }

// CodeLimits says how many characters of code are shown before the rest goes into a file: in
// Code for an open section, in Folded for a collapsed one.
type CodeLimits struct{ Code, Folded int }

// The limits of a message in Slack, and of a terminal, which can scroll.
var (
	MessageLimits  = CodeLimits{inlineCode, foldedCode}
	TerminalLimits = CodeLimits{1 << 20, 1 << 20}
)

// RenderIn is Render with other limits for code.
func RenderIn(doc view.Doc, l lang.Lang, limits CodeLimits) Rendered {
	r := Rendered{Text: summary(doc)}
	p := packer{}
	if OneLine(doc.Title) != "" {
		p.add(piece{Block: Header(toneMark[doc.Tone] + strings.ReplaceAll(OneLine(doc.Title), "`", "")), size: maxHeader})
	}
	for i, s := range doc.Sections {
		ps, files := SectionBlocks(s, i, l, limits)
		if x, ok := fold(s, ps, l); ok {
			ps = []piece{x}
		}
		for _, x := range ps {
			p.add(x)
		}
		r.Files = append(r.Files, files...)
	}
	for i, f := range r.Files {
		r.Files[i].Content = cutFile(f.Content, f.newest)
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

// toneMark is the symbol before a title, so that the tone is not shown by colour alone.
var toneMark = map[view.Tone]string{view.Good: "✅ ", view.Warn: "⚠️ ", view.Bad: "❌ "}

// summary returns doc in one escaped line.
func summary(doc view.Doc) string {
	s, colon := OneLine(doc.Title), Colon.In(LanguageOfDoc(doc))
	if strings.HasSuffix(s, ".") || strings.HasSuffix(s, "。") {
		colon = " " // the title is a sentence
	}
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
				if strings.Contains(f.Value, "://") {
					continue // nobody can follow an address there
				}
				s += colon
				if _, err := strconv.Atoi(f.Value); err == nil {
					s += OneLine(f.Name) + " " // a number alone has no meaning
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
	// Slack would turn a bare address into a link here.
	return Escape(strings.ReplaceAll(Cut(s, 300), "://", "[:]//"))
}

// A piece is one block with what it counts against a message's limits.
type piece struct {
	Block slack.Block
	size  int
	table bool
}

// A packer distributes pieces over messages in their order.
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

// SectionBlocks draws one section; n is its index, for the names of files.
func SectionBlocks(s view.Section, n int, l lang.Lang, limits CodeLimits) (ps []piece, files []File) {
	if heading := OneLine(s.Heading); heading != "" {
		ps = append(ps, rich(slack.NewRichTextSection(Bold(capitalized(heading)))))
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
		cp, cf := code(s, n, l, limits)
		ps, files = append(ps, cp...), append(files, cf...)
	}
	return ps, files
}

// capitalized capitalizes words of ours, which the shell prints in lower case and which are a
// heading here. Anything that is not only lower-case words stays, since it may be a name.
func capitalized(words string) string {
	for i, r := range words {
		if i > 0 && !unicode.IsLower(r) && r != ' ' {
			return words
		}
	}
	return lang.Capital(words)
}

// Header returns a header block.
func Header(text string) slack.Block { return slack.NewHeaderBlock(Label(Cut(text, maxHeader))) }

// Label returns a plain_text object, in which Slack parses no markup.
func Label(text string) *slack.TextBlockObject {
	if text = inert(text); text == "" {
		text = "–" // Slack refuses an empty text
	}
	return slack.NewTextBlockObject(slack.PlainTextType, text, false, false)
}

// Markup returns a mrkdwn object. The caller escapes what comes from outside.
func Markup(markup string) *slack.TextBlockObject {
	return slack.NewTextBlockObject(slack.MarkdownType, Cut(markup, MaxText-1000), false, true)
}

// ContextMarkup returns a small grey line of mrkdwn.
func ContextMarkup(markup string) slack.Block { return slack.NewContextBlock("", Markup(markup)) }

// ContextLine returns a small grey line of plain text.
func ContextLine(text string) slack.Block {
	return slack.NewContextBlock("", Label(Cut(inert(Clean(text)), MaxText)))
}

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

// Bold returns bold text for a rich_text block.
func Bold(s string) slack.RichTextSectionElement {
	s = cmp.Or(s, "–")
	return slack.NewRichTextSectionTextElement(inert(s), &slack.RichTextSectionTextStyle{Bold: true})
}

// linkHosts are the hosts that an answer may link to: those of the documents that our texts
// cite. Any other address is shown as text.
var linkHosts = map[string]bool{
	"docs.nvidia.com": true, "github.com": true, "slurm.schedmd.com": true,
	"pytorch.org": true, "docs.pytorch.org": true, "docs.slack.dev": true,
}

var (
	address = lazy.New(`https?://[^\s<>"'` + "`" + `，。；、（）)\]]+`)
	ticks   = lazy.New("`([^`\n]+)`")
)

// Prose turns a paragraph into rich text: words in backticks become code, addresses of the
// hosts in linkHosts become links, and the rest is plain text.
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

// factRows draws names and values, one a line.
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

// bullets is a bullet list without the offset field. slack-go's type always writes an offset,
// which Slack's own types do not have.
type bullets struct {
	Type     slack.RichTextElementType     `json:"type"`
	Style    slack.RichTextListElementType `json:"style"`
	Elements []slack.RichTextElement       `json:"elements"`
}

// RichTextElementType makes bullets a slack.RichTextElement.
func (b *bullets) RichTextElementType() slack.RichTextElementType { return b.Type }

// items draws a bullet list.
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

// BlocksJSON encodes blocks for Slack, with its limits for buttons; it returns nil for no blocks.
func BlocksJSON(bs []slack.Block) json.RawMessage {
	bs = withinLimits(bs)
	if len(bs) == 0 {
		return nil
	}
	raw, err := json.Marshal(slack.Blocks{BlockSet: bs})
	if err != nil {
		panic("bot: blocks are always JSON: " + err.Error())
	}
	return raw
}
