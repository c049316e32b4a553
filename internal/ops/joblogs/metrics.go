package joblogs

import (
	"cmp"
	"context"
	"errors"
	"io"
	"io/fs"
	"time"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/view"
	"github.com/megatron-ops/megatron-ops/internal/within"
	"github.com/megatron-ops/megatron-ops/slurm"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/logfile"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/report"
	"github.com/megatron-ops/megatron-ops/slurm/metrics"
)

// MetricsIn names runs.
type MetricsIn struct {
	Runs []string `json:"jobs" arg:"" name:"job-or-path" jobs:"" help:"job ids, or logs, event files and folders; several are compared" zh:"作业号，或日志、事件文件、目录；给出多个时进行比较"`
	GPU  string   `json:"gpu,omitempty" name:"gpu" placeholder:"KIND" help:"kind of GPU, for MFU; the specification's where left out" zh:"GPU 型号，用于计算 MFU；省略时取规格中的值"`
	CSV  string   `json:"-" name:"csv" placeholder:"FILE" help:"write every iteration there" zh:"把每次迭代写入该文件"`
	PNG  string   `json:"-" name:"png" placeholder:"FILE" help:"draw the curves there" zh:"把曲线画到该文件"`
	// Only people may sample: it starts a step in the job.
	Sample  int `json:"-" name:"sample" placeholder:"SECONDS" help:"sample each GPU's memory at this interval, by a side step" zh:"以该间隔通过旁路作业步采样每张 GPU 的显存"`
	Samples int `json:"-" name:"samples" placeholder:"N" help:"so many times; 5 where left out" zh:"采样次数，默认 5"`
	ops.OnCluster
}

// MetricsOut holds the summary of each run.
type MetricsOut struct {
	Runs []metrics.Summary `json:"runs"`
	// Curves holds each run's loss, thinned to a few points.
	Curves [][]metrics.Point `json:"loss_curves,omitempty"`
	// Findings says what is unusual about the runs, while these run.
	Findings []string `json:"findings"`
	// Pulses says for each run whether it still writes output; null for a run that has
	// ended.
	Pulses []*report.Pulse `json:"pulses,omitempty"`
	// TimeLeftS is the rest of a running job's time limit. SpareS is what would be left
	// of it at the end of the training; it is negative where the time limit is too
	// short.
	TimeLeftS *int64 `json:"time_left_s,omitempty"`
	SpareS    *int64 `json:"spare_s,omitempty"`
	// GPUUse says how busy a running job's GPUs are, where the job samples them itself.
	GPUUse *GPUWatch `json:"gpu_use,omitempty"`
	// GPUs holds the memory samples, where the call asks for them.
	GPUs []metrics.GPUUse `json:"gpus,omitempty"`

	runs []metrics.Run
	none []*ops.Error // one for each run without iterations, which the others are shown without
}

// curvePoints is how many points of a run's curve are returned as numbers.
const curvePoints = 16

// lossCurve returns points of a run's loss, including the first and the last.
func lossCurve(run metrics.Run) []metrics.Point {
	all := run.Points(metrics.Loss)
	n := min(len(all), curvePoints)
	curve := make([]metrics.Point, n)
	for i := range n {
		curve[i] = all[i*(len(all)-1)/max(n-1, 1)]
	}
	return curve
}

// Metrics returns the operation metrics.
func Metrics() ops.Op {
	return ops.Define(ops.Op{
		Name: "metrics", Effect: ops.Read, Toolset: ops.LogsSet,
		Summary: lang.Text{EN: "a run's loss, iteration time, TFLOP/s, MFU and time left, with the curve; several are compared", ZH: "训练的损失、迭代时间、TFLOP/s、MFU、剩余时间与曲线；可比较多个作业"},
		Help: lang.Text{
			EN: "Use to see how training goes and whether the time limit will suffice. It reads Megatron's iteration lines and TensorBoard event files.",
			ZH: "查看训练进展以及时间上限是否够用。读取 Megatron 的迭代日志与 TensorBoard 事件文件。",
		},
		Example: "metrics 4711",
	}, metricsOp)
}

