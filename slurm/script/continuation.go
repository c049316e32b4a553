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
	Text string // the first separated word, or the backslash with the blanks after it
}

// load parses t and joins commands whose line continuation is broken, so that they are
// read as their author intended.
func (r *reader) load(t text) (*syntax.File, text) {
	file, t, bad := parse(t)
	if bad != nil {
		r.job.Refusals = append(r.job.Refusals, *bad)
	}
	for range 8 {
		b, from, to := broken(file, t)
		if b.Line == 0 {
			break
		}
		r.job.Breaks = append(r.job.Breaks, b)
		// Comments, backslashes and line ends between the parts become blanks.
		joined := t.src[:from] + strings.Repeat(" ", to-from) + t.src[to:]
		if joined == t.src {
			break
		}
		next, mended, again := parse(text{joined, t.line})
		if again != nil && bad == nil {
			break
		}
		file, t = next, mended
	}
	return file, t
}

// broken finds the first statement that was intended as the rest of the statement
// before it. from and to are the offsets of the text between the two.
func broken(file *syntax.File, t text) (b Break, from, to int) {
	prevEnd := -1
	syntax.Walk(file, func(n syntax.Node) bool {
		if b.Line > 0 {
			return false
		}
		if w, ok := n.(*syntax.Word); ok && commented.MatchString(t.slice(w.Pos(), w.End())) {
			at := int(w.Pos().Offset())
			rest, _, _ := strings.Cut(t.src[at:], "\n")
			b, from, to = Break{Line: t.at(uint(at)), Text: rest}, at, at+len(rest)
			if to < len(t.src) {
				to++
			}
			return false
		}
		st, ok := n.(*syntax.Stmt)
		if !ok {
			return true
		}
		call, ok := st.Cmd.(*syntax.CallExpr)
		if !ok || len(call.Args) == 0 {
			return true
		}
		if at := escapedBlank(call, t); at >= 0 {
			end := at + strings.IndexByte(t.src[at:], '\n') + 1
			b, from, to = Break{Line: t.at(uint(at)), Text: strings.TrimRight(t.src[at:end], "\n")}, at, end
			return false
		}
		start := int(call.Args[0].Pos().Offset())
		if prevEnd > 0 && start > prevEnd && start <= len(t.src) && len(call.Assigns) == 0 {
			word := t.slice(call.Args[0].Pos(), call.Args[0].End())
			between := t.src[prevEnd:start]
			alone := flagWord.MatchString(word) || argumentLike(word) && strings.Contains(between, "\\\n")
			if alone && strings.Contains(between, "\n") && !strings.ContainsAny(between, ";|&(){}") {
				b, from, to = Break{Line: t.at(uint(start)), Text: word}, prevEnd, start
				return false
			}
		}
		prevEnd = max(prevEnd, int(call.End().Offset()))
		return true
	})
	return b, from, to
}

// commented matches a word that a backslash with a blank after it begins, where the author
// intended a comment behind a continued line: bash takes the blank and the # as a word.
var commented = lazy.New(`^\\[ \t]#`)

var flagWord = lazy.New(`^--?[A-Za-z]`)

// argumentLike reports whether a word is more likely an argument than a command.
func argumentLike(w string) bool {
	if strings.HasSuffix(w, ".py") && !strings.HasPrefix(w, "./") && !strings.HasPrefix(w, "/") {
		return true
	}
	return (strings.HasPrefix(w, "$") || strings.HasPrefix(w, `"$`)) && strings.Contains(strings.ToUpper(w), "ARGS")
}

// escapedBlank returns the offset of a backslash at the end of a line that is followed
// by blanks, and so does not continue the line, or -1.
func escapedBlank(call *syntax.CallExpr, t text) int {
	for _, w := range call.Args {
		for _, p := range w.Parts {
			lit, ok := p.(*syntax.Lit)
			if !ok {
				continue
			}
			s := t.slice(lit.ValuePos, lit.ValueEnd)
			end := int(lit.ValueEnd.Offset())
			if !strings.HasSuffix(s, "\\ ") && !strings.HasSuffix(s, "\\\t") {
				continue
			}
			if rest, _, more := strings.Cut(t.src[end:], "\n"); more && strings.Trim(rest, " \t") == "" {
				return end - 2
			}
		}
	}
	return -1
}
