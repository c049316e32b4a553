package script

import (
	"errors"
	"io"
	"runtime"
	"slices"
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/lazy"
	"mvdan.cc/sh/v3/syntax"
)

// A text is shell source, with the line of the file that each byte comes from. A
// here-document or the argument of `bash -c` is a text too, so that a finding in it
// names a line of the file.
type text struct {
	src  string
	line []int32 // line of each byte, and of the end of src
}

func fileText(src string) text {
	t := text{src: src, line: make([]int32, len(src)+1)}
	n := int32(1)
	for i := range len(src) {
		t.line[i] = n
		if src[i] == '\n' {
			n++
		}
	}
	t.line[len(src)] = n
	return t
}

// at returns the line of the byte at offset.
func (t text) at(offset uint) int {
	if len(t.line) == 0 {
		return 1
	}
	return int(t.line[min(int(offset), len(t.line)-1)])
}

// slice returns the source between two positions of the syntax tree.
func (t text) slice(from, to syntax.Pos) string {
	a, b := int(from.Offset()), int(to.Offset())
	if a > b || b > len(t.src) {
		return ""
	}
	return withBlanks(t.src[a:b])
}

// byteAt returns the byte at offset, or 0 after the end.
func (t text) byteAt(offset uint) byte {
	if offset < uint(len(t.src)) {
		return t.src[offset]
	}
	return 0
}

func (t text) lines() []textLine {
	var out []textLine
	start := 0
	for line := range strings.Lines(t.src) {
		out = append(out, textLine{strings.TrimSuffix(line, "\n"), t.at(uint(start)), start})
		start += len(line)
	}
	return out
}

type textLine struct {
	text  string // without the line end
	line  int
	start int // offset of the first byte
}

// A SyntaxError is a place at which bash would reject the script.
type SyntaxError struct {
	Line    int
	Message string
}

