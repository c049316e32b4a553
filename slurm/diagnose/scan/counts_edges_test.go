package scan_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/slurm/diagnose/diagnosetest"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/scan"
)

// TestWhichCountsAreAtTheirEnd has a count, bar or estimate among the last lines.
func TestWhichCountsAreAtTheirEnd(t *testing.T) {
	counted := func(full bool) scan.Ending { return scan.Ending{Counted: true, Full: full} }
	for log, want := range map[string]scan.Ending{
		"step 3/3\n": counted(true), "step 4/3\n": counted(true), "step 5/3\n": counted(false), "step 2/3\n": counted(false),
		"step 0/0\n": counted(false), "step 1/0\n": counted(false), "iter 3 of 3\n": counted(true), "Iteration: 3/3\n": counted(true),
		"3/3 |####|\n": counted(true), "2/3 |### |\n": counted(false), "3/3 of it\n": {}, "3/3 [00:01<00:00]\n": counted(true),
		"100% ━━━━ 1,200/1,200 [ 0:08 ]\n": counted(true), " 99% ━━━━ 1,199/1,200 [ 0:08 ]\n": counted(false),
		"100% ━━━━ 2,400/2,400 [ 0:08 ]\nBatch 7\n": counted(true),
		"Epoch 2, step 3/3\n":                       counted(true), "Epoch 2: 100%|####| 3/3 [00:07<00:00, 3.9it/s]\n": {},
		// An epoch, and the count in the same line of what is in it.
		"Epoch: 3/3, Batch: 9/10\n": counted(true), "Epoch: 3/3, Batch: 8/10\n": {Counted: true, Short: true},
		"Epoch: 3/3, Batch: 90/100\n": counted(true), "Epoch: 3/3, Batch: 89/100\n": {Counted: true, Short: true},
		"Step: 3/3, Batch: 1/10\n": counted(true), "Epoch: 2/3, Batch: 10/10\n": {Counted: true, Short: true},
		// A count from nought, whose last is one less, and a line behind it.
		"step 0/3\nstep 2/3\na word\n": counted(true), "step 0/3\nstep 1/3\na word\n": counted(false), "step 0/4\nstep 2/3\na word\n": counted(false),
		"step 1/3\nstep 2/3\na word\n": counted(false), "step 0/3\nstep 2/3\n": counted(false), "step 0/3\nstep 3/3\na word\n": counted(true),
	} {
		require.Equal(t, want, factsOf(t, log).Ending(), log)
	}
}

