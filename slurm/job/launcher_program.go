package job

import (
	"path"
	"slices"
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/shellword"
	"github.com/megatron-ops/megatron-ops/slurm/script"
)

// TrainingProgram is the default program.
const TrainingProgram = "pretrain_gpt.py"

// OwnProgram returns the file that the words of a custom launcher start, such as
// train.py in [python, train.py]. It returns "" if they start none. The specification's
// script is not appended to words that start a program of their own.
func (s Spec) OwnProgram() string {
	if s.Launcher != Custom {
		return ""
	}
	return startedBy(s.LauncherArgv)
}

// StartsModule reports whether the words of a custom launcher end in -m, so that script
// is the name of a module and no file.
func (s Spec) StartsModule() bool {
	return s.Launcher == Custom && len(s.LauncherArgv) > 0 && s.LauncherArgv[len(s.LauncherArgv)-1] == "-m"
}

// Program returns the file that the launch starts. It returns "" if the program is
// known only to a custom launcher.
func (s Spec) Program() string {
	if s.Launcher != Custom {
		return s.Script
	}
	words := slices.Clone(s.LauncherArgv)
	if s.Script != "" {
		words = append(words, s.Script)
	}
	return startedBy(words)
}

// startedBy returns the file that a command gives to Python, to a shell or to a
// launcher such as torchrun. It returns "" for a module, and if the program is the
// command itself.
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
