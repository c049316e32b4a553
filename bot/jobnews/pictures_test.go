package jobnews

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/bot/card"
	"github.com/megatron-ops/megatron-ops/bot/incoming"
	"github.com/megatron-ops/megatron-ops/bot/record"
	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/ops/jobcontrol"
	"github.com/megatron-ops/megatron-ops/internal/ops/joblogs"
	"github.com/megatron-ops/megatron-ops/internal/ops/operations"
	"github.com/megatron-ops/megatron-ops/internal/ops/opstest"
	"github.com/megatron-ops/megatron-ops/internal/ops/pipeline"
	"github.com/megatron-ops/megatron-ops/internal/store"
	"github.com/megatron-ops/megatron-ops/slurm"
)

// numbersOf reads the numbers of the job 4711 from its log.
func (s *stage) numbersOf(log string) (n card.News, m joblogs.MetricsOut) {
	s.t.Helper()
	n.Job = s.put(run(slurm.Running), log)
	n.Job.Cluster = "test"
	m, ok := s.addNumbers(s.ctx, &n)
	require.True(s.t, ok)
	return n, m
}

// The loss is a picture below the card: the first in a message, the next in its place;
// where that message does not stand, a file.
func TestTheLossIsAPictureAtEachQuarter(t *testing.T) {
	t.Parallel()
	s := set(t)
	s.begin(run(slurm.Running))
	n, m := s.numbersOf(trained(30))
	draw := func(quarter int, name string) []string {
		s.postCurve(s.ctx, n, m, quarter, name, lang.EN)
		return s.told()
	}
	require.Equal(t, []string{"post below " + theCard + ": loss-25.png"}, draw(1, "loss-25.png"))
	require.Empty(t, draw(1, "loss-25.png"), "once")
	require.Equal(t, []string{"upload below " + theCard + ": loss-50.png"}, draw(2, "loss-50.png"), "no message shows the first")
	require.NoError(t, s.kept.Enqueue(s.ctx, store.SlackMessage{Key: theCard + "/curve", Lane: "x", Body: "{}"}))
	s.told()
	due, err := s.kept.Due(s.ctx, noon.AddDate(1, 0, 0), 100)
	require.NoError(t, err)
	for _, m := range due {
		if m.Key == theCard+"/curve" {
			require.NoError(t, s.kept.Sent(s.ctx, m, store.SlackRef{Channel: "C1", TS: "1.2"}))
		}
	}
	require.Equal(t, []string{"update " + theCard + "/curve: loss-75.png"}, draw(3, "loss-75.png"))
	require.Equal(t, []string{"update " + theCard + "/curve: loss.png"}, draw(ended, "loss.png"))
	require.Equal(t, []string{"update " + theCard + "/curve: loss.png"}, draw(ended, "loss.png"), "the end is shown whatever was before")

	fresh := set(t)
	fresh.begin(run(slurm.Running))
	n, m = fresh.numbersOf(trained(30))
	fresh.drawCurve(fresh.ctx, n, m, lang.EN)
	require.Equal(t, []string{"upload below " + theCard + ": loss.png"}, fresh.told(), "at the end a file is enough")
	n.Curve = n.Curve[:1]
	fresh.drawCurve(fresh.ctx, n, m, lang.EN)
	require.Empty(t, fresh.told(), "a point is no curve")
	fresh.drawProgress(fresh.ctx, n, m)
	require.Empty(t, fresh.told(), "the card has the chart")
}

// Where the workspace takes no charts, each quarter of a run is a picture; the end is not.
func TestAQuarterIsAPictureWhereACardHasNoChart(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := set(t)
		s.slack = func(string, map[string][]string) string { return `{"ok":false,"error":"invalid_blocks"}` }
		s.begin(run(slurm.Running))
		ctx, stop := context.WithCancel(t.Context())
		go s.out.Run(ctx)
		synctest.Wait()
		stop()
		n, m := s.numbersOf(trained(30))
		s.told()
		for _, c := range []struct {
			iteration int
			shown     string
		}{
			{24, ""},
			{25, "post below " + theCard + ": loss-25.png"},
			{49, ""},
			{50, "upload below " + theCard + ": loss-50.png"},
			{80, "upload below " + theCard + ": loss-75.png"},
			{100, ""},
		} {
			n.Iteration = c.iteration
			s.drawProgress(s.ctx, n, m)
			require.Equal(t, c.shown, strings.Join(s.told(), "; "), c.iteration)
		}
	})
}

