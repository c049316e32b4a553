package slurm

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/lazy"
)

// A Limit bounds the resources or jobs of an account, a user or a QOS
// (resource_limits.html of Slurm's documentation).
type Limit struct {
	// Of is the owner of the limit: "account research", "alice in research", "QOS
	// short", "alice under QOS short".
	Of string `json:"of"`
	// Name is Slurm's name of the limit, such as GrpTRES, MaxTRESPU or MaxWallPJ.
	Name string `json:"limit"`
	// TRES is the resource that is counted, such as "gres/gpu"; "" where jobs or
	// minutes are counted.
	TRES string `json:"tres,omitempty"`
	Max  int64  `json:"max"`
	Used int64  `json:"used"`
}

// Left returns the part of the limit that is not used, at least 0.
func (l Limit) Left() int64 { return max(l.Max-l.Used, 0) }

// String returns the limit as a phrase for people.
func (l Limit) String() string {
	what := l.Name
	if l.TRES != "" {
		what += " " + l.TRES
	}
	return fmt.Sprintf("%s of %s: %d, %d taken", what, l.Of, l.Max, l.Used)
}

// A ResourceRequest holds the resources that a job asks for, in Slurm's own units.
type ResourceRequest struct {
	// TRES maps a resource ("node", "gres/gpu", "cpu") to its amount.
	TRES    map[string]int64
	Minutes int64 // time limit; 0: not known
}

// A Breach is a limit that a request exceeds.
type Breach struct {
	Limit
	// Asked is the request's share of the limited resource.
	Asked int64 `json:"asked"`
	// Never reports that waiting does not help: the request exceeds the whole limit, or
	// Slurm refuses the submission.
	Never bool `json:"never"`
}

// Breach reports whether a job that asks for a exceeds the limit, and by what.
func (l Limit) Breach(a ResourceRequest) (Breach, bool) {
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
		return b, false // this limit slows the ageing of jobs but stops none
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

// The words of scontrol show assoc_mgr.
var (
	limitWord  = lazy.New(`((?:Grp|Max)[A-Za-z]+)=(\S*)`)
	nameAndID  = lazy.New(`^(.*)\((\d+)\)$`)
	perOwner   = lazy.New(`([^\s{]+)=\{([^}]*)\}`)
	maxAndUsed = lazy.New(`^(\d+)(?:\.\d+)?(?:\((\d+)(?:\.\d+)?\))?$`)
)

// ParseLimits reads the output of scontrol --oneliner show assoc_mgr flags=assoc,qos
// and returns the limits that bind user's jobs in account under qos. An empty account
// means the user's default account. Limits without a value are left out.
func ParseLimits(out, user, account, qos string) []Limit {
	type record struct {
		account, user, parent string
		isDefault             bool
		line                  string
	}
	name := func(s string) string {
		if m := nameAndID.FindStringSubmatch(s); m != nil {
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
			if m := nameAndID.FindStringSubmatch(v["UserName"]); m != nil && r.user == user {
				uid = m[2]
			}
			if r.user == "" || r.user == user {
				records = append(records, r)
			}
		case v["QOS"] != "" && name(v["QOS"]) == qos:
			qosLine = line
		}
	}
	if i := slices.IndexFunc(records, func(r record) bool { return r.user == user && r.isDefault }); account == "" && i >= 0 {
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
	for _, m := range perOwner.FindAllStringSubmatch(accounts, -1) {
		if m[1] == account {
			all = append(all, limitsIn(m[2], "account "+account+" under QOS "+qos)...)
		}
	}
	// 22.05 writes a user as a number, 23.11 and later as name(number).
	for _, m := range perOwner.FindAllStringSubmatch(users, -1) {
		if m[1] == uid || name(m[1]) == user {
			all = append(all, limitsIn(m[2], user+" under QOS "+qos)...)
		}
	}
	return all
}

// limitsIn returns the limits with a value in one record, owned by of.
func limitsIn(record, of string) []Limit {
	var all []Limit
	add := func(name, tres, value string) {
		m := maxAndUsed.FindStringSubmatch(value)
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
