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

var update = flag.Bool("update", false, "write what the scripted agent costs anew")

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
