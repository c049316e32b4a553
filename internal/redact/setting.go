package redact

import (
	"strings"
	"unicode/utf8"

	"github.com/megatron-ops/megatron-ops/internal/lazy"
)

// A bond is how firmly a separator ties a value to a name.
type bond uint8

const (
	loose bond = iota // words side by side, as in a table or a sentence
	firm              // an assignment, an option, a command that sets
)

// A setting is a name and what follows it.
type setting struct {
	text     string
	from, to int // the name
	kind     kind
	bond     bond
	sign     string // what separates the value
	after    int    // where the separator ends
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
		if x.read() && (x.isSecret() || x.readWord() && x.isSecret()) {
			out.hide(s, x.value.from, x.value.to)
			done = x.value.to
		}
	}
	return out.of(s)
}

// nameAround returns the name that contains the word at i, and does not begin before least.
// A Chinese name is the word itself, and a key has the word before it: API key.
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
	if strings.EqualFold(s[from:to], "key") && from-1 > least && s[from-1] == ' ' && asciiName[s[from-2]] {
		for from--; from > least && asciiName[s[from-1]]; from-- {
		}
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
	after, found := x.separate()
	if !found {
		return false
	}
	if x.kind = kindOf(x.name()); x.kind == ordinary {
		return false
	}
	x.after = after
	x.value = valueAt(x.text, after, x.around())
	return !x.value.isHarmless(x.text)
}

// readWord takes one word as the value, where the quote that was opened before the name holds a
// sentence about it: "NAME=word is set twice".
func (x *setting) readWord() bool {
	if x.value.quote == "" || x.value.quote != x.around() {
		return false
	}
	x.value = valueAt(x.text, x.after, "")
	return !x.value.isHarmless(x.text)
}

// around returns the quote that was opened before the name: -e "NAME=some words".
func (x *setting) around() string {
	if x.from > 0 && x.sign == "=" && strings.IndexByte(`"'`, x.text[x.from-1]) >= 0 {
		return x.text[x.from-1 : x.from]
	}
	return ""
}

// A separator is what may stand between a name and its value. A group of its expression is the sign.
type separator struct {
	re   *lazy.Pattern
	bond bond
	fits func(x *setting) bool // nil: always
}

// assignment matches a sign and quotes, which JSON within JSON escapes and a URL encodes; or the end of
// an index, as in environ["NAME"] = "…". Chinese text has wider signs. It also matches a type, as in
// NAME: str = "…" and NAME: !!str ….
const assignment = "(?:\\\\*[\"'`]\\]?|%22|\\))?[ \\t]*(=>|:=|[!=]==?|=|->|→|[:＝：]|%3[AaDd])" +
	`(?:\\?[ \t])*(?:(?:Optional\[)?(?:str|bytes|string|SecretStr)\]?(?: *\| *None)? *= *|!!?\w+ +)?`

// separators are tried in this order.
var separators = []separator{
	{lazy.New(`^` + assignment), firm, nil},
	{lazy.New(`^(?:["']?,?|</\w+>\s*<)(?:\s|\\n)*"?(?:value|VALUE)(?:["']?\s*[:=]|>)\s*`), firm, nil}, // "name": "NAME", "value": "…"
	{lazy.New(`^\s*(?:是|为|设为|改为|设置为|修改为)\s*(?:` + assignment + `)?`), firm, (*setting).isChinese},
	{lazy.New(`^ `), loose, (*setting).isChinese},
	{lazy.New(`^>`), firm, func(x *setting) bool { // <password>…</password>, but https://me:<password>@host
		return strings.HasSuffix(x.before(), "<") && !strings.HasPrefix(x.text[x.to:], ">@")
	}},
	{lazy.New(`^ \.{3,} `), firm, nil}, // as Megatron prints its arguments
	{lazy.New(`(?i)^[ \t]+(?:is|was)(?: now| set to)?(:)?[ \t]+`), loose, nil},
	{lazy.New(`^( )[ \t]*`), firm, func(x *setting) bool { return x.name()[0] == '-' }},
	{lazy.New(`^[ \t]+`), firm, func(x *setting) bool {
		return setsAny.MatchString(x.before()) || !x.isWord() && sets.MatchString(x.before())
	}},
	{lazy.New(`^["'],[ \t]*`), firm, func(x *setting) bool { return isShouted(x.name()) && calls.MatchString(x.before()) }},
	{lazy.New(`^["'],[ \t]*`), loose, nil},
	{lazy.New("^[\"'`]?[ \\t]*[|, \\t][ \\t]*"), loose, func(x *setting) bool { return !x.isWord() }},
}

