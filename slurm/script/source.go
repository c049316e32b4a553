package script

import (
	"errors"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// A text is shell source with the line of the file that each of its bytes
// comes from. A here-document or the argument of `bash -c` is a text too, so
// that a finding deep inside names a line that the reader can see.
type text struct {
	src  string
	line []int32 // of each byte; one entry more than src
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

// at is the line of the byte at offset.
func (t text) at(offset uint) int {
	if len(t.line) == 0 {
		return 1
	}
	return int(t.line[min(int(offset), len(t.line)-1)])
}

// slice is the source between two positions of its syntax tree.
func (t text) slice(from, to syntax.Pos) string {
	a, b := int(from.Offset()), int(to.Offset())
	if a > b || b > len(t.src) {
		return ""
	}
	return t.src[a:b]
}

// byteAt is the byte at offset, or 0.
func (t text) byteAt(offset uint) byte {
	if offset < uint(len(t.src)) {
		return t.src[offset]
	}
	return 0
}

func (t text) lines() []textLine {
	var out []textLine
	for start := 0; start < len(t.src); {
		end := strings.IndexByte(t.src[start:], '\n')
		if end < 0 {
			end = len(t.src)
		} else {
			end += start
		}
		out = append(out, textLine{t.src[start:end], t.at(uint(start)), start})
		start = end + 1
	}
	return out
}

type textLine struct {
	text  string
	line  int
	start int // offset of its first byte
}

// A SyntaxError is a place where bash refuses the script.
type SyntaxError struct {
	Line    int
	Message string
}

// parse reads t as bash. Where bash would refuse it, it is mended as little as
// needed to read the rest, and the first refusal is reported. The text that
// comes back is the one that the positions of the syntax tree count in.
func parse(t text) (*syntax.File, text, *SyntaxError) {
	var first *SyntaxError
	for range 64 {
		p := syntax.NewParser(syntax.Variant(syntax.LangBash), syntax.KeepComments(true))
		file, err := p.Parse(strings.NewReader(t.src), "")
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
		next := mend(t.src, pos, msg)
		if next == t.src {
			break
		}
		t.src = next
	}
	return &syntax.File{}, t, first
}

// Bytes that stand for [ and $ where bash takes them for text and the parser
// does not.
const (
	plainBracket = '\x01'
	plainDollar  = '\x02'
)

// tolerate changes what the parser refuses and bash reads: a word such as
// [0]*3+[1] in an array, and an expansion that is only refused when it runs.
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

// endComments blanks the backslash at the end of a comment. Bash ends the
// comment, and with it the command, at the newline all the same; the parser
// would go on with the command of the line before.
func endComments(file *syntax.File, src string) string {
	if !strings.Contains(src, "\\\n") {
		return src
	}
	var quoted [][2]uint
	out := []byte(src)
	for start := 0; start < len(src); {
		end := strings.IndexByte(src[start:], '\n')
		if end < 0 {
			break
		}
		end += start
		line := src[start:end]
		if strings.HasSuffix(line, "\\") && strings.Contains(line, "#") {
			if quoted == nil {
				quoted = hereDocuments(file)
			}
			if commentAt(line, uint(start), quoted) {
				out[end-1] = ' '
			}
		}
		start = end + 1
	}
	return string(out)
}

// commentAt reports whether the line at offset start has a comment: a # at the
// start of a word, outside of all quotes.
func commentAt(line string, start uint, quoted [][2]uint) bool {
	for i := range len(line) {
		if line[i] != '#' || i > 0 && !strings.ContainsRune(" \t;&|()", rune(line[i-1])) {
			continue
		}
		at := start + uint(i)
		if !slices.ContainsFunc(quoted, func(q [2]uint) bool { return at >= q[0] && at < q[1] }) {
			return true
		}
	}
	return false
}

func errorAt(err error) (syntax.Pos, string) {
	var pe syntax.ParseError
	if errors.As(err, &pe) {
		return pe.Pos, pe.Text
	}
	var le syntax.LangError
	if errors.As(err, &le) {
		return le.Pos, le.Feature + " is not bash"
	}
	return syntax.Pos{}, err.Error()
}

// openEnded are the messages of the parser for what the end of the file left
// open; what would close it is the last word of each in backquotes.
var openEnded = []string{"without closing quote", "without matching", "must end with", "unclosed here-document"}

// mend closes what is open at the end of src, or blanks the line that cannot
// be read; it never moves what comes before.
func mend(src string, pos syntax.Pos, msg string) string {
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
	if strings.TrimSpace(src[start:end]) == "" {
		return src
	}
	return src[:start] + strings.Repeat(" ", end-start) + src[end:]
}
