package web

import (
	"cmp"
	"slices"
	"time"

	"github.com/goccy/go-yaml"

	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/ops/jobcontrol"
	"github.com/megatron-ops/megatron-ops/internal/redact"
	"github.com/megatron-ops/megatron-ops/internal/view"
	"github.com/megatron-ops/megatron-ops/slurm"
)

// mostAttempts is how many runs of one name a timeline shows.
const mostAttempts = 12

// An attempt is one job of a run's name: when it waited and ran, in thousandths of the
// timeline's span.
type attempt struct {
	Job                       slurm.Job
	Here                      bool
	WaitFrom, WaitFor         int
	RunFrom, RunFor           int
	Submitted, Started, Ended *time.Time
}

// A timeline is the attempts at a run, oldest first.
type timeline struct {
	On       string
	Lacks    string // why earlier attempts are missing; empty where they are not
	From, To time.Time
	Attempts []attempt
}

// attempts shows the jobs with the name and user of the page's job, of the last week or
// unfinished.
func (v *visit) attempts() error {
	cluster, id := v.jobInPath()
	_, j, err := v.call().Reading().ShownJob(v.r.Context(), cluster, id)
	if err != nil {
		return err
	}
	list, err := runAs[jobcontrol.ListOut](v, cluster, "list", "--all", "--user="+j.User, "--name="+j.Name)
	if err != nil {
		return err
	}
	line := timelineOf(cluster, j, list.Jobs, v.s.cfg.Service.Now())
	line.Lacks = list.Lacks().In(v.lang)
	return v.drawPart("attempts", line)
}

// timelineOf arranges the jobs of one name. It includes here, however old it is.
func timelineOf(cluster string, here slurm.Job, jobs []slurm.Job, now time.Time) timeline {
	jobs = slices.DeleteFunc(slices.Clone(jobs), func(j slurm.Job) bool { return j.ID == here.ID || j.SubmittedAt == nil })
	if here.SubmittedAt != nil {
		jobs = append(jobs, here)
	}
	slices.SortFunc(jobs, func(a, b slurm.Job) int {
		return cmp.Or(a.SubmittedAt.Compare(*b.SubmittedAt), cmp.Compare(a.ID, b.ID))
	})
	if at := slices.IndexFunc(jobs, func(j slurm.Job) bool { return j.ID == here.ID }); len(jobs) > mostAttempts {
		from := min(max(0, at-mostAttempts/2), len(jobs)-mostAttempts)
		jobs = jobs[from : from+mostAttempts]
	}
	t := timeline{On: cluster}
	for _, j := range jobs {
		end := j.EndedAt
		switch {
		case end == nil && j.State == slurm.Ended: // at a time that is not known
			seen := cmp.Or(j.StartedAt, j.SubmittedAt).Add(time.Duration(j.ElapsedS) * time.Second)
			end = &seen
		case end == nil:
			end = &now
		}
		if t.From.IsZero() {
			t.From = *j.SubmittedAt
		}
		if end.After(t.To) {
			t.To = *end
		}
		t.Attempts = append(t.Attempts, attempt{Job: j, Here: j.ID == here.ID, Submitted: j.SubmittedAt, Started: j.StartedAt, Ended: end})
	}
	all := max(t.To.Sub(t.From), time.Second)
	part := func(from, to time.Time) (at, long int) {
		at = int(1000 * from.Sub(t.From) / all)
		return min(at, 995), max(5, int(1000*to.Sub(from)/all))
	}
	for i := range t.Attempts {
		a := &t.Attempts[i]
		begun := a.Ended
		if a.Started != nil && !a.Started.After(*a.Ended) {
			begun = a.Started
			a.RunFrom, a.RunFor = part(*begun, *a.Ended)
		}
		a.WaitFrom, a.WaitFor = part(*a.Submitted, *begun)
	}
	return t
}

// specification shows what the job was submitted with, and its script. Only who may
// change the job may see it, because an environment may contain secrets.
func (v *visit) specification() error {
	cluster, id := v.jobInPath()
	c := v.call().Reading()
	_, j, err := c.ShownJob(v.r.Context(), cluster, id)
	if err != nil {
		return err
	}
	if err := c.MayChange(j); err != nil {
		return err
	}
	sub, ok, _ := c.SubmissionOf(v.r.Context(), cluster, j)
	spec, known := c.SpecOfJob(v.r.Context(), cluster, j)
	if !ok || !known {
		return ops.NotFoundError("job", textNotFromHere.With(id), textNotFromHereFix)
	}
	text, err := yaml.MarshalWithOptions(spec, yaml.UseJSONMarshaler())
	if err != nil {
		return err
	}
	return v.drawPart("document", view.Doc{Sections: []view.Section{
		{Heading: textSpec.In(v.lang), Code: redact.Text(string(text)), Lang: "yaml"},
		{Heading: textScript.In(v.lang), Code: redact.Text(sub.Script), Lang: "bash"},
	}})
}
