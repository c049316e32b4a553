package diagnose_test

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/megatron-ops/megatron-ops/slurm/diagnose"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/diagnosetest"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/outcome"
	"github.com/stretchr/testify/require"
)

// stepsAt returns reports of iterations at the given seconds after ten o'clock, each with ms as its own
// time.
func stepsAt(ms int, seconds ...int) (log string) {
	at := time.Date(2026, 6, 11, 10, 0, 0, 0, time.UTC)
	for i, s := range seconds {
		log += fmt.Sprintf(" [%s] iteration %8d/  500000 | elapsed time per iteration (ms): %d.0 | lm loss: 2.0E+00 |\n",
			at.Add(time.Duration(s)*time.Second).Format("2006-01-02 15:04:05"), i+1, ms)
	}
	return log
}

// Running jobs and the seconds of silence that they may have: one second more is a hang.
func TestHowLongAJobMayBeSilent(t *testing.T) {
	for name, c := range map[string]struct {
		log     string
		seconds int64
	}{
		"nothing known of its pace":                   {"setting up\n", 600},
		"fast iterations":                             {stepsAt(1000, 0, 1, 2, 3), 600},
		"fifteen of its iterations":                   {stepsAt(100000, 0, 100, 200, 300), 1500},
		"the usual of three gaps":                     {stepsAt(1000, 0, 30, 130, 330), 1500},
		"iterations without times, by their own word": {" iteration 1/ 500 | elapsed time per iteration (ms): 100000.0 | lm loss: 2.0E+00 |\n", 1500},
		"a pause that it came back from":              {stepsAt(10000, 0, 10, 20, 1020, 1030), 2000},
		"a long pause that it came back from":         {stepsAt(10000, 0, 10, 20, 5020, 5030), 7200},
		"it saves a checkpoint":                       {stepsAt(1000, 0, 1) + "saving checkpoint at iteration       2 to /ckpt\n", 1200},
		"it saves without an iteration":               {"saving checkpoint at iteration       2 to /ckpt\n", 1200},
		"it saved a checkpoint and went on":           {"saving checkpoint at iteration       2 to /ckpt\n" + stepsAt(1000, 0, 1), 600},
		"it begins to train":                          {"training ...\n", 600},
		"other lines for ten minutes":                 {stepsAt(1000, 0, 1) + "[2026-06-11 10:10:01] a warning\n", 600},
		"other lines for less than twenty minutes":    {stepsAt(1000, 0, 1) + "[2026-06-11 10:18:01] a warning\n", 120},
		"of two zones":                                {stepsAt(1000, 0) + "[2026-06-11 10:45:00] a warning\n", 600},
		"of two zones, nearly two minutes ahead":      {stepsAt(1000, 0) + "[2026-06-11 10:43:01] a warning\n", 600},
		"of two zones, nearly two minutes behind":     {stepsAt(1000, 0) + "[2026-06-11 10:46:59] a warning\n", 600},
		"half an hour and a bit is taken for a zone":  {stepsAt(1000, 0) + "[2026-06-11 10:30:01] a warning\n", 600},
		"half an hour of other lines":                 {stepsAt(1000, 0) + "[2026-06-11 10:30:00] a warning\n", -1},
		"two minutes more than a zone of other lines": {stepsAt(1000, 0) + "[2026-06-11 10:47:00] a warning\n", -1},
		"two minutes less than a zone of other lines": {stepsAt(1000, 0) + "[2026-06-11 10:43:00] a warning\n", -1},
		"no zone, and other lines for long":           {stepsAt(1000, 0) + "[2026-06-11 10:52:00] a warning\n", -1},
	} {
		for age, class := range map[int64]string{c.seconds: outcome.Running, c.seconds + 1: outcome.Hang} {
			if age >= 0 {
				r := diagnosetest.With(t, c.log, diagnose.Context{JobState: "RUNNING", SecondsSinceLastWrite: &age})
				require.Equal(t, class, r.Class, "%s: %d s", name, age)
			}
		}
	}
}

