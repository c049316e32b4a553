package lang

import (
	"slices"
	"strings"
)

// Phrases are the sentences that a program says, in both languages. They let
// code that knows no language speak English, and give its Chinese where a person
// reads it.
type Phrases struct {
	exact     map[string]string
	templates []phrase // those with more words first: they say more exactly what they match
}

// A phrase is a sentence with places for values.
type phrase struct {
	parts   []string // the English between the values
	numbers []bool   // which values are numbers
	zh      string
	weight  int
}

// NewPhrases makes rows ready for looking up. In the English, %s stands for a
// value or for another sentence and %d for a number; the Chinese has the same
// places in the same order, or numbers them: %[2]s.
func NewPhrases(rows ...[]Text) *Phrases {
	p := &Phrases{exact: map[string]string{}}
	for _, list := range rows {
		for _, row := range list {
			if !strings.Contains(row.EN, "%s") && !strings.Contains(row.EN, "%d") {
				p.exact[row.EN] = row.ZH
				continue
			}
			f := phrase{zh: row.ZH}
			rest := row.EN
			for {
				i, j := strings.Index(rest, "%s"), strings.Index(rest, "%d")
				if i < 0 && j < 0 {
					break
				}
				number := i < 0 || j >= 0 && j < i
				if number {
					i = j
				}
				f.parts, f.numbers = append(f.parts, rest[:i]), append(f.numbers, number)
				rest = rest[i+2:]
			}
			f.parts = append(f.parts, rest)
			f.weight = len(row.EN) - 2*len(f.numbers)
			p.templates = append(p.templates, f)
		}
	}
	slices.SortStableFunc(p.templates, func(a, b phrase) int { return b.weight - a.weight })
	return p
}

// Say returns text, one of the sentences with its values, in l. Of a text of the
// form "where: what", as Go's errors have it, each part is looked up by itself.
// What is not known stays as it is.
func (p *Phrases) Say(text string, l Lang) string {
	if l != ZH || text == "" {
		return text
	}
	if zh, ok := p.exact[text]; ok {
		return zh
	}
	for _, f := range p.templates {
		if values, ok := f.match(text); ok {
			for i, v := range values {
				values[i] = p.Say(v, l)
			}
			return fill(f.zh, values)
		}
	}
	if where, what, ok := strings.Cut(text, ": "); ok {
		there, said := p.Say(where, l), p.Say(what, l)
		if there != where || said != what {
			return there + "：" + said
		}
	}
	return text
}

// match returns the values of f in text. Each part is looked for from the left:
// where any reading fits, the earliest one does.
func (f phrase) match(text string) (values []string, ok bool) {
	rest, ok := strings.CutPrefix(text, f.parts[0])
	for i, part := range f.parts[1:] {
		if !ok {
			return nil, false
		}
		at := strings.Index(rest, part)
		if i == len(f.numbers)-1 {
			ok = strings.HasSuffix(rest, part)
			at = len(rest) - len(part)
		} else {
			ok = at >= 0
		}
		if !ok || f.numbers[i] && strings.Trim(rest[:at], "0123456789") != "" {
			return nil, false
		}
		values = append(values, rest[:at])
		rest = rest[at+len(part):]
	}
	return values, ok
}

// fill puts values into the places of a sentence.
func fill(zh string, values []string) string {
	var b strings.Builder
	next := 0
	for {
		before, after, found := strings.Cut(zh, "%")
		b.WriteString(before)
		switch {
		case !found:
			return b.String()
		case len(after) > 3 && after[0] == '[' && after[2] == ']' && int(after[1]-'1') < len(values):
			b.WriteString(values[after[1]-'1'])
			zh = after[4:]
		case after != "" && (after[0] == 's' || after[0] == 'd') && next < len(values):
			b.WriteString(values[next])
			next++
			zh = after[1:]
		default:
			b.WriteByte('%')
			zh = after
		}
	}
}
