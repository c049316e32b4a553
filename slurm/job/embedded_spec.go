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

// A rendered script ends with its specification as YAML in comment lines. Bash
// skips comments, and sbatch has stopped reading options long before these lines. A
// value cannot break out of its comment line, because Encode escapes line ends. The
// checksum of the text above shows whether the script was edited after rendering.
const (
	embeddedMark   = "# The specification, for megatron-ops import; sha256 of the text above: "
	embeddedPrefix = "#| "
)

// embedSpec appends the specification to its script. It leaves out a specification
// that Decode would not give back unchanged: one that is too large or that is not
// valid UTF-8.
func embedSpec(script string, s Spec) string {
	text := Encode(s)
	if len(text) > maxBytes || bytes.ContainsRune(text, utf8.RuneError) {
		return script
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n%s%s\n", script, embeddedMark, sumOf(script))
	for line := range strings.Lines(string(text)) {
		b.WriteString(embeddedPrefix + line)
	}
	return b.String()
}

func sumOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

func withoutEmbedded(script string) string {
	if at := strings.LastIndex(script, "\n"+embeddedMark); at >= 0 {
		return script[:at]
	}
	return script
}

// embeddedSpec returns the specification at the end of a script. unchanged reports
// that the script was not edited since it was rendered; ok is false if the script
// has no readable specification.
func embeddedSpec(script string) (s Spec, unchanged, ok bool) {
	at := strings.LastIndex(script, "\n"+embeddedMark)
	if at < 0 {
		return Spec{}, false, false
	}
	above := script[:at]
	head, body, _ := strings.Cut(script[at+1:], "\n")
	var text strings.Builder
	for line := range strings.Lines(body) {
		if l, is := strings.CutPrefix(line, embeddedPrefix); is {
			text.WriteString(l)
		}
	}
	s, err := Decode([]byte(text.String()))
	if err != nil {
		return Spec{}, false, false
	}
	return s, strings.TrimPrefix(head, embeddedMark) == sumOf(above), true
}

// withEdits returns s with the edits that a person made to its rendered script. read
// and notes are what the importer reads from the edited script. An edit is a field in
// which read differs from an import of a fresh rendering of s. Notes that the fresh
// rendering gives too are dropped.
func withEdits(s, read Spec, notes []Note) (Spec, []Note) {
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

// override copies to s the fields of is that differ from was.
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