// The card of a pipeline shows its steps, how far each is, and where it broke.
func TestAPipelinesCard(t *testing.T) {
	t.Parallel()
	id := func(s slurm.JobID) *slurm.JobID { return &s }
	p := pipeline.Out{Name: "nightly", Owner: "ada", Page: "https://x/p", Steps: []pipeline.Step{
		{Name: "prep", JobID: id("1"), State: slurm.Completed}, {Name: "train", JobID: id("2"), State: slurm.Running}, {Name: "eval"},
	}}
	heard := map[slurm.JobID]stepState{"2": {State: slurm.Running, Iteration: 10, Iterations: 100}}
	draw := func() string {
		_, blocks := drawPipeline(p, heard, lang.EN)
		return string(blocks)
	}
	shown := draw()
	for _, words := range []string{"🔵 nightly · 1 of 3 steps completed", "✅ *prep* · completed · 1", "🔵 *train* · running · 2 · iteration 10 of 100", "*eval* · not submitted", "|page", `"ada`} {
		require.Contains(t, shown, words)
	}
	heard["2"] = stepState{State: slurm.Running}
	require.NotContains(t, draw(), "iteration", "where none is known")

	p.Steps[1].State, p.BrokenAt, p.File, p.Page = slurm.Failed, "train", "nightly.yaml", ""
	heard["2"] = stepState{State: slurm.Failed, Why: "out of <memory>", Iterations: 100}
	shown = draw()
	require.Contains(t, shown, "❌ nightly")
	require.Contains(t, shown, "failed · 2 · out of")
	require.NotContains(t, shown, "iteration")
	require.Contains(t, shown, "goes on where it broke")
	require.NotContains(t, shown, "|page")
	p.BrokenAt = ""
	require.NotContains(t, draw(), "goes on where it broke")

	for _, c := range []struct {
		states []slurm.State
		mark   string
	}{
		{[]slurm.State{slurm.Pending, slurm.Pending}, "🟡 nightly"},
		{[]slurm.State{slurm.Completed, slurm.Pending}, "🔵 nightly"},
		{[]slurm.State{slurm.Running, slurm.Pending}, "🔵 nightly"},
		{[]slurm.State{slurm.Completed, slurm.Completed}, "✅ nightly"},
	} {
		p.Steps = nil
		for i, state := range c.states {
			p.Steps = append(p.Steps, pipeline.Step{Name: "s", JobID: id(slurm.JobID(rune('1' + i))), State: state})
		}
		require.Contains(t, draw(), c.mark)
	}
	p.Steps = make([]pipeline.Step, mostSteps)
	require.NotContains(t, draw(), "+")
	p.Steps = make([]pipeline.Step, mostSteps+2)
	require.Contains(t, draw(), `\n+2"`)
}

