package bot_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/bot"
	"github.com/megatron-ops/megatron-ops/bot/terminal"
	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/ops/opstest"
	"github.com/megatron-ops/megatron-ops/internal/store"
	"github.com/megatron-ops/megatron-ops/knowledge"
	"github.com/megatron-ops/megatron-ops/slurm"
)

// A desk is a person at a terminal, with a yard and a clock of the test's own.
type desk struct {
	opstest.Bare
	*bot.Local
	yard  *yard
	asked int // how often the queue was
	now   time.Time
}

// Jobs counts the queries to the queue.
func (d *desk) Jobs(ctx context.Context, f slurm.Filter) ([]slurm.Job, error) {
	d.asked++
	return d.yard.Jobs(ctx, f)
}

func (d *desk) Name() string { return d.yard.Name() }
func (d *desk) Kind() string { return d.yard.Kind() }

func (d *desk) Submit(ctx context.Context, s slurm.Submission) (slurm.JobID, error) {
	return d.yard.Submit(ctx, s)
}

func (d *desk) Job(ctx context.Context, id slurm.JobID) (slurm.Job, error) {
	return d.yard.Job(ctx, id)
}

func (d *desk) Cancel(ctx context.Context, id slurm.JobID) error { return d.yard.Cancel(ctx, id) }

func (d *desk) Find(ctx context.Context, token string, at time.Time) (slurm.JobID, bool, error) {
	return d.yard.Find(ctx, token, at)
}

func sit(t *testing.T) *desk {
	t.Helper()
	st, err := store.Open(t.Context(), filepath.Join(t.TempDir(), "state.db"))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, st.Close()) })
	d := &desk{yard: &yard{jobs: map[slurm.JobID]slurm.Job{}}, now: time.Now()}
	b, err := bot.NewLocal(bot.Config{
		Store: st.Slack(), Now: func() time.Time { return d.now },
		Service: &ops.Service{
			Clusters: map[string]ops.Cluster{"yard": d}, Default: "yard", Now: func() time.Time { return d.now },
			Store:    func() (*store.Store, error) { return st, nil },
			Answerer: func() *knowledge.Answerer { return knowledge.New(knowledge.Options{}) },
		},
	})
	require.NoError(t, err)
	d.Local = b.Local("ada", t.TempDir(), lang.EN)
	return d
}

// flags are valid Megatron flags, and typed is the submission of a job with them.
const (
	flags = "--num-layers 24 --hidden-size 1024 --num-attention-heads 16 --seq-length 2048 --max-position-embeddings 2048 --micro-batch-size 2 --global-batch-size 64 --train-iters 100 --lr 1e-4 --tensor-model-parallel-size 4"
	typed = "submit --yes --name gpt --nodes 2 --gpu h100 --time 1:00:00 --worktree /lustre/m -- " + flags
)

// words joins the texts of all messages.
func words(said []terminal.Message) string {
	var b strings.Builder
	for _, s := range said {
		b.WriteString(s.Text + "\n")
	}
	return b.String()
}

// A job that was submitted at a terminal is reported there when its state changes, once, and
// not any more after its end.
func TestATerminalIsToldOfItsJobs(t *testing.T) {
	t.Parallel()
	d := sit(t)
	look := func() string { return words(d.Look(t.Context())) }
	require.Empty(t, look())
	require.Zero(t, d.asked, "without a job nobody is asked")
	require.Contains(t, words(d.Type(t.Context(), " /megatron "+typed).Said), "4711")
	d.asked = 0
	require.Empty(t, look(), "nothing has changed")
	require.Equal(t, 1, d.asked)

	j := d.yard.jobs["4711"]
	log := filepath.Join(t.TempDir(), "4711.out")
	nan := func(n int) {
		var b strings.Builder
		for i := 1; i <= n; i++ {
			fmt.Fprintf(&b, " [2026-06-11 10:00:%02d.000000] iteration %8d/     100 | consumed samples: 64 | elapsed time per iteration (ms): 1000.0 | lm loss: NAN | grad norm: nan |\n", i, i)
		}
		require.NoError(t, os.WriteFile(log, []byte(b.String()), 0o600))
	}
	nan(40)
	j.State, j.Nodes, j.Stdout = slurm.Running, []string{"n1"}, log
	d.yard.put(j)
	require.Contains(t, look(), "running")
	require.Contains(t, look(), "NaN", "its alarms follow")
	require.Empty(t, look(), "each once")
	d.now = d.now.Add(time.Minute)
	require.Empty(t, look())

	exit := "1:0"
	j.State, j.ExitCode = slurm.Failed, &exit
	require.NoError(t, os.WriteFile(log, []byte("[rank3]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 3 has a total capacity of 79.11 GiB of which 1.00 GiB is free.\n"), 0o600))
	d.yard.put(j)
	ended := look()
	require.Contains(t, ended, "failed")
	require.Contains(t, ended, "memory", "with the cause")
	d.asked = 0
	require.Empty(t, look())
	require.Zero(t, d.asked, "what has ended is not asked for")
}

