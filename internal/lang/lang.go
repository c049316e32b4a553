// Package lang holds texts in the two languages of the product. It knows nothing of
// what a text is about.
package lang

import (
	"fmt"
	"unicode"
	"unicode/utf8"
)

// A Lang is a language of the product.
type Lang string

// The languages of the product. The zero value reads as English.
const (
	EN Lang = "en"
	ZH Lang = "zh"
)

// Parse returns the language that a word such as "zh", "zh_CN.UTF-8" or "EN" names. ok
// is false for a language that the product does not have.
func Parse(word string) (l Lang, ok bool) {
	if len(word) < 2 {
		return EN, false
	}
	switch word[:2] {
	case "en", "EN", "En":
		return EN, true
	case "zh", "ZH", "Zh", "cn", "CN":
		return ZH, true
	}
	return EN, false
}

// Of guesses the language of text: Chinese if any rune is Han, else English. Text with kana is
// Japanese, whose readers are answered in English as all others are.
func Of(text string) Lang {
	l := EN
	for _, r := range text {
		switch {
		case unicode.In(r, unicode.Hiragana, unicode.Katakana):
			return EN
		case unicode.Is(unicode.Han, r):
			l = ZH
		}
	}
	return l
}

// Capital returns text with its first letter in upper case.
func Capital(text string) string {
	first, size := utf8.DecodeRuneInString(text)
	if upper := unicode.ToUpper(first); upper != first {
		return string(upper) + text[size:]
	}
	return text
}

// A Text says the same in each language.
type Text struct {
	EN string `json:"en"`
	ZH string `json:"zh"`
}

// In returns the text in l, or in English if there is none in l.
func (t Text) In(l Lang) string {
	if l == ZH && t.ZH != "" {
		return t.ZH
	}
	return t.EN
}

// With inserts values into both languages, by the verbs of package fmt. The Chinese may
// number them: %[2]s. A value that is a Text or an error is inserted in the respective
// language.
func (t Text) With(values ...any) Text {
	return Text{EN: fmt.Sprintf(t.EN, valuesIn(EN, values)...), ZH: fmt.Sprintf(t.ZH, valuesIn(ZH, values)...)}
}

// Named returns what is said of name, with the name and l's colon in front.
func (l Lang) Named(name, said string) string {
	return name + Text{EN: ": ", ZH: "："}.In(l) + said
}

// Same returns a text that is the same in both languages, such as a command or output
// of Slurm.
func Same(words string) Text { return Text{EN: words, ZH: words} }

func valuesIn(l Lang, values []any) []any {
	in := make([]any, len(values))
	for i, v := range values {
		switch t := v.(type) {
		case Text:
			v = t.In(l)
		case error:
			v = Said(t).In(l)
		}
		in[i] = v
	}
	return in
}
