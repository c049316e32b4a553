// Package recording removes confidential names and texts from a site's recorded
// answers.
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

// An Answer is one query to a site and its answer. With it a fault in the parsing can
// be fixed where no such site exists.
type Answer struct {
	Name  string   `json:"file"` // the name of a file for Text
	Asked []string `json:"asked"`
	Code  int      `json:"exit_code"`
	Error string   `json:"error,omitempty"`
	Text  string   `json:"-"`
}

// Separator separates the fields of recorded listings.
const Separator = "\x1fREC\x1f"

// A mask replaces confidential texts. It keeps only harmless ones: numbers, times, and
// Slurm's own words.
type mask struct {
	nodes map[string]string // prefix of a node's name → replacement
	words map[string]string
}

// Disguise replaces names and free text in recordings. It replaces equal texts by equal
// ones in all recordings, so that the answers still fit together.
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

// splitNode splits a node's name into the part before its number, and the number.
func splitNode(name string) (prefix, number string) {
	prefix = strings.TrimRight(name, "0123456789")
	return prefix, name[len(prefix):]
}

// learn chooses a replacement for the prefix of a node's name.
func (m mask) learn(name string) {
	prefix, _ := splitNode(name)
	if _, known := m.nodes[prefix]; !known {
		m.nodes[prefix] = "node" + strings.Repeat("x", len(m.nodes))
	}
}

// node returns the replacement of a node's name; ok is false for a name that is no
// node's.
func (m mask) node(name string) (other string, ok bool) {
	prefix, number := splitNode(name)
	other, ok = m.nodes[prefix]
	return other + number, ok
}

// plain matches values without any name: numbers, times, spans, ids, and lists of a
// job's resources.
var plain = lazy.New(`^(?:[0-9:.,_%+*TKMGPZ()\[\]/=-]*|(?i:unlimited|infinite|\(null\)|null|n/a|none|unknown|yes|no|all|up|down|` +
	`inactive|drain|normal|force|exclusive|ok))$`)

// counted matches lists of resources: "cpu=2,gres/gpu:h100=16", "gres:gpu:8",
// "gpu:8(IDX:0-7)".
var counted = lazy.New(`^(?:(?:billing|cpu|mem|node|energy|vmem|pages|fs/disk|gres[/:][a-z]+|gpu|` +
	`gres)(?:[:/=][A-Za-z0-9._()-]*)*,?)+(?:\((?:S|IDX):[0-9,-]*\))?$`)

// isSlurmWord reports whether s is one of Slurm's own words, a state or a reason.
func isSlurmWord(s string) bool {
	if slurm.ParseState(s).Explain().Says.EN != "" && isState(slurm.ParseState(s)) {
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

// isState reports whether s is a state of Slurm.
func isState(s slurm.State) bool {
	return slices.ContainsFunc(slurm.States(), func(known slurm.StateMeaning) bool { return known.Word == string(s) })
}

// word returns the replacement of a value.
func (m mask) word(s string) string {
	if first, rest, more := strings.Cut(s, "\n"); more {
		return m.word(first) + "\n" + m.word(rest)
	}
	if plain.MatchString(s) || counted.MatchString(s) || isSlurmWord(s) {
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
		all[i] = m.word(p) // word works line by line, because the last field of a line and the first of the next come as one
	}
	return strings.Join(all, Separator)
}

var pair = lazy.New(`^([A-Za-z][A-Za-z0-9:/_-]*)=(.*)$`)

// pairs replaces the values of Key=Value words, and all other words.
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

// keptText matches the names of JSON fields with Slurm's own words.
var keptText = lazy.New(`^(?:job_state|state|current|state_reason|state_flags|flags|status|type|name_of_signal|release|version|major|` +
	`minor|micro|data_parser|shared|exclusive|show_flags|profile|reason_code|architecture|operating_system|tres.*|` +
	`gres.*|next_state_after_reboot.*|mail_type|power.*|cron.*|oversubscribe)$`)

// document replaces the texts of a JSON document and keeps its structure.
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

// value replaces the texts in a JSON value; key is its field's name.
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

// known replaces the names in a message that already have a replacement.
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

// settings keeps the lines of scontrol show config that influence Slurm's answers.
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

// mostRecorded is the largest number of jobs, nodes or lines of one answer that is
// kept.
const mostRecorded = 40

// shorten keeps the first entries of each list in a JSON document.
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
