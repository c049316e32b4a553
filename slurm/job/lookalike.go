package job

import (
	"path"
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/lazy"
)

// lookalikes are characters that word processors, chats and input methods put in place of
// those that a specification needs.
var lookalikes = map[rune]string{
	'“': `"`, '”': `"`, '„': `"`, '＂': `"`, '‘': "'", '’': "'", '＇': "'", '：': ":", '，': ",", '＝': "=", '［': "[", '］': "]", '【': "[", '】': "]",
	'‐': "-", '‑': "-", '‒': "-", '–': "-", '—': "-", '―': "-", '−': "-", '－': "-",
	'\u00a0': " ", '\u2007': " ", '\u2009': " ", '\u202f': " ", '\u3000': " ", '\u200b': "", '\ufeff': "", '\u2060': "",
}

// Plainly returns text with each lookalike replaced by what was meant, and the first one
// that text has; 0 if it has none.
func Plainly(text string) (meant string, first rune) {
	var b strings.Builder
	for _, r := range text {
		if plain, is := lookalikes[r]; is {
			b.WriteString(plain)
			if first == 0 {
				first = r
			}
			continue
		}
		b.WriteRune(r)
	}
	return b.String(), first
}

// WrongCharacter says which character has crept in, and what to type instead.
func WrongCharacter(r rune) lang.Text {
	plain := lookalikes[r]
	switch plain {
	case "":
		return phrase("delete the invisible character U+%04X", "请删除不可见字符 U+%04X", r)
	case " ":
		return phrase("replace the character U+%04X, which looks like a blank, by a blank", "字符 U+%04X 只是看起来像空格，请改为普通空格", r)
	}
	return phrase("type %s in place of %s (U+%04X)", "请把 %[2]s（U+%04[3]X）改为 %[1]s", plain, string(r), r)
}

// meantPlainly returns the fix for a value that a grammar rejects only because of
// lookalikes; ok is false for any other value.
func meantPlainly(value string, accepts func(string) bool) (fix lang.Text, ok bool) {
	meant, first := Plainly(value)
	if first == 0 {
		return lang.Text{}, false
	}
	return WrongCharacter(first), accepts(meant) || accepts(strings.Trim(meant, `"' `))
}

// gluedFlag is a flag and its value in one word, which a program's parser takes for a value.
var gluedFlag = lazy.New(`^(--?[A-Za-z][A-Za-z0-9_-]*)\s+(\S.*?)\s*$`)

// flagWord returns what is wrong with a word that should be a flag. glued reports whether
// the program takes flags as Megatron-LM does.
func flagWord(w string, glued bool) (msg, fix lang.Text) {
	lead := w[:len(w)-len(strings.TrimLeftFunc(w, func(r rune) bool { _, is := lookalikes[r]; return is || r == '-' }))]
	if _, first := Plainly(lead); first != 0 {
		meant, _ := Plainly(w)
		if meant = strings.Trim(meant, `"' `); strings.HasPrefix(meant, "-") {
			return phrase("begins with %s (U+%04X), which is no hyphen", "以 %s（U+%04X）开头，那不是连字符", string(first), first),
				phrase("write %s", "请写 %s", "--"+strings.TrimLeft(meant, "-"))
		}
	}
	if m := gluedFlag.FindStringSubmatch(w); glued && m != nil {
		return phrase("is a flag and its value in one word", "把参数与取值写成了一个词"),
			phrase("write %s=%s, or two elements", "请写 %s=%s，或分成两个元素", m[1], m[2])
	}
	return fine, lang.Text{}
}

// unexpanded is a variable in a path.
var unexpanded = lazy.New(`\$(?:[A-Za-z_][A-Za-z0-9_]*|\{[^}]*\})`)

// StaysAsWritten reports whether a path begins with what a shell would expand, so that
// it is relative to nothing.
func StaysAsWritten(p string) bool {
	return strings.HasPrefix(p, "~") || !path.IsAbs(p) && strings.HasPrefix(p, "$")
}

// checkWorktree is checkAbsolute for a folder that must exist as it is written.
func checkWorktree(v string) lang.Text {
	if why := checkAbsolute(v); why != fine && !strings.HasPrefix(v, "$") {
		return why
	}
	if name := unexpanded.FindString(v); name != "" {
		return phrase("contains %s, which is not expanded", "含有 %s，而此处不会展开", name)
	}
	return fine
}
