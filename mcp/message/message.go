// Package message reads the protocol's JSON messages without decoding them, in one pass
// over the text.
package message

import (
	"bytes"
	"encoding/json"
	"slices"
)

// A Member is the position of one name and value within a JSON object's text.
type Member struct {
	Name       []byte // as it is written, without the quotes
	Start, End int    // offsets of the value
}

// Members calls each for the members of the object that begins at text[at], until each
// returns false. It reports whether it reached the object's end. The text need not be
// valid JSON: Members does not check what it skips.
func Members(text []byte, at int, each func(Member) bool) bool {
	at = skipBlank(text, at)
	if at >= len(text) || text[at] != '{' {
		return false
	}
	for at = skipBlank(text, at+1); at < len(text) && text[at] == '"'; at = skipBlank(text, at+1) {
		end := skipString(text, at)
		colon := skipBlank(text, end)
		if colon >= len(text) || text[colon] != ':' {
			return false
		}
		m := Member{Name: text[at+1 : end-1], Start: skipBlank(text, colon+1)}
		m.End = skipValue(text, m.Start)
		if m.End == m.Start || !each(m) {
			return false
		}
		if at = skipBlank(text, m.End); at >= len(text) || text[at] != ',' {
			break
		}
	}
	return at < len(text) && text[at] == '}'
}

func skipBlank(text []byte, at int) int {
	for at < len(text) && (text[at] == ' ' || text[at] == '\t' || text[at] == '\r' || text[at] == '\n') {
		at++
	}
	return at
}

func skipString(text []byte, at int) int {
	for i := at + 1; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(text)
}

func skipValue(text []byte, at int) int {
	depth := 0
	for i := at; i < len(text); i++ {
		switch text[i] {
		case '"':
			if i = skipString(text, i) - 1; depth == 0 {
				return i + 1
			}
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth < 0 {
				return i
			}
			if depth == 0 {
				return i + 1
			}
		case ',', ' ', '\t', '\r', '\n':
			if depth == 0 {
				return i
			}
		}
	}
	return len(text)
}

// IDOf returns the id of an answer, or "" if text is not an answer. It does not read
// the result: the library writes the id first.
func IDOf(text []byte) (id string) {
	Members(text, 0, func(m Member) bool {
		switch string(m.Name) {
		case "id":
			id = string(text[m.Start:m.End])
		case "method":
			id = ""
			return false
		case "result", "error":
			return false
		}
		return true
	})
	return id
}

// TakeArguments takes the arguments out of a tool call's message. The library reads a
// message from end to end six times before the tool's handler runs, for its id,
// version, method and so on, and decodes the arguments into a map that nobody needs;
// only the operation needs the arguments, and it reads them once. A message that is not
// clearly a tool call with one object of arguments is returned unchanged.
func TakeArguments(message []byte) (rest, arguments []byte) {
	var params Member
	call := false
	whole := uniqueMembers(message, 0, func(m Member) {
		switch string(m.Name) {
		case "method":
			call = string(message[m.Start:m.End]) == `"tools/call"`
		case "params":
			params = m
		}
	})
	if !whole || !call || params.End == 0 {
		return message, nil
	}
	var found Member
	whole = uniqueMembers(message, params.Start, func(m Member) {
		if string(m.Name) == "arguments" {
			found = m
		}
	})
	if !whole || found.End == 0 || message[found.Start] != '{' {
		return message, nil
	}
	arguments = message[found.Start:found.End:found.End]
	if !json.Valid(arguments) {
		return message, nil // the library reports the error
	}
	return slices.Concat(message[:found.Start], []byte("{}"), message[found.End:]), arguments
}

// uniqueMembers is like Members but stops, and returns false, if a name occurs twice or
// could be a second spelling of another to a decoder that ignores case and resolves
// escapes.
func uniqueMembers(text []byte, at int, each func(Member)) bool {
	var seen [8][]byte // more than any message has
	n := 0
	return Members(text, at, func(m Member) bool {
		same := func(s []byte) bool { return bytes.EqualFold(s, m.Name) }
		odd := bytes.ContainsFunc(m.Name, func(r rune) bool { return r == '\\' || r >= 0x80 })
		if n == len(seen) || odd || slices.ContainsFunc(seen[:n], same) {
			return false
		}
		seen[n] = m.Name
		n++
		each(m)
		return true
	})
}

// TooDeep reports whether a JSON text nests deeper than 64 levels, which no message of
// the protocol does.
func TooDeep(text []byte) bool {
	const most = 64
	depth, quoted := 0, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			if depth++; depth > most {
				return true
			}
		case c == '}' || c == ']':
			depth--
		}
	}
	return false
}
