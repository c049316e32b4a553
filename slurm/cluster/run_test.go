package cluster_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/slurm"
	"github.com/megatron-ops/megatron-ops/slurm/cluster"
)

// withScripts returns a cluster whose commands are the given scripts, by name.
func withScripts(t *testing.T, scripts map[string]string) *cluster.CLI {
	t.Helper()
	dir := t.TempDir()
	for name, body := range scripts {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/bash\n"+body+"\n"), 0o755))
	}
	c := cluster.NewCLI("pretended")
	c.Environ = func() []string { return []string{"PATH=" + dir + ":/usr/bin:/bin", "MARK=" + dir} }
	return c
}

// alive returns the number of living processes that descend from the scripts of c.
func alive(t *testing.T, c *cluster.CLI) int {
	t.Helper()
	mark := c.Environ()[1]
	files, err := filepath.Glob("/proc/[0-9]*/environ")
	require.NoError(t, err)
	n := 0
	for _, f := range files {
		if env, err := os.ReadFile(f); err == nil && strings.Contains(string(env), mark) {
			n++
		}
	}
	return n
}

func TestCommandsThatMisbehave(t *testing.T) {
	held := slurm.Submission{Script: "#!/bin/sh\ntrue\n"}
	t.Run("one that hangs is ended with its children", func(t *testing.T) {
		late := filepath.Join(t.TempDir(), "late")
		c := withScripts(t, map[string]string{"squeue": "sleep 300 & sleep 300; touch " + late})
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		defer cancel()
		_, err := c.Jobs(ctx, slurm.Filter{})
		require.ErrorIs(t, err, slurm.ErrUnreachable)
		require.NoFileExists(t, late)
		require.Eventually(t, func() bool { return alive(t, c) == 0 }, 5*time.Second, 20*time.Millisecond)
	})
	t.Run("one that prints without end is cut off", func(t *testing.T) {
		c := withScripts(t, map[string]string{"squeue": "head -c 100000000 /dev/zero"})
		_, err := c.Jobs(t.Context(), slurm.Filter{})
		require.ErrorContains(t, err, "longer than 32 MiB")
	})
	t.Run("one that is missing is said to be, with what to do", func(t *testing.T) {
		c := cluster.NewCLI("none")
		c.Environ = func() []string { return []string{"PATH=/nowhere", "SLURM_CONF=/nowhere"} }
		t.Setenv("PATH", "/nowhere")
		_, err := c.Jobs(t.Context(), slurm.Filter{})
		require.ErrorContains(t, err, "squeue")
		require.Contains(t, slurm.FixOf(err).EN, "--cluster local")
		_, err = c.Submit(t.Context(), held)
		require.ErrorIs(t, err, slurm.ErrMissing)
		require.Contains(t, slurm.FixOf(err).EN, "module load slurm")
	})
	t.Run("one whose script finds no room is not started, and says where to make some", func(t *testing.T) {
		c := withScripts(t, map[string]string{"sbatch": "echo 4711"})
		t.Setenv("TMPDIR", "/nowhere")
		_, err := c.Submit(t.Context(), held)
		require.ErrorContains(t, err, "/nowhere")
		require.Contains(t, slurm.FixOf(err).EN, "nothing was sent; make room there, or set TMPDIR")
	})
	t.Run("one whose configuration is missing is not started", func(t *testing.T) {
		started := filepath.Join(t.TempDir(), "started")
		c := withScripts(t, map[string]string{"squeue": "touch " + started})
		plain := c.Environ()
		c.Environ = func() []string { return append(plain, "SLURM_CONF=/nowhere/slurm.conf") }
		_, err := c.Jobs(t.Context(), slurm.Filter{})
		require.ErrorContains(t, err, "SLURM_CONF is /nowhere/slurm.conf, and there is no such file")
		require.Contains(t, slurm.FixOf(err).EN, "set SLURM_CONF to the cluster's")
		require.NoFileExists(t, started)
		require.Zero(t, c.Meter().Delay())
	})
	t.Run("one that refuses is told in its own words", func(t *testing.T) {
		c := withScripts(t, map[string]string{"squeue": "echo 'slurm_load_jobs error: Access/permission denied' >&2; exit 1"})
		_, err := c.Jobs(t.Context(), slurm.Filter{})
		require.ErrorIs(t, err, slurm.ErrDenied)
	})
	t.Run("one that dies of a signal has not answered", func(t *testing.T) {
		c := withScripts(t, map[string]string{"squeue": "kill -9 $$", "sbatch": "echo 4711; kill -9 $$"})
		_, err := c.Jobs(t.Context(), slurm.Filter{})
		require.ErrorIs(t, err, slurm.ErrUnreachable)
		_, err = c.Submit(t.Context(), held)
		require.ErrorIs(t, err, slurm.ErrUnknown)
	})
	t.Run("one that fails in silence is not taken for one that found nothing", func(t *testing.T) {
		c := withScripts(t, map[string]string{"squeue": "exit 1", "sacct": "exit 1"})
		_, err := c.Job(t.Context(), "7")
		require.Error(t, err)
		require.NotErrorIs(t, err, slurm.ErrNotFound)
	})
	t.Run("half an answer is an error", func(t *testing.T) {
		c := withScripts(t, map[string]string{"squeue": `for a; do case $a in --format=*) f=${a#--format=};; esac; done; printf '%s' "${f:0:40}"`})
		_, err := c.Jobs(t.Context(), slurm.Filter{})
		require.ErrorContains(t, err, "cut short")
	})
	t.Run("a missing working directory is named", func(t *testing.T) {
		c := withScripts(t, map[string]string{"sbatch": "echo 1"})
		_, err := c.Submit(t.Context(), slurm.Submission{Script: held.Script, Dir: "/no/such/dir"})
		require.ErrorContains(t, err, "/no/such/dir")
		require.ErrorIs(t, err, slurm.ErrRejected)
	})
	t.Run("a directory for logs that cannot be made stops the submission", func(t *testing.T) {
		c := withScripts(t, map[string]string{"sbatch": "echo 1"})
		_, err := c.Submit(t.Context(), slurm.Submission{Script: held.Script, Dir: "/proc", LogDir: "logs"})
		require.ErrorContains(t, err, "log directory")
	})
}

