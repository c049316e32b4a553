package web

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/ops/jobcontrol"
	"github.com/megatron-ops/megatron-ops/internal/ops/joblogs"
	"github.com/megatron-ops/megatron-ops/internal/ops/pipeline"
	"github.com/megatron-ops/megatron-ops/internal/view"
	"github.com/megatron-ops/megatron-ops/slurm"
	"github.com/megatron-ops/megatron-ops/slurm/metrics"
)

// A jobPage is one job.
type jobPage struct {
	Job      slurm.Job
	Cluster  string
	Status   view.Doc
	Meaning  string
	Silent   string // how long a running job has written nothing, where that may be a hang
	Events   []event
	GPUHours float64
	Logs     []logFile
	Diagnose bool // diagnose as soon as the page is open
	Mine     bool // the visitor may change it
	// Tracked is the run's address at its experiment tracker, TrackedBy the tracker's
	// host.
	Tracked, TrackedBy string
	// Pipeline is the pipeline that submitted it, and PipelineOf its owner.
	Pipeline, PipelineOf string
}

// An event is one point of a job's life.
type event struct {
	At   *time.Time
	What string
	Tone view.Tone
}

// A logFile is one of a job's logs.
type logFile struct {
	Index  int
	Name   string
	Stdout bool // the job's own output
}

func (v *visit) jobInPath() (cluster string, id slurm.JobID) {
	return v.r.PathValue("cluster"), slurm.JobID(v.r.PathValue("id"))
}

func (v *visit) loadJob() (jobPage, error) {
	cluster, id := v.jobInPath()
	status, err := runAs[jobcontrol.StatusOut](v, cluster, "status", string(id))
	if err != nil {
		return jobPage{}, err
	}
	j := status.Job
	p := jobPage{
		Job: j, Cluster: cluster, Status: status.View(v.lang), Meaning: status.Meaning, Events: events(j, v),
		GPUHours: j.Last().GPUHours(),
		Diagnose: j.State.Ended() && j.State != slurm.Completed,
		Mine:     v.call().MayChange(j) == nil && v.who.User != "",
	}
	if status.Pulse != nil && status.Pulse.MayHang {
		p.Silent = lang.Capital(status.Pulse.Says().In(v.lang))
	}
	if at, err := url.Parse(status.Tracked); err == nil && at.Host != "" {
		p.Tracked, p.TrackedBy = status.Tracked, at.Host
	}
	p.PipelineOf, p.Pipeline = pipeline.Of(v.r.Context(), v.call().Reading(), cluster, j)
	_, paths, err := joblogs.Files(v.r.Context(), v.call().Reading(), cluster, id)
	if err == nil {
		for i, path := range paths {
			p.Logs = append(p.Logs, logFile{i, filepath.Base(path), path == j.Stdout})
		}
	}
	return p, nil
}

// events returns the known events of a job's life, oldest first.
func events(j slurm.Job, v *visit) []event {
	var es []event
	add := func(at *time.Time, what string, tone view.Tone) {
		if at != nil && !at.IsZero() {
			es = append(es, event{at, what, tone})
		}
	}
	add(j.SubmittedAt, textSubmitted.In(v.lang), view.Plain)
	for _, s := range j.Requeues {
		es = append(es, event{nil, textRequeued.With(stateIn(v.lang, s)).In(v.lang), view.Warn})
	}
	add(j.StartedAt, textStarted.In(v.lang), view.Good)
	if j.State == slurm.Pending {
		add(j.EstStart, textExpected.In(v.lang), view.Plain)
	}
	tone := view.Bad
	if j.State == slurm.Completed {
		tone = view.Good
	}
	if j.State.Ended() {
		add(j.EndedAt, textEnded.With(stateIn(v.lang, j.State)).In(v.lang), tone)
	}
	return es
}

func (v *visit) job() error {
	p, err := v.loadJob()
	if err != nil {
		return err
	}
	return v.pageOrPart("job", "jobhead", pageData{Title: fmt.Sprintf("%s %s", p.Job.ID, p.Job.Name), Here: "jobs", Body: p})
}

// A shownDiagnosis is a diagnosis with the places of its lines in the logs.
type shownDiagnosis struct {
	Doc      view.Doc
	Lines    []shownLine
	Fix      []string // the changes that a plan has accepted, in words
	Apply    []string // the words of submit that apply them
	Commands []string // the commands that apply them to a job which waits in the queue again
	Job      slurm.JobID
	On       string
}

