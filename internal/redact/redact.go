// Package redact makes text from outside fit to show: Clean removes what could affect a
// terminal or mislead a reader, Text removes secrets. It knows nothing of where the
// text goes.
package redact

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/megatron-ops/megatron-ops/internal/lazy"
)

// Mask replaces a secret.
const Mask = "[redacted]"

// A secretForm is one way in which secrets are written: what expr matches. group is the
// part to hide.
type secretForm struct {
	name  string
	expr  string
	group int
	re    *lazy.Pattern // of expr
}

// keyNames matches names of settings that hold secrets.
const keyNames = `[A-Za-z0-9_.-]*(?:secret|token|passwd|password|passphrase|api[_-]?key|apikey|access[_-]?key|private[_-]?key` +
	`|credential|auth[_-]?key|account[_-]?key|encryption[_-]?key|signing[_-]?key|webhook|SLURM_JWT)[A-Za-z0-9_.-]*`

// upperSuffixes are the endings of environment variables that hold secrets. In lower
// case they are parts of ordinary words: query_key, pass, sort_key.
const upperSuffixes = `(?:_PASS|_PWD|_KEY|_KEYS|_CREDS|_PAT|_DSN|_SALT|_SECRETS?)`

// assignment matches what separates a name from its value: an assignment sign and
// quotes, which JSON within JSON escapes and a URL encodes; or the end of an index, as in
// environ["NAME"] = "…". Chinese text has wider signs.
const assignment = `(?:\\*["']\]?|%22)?\s*(?:=>|[=:＝：]|%3[AaDd])\s*(?:\\*["']|%22|[“「])?`

// chineseNames are the Chinese words for secrets. After them only ASCII is a secret, not the
// rest of a sentence.
const chineseNames = `(?:密码|口令|密钥|秘钥|私钥|令牌|凭据|凭证)`

// secretValue matches what is hidden after a name.
const secretValue = `([^\s"'\\,;&)}\]，；。、）」”]{4,})`

// keyMaterial is the form that its mixed letters distinguish from a hash.
const keyMaterial = "key material"

// The forms that their names and values distinguish from ordinary words.
const (
	namedSetting = "named setting"
	namedOption  = "named option"
)

func form(name, expr string, group int) secretForm {
	return secretForm{name, expr, group, lazy.New(expr)}
}

