package redact

import (
	"strings"
	"unicode/utf8"

	"github.com/megatron-ops/megatron-ops/internal/lazy"
)

// A bond is how firmly a separator ties a value to a name.
type bond uint8

const (
	none  bond = iota
	loose      // words side by side, as in a table or a sentence
	firm       // an assignment, an option, a command that sets
)

// A setting is a name and what follows it.
type setting struct {
	text     string
	from, to int // the name
	kind     kind
	bond     bond
	sign     string // what separates the value
	value    value
}

// maskSettings masks the values of settings whose names mean secrets. at are the positions in
// s of words that such names contain, in order.
func maskSettings(s string, at []int) string {
	var out masked
	done := 0
	for _, i := range at {
		if i < done {
			continue
		}
		x := setting{text: s}
		x.from, x.to = nameAround(s, i, done)
		done = x.to
		if x.read() && x.isSecret() {
			out.hide(s, x.value.from, x.value.to)
			done = x.value.to
		}
	}
	return out.of(s)
}

// nameAround returns the name that contains the word at i, and does not begin before least.
// A Chinese name is the word itself.
func nameAround(s string, i, least int) (from, to int) {
	if len(s) >= i+chineseLength && chineseNames[s[i:i+chineseLength]] != ordinary {
		return i, i + chineseLength
	}
	from, to = i, i
	for n := 1; n > 0 && from-n >= least; from -= n {
		n = letterBefore(s[least:from])
	}
	for n := 1; n > 0; to += n {
		n = letterAfter(s[to:])
	}
	return from, to
}

// chineseLength is the length of a Chinese name.
const chineseLength = len("密码")

// asciiName are the ASCII characters of names.
var asciiName = func() (in [256]bool) {
	for _, c := range []byte("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-") {
		in[c] = true
	}
	return in
}()

// lettersAlike equal ASCII letters if case is ignored: the long s and the Kelvin sign.
var lettersAlike = []string{"\u017f", "\u212a"}

// letterBefore returns the length of the last character of s if names may contain it, else 0.
func letterBefore(s string) int { return letter(s, len(s)-1, strings.HasSuffix) }

// letterAfter returns the length of the first character of s if names may contain it, else 0.
func letterAfter(s string) int { return letter(s, 0, strings.HasPrefix) }

func letter(s string, at int, has func(s, part string) bool) int {
	if s == "" {
		return 0
	}
	if asciiName[s[at]] {
		return 1
	}
	if s[at] >= utf8.RuneSelf {
		for _, c := range lettersAlike {
			if has(s, c) {
				return len(c)
			}
		}
	}
	return 0
}

// read reads what follows the name, and reports whether that can be a secret.
func (x *setting) read() bool {
	if x.from == x.to {
		return false
	}
	var after int
	if after, x.bond, x.sign = x.separator(); x.bond == none {
		return false
	}
	if x.kind = kindOf(x.text[x.from:x.to]); x.kind == ordinary {
		return false
	}
	x.value = valueAt(x.text, after, x.around())
	return !x.value.isHarmless(x.text)
}

// around returns the quote that was opened before the name: -e "NAME=some words".
func (x *setting) around() string {
	if x.from > 0 && x.sign == "=" && strings.IndexByte(`"'`, x.text[x.from-1]) >= 0 {
		return x.text[x.from-1 : x.from]
	}
	return ""
}

// Separators, from the end of a name to the beginning of its value. What assigns are a sign
// and quotes, which JSON within JSON escapes and a URL encodes; or the end of an index, as in
// environ["NAME"] = "…". Chinese text has wider signs.
var (
	// assigns also skips a type, as in NAME: str = "…" and NAME: !!str ….
	assigns = lazy.New("^(?:\\\\*[\"'`]\\]?|%22)?[ \\t]*(=>|:=|==?|[:＝：]|%3[AaDd])" +
		`[ \t]*(?:(?:Optional\[)?(?:str|bytes|string|SecretStr)\]?(?: *\| *None)? *= *|!!?\w+ +)?`)
	dotted    = lazy.New(`^ \.{3,} `) // as Megatron prints its arguments
	chinese   = lazy.New(`^\s*[是为]\s*`)
	english   = lazy.New(`(?i)^[ \t]+(?:is|was|=)[ \t]+`)
	asideSign = lazy.New("^[\"'`]?(?:[ \\t]*[|,][ \\t]*|[ \\t]+)")
	sets      = lazy.New(`(?:^|\s)(?:setenv|ENV|set|config)\s+$`)
	calls     = lazy.New(`\(\s*["']$`)
)