// A shownLine is a line of evidence. File is the index of its log, or negative if the
// log is none of the job's.
type shownLine struct {
	File, Line int
	Name       string
	Why, Text  string
	Says       string // Why in the reader's language
	Rank       *int
	Node       string
}

func (v *visit) diagnosis() error {
	cluster, id := v.jobInPath()
	d, err := runAs[joblogs.DiagnoseOut](v, cluster, "diagnose", string(id))
	if err != nil {
		return err
	}
	shown := shownDiagnosis{Doc: d.View(v.lang), Job: id, On: cluster}
	if d.Fix != nil {
		shown.Fix = d.Fix.Changes
	}
	switch {
	case d.Fix != nil && d.WaitsFor != "": // a job submitted by a button would run beside it
		shown.Commands = d.Fix.CommandsInQueue()
	case d.Fix != nil:
		change, err := yaml.Marshal(d.Fix.Spec)
		if err != nil {
			return err
		}
		shown.Apply = []string{"--from=" + string(d.Fix.From), "--yaml=" + string(change)}
		for _, name := range d.Fix.Without {
			shown.Apply = append(shown.Apply, "--without="+name)
		}
	}
	if len(d.Evidence) > 0 { // they are drawn below, with links into the logs
		shown.Doc.Sections = slices.DeleteFunc(shown.Doc.Sections, func(s view.Section) bool { return s.Table != nil })
	}
	_, paths, err := joblogs.Files(v.r.Context(), v.call().Reading(), cluster, id)
	if err != nil {
		return err
	}
	for _, e := range d.Evidence {
		at := slices.IndexFunc(paths, func(p string) bool { return p == e.File || filepath.Base(p) == filepath.Base(e.File) })
		shown.Lines = append(
			shown.Lines,
			shownLine{File: at, Line: e.LineNo, Name: filepath.Base(e.File), Why: e.Why, Says: e.WhyIn(v.lang), Text: e.Text, Rank: e.Rank, Node: e.Node},
		)
	}
	return v.drawPart("diagnosis", shown)
}

// jobParts are the parts that a job's page shows on demand, each by an operation.
var jobParts = map[string][]string{
	"metrics": {"metrics"}, "changes": {"diff"}, "compare": {"compare"}, "priority": {"priority"}, "steps": {"status", "--steps"},
	"plan": {"plan", "--from"},
}

func (v *visit) part() error {
	cluster, id := v.jobInPath()
	words, ok := jobParts[v.r.PathValue("what")]
	if !ok {
		http.NotFound(v.w, v.r)
		return nil
	}
	shown, err := runAs[view.Viewer](v, cluster, words[0], append(slices.Clone(words[1:]), string(id))...)
	if err != nil {
		return err
	}
	return v.drawPart("document", shown.View(v.lang).WithoutCharts()) // the page has the curves
}

// mostPoints is how many points of a curve a browser gets: what it can draw.
const mostPoints = 2000

// A curve is one series of a run, thinned out.
type curve struct {
	Name string     `json:"name"`
	Unit string     `json:"unit"`
	X    []int      `json:"x"`
	Y    []*float64 `json:"y"`
	// Newest is the newest value that is finite, and Of its iteration.
	Newest float64 `json:"newest"`
	Of     int     `json:"of"`
}

// plots are the curves of a page, in order.
var plots = []struct {
	title  lang.Text
	unit   string
	points func(metrics.Run) []metrics.Point
}{
	{lang.Text{EN: "Loss", ZH: "损失"}, "", scaled(metrics.Loss, 1)},
	{lang.Text{EN: "Time of an iteration", ZH: "每次迭代用时"}, "s", scaled(metrics.Elapsed, 1e-3)},
	{lang.Text{EN: "Throughput", ZH: "吞吐"}, "TFLOP/s/GPU", scaled(metrics.Throughput, 1)},
	{lang.Text{EN: "Peak GPU memory", ZH: "GPU 显存峰值"}, "GiB", metrics.Run.PeakMemory},
	{lang.Text{EN: "Gradient norm", ZH: "梯度范数"}, "", scaled(metrics.GradNorm, 1)},
	{lang.Text{EN: "Learning rate", ZH: "学习率"}, "", scaled(metrics.LearningRate, 1)},
	{lang.Text{EN: "Tokens", ZH: "Token"}, "tokens/s/GPU", scaled(metrics.Tokens, 1)},
}

