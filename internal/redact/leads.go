package redact

import "github.com/megatron-ops/megatron-ops/internal/lazy"

// A lead is what a command or a file says right before a secret without naming it. A group
// of its expression is a quote that was opened on the way.
type lead struct {
	expr string
	re   *lazy.Pattern
	keys bool // only what looks like a key follows; other words may as well
}

func leadTo(expr string) lead { return lead{expr, lazy.New(expr), false} }

func leadToKey(expr string) lead { return lead{expr, lazy.New(expr), true} }

// within matches the other words of a command, up to the next command.
const within = `\b[^\n|;]{0,300}?\s`

var leads = []lead{
	// ~/.netrc, and programs that print it: "machine HOST login NAME password SECRET".
	leadTo(`(?i)\b(?:login|machine|user)\s+\S+\s+password\s+`),
	leadTo(`(?i)\bcurl` + within + `(?:-u\s*|--(?:proxy-)?user[ =]\s*)(["']?)[^\s:"'$]+:`),
	leadTo(`\b(?:smbclient|rpcclient)` + within + `-U\s*(["']?)[^\s%"'$]+%`),
	leadTo(`\b(?:sshpass|mysql(?:dump|admin|import|show|check|slap)?|mariadb[\w-]*|mongo\w*|7z)` + within + `-p ?`),
	leadTo(`\b(?:docker|podman|nerdctl|skopeo|crane|apptainer|singularity|helm|oc|az)` + within + `login` + within + `-p ?`),
	leadTo(`\b(?:ipmitool|sqlcmd|bcp|zip|unzip)` + within + `-P ?`),
	leadTo(`\blftp` + within + `-u\s*(["']?)[^\s,"'$]+,`),
	leadTo(`\bssh-keygen` + within + `-N `),
	leadTo(`\bmc (?:alias set|config host add) \S+ \S+ \S+ `),
	leadTo(`\bredis-cli` + within + `-a `),
	leadTo(`\bldap\w+` + within + `-w `),
	leadTo(`(?i)\b(?:requirepass|masterauth|identified by|chpasswd <<<)\s+`),
	leadTo(`\s-pass(?:in|out)?\s+pass:`),
	leadToKey(`\b(?:wandb|swanlab|comet|vault|ngc)\s+login\s+(?:--?[a-z-]+(?:=\S+)?\s+)*`),
	leadToKey(`(?i)\blogin\(\s*(?:(?:key|token)\s*=\s*)?`),
}

// mask hides the values after a lead.
func (l lead) mask(s string) string {
	var out masked
	for _, m := range l.re.FindAllStringSubmatchIndex(s, -1) {
		quote := ""
		if len(m) > 2 {
			quote = s[m[2]:m[3]]
		}
		v := valueAt(s, m[1], quote)
		if word := v.text(s); !v.isHarmless(s) && word[0] != '-' && (!l.keys || isKey(word)) {
			out.hide(s, v.from, v.to)
		}
	}
	return out.of(s)
}
