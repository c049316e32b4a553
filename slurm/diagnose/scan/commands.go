package scan

import (
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/lazy"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/logline"
)

// startsProgram matches the command of a script that starts a program, as a shell shows it with "set -x".
var startsProgram = lazy.New(`^\++ (?:exec |time |env |[A-Za-z_]\w*=\S* )*(?:\S*/)?(?:srun|python[\d.]*|torchrun|accelerate|deepspeed|mpirun|mpiexec|` +
	`apptainer|singularity|enroot|ba?sh)(?: |$)`)

// manyCommands bounds the commands that are kept of one file.
const manyCommands = 64

// command notes the first of the commands that start a program and differ in numbers only: several ranks'
// shells show the same command.
func (s *scanner) command(text string, off int64) {
	if !strings.HasPrefix(text, "+") || len(s.Commands) >= manyCommands || !startsProgram.MatchString(text) {
		return
	}
	form := logline.Template(text)
	for _, m := range s.Commands {
		if logline.Template(m.Text) == form {
			return
		}
	}
	s.Commands = append(s.Commands, Mark{Off: off, Text: text})
}

// CommandAfter reports whether the script started another program after a place, as "set -x" shows.
func (f *Facts) CommandAfter(off int64) bool {
	n := len(f.Commands)
	return n > 1 && f.Commands[n-1].Off > off
}
