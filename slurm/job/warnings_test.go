package job_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/slurm/job"
)

// Render warns about choices that work but that an expert would avoid, and not about
// similar choices that are fine.
func TestWhatIsWarnedOf(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	for _, c := range []struct {
		name   string
		change func(*job.Spec)
	}{
		{"two nodes", func(*job.Spec) {}},
		{"CPUs", func(s *job.Spec) { s.CPUsPerTask = new(8) }},
		{"whole nodes", func(s *job.Spec) { s.Exclusive = new(true) }},
		{"shared nodes", func(s *job.Spec) { s.Exclusive = new(false) }},
		{"no GPUs", func(s *job.Spec) { s.GPUsPerNode = new(0) }},
		{"a time limit", func(s *job.Spec) { s.Time = "1:00:00" }},
		{"a time limit of another program", func(s *job.Spec) { s.Time, s.Script = "1:00:00", "train.py" }},
		{"a time limit that it knows", func(s *job.Spec) { s.Time, s.Args = "1:00:00", []string{"--exit-duration-in-mins", "50"} }},
		{"a signal in time", func(s *job.Spec) { s.Time, s.Signal = "1:00:00", "USR1@300" }},
		{"a kill switch", func(s *job.Spec) { s.Time, s.KillSwitch = "1:00:00", "/stop" }},
		{"a signal late", func(s *job.Spec) { s.Signal = "B:USR2" }},
		{"a signal that torch takes", func(s *job.Spec) { s.Signal = "15@300" }},
		{"the same by name", func(s *job.Spec) { s.Signal = "B:SIGTERM@300" }},
		{"a signal by number", func(s *job.Spec) { s.Signal = "12@300" }},
		{"a signal in docker", func(s *job.Spec) {
			s.Signal, s.Container = "USR1@300", job.Container{Runtime: job.Docker, Image: "a:1"}
		}},
		{"docker", func(s *job.Spec) { s.Container = job.Container{Runtime: job.Docker, Image: "a:1"} }},
		{"docker, privileged", func(s *job.Spec) {
			s.Preset, s.Container = []string{"docker-privileged"}, job.Container{Runtime: job.Docker, Image: "a:1"}
		}},
		{"enroot of a registry", func(s *job.Spec) { s.Container = job.Container{Runtime: job.Enroot, Image: "nvcr.io/a"} }},
		{"enroot of a tag", func(s *job.Spec) { s.Container = job.Container{Runtime: job.Enroot, Image: "a:1"} }},
		{"enroot by name", func(s *job.Spec) { s.Container = job.Container{Runtime: job.Enroot, Image: "a"} }},
		{"enroot of a file", func(s *job.Spec) { s.Container = job.Container{Runtime: job.Enroot, Image: "/a/b.sqsh"} }},
		{"both logs", func(s *job.Spec) { s.Preset = []string{"per-node-logs", "joined-log"} }},
		{"one log", func(s *job.Spec) { s.Preset = []string{"joined-log"} }},
		{"GPU use without traces", func(s *job.Spec) { s.Preset, s.Monitor = []string{"gpu-use"}, new(false) }},
		{"GPU use", func(s *job.Spec) { s.Preset, s.Monitor = []string{"gpu-use"}, new(true) }},
		{"logs of each node", func(s *job.Spec) { s.LogDir = "/tmp/logs" }},
		{"logs of one node", func(s *job.Spec) { s.Nodes, s.LogDir = new(1), "/tmp/logs" }},
		{"code of each node", func(s *job.Spec) { s.Worktree = "/dev/shm/tree" }},
		{"code of one node", func(s *job.Spec) { s.Nodes, s.Worktree = new(1), "/dev/shm/tree" }},
		{"code beside", func(s *job.Spec) { s.Worktree = "/tmpfs/tree" }},
	} {
		s := twoNodes()
		c.change(&s)
		script, err := job.Render(s, job.Options{})
		require.NoError(t, err, c.name)
		fmt.Fprintf(&b, "== %s\n", c.name)
		for _, w := range script.Warnings {
			fmt.Fprintf(&b, "%s\n%s\n", w.EN, w.ZH)
		}
	}
	compareGolden(t, "testdata/warnings.txt", b.String())
}