// Running jobs, the seconds of silence from which they may hang, and the time of their iterations.
func TestWhenAJobMayHang(t *testing.T) {
	bar := func(rate string) string { return " 30%|###       | 30/100 [01:00<02:20,  " + rate + ", loss=2.1]\n" }
	for name, c := range map[string]struct {
		log     string
		seconds int64 // 0 for never
		step    float64
	}{
		"five iterations":                  {stepsAt(10000, 0, 10, 20), 50, 10},
		"by its own word, not by the time": {stepsAt(4000, 0, 10, 20), 50, 4},
		"its own word says more":           {stepsAt(20000, 0, 10, 20), 100, 20},
		"fast iterations":                  {stepsAt(1000, 0, 1, 2), 10, 1},
		"the usual iteration of three":     {stepsAt(4000, 0) + stepsAt(40000, 1) + stepsAt(8000, 2), 40, 8},
		"it saves a checkpoint":            {stepsAt(10000, 0, 10) + "saving checkpoint at iteration       2 to /ckpt\n", 600, 10},
		"a bar that counts seconds":        {bar("4.00s/it"), 20, 4},
		"a bar that counts iterations":     {bar("0.25it/s"), 20, 4},
		"a bar that stands still":          {bar("0.00it/s"), 0, 0},
		"no iterations":                    {"setting up\n", 0, 0},
	} {
		for age, may := range map[int64]bool{c.seconds - 1: false, c.seconds: c.seconds > 0} {
			r := diagnosetest.With(t, c.log, diagnose.Context{JobState: "RUNNING", SecondsSinceLastWrite: &age})
			require.Equal(t, outcome.Running, r.Class, name)
			require.Equal(t, may, r.MayHang, "%s: %d s", name, age)
			if c.step == 0 {
				require.Nil(t, r.StepS, name)
			} else {
				require.InDelta(t, c.step, *r.StepS, 1e-6, name)
			}
		}
	}
}

// Logs of jobs of which only the logs' age is known.
func TestAJobOfWhichNothingIsKnown(t *testing.T) {
	const day = 24 * 3600
	age := func(n int64) *int64 { return &n }
	for name, c := range map[string]struct {
		log   string
		age   *int64
		class string
	}{
		"iterations, and nobody knows when":     {stepsAt(1000, 0, 1), nil, outcome.UnknownExit},
		"iterations, just now":                  {stepsAt(1000, 0, 1), age(5), outcome.Running},
		"iterations, and then silence":          {stepsAt(1000, 0, 1), age(700), outcome.Hang},
		"iterations, and a day's silence":       {stepsAt(1000, 0, 1), age(day), outcome.Hang},
		"iterations, and more than a day's":     {stepsAt(1000, 0, 1), age(day + 1), outcome.UnknownExit},
		"long iterations":                       {stepsAt(3600_000, 0, 3600, 7200), age(7201), outcome.Running},
		"no iterations, just now":               {"setting up\n", age(5), outcome.Running},
		"back at the shell's prompt, just now":  {"setting up\n(base) ana@gpu1:~/train$ \n", age(5), outcome.UnknownExit},
		"no iterations, and then silence":       {"setting up\n", age(700), outcome.UnknownExit},
		"an end, and then silence":              {stepsAt(1000, 0, 1) + "[after training is done] datetime: 2026-06-11 10:00:05\n", age(700), outcome.Success},
		"no iterations, and nobody knows when":  {"setting up\n", nil, outcome.UnknownExit},
		"no iterations, nearly ten minutes ago": {"setting up\n", age(600), outcome.Running},
	} {
		r := diagnosetest.With(t, c.log, diagnose.Context{SecondsSinceLastWrite: c.age})
		require.Equal(t, c.class, r.Class, name)
	}
}

