package redact

import (
	"encoding/base64"
	"strings"
	"unicode/utf8"

	"github.com/megatron-ops/megatron-ops/internal/lazy"
)

// shortest is the length of the shortest value that is hidden.
const shortest = 4

// longest bounds the search for the end of a value, and so of a quote that is never closed.
const longest = 512

// A value is a part of a text, without its quotes.
type value struct {
	from, to int
	quote    string // what opened it
}

func (v value) text(s string) string { return s[v.from:v.to] }

// isHarmless reports whether the value itself says that it is no secret: it is short, hidden already, the
// path of a file, in place of a secret, or a Chinese sentence.
func (v value) isHarmless(s string) bool {
	word := v.text(s)
	return len(word) < shortest || strings.HasPrefix(word, Mask[:len(Mask)-1]) || v.quote == "" && isChinese(word) ||
		isPlaceholder(word) || isPath(word)
}

// isChinese reports whether a word begins with Chinese and has no digits, which a sentence mostly is.
func isChinese(word string) bool {
	return word[0] >= utf8.RuneSelf && !strings.ContainsAny(word, "0123456789")
}

// opens matches what opens a quote: a bracket of a list or of a call, Python's prefix, and the quote itself,
// after the word before credentials in a header.
var (
	scheme = lazy.New(`(?i)^(?:basic|bearer|token|digest|apikey|negotiate|ntlm)\\?[ \t]+`)
	opens  = lazy.New("^(?:[\\[{(] ?)?(?:[bfruBFRU]{1,2})?(\"\"\"|'''|\\\\*[\"'`]|%22|[“「])")
)

var closing = map[string]string{"“": "”", "「": "」"}

// valueAt returns the value that begins at i: what is in quotes, or a word. outer is a quote that was
// opened before, which a value without a quote of its own ends at.
func valueAt(s string, i int, outer string) value {
	end := min(len(s), i+longest)
	cut := end < len(s)
	if n := strings.IndexByte(s[i:end], '\n'); n >= 0 {
		end, cut = i+n, false
	}
	quote := outer
	if m := opens.FindStringSubmatchIndex(s[i:end]); m != nil {
		quote, i = s[i+m[2]:i+m[3]], i+m[1]
	}
	bare := i + len(scheme.FindString(s[i:end]))
	if quote == "" {
		return value{bare, bare + wordLength(s[bare:end]), ""}
	}
	if i < end && (s[i] == ' ' || s[i] == ',') && quote != outer {
		return value{i, i, quote} // the quote closes what was before
	}
	to := closingQuote(s[i:end], quote)
	switch {
	case to >= 0:
		return value{min(bare, i+to), i + to, quote}
	case cut || quote == outer:
		return value{bare, bare + wordLength(s[bare:end]), ""}
	}
	return value{bare, end, quote} // the line was cut
}

// closingQuote returns where the quote is closed, or -1. A quote with more backslashes than
// the opening one is a part of the value.
func closingQuote(s, quote string) int {
	slashes := strings.Count(quote, `\`)
	mark := quote[slashes:]
	if c, wide := closing[quote]; wide {
		mark = c
	}
	for i := 0; ; i += len(mark) {
		n := strings.Index(s[i:], mark)
		if n < 0 {
			return -1
		}
		i += n
		before := len(s[:i]) - len(strings.TrimRight(s[:i], `\`))
		switch {
		case slashes == 0 && before%2 == 0:
			return i
		case slashes > 0 && before <= slashes:
			return i - before
		}
	}
}

// wordLength returns the length of a value without quotes. A sign that also separates values ends
// it only if no more of the word follows: in k=a,b=c the first value is a, in k=a,b it is a,b.
func wordLength(s string) int {
	for i, r := range s {
		rest := s[i:]
		switch {
		case r >= 0x2e80 && s[0] < utf8.RuneSelf, strings.ContainsRune(" \t\r\"'`“”「」，；。、）？", r):
			return i
		case strings.ContainsRune(`,;&|)]}<\%`, r) && ends.MatchString(rest[:min(len(rest), farthest)]):
			return i
		}
	}
	return len(s)
}

// ends matches what ends a value, where it could also be a part of it.
var ends = lazy.New("^(?:[,;&|]+(?:$|[\\s\"'`)\\]}\\\\]|[\\w.-]+[\"']?[=:])|[)\\]}]+(?:$|[\\s\"'`,;:.<|&\\\\]|[^\\x00-\\x7f])|</|" +
	"\\\\(?:$|[nrtu\"'`\\\\])|%(?:2[26Cc]|7[Dd]))")