// TestWhenTheLastEpochIsWhole has epochs whose number stands with or without their total, and lines in them.
func TestWhenTheLastEpochIsWhole(t *testing.T) {
	const row = "dice {n}: 0.7\n"
	of := func(n, all, lines int) string {
		return fmt.Sprintf("Epoch %d/%d\n", n, all) + diagnosetest.Rounds(lines, row)
	}
	alone := func(n int, behind string, lines int) string {
		return fmt.Sprintf("Epoch %d%s\n", n, behind) + diagnosetest.Rounds(lines, row)
	}
	barred := func(n int, bar, behind string) string { return bar + fmt.Sprintf("Epoch %d%s\n", n, behind) }
	const settings, loss = "num_epochs: 3\n", ": loss 0.5"
	const full, part = "Epoch 2: 100%|####| 31/31 [00:07<00:00, 3.9it/s]\n", "Epoch 2:  50%|##  | 15/31 [00:07<00:00, 3.9it/s]\n"
	for name, c := range map[string]struct {
		log  string
		full bool
	}{
		"as long as the one before":              {of(1, 2, 9) + of(2, 2, 9), true},
		"a line shorter":                         {of(1, 2, 9) + of(2, 2, 8), false},
		"a line longer":                          {of(1, 2, 9) + of(2, 2, 10), true},
		"50 lines longer":                        {of(1, 2, 9) + of(2, 2, 59), true},
		"51 lines longer":                        {of(1, 2, 9) + of(2, 2, 60), false},
		"one behind the total":                   {of(2, 2, 9) + of(3, 2, 9), true},
		"two behind the total":                   {of(3, 2, 9) + of(4, 2, 9), false},
		"one before the total":                   {of(2, 4, 9) + of(3, 4, 9), false},
		"one before the total, from nought":      {of(0, 3, 9) + of(1, 3, 9) + of(2, 3, 9), true},
		"two before the total, from nought":      {of(0, 4, 9) + of(1, 4, 9) + of(2, 4, 9), false},
		"the only one":                           {of(1, 1, 9), false},
		"named in each of its lines":             {strings.Repeat("Epoch 1/2\n", 9) + strings.Repeat("Epoch 2/2\n", 9), true},
		"named with another total":               {of(2, 3, 9) + of(2, 2, 9), true},
		"a setting gives the total":              {settings + alone(2, loss, 9) + alone(3, loss, 9), true},
		"a setting, and a shorter one":           {settings + alone(2, loss, 9) + alone(3, loss, 8), false},
		"a setting, and one before":              {settings + alone(1, loss, 9) + alone(2, loss, 9), false},
		"a setting, and one before, from nought": {settings + alone(0, loss, 9) + alone(1, loss, 9) + alone(2, loss, 9), true},
		"no setting":                             {alone(2, loss, 9) + alone(3, loss, 9), false},
		"a setting of none":                      {"num_epochs: 0\n" + alone(2, loss, 9) + alone(3, loss, 9), false},
		"its number alone":                       {settings + alone(2, "", 0) + alone(3, "", 0), false},
		"its number and results alone":           {settings + alone(2, loss, 0) + alone(3, loss, 0), true},
		"its number alone, and a line":           {settings + alone(2, "", 0) + alone(3, "", 1), true},
		"results behind the full bar":            {settings + barred(2, full+"a\nb\n", loss) + barred(3, full, loss), true},
		"results right behind the full bar":      {settings + barred(2, "a\nb\n"+full, loss) + "a\nb\n" + barred(3, full, loss), true},
		"its number right behind the full bar":   {settings + "Epoch 1\na\nb\n" + barred(2, full, "") + "a\nb\n" + barred(3, full, ""), false},
		"results a line behind the full bar":     {settings + barred(2, "a\nb\n"+full, loss) + "a\nb\n" + barred(3, full+"a\n", loss), false},
		"results behind a bar that is not full":  {settings + barred(2, "a\nb\n"+full, loss) + "a\nb\n" + barred(3, part, loss), false},
		"a heading is the last line":             {settings + alone(2, loss, 9) + alone(3, loss, 9) + "Results:\n", false},
		"what comes next is the last line":       {of(1, 2, 9) + of(2, 2, 9) + "evaluating the next one ...\n", false},
	} {
		e := factsOf(t, c.log).Ending()
		require.Equal(t, c.full, e.Full, name)
		require.False(t, c.full && e.Short, name)
	}
}

