package slurm

import (
	"fmt"
	"strconv"
	"strings"
)

// A Priority lists the parts of a pending job's priority (sprio(1)), each already
// weighted by the site.
type Priority struct {
	Job       JobID  `json:"job_id"`
	User      string `json:"user"`
	Total     int64  `json:"total"`
	Age       int64  `json:"age"`
	Account   int64  `json:"association"`
	FairShare int64  `json:"fair_share"`
	Size      int64  `json:"job_size"`
	Partition int64  `json:"partition"`
	QOS       int64  `json:"qos"`
	Nice      int64  `json:"nice"`
}

// A Share is one user's fair-share data in one account (sshare(1)).
type Share struct {
	Account string  `json:"account"`
	User    string  `json:"user"`
	Shares  string  `json:"shares"` // a number, or "parent"
	Norm    float64 `json:"norm_shares"`
	Usage   int64   `json:"raw_usage"` // TRES seconds, decayed
	Used    float64 `json:"effective_usage"`
	// Factor is the fair-share factor, from 0 (far more used than due) to 1.
	Factor float64 `json:"fair_share"`
}

// An Association is a user's right to use an account, with its limits (sacctmgr(1)).
type Association struct {
	Cluster    string   `json:"cluster"`
	Account    string   `json:"account"`
	User       string   `json:"user"`
	Partition  string   `json:"partition,omitempty"` // empty: all
	DefaultQOS string   `json:"default_qos,omitempty"`
	QOS        []string `json:"qos"`
	MaxJobs    string   `json:"max_jobs,omitempty"` // an empty limit means none
	MaxSubmit  string   `json:"max_submit,omitempty"`
	MaxWall    string   `json:"max_wall,omitempty"`
	MaxTRES    string   `json:"max_tres_per_job,omitempty"`
	GrpTRES    string   `json:"grp_tres,omitempty"`
	GrpMinutes string   `json:"grp_tres_mins,omitempty"`
}

// PriorityFormat is the value of sprio --format that ParsePriorities expects.
const PriorityFormat = "%i|%u|%Y|%A|%B|%F|%J|%P|%Q|%N"

// ParsePriorities reads the output of sprio --noheader --format=PriorityFormat.
func ParsePriorities(out string) []Priority {
	var all []Priority
	for f := range barRows(out, 10) {
		var n [10]int64
		for i := 2; i < 10; i++ {
			n[i], _ = strconv.ParseInt(f[i], 10, 64)
		}
		all = append(all, Priority{JobID(f[0]), f[1], n[2], n[3], n[4], n[5], n[6], n[7], n[8], n[9]})
	}
	return all
}

// ShareFormat is the value of sshare --format that ParseShares expects.
const ShareFormat = "Account,User,RawShares,NormShares,RawUsage,EffectvUsage,FairShare"

// ParseShares reads the output of sshare --parsable2 --noheader --format=ShareFormat.
func ParseShares(out string) []Share {
	var all []Share
	for f := range barRows(out, 7) {
		s := Share{Account: f[0], User: f[1], Shares: f[2]}
		s.Norm, _ = strconv.ParseFloat(f[3], 64)
		s.Usage, _ = strconv.ParseInt(f[4], 10, 64)
		s.Used, _ = strconv.ParseFloat(f[5], 64)
		s.Factor, _ = strconv.ParseFloat(f[6], 64)
		all = append(all, s)
	}
	return all
}

// AssociationFormat is the format= of sacctmgr show associations that ParseAssociations
// expects.
const AssociationFormat = "Cluster,Account,User,Partition,DefaultQOS,QOS,MaxJobs,MaxSubmitJobs,MaxWall,MaxTRESPerJob,GrpTRES,GrpTRESMins"

// ParseAssociations reads the output of sacctmgr --parsable2 --noheader show
// associations format=AssociationFormat.
func ParseAssociations(out string) []Association {
	var all []Association
	for f := range barRows(out, 12) {
		a := Association{f[0], f[1], f[2], f[3], f[4], nil, f[6], f[7], f[8], f[9], f[10], f[11]}
		if f[5] != "" {
			a.QOS = strings.Split(f[5], ",")
		}
		all = append(all, a)
	}
	return all
}

// barRows yields the fields of each line of out that has n fields separated by bars.
// Only operators choose the names in these tables, and they contain no bars.
func barRows(out string, n int) func(yield func([]string) bool) {
	return func(yield func([]string) bool) {
		for line := range strings.Lines(out) {
			f := strings.Split(strings.TrimSpace(line), "|")
			if len(f) == n && !yield(f) {
				return
			}
		}
	}
}

// String returns the priority as a sum.
func (p Priority) String() string {
	return fmt.Sprintf("%d = age %d + fair share %d + size %d + partition %d + QOS %d + association %d - nice %d",
		p.Total, p.Age, p.FairShare, p.Size, p.Partition, p.QOS, p.Account, p.Nice)
}