var forms = []secretForm{
	form("private key block", `(?s)-----BEGIN [A-Z0-9 ]*PRIVATE KEY( BLOCK)?-----.*?(?:-----END [A-Z0-9 ]*PRIVATE KEY( BLOCK)?-----|\z)`, 0),
	// A line of a key that begins elsewhere: base64 and nothing else.
	form(keyMaterial, `(?m)^(?:[^\s]{1,40}[:|]\s*)?([A-Za-z0-9+/]{48,80}={0,2})[ \t]*$`, 1),
	form("authorization header", `(?i)\b(?:proxy-)?authorization["']?\s*[:=：＝]\s*["']?(?:(?:basic|bearer|token|digest)\s+)?([^\s"',;]+)`, 1),
	form("bearer", `(?i)\bbearer\s+([A-Za-z0-9._~+/=-]{8,})`, 1),
	form("json web token", `\beyJ[A-Za-z0-9_-]{6,}\.[A-Za-z0-9_-]{4,}\.[A-Za-z0-9_-]*`, 0),
	form("slack", `\bxox[abcdeoprs]-[A-Za-z0-9-]{8,}`, 0),
	form("slack app", `\bxapp-[A-Za-z0-9-]{8,}`, 0),
	form("slack hook", `hooks\.slack\.com/(?:services|workflows|triggers)/[A-Za-z0-9/_-]+`, 0),
	form("hook of a chat", `(?i)(?:discord(?:app)?\.com/api/webhooks/|(?:feishu\.cn|larksuite\.com)/open-apis/bot/(?:v\d/)?hook/|webhook\.office\.com/|`+
		`api\.telegram\.org/bot)([A-Za-z0-9/_:@-]{8,})`, 1),
	form("github", `\b(?:gh[opsur]_[A-Za-z0-9]{16,}|github_pat_[A-Za-z0-9_]{20,})`, 0),
	form("gitlab", `\bgl(?:pat|rt|dt|cbt|ptt|soat)-[A-Za-z0-9_-]{16,}`, 0),
	form("hugging face", `\b(?:hf|api_org)_[A-Za-z0-9]{16,}`, 0),
	form("weights and biases", `\bwandb_v\d_[A-Za-z0-9_-]{16,}`, 0),
	form("nvidia", `\bnvapi-[A-Za-z0-9_-]{16,}`, 0),
	form("openai and kin", `\bsk-[A-Za-z0-9_-]{16,}`, 0),
	form("google", `\bAIza[A-Za-z0-9_-]{30,}`, 0),
	form("google oauth", `\bya29\.[A-Za-z0-9_-]{20,}`, 0),
	form("aws key id", `\b(?:AKIA|ASIA|AROA|AIDA)[0-9A-Z]{16}\b`, 0),
	form("pypi", `\bpypi-[A-Za-z0-9_-]{20,}`, 0),
	form("npm", `\bnpm_[A-Za-z0-9]{30,}`, 0),
	form("age key", `\bAGE-SECRET-KEY-1[0-9A-Z]{20,}`, 0),
	form("password in an address", `[A-Za-z][A-Za-z0-9+.-]*://[^\s/:@'"]*:([^\s/@'"]+)@`, 1),
	form("signed address", `(?i)[?&](?:X-Amz-Signature|X-Amz-Credential|X-Amz-Security-Token|X-Goog-Signature|Signature|sig|access_token|`+
		`token|api_key|key)=([^&\s"']+)`, 1),
	// A name that says so: WANDB_API_KEY=…, "password": "…", --token …
	form(namedSetting, `(?i)\b`+keyNames+assignment+secretValue, 1),
	// An environment variable that a call sets: setdefault("HF_TOKEN", "…"). In lower case the
	// first of two quoted arguments is mostly a word: print("token", "changed").
	form(namedSetting, `\b[A-Z0-9_]*(?:SECRET|TOKEN|PASSWD|PASSWORD|(?:API|ACCESS|AUTH|PRIVATE)_?KEY)[A-Z0-9_]*["'],\s*["']`+secretValue, 1),
	form(namedSetting, `\b[A-Z0-9_]+`+upperSuffixes+assignment+secretValue, 1),
	form(namedSetting, chineseNames+`\s*(?:是|为|`+assignment+`)\s*([!#-&(-+./-:<-~-]{4,})`, 1),
	// ~/.netrc, and programs that print it: "machine HOST login NAME password SECRET".
	form("netrc", `(?i)\b(?:login|machine|user)\s+\S+\s+password\s+(\S+)`, 1),
	form("password for curl", `(?i)\bcurl\b[^\n]*?\s(?:-u\s*|--(?:proxy-)?user[ =]\s*)["']?[^\s:"'$]+:([^\s"'$]{4,})`, 1),
	form("key of a login", `(?i)\blogin\(\s*(?:(?:key|token)\s*=\s*)?["']([^"'\s]{8,})`, 1),
	form("password of a command", `(?i)\b(?:sshpass|(?:docker|podman|apptainer|singularity|helm)\b[^\n]*?\blogin)\b[^\n]*?\s-p\s*["']?([^\s"'$]{4,})`, 1),
	// A token in place of a name: https://TOKEN@host. A short one is a login.
	form("token in an address", `[A-Za-z][A-Za-z0-9+.-]*://([A-Za-z0-9_~.+-]{20,})@`, 1),
	form(namedOption, `(?i)--`+keyNames+`\s+["']?([^\s"'-][^\s"']{3,})`, 1),
}

// Ordinary words after a name such as tokenizer or tokens are not secrets: "tokens per
// second: 412.3", "--tokenizer-type GPT2BPETokenizer".
var (
	notSecretName = lazy.New(`(?i)tokeni[sz]|tokens|num_token|token_?(?:type|id|length|count|dispatcher|drop|s?_per)|moe-token|per_token|` +
		`max_token|eod|secretary|key_?size|pad_token|special_token`)
	notSecretValue = lazy.New(`^(?:None|null|true|false|True|False|unset|set|required|missing|invalid|not|\*+|<[^>]*>|\$\{?[A-Za-z_]\w*\}?|` +
		`[-+]?[0-9]+(?:\.[0-9]+)?)$`)
)