// TestWhenAPlanWasReached has trainers that announced their iterations, or estimate the time that remains.
func TestWhenAPlanWasReached(t *testing.T) {
	const note, planned, spent = "a note\n", "total iterations: 40\n", "iter: 1000, lr: 0.1, eta: 0:00:00\n"
	const tested, testing = "Iter(val) [125/125]    mIoU: 49.1\n", "Iter(val) [100/125]    mIoU: 49.1\n"
	const part = "Test:  50%|##  | 15/31 [00:07<00:07, 3.9it/s]\n"
	notes := func(n int) string { return strings.Repeat(note, n) }
	estimates := func(n int, etas ...string) (log string) {
		for i, eta := range etas {
			log += fmt.Sprintf("Epoch: [%d] [%d00/250] lr: 0.1 eta: %s\n", n, i+1, eta)
		}
		return log
	}
	epochs := func(lines int) string {
		return estimates(1, "0:09:00", "0:07:10") + notes(5) + estimates(2, "0:06:00", "0:04:10") + notes(5) + estimates(3, "0:03:00", "0:01:10") + notes(lines)
	}
	days := func(eta string) string {
		return estimates(1, "2 days, 0:00:00", "1 day, 12:00:00") + estimates(2, "1 day, 8:00:00", "1 day, 0:00:00") + estimates(3, "12:00:00", eta) + notes(5)
	}
	for name, c := range map[string]struct {
		log  string
		over bool
	}{
		"the last of its iterations":             {planned + "iteration 40 : loss 1.1\n", true},
		"the last, and 50 lines":                 {planned + "iteration 40 : loss 1.1\n" + notes(50), true},
		"the last, and 51 lines":                 {planned + "iteration 40 : loss 1.1\n" + notes(51), false},
		"the last, and 51 with bars":             {planned + "iteration 40 : loss 1.1\n" + strings.Repeat(note+part, 50), true},
		"one before":                             {planned + "iteration 39 : loss 1.1\n", false},
		"one behind":                             {planned + "iteration 41 : loss 1.1\n", false},
		"the last, and the first of a part":      {planned + "iteration 40 : loss 1.1\niteration 1 : loss 1.1\n", false},
		"a setting of the most iterations":       {"max_iterations=40, lr=0.1\niteration 40 : loss 1.1\n", true},
		"a setting of the most in a list":        {"  max_iters:      40\niteration 40 : loss 1.1\n", true},
		"a setting of another most":              {"max_iterations_per_step=40, lr=0.1\niteration 40 : loss 1.1\n", false},
		"a setting that is no number of them":    {"max_iter: 40.5\niteration 40 : loss 1.1\n", false},
		"a setting behind an announcement":       {planned + "max_iter: 100\niteration 40 : loss 1.1\n", true},
		"the last of a setting, twice":           {"max_iter: 40\niteration 40 : loss 1.1\niteration 40 : loss 1\n", false},
		"the last of a setting, and one of late": {"max_iter: 40\niteration 40 : loss 1.1\niteration 30 : loss 1\n", false},
		"a setting among a call's arguments":     {"LogisticRegression(C=1.0, max_iter=40)\niteration 40 : loss 1.1\n", false},
		"a setting among arguments":              {"Namespace(lr=0.1, max_iterations=40, seed=7)\niteration 40 : loss 1.1\n", true},
		"a setting, and it goes on":              {"max_iter: 40\niteration 40 : loss 1.1\niteration 50 : loss 1\n", false},
		"a setting of a call":                    {"LogisticRegression(max_iter=40)\niteration 40 : loss 1.1\n", false},
		"a setting of something else":            {"env: max_steps: 40\nstep 40: reward 1.1\n", false},
		"the last, the first, and the last":      {planned + "iteration 40 : loss 1\niteration 10 : loss 1\niteration 40 : loss 1\n", false},
		"the last, and one that was better":      {planned + "iteration 40 : loss 1.1\niteration 39 was the best\n", true},
		"no announcement":                        {"iteration 40 : loss 1.1\n", false},
		"no time is left":                        {spent, true},
		"no time is left, and 50 lines":          {spent + notes(50), true},
		"no time is left, and 51 lines":          {spent + notes(51), false},
		"no time is left, twice":                 {spent + spent, false},
		"no time is left, three times":           {spent + spent + spent, false},
		"no time is left of a named epoch":       {"epoch 3, " + spent, false},
		"no time is left, and an evaluation":     {spent + notes(51) + tested, true},
		"no time is left, and half of one":       {spent + notes(51) + testing, false},
		"an evaluation alone":                    {tested, false},
		"no time is left, and a plan's number":   {spent + spent + planned + "iteration 40 : loss 1.1\n", true},
		"as many lines as between epochs":        {epochs(5), true},
		"one fewer":                              {epochs(4), false},
		"50 more":                                {epochs(56), true},
		"51 more":                                {epochs(57), false},
		"none between epochs, and none after": {
			estimates(1, "0:09:00", "0:07:10") + estimates(2, "0:06:00", "0:04:10") + estimates(3, "0:03:00", "0:01:10"), false,
		},
		"none between epochs, and one after": {
			estimates(1, "0:09:00", "0:07:10") + estimates(2, "0:06:00", "0:04:10") + estimates(3, "0:03:00", "0:01:10") + note, true,
		},
		"less than between two reports": {days("5:59:59"), true},
		"as much as between two":        {days("6:00:00"), false},
		"a day more":                    {days("1 day, 5:59:59"), false},
		"only two epochs":               {estimates(2, "0:06:00", "0:04:10") + notes(5) + estimates(3, "0:03:00", "0:01:10") + notes(9), false},
		"each epoch has its own": {
			diagnosetest.Rounds(4, "Epoch: [{n}] [100/250] lr: 0.1 eta: 0:03:00\nEpoch: [{n}] [200/250] lr: 0.1 eta: 0:01:10\n") + notes(9), false,
		},
		"no time is left of the third epoch": {
			estimates(1, "0:09:00") + estimates(2, "0:06:00") + estimates(3, "0:00:00"), true,
		},
		"no time is left of the second epoch": {estimates(1, "0:09:00") + estimates(2, "0:00:00"), false},
	} {
		f := factsOf(t, note+c.log)
		require.Equal(t, c.over, f.Ending().Said, name)
	}
}