// What is before a name that a command sets, and before the first argument of a call.
var (
	setsAny = lazy.New(`\b(?:setenv|ENV)\s+$`)
	sets    = lazy.New(`\b(?:set|config)\s+$`)
	calls   = lazy.New(`\(\s*["']$`)
)

func (x *setting) name() string { return x.text[x.from:x.to] }

// before returns what is right before the name.
func (x *setting) before() string { return x.text[max(0, x.from-farthest):x.from] }

func (x *setting) isChinese() bool { return chineseNames[x.name()] != ordinary }

// isWord reports whether the name is an ordinary word of English or Chinese, which a password is mostly not
// followed by something else than it.
func (x *setting) isWord() bool { return plainNames[x.name()] || x.isChinese() }

var plainNames = words(`secret secrets token tokens key keys credential credentials auth pass pat salt webhook authorization`)

// separate finds the separator and returns where the value begins.
func (x *setting) separate() (after int, found bool) {
	rest := x.text[x.to:min(len(x.text), x.to+farthest)]
	if rest == "" || !beginsSeparator[rest[0]] {
		return 0, false
	}
	for _, s := range separators {
		if s.fits != nil && !s.fits(x) {
			continue
		}
		if m := s.re.FindStringSubmatchIndex(rest); m != nil {
			x.bond = s.bond
			if len(m) > 2 && m[2] >= 0 {
				x.sign = rest[m[2]:m[3]]
			}
			return x.to + m[1], true
		}
	}
	return 0, false
}

// farthest bounds the blanks and signs of a separator, and how far back a command is looked for.
const farthest = 64

var beginsSeparator = func() (begins [256]bool) {
	for _, c := range []byte("=:!\"'`\\%) \t\n|,><\xef\xe6\xe4\xe8\xe2") { // the last are of ：, ＝, 是, 为, 设 and →
		begins[c] = true
	}
	return begins
}()

// isSecret reports whether the value is a secret rather than a word about one.
func (x *setting) isSecret() bool {
	word := x.value.text(x.text)
	switch {
	case strings.EqualFold(word, x.name()), strings.HasPrefix(word, "-----BEGIN"), x.sign == ":" && word[0] == ':',
		word[0] == '?' && strings.HasSuffix(x.text[:x.from], "${"): // std::token::of, ${TOKEN:?}
		return false
	case x.bond == firm && x.sign == " " && x.value.quote == "" && word[0] == '-': // the next option
		return false
	case isCount(word):
		return x.kind == password || x.kind == secret && isDigits(word) && len(word) > 5
	case x.kind == ofModels:
		return isLongKey(word)
	case x.bond == loose:
		return isKey(word) && !strings.Contains(word, "://")
	case x.kind == likely:
		return isKey(word) || strings.Contains(word, "://")
	}
	return !isReference(word) && !x.inSentence(word)
}

// inSentence reports whether the value is a word or the beginning of a sentence about a secret, as in
// "/run/secrets/token: permission denied", "a secret: mode 600", "--token must be given". Quotes mostly
// hold the whole of a sentence or of a passphrase, which for a password may be a sentence.
func (x *setting) inSentence(word string) bool {
	rest, _, _ := strings.Cut(x.text[x.value.to:min(len(x.text), x.value.to+farthest)], "\n")
	before := x.before()
	switch {
	case x.value.quote == "`" && strings.Contains(word, " "): // a command in Markdown
		return true
	case x.value.quote != "" && x.kind == password:
		return strings.Contains(word, " ") && hasWord(word, aboutWords)
	case x.value.quote != "" && x.kind == token && isSmallWord(word) && wordBefore.MatchString(before): // decoded token: 'world'
		return true
	case x.value.quote != "":
		return strings.Contains(word, " ") && hasWord(word, grammarWords)
	case hasWord(word, aboutWords):
		return true
	case !isSmallWord(word) || x.sign != ":" || x.text[x.value.from-1] != ' ' && x.text[x.from] < utf8.RuneSelf: // Chinese has no blank there
		return false
	case strings.HasSuffix(before, "/") || hasWord(rest, grammarWords):
		return true
	}
	return x.kind != password && wordsAround.MatchString(before[max(0, len(before)-2):]+"\x00"+rest)
}

// wordBefore matches what ends with a word.
var wordBefore = lazy.New(`[a-z] $`)

// wordsAround matches what is around a name and a word of a sentence: a word before the name, or Chinese
// after the word.
var wordsAround = lazy.New(`^[a-z] \x00 |\x00 ?[^\x00-\x7f]`)