// Text returns s with every known form of secret masked. A plain hexadecimal word is
// masked only after a known name, so that a commit's hash stays.
func Text(s string) string {
	known := candidatesIn(s)
	for i, f := range forms {
		if known.form[i] {
			s = maskForm(s, f)
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

// SecretName reports whether a setting of that name, such as an environment variable,
// holds a secret: its value is never kept or shown.
func SecretName(name string) bool {
	return secretName.MatchString(name) && !notSecretName.MatchString(name)
}

var secretName = lazy.New(`(?i:^` + keyNames + `$)|^[A-Z0-9_]*` + upperSuffixes + `$`)

func maskForm(s string, f secretForm) string {
	found := f.re.FindAllStringSubmatchIndex(s, -1)
	if found == nil {
		return s
	}
	var b strings.Builder
	last := 0
	for _, m := range found {
		from, to := m[2*f.group], m[2*f.group+1]
		if from < last || strings.HasPrefix(s[from:to], Mask[:len(Mask)-1]) {
			continue
		}
		if f.name == keyMaterial && !hasMixedCharacters(s[from:to]) {
			continue
		}
		if f.name == namedSetting || f.name == namedOption {
			if notSecretName.MatchString(s[m[0]:from]) || notSecretValue.MatchString(s[from:to]) || aboutFile(s, m[0], from, to) {
				continue
			}
		}
		b.WriteString(s[last:from])
		b.WriteString(Mask)
		last = to
	}
	b.WriteString(s[last:])
	return b.String()
}

// aboutFile reports whether an apparent setting is a message about a file of that name:
// "/etc/passwd: image is read-only", "/run/secrets/token: permission denied". The name
// ends a path, and a word in lower case follows the colon.
func aboutFile(s string, name, from, to int) bool {
	return name > 0 && s[name-1] == '/' && strings.HasSuffix(s[name:from], ": ") &&
		!strings.ContainsFunc(s[from:to], func(r rune) bool { return r < 'a' || r > 'z' })
}

// hasMixedCharacters reports whether a word has capitals, small letters and digits,
// which base64 has and a hexadecimal hash does not.
func hasMixedCharacters(s string) bool {
	return strings.ContainsAny(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") && strings.ContainsAny(s, "ghijklmnopqrstuvwxyz") && strings.ContainsAny(s, "0123456789+/")
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

// escapes are terminal control sequences: CSI, OSC (titles, links, clipboard), other
// string sequences, and the two-byte ones.
var escapes = lazy.New("(?s)\x1b\\[[0-?]*[ -/]*[@-~]|\x1b[\\]PX^_].*?(?:\x07|\x1b\\\\|\\z)|\x1b[ -/]*[0-~]|\x1b")

// invisible are the characters that nobody sees and a program reads: marks of direction,
// separators of lines, fillers, and variation selectors and tags, which can carry whole
// sentences.
var invisible = []*unicode.RangeTable{unicode.Cf, unicode.Zl, unicode.Zp, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point}

// Clean returns s as text that is safe to print. It removes terminal sequences, control
// characters, and bidirectional and invisible marks. Of a line with carriage returns it
// keeps what a terminal would show last. Bytes that are not UTF-8 become U+FFFD.
// Newlines and tabs stay.
func Clean(s string) string {
	if isPlain(s) {
		return s
	}
	s = escapes.ReplaceAllString(s, "")
	if strings.Contains(s, "\r") {
		lines := strings.Split(s, "\n")
		for i, l := range lines {
			lines[i] = lastOverwrite(l)
		}
		s = strings.Join(lines, "\n")
	}
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return r
		case r < 0x20, r >= 0x7f && r < 0xa0: // C0, DEL, C1
			return -1
		case r >= 0xa0 && unicode.In(r, invisible...):
			return -1
		}
		return r
	}, strings.ToValidUTF8(s, string(utf8.RuneError)))
}

// lastOverwrite returns what a terminal would show last of a line that carriage returns
// overwrite, as progress bars do.
func lastOverwrite(line string) string {
	line = strings.TrimRight(line, "\r")
	if i := strings.LastIndexByte(line, '\r'); i >= 0 {
		return line[i+1:]
	}
	return line
}

func isPlain(s string) bool {
	for i := range len(s) {
		if c := s[i]; c >= 0x7f || c < 0x20 && c != '\n' && c != '\t' {
			return false
		}
	}
	return true
}
