package slurmtest

import "syscall"

// endedWithUs makes a process end with the one that started it.
func endedWithUs() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
