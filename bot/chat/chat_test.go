package chat_test

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"charm.land/lipgloss/v2"
	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/bot"
	"github.com/megatron-ops/megatron-ops/bot/chat"
	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/ops/opstest"
	"github.com/megatron-ops/megatron-ops/internal/store"
	"github.com/megatron-ops/megatron-ops/knowledge"
	"github.com/megatron-ops/megatron-ops/slurm"
)

// A bench is a cluster whose jobs run as soon as somebody looks at them.
type bench struct {
	opstest.Bare
	mu   sync.Mutex
	jobs map[slurm.JobID]slurm.Job
	log  string // what running jobs write
}

func (*bench) Name() string { return "bench" }
func (*bench) Kind() string { return "rest" }

func (b *bench) Submit(_ context.Context, s slurm.Submission) (slurm.JobID, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	id := slurm.JobID(fmt.Sprint(1 + len(b.jobs)))
	b.jobs[id] = slurm.Job{ID: id, Name: s.Name, User: "ada", State: slurm.Pending, Reason: "Priority"}
	return id, nil
}

func (b *bench) Job(_ context.Context, id slurm.JobID) (slurm.Job, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if _, ok := b.jobs[id]; !ok {
		return slurm.Job{}, slurm.JobNotFound(id)
	}
	return b.look(id), nil
}

// look shows a job; a waiting job runs from then on.
func (b *bench) look(id slurm.JobID) slurm.Job {
	j := b.jobs[id]
	if j.State == slurm.Pending {
		later := j
		later.State, later.Nodes, later.Stdout = slurm.Running, []string{"n1"}, b.log
		b.jobs[id] = later
	}
	return j
}

func (b *bench) Jobs(_ context.Context, f slurm.Filter) (rows []slurm.Job, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for id, j := range b.jobs {
		if f.Match(j) {
			rows = append(rows, b.look(id))
		}
	}
	return rows, nil
}

func (b *bench) Cancel(_ context.Context, id slurm.JobID) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	j := b.jobs[id]
	j.State = slurm.Cancelled
	b.jobs[id] = j
	return nil
}

func newBench() *bench { return &bench{jobs: map[slurm.JobID]slurm.Job{}} }

// converse types lines and returns all that the bot says.
func converse(t *testing.T, dir string, l lang.Lang, lines ...string) (string, *bench) {
	t.Helper()
	cl := newBench()
	return converseWith(t, cl, dir, l, lines...), cl
}

// converseWith is converse on a given cluster.
func converseWith(t *testing.T, cl ops.Cluster, dir string, l lang.Lang, lines ...string) string {
	t.Helper()
	return converseAt(t, nil, cl, dir, l, lines...)
}

// converseAt is converseWith at a terminal of that many columns.
func converseAt(t *testing.T, width func() int, cl ops.Cluster, dir string, l lang.Lang, lines ...string) string {
	t.Helper()
	st, err := store.Open(t.Context(), filepath.Join(t.TempDir(), "state.db"))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, st.Close()) })
	b, err := bot.NewLocal(bot.Config{
		Store: st.Slack(),
		Service: &ops.Service{
			Clusters: map[string]ops.Cluster{"bench": cl}, Default: "bench", Now: time.Now,
			Store:    func() (*store.Store, error) { return st, nil },
			Answerer: func() *knowledge.Answerer { return knowledge.New(knowledge.Options{}) },
		},
	})
	require.NoError(t, err)
	var out strings.Builder
	err = chat.Run(t.Context(), b.Local("ada", dir, l), chat.Terminal{In: strings.NewReader(strings.Join(lines, "\n") + "\n"), Out: &out, Lang: l, Width: width})
	require.NoError(t, err)
	return out.String()
}

// Nothing that the bot says is wider than the terminal, and no button is broken.
func TestANarrowTerminalHasWholeWords(t *testing.T) {
	t.Parallel()
	for _, l := range []lang.Lang{lang.EN, lang.ZH} {
		said := converseAt(t, func() int { return 40 }, newBench(), "/", l, "help", "submit", ".", "submit --name gpt --gpu h100 --worktree /lustre/m", "9")
		for line := range strings.SplitSeq(said, "\n") {
			if !strings.HasPrefix(line, "  │") {
				require.LessOrEqual(t, lipgloss.Width(line), 40, "%s", line)
			}
		}
	}
	said := converseAt(t, func() int { return 18 }, newBench(), "/", lang.EN, "jbos")
	require.Contains(t, said, "[1] My jobs\n[2] Help\n")
}

const args = "--num-layers 24 --hidden-size 1024 --num-attention-heads 16 --seq-length 2048 --max-position-embeddings 2048 --micro-batch-size 2 --global-batch-size 64 --train-iters 100 --lr 1e-4 --tensor-model-parallel-size 4"

