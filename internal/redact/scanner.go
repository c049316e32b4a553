package redact

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"strings"
	"sync"

	"github.com/megatron-ops/megatron-ops/internal/lazy"
)

// scannerRules are the rules of gitleaks (MIT licence, see gitleaks-NOTICE beside
// this file), which knows the forms of some two hundred services' keys.
//
//go:generate sh -c "go run ../../tools/secretrules v8.30.1 > gitleaks.jsonl"
//go:embed gitleaks.jsonl
var scannerRules []byte

// A scannerRule finds one service's keys, in texts that contain one of its words.
type scannerRule struct {
	Words []string `json:"keywords"` // in lower case
	Expr  string   `json:"regex"`
	Group int      `json:"group"`
	re    *lazy.Pattern
}

var scanners = sync.OnceValue(func() (rules []scannerRule) {
	for d := json.NewDecoder(bytes.NewReader(scannerRules)); d.More(); {
		var r scannerRule
		if err := d.Decode(&r); err != nil {
			panic("redact: the embedded rules cannot be read: " + err.Error())
		}
		r.re = lazy.New(r.Expr)
		rules = append(rules, r)
	}
	return rules
})

// mask hides the first non-empty group from r.Group on.
func (r scannerRule) mask(s string) string {
	var b strings.Builder
	last := 0
	for _, m := range r.re.FindAllStringSubmatchIndex(s, -1) {
		at := 2 * r.Group
		for at+2 < len(m) && m[at] == m[at+1] {
			at += 2
		}
		from, to := m[at], m[at+1]
		if from == to {
			continue
		}
		b.WriteString(s[last:from])
		b.WriteString(Mask)
		last = to
	}
	b.WriteString(s[last:])
	return b.String()
}