// The numbers of a running job are read again after fifteen seconds, not earlier.
func TestATerminalReadsNumbersNowAndThen(t *testing.T) {
	t.Parallel()
	d := sit(t)
	d.Type(t.Context(), typed)
	j := d.yard.jobs["4711"]
	j.State, j.Nodes, j.Stdout = slurm.Running, []string{"n1"}, filepath.Join(t.TempDir(), "4711.out")
	require.NoError(t, os.WriteFile(j.Stdout, nil, 0o600))
	d.yard.put(j)
	require.Contains(t, words(d.Look(t.Context())), "running")
	require.Empty(t, d.Look(t.Context()))
	var b strings.Builder
	for i := 1; i <= 40; i++ {
		fmt.Fprintf(&b, " [2026-06-11 10:00:%02d.000000] iteration %8d/     100 | consumed samples: 64 | elapsed time per iteration (ms): 1000.0 | lm loss: NAN | grad norm: nan |\n", i, i)
	}
	require.NoError(t, os.WriteFile(j.Stdout, []byte(b.String()), 0o600))
	d.now = d.now.Add(15*time.Second - 1)
	require.Empty(t, d.Look(t.Context()))
	d.now = d.now.Add(1)
	require.Contains(t, words(d.Look(t.Context())), "NaN")
}

// The form asks for one field after the other, says what is wrong, and submits once it is
// confirmed.
func TestAFormAtATerminal(t *testing.T) {
	t.Parallel()
	d := sit(t)
	require.Empty(t, d.Type(t.Context(), "list").Fields)
	require.Contains(t, words(d.Type(t.Context(), "statsu 4711").Said), "Did you mean")
	r := d.Type(t.Context(), "submit")
	filled := map[string]string{}
	for _, f := range r.Fields {
		require.NotEmpty(t, f.Label, f.Name)
		filled[f.Name] = f.Value
		require.Equal(t, f.Name == "gpu", len(f.Choices) > 0, f.Name)
	}
	require.Contains(t, filled, "worktree")
	require.NotContains(t, filled, "reservation", "what is rarely needed is not asked")
	filled["name"], filled["nodes"], filled["gpu"], filled["worktree"], filled["time"] = "gpt", "two", "h100", "/lustre/m", "1:00:00"
	filled["args"] = flags
	wrong := d.Fill(t.Context(), filled)
	require.Contains(t, wrong.Errors, "nodes")
	require.Empty(t, wrong.Said)
	for _, f := range wrong.Fields {
		require.Equal(t, filled[f.Name], f.Value, "what was typed is kept")
	}
	filled["nodes"] = "2"
	agreed := d.Fill(t.Context(), filled)
	require.Empty(t, agreed.Errors)
	require.Contains(t, words(agreed.Said), "#SBATCH")
	choices := agreed.Said[0].Choices
	require.GreaterOrEqual(t, len(choices), 2)
	require.Contains(t, words(d.Press(t.Context(), choices[len(choices)-1]).Said), "Left as it was")
	require.Zero(t, d.yard.count())
	again := d.Fill(t.Context(), filled)
	choices = again.Said[0].Choices
	require.Contains(t, words(d.Press(t.Context(), choices[len(choices)-2]).Said), "4711")
	require.Equal(t, 1, d.yard.count())
}
