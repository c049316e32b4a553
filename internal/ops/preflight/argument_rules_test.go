package preflight

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/slurm/job"
)

// A signal is of use only where Megatron writes a checkpoint on it.
func TestASignalThatSavesNothingIsRefused(t *testing.T) {
	for _, c := range []struct {
		spec job.Spec
		args string
		want string
	}{
		{job.Spec{}, "", ""},
		{job.Spec{Signal: "USR1@300"}, "--save /s", ""},
		{job.Spec{Signal: "USR1@300"}, "--save=/s", ""},
		{job.Spec{Signal: "USR1@300"}, "--save-interval 10", "signal-saves"},
		{job.Spec{KillSwitch: "/stop"}, "", "signal-saves"},
		{job.Spec{KillSwitch: "/stop"}, "--save /s", ""},
		{job.Spec{Signal: "USR1@300", Script: "train.py"}, "", ""},
		{job.Spec{Signal: "USR1@300", Megatron: "0.16.1"}, "--save /s", ""},
		{job.Spec{Signal: "USR1@300", Megatron: "0.15.3"}, "--save /s", "signal-heard"},
		{job.Spec{KillSwitch: "/stop", Megatron: "0.15.3"}, "--save /s", "signal-heard"},
		{job.Spec{Signal: "B:SIGTERM@300", Megatron: "0.15.3"}, "--save /s", ""},
		{job.Spec{Signal: "USR1@300"}, "--save /s --exit-signal SIGTERM", "signal-heard"},
		{job.Spec{Signal: "USR1@300"}, "--save /s --exit-signal=SIGUSR1", ""},
	} {
		c.spec.Worktree, c.spec.Time, c.spec.Args = "/w", "10", strings.Fields(c.args)
		require.Equal(t, c.want, strings.TrimSpace(broken(c.spec)), "%+v", c.spec)
	}
}

// No shell reads the arguments of a job.
func TestAPathThatAShellWouldExpandIsRefused(t *testing.T) {
	for args, told := range map[string]bool{
		"--save ~/x": true, "--save=~/x": true, "--save ~": true, "--load ~alice/x": true, "--data-path 1 $HOME/d": true, "--save ${SCRATCH}/x": true,
		"--save /home/alice/x": false, "--save x~/y": false, "--wandb-exp-name cost-$5": false, "--save /a/$HOME": false, "--data-path 0.5 /d": false,
	} {
		require.Equal(t, told, broken(job.Spec{Args: strings.Fields(args)}) == "arguments-not-expanded", args)
	}
}

// broken returns the rules on arguments that a job breaks.
func broken(s job.Spec) string {
	var ids []string
	for _, r := range argumentRules {
		if r.check(nil, s.WithDefaults()).EN != "" {
			ids = append(ids, r.id)
		}
	}
	return strings.Join(ids, " ")
}
