package cluster

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/slurm"
)

// An answeringRunner answers each command with the next of its answers.
type answeringRunner struct {
	answers []result
	errs    []error
	asked   [][]string
}

func (s *answeringRunner) run(_ context.Context, c command) (result, error) {
	i := len(s.asked)
	s.asked = append(s.asked, c.argv)
	return s.answers[i%len(s.answers)], s.errs[i%len(s.errs)]
}

func TestQuestionsAreKeptBackWhileTheControllerIsBusy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		timedOut := result{code: 1, stderr: "slurm_load_jobs error: Socket timed out on send/recv operation"}
		s := &answeringRunner{answers: []result{timedOut, timedOut, {}, {}, {}, {}}, errs: []error{nil}}
		c := &CLI{meter: new(Meter), runner: s}
		ask := func() time.Duration {
			begin := time.Now()
			_, err := c.run(t.Context(), command{argv: []string{"squeue"}})
			require.NoError(t, err)
			return time.Since(begin)
		}
		require.Zero(t, ask())
		require.Equal(t, time.Second, c.meter.Delay())
		require.Equal(t, time.Second, ask(), "the next waits")
		require.Equal(t, 2*time.Second, c.meter.Delay())
		begin := time.Now()
		_, err := c.run(t.Context(), command{argv: []string{"scancel", "7"}})
		require.NoError(t, err)
		require.Zero(t, time.Since(begin), "an order never waits")
		require.Equal(t, time.Second, c.meter.Delay(), "a good answer halves the delay")
		require.Equal(t, 2*time.Second, ask())
		require.Zero(t, c.meter.Delay())
		require.Zero(t, ask())
		count, spent := c.meter.Counts()
		require.Equal(t, map[Request]int{{"squeue", "unreachable"}: 2, {"squeue", "ok"}: 2, {"scancel", "ok"}: 1}, count)
		require.Contains(t, spent, "squeue")
	})
}

// The words are those of squeue 22.05 on a machine without any slurm.conf, and on one
// whose server of configurations does not answer.
func TestAMachineWithoutAConfigurationIsNoBusyController(t *testing.T) {
	none := "squeue: error: resolve_ctls_from_dns_srv: res_nsearch error: Unknown host\nsqueue: error: fetch_config: DNS SRV lookup failed\n" +
		"squeue: error: _establish_config_source: failed to fetch config\nsqueue: fatal: Could not establish a configuration source\n"
	down := "squeue: error: _fetch_child: failed to fetch remote configs: Unable to contact slurm controller (connect failure)\n" +
		"squeue: error: _establish_config_source: failed to fetch config\nsqueue: fatal: Could not establish a configuration source\n"
	for _, given := range []struct {
		said, fix string
		delay     time.Duration
	}{
		{none, "set SLURM_CONF", 0},
		{strings.Replace(none, "Unknown host", "Host name lookup failure", 1), "name server", firstDelay},
		{down, "the controller does not answer", firstDelay},
	} {
		c := &CLI{Environ: func() []string { return nil }, meter: new(Meter), runner: &answeringRunner{answers: []result{{code: 1, stderr: given.said}}, errs: []error{nil}}}
		_, err := c.Jobs(t.Context(), slurm.Filter{})
		require.ErrorContains(t, err, "configuration source")
		require.Contains(t, slurm.FixOf(err).EN, given.fix)
		require.Equal(t, given.delay, c.meter.Delay(), given.fix)
	}
}

func TestABusyControllerNeverStopsUsForLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limited := &slurm.Error{Op: "squeue", Kind: slurm.RateLimited, Msg: lang.Same("Rate limit exceeded")}
		s := &answeringRunner{answers: []result{{}}, errs: []error{limited}}
		c := &CLI{meter: new(Meter), runner: s}
		for range 10 {
			_, err := c.run(t.Context(), command{argv: []string{"squeue"}})
			require.ErrorIs(t, err, limited)
		}
		require.Equal(t, mostDelay, c.meter.Delay())
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := c.run(ctx, command{argv: []string{"squeue"}})
		require.ErrorIs(t, err, slurm.ErrUnreachable)
		require.ErrorContains(t, err, "too busy to be asked now")
		require.Len(t, s.asked, 10)
	})
}

func TestWhatIsCountedAndWhatIsAQuestion(t *testing.T) {
	refused := errors.New("no")
	s := &answeringRunner{answers: []result{{}}, errs: []error{refused}}
	c := &CLI{meter: new(Meter), runner: s}
	for _, argv := range [][]string{{"sbatch"}, {"sh", "-c", "true"}, {"mkdir", "-p", "x"}, {"ssh", "gpu1"}} {
		_, err := c.run(t.Context(), command{argv: argv})
		require.ErrorIs(t, err, refused)
	}
	count, _ := c.meter.Counts()
	require.Equal(t, map[Request]int{{"sbatch", "refused"}: 1}, count)
	for _, q := range []struct {
		argv []string
		is   bool
	}{
		{[]string{"squeue"}, true},
		{[]string{"scontrol", "--oneliner", "show", "job"}, true},
		{[]string{"scontrol", "ping"}, true},
		{[]string{"scontrol", "hold", "7"}, false},
		{[]string{"sbatch"}, false},
		{[]string{"scancel", "7"}, false},
		{[]string{"srun", "true"}, false},
	} {
		require.Equal(t, q.is, isQuery(q.argv), q.argv)
	}
	for path, want := range map[string]string{
		"/slurm/v0.0.40/job/7": "job", "/slurmdb/v0.0.38/jobs?start_time=uts1": "jobs", "/openapi/v3": "openapi", "/slurm/v0.0.45/job/submit": "job",
	} {
		require.Equal(t, want, resource(path))
	}
}

func TestItsOwnFiguresMakeAControllerBusy(t *testing.T) {
	m := new(Meter)
	m.Busy(slurm.ControllerLoad{Threads: 10})
	require.Zero(t, m.Delay())
	m.Busy(slurm.ControllerLoad{Threads: 250})
	require.Equal(t, firstDelay, m.Delay())
}
