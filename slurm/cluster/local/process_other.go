//go:build !linux

package local

import (
	"os/exec"
	"strconv"
	"strings"
)

// adoptOrphans does nothing on systems without such a call: a descendant whose parent
// dies may then outlive its job.
func adoptOrphans() error { return nil }

// isSupervisor reports whether a process supervises a job.
func isSupervisor(pid int) bool {
	line, err := exec.Command("ps", "-o", "command=", "-p", strconv.Itoa(pid)).Output()
	return err == nil && strings.Contains(string(line), " "+standinWord+" supervise ")
}

// parents maps every process of the machine to its parent.
func parents() map[int]int {
	out, err := exec.Command("ps", "-axo", "pid=,ppid=").Output()
	if err != nil {
		return nil
	}
	ppid := map[int]int{}
	for line := range strings.Lines(string(out)) {
		if f := strings.Fields(line); len(f) == 2 {
			pid, _ := strconv.Atoi(f[0])
			ppid[pid], _ = strconv.Atoi(f[1])
		}
	}
	return ppid
}