// The flags that make Megatron save and end depend on the job's signal and on its own
// arguments.
func TestTheFlagsThatEndAJobInTime(t *testing.T) {
	t.Parallel()
	for want, changes := range map[string][]func(*job.Spec){
		"": {
			func(*job.Spec) {},
			func(s *job.Spec) { s.Signal, s.Script = "USR1@300", "train.py" },
		},
		"--exit-signal-handler --exit-signal SIGUSR1": {
			func(s *job.Spec) { s.Signal = "USR1@300" },
			func(s *job.Spec) { s.Signal = "B:10@300" },
			func(s *job.Spec) { s.KillSwitch = "/stop" },
			func(s *job.Spec) { s.Signal, s.Args = "USR1@300", []string{"--exit-signal-handler"} },
		},
		"--exit-signal-handler --exit-signal SIGHUP":  {func(s *job.Spec) { s.Signal = "sighup@300" }},
		"--exit-signal-handler --exit-signal SIGUSR2": {func(s *job.Spec) { s.Signal, s.KillSwitch = "R:USR2@300", "/stop" }},
		"--exit-signal SIGTERM --exit-signal-handler": {func(s *job.Spec) { s.Signal, s.Args = "USR1@300", []string{"--exit-signal", "SIGTERM"} }},
		"--exit-signal=SIGTERM --exit-signal-handler": {func(s *job.Spec) { s.Signal, s.Args = "USR1@300", []string{"--exit-signal=SIGTERM"} }},
		"--exit-signal-handler":                       {func(s *job.Spec) { s.Signal = "TERM@300" }},
	} {
		for i, change := range changes {
			s := twoNodes()
			change(&s)
			script, err := job.Render(s, job.Options{})
			require.NoError(t, err)
			require.Equal(t, want, strings.Join(exitWords(script.Text), " "), "%q, %d", want, i)
		}
	}
}

// exitWords returns the words of a script's launch that concern the exit signal.
func exitWords(script string) (words []string) {
	for line := range strings.Lines(script) {
		if line = strings.TrimSpace(line); !strings.HasPrefix(line, "#") && strings.Contains(line, "--exit-signal") {
			words = append(words, strings.Fields(strings.TrimSuffix(line, "\\"))...)
		}
	}
	return words
}

// Every line of a batch gets an answer with its id, or null.
func TestALineOfABatchIsAnswered(t *testing.T) {
	t.Parallel()
	good := `{"name":"gpt","nodes":1,"gpus_per_node":8,"worktree":"/w"}`
	for line, want := range map[string]string{
		`{"id":7,"spec":` + good + `}`: `{"id":7,"script":"#!/bin/bash`,
		`{"spec":` + good + `}`:        `{"id":null,"script":"#!/bin/bash`,
		`{"id":"a"}`:                   `{"id":"a","error":{"code":`,
		`{"id":"a","spec":{"nodes":0,"name":"gpt","worktree":"/w"}}`: `"field":"nodes"`,
		`{"id":`: `{"id":null,"error":{"code":`,
		``:       `not a JSON line`,
	} {
		require.Contains(t, string(job.RenderLine([]byte(line))), want, line)
	}
}

// Without node names, the host of the rendezvous is localhost for one node, and a
// placeholder for several.
func TestWhereRanksMeetByHand(t *testing.T) {
	t.Parallel()
	for want, s := range map[string]job.Spec{
		"--master-addr=NODE0":     twoNodes(),
		"--master-addr=localhost": {Name: "gpt", Nodes: new(1), GPUsPerNode: new(8), Worktree: "/w", MasterPort: new(2500)},
	} {
		commands, err := job.ForShell(s, job.Options{}, nil)
		require.NoError(t, err)
		require.Contains(t, strings.Join(commands, "\n"), want)
	}
}
