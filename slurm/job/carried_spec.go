package job

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"
)

// A rendered script ends with its specification, as YAML in comments: bash skips
// them, sbatch stops reading options long before, and no value of one line holds
// a line's end, since Encode escapes it. The sum of the text above tells whether
// somebody changed the script since.
const (
	carriedMark   = "# The specification, for megatron-ops import; sha256 of the text above: "
	carriedPrefix = "#| "
)

// carry is script with its specification at the end. One that would not come back
// as it is, for its size or for bytes that are no characters, is left out.
func carry(script string, s Spec) string {
	text := Encode(s)
	if len(text) > maxBytes || bytes.ContainsRune(text, utf8.RuneError) {
		return script
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n%s%s\n", script, carriedMark, sumOf(script))
	for line := range strings.Lines(string(text)) {
		b.WriteString(carriedPrefix + line)
	}
	return b.String()
}

func sumOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// withoutCarried is the part of a script that says and does something.
func withoutCarried(script string) string {
	if at := strings.LastIndex(script, "\n"+carriedMark); at >= 0 {
		return script[:at]
	}
	return script
}

// carried is the specification that a script carries; unchanged reports that the
// script is still as it was rendered, ok that there is one that can be read.
func carried(script string) (s Spec, unchanged, ok bool) {
	at := strings.LastIndex(script, "\n"+carriedMark)
	if at < 0 {
		return Spec{}, false, false
	}
	above := script[:at]
	head, body, _ := strings.Cut(script[at+1:], "\n")
	var text strings.Builder
	for line := range strings.Lines(body) {
		if l, is := strings.CutPrefix(line, carriedPrefix); is {
			text.WriteString(l)
		}
	}
	s, err := Decode([]byte(text.String()))
	if err != nil {
		return Spec{}, false, false
	}
	return s, strings.TrimPrefix(head, carriedMark) == sumOf(above), true
}

// changed is what somebody made of a script that was rendered from s: s, but
// where the script reads otherwise than a fresh rendering of s does.
func changed(s, read Spec, notes []Note) (Spec, []Note) {
	fresh, err := Render(s, Options{})
	if err != nil {
		return read, notes
	}
	was, known := readScript("", fresh.Text)
	override(reflect.ValueOf(&s).Elem(), reflect.ValueOf(was), reflect.ValueOf(read))
	return s, slices.DeleteFunc(notes, func(n Note) bool {
		return slices.ContainsFunc(known, func(k Note) bool { return k.What == n.What && k.Why == n.Why })
	})
}

// override sets what differs between was and is into s.
func override(s, was, is reflect.Value) {
	for i := range s.NumField() {
		switch f, a, b := s.Field(i), was.Field(i), is.Field(i); {
		case f.Kind() == reflect.Struct:
			override(f, a, b)
		case f.Kind() == reflect.Map:
			overrideKeys(f, a.Interface().(map[string]string), b.Interface().(map[string]string))
		case !reflect.DeepEqual(a.Interface(), b.Interface()):
			f.Set(b)
		}
	}
}

func overrideKeys(m reflect.Value, was, is map[string]string) {
	given := m.Interface().(map[string]string)
	next := map[string]string{}
	for k, v := range given {
		if _, had := was[k]; !had || is[k] != "" {
			next[k] = v
		}
	}
	for k, v := range is {
		if old, had := was[k]; !had || old != v {
			next[k] = v
		}
	}
	if len(next) == 0 {
		next = nil
	}
	m.Set(reflect.ValueOf(next))
}
