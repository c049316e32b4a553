// Package recording takes out of a site's recorded answers what it would not tell
// strangers.
package recording

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/megatron-ops/megatron-ops/internal/lazy"
	"github.com/megatron-ops/megatron-ops/internal/redact"
	"github.com/megatron-ops/megatron-ops/slurm"
	"github.com/megatron-ops/megatron-ops/slurm/hostlist"
)

// An Answer is one question to a site and what it said, so that a fault in
// reading it can be mended where there is no such site.
type Answer struct {
	Name  string   `json:"file"` // of a file that would hold Text
	Asked []string `json:"asked"`
	Code  int      `json:"exit_code"`
	Error string   `json:"error,omitempty"`
	Text  string   `json:"-"`
}

// Separator stands between the fields of recorded listings.
const Separator = "\x1fREC\x1f"

// A mask replaces what a site would not tell strangers. Only what is known to be
// harmless is kept: numbers, times, and the words that Slurm itself says.
type mask struct {
	nodes map[string]string // prefix of a node's name → another
	words map[string]string
}

// Disguise replaces names and free text in recordings, the same by the same in
// all of them, so that one answer still fits the other.
func Disguise(all []Answer) {
	m := mask{nodes: map[string]string{}, words: map[string]string{}}
	for _, r := range all {
		if r.Name == "nodes.txt" {
			if nodes, err := slurm.ParseNodes(r.Text, Separator); err == nil {
				for _, n := range nodes {
					m.learn(n.Name)
				}
			}
		}
		var doc struct {
			Nodes []struct {
				Name string `json:"name"`
			} `json:"nodes"`
		}
		if strings.HasSuffix(r.Name, ".json") && json.Unmarshal([]byte(r.Text), &doc) == nil {
			for _, n := range doc.Nodes {
				m.learn(n.Name)
			}
		}
	}
	for i := range all {
		r := &all[i]
		switch {
		case r.Text == "" || r.Name == "version.txt":
		case r.Name == "config.txt":
			r.Text = settings(r.Text)
		case strings.HasSuffix(r.Name, ".json"):
			r.Text = m.document(r.Text)
		case r.Name == "limits.txt" || r.Name == "jobs.txt":
			r.Text = m.pairs(r.Text)
		default:
			r.Text = m.fields(r.Text)
		}
	}
	for i := range all {
		all[i].Error = m.known(redact.Text(all[i].Error))
	}
}

// parts are a node's name before its number, and the number.
func parts(name string) (prefix, number string) {
	prefix = strings.TrimRight(name, "0123456789")
	return prefix, name[len(prefix):]
}

// learn gives a node's name, all but its number, another.
func (m mask) learn(name string) {
	prefix, _ := parts(name)
	if _, known := m.nodes[prefix]; !known {
		m.nodes[prefix] = "node" + strings.Repeat("x", len(m.nodes))
	}
}

// node is another name for a node; ok is false for what is none.
func (m mask) node(name string) (other string, ok bool) {
	prefix, number := parts(name)
	other, ok = m.nodes[prefix]
	return other + number, ok
}

// plain are values that tell nothing of anybody: numbers, times, spans, ids, and
// lists of what a job was given.
var plain = lazy.New(`^(?:[0-9:.,_%+*TKMGPZ()\[\]/=-]*|(?i:unlimited|infinite|\(null\)|null|n/a|none|unknown|yes|no|all|up|down|` +
	`inactive|drain|normal|force|exclusive|ok))$`)

// counted are lists of resources: "cpu=2,gres/gpu:h100=16", "gres:gpu:8",
// "gpu:8(IDX:0-7)".
var counted = lazy.New(`^(?:(?:billing|cpu|mem|node|energy|vmem|pages|fs/disk|gres[/:][a-z]+|gpu|` +
	`gres)(?:[:/=][A-Za-z0-9._()-]*)*,?)+(?:\((?:S|IDX):[0-9,-]*\))?$`)

// said reports whether s is a word that Slurm itself says: a state or a reason.
func said(s string) bool {
	if slurm.ParseState(s).Explain().Says.EN != "" && isWord(slurm.ParseState(s)) {
		return true
	}
	if _, known := slurm.KnownReason(s); known && !strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsLetter(r) }) {
		return true
	}
	for _, r := range slurm.Reasons() {
		if r.Word == s {
			return true
		}
	}
	base, _ := strings.CutSuffix(strings.TrimRight(strings.ToLower(s), "*~#!%$@^-"), "+")
	return slices.Contains([]string{
		"idle", "allocated", "alloc", "mixed", "mix", "down", "drained", "drain", "draining", "drng", "completing", "comp", "maint", "reserved", "planned", "unknown",
		"future", "fail", "failing", "powered_down", "powering_up", "reboot", "inval", "not_responding", "cloud", "dynamic_norm",
	}, base)
}

func isWord(s slurm.State) bool {
	return slices.ContainsFunc(slurm.States(), func(known slurm.StateMeaning) bool { return known.Word == string(s) })
}

