package diagnose_test

import (
	"context"
	"strings"
	"testing"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/diagnosetest"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/logfile"
	"github.com/stretchr/testify/require"
)

func TestCompareTellsWhatIsDifferent(t *testing.T) {
	good := "commit: aaaa1111\n" + diagnosetest.PrintedArguments +
		"gpu1:12:12 [0] NCCL INFO Bootstrap : Using ib0:10.1.2.1<0>\ngpu1:12:12 [0] NCCL INFO done\n> building 3 datasets from /d/a ...\n"
	bad := strings.Replace(strings.NewReplacer("aaaa1111", "bbbb2222", "gpu1", "gpu9", "building 3 datasets from /d/a",
		"building 4 datasets from /e/b").Replace(good),
		"micro_batch_size ................................ 4", "micro_batch_size ................................ 8", 1) +
		"WARNING: the link of mlx5_3 trains at 100 Gb/s\nframe #0: c10::Error::Error(c10::SourceLocation) + 0x9d (0x7f16 in /venv/libc10.so)\n" +
		"#1 all_reduce from /venv/torch/distributed/distributed_c10d.py:3068\n==============================\ngpu7:12:12 [0] NCCL INFO named once by another\n" + diagnosetest.OOMLog
	read := func(text string) logfile.Source {
		src, err := logfile.Read("log", strings.NewReader(text))
		require.NoError(t, err)
		return src
	}
	c, err := diagnose.Compare(context.Background(), read(bad), read(good))
	require.NoError(t, err)
	require.Equal(t, []diagnose.Change{{Name: "micro_batch_size", Good: "4", Bad: "8"}}, c.Arguments)
	require.Equal(t, []diagnose.Change{{Name: "commit", Good: "aaaa1111", Bad: "bbbb2222"}}, c.Start)
	require.Equal(t, []string{"gpu9"}, c.Nodes)
	require.Equal(t, "WARNING: the link of mlx5_3 trains at 100 Gb/s", c.New[0].Text)
	for _, l := range c.New {
		require.NotContains(t, l.Text, "datasets", "numbers and paths do not make a new form")
		require.NotRegexp(t, `^(?:frame )?#\d|====`, l.Text, "every failure has these")
	}
	require.Len(t, c.View(lang.ZH).Sections, 4)
	many := ""
	for i := range 41 {
		many += "it warns of " + strings.Repeat("x", i+1) + "\n\n iteration 1/ 500 | elapsed time per iteration (ms): 9.0 | lm loss: 2.0E+00 |\n"
	}
	c, err = diagnose.Compare(context.Background(), read(many), read(good))
	require.NoError(t, err)
	require.Len(t, c.New, 40)
	for _, l := range c.New {
		require.Contains(t, l.Text, "it warns of", "steps are no news")
	}
	const start = "start: attempt=0 node=0 host=gpu1 ranks=0-7 commit=aa dirty=no argv=bb env=cc\n"
	c, err = diagnose.Compare(context.Background(), read(strings.NewReplacer("argv=bb", "argv=dd", "env=cc", "env=ee").Replace(start)+"loading\n"), read(start+"loading\n"))
	require.NoError(t, err)
	require.Equal(t, []diagnose.Change{{Name: "argv", Good: "bb", Bad: "dd"}}, c.Start, "the environment holds paths with the job's number")
	own := func(of string) (text string) {
		for _, name := range []string{"save", "tensorboard_dir", "rank", "local_rank", "wandb_exp_name", "iteration", "consumed_train_samples"} {
			text += "  " + name + " ............................ " + of + "\n"
		}
		return text
	}
	c, err = diagnose.Compare(context.Background(), read(own("7")), read(own("8")))
	require.NoError(t, err)
	require.Empty(t, c.Arguments, "each run has its own")
	same, err := diagnose.Compare(context.Background(), read(good), read(good))
	require.NoError(t, err)
	require.Len(t, same.View(lang.EN).Sections, 1)
}

// Progress bars are no news, however far they came and how fast; what follows one on its line is.
func TestCompareKnowsProgressBars(t *testing.T) {
	read := func(text string) logfile.Source {
		src, err := logfile.Read("log", strings.NewReader(text))
		require.NoError(t, err)
		return src
	}
	good := read("Epoch 1:   0%|          | 0/50 [00:00<?, ?it/s]\rEpoch 1:  50%|█████     | 25/50 [00:03<00:03, 8.20it/s]\nCopy [###   ] 50%\nstep 1/9 done\n")
	bad := read("Epoch 1:   0%|          | 0/50 [00:00<?, ?it/s]\rEpoch 1:  64%|██████▍   | 32/50 [00:32<00:18,  1.05s/it]Killed\nCopy [##### ] 80%\nstep 10/12 done\n")
	c, err := diagnose.Compare(t.Context(), bad, good)
	require.NoError(t, err)
	require.Len(t, c.New, 1)
	require.Equal(t, "Killed", c.New[0].Text)
	require.Equal(t, 1, c.New[0].LineNo)
}
