package agents

import (
	"bufio"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/slurm/slurmtest"
)

var (
	update = flag.Bool("update", false, "write what the scripted agent costs anew")
	model  = flag.Bool("model", false, "ask the model of OPENAI_BASE_URL, OPENAI_API_KEY and OPENAI_MODEL instead of the script")
)

// mostTokens is what one answer may cost in either of its forms, unless it holds
// a script, which comes whole.
const mostTokens = 1500

// tolerance is by how much a task's tokens may differ from those committed:
// paths and times are longer on one machine than on another.
const tolerance = 0.2

// TestTheScriptedAgent does the twenty tasks and compares what they cost with
// scripted.golden: a line for each, with its calls and the tokens of its
// answers as text and as structured content.
func TestTheScriptedAgent(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a real Slurm; not with -short")
	}
	if *model {
		t.Skip("a model is asked instead")
	}
	require.Len(t, tasks, 20)
	cluster := slurmtest.Start(t, slurmtest.Options{})
	costs := committed(t)
	var lines strings.Builder
	for _, k := range tasks {
		t.Run(k.name, func(t *testing.T) {
			b, job := prepared(t, cluster, k)
			k.script(b, job)
			k.after(b, job)
			b.clear()
			text, typed := b.text/bytesPerToken, b.typed/bytesPerToken
			t.Logf("%d calls, %d tokens as text, %d as structured content; %d in the longest answer", b.calls, text, typed, b.longest)
			fmt.Fprintf(&lines, "%s %d %d %d\n", k.name, b.calls, text, typed)
			require.LessOrEqual(t, b.longest, mostTokens, "no answer is longer than that")
			if *update {
				return
			}
			want := costs[k.name]
			require.Equal(t, want.calls, b.calls)
			require.InEpsilon(t, want.text, text, tolerance, "go test ./evals/agents -update, if it is meant")
			require.InEpsilon(t, want.typed, typed, tolerance, "go test ./evals/agents -update, if it is meant")
		})
	}
	if *update && !t.Failed() {
		require.NoError(t, os.WriteFile("scripted.golden", []byte(lines.String()), 0o600))
	}
}

// TestAModel has a model do the tasks, where it is asked for, and tells which it
// did and what that cost.
func TestAModel(t *testing.T) {
	if !*model {
		t.Skip("asked for by -model")
	}
	ask := newModel(t)
	cluster := slurmtest.Start(t, slurmtest.Options{})
	done, asked := 0, 0
	for _, k := range tasks {
		t.Run(k.name, func(t *testing.T) {
			asked++
			b, job := prepared(t, cluster, k)
			ask.work(b, strings.NewReplacer("NAME", b.name, "WORK", b.work, "JOB", job).Replace(k.request))
			t.Logf("%d calls, %d tokens as text", b.calls, b.text/bytesPerToken)
			k.after(b, job)
			done++
			b.clear()
		})
	}
	t.Logf("%d of %d tasks done", done, asked)
}

// prepared is a bench for k, with what is there before the agent comes.
func prepared(t *testing.T, cluster *slurmtest.Cluster, k task) (b *bench, job string) {
	t.Helper()
	b = newBench(t, cluster, k.name)
	if k.before != nil {
		job = k.before(b)
	}
	return b, job
}

// clear ends the task's jobs, so that the next finds the nodes free.
func (b *bench) clear() {
	b.t.Helper()
	b.sh("scancel", "--user", "root")
	b.comes("empty nodes", func() bool { return b.sh("squeue", "--noheader") == "" })
}

// A cost is what a task took.
type cost struct{ calls, text, typed int }

// committed are the costs in scripted.golden.
func committed(t *testing.T) map[string]cost {
	t.Helper()
	file, err := os.Open("scripted.golden")
	if *update && os.IsNotExist(err) {
		return nil
	}
	require.NoError(t, err)
	defer file.Close()
	costs := map[string]cost{}
	for lines := bufio.NewScanner(file); lines.Scan(); {
		var name string
		var c cost
		_, err := fmt.Sscan(lines.Text(), &name, &c.calls, &c.text, &c.typed)
		require.NoError(t, err, lines.Text())
		costs[name] = c
	}
	return costs
}

func TestMain(m *testing.M) {
	code := m.Run()
	if wasBuilt.Load() {
		if bin, err := binary(); err == nil {
			os.RemoveAll(filepath.Dir(bin))
		}
	}
	os.Exit(code)
}
