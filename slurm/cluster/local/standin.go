package local

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"github.com/megatron-ops/megatron-ops/internal/shellword"
)

// standinWord is the first argument, and standinMark the variable, by which this
// binary knows that it is to be a stand-in. Both are needed: a person cannot
// type the one by chance, nor a child inherit the other.
const (
	standinWord = "__standin"
	standinMark = "MEGATRON_OPS_STANDIN"
)

// standing reports that main has called Standin. Without the call a supervisor
// would be the whole program again, and so on for ever.
var standing bool

// standins are what this binary can be besides itself.
var standins = map[string]func(args []string) int{
	"supervise": superviseMain,
	"run":       runMain,
	"srun":      srunMain,
	"scontrol":  scontrolMain,
	"scancel":   scancelMain,
	"sbatch":    sbatchMain,
}

// Standin runs this process as a stand-in where it was started as one, and
// returns its exit code; ok is false in every other process. It must be the
// first thing that main, or TestMain, does.
func Standin(argv []string) (code int, ok bool) {
	standing = true
	if len(argv) < 3 || argv[1] != standinWord || os.Getenv(standinMark) == "" {
		return 0, false
	}
	_ = os.Unsetenv(standinMark)
	f, known := standins[argv[2]]
	if !known {
		fmt.Fprintf(os.Stderr, "%s: no stand-in of this name\n", argv[2])
		return 127, true
	}
	return f(argv[3:]), true
}

// commands are the stand-ins that a job finds in its PATH.
var commands = []string{"srun", "scontrol", "scancel", "sbatch"}

// writeCommands puts the stand-ins into dir, as scripts that start self.
func writeCommands(dir, self string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for _, name := range commands {
		text := fmt.Sprintf("#!/bin/sh\n%s=1 exec %s %s %s \"$@\"\n", standinMark, shellword.POSIX(self), standinWord, name)
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o755); err != nil {
			return err
		}
	}
	return nil
}

// self is a path to this binary that stays good while this process lives, even
// where the file is replaced or removed meanwhile, as `go run` does.
func self() string {
	if proc := "/proc/" + strconv.Itoa(os.Getpid()) + "/exe"; isFile(proc) {
		return proc
	}
	path, _ := os.Executable()
	return path
}

func isFile(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