func scaled(s metrics.Series, scale float64) func(metrics.Run) []metrics.Point {
	return func(r metrics.Run) []metrics.Point {
		points := r.Points(s)
		for i := range points {
			points[i].V *= scale
		}
		return points
	}
}

func (v *visit) curves() error {
	cluster, id := v.jobInPath()
	run, err := joblogs.Numbers(v.r.Context(), v.call().Reading(), cluster, id)
	if err != nil {
		return err
	}
	cs := []curve{}
	for _, p := range plots {
		points := p.points(run)
		if len(points) == 0 {
			continue
		}
		newest := points[len(points)-1]
		c := curve{Name: p.title.In(v.lang), Unit: p.unit, Newest: newest.V, Of: newest.N}
		step := (len(points) + mostPoints - 1) / mostPoints
		for i := 0; i < len(points); i += step {
			// Keep the point farthest from its bin's mean, so that a spike stays
			// visible.
			bin := points[i:min(i+step, len(points))]
			mean := 0.0
			for _, p := range bin {
				mean += p.V / float64(len(bin))
			}
			far := slices.MaxFunc(bin, func(a, b metrics.Point) int { return cmp.Compare(math.Abs(a.V-mean), math.Abs(b.V-mean)) })
			c.X, c.Y = append(c.X, far.N), append(c.Y, &far.V)
		}
		cs = append(cs, c)
	}
	v.json(http.StatusOK, map[string]any{"name": run.Name, "summary": run.Summary(), "curves": cs})
	return nil
}

// log returns a window of one of the job's logs.
func (v *visit) log() error {
	q := v.r.URL.Query()
	if q.Get("file") == "all" {
		return v.allLogs(q)
	}
	cluster, id := v.jobInPath()
	j, paths, err := joblogs.Files(v.r.Context(), v.call().Reading(), cluster, id)
	if err != nil {
		return err
	}
	number := func(name string) int64 {
		n, _ := strconv.ParseInt(q.Get(name), 10, 64)
		return max(0, n)
	}
	file := number("file")
	if file >= int64(len(paths)) {
		return ops.NotFoundError("file", textNoSuchLog, textNoSuchLogFix)
	}
	at := joblogs.Place{
		From: number("from"), Before: number("before"), End: q.Has("end"), Line: int(number("line")), Find: q.Get("find"),
		Node: q.Get("node"), Level: q.Get("level"),
	}
	if rank, err := strconv.Atoi(q.Get("rank")); err == nil {
		at.Rank = &rank
	}
	w, err := joblogs.ReadWindow(v.r.Context(), v.call().Reading(), j, paths[file], at)
	if err != nil {
		return err
	}
	v.json(http.StatusOK, w)
	return nil
}

const (
	// mergedLines is how many of the newest lines of all files are shown; mergedTime
	// bounds the search for them.
	mergedLines = 2000
	mergedTime  = 10 * time.Second
)

// allLogs returns the newest lines of all of the job's files, merged by time.
func (v *visit) allLogs(q url.Values) error {
	ctx, stop := context.WithTimeout(v.r.Context(), mergedTime)
	defer stop()
	v.r = v.r.WithContext(ctx)
	cluster, id := v.jobInPath()
	words := []string{string(id), fmt.Sprintf("--tail=%d", mergedLines)}
	for _, name := range []string{"rank", "node", "level"} {
		if q.Get(name) != "" {
			words = append(words, "--"+name+"="+q.Get(name))
		}
	}
	all, err := runAs[joblogs.LogsOut](v, cluster, "logs", words...)
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return &ops.Error{Code: ops.Failed, Field: "file", Message: textTooMuchLog, Fix: textTooMuchLogFix}
	}
	if err != nil {
		return err
	}
	w, find := joblogs.Window{Mark: -1, Lines: []string{}}, strings.ToLower(q.Get("find"))
	for _, l := range all.Lines {
		if strings.Contains(strings.ToLower(l.Text), find) {
			w.Lines = append(w.Lines, l.Text)
		}
	}
	v.json(http.StatusOK, w)
	return nil
}