// A command that a person interrupts did not take too long.
func TestAnInterruptedCommandIsNoSlowController(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	c := withScripts(t, map[string]string{"squeue": "sleep 20"})
	time.AfterFunc(200*time.Millisecond, cancel)
	_, err := c.Jobs(ctx, slurm.Filter{})
	require.ErrorContains(t, err, "interrupted")
	require.NotContains(t, err.Error(), "no answer within")
}

// Who did not answer is named: the accounting database may hang while the controller is well.
func TestWhoDidNotAnswerIsNamed(t *testing.T) {
	silent := map[string]string{"squeue": "sleep 20", "sacct": "sleep 20"}
	for who, ask := range map[string]func(context.Context) error{
		"controller": func(ctx context.Context) error {
			_, err := withScripts(t, silent).Jobs(ctx, slurm.Filter{})
			return err
		},
		"slurmdbd": func(ctx context.Context) error {
			_, err := withScripts(t, silent).Past(ctx, slurm.Filter{IDs: []slurm.JobID{"7"}})
			return err
		},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		err := ask(ctx)
		cancel()
		require.Error(t, err)
		require.Contains(t, slurm.FixOf(err).EN, who, err)
	}
}

// A question that can do without the accounts waits for them once, as long as it says. Any other one is
// asked all the same, and waits as long as a command may.
func TestAccountsThatHangAreWaitedForOnceAndBriefly(t *testing.T) {
	c := withScripts(t, map[string]string{"squeue": "", "sacct": "sleep 20"})
	patient := cluster.WithPatience(t.Context(), time.Second)
	for i, ask := range []func(context.Context) error{
		func(ctx context.Context) error { _, err := c.Job(ctx, "7"); return err },
		func(ctx context.Context) error {
			_, err := c.Past(ctx, slurm.Filter{IDs: []slurm.JobID{"7"}})
			return err
		},
		func(ctx context.Context) error {
			_, err := c.Jobs(ctx, slurm.Filter{Since: time.Unix(1, 0)})
			return err
		},
	} {
		began := time.Now()
		err := ask(patient)
		require.EqualError(t, err, "Slurm's accounting did not answer within 1s")
		require.ErrorIs(t, err, slurm.ErrUnreachable)
		require.Contains(t, slurm.FixOf(err).EN, "slurmdbd")
		require.Equal(t, i == 0, time.Since(began) >= time.Second)

		brief, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		require.ErrorContains(t, ask(brief), "no answer within 15s", "asked all the same")
		cancel()
	}
	require.Zero(t, c.Meter().Delay(), "the controller is not taken for busy")
}

