package redact

import (
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/lazy"
)

// A secretForm is one way in which secrets are written: what expr matches. group is the
// part to hide.
type secretForm struct {
	name  string
	expr  string
	group int
	re    *lazy.Pattern // of expr
}

// keyMaterial is the form that its mixed letters distinguish from a hash.
const keyMaterial = "key material"

func form(name, expr string, group int) secretForm {
	return secretForm{name, expr, group, lazy.New(expr)}
}

var forms = []secretForm{
	form("private key block", `(?s)-----BEGIN [A-Z0-9 ]*PRIVATE KEY( BLOCK)?-----.*?(?:-----END [A-Z0-9 ]*PRIVATE KEY( BLOCK)?-----|\z)`, 0),
	// A line of a key that begins elsewhere: base64 and nothing else.
	form(keyMaterial, `(?m)^(?:[^\s]{1,40}[:|]\s*)?([A-Za-z0-9+/]{48,80}={0,2})[ \t]*$`, 1),
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
	form("password in an address", `[A-Za-z][A-Za-z0-9+.-]*://[^\s/:@'"]*:([^\s/'"]+)@`, 1),
	// A token in place of a name: https://TOKEN@host. A short one is a login.
	form("token in an address", `[A-Za-z][A-Za-z0-9+.-]*://([A-Za-z0-9_~.+-]{20,})@`, 1),
	form("signed address", `(?i)[?&](?:X-Amz-Signature|X-Amz-Credential|X-Amz-Security-Token|X-Goog-Signature|Signature|sig|access_token|`+
		`token|api_key|key)=([^&\s"']+)`, 1),
	form("cookie", `(?i)\bcookie["']?\s*[:=]\s*["']?[\w.-]+=([^\s"';,]{8,})`, 1),
	form("piped password", `\becho\s+(?:-n\s+)?["']?([^\n"'|]{4,}?)["']?\s*\|[^\n|]{0,200}(?:--password-stdin|--stdin|\bsudo -S|\bchpasswd)`, 1),
	// A line of ~/.pgpass: HOST:PORT:DATABASE:USER:PASSWORD.
	form("pgpass", `(?m)^[^\s:]+:(?:5432|5433|6432):[^\s:]+:[^\s:]+:(\S+)`, 1),
}

// mask hides what a form matches. What stands for a secret in an instruction stays.
func (f secretForm) mask(s string) string {
	var out masked
	for _, m := range f.re.FindAllStringSubmatchIndex(s, -1) {
		from, to := m[2*f.group], m[2*f.group+1]
		switch v := s[from:to]; {
		case strings.HasPrefix(v, Mask[:len(Mask)-1]):
		case f.name == keyMaterial && !hasMixedCharacters(v):
		case f.group > 0 && isPlaceholder(v):
		default:
			out.hide(s, from, to)
		}
	}
	return out.of(s)
}

// A masked is a text of which parts are hidden, from its beginning on.
type masked struct {
	b    strings.Builder
	last int
}

// hide hides a part of s after those that are already hidden.
func (m *masked) hide(s string, from, to int) {
	if from < m.last {
		return
	}
	m.b.WriteString(s[m.last:from])
	m.b.WriteString(Mask)
	m.last = to
}

// of returns s without what is hidden.
func (m *masked) of(s string) string {
	if m.last == 0 {
		return s
	}
	m.b.WriteString(s[m.last:])
	return m.b.String()
}

// hasMixedCharacters reports whether a word has capitals, small letters and digits,
// which base64 has and a hexadecimal hash does not.
func hasMixedCharacters(s string) bool {
	return strings.ContainsAny(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") && strings.ContainsAny(s, "ghijklmnopqrstuvwxyz") && strings.ContainsAny(s, "0123456789+/")
}