// The jobs of a pipeline's steps share a card in each place that follows them, and the
// end of one is told below it.
func TestThePlacesOfAPipelineHaveOneCard(t *testing.T) {
	t.Parallel()
	s := set(t)
	dir := t.TempDir()
	step := "{nodes: 1, gpus_per_node: 0, launcher: custom, launcher_argv: [bash], script: x.sh, time: 10, worktree: /lustre/m"
	require.NoError(t, os.WriteFile(filepath.Join(dir, "nightly.yaml"), []byte("name: nightly\nsteps:\n  - {name: prep, job: "+step+
		"}}\n  - {name: train, needs: [prep], job: "+step+`, args: ["<prep.job_id>"]}}`+"\n"), 0o600))
	op := pipeline.Submit()
	call := &ops.Call{Service: s.cfg.Service, Who: ops.Caller{Surface: ops.Shell, ID: "ada", User: "ada"}, Dir: dir}
	_, err := op.Run(s.ctx, call, &pipeline.In{File: "nightly.yaml", Yes: true})
	require.NoError(t, err)
	for _, key := range []string{"user/ada@T1/C8", "user/ada@T1/C9"} {
		require.NoError(t, s.kept.Put(s.ctx, record.Follow, key, "U1", time.Time{}))
	}
	news := func(id slurm.JobID, state slurm.State) []string {
		told := s.tell(card.News{Job: slurm.Job{ID: id, Name: "x", User: "ada", State: state}})
		slices.Sort(told)
		return told
	}
	require.Equal(t, []string{"post C8: nightly: 0 of 2 steps completed", "post C9: nightly: 0 of 2 steps completed"}, news("4701", slurm.Running))
	require.Empty(t, news("4701", slurm.Running), "nothing is new")
	told := news("4701", slurm.Completed)
	require.Contains(t, told, "update card/pipeline/ada/nightly@T1/C8: nightly: 1 of 2 steps completed")
	require.Contains(t, told, "post below card/pipeline/ada/nightly@T1/C9: ✅ x (4701): completed")
	require.Len(t, told, 4)
	told = news("4702", slurm.Failed)
	require.Contains(t, told[len(told)-1], "broke at train")
}

// Who submits a run with a schedule is told where it stops coming.
func TestARunWithAScheduleIsExpected(t *testing.T) {
	t.Parallel()
	s := set(t)
	a := incoming.Ask{Key: "k", Team: "T1", User: "U1", Channel: "C1"}
	c := s.people.Call(s.ctx, a)
	submit, _ := operations.Lookup("submit")
	expect := func(schedule ...string) []string {
		in := submit.NewIn()
		require.NoError(t, submit.Words(in, slices.Concat(schedule, opstest.GoodJob)))
		s.expectSchedule(s.ctx, a, c, in)
		return s.follows()
	}
	require.Empty(t, expect())
	require.Empty(t, expect("--every=now and then"), "it is no schedule")
	c.Lang = lang.ZH
	require.Equal(t, []string{"name/gpt expected@T1/C1"}, expect("--every=daily"))
	all, err := s.subscriptions(s.ctx)
	require.NoError(t, err)
	s.checkExpected(s.ctx, all, nil)
	s.at = s.at.Add(missingFor)
	s.checkExpected(s.ctx, all, nil)
	require.Contains(t, s.told()[0], "没有名为 gpt 的作业在排队或运行", "in the language in which it was submitted")
}