// Iteration lines of a run that ended, and the line where the divergence begins.
func TestNumbersThatStayBad(t *testing.T) {
	report := func(n int, value string) string {
		return fmt.Sprintf(" iteration %8d/  500000 | elapsed time per iteration (ms): 5.0 | lm loss: %s | grad norm: 1.0 |\n", n, value)
	}
	for name, c := range map[string]struct {
		losses []string
		line   int // 0 for no divergence
	}{
		"NaN to the end":              {[]string{"2.0", "2.0", "nan", "nan", "nan"}, 3},
		"infinite to the end":         {[]string{"2.0", "-inf", "inf", "inf"}, 2},
		"twice NaN":                   {[]string{"2.0", "2.0", "nan", "nan"}, 0},
		"exactly twice as much first": {[]string{"2.0", "2.0", "2.0", "2.0", "4.0", "9.0", "9.0", "9.0"}, 6},
		"a name that holds inf":       {[]string{"2.0", "info", "info", "info"}, 0},
	} {
		log := ""
		for i, v := range c.losses {
			log += report(i+1, v)
		}
		r := diagnosetest.With(t, log, diagnose.Context{JobState: "FAILED", ExitCode: "1:0"})
		if c.line == 0 {
			require.Equal(t, outcome.UnknownExit, r.Class, name)
			continue
		}
		require.Equal(t, outcome.NaNLoss, r.Class, name)
		require.Equal(t, c.line, *r.RootLineNo, name)
	}
}

// For logs that end without a failure, the report shows the newest line of all.
func TestTheLastSignIsTheNewestLine(t *testing.T) {
	const early, late = "[2026-06-11 10:00:05] loading\n", "[2026-06-11 10:00:09] building\n"
	for _, c := range []struct {
		logs map[string]string
		want string
	}{
		{map[string]string{"a.out": early, "b.out": late}, "building"},
		{map[string]string{"a.out": late, "b.out": early}, "building"},
		{map[string]string{"a.out": early, "b.out": "no time\n"}, "loading"},
		{map[string]string{"a.out": "no time\n"}, "no time"},
		{map[string]string{"a.out": "", "b.out": "no time\n"}, "no time"},
		{map[string]string{"run/attempt_0/0/stdout.log": late, "run/attempt_1/0/stdout.log": early}, "loading"},
		{map[string]string{"a.out": stepsAt(1000, 0, 1) + late}, "building"},
		{map[string]string{"a.out": late + stepsAt(1000, 11, 12)}, "10:00:12] iteration"},
		{map[string]string{"a.out": stepsAt(1000, 11, 12)}, "10:00:12] iteration"},
		{map[string]string{"a.out": late, "b.out": stepsAt(1000, 11, 12)}, "10:00:12] iteration"},
		{map[string]string{"a.out": stepsAt(1000, 0, 1), "b.out": late}, "building"},
	} {
		r := ofFolder(t, c.logs)
		require.Equal(t, outcome.UnknownExit, r.Class)
		require.Contains(t, r.Evidence[0].Text, c.want, "%v", c.logs)
	}
}

// A packed log is no sign of a running job, however lately it was packed.
func TestAPackedLogDoesNotSayThatTheJobRuns(t *testing.T) {
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	_, err := z.Write([]byte("setting up\n"))
	require.NoError(t, err)
	require.NoError(t, z.Close())
	for name, c := range map[string]struct{ text, class string }{
		"job.log":    {"setting up\n", outcome.Running},
		"job.log.gz": {packed.String(), outcome.UnknownExit},
		"tail.log":   {"==> a.log <==\nsetting up\n\n==> b.log <==\nsetting up\n", outcome.Running},
	} {
		file := filepath.Join(t.TempDir(), name)
		require.NoError(t, os.WriteFile(file, []byte(c.text), 0o600))
		r, err := diagnose.Path(t.Context(), file, diagnose.Context{})
		require.NoError(t, err)
		require.Equal(t, c.class, r.Class, name)
	}
}