func metricsOp(ctx context.Context, c *ops.Call, in MetricsIn) (MetricsOut, error) {
	out := MetricsOut{Runs: []metrics.Summary{}, Findings: []string{}}
	for _, name := range in.Runs {
		run, j, state, err := runOf(ctx, c, in, name)
		if err != nil {
			return out, err
		}
		if len(run.Iterations) == 0 {
			none := noIteration(name, j.State.Ended() || state.ended)
			out.none = append(out.none, none)
			out.Findings = append(out.Findings, withoutNumbers(none).In(c.Lang))
			continue
		}
		out.runs = append(out.runs, run)
		summary := run.Summary()
		if j.State.Ended() || state.ended || state.pulse != nil && state.pulse.MayHang {
			summary.ETASeconds = nil // the run has ended, or it may hang
		}
		out.Runs, out.Pulses = append(out.Runs, summary), append(out.Pulses, state.pulse)
		out.Curves = append(out.Curves, lossCurve(run))
		alarms, err := Alarms(ctx, c, j)
		if err != nil {
			return out, err
		}
		if alarms == nil {
			for _, f := range run.Check() {
				alarms = append(alarms, Alarm{ID: f.ID, What: f.What, Fix: f.Fix})
			}
		}
		for _, a := range alarms {
			out.Findings = append(out.Findings, a.Says(c.Lang)+" "+a.Fix.In(c.Lang))
		}
		if len(in.Runs) == 1 {
			out.GPUUse = state.gpus
		}
		if len(in.Runs) == 1 && j.State == slurm.Running && j.TimeLimitS != nil {
			left := *j.TimeLimitS - j.ElapsedS
			out.TimeLeftS = &left
			if spare, ok := run.Suffices(time.Duration(left) * time.Second); ok && summary.ETASeconds != nil {
				s := int64(spare.Seconds())
				out.SpareS = &s
			}
		}
	}
	if len(out.runs) == 0 && len(out.none) > 0 {
		return out, out.none[0]
	}
	if in.Sample != 0 {
		if len(in.Runs) != 1 || !slurm.IsJobID(in.Runs[0]) {
			return out, ops.InputError("sample",
				lang.Text{EN: "GPUs are sampled of one job", ZH: "一次只对一个作业的 GPU 采样"},
				lang.Text{EN: "one running job's id", ZH: "一个正在运行的作业号"})
		}
		cl, j, err := c.Job(ctx, in.Cluster, slurm.JobID(in.Runs[0]))
		if err != nil {
			return out, err
		}
		if out.GPUs, err = sampleGPUs(ctx, c, cl, j, in); err != nil {
			return out, err
		}
	}
	return out, export(c, in, out.runs)
}

// noIteration returns the error about a run without numbers. ended says whether the run
// has ended.
func noIteration(name string, ended bool) *ops.Error {
	if ended {
		return ops.NotFoundError("job",
			lang.Text{EN: "%s: no iteration was logged", ZH: "%s：没有输出任何迭代日志"}.With(name),
			lang.Text{EN: "`diagnose %s` says how it ended", ZH: "`diagnose %s` 会说明它如何结束"}.With(name))
	}
	return ops.NotFoundError("job",
		lang.Text{EN: "%s: no iteration was logged yet", ZH: "%s：还没有输出任何迭代日志"}.With(name),
		lang.Text{EN: "Megatron writes iteration lines every --log-interval iterations", ZH: "Megatron 每 --log-interval 次迭代输出一行"})
}

// withoutNumbers says which run the others are shown without.
func withoutNumbers(e *ops.Error) lang.Text {
	return lang.Text{EN: "%s; %s", ZH: "%s；%s"}.With(e.Message, e.Fix)
}

// A runState says whether a run continues, according to its logs.
type runState struct {
	pulse *report.Pulse
	ended bool // failed, finished or silent
	gpus  *GPUWatch
}

// stateOf reads the state of a run from its logs. A run without logs, such as event
// files alone, has no state.
func stateOf(ctx context.Context, in *within.Folders, j slurm.Job, paths ...string) runState {
	src, err := logfile.OpenIn(in, paths...)
	if err != nil {
		return runState{}
	}
	return readState(ctx, src, j)
}

// readState reads the state of a run from its opened logs.
func readState(ctx context.Context, src logfile.Source, j slurm.Job) runState {
	r, err := diagnose.Run(ctx, src, diagnose.FromJob(j))
	if err != nil {
		return runState{}
	}
	if p, runs := r.Pulse(); runs {
		return runState{pulse: &p}
	}
	return runState{ended: true}
}

