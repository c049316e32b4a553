package local

import (
	"os"
	"slices"
	"syscall"
)

// descendants lists the processes below pid, parents before children. It leaves out the
// supervisor of a job that was submitted from within the job of pid, with everything that
// the supervisor has started: that job goes on without the one that submitted it.
func descendants(pid int) []int {
	children := map[int][]int{}
	for p, parent := range parents() {
		children[parent] = append(children[parent], p)
	}
	var all []int
	for next := children[pid]; len(next) > 0; {
		next = slices.DeleteFunc(next, isSupervisor)
		all = append(all, next...)
		var below []int
		for _, p := range next {
			below = append(below, children[p]...)
		}
		next = below
	}
	return all
}

// signalAll sends sig to every process below pid except those in except, and reports
// whether it reached any.
func signalAll(pid int, sig syscall.Signal, except ...int) bool {
	any := false
	for _, p := range descendants(pid) {
		if !slices.Contains(except, p) && syscall.Kill(p, sig) == nil {
			any = true
		}
	}
	return any
}

// killAll ends every process below this one, including those forked meanwhile, and
// reaps the orphans that this process has adopted.
func killAll() {
	for range 100 {
		if !signalAll(os.Getpid(), syscall.SIGKILL) {
			break
		}
	}
	for {
		if pid, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil); pid <= 0 || err != nil {
			return
		}
	}
}