func TestTheTerminalKnowsSlacksWords(t *testing.T) {
	t.Parallel()
	said, _ := converse(t, "/", lang.EN, "/megatron help", "9", "stauts", "帮助", "exit", "list")
	require.Contains(t, said, "What you can do now")
	require.Contains(t, said, "there is no choice 9 now")
	require.Contains(t, said, "Did you mean one of these?")
	require.Contains(t, said, "现在可以做什么")
	require.NotContains(t, said, "no jobs", "nothing is read after exit")
}

// Nothing is printed beside what is said and its buttons.
func TestAConversationAsItStandsThere(t *testing.T) {
	t.Parallel()
	said, _ := converse(t, "/", lang.EN, "jbos", "", "submit", "gpt", ".", "jobs")
	require.Equal(t, `This is the bot of Slack, at your terminal. Type help, a command or a question; a number presses a button; exit ends.
⚠️ I do not know the command "jbos"
Did you mean one of these?
[1] My jobs   [2] Help
Answer each question; an empty line takes what stands in brackets, a dot alone ends the form.
Name []: Worktree (the absolute path of a Megatron-LM checkout that every node sees) []: Left as it was.
No waiting or running jobs found
[1] All my jobs
`, said)
}

func TestAButtonIsANumber(t *testing.T) {
	t.Parallel()
	said, cl := converse(t, "/", lang.EN,
		"submit --name gpt --nodes 2 --gpu h100 --time 1:00:00 --worktree /lustre/m -- "+args, "1", "status 1", "cancel 1", "2", "cancel 1", "1")
	require.Contains(t, said, "[1] Yes, do it")
	require.Contains(t, said, "gpt submitted to bench as job 1")
	require.Contains(t, said, "Left as it was")
	require.Contains(t, said, "1 gpt: cancelled")
	require.Equal(t, slurm.Cancelled, cl.jobs["1"].State)
}

func TestANumberThatIsNoButton(t *testing.T) {
	t.Parallel()
	said, _ := converse(t, "/", lang.EN, "0", "-1", "20")
	for _, n := range []string{"0", "-1", "20"} {
		require.Contains(t, said, "there is no choice "+n+" now")
	}
	said, _ = converse(t, "/", lang.EN, "21")
	require.NotContains(t, said, "there is no choice", "it may be a job's")
	said, _ = converse(t, "/", lang.EN, "jbos", "9", "1")
	require.Equal(t, 1, strings.Count(said, "there is no choice"), "a wrong number takes no button away")
}

func TestAFormIsAskedFieldByField(t *testing.T) {
	t.Parallel()
	said, cl := converse(t, "/", lang.EN,
		"submit", "gpt", "/lustre/m", "", "", "", "two", "8", "h100", "1:00:00", "", args, "", // the form
		"2",         // the nodes once more
		"1", "exit") // submit
	require.Contains(t, said, "ends the form.\nName []: Worktree (the absolute path of a Megatron-LM checkout that every node sees) []: Partition []: ")
	require.Contains(t, said, "\nNodes [two]: gpt → bench\n")
	require.Contains(t, said, "✗ Nodes")
	require.Equal(t, 1, strings.Count(said, "Answer each question"), "said once")
	require.Equal(t, 1, strings.Count(said, "Partition []:"), "what was right is not asked again")
	require.Contains(t, said, "GPU (a100, h100, ")
	require.Contains(t, said, "#SBATCH")
	require.Contains(t, said, "gpt submitted to bench as job 1")
	require.Len(t, cl.jobs, 1)
}

func TestFilesAreReadBelowWhereOneIs(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "job.yaml"), []byte("name: gpt\nnodes: 2\ngpu: h100\nworktree: /lustre/m\nargs: [--num-layers, \"24\"]\n"), 0o600))
	said, _ := converse(t, dir, lang.ZH, "检查 -f job.yaml")
	require.Contains(t, said, "gpt")
	require.Contains(t, said, "错误")
}

func TestACodeBlockMayHaveManyLines(t *testing.T) {
	t.Parallel()
	said, _ := converse(t, "/", lang.EN, "```", "Traceback (most recent call last):", "  File \"/w/pretrain_gpt.py\", line 3, in <module>", "    import megatron.core", "ModuleNotFoundError: No module named 'megatron'", "```")
	require.Contains(t, said, "Python module not found")
	require.Contains(t, said, "message:4", "its lines are one message")
	require.NotContains(t, said, "do not know the command")
	require.NotContains(t, said, "end it with", "a pipe needs no word for it")
}

func TestJobsAreToldOfWhileOneWaits(t *testing.T) {
	t.Parallel()
	said, _ := converse(t, "/", lang.EN, "submit --yes --name gpt --nodes 2 --gpu h100 --time 1:00:00 --worktree /lustre/m -- "+args)
	require.Contains(t, said, "waiting")
	require.Contains(t, said, "running", "the card is drawn again when the state changes")
}

