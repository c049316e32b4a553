package slurm

import (
	"strings"
	"time"
)

// PartitionLimits holds the limits of a partition for one job (scontrol show
// partition). An empty field means that the partition sets no such limit.
type PartitionLimits struct {
	Name         string   `json:"partition"`
	DefaultTimeS *int64   `json:"default_time_s,omitempty"`
	MaxTimeS     *int64   `json:"max_time_s"` // nil: none
	MinNodes     int      `json:"min_nodes,omitempty"`
	MaxNodes     int      `json:"max_nodes,omitempty"` // 0: none
	MaxCPUs      int      `json:"max_cpus_per_node,omitempty"`
	DefMemory    string   `json:"default_memory,omitempty"` // such as "1000 MB per CPU"
	MaxMemory    string   `json:"max_memory,omitempty"`
	Accounts     []string `json:"accounts,omitempty"` // empty: all
	Groups       []string `json:"groups,omitempty"`
	QOS          []string `json:"qos,omitempty"` // the allowed ones; empty: all
	OwnQOS       string   `json:"partition_qos,omitempty"`
	Preempt      string   `json:"preempt_mode,omitempty"`
	Exclusive    bool     `json:"exclusive,omitempty"`
	RootOnly     bool     `json:"root_only,omitempty"`
}

// ParsePartitionLimits reads the output of scontrol --oneliner show partition. Only
// operators write these texts, so splitting at blanks into Key=Value words is safe.
func ParsePartitionLimits(out string) []PartitionLimits {
	var all []PartitionLimits
	for line := range strings.Lines(out) {
		v := keyValues(line)
		if v["PartitionName"] == "" {
			continue
		}
		p := PartitionLimits{
			Name: v["PartitionName"], MinNodes: parseCount(v["MinNodes"]), MaxNodes: parseCount(v["MaxNodes"]),
			MaxCPUs: parseCount(v["MaxCPUsPerNode"]), DefMemory: memoryLimit(v, "Def"), MaxMemory: memoryLimit(v, "Max"),
			Accounts: allowList(v["AllowAccounts"]), Groups: allowList(v["AllowGroups"]), QOS: allowList(v["AllowQos"]),
			OwnQOS: v["QoS"], Exclusive: v["OverSubscribe"] == "EXCLUSIVE", RootOnly: v["RootOnly"] == "YES",
		}
		p.DefaultTimeS, p.MaxTimeS = parseLimit(v["DefaultTime"]), parseLimit(v["MaxTime"])
		if mode := v["PreemptMode"]; mode != "OFF" {
			p.Preempt = mode
		}
		all = append(all, p)
	}
	return all
}

// allowList returns the names on a list of allowed names; nil where everybody is
// allowed.
func allowList(list string) []string {
	if list == "" || list == "ALL" {
		return nil
	}
	return strings.Split(list, ",")
}

func memoryLimit(v map[string]string, which string) string {
	for key, per := range map[string]string{"MemPerCPU": "CPU", "MemPerNode": "node"} {
		if n := v[which+key]; n != "" && n != "UNLIMITED" && n != "0" {
			return n + " MB per " + per
		}
	}
	return ""
}

// A QOS holds the privileges and limits of a quality of service (sacctmgr(1)). An empty
// limit means no limit.
type QOS struct {
	Name       string   `json:"qos"`
	Priority   int      `json:"priority"`
	MaxWall    string   `json:"max_wall,omitempty"`
	MaxTRES    string   `json:"max_tres_per_job,omitempty"`
	MaxTRESPU  string   `json:"max_tres_per_user,omitempty"`
	MaxJobsPU  string   `json:"max_jobs_per_user,omitempty"`
	MaxSubmit  string   `json:"max_submit_per_user,omitempty"`
	GrpTRES    string   `json:"grp_tres,omitempty"`
	Preempts   []string `json:"preempts,omitempty"`
	Flags      []string `json:"flags,omitempty"`
	GraceTimeS int64    `json:"grace_time_s,omitempty"`
}

// QOSFormat is the format= of sacctmgr show qos that ParseQOS expects.
const QOSFormat = "Name,Priority,MaxWall,MaxTRESPerJob,MaxTRESPerUser,MaxJobsPerUser,MaxSubmitJobsPerUser,GrpTRES,Preempt,Flags,GraceTime"

// ParseQOS reads the output of sacctmgr --parsable2 --noheader show qos
// format=QOSFormat.
func ParseQOS(out string) []QOS {
	var all []QOS
	for f := range barRows(out, 11) {
		q := QOS{
			Name: f[0], Priority: parseCount(f[1]), MaxWall: f[2], MaxTRES: f[3], MaxTRESPU: f[4], MaxJobsPU: f[5],
			MaxSubmit: f[6], GrpTRES: f[7], Preempts: allowList(f[8]), Flags: allowList(f[9]),
		}
		if d, ok := ParseDuration(f[10]); ok {
			q.GraceTimeS = int64(d / time.Second)
		}
		all = append(all, q)
	}
	return all
}
