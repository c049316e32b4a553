package script

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/megatron-ops/megatron-ops/internal/lazy"
)

// A Break is a place at which a command ends earlier than its author intended. The
// command's remaining flags then form a command of their own.
type Break struct {
	Line int
	Text string // the first separated word, or the backslash with the blanks and the comment after it
	Last bool   // the backslash is on the command's last line, or in a list, whose lines need none
	// Guess is true where only its indentation makes the next line a part of the command: bash runs it by itself.
	Guess bool
}

// Escapes reports whether the break is a backslash that escapes a blank and not the line's end.
func (b Break) Escapes() bool { return strings.HasPrefix(b.Text, `\`) }

// load parses t and joins commands whose line continuation is broken, so that they are
// read as their author intended.
func (r *reader) load(t text) (*syntax.File, text) {
	given := t.src
	file, t, bad := parse(t)
	if bad != nil {
		r.job.Refusals = append(r.job.Refusals, *bad)
	}
	for range 8 {
		gaps := broken(file, t, given)
		if len(gaps) == 0 {
			break
		}
		joined := []byte(t.src)
		for _, g := range gaps {
			r.job.Breaks = append(r.job.Breaks, g.Break)
			// Comments, backslashes and line ends between the parts become blanks.
			copy(joined[g.from:g.to], strings.Repeat(" ", g.to-g.from))
		}
		if string(joined) == t.src {
			break
		}
		next, mended, again := parse(text{string(joined), t.line})
		if again != nil && bad == nil {
			break
		}
		file, t = next, mended
	}
	return file, t
}

// A gap is the text between the parts of a broken command.
type gap struct {
	Break
	from, to int
}

// gaps collects the gaps of a text in the order of the text.
type gaps struct {
	text
	given string // the text before parse repaired it
	found []gap
	// end is where the newest command or gap ends, past where the newest gap ends, begin where
	// the innermost command begins, and list where the newest list in parentheses ends.
	end, past, begin, list int
	values                 map[*syntax.Word]bool // values of assignments: no words of a command
}

// broken finds the places at which a statement was intended to go on.
func broken(file *syntax.File, t text, given string) []gap {
	g := gaps{text: t, given: given, end: -1, values: map[*syntax.Word]bool{}}
	syntax.Walk(file, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.Stmt:
			g.begin = int(n.Pos().Offset())
			if call, ok := n.Cmd.(*syntax.CallExpr); ok && len(call.Args) > 0 {
				g.separated(call)
			}
		case *syntax.ArrayExpr:
			g.list = int(n.End().Offset())
		case *syntax.Assign:
			if n.Name != nil && n.Value != nil {
				g.values[n.Value] = true
			}
		case *syntax.Word:
			if at := g.escapedBlank(n); at >= g.past && !g.values[n] {
				g.escaped(at)
			}
		}
		return true
	})
	return g.found
}

// separated finds out whether call was intended as the rest of the statement before it.
func (g *gaps) separated(call *syntax.CallExpr) {
	start := int(call.Args[0].Pos().Offset())
	if g.end > 0 && start > g.end && start <= len(g.src) && len(call.Assigns) == 0 {
		word := g.slice(call.Args[0].Pos(), call.Args[0].End())
		between := g.src[g.end:start]
		alone := flagWord.MatchString(word) || argumentLike(word) && strings.Contains(between, "\\\n")
		if alone && strings.Contains(between, "\n") && !strings.ContainsAny(comments.ReplaceAllString(between, ""), ";|&(){}") {
			g.found = append(g.found, gap{Break{Line: g.at(uint(start)), Text: word}, g.end, start})
		}
	}
	g.end = max(g.end, int(call.End().Offset()))
}

// escaped adds the gap of a backslash at offset at that escapes a blank, unless a # follows and no
// sign says that the author wanted to continue the line: grep \ # searches for the two. Behind an
// option of one letter the blank is its value, as in tr -d, where bash reads the lines as intended. The
// lines after it have the same fault where they look the same, which a quote in the comment may hide.
func (g *gaps) escaped(at int) {
	listed, begun := at < g.list, strings.Contains(g.src[g.begin:at], "\n")
	for at >= 0 {
		line, rest, _ := strings.Cut(g.given[at:], "\n")
		more, guess := g.goesOn(line, rest)
		more = more && !listed
		if !more && !listed && !begun && strings.Contains(line, "#") {
			return
		}
		if (!more || strings.HasSuffix(line, `\`)) && oneLetter.MatchString(g.src[g.begin:at]) {
			return
		}
		to := at + len(line)
		if more {
			to = min(to+1, len(g.src))
		}
		g.found = append(g.found, gap{Break{g.at(uint(at)), strings.TrimRight(line, `\`), !more, more && guess}, at, to})
		g.end, g.past, begun = max(g.end, to), to, true
		next, _, _ := strings.Cut(rest, "\n")
		behind := codeEnd(next)
		if behind < 0 || next[behind] != '\\' || !more && !listed {
			return
		}
		at += len(line) + 1 + behind
	}
}

// goesOn reports whether the text after a line belongs to the command that begins at g.begin:
// it has a word that no command begins with, or, as a guess, is indented deeper. line is the end of the line.
func (g *gaps) goesOn(line, rest string) (more, guess bool) {
	if strings.HasSuffix(line, `\`) && strings.HasPrefix(line[2:], "#") {
		return true, false // the # begins no comment: bash continues the line
	}
	for next := range strings.Lines(rest) {
		code := strings.TrimLeft(next, " \t")
		if strings.HasPrefix(code, "#") {
			continue
		}
		word, _, _ := strings.Cut(strings.TrimSpace(code), " ")
		if flagWord.MatchString(word) || argumentLike(word) || joiner.MatchString(word) {
			return true, false
		}
		first := g.src[strings.LastIndexByte(g.src[:g.begin], '\n')+1:]
		return word != "" && len(next)-len(code) > len(first)-len(strings.TrimLeft(first, " \t")), true
	}
	return false, false
}

var (
	flagWord  = lazy.New(`^--?[A-Za-z]`)
	oneLetter = lazy.New(`[ \t]-[A-Za-z][ \t]*$`)
	joiner    = lazy.New(`^(\||&&|[\d.]+$)`)
	comments  = lazy.New(`(?m)(^|[ \t])#.*$`)
	// spaced matches a backslash that escapes a blank, at the end of a line or before a comment.
	spaced = lazy.New(`^\\[ \t]+(#.*)?(\n|$)`)
)

// argumentLike reports whether a word is more likely an argument than a command.
func argumentLike(w string) bool {
	if strings.HasSuffix(w, ".py") && !strings.HasPrefix(w, "./") && !strings.HasPrefix(w, "/") {
		return true
	}
	return (strings.HasPrefix(w, "$") || strings.HasPrefix(w, `"$`)) && strings.Contains(strings.ToUpper(w), "ARGS")
}

// escapedBlank returns the offset of a backslash in w that escapes a blank and was intended
// to continue the line, as nothing or only a comment follows it, or -1.
func (g *gaps) escapedBlank(w *syntax.Word) int {
	start, end := int(w.Pos().Offset()), int(w.End().Offset())
	if end > len(g.src) || end-start < 2 {
		return -1
	}
	if spaced.MatchString(g.src[start:]) {
		return start
	}
	// The blank ends another word, as in --a=1\ # note: /my\ #dir is one word.
	if l, ok := w.Parts[len(w.Parts)-1].(*syntax.Lit); ok && l.ValueEnd.Offset()-l.ValuePos.Offset() > 1 && spaced.MatchString(g.src[end-2:]) {
		return end - 2
	}
	return -1
}

// codeEnd returns where a comment begins in a line of a script, or a backslash that escapes a
// blank before it or before the line's end, or -1.
func codeEnd(line string) int {
	quote, word := byte(0), false // word: the byte before belongs to a word
	for i := 0; i < len(line); i++ {
		switch c := line[i]; {
		case quote != 0 && c == quote:
			quote = 0
		case quote == '\'':
		case c == '\\':
			after := strings.TrimLeft(line[i+1:], " \t")
			blanks := len(line) - i - 1 - len(after)
			hash := strings.HasPrefix(after, "#") && (blanks > 1 || blanks == 1 && !word) || strings.HasPrefix(after, "# ")
			if quote == 0 && (hash || after == "" && blanks > 0) {
				return i
			}
			i, word = i+1, true
			continue
		case quote != 0:
		case c == '\'' || c == '"':
			quote = c
		case c == '#' && !word:
			return i
		}
		word = quote != 0 || !strings.ContainsRune(" \t;&|()", rune(line[i]))
	}
	return -1
}

// Uncommented splits a line of a script into its code and the comment after it. A backslash
// that escapes a blank where it was to continue the line is in neither.
func Uncommented(line string) (code, comment string) {
	at := codeEnd(line)
	if at < 0 {
		return line, ""
	}
	return strings.TrimRight(line[:at], " \t"), strings.TrimLeft(line[at:], "\\ \t")
}
