package diagnose_test

import (
	"testing"

	"github.com/megatron-ops/megatron-ops/slurm/diagnose"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/diagnosetest"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/outcome"
	"github.com/stretchr/testify/require"
)

// A shell misses a file to source: a program that ran shows that it did without the settings; a missing
// program is the cause.
func TestSettingsThatAScriptDidWithout(t *testing.T) {
	const ran = "/opt/py/site-packages/scipy/stats.py:81: FutureWarning: this will change\n  warnings.warn(\n"
	missing := func(file string) string {
		return "/var/spool/slurm/job77/slurm_script: line 9: " + file + ": No such file or directory\n"
	}
	for name, c := range map[string]struct{ log, class string }{
		"conda's settings, and the program ran": {missing("/home/ana/forge/etc/profile.d/conda.sh") + ran, outcome.UnknownExit},
		"an environment's, and the program ran": {missing("venv/bin/activate") + ran, outcome.UnknownExit},
		"it failed of its own": {
			missing("venv/bin/activate") + ran + diagnosetest.Raised("KeyError: 'width'"), outcome.UserException,
		},
		"nothing ran": {missing("venv/bin/activate"), outcome.EnvLaunch},
		"the program is missing, and another warns": {missing("/home/ana/bin/train") + ran, outcome.EnvLaunch},
	} {
		t.Run(name, func(t *testing.T) {
			r := diagnosetest.With(t, c.log, diagnose.Context{JobState: "ENDED"})
			require.Equal(t, c.class, r.Class, r.RootLine)
		})
	}
}