// Slow accounts answer whoever waits for them, right after a reader gave up, and readers of another cluster.
func TestSlowAccountsAnswer(t *testing.T) {
	scripts := map[string]string{"squeue": "", "sacct": "sleep 1"}
	c, other := withScripts(t, scripts), withScripts(t, scripts)
	_, err := c.Job(cluster.WithPatience(t.Context(), 300*time.Millisecond), "7")
	require.ErrorIs(t, err, slurm.ErrUnreachable)
	_, err = c.Job(t.Context(), "7")
	require.ErrorIs(t, err, slurm.ErrNotFound)
	_, err = other.Job(cluster.WithPatience(t.Context(), 8*time.Second), "7")
	require.ErrorIs(t, err, slurm.ErrNotFound)
}

// An id is taken from sbatch's output only where the output leaves no doubt.
func TestOnlyAWholeIDIsAnID(t *testing.T) {
	for printed, want := range map[string]slurm.JobID{
		`4711\n`:                            "4711",
		`4711;mega\n`:                       "4711",
		`a site says hello\n4711\n`:         "4711",
		`4711`:                              "", // died in the middle of a longer number
		``:                                  "",
		`0\n`:                               "",
		`47 11\n`:                           "",
		`4711\n4712\n`:                      "",
		`Submitted batch job 4711\n`:        "",
		`4711 is your job, said the site\n`: "",
	} {
		c := withScripts(t, map[string]string{"sbatch": fmt.Sprintf(`printf '%s'`, printed)})
		id, err := c.Submit(t.Context(), slurm.Submission{Script: "#!/bin/sh\ntrue\n"})
		require.Equal(t, want, id, printed)
		if want == "" {
			require.ErrorIs(t, err, slurm.ErrUnknown, printed)
		} else {
			require.NoError(t, err, printed)
		}
	}
}

// A person's own settings for squeue do not narrow its answer. sbatch gets the script
// on standard input, not on its command line.
func TestWhatCommandsAreGiven(t *testing.T) {
	c := withScripts(t, map[string]string{
		"squeue": `env >&2; exit 9`,
		"sbatch": `{ printf '%s|' "$@"; cat; env; } >"$PWD/given"; echo 7`,
	})
	plain := c.Environ()
	c.Environ = func() []string {
		return append(plain, "SQUEUE_USERS=nobody", "SQUEUE_FORMAT=%i", "SLACK_BOT_TOKEN=x", "SLURM_CONF=/dev/null")
	}
	_, err := c.Jobs(t.Context(), slurm.Filter{})
	require.ErrorContains(t, err, "SLURM_CONF=/dev/null")
	require.ErrorContains(t, err, "SLURM_TIME_FORMAT=%s")
	require.ErrorContains(t, err, "SLURM_BITSTR_LEN=0", "a long list of array tasks is told whole")
	require.NotContains(t, err.Error(), "SQUEUE_")
	dir := t.TempDir()
	_, err = c.Submit(t.Context(), slurm.Submission{
		Script: "#!/bin/sh\n#SBATCH --comment=mine\necho $(boo)\n", Dir: dir, Token: "abcdefgh", Args: []string{"--hold"}, Env: []string{"A=b", "SLURM_JWT=x"},
	})
	require.NoError(t, err)
	given, err := os.ReadFile(filepath.Join(dir, "given"))
	require.NoError(t, err)
	require.Contains(t, string(given), "--parsable|--comment=mine mops:abcdefgh|--hold|#!/bin/sh\n#SBATCH --comment=mine\necho $(boo)\n")
	require.Contains(t, string(given), "A=b\n")
	require.NotContains(t, string(given), "SLURM_JWT")
	c.TokenInName = true
	_, err = c.Submit(t.Context(), slurm.Submission{Script: "#!/bin/sh\n#SBATCH -J gpt\n", Dir: dir, Token: "abcdefgh"})
	require.NoError(t, err)
	given, err = os.ReadFile(filepath.Join(dir, "given"))
	require.NoError(t, err)
	require.Contains(t, string(given), "--job-name=gpt-abcdefgh|")
}
