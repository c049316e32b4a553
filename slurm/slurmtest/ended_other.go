//go:build !linux

package slurmtest

import "syscall"

// endedWithUs is Linux's alone; elsewhere there is no Slurm to test with either.
func endedWithUs() *syscall.SysProcAttr { return nil }
