package slurmtest

import "syscall"

// endedWithUs kills a process when its parent ends.
func endedWithUs() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