// parse parses t as bash. If bash would reject t, parse repairs as little of t as is
// needed to read the rest, and returns the first syntax error. The positions of the
// syntax tree refer to the returned text, which has the repairs.
func parse(t text) (*syntax.File, text, *SyntaxError) {
	var first *SyntaxError
	t.src = oneWord(t.src)
	if last := strings.TrimRight(t.src, `\`); (len(t.src)-len(last))%2 == 1 { // bash drops a backslash at the file's end
		t.src = t.src[:len(t.src)-1] + " "
	}
	for range 64 {
		p := syntax.NewParser(syntax.Variant(syntax.LangBash), syntax.KeepComments(true))
		src := &shallowReader{src: strings.NewReader(t.src)}
		file, err := p.Parse(src, "")
		if src.tooDeep {
			return &syntax.File{}, t, &SyntaxError{Line: t.at(uint(len(t.src) - src.src.Len())), Message: "commands or expressions are nested too deeply"}
		}
		if err == nil {
			plain := endComments(file, t.src)
			if plain == t.src {
				return file, t, first
			}
			t.src = plain
			continue
		}
		pos, msg := errorAt(err)
		if lenient := tolerate(t.src, pos, msg); lenient != t.src {
			t.src = lenient
			continue
		}
		if first == nil {
			first = &SyntaxError{Line: t.at(pos.Offset()), Message: msg}
		}
		next := repair(t.src, pos, msg)
		if next == t.src {
			break
		}
		t.src = next
	}
	return &syntax.File{}, t, first
}

// maxFrames is how deeply the parser may call itself: no script that a person wrote comes
// near it.
const maxFrames = 5000

// A shallowReader passes the source to the parser, which calls itself for each level of
// nesting and has no limit of its own: a megabyte of open parentheses would overflow the
// stack and end the whole program. The reader is called from that depth, and ends the
// source there.
type shallowReader struct {
	src     *strings.Reader
	tooDeep bool
}

func (r *shallowReader) Read(p []byte) (int, error) {
	if r.tooDeep = r.tooDeep || runtime.Callers(maxFrames, make([]uintptr, 1)) > 0; r.tooDeep {
		return 0, io.ErrUnexpectedEOF
	}
	return r.src.Read(p)
}

// These bytes replace [ and $ where bash reads plain text but the parser does not, and the
// blanks in a place of a template.
const (
	plainBracket = '\x01'
	plainDollar  = '\x02'
	plainBlank   = '\x03'
)

// templated matches a place of a template such as {{ nodes }}, which is a word once filled.
var templated = lazy.New(`\{\{ +\w+ *\}\}|\{\{\w+ +\}\}`)

// place matches such a place in one word.
var place = lazy.New(`\{\{ *\w+ *\}\}`)

// oneWord replaces the blanks in the places of a template, at which words end.
func oneWord(src string) string {
	return templated.ReplaceAllStringFunc(src, func(m string) string { return strings.ReplaceAll(m, " ", string(plainBlank)) })
}

// withBlanks undoes oneWord.
func withBlanks(src string) string { return strings.ReplaceAll(src, string(plainBlank), " ") }

// tolerate changes source that bash accepts and the parser rejects: a word such as
// [0]*3+[1] in an array, and an expansion that bash rejects only when it runs.
func tolerate(src string, pos syntax.Pos, msg string) string {
	at := int(pos.Offset())
	switch {
	case at >= len(src):
	case strings.Contains(msg, "must be followed by `=`") && src[at] == '[':
		return src[:at] + string(plainBracket) + src[at+1:]
	case strings.Contains(msg, "parameter expansion"):
		if i := strings.LastIndex(src[:at], "${"); i >= 0 && strings.Contains(src[at:], "}") {
			return src[:i] + string(plainDollar) + src[i+1:]
		}
	}
	return src
}

// endComments replaces a backslash at the end of a comment by a blank. Bash ends the
// comment and the command at the newline in spite of the backslash, but the parser
// would continue the command of the previous line.
func endComments(file *syntax.File, src string) string {
	if !strings.Contains(src, "\\\n") {
		return src
	}
	var quoted [][2]uint
	out := []byte(src)
	start := 0
	for line := range strings.Lines(src) {
		if strings.HasSuffix(line, "\\\n") && strings.Contains(line, "#") {
			if quoted == nil {
				quoted = quotedRanges(file)
			}
			if commentAt(line, uint(start), quoted) {
				out[start+len(line)-2] = ' '
			}
		}
		start += len(line)
	}
	return string(out)
}

// commentAt reports whether the line at offset start has a comment: a # at the start
// of a word, outside the quoted ranges.
func commentAt(line string, start uint, quoted [][2]uint) bool {
	for i := range len(line) {
		if line[i] != '#' || i > 0 && !strings.ContainsRune(" \t;&|()", rune(line[i-1])) || i > 1 && line[i-2] == '\\' {
			continue // an escaped blank, as in my\ #dir, begins no word
		}
		at := start + uint(i)
		if !slices.ContainsFunc(quoted, func(q [2]uint) bool { return at >= q[0] && at < q[1] }) {
			return true
		}
	}
	return false
}

func errorAt(err error) (syntax.Pos, string) {
	if e, ok := errors.AsType[syntax.ParseError](err); ok {
		return e.Pos, e.Text
	}
	if e, ok := errors.AsType[syntax.LangError](err); ok {
		return e.Pos, e.Feature + " is not bash"
	}
	return syntax.Pos{}, err.Error()
}

// openEnded are parts of the parser's messages for a construct that is still open at
// the end of the file. In each message, the last word in backquotes would close the
// construct.
var openEnded = []string{"without closing quote", "without matching", "must end with", "unclosed here-document"}

// repair closes a construct that is open at the end of src, or else replaces the line
// that cannot be parsed by blanks. It never moves the text before the error.
func repair(src string, pos syntax.Pos, msg string) string {
	for _, says := range openEnded {
		if !strings.Contains(msg, says) {
			continue
		}
		_, closer, _ := strings.Cut(msg, says)
		if _, with, ok := strings.Cut(closer, " with "); ok {
			closer = with
		}
		closer = strings.Trim(strings.TrimSpace(closer), "`\"")
		switch closer {
		case "":
			closer = "`"
			if strings.HasSuffix(msg, "`\"`") {
				closer = "\""
			}
			return src + closer
		case "'", ")", "))":
			return src + closer
		case "]]":
			return src + " ]]"
		}
		return strings.TrimSuffix(src, "\n") + "\n" + closer + "\n"
	}
	at := min(int(pos.Offset()), len(src))
	start := strings.LastIndexByte(src[:at], '\n') + 1
	end := len(src)
	if i := strings.IndexByte(src[at:], '\n'); i >= 0 {
		end = at + i
	}
	// A comment behind an escaped blank is what bash cannot read there.
	if from := codeEnd(src[start:end]); from > 0 && src[start+from] == '\\' && start+from < at {
		start += from
	}
	if strings.TrimSpace(src[start:end]) == "" {
		return src
	}
	return src[:start] + strings.Repeat(" ", end-start) + src[end:]
}