// word is what stands in place of a value.
func (m mask) word(s string) string {
	if first, rest, more := strings.Cut(s, "\n"); more {
		return m.word(first) + "\n" + m.word(rest)
	}
	if plain.MatchString(s) || counted.MatchString(s) || said(s) {
		return s
	}
	if names, err := hostlist.Expand(s); err == nil && len(names) > 0 {
		others := make([]string, 0, len(names))
		for _, n := range names {
			if other, ok := m.node(n); ok {
				others = append(others, other)
			}
		}
		if len(others) == len(names) {
			return hostlist.Compress(others)
		}
	}
	if name, isDefault := strings.CutSuffix(s, "*"); isDefault && name != "" {
		return m.word(name) + "*" // the default partition
	}
	other, known := m.words[s]
	if !known {
		other = fmt.Sprintf("x%d", len(m.words)+1)
		if strings.HasPrefix(s, "/") {
			other = "/" + other
		}
		m.words[s] = other
	}
	return other
}

// fields replaces the fields of a listing.
func (m mask) fields(text string) string {
	if lines := strings.SplitAfter(text, "\n"); len(lines) > 10*mostRecorded {
		text = strings.Join(lines[:10*mostRecorded], "")
	}
	all := strings.Split(text, Separator)
	for i, p := range all {
		all[i] = m.word(p) // line by line: the last field of one line meets the first of the next
	}
	return strings.Join(all, Separator)
}

var pair = lazy.New(`^([A-Za-z][A-Za-z0-9:/_-]*)=(.*)$`)

// pairs replaces the values of Key=Value words, and every word that is none.
func (m mask) pairs(text string) string {
	var b strings.Builder
	kept := 0
	for line := range strings.Lines(text) {
		if kept++; kept > mostRecorded {
			break
		}
		words := strings.Fields(line)
		for i, w := range words {
			if p := pair.FindStringSubmatch(w); p != nil {
				words[i] = p[1] + "=" + m.word(p[2])
			} else {
				words[i] = m.word(w)
			}
		}
		b.WriteString(strings.Join(words, " ") + "\n")
	}
	return b.String()
}

// keptText matches the fields of JSON documents whose text is Slurm's own.
var keptText = lazy.New(`^(?:job_state|state|current|state_reason|state_flags|flags|status|type|name_of_signal|release|version|major|` +
	`minor|micro|data_parser|shared|exclusive|show_flags|profile|reason_code|architecture|operating_system|tres.*|` +
	`gres.*|next_state_after_reboot.*|mail_type|power.*|cron.*|oversubscribe)$`)

// document replaces the texts of a JSON document; its form stays.
func (m mask) document(text string) string {
	doc, ok := shorten(text)
	if !ok {
		return m.pairs(text)
	}
	b, err := json.MarshalIndent(m.value("", doc), "", " ")
	if err != nil {
		return ""
	}
	return string(b) + "\n"
}

func (m mask) value(key string, v any) any {
	switch v := v.(type) {
	case map[string]any:
		for name, x := range v {
			v[name] = m.value(name, x)
		}
	case []any:
		for i, x := range v {
			v[i] = m.value(key, x)
		}
	case string:
		if key == "error" || key == "description" || key == "warning" {
			return m.known(redact.Text(v))
		}
		if keptText.MatchString(key) && (counted.MatchString(v) || plain.MatchString(v) || redact.Text(v) == v && !strings.ContainsAny(v, "/@ ")) {
			return v
		}
		return m.word(v)
	case float64:
		if key == "user_id" || key == "group_id" || key == "uid" || key == "gid" {
			return 1000
		}
	}
	return v
}

// known replaces, in a message, the names that were met before.
func (m mask) known(text string) string {
	for name, other := range m.words {
		if len(name) > 2 {
			text = strings.ReplaceAll(text, name, other)
		}
	}
	for prefix, other := range m.nodes {
		if len(prefix) > 1 {
			text = strings.ReplaceAll(text, prefix, other)
		}
	}
	return text
}

// settings keeps the lines of scontrol show config that change what Slurm
// answers.
func settings(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		name, _, _ := strings.Cut(line, "=")
		switch strings.TrimSpace(name) {
		case "AccountingStorageEnforce", "AccountingStorageTRES", "AccountingStorageType", "AccountingStoreFlags", "AuthType", "AuthAltTypes",
			"DataParserParameters", "EnforcePartLimits", "FairShareDampeningFactor", "FederationParameters", "GresTypes", "JobRequeue", "KillWait",
			"MaxArraySize", "MaxJobCount", "MaxJobId", "MessageTimeout", "MinJobAge", "PreemptMode", "PreemptType", "PriorityType", "PrivateData",
			"SchedulerType", "SelectType", "SelectTypeParameters", "SLURM_VERSION", "SlurmdTimeout", "TaskPlugin", "TreeWidth":
			b.WriteString(line)
		}
	}
	return b.String()
}

// mostRecorded is how many jobs, nodes or lines of one answer are kept.
const mostRecorded = 40

// shorten keeps the first of a list's entries in a JSON document.
func shorten(text string) (doc map[string]any, ok bool) {
	if json.Unmarshal([]byte(text), &doc) != nil {
		return nil, false
	}
	for name, v := range doc {
		if list, is := v.([]any); is {
			doc[name] = list[:min(len(list), mostRecorded)]
		}
	}
	return doc, true
}
