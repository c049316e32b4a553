//go:build !linux

package slurmtest

import "syscall"

// endedWithUs does nothing on other systems, which have no Slurm to test with either.
func endedWithUs() *syscall.SysProcAttr { return nil }

// TempInMemory does nothing on other systems.
func TempInMemory() {}
