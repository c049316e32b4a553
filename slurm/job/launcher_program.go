package job

import (
	"path"
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/shellword"
	"github.com/megatron-ops/megatron-ops/slurm/script"
)

// TrainingProgram is what is trained with where nothing names a program.
const TrainingProgram = "pretrain_gpt.py"

// OwnProgram is the file that a custom launcher's own words start, as train.py in
// [python, train.py]; empty where they start none. No other program follows such words.
func (s Spec) OwnProgram() string {
	if s.Launcher != Custom {
		return ""
	}
	return startedBy(s.LauncherArgv)
}

// Program is the file that the launch starts by its name; empty where a custom
// launcher finds its program by itself.
func (s Spec) Program() string {
	if s.Launcher != Custom {
		return s.Script
	}
	words := append([]string{}, s.LauncherArgv...)
	if s.Script != "" {
		words = append(words, s.Script)
	}
	return startedBy(words)
}

// startedBy is the file that a command hands to Python, to a shell or to a launcher
// such as torchrun; empty for a module, and for a program that is the command itself.
func startedBy(words []string) string {
	line := "srun"
	for _, w := range words {
		line += " " + shellword.Bash(w)
	}
	for _, j := range script.Read("launcher_argv", []byte(line+"\n")).Jobs {
		if len(j.Starts) == 0 {
			continue
		}
		start := j.Starts[0]
		program := start.Program.Text()
		if start.Module || start.Launcher == script.Wrapper && path.Base(program) == start.Name() {
			return ""
		}
		return strings.TrimPrefix(program, "./")
	}
	return ""
}
