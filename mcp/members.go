package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"

	sdk "github.com/mark3labs/mcp-go/mcp"
)

// A member is one name and value of a JSON object: parts of a text.
type member struct {
	name       []byte // as it is written, without its quotes
	start, end int    // of the value
}

// members calls each for the members of the object that begins at text[at],
// until each returns false. It reports whether it came to the object's end. The
// text need not be valid: what is skipped is not judged.
func members(text []byte, at int, each func(member) bool) bool {
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
		m := member{name: text[at+1 : end-1], start: skipBlank(text, colon+1)}
		m.end = skipValue(text, m.start)
		if m.end == m.start || !each(m) {
			return false
		}
		if at = skipBlank(text, m.end); at >= len(text) || text[at] != ',' {
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

// skipString returns where the string that begins at text[at] ends.
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

// skipValue returns where the value that begins at text[at] ends.
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

// idOf is the id of an answer, or "" where text is none. The library writes it
// in front of the result, which is then not read.
func idOf(text []byte) (id string) {
	members(text, 0, func(m member) bool {
		switch string(m.name) {
		case "id":
			id = string(text[m.start:m.end])
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

type argumentsKey struct{}

// aside takes a tool call's arguments out of its message. The library reads a
// message from end to end six times before the tool's handler runs, for its id,
// its version, its method and so on, and makes a map of the arguments besides;
// only the operation wants them, and reads them once. Whatever is
// not plainly a call of a tool with one object of arguments stays as it is.
func aside(message []byte) (rest, arguments []byte) {
	var params member
	call := false
	whole := once(message, 0, func(m member) {
		switch string(m.name) {
		case "method":
			call = string(message[m.start:m.end]) == `"tools/call"`
		case "params":
			params = m
		}
	})
	if !whole || !call || params.end == 0 {
		return message, nil
	}
	var found member
	whole = once(message, params.start, func(m member) {
		if string(m.name) == "arguments" {
			found = m
		}
	})
	if !whole || found.end == 0 || message[found.start] != '{' {
		return message, nil
	}
	arguments = message[found.start:found.end:found.end]
	if !json.Valid(arguments) {
		return message, nil // the library says so
	}
	return slices.Concat(message[:found.start], []byte("{}"), message[found.end:]), arguments
}

// once is members of an object in which no name stands twice, in the eyes of a
// reader that takes "Params" for "params" and knows escapes.
func once(text []byte, at int, each func(member)) bool {
	var seen [8][]byte // more than any message has
	n := 0
	return members(text, at, func(m member) bool {
		same := func(s []byte) bool { return bytes.EqualFold(s, m.name) }
		odd := bytes.ContainsFunc(m.name, func(r rune) bool { return r == '\\' || r >= 0x80 })
		if n == len(seen) || odd || slices.ContainsFunc(seen[:n], same) {
			return false
		}
		seen[n] = m.name
		n++
		each(m)
		return true
	})
}

// withAside is the context of a call whose arguments were taken out of it.
func withAside(ctx context.Context, arguments []byte) context.Context {
	return context.WithValue(ctx, argumentsKey{}, arguments)
}

// argumentsIn are a call's arguments, where ctx has them or as the library read them.
func argumentsIn(ctx context.Context, req sdk.CallToolRequest) ([]byte, error) {
	if raw, ok := ctx.Value(argumentsKey{}).([]byte); ok {
		return raw, nil
	}
	if len(req.Params.RawArguments) > 0 || req.Params.Arguments == nil {
		return req.Params.RawArguments, nil
	}
	return json.Marshal(req.Params.Arguments)
}