// runOf reads the numbers of one job or path.
func runOf(ctx context.Context, c *ops.Call, in MetricsIn, name string) (metrics.Run, slurm.Job, runState, error) {
	if !slurm.IsJobID(name) {
		path, folders, err := resolvePath(c, "jobs", name)
		if err != nil {
			return metrics.Run{}, slurm.Job{}, runState{}, err
		}
		defer folders.Close()
		run, err := metrics.Read(ctx, folders, path, in.GPU)
		what := lang.Text{EN: "a job id, a log, an event file or a folder of them", ZH: "作业号、日志、事件文件，或它们所在的目录"}
		switch {
		case errors.Is(err, fs.ErrNotExist):
			err = noSuchFile("job", name, what)
		case err != nil:
			err = ops.InputError("job", lang.Said(err), what)
		}
		return run, slurm.Job{}, stateOf(ctx, folders, slurm.Job{}, path), err
	}
	cl, j, err := c.Job(ctx, in.Cluster, slurm.JobID(name))
	if err != nil {
		return metrics.Run{}, j, runState{}, err
	}
	gpu := cmp.Or(in.GPU, gpuOf(ctx, c, cl.Name(), j))
	best := metrics.Run{Name: name}
	paths := logFiles(ctx, c, cl.Name(), j)
	folders, err := openFolders(c, j, paths)
	if err != nil {
		return best, j, runState{}, &ops.Error{Code: ops.Failed, Message: lang.Said(err)}
	}
	defer folders.Close()
	for _, p := range paths {
		run, err := metrics.Read(ctx, folders, p, gpu)
		if err != nil {
			continue // an unreadable log has no numbers; another may have some
		}
		if len(run.Iterations) > len(best.Iterations) {
			best = run
		}
	}
	best.Name = j.Name + " " + name
	state := stateOf(ctx, folders, j, paths...)
	state.gpus = gpuWatch(folders, paths, j, c.Now())
	return best, j, state, nil
}

// export writes the files that the call asks for.
func export(c *ops.Call, in MetricsIn, runs []metrics.Run) error {
	if err := c.WriteFile("csv", in.CSV, func(w io.Writer) error {
		for _, r := range runs {
			if err := r.WriteCSV(w); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		return err
	}
	return c.WriteFile("png", in.PNG, func(w io.Writer) error { return metrics.WritePNG(w, runs, metrics.AllSeries) })
}

// WriteLossPNG draws the loss of the runs as a picture.
func (o MetricsOut) WriteLossPNG(w io.Writer) error {
	return metrics.WritePNG(w, o.runs, []metrics.Series{metrics.Loss})
}

// View shows the summaries and the loss curve.
func (o MetricsOut) View(l lang.Lang) view.Doc {
	d := metrics.View(o.runs, o.Runs, l)
	for _, e := range o.none {
		d.Sections = append(d.Sections, view.Section{Text: withoutNumbers(e).In(l)})
	}
	for i, p := range o.Pulses {
		if p == nil || p.AgeS == nil {
			continue
		}
		says := p.Says().In(l)
		if len(o.Pulses) > 1 {
			says = l.Named(o.Runs[i].Name, says)
		}
		d.Sections = append(d.Sections, view.Section{Text: says})
		if p.MayHang {
			d.Tone = view.Warn
		}
	}
	if len(o.Runs) == 1 && o.Runs[0].Tracked != "" {
		d.Sections = append(d.Sections, view.Section{Facts: []view.Fact{{Name: TextTracked.In(l), Value: o.Runs[0].Tracked}}})
	}
	if o.GPUUse != nil {
		d.Sections = append(d.Sections, view.Section{Text: o.GPUUse.Says().In(l)})
		if o.GPUUse.Idle > 0 {
			d.Tone = view.Warn
		}
	}
	d.Add(gpuSection(o.GPUs, l))
	switch {
	case o.SpareS != nil && *o.SpareS < 0:
		d.Tone = view.Warn
		d.Sections = append(d.Sections, view.Section{Text: lang.Text{
			EN: "the time limit will not suffice: short by ", ZH: "时间上限不够，还差 ",
		}.In(l) + ops.Duration(-*o.SpareS)})
	case o.SpareS != nil:
		d.Sections = append(d.Sections, view.Section{Text: lang.Text{
			EN: "the time limit will suffice, with this to spare: ", ZH: "时间上限够用，还余 ",
		}.In(l) + ops.Duration(*o.SpareS)})
	}
	return d
}