// The words in place of a secret: none, a placeholder, a reference to a variable.
var (
	stands = lazy.On("<|{|[|$|%|…|...|xxx|XXX|***|••|KEY|TOKEN|PASSWORD|_|-|password", `^[<{]|^\[(?:redacted|hidden|masked)|^\$\{?[A-Za-z_]\w*(?::\?.*)?\}?$|^\$\{\{|^\$\(|^%\(\w+\)s|^.{0,12}(?:…|\.\.\.)[\p{P}]*$|^.{0,8}?[xX*•]{4,}$`+
		`|^(?i:your|my|the|some)[_-]|^(?:[A-Z]+_)*(?:KEY|TOKEN|PASSWORD)$|^@?\w*[_-](?i:here)$|^password$`)
	reference = lazy.On("(|[|.|_", `^(?:[A-Za-z_]\w*\.)*[A-Za-z_]\w*(?:[(\[](?:$|\)|["'])|\[[A-Za-z_]*$)|^(?:[a-z_]\w*[._])+[a-z_]*\([a-z_.]*$`+
		`|^[a-z_]\w*(?:\.[a-z_]\w*)*[._]\w*(?:token|key|secret|password|passwd)\w*$`)
	path = lazy.New(`^(?:[A-Za-z_]+:)?(?:~|\.{1,2}|\$\{?\w+\}?)?(?:/(?:[A-Za-z]+[\d_.-]*|[._-][\w.-]*|[a-z][\w.-]*|%[a-z]|[^\x00-\x7f/]+|[<$*{][^/]*)){2,}(?:/|:|$)` +
		`|^(?:~|\.{1,2}|\$\{?\w+\}?)/|^[A-Z]:[\\/]|^/[\w.-]+\.[a-z]{2,6}$`)
	count = lazy.New(`^[-+]?\d[\d._,]*(?:[-~]\d[\d._,]*)?(?:[eE][-+]?\d+)?(?:[kKmMbBgGtT]i?[bB]?|%|ms|s|/s|tokens?|bits?|位)?[.,:;]?$`)
)

// isPlaceholder reports whether a word stands for a secret, or for none.
func isPlaceholder(word string) bool {
	return noValue[strings.ToLower(word)] || stands.MatchString(word)
}

var noValue = words(`none null nil true false unset set empty redacted hidden masked string bytes`)

// isReference reports whether a word of a program refers to a secret: os.environ["NAME"], args.token.
func isReference(word string) bool { return reference.MatchString(word) }

// isPath reports whether a word is the path of a file. Base64 can begin with a slash, but hardly has two
// short words between slashes.
func isPath(word string) bool { return path.MatchString(word) }

// isCount reports whether a word is a number, maybe with a unit.
func isCount(word string) bool {
	return strings.IndexByte("+-0123456789", word[0]) >= 0 && count.MatchString(word)
}

func isDigits(word string) bool {
	return !strings.ContainsFunc(word, func(r rune) bool { return r < '0' || r > '9' })
}

// smallWord matches a word of a sentence.
var smallWord = lazy.New(`^[A-Z]?[a-z]+[.,:;]*$`)

func isSmallWord(word string) bool { return smallWord.MatchString(word) }

// isKey reports whether a word is none of a language's: it has letters and digits, or is a
// login in base64.
func isKey(word string) bool {
	letters, digits := lettersAndDigits(word)
	if strings.Contains(word, " ") || len(word) < 8 {
		return false
	}
	login, err := base64.StdEncoding.DecodeString(word)
	return letters > 0 && digits > 0 || err == nil && strings.Contains(string(login), ":")
}

// isLongKey reports whether a word is nothing but a generated key.
func isLongKey(word string) bool {
	letters, digits := lettersAndDigits(word)
	return len(word) >= 12 && letters >= 3 && digits >= 3 && letters+digits == len(word)
}

func lettersAndDigits(word string) (letters, digits int) {
	for _, r := range word {
		switch {
		case '0' <= r && r <= '9':
			digits++
		case 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z':
			letters++
		}
	}
	return letters, digits
}

// aboutWords are words that are said of secrets.
var aboutWords = words(`required missing invalid incorrect wrong expired rejected denied revoked not must should cannot needs given with from when which that
	this into only because option argument authentication authorization unauthorized none found permission file variable value`)

// grammarWords are the words by which a sentence is told from a passphrase.
var grammarWords = words(`a an and are at be been by can cannot do does for from has have if in is it its must no not of on or please should than that the
	this to was were when which will with without your`)

// hasWord reports whether a text contains one of some words.
func hasWord(text string, of map[string]bool) bool {
	for w := range strings.FieldsSeq(text) {
		if of[strings.ToLower(strings.TrimRight(w, ".,:;"))] {
			return true
		}
	}
	return false
}