func TestTheTerminalHearsOnceOfWhatGoesWrong(t *testing.T) {
	t.Parallel()
	st, err := store.Open(t.Context(), filepath.Join(t.TempDir(), "state.db"))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, st.Close()) })
	log := filepath.Join(t.TempDir(), "gpt-1.out")
	var lines strings.Builder
	for i := 1; i <= 40; i++ {
		fmt.Fprintf(&lines, " [2026-06-11 10:00:%02d.000000] iteration %8d/     100 | consumed samples: 64 | elapsed time per iteration (ms): 1000.0 | lm loss: NAN | grad norm: nan |\n", i, i)
	}
	require.NoError(t, os.WriteFile(log, []byte(lines.String()), 0o600))
	now := time.Now()
	b, err := bot.NewLocal(bot.Config{
		Store: st.Slack(), Now: func() time.Time { return now },
		Service: &ops.Service{
			Clusters: map[string]ops.Cluster{"bench": &bench{jobs: map[slurm.JobID]slurm.Job{}, log: log}}, Default: "bench", Now: time.Now,
			Store: func() (*store.Store, error) { return st, nil },
		},
	})
	require.NoError(t, err)
	talk := b.Local("ada", "/", lang.ZH)
	talk.Type(t.Context(), "submit --yes --name gpt --nodes 2 --gpu h100 --time 1:00:00 --worktree /lustre/m -- "+args)
	var told []string
	for range 4 {
		for _, s := range talk.Look(t.Context()) {
			told = append(told, s.Text)
		}
		now = now.Add(time.Minute)
	}
	said := strings.Join(told, "\n")
	require.Equal(t, 1, strings.Count(said, "损失不是有限值"), said)
	require.Contains(t, said, "n1")
}

// A lockedBuffer is written by the conversation and read by the test.
type lockedBuffer struct {
	mu sync.Mutex
	b  strings.Builder
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func TestLogsAreFollowedUntilTheNextLine(t *testing.T) {
	t.Parallel()
	st, err := store.Open(t.Context(), filepath.Join(t.TempDir(), "state.db"))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, st.Close()) })
	log := filepath.Join(t.TempDir(), "gpt-1.out")
	require.NoError(t, os.WriteFile(log, []byte("what was there\n"), 0o600))
	b, err := bot.NewLocal(bot.Config{
		Store: st.Slack(),
		Service: &ops.Service{
			Clusters: map[string]ops.Cluster{"bench": &bench{jobs: map[slurm.JobID]slurm.Job{"1": {ID: "1", Name: "gpt", User: "ada", State: slurm.Running, Stdout: log}}}},
			Default:  "bench", Now: time.Now, Store: func() (*store.Store, error) { return st, nil },
		},
	})
	require.NoError(t, err)
	in, typed := io.Pipe()
	var out lockedBuffer
	done := make(chan error, 1)
	go func() {
		done <- chat.Run(t.Context(), b.Local("ada", "/", lang.EN), chat.Terminal{In: in, Out: &out, Lang: lang.EN})
	}()
	said := func(words string) {
		t.Helper()
		require.Eventually(t, func() bool { return strings.Contains(out.String(), words) }, 20*time.Second, 20*time.Millisecond, "%s", words)
	}
	fmt.Fprintln(typed, "logs 1 --follow")
	said("what was there")
	f, err := os.OpenFile(log, os.O_APPEND|os.O_WRONLY, 0)
	require.NoError(t, err)
	fmt.Fprintln(f, "what came")
	require.NoError(t, f.Close())
	said("what came")
	fmt.Fprintln(typed, "explain PENDING")
	said("PENDING")
	fmt.Fprintln(typed, "exit")
	require.NoError(t, <-done)
	require.Equal(t, 1, strings.Count(out.String(), "what came"))
}

// TestAskedOnAfterADiagnosisItsLogsAnswer diagnoses logs of no job that is known
// here, and asks on about them in both languages.
func TestAskedOnAfterADiagnosisItsLogsAnswer(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	log := "[rank3]: Traceback (most recent call last):\n[rank3]:   File \"/w/train.py\", line 9, in save\n" +
		"[rank3]: OSError: [Errno 116] Stale file handle\nsrun: error: gpu07: task 3: Exited with exit code 1\n"
	require.NoError(t, os.WriteFile(filepath.Join(dir, "their.log"), []byte(log), 0o600))
	said, _ := converse(t, dir, lang.EN, "diagnose ./their.log", "why did it fail?", "which rank?", "is it the hardware?", "能直接重跑吗", "上次也是这样吗")
	require.Contains(t, said, "The deciding line")
	require.Contains(t, said, "Rank 3, node gpu07.")
	require.Contains(t, said, "the administrators: node")
	require.Contains(t, said, "可以。")
	require.Contains(t, said, "没有同名的更早一次运行。")
}