// separator returns where the value begins.
func (x *setting) separator() (after int, how bond, sign string) {
	rest := x.text[x.to:min(len(x.text), x.to+farthest)]
	if rest == "" || !beginsSeparator[rest[0]] {
		return 0, none, ""
	}
	if m := assigns.FindStringSubmatchIndex(rest); m != nil {
		after, sign = x.to+m[1], rest[m[2]:m[3]]
		return after, firm, sign
	}
	before := x.text[max(0, x.from-farthest):x.from]
	name := x.text[x.from:x.to]
	if chineseNames[name] != ordinary {
		m := chinese.FindString(rest)
		if m == "" {
			return 0, none, ""
		}
		after = x.to + len(m)
		if a := assigns.FindString(x.text[after:min(len(x.text), after+farthest)]); a != "" {
			after += len(a)
		}
		return after, firm, "是"
	}
	if rest[0] == '>' { // <password>…</password>
		if strings.HasSuffix(before, "<") {
			return x.to + 1, firm, ">"
		}
		return 0, none, ""
	}
	if m := dotted.FindString(rest); m != "" {
		return x.to + len(m), firm, "..."
	}
	if m := english.FindString(rest); m != "" {
		return x.to + len(m), loose, "is"
	}
	m := asideSign.FindString(rest)
	switch compound := strings.ContainsAny(name, "_-"); {
	case m == "":
		return 0, none, ""
	case m[0] == ' ' && name[0] == '-', isShouted(name) && strings.HasPrefix(m[1:], ",") && calls.MatchString(before):
		how = firm
	case strings.TrimLeft(m, " \t") == "" && compound && sets.MatchString(before), strings.HasSuffix(before, "setenv "), strings.HasSuffix(before, "ENV "):
		how = firm
	case compound || isShouted(name) || strings.Contains(strings.ToLower(name), "passw"):
		how = loose
	}
	return x.to + len(m), how, " "
}

// farthest bounds the blanks and signs of a separator, and how far back a command is looked for.
const farthest = 64

var beginsSeparator = func() (begins [256]bool) {
	for _, c := range []byte("=:\"'`\\% \t|>\xef\xe6\xe4") { // the last are of ：, ＝, 是 and 为
		begins[c] = true
	}
	return begins
}()

// isSecret reports whether the value is a secret rather than a word about one.
func (x *setting) isSecret() bool {
	word := x.value.text(x.text)
	switch {
	case strings.EqualFold(word, x.text[x.from:x.to]), strings.HasPrefix(word, "-----BEGIN"), x.sign == ":" && word[0] == ':',
		word[0] == '?' && strings.HasSuffix(x.text[:x.from], "${"): // std::token::of, ${TOKEN:?}
		return false
	case x.bond == firm && x.sign == " " && x.value.quote == "" && word[0] == '-': // the next option
		return false
	case isCount(word):
		return x.kind == password && isDigits(word) || x.kind == secret && isDigits(word) && len(word) > 5
	case x.kind == ofModels:
		return isLongKey(word)
	case strings.Contains(word, "://"):
		return true
	case x.kind == likely || x.bond == loose:
		return isKey(word)
	}
	return !isReference(word) && !x.inSentence(word)
}

// inSentence reports whether the value is a word or the beginning of a sentence about a secret, as in
// "/run/secrets/token: permission denied", "a secret: mode 600", "--token must be given". Quotes mostly
// hold the whole of a sentence or of a passphrase, which for a password may be a sentence.
func (x *setting) inSentence(word string) bool {
	rest, _, _ := strings.Cut(x.text[x.value.to:min(len(x.text), x.value.to+farthest)], "\n")
	before := x.text[:x.from]
	switch {
	case x.value.quote == "`" && strings.Contains(word, " "): // a command in Markdown
		return true
	case x.value.quote != "" && x.kind == password:
		return strings.Contains(word, " ") && hasWord(word, aboutWords)
	case x.value.quote != "":
		return strings.Contains(word, " ") && hasWord(word, grammarWords)
	case hasWord(word, aboutWords):
		return true
	case !isLowerWord(word) || x.sign != ":" || x.text[x.value.from-1] != ' ' && x.text[x.from] < utf8.RuneSelf: // Chinese has no blank there
		return false
	case strings.HasSuffix(before, "/") || hasWord(rest, grammarWords):
		return true
	}
	return x.kind != password && wordsAround.MatchString(before[max(0, len(before)-2):]+"\x00"+rest)
}

// wordsAround matches what is around a name and a word of a sentence: a word before the name, or Chinese
// after the word.
var wordsAround = lazy.New(`^[a-z] \x00 |\x00 ?[^\x00-\x7f]`)