// Who submits has the card where they asked; nothing is followed that was not submitted.
func TestASubmissionIsFollowed(t *testing.T) {
	t.Parallel()
	s := set(t)
	submit, _ := operations.Lookup("submit")
	status, _ := operations.Lookup("status")
	cancel, _ := operations.Lookup("cancel")
	a := incoming.Ask{Key: "k", Team: "T1", User: "U1", Channel: "C1"}
	c := s.people.Call(s.ctx, a)
	type result struct {
		Cluster string      `json:"cluster"`
		JobID   slurm.JobID `json:"job_id"`
		Job     string      `json:"job"`
		Name    string      `json:"name"`
		Script  string      `json:"script"`
	}
	for _, r := range []result{{Name: "gpt"}, {JobID: "4711.0"}} {
		require.Empty(t, s.Follow(s.ctx, a, c, submit, nil, r))
	}
	require.Empty(t, s.Follow(s.ctx, a, c, status, nil, result{JobID: "4711"}))
	require.Empty(t, s.told())
	s.site.Put(slurm.Job{ID: "4711", Name: "gpt", User: "ada", State: slurm.Running})
	require.Empty(t, s.Follow(s.ctx, a, c, submit, nil, result{JobID: "4711", Name: "gpt"}))
	require.Equal(t, "post C1: 🔵 gpt (4711): running", s.told()[0])
	s.site.Put(slurm.Job{ID: "4712", Name: "gpt", User: "ada", State: slurm.Failed})
	a.Channel = ""
	s.Follow(s.ctx, a, c, submit, nil, result{JobID: "4712", Name: "gpt", Script: "#!/bin/bash", Cluster: "test"})
	told := s.told()
	require.Equal(t, "post U1: 🟡 gpt (4712): waiting", told[0], "an end is the watcher's to tell")
	require.Contains(t, told[2], "4712.sbatch")
	for _, x := range []struct {
		result any
		acted  string
	}{
		{jobcontrol.CancelOut{JobID: "4711", Signal: "USR1"}, ""},
		{jobcontrol.CancelOut{JobID: "4711", State: slurm.Cancelled}, ""},
		{jobcontrol.CancelOut{JobID: "4711", Cancelled: true, Step: "4711.0"}, ""},
		{jobcontrol.KillSwitchOut{JobID: "4711", On: true}, ""},
		{jobcontrol.KillSwitchOut{JobID: "4711", On: true, Changed: true}, "U1"},
		{jobcontrol.KillSwitchOut{JobID: "4711", Changed: true}, ""},
		{jobcontrol.CancelOut{Jobs: []jobcontrol.CancelledJob{{JobID: "4711", Cancelled: true}}}, "U1"},
		{jobcontrol.CancelOut{JobID: "4711", Cancelled: true}, "U1"},
		{jobcontrol.KillSwitchOut{JobID: "4711", Changed: true}, "U1"}, // whoever cancelled the job has done so whatever the switch says
	} {
		s.Follow(s.ctx, a, c, cancel, &jobcontrol.CancelIn{}, x.result)
		require.Equal(t, x.acted, s.card("4711").Acted, "%+v: only whoever has ended a job does not hear of its end", x.result)
	}
	a.User = "U2"
	s.Follow(s.ctx, a, c, cancel, &jobcontrol.CancelIn{}, jobcontrol.CancelOut{JobID: "4711", Cancelled: true})
	require.Equal(t, "U1", s.card("4711").Acted, "somebody was faster")
	s.Follow(s.ctx, a, c, cancel, &jobcontrol.CancelIn{}, jobcontrol.KillSwitchOut{JobID: "4712", On: true, Changed: true})
	require.NoError(t, s.Tell(s.ctx, card.News{Job: slurm.Job{ID: "4712", Cluster: "test", Name: "gpt", User: "ada", State: slurm.Cancelled}}))
	s.Follow(s.ctx, a, c, cancel, &jobcontrol.CancelIn{}, jobcontrol.KillSwitchOut{JobID: "4712", Changed: true})
	require.Contains(t, s.told()[1], "cancelled by grace")
	require.Equal(t, "U2", s.card("4712").EndedBy(), "the switch is turned off for the next start; it has ended this job")

	var followed []slurm.Job
	a.Terminal = &incoming.Terminal{User: "ada", Submitted: func(j slurm.Job) { followed = append(followed, j) }}
	require.Len(t, s.Follow(s.ctx, a, c, submit, nil, result{JobID: "4711"}), 1)
	require.Len(t, followed, 1)
	require.Equal(t, slurm.Running, followed[0].State)
	require.Empty(t, s.told())
}

// A job as the queue shows it; none where the cluster or the job is unknown.
func TestAJobIsSeenInTheQueue(t *testing.T) {
	t.Parallel()
	s := set(t)
	s.site.Put(slurm.Job{ID: "1", State: slurm.Running})
	j, ok := Queued(s.ctx, s.cfg.Service, "test", "1")
	require.True(t, ok)
	require.Equal(t, "test", j.Cluster)
	_, ok = Queued(s.ctx, s.cfg.Service, "test", "2")
	require.False(t, ok)
	_, ok = Queued(s.ctx, s.cfg.Service, "elsewhere", "1")
	require.False(t, ok)
	s.cfg.Service.Clusters["down"] = down{s.site}
	_, ok = Queued(s.ctx, s.cfg.Service, "down", "1")
	require.False(t, ok)
	require.False(t, s.discover(s.ctx, noon.Add(-time.Minute)), "where a cluster does not answer, the look was not complete")
}

type down struct{ ops.Cluster }

func (down) Jobs(context.Context, slurm.Filter) ([]slurm.Job, error) { return nil, slurm.ErrUnknown }
