package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/bot/slacktest"
	"github.com/megatron-ops/megatron-ops/slurm/slurmtest"
)

// A real slurmctld is suspended while somebody submits in Slack, twice, as people do
// who get no answer. They learn that the outcome is unknown, the server finds the job
// by itself once the controller resumes, and there is exactly one.
func TestAStandingControllerMakesOneJobInSlack(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a real Slurm; not with -short")
	}
	t.Parallel()
	// A cluster of its own, because its suspended controller would block other tests.
	real := slurmtest.Start(t, slurmtest.Options{Conf: "# a controller that stands still\n"})
	slack := slacktest.Start(t, slacktest.Config{SigningSecret: signingSecret})
	site, err := os.MkdirTemp(real.Work, "still-")
	require.NoError(t, err)
	require.NoError(t, os.Chmod(site, 0o777))
	require.NoError(t, os.WriteFile(filepath.Join(site, "train.sh"), []byte("sleep 600\n"), 0o644))
	s := newServer(t, fmt.Sprintf("slack: {links: {U1: alice}}\nclusters: {real: {kind: cli, slurm_conf: %s, act_as: true}}\ncluster: real\n", real.Conf()),
		"SLACK_API_URL="+slack.APIURL, "SLACK_BOT_TOKEN=xoxb-1", "SLACK_SIGNING_SECRET="+signingSecret, "MEGATRON_OPS_CLUSTER=")
	s.program = publicProgram(t, site)
	s.start("")
	slack.Target(s.url)
	name := filepath.Base(site)
	t.Cleanup(func() { _, _ = real.Run(context.Background(), "scancel", "--name="+name) })
	// Do the checks before a submission while the controller still answers.
	submit := "submit --yes --force --name " + name + " --nodes 1 --gpus-per-node 0 --partition dev --time 5 --worktree " + site + " --launcher custom --launcher-argv bash --script train.sh --no-guards --no-monitor"

	require.NoError(t, real.Signal("slurmctld", syscall.SIGSTOP))
	t.Cleanup(func() { _ = real.Signal("slurmctld", syscall.SIGCONT) })
	slack.Slash(submit)
	slack.WaitFor(3*time.Minute, "that nobody knows yet", func(st slacktest.State) bool { return len(saying(st, name+": not known yet")) > 0 })
	slack.Slash(submit)
	require.NoError(t, real.Signal("slurmctld", syscall.SIGCONT))
	slack.WaitFor(3*time.Minute, "the outcome in the same message", func(st slacktest.State) bool {
		for _, m := range saying(st, name+" was submitted: job ") {
			if m.Edits > 0 {
				return true
			}
		}
		return false
	})
	jobs, err := real.Run(t.Context(), "squeue", "-h", "--name="+name, "-o", "%i %u")
	require.NoError(t, err)
	require.Len(t, strings.Split(strings.TrimSpace(jobs), "\n"), 1, jobs)
	require.Contains(t, jobs, "alice")
}
