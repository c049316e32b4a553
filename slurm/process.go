package slurm

import (
	"strconv"
	"strings"
)

// A Process runs on a node, for a person or in a state that nothing ends.
type Process struct {
	User     string `json:"user"`
	PID      int    `json:"pid"`
	State    string `json:"state"` // as ps has it; "D" waits in the kernel and cannot be killed
	ElapsedS int64  `json:"elapsed_s"`
	Command  string `json:"command"`
}

// ProcessFormat is the -eo to give ps for ParseProcesses.
const ProcessFormat = "uid=,user:32=,pid=,stat=,etimes=,args="

// firstPerson is the least user id that people have (UID_MIN of login.defs), and
// nobodyID the one that nobody has.
const (
	firstPerson = 1000
	nobodyID    = 65534
)

// ParseProcesses reads what ps printed in ProcessFormat and keeps what a job may
// have left: processes of people, and those that hang in the kernel. The listing
// itself, and the login that it takes, are left out.
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
