package joblogs_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/ops/joblogs"
	"github.com/megatron-ops/megatron-ops/internal/ops/opstest"
	"github.com/megatron-ops/megatron-ops/slurm"
	"github.com/stretchr/testify/require"
)

// runningSite is a cluster that runs submitted tasks at once, within the test's
// process.
type runningSite struct {
	surveyedSite
	t    *testing.T
	fail string // the first argument of the tasks that fail
	done map[slurm.JobID]slurm.State
	subs []string
}

func (e *runningSite) Submit(ctx context.Context, sub slurm.Submission) (slurm.JobID, error) {
	id := slurm.JobID(strconv.Itoa(900 + len(e.done)))
	if e.fail == "submit "+string(id) {
		return "", errors.New("sbatch: error: QOSMaxSubmitJobPerUserLimit")
	}
	e.subs = append(e.subs, sub.Script+strings.Join(sub.Args, " "))
	lines := strings.Split(strings.TrimSpace(sub.Script), "\n")
	words := strings.Fields(strings.TrimPrefix(lines[len(lines)-1], "exec "))
	e.done[id] = slurm.Completed
	tasks := 1
	for _, a := range sub.Args {
		if last, ok := strings.CutPrefix(a, "--array=0-"); ok {
			n, err := strconv.Atoi(last)
			require.NoError(e.t, err)
			tasks = n + 1
		}
	}
	for k := range tasks {
		if words[1] == e.fail {
			require.NoError(e.t, os.WriteFile(filepath.Join(words[2], "said.txt"), []byte("first words\nno such file\n"), 0o600))
			e.done[id] = slurm.Failed
			continue
		}
		var said bytes.Buffer
		code, ok := joblogs.Worker(ctx, append(words[:3:3], strconv.Itoa(k)), &said)
		require.True(e.t, ok)
		require.Zero(e.t, code, said.String())
	}
	return id, nil
}

func (e *runningSite) Job(ctx context.Context, id slurm.JobID) (slurm.Job, error) {
	if state, ok := e.done[id]; ok {
		return slurm.Job{ID: id, State: state}, nil
	}
	return e.surveyedSite.Job(ctx, id)
}

func (e *runningSite) Cancel(_ context.Context, id slurm.JobID) error {
	e.done[id] = slurm.Cancelled
	return nil
}

// A diagnosis by jobs on the cluster gives the same answer as one from here, and leaves
// nothing behind. Where it gives no answer, it says why.
func TestADiagnosisOnTheCluster(t *testing.T) { synctest.Test(t, diagnosisOnTheCluster) }

func diagnosisOnTheCluster(t *testing.T) {
	files := map[string]string{"gpt-77.out": "loading\n"}
	for r := range 8 {
		files[fmt.Sprintf("rank-77.%d.log", r)] = fmt.Sprintf("[rank%d]: loading\n", r)
	}
	files["rank-77.3.log"] += outOfMemory
	for name, c := range map[string]struct {
		words     []string
		surface   ops.Surface
		fail      string
		err       string
		tasks     string
		partition string
	}{
		"two tasks, where there are few logs":  {tasks: "--array=0-1", partition: "--partition=cpu"},
		"as many as are asked for":             {words: []string{"--shards", "5"}, tasks: "--array=0-4", partition: "--partition=cpu"},
		"as many as there may be":              {words: []string{"--shards", "256"}, tasks: "--array=0-255", partition: "--partition=cpu"},
		"too many":                             {words: []string{"--shards", "257"}, err: "257 tasks are too many for one diagnosis"},
		"in a partition of one's choice":       {words: []string{"--partition", "debug"}, tasks: "--array=0-1", partition: "--partition=debug"},
		"not by an agent":                      {surface: ops.MCP, err: "for the shell only"},
		"a task fails":                         {fail: "__diagnose-reduce", err: "jobs 900 and 901 gave no answer (FAILED): no such file"},
		"the first cannot be submitted":        {fail: "submit 900", err: "QOSMaxSubmitJobPerUserLimit"},
		"what comes after cannot be submitted": {fail: "submit 901", err: "QOSMaxSubmitJobPerUserLimit"},
	} {
		call, s, j := failedJob(t, files)
		call.Dir = t.TempDir()
		cl := &runningSite{t: t, fail: c.fail, done: map[slurm.JobID]slurm.State{}, surveyedSite: surveyedSite{Site: s, partitions: []slurm.Partition{
			{Name: "gpu", Up: true, GPUs: 64, Total: 8}, {Name: "old", GPUs: 0, Total: 9}, {Name: "none", Up: true}, {Name: "cpu", Up: true, Total: 4},
		}}}
		call.Clusters["test"] = cl
		if c.surface != "" {
			call.Who.Surface = c.surface
		}
		for target, needs := range map[string]bool{"77": true, j.WorkDir: c.surface == ""} {
			if !needs {
				continue
			}
			clear(cl.done)
			cl.subs = nil
			out, err := opstest.Do(t, call, joblogs.Diagnose(), append([]string{target, "--on-slurm"}, c.words...)...)
			left, _ := os.ReadDir(call.Dir)
			require.Empty(t, left, "%s: nothing is left behind", name)
			if c.err != "" {
				require.ErrorContains(t, err, c.err, name)
				if c.fail == "submit 901" {
					require.Equal(t, slurm.Cancelled, cl.done["900"], "the tasks are not left to run for nobody")
				}
				continue
			}
			require.NoError(t, err, name)
			here, err := opstest.Do(t, call, joblogs.Diagnose(), target)
			require.NoError(t, err)
			require.Equal(t, opstest.Text(t, here, lang.EN), opstest.Text(t, out, lang.EN), name)
			require.Contains(t, cl.subs[0], c.tasks, name)
			require.Contains(t, cl.subs[0], c.partition, name)
			require.Contains(t, cl.subs[1], "--dependency=afterok:900")
		}
	}
}

// The program runs as a task of a diagnosis only where its arguments say so, and
// reports what it cannot do.
func TestAWorkerThatIsToldNonsense(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "input.json"), []byte(`{"paths":["/nowhere"],"shards":2,"files":1}`), 0o600))
	for words, says := range map[string]string{
		"megatron-ops": "-", "megatron-ops jobs list": "-", "megatron-ops __diagnose-part": "-",
		"megatron-ops __diagnose-part " + dir:         "which part is not said",
		"megatron-ops __diagnose-part " + dir + " 2":  `there is no part "2" of 2`,
		"megatron-ops __diagnose-part " + dir + " -1": `there is no part "-1" of 2`,
		"megatron-ops __diagnose-part " + dir + " x":  `there is no part "x" of 2`,
		"megatron-ops __diagnose-reduce " + dir:       "part-0.gz",
		"megatron-ops __diagnose-reduce /nowhere":     "input.json",
	} {
		var said bytes.Buffer
		code, ok := joblogs.Worker(t.Context(), strings.Fields(words), &said)
		require.Equal(t, says != "-", ok, words)
		if ok {
			require.Equal(t, 1, code)
			require.Contains(t, said.String(), says)
		}
	}
}
