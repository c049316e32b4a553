package local

import (
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// adoptOrphans makes this process the parent of descendants whose own parent dies, so
// that descendants lists all of them.
func adoptOrphans() error { return unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) }

// isSupervisor reports whether a process supervises a job.
func isSupervisor(pid int) bool {
	line, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/cmdline")
	return err == nil && strings.Contains(string(line), "\x00"+standinWord+"\x00supervise\x00")
}

// parents maps every process of the machine to its parent.
func parents() map[int]int {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	ppid := make(map[int]int, len(entries))
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		stat, err := os.ReadFile("/proc/" + e.Name() + "/stat")
		if err != nil {
			continue // the process has ended meanwhile
		}
		// The command's name, in parentheses, may contain any character.
		rest := string(stat[strings.LastIndexByte(string(stat), ')')+1:])
		if f := strings.Fields(rest); len(f) > 1 && f[0] != "Z" {
			ppid[pid], _ = strconv.Atoi(f[1])
		}
	}
	return ppid
}
