package slurm

import (
	"strconv"
	"strings"
)

// A Process is a process that a job may have left on a node.
type Process struct {
	User     string `json:"user"`
	PID      int    `json:"pid"`
	State    string `json:"state"` // as ps prints it; "D" waits in the kernel and cannot be killed
	ElapsedS int64  `json:"elapsed_s"`
	Command  string `json:"command"`
}

// ProcessFormat is the value of ps -eo that ParseProcesses expects.
const ProcessFormat = "uid=,user:32=,pid=,stat=,etimes=,args="

// firstPerson is the lowest user id of a person (UID_MIN of login.defs); nobodyID is
// the id of the user nobody.
const (
	firstPerson = 1000
	nobodyID    = 65534
)

// ParseProcesses reads the output of ps -eo ProcessFormat and keeps what a job may have
// left behind: processes of people, and processes that hang in the kernel. It leaves
// out the ps command and its ssh login.
func ParseProcesses(out string) []Process {
	var all []Process
	for line := range strings.Lines(out) {
		f := strings.Fields(line)
		if len(f) < 6 {
			continue
		}
		uid, err := strconv.Atoi(f[0])
		if err != nil {
			continue
		}
		p := Process{User: f[1], State: f[3], Command: strings.Join(f[5:], " ")}
		p.PID, _ = strconv.Atoi(f[2])
		p.ElapsedS, _ = strconv.ParseInt(f[4], 10, 64)
		person := uid >= firstPerson && uid != nobodyID
		hangs := strings.HasPrefix(p.State, "D") && p.ElapsedS > 60 && !strings.HasPrefix(p.Command, "[")
		ours := strings.Contains(p.Command, ProcessFormat) || strings.HasPrefix(p.Command, "sshd") ||
			strings.HasPrefix(p.Command, "(sd-pam)") || strings.Contains(p.Command, "systemd --user")
		if (person || hangs) && !ours {
			all = append(all, p)
		}
	}
	return all
}
