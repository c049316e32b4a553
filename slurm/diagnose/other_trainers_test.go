package diagnose_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/megatron-ops/megatron-ops/slurm/diagnose"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/diagnosetest"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/outcome"
	"github.com/stretchr/testify/require"
)

// titan returns torchtitan's report of a step, in its aligned columns.
func titan(at time.Time, n int, loss string) string {
	return fmt.Sprintf("[rank0]:[titan] %s,123 - root - INFO - step: %2d  loss: %8s  grad_norm: %7s  memory: 50.10GiB(63.30%%)  tps: 5,123\n",
		at.Format("2006-01-02 15:04:05"), n, loss, loss)
}

// Reports in other trainers' forms whose losses are NaN until the end of a run that completed.
func TestOtherTrainersNaN(t *testing.T) {
	at := time.Date(2026, 6, 11, 10, 0, 0, 0, time.UTC)
	forms := map[string]func(n int, loss string) string{
		"torchtitan": func(n int, loss string) string { return titan(at.Add(time.Duration(n)*time.Second), n, loss) },
		"DeepSpeed's pipeline": func(n int, loss string) string {
			return fmt.Sprintf("steps: %d loss: %s iter time (s): 12.345 samples/sec: 83.123\n", n, loss)
		},
	}
	for name, line := range forms {
		log := ""
		for n := 10; n <= 100; n += 10 {
			log += line(n, map[bool]string{true: "nan", false: "2.3456"}[n > 50])
		}
		r := diagnosetest.With(t, log, diagnose.Context{JobState: "COMPLETED", ExitCode: "0:0"})
		require.Equal(t, outcome.NaNLoss, r.Class, name)
		healthy := strings.ReplaceAll(log, "nan", "2.3")
		r = diagnosetest.With(t, healthy, diagnose.Context{JobState: "COMPLETED", ExitCode: "0:0"})
		require.Equal(t, outcome.Success, r.Class, name)
	}
}

// Reports that come every ten steps, and what one step takes.
func TestStepsBetweenReportsCount(t *testing.T) {
	log, age := "", int64(30)
	for n := 10; n <= 100; n += 10 {
		log += titan(time.Date(2026, 6, 11, 10, 0, 0, 0, time.UTC).Add(time.Duration(n)*4*time.Second), n, "2.3456")
	}
	r := diagnosetest.With(t, log, diagnose.Context{JobState: "RUNNING", SecondsSinceLastWrite: &age})
	require.NotNil(t, r.StepS)
	require.InDelta(t, 4, *r.StepS, 0.01)
}

// Running jobs whose steps take minutes and whose lines have no times, after fourteen steps' silence and sixteen.
func TestSlowStepsWithoutTimes(t *testing.T) {
	for name, log := range map[string]string{
		"NeMo": "\rEpoch 0: :   1%|          | 20/2000 [1:40:00<82:00:00, v_num=ab, reduced_train_loss=10.90, global_step=19.00, " +
			"train_step_timing in s=300.0]",
		"ms-swift": "\rTrain:   2%|2         | 10/500 [50:00<40:50:00, 300.00s/it]",
	} {
		for steps, class := range map[int64]string{14: outcome.Running, 16: outcome.Hang} {
			age := 300 * steps
			r := diagnosetest.With(t, log, diagnose.Context{JobState: "RUNNING", SecondsSinceLastWrite: &age})
			require.Equal(t, class, r.Class, "%s: %d steps", name, steps)
			require.NotNil(t, r.StepS, name)
			require.InDelta(t, 300, *r.StepS, 0.01, name)
		}
	}
}
