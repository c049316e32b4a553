package local

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"github.com/megatron-ops/megatron-ops/internal/shellword"
)

// standinWord is the first argument, and standinMark the variable, that tell this
// binary to be a stand-in. Both are needed: nobody types the word by chance, and a
// child does not inherit the variable, because Standin unsets it.
const (
	standinWord = "__standin"
	standinMark = "MEGATRON_OPS_STANDIN"
)

// standinCalled reports that main has called Standin. Without that call a supervisor
// would be the whole program again, and start further supervisors without end.
var standinCalled bool

// standins maps the names of the stand-ins to their main functions.
var standins = map[string]func(args []string) int{
	"supervise": superviseMain,
	"run":       runMain,
	"srun":      srunMain,
	"scontrol":  scontrolMain,
	"scancel":   scancelMain,
	"sbatch":    sbatchMain,
}

// Standin runs this process as a stand-in if it was started as one, and returns its
// exit code; ok is false in every other process. main, or TestMain, must call it first.
func Standin(argv []string) (code int, ok bool) {
	standinCalled = true
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

// commands are the stand-ins in a job's PATH.
var commands = []string{"srun", "scontrol", "scancel", "sbatch"}

// writeCommands writes the stand-ins into dir, as shell scripts that start self.
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

// self returns a path to this binary that stays valid while this process lives, even
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
