package job_test

import (
	"strings"
	"testing"

	"github.com/megatron-ops/megatron-ops/slurm/job"
	"github.com/stretchr/testify/require"
)

// If a custom launcher's words name a program, no other program follows them. Words that
// name none start the specification's script, unless they find a program by themselves.
func TestTheProgramThatACustomLauncherStarts(t *testing.T) {
	for words, want := range map[string]struct{ own, program string }{
		"python train.py":                            {"train.py", "train.py"},
		"env A=b /usr/bin/python3 -u ./train.py":     {"train.py", "train.py"},
		"uv run train.py":                            {"train.py", "train.py"},
		"bash run.sh":                                {"run.sh", "run.sh"},
		"deepspeed --num_gpus 8 train.py --x 1":      {"train.py", "train.py"},
		"python -m torch.distributed.run --x 1 a.py": {"a.py", "a.py"},
		"python":                      {"", job.TrainingProgram},
		"/usr/bin/python3 -u":         {"", job.TrainingProgram},
		"bash":                        {"", job.TrainingProgram},
		"torchrun --nproc-per-node 8": {"", job.TrainingProgram},
		"python -m torch.distributed.run --nnodes={nnodes}": {"", job.TrainingProgram},
		"python -m mine": {"", ""},
		"bash -c true":   {"", ""},
		"my-launcher":    {"", ""},
		"./my-launcher":  {"", ""},
	} {
		s := job.Spec{Launcher: job.Custom, LauncherArgv: strings.Fields(words)}
		require.Equal(t, want.own, s.OwnProgram(), words)
		full := s.WithDefaults()
		require.Equal(t, want.program, full.Program(), words)
		require.Equal(t, want.own == "", full.Script == job.TrainingProgram, words)
		s.Script = "given.py"
		require.Equal(t, "given.py", s.WithDefaults().Script, "what is given follows: %s", words)
	}
	require.Equal(t, "x.py", job.Spec{Script: "x.py"}.WithDefaults().Program())
}
