// Package redact makes text from outside fit to show: Clean removes what could affect a
// terminal or mislead a reader, Text removes secrets. It knows nothing of where the
// text goes.
//
// A secret is known by its own form (forms.go, gitleaks' rules), by the command that it is
// given to (leads.go), or by the name before it: setting.go reads names, separators and
// values, name.go judges the names, and value.go the values.
package redact

import "strings"

// Mask replaces a secret.
const Mask = "[redacted]"

// Text returns s with every known form of secret masked. A plain hexadecimal word is
// masked only after a known name, so that a commit's hash stays.
func Text(s string) string {
	known := candidatesIn(s)
	s = maskSettings(s, known.names)
	for i, l := range leads {
		if known.lead[i] {
			s = l.mask(s)
		}
	}
	for i, f := range forms {
		if known.form[i] {
			s = f.mask(s)
		}
	}
	for i, r := range scanners() {
		if known.rule[i] {
			s = r.mask(s)
		}
	}
	return s
}

// Lines is Text for lines that say one thing each, such as the fields of a request or the
// lines of a rendered script. What looks like the beginning of a secret in one line hides
// nothing of the next: whoever writes a line cannot hide others from a reader. The long lines
// of a private key are masked each, indented ones too.
func Lines(s string) string {
	lines := strings.Split(s, "\n")
	for i, line := range lines {
		words := strings.TrimLeft(line, " \t")
		lines[i] = line[:len(line)-len(words)] + Text(words)
	}
	return strings.Join(lines, "\n")
}

// A Stream masks secrets in text that comes line by line, in which a private key spans
// many lines. The zero value is ready.
type Stream struct{ key int }

// longestKey is the number of lines after which a key without an end is assumed to be
// over.
const longestKey = 200

// Line returns the next line of the stream, masked.
func (k *Stream) Line(s string) string {
	if k.key > 0 {
		if k.key++; k.key > longestKey || strings.Contains(s, "-----END") {
			k.key = 0
		}
		return Mask
	}
	if strings.Contains(s, "-----BEGIN") && strings.Contains(s, "PRIVATE KEY") && !strings.Contains(s, "-----END") {
		k.key = 1
	}
	return Text(s)
}

// Values returns a function that masks the given values wherever they occur, before all
// known forms. It is for secrets that the configuration itself names.
func Values(values ...string) func(string) string {
	var pairs []string
	for _, v := range values {
		if len(v) >= 4 {
			pairs = append(pairs, v, Mask)
		}
	}
	known := strings.NewReplacer(pairs...)
	return func(s string) string { return Text(known.Replace(s)) }
}
