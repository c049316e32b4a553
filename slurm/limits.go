package slurm

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/lazy"
)

// A Limit bounds what an account, a user or a QOS may have (resource_limits.html
// of Slurm's documentation).
type Limit struct {
	// Of says whose it is: "account research", "alice in research", "QOS short",
	// "alice under QOS short".
	Of string `json:"of"`
	// Name is Slurm's own, such as GrpTRES, MaxTRESPU or MaxWallPJ.
	Name string `json:"limit"`
	// TRES is what is counted, such as "gres/gpu"; "" for jobs and minutes.
	TRES string `json:"tres,omitempty"`
	Max  int64  `json:"max"`
	Used int64  `json:"used"`
}

// Left is how much of the limit is left.
func (l Limit) Left() int64 { return max(l.Max-l.Used, 0) }

// String is the limit as a person would say it.
func (l Limit) String() string {
	what := l.Name
	if l.TRES != "" {
		what += " " + l.TRES
	}
	return fmt.Sprintf("%s of %s: %d, %d taken", what, l.Of, l.Max, l.Used)
}

// An Ask is what a job would take, in Slurm's own units.
type Ask struct {
	// TRES counts what it takes: "node", "gres/gpu", "cpu".
	TRES    map[string]int64
	Minutes int64 // 0: not known
}

// A Breach is a limit that a request does not fit in.
type Breach struct {
	Limit
	// Asked is what the request would take of it.
	Asked int64 `json:"asked"`
	// Never reports that waiting does not help: it is more than the whole limit,
	// or the submission itself is refused.
	Never bool `json:"never"`
}

// Breach tells whether a job that asks for a would break the limit.
func (l Limit) Breach(a Ask) (Breach, bool) {
	b := Breach{Limit: l}
	switch {
	case strings.HasSuffix(l.Name, "WallPJ"):
		b.Asked, b.Never = a.Minutes, true
		return b, a.Minutes > l.Max
	case l.Name == "GrpWall":
		b.Asked = a.Minutes
	case strings.Contains(l.Name, "SubmitJobs"):
		b.Asked, b.Never = 1, true
	case strings.Contains(l.Name, "JobsAccrue"):
		return b, false // it slows the ageing of jobs and stops none
	case strings.Contains(l.Name, "Jobs"):
		b.Asked = 1
	case strings.Contains(l.Name, "TRESMins"), strings.Contains(l.Name, "TRESRunMins"):
		b.Asked = a.TRES[l.TRES] * a.Minutes
	case strings.HasSuffix(l.Name, "TRESPN"):
		if n := a.TRES["node"]; n > 0 {
			b.Asked = a.TRES[l.TRES] / n
		}
	default:
		b.Asked = a.TRES[l.TRES]
	}
	b.Never = b.Never || b.Asked > l.Max
	return b, b.Asked > 0 && l.Used+b.Asked > l.Max
}

// What scontrol show assoc_mgr prints.
var (
	limitWord   = lazy.New(`((?:Grp|Max)[A-Za-z]+)=(\S*)`)
	namedByID   = lazy.New(`^(.*)\((\d+)\)$`)
	apiece      = lazy.New(`([^\s{]+)=\{([^}]*)\}`)
	boundAndUse = lazy.New(`^(\d+)(?:\.\d+)?(?:\((\d+)(?:\.\d+)?\))?$`)
)

// ParseLimits reads what scontrol --oneliner show assoc_mgr flags=assoc,qos
// printed, as far as it binds user's jobs in account under qos; "" for account
// is the user's default. Limits that are not set are left out.
func ParseLimits(out, user, account, qos string) []Limit {
	type record struct {
		account, user, parent string
		usual                 bool
		line                  string
	}
	name := func(s string) string {
		if m := namedByID.FindStringSubmatch(s); m != nil {
			return m[1]
		}
		return s
	}
	var records []record
	var qosLine, uid string
	for line := range strings.Lines(out) {
		v := map[string]string{}
		for w := range strings.FieldsSeq(line) {
			key, value, ok := strings.Cut(w, "=")
			if _, had := v[key]; ok && !had {
				v[key] = value
			}
		}
		switch {
		case v["ClusterName"] != "":
			r := record{v["Account"], name(v["UserName"]), name(v["ParentAccount"]), v["DefAssoc"] == "Yes", line}
			if m := namedByID.FindStringSubmatch(v["UserName"]); m != nil && r.user == user {
				uid = m[2]
			}
			if r.user == "" || r.user == user {
				records = append(records, r)
			}
		case v["QOS"] != "" && name(v["QOS"]) == qos:
			qosLine = line
		}
	}
	if i := slices.IndexFunc(records, func(r record) bool { return r.user == user && r.usual }); account == "" && i >= 0 {
		account = records[i].account
	}
	var all []Limit
	for _, r := range records {
		if r.user == user && r.account == account {
			all = append(all, limitsIn(r.line, user+" in "+account)...)
		}
	}
	for at, depth := account, 0; at != "" && depth < 32; depth++ {
		i := slices.IndexFunc(records, func(r record) bool { return r.user == "" && r.account == at })
		if i < 0 {
			break
		}
		all = append(all, limitsIn(records[i].line, "account "+at)...)
		at = records[i].parent
	}
	shared, apart, _ := strings.Cut(qosLine, "Account Limits=")
	all = append(all, limitsIn(shared, "QOS "+qos)...)
	accounts, users, _ := strings.Cut(apart, "User Limits=")
	for _, m := range apiece.FindAllStringSubmatch(accounts, -1) {
		if m[1] == account {
			all = append(all, limitsIn(m[2], "account "+account+" under QOS "+qos)...)
		}
	}
	// A user goes by the number in 22.05, as name(number) from 23.11 on.
	for _, m := range apiece.FindAllStringSubmatch(users, -1) {
		if m[1] == uid || name(m[1]) == user {
			all = append(all, limitsIn(m[2], user+" under QOS "+qos)...)
		}
	}
	return all
}

// limitsIn are the limits that are set in a record.
func limitsIn(record, of string) []Limit {
	var all []Limit
	add := func(name, tres, value string) {
		m := boundAndUse.FindStringSubmatch(value)
		if m == nil {
			return
		}
		l := Limit{Of: of, Name: name, TRES: tres}
		l.Max, _ = strconv.ParseInt(m[1], 10, 64)
		l.Used, _ = strconv.ParseInt(m[2], 10, 64)
		all = append(all, l)
	}
	for _, m := range limitWord.FindAllStringSubmatch(record, -1) {
		name, value := m[1], m[2]
		if !strings.Contains(name, "TRES") {
			add(name, "", value)
			continue
		}
		for item := range strings.SplitSeq(value, ",") {
			tres, n, ok := strings.Cut(item, "=")
			if ok {
				add(name, tres, n)
			}
		}
	}
	return all
}