// scp sets the time of the copy. Where the last lines tell a time that no zone explains, the file's own
// time is not the last line's.
func TestACopyDoesNotRun(t *testing.T) {
	begin := time.Now().UTC().Add(-time.Hour)
	ago := func(d time.Duration) string {
		return fmt.Sprintf("[%s] loss 2.0\n", begin.Add(-d).Format("2006-01-02 15:04:05"))
	}
	const day = 24 * time.Hour
	several := func(d time.Duration) (all string) {
		for n := range 20 {
			all += ago(d - time.Duration(n)*time.Minute)
		}
		return all
	}
	rows := strings.Repeat("Reading a shard\n", 20)
	steps := func(n, ms int) string {
		return diagnosetest.Rounds(n, fmt.Sprintf(" iteration {n}/ 500 | elapsed time per iteration (ms): %d.0 | lm loss: 2.0E+00 |\n", ms))
	}
	bar := "Epoch 1:   0%|          | 0/50 [00:00<?, ?it/s]" + strings.Repeat("\rEpoch 1:  50%|#####     | 25/50 [00:03<00:03, 8.20it/s]", 20) + "\n"
	for name, c := range map[string]struct{ log, class string }{
		"dates, and then four lines":           {several(7*day) + strings.Repeat("Reading a shard\n", 4), outcome.UnknownExit},
		"dates, and then five lines":           {several(7*day) + strings.Repeat("Reading a shard\n", 5), outcome.Running},
		"dates, and a bar for days":            {several(7*day) + bar, outcome.Running},
		"dates of a day ago, and then none":    {several(24*time.Hour) + "Reading a shard\n", outcome.Running},
		"dates of more, and then none":         {several(29*time.Hour) + "Reading a shard\n", outcome.UnknownExit},
		"iterations, and the next phase":       {stepsAt(1000, -1e8, 1-1e8, 2-1e8, 3-1e8) + "saving checkpoint\n", outcome.UnknownExit},
		"three lines with dates, one without":  {several(7 * day)[:3*len(ago(0))] + "Reading a shard\n", outcome.UnknownExit},
		"two lines with dates, one without":    {several(7 * day)[:2*len(ago(0))] + "Reading a shard\n", outcome.Running},
		"a week ago":                           {ago(7*day+time.Minute) + ago(7*day), outcome.UnknownExit},
		"iterations, of long ago":              {stepsAt(1000, -1e8, 1-1e8), outcome.UnknownExit},
		"in another zone":                      {ago(12 * time.Hour), outcome.Running},
		"dates, and then none":                 {ago(7*day) + "loss 2.0\n", outcome.Running},
		"dates of its start, a week ago":       {several(7*day) + rows, outcome.Running},
		"dates of its start, three months ago": {several(90*day) + rows, outcome.UnknownExit},
		"eleven dates, three months ago":       {several(90 * day)[9*len(ago(0)):] + rows, outcome.Running},
		"steps without dates":                  {several(4*day) + steps(11, 1000) + rows, outcome.UnknownExit},
		"twelve steps without dates":           {several(4*day) + steps(12, 1000) + rows, outcome.Running},
		"long steps without dates":             {several(4*day) + steps(5, 30000000) + rows, outcome.Running},
		"no dates":                             {"loss 2.0\nloss 1.9\n", outcome.Running},
		"the year is not told":                 {"Jun 11 10:00:00 gpu1 loss 2.0\n", outcome.Running},
		"a week ago, and Slurm says it runs":   {ago(7 * day), outcome.Running},
	} {
		given := diagnose.Context{}
		if strings.Contains(name, "Slurm") {
			given.JobState = "RUNNING"
		}
		path := filepath.Join(t.TempDir(), "slurm-7.out")
		require.NoError(t, os.WriteFile(path, []byte(c.log), 0o600))
		r, err := diagnose.Path(t.Context(), path, given)
		require.NoError(t, err)
		require.Equal(t, c.class, r.Class, name)
	}
}
