// Package pipeline submits jobs that follow one another, such as preprocessing, training
// and evaluation, and shows how far they are.
package pipeline

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/lazy"
	"github.com/megatron-ops/megatron-ops/internal/near"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/ops/launch"
	"github.com/megatron-ops/megatron-ops/internal/store"
	"github.com/megatron-ops/megatron-ops/knowledge/megatron"
	"github.com/megatron-ops/megatron-ops/knowledge/rules"
	"github.com/megatron-ops/megatron-ops/slurm"
	"github.com/megatron-ops/megatron-ops/slurm/job"
)

// In names a pipeline: a list of steps that follow one another, each a job.
type In struct {
	File   string `json:"-" arg:"" name:"pipeline.yaml" help:"the pipeline's file; or status, which shows one by its name" zh:"流水线文件；或 status，按名称显示流水线"`
	Name   string `json:"-" arg:"" optional:"" name:"name" help:"after status: the pipeline's name; the newest where left out" zh:"status 之后：流水线名称，省略为最新的"`
	Show   bool   `json:"show,omitempty" help:"show how far it is, submit nothing" zh:"只显示进度，不提交"`
	DryRun bool   `json:"dry_run,omitempty" name:"dry-run" help:"plan every step, submit nothing" zh:"检查每一步，不提交"`
	Yes    bool   `json:"yes,omitempty" help:"do not ask before submitting" zh:"不再询问，直接提交"`
	Force  bool   `json:"force,omitempty" help:"submit in spite of errors" zh:"有错误也提交"`
	ops.OnCluster
}

// Out holds the steps in the order in which they run.
type Out struct {
	Name  string `json:"name"`
	Steps []Step `json:"steps"`
	// Page is the address of the pipeline's page, where browsers reach one.
	Page string `json:"page,omitempty"`
	// Owner is the pipeline's owner, File the file that it was submitted from, and
	// BrokenAt its first step whose newest job ended without completing.
	Owner    string `json:"owner,omitempty"`
	File     string `json:"file,omitempty"`
	BrokenAt string `json:"broken_at,omitempty"`
	shown    bool
	dry      bool
}

// A Step is one step and its newest job.
type Step struct {
	Name     string          `json:"name"`
	Needs    []string        `json:"needs"`
	JobID    *slurm.JobID    `json:"job_id"`
	State    slurm.State     `json:"state,omitempty"`
	Attempt  int             `json:"attempt,omitempty"`
	New      bool            `json:"submitted,omitempty"` // this call submitted the job
	Problems []rules.Problem `json:"problems"`
	// Reason is the job's reason, Earlier the jobs of earlier attempts, and Handed the
	// values that the step takes from earlier steps.
	Reason  string        `json:"reason,omitempty"`
	Earlier []slurm.JobID `json:"earlier,omitempty"`
	Handed  []HandedValue `json:"handed,omitempty"`

	elsewhere string // what a command about the job adds where it is not on the default cluster
}

// Found reports whether errors of a step stopped the whole submission.
func (o Out) Found() bool {
	return slices.ContainsFunc(o.Steps, func(s Step) bool { return s.JobID == nil && rules.Blocking(s.Problems) })
}

// Did reports whether this call submitted a step.
func (o Out) Did() bool {
	return slices.ContainsFunc(o.Steps, func(s Step) bool { return s.New })
}

// Submit returns the operation pipeline.
func Submit() ops.Op {
	return ops.Define(ops.Op{
		Name: "pipeline", Effect: ops.Write, Toolset: ops.JobsSet, Idempotent: true,
		Summary: lang.Text{EN: "submit steps that follow one another (preprocess, train, convert, evaluate), each planned first", ZH: "提交前后相接的多个步骤（预处理、训练、转换、评测），先逐一检查"},
		Help: lang.Text{
			EN: "A step names its job and the steps it needs; <STEP.save>, <STEP.job_id> and the like hand values on. Said again after a step broke, it submits that step and what follows, and nothing twice.",
			ZH: "每步给出其作业与所需的前置步骤；<步骤.save>、<步骤.job_id> 等传递数值。某步失败后再次执行，只重新提交该步及其后续，不会重复提交。",
		},
		Example:  "pipeline nightly.yaml --yes",
		Examples: []string{"pipeline nightly.yaml --dry-run", "pipeline status nightly"},
	}, submit)
}

// A pipelineFile is a pipeline as its file describes it.
type pipelineFile struct {
	Name  string     `json:"name"`
	Steps []stepFile `json:"steps"`
}

type stepFile struct {
	Name  string   `json:"name"`
	Needs []string `json:"needs"`
	// File is a job specification beside the pipeline's file, and Job one that is
	// written in the pipeline itself. Args are added to it.
	File string          `json:"file"`
	Job  json.RawMessage `json:"job"`
	Args []string        `json:"args"`

	spec job.Spec
}

func submit(ctx context.Context, c *ops.Call, in In) (Out, error) {
	if in.File == "status" {
		return newestNamed(ctx, c, in.Name)
	}
	if in.Name != "" {
		return Out{}, ops.InputError("name", lang.Text{EN: "%q: one file is one pipeline", ZH: "%q：一个文件就是一条流水线"}.With(in.Name), lang.Text{EN: "pipeline FILE, or pipeline status NAME", ZH: "pipeline 文件，或 pipeline status 名称"})
	}
	if !c.AtShell() { // on other surfaces each submission is approved by itself
		return Out{}, &ops.Error{
			Code: ops.NotAllowed, Message: lang.Text{EN: "pipelines are submitted from the shell", ZH: "流水线只能从 shell 提交"},
			Fix: lang.Text{EN: "submit takes its steps one by one; pipelines shows how far each is", ZH: "可用 submit 逐步提交；pipelines 可查看进度"},
		}
	}
	p, err := readFile(c, in)
	if err != nil {
		return Out{}, err
	}
	out := Out{Name: p.Name, Page: c.PipelinePage(c.Who.User, p.Name), shown: in.Show, dry: in.DryRun}
	jobs := map[string]slurm.Job{}
	for i := range p.Steps {
		step, err := p.stepStatus(ctx, c, p.Steps[i], jobs)
		if err != nil {
			return out, err
		}
		step.Handed = p.takenValues(p.Steps[i], jobs)
		out.Steps = append(out.Steps, step)
	}
	if in.Show {
		out.Owner, out.BrokenAt = c.Who.User, brokenAt(out.Steps)
		return out, nil
	}
	open := 0
	for i, s := range p.Steps {
		if out.Steps[i].JobID != nil {
			continue
		}
		open++
		c.Step(i+1, len(p.Steps), s.Name)
		planned, err := p.submit(ctx, c, s, jobs, launch.SubmitIn{DryRun: true})
		if err != nil {
			return out, inStep(s.Name, err)
		}
		out.Steps[i].Problems = planned.Problems
	}
	if in.DryRun || out.Found() && !in.Force {
		return out, nil
	}
	if open == 0 {
		return out, p.record(ctx, c, in.File, out, jobs)
	}
	would := lang.Text{EN: "this submits %s of the pipeline %s", ZH: "将提交流水线 %[2]s 的 %[1]s"}.With(ops.Counted(open, "job"), p.Name)
	if err := c.RequireYes(in.Yes, would); err != nil {
		return out, err
	}
	err = p.submitOpen(ctx, c, in, &out, jobs)
	return out, errors.Join(err, p.record(ctx, c, in.File, out, jobs))
}

// submitOpen submits the steps that have no job.
func (p *pipelineFile) submitOpen(ctx context.Context, c *ops.Call, in In, out *Out, jobs map[string]slurm.Job) error {
	for i, s := range p.Steps {
		if out.Steps[i].JobID != nil {
			continue
		}
		out.Steps[i].Handed = p.takenValues(s, jobs) // the jobs of earlier steps have ids now
		key := p.key(s, jobs, out.Steps[i].Attempt)
		done, err := p.submit(ctx, c, s, jobs, launch.SubmitIn{Yes: true, Force: in.Force, IdempotencyKey: key})
		if err != nil {
			return inStep(s.Name, err)
		}
		if done.JobID == nil { // the plan found no error, but the cluster refused the job
			out.Steps[i].Problems = done.Problems
			return nil
		}
		out.Steps[i].JobID, out.Steps[i].State, out.Steps[i].New = done.JobID, slurm.Pending, true
		jobs[s.Name] = slurm.Job{ID: *done.JobID, State: slurm.Pending}
	}
	return nil
}

// inStep adds the step's name to the field of an error.
func inStep(name string, err error) error {
	e := *ops.AsError(err)
	e.Field = strings.TrimSuffix("steps."+name+"."+e.Field, ".")
	return &e
}

// stepStatus returns the step with its job, if it has one that need not be tried again.
// A step whose needs have no job cannot have one either.
func (p *pipelineFile) stepStatus(ctx context.Context, c *ops.Call, s stepFile, jobs map[string]slurm.Job) (Step, error) {
	step := Step{Name: s.Name, Needs: append([]string{}, s.Needs...), Attempt: 1, Problems: []rules.Problem{}, elsewhere: c.Elsewhere(s.spec.Cluster)}
	for _, n := range s.Needs {
		if _, ok := jobs[n]; !ok {
			return step, nil
		}
	}
	cl, err := c.Cluster(s.spec.Cluster)
	if err != nil {
		return step, err
	}
	st, err := c.Store()
	if err != nil {
		return step, err
	}
	for ; ; step.Attempt++ {
		sub, err := st.Submission(ctx, c.Who.User+"/"+cl.Name()+"/"+p.key(s, jobs, step.Attempt))
		if errors.Is(err, store.ErrNotFound) || err == nil && (sub.State == store.Rejected || sub.JobID == "") {
			return step, nil
		}
		if err != nil {
			return step, err
		}
		j, err := cl.Job(ctx, sub.JobID)
		if err != nil {
			return step, c.SlurmError(err, sub.JobID)
		}
		if step.State, step.Reason = j.State, j.Reason; !j.State.Ended() || j.State == slurm.Completed {
			step.JobID, jobs[s.Name] = &sub.JobID, j
			return step, nil
		}
		step.Earlier = append(step.Earlier, sub.JobID)
	}
}

// key is the idempotency key of a step's submission. It covers the step's
// specification, the jobs that it follows, and the number of the attempt.
func (p *pipelineFile) key(s stepFile, jobs map[string]slurm.Job, attempt int) string {
	sum := sha256.New()
	_ = json.NewEncoder(sum).Encode(s.spec) // writing to a hash never fails
	for _, n := range s.Needs {
		fmt.Fprintln(sum, n, jobs[n].ID)
	}
	return fmt.Sprintf(keyPrefix+"%s/%s/%s/%d", p.Name, s.Name, hex.EncodeToString(sum.Sum(nil))[:16], attempt)
}

// submit plans or submits a step, with a dependency on the jobs that it needs and with
// the values that it takes from them.
func (p *pipelineFile) submit(ctx context.Context, c *ops.Call, s stepFile, jobs map[string]slurm.Job, in launch.SubmitIn) (launch.SubmitOut, error) {
	spec := p.filledSpec(s, jobs)
	var after []string
	for _, n := range s.Needs {
		if j, ok := jobs[n]; ok && j.State != slurm.Completed {
			after = append(after, string(j.ID))
		}
	}
	if len(after) > 0 {
		expr := "afterok:" + strings.Join(after, ":")
		if spec.Dependency != "" {
			expr = spec.Dependency + "," + expr
		}
		// Without this option, a step would wait for ever after a job that failed.
		spec.Dependency, spec.Sbatch = expr, append(slices.Clone(spec.Sbatch), "--kill-on-invalid-dep=yes")
	}
	in.Spec = spec
	return launch.RunSubmit(ctx, c, in)
}

var valueRef = lazy.New(`<([A-Za-z0-9_.-]+)\.([a-z_]+)>`)

// filledSpec returns a step's specification with the values of earlier steps in its
// arguments and environment. A job that is not submitted yet has the id 0.
func (p *pipelineFile) filledSpec(s stepFile, jobs map[string]slurm.Job) job.Spec {
	fill := func(text string) string {
		return valueRef.ReplaceAllStringFunc(text, func(ref string) string {
			m := valueRef.FindStringSubmatch(ref)
			value, _ := p.value(m[1], m[2], jobs)
			return value
		})
	}
	spec := s.spec
	spec.Args, spec.LauncherArgv, spec.Env = slices.Clone(spec.Args), slices.Clone(spec.LauncherArgv), map[string]string{}
	for i := range spec.Args {
		spec.Args[i] = fill(spec.Args[i])
	}
	for i := range spec.LauncherArgv {
		spec.LauncherArgv[i] = fill(spec.LauncherArgv[i])
	}
	for k, v := range s.spec.Env {
		spec.Env[k] = fill(v)
	}
	return spec
}

// valueNames are the values that a step hands on.
var valueNames = []string{"job_id", "name", "worktree", "log_dir", "save", "load", "tensorboard_dir", "output_prefix"}

func (p *pipelineFile) value(step, name string, jobs map[string]slurm.Job) (string, bool) {
	i := slices.IndexFunc(p.Steps, func(s stepFile) bool { return s.Name == step })
	if i < 0 || !slices.Contains(valueNames, name) {
		return "", false
	}
	full := p.Steps[i].spec.WithDefaults()
	switch name {
	case "job_id":
		return cmp.Or(string(jobs[step].ID), "0"), true
	case "name":
		return full.Name, true
	case "worktree":
		return full.Worktree, true
	case "log_dir":
		return filepath.Join(full.Worktree, full.LogDir), true
	}
	value := megatron.LastOf(full.Args, "--"+strings.ReplaceAll(name, "_", "-"))
	if value != "" && !filepath.IsAbs(value) {
		value = filepath.Join(full.Worktree, value)
	}
	return value, value != ""
}

var stepName = lazy.New(`^[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}$`)

// readFile reads the pipeline and each step's specification, and sorts the steps so
// that each follows the steps it needs.
func readFile(c *ops.Call, in In) (*pipelineFile, error) {
	text, err := c.ReadFile("file", in.File)
	if err != nil {
		return nil, err
	}
	dir := filepath.Dir(in.File)
	asJSON, err := yaml.YAMLToJSON(text)
	if err != nil {
		wrong := job.NotYAML("pipeline", err)
		wrong.File = in.File
		return nil, ops.FieldErrors(wrong)
	}
	var p pipelineFile
	d := json.NewDecoder(bytes.NewReader(asJSON))
	d.DisallowUnknownFields()
	if err = d.Decode(&p); err != nil {
		line, _, _ := strings.Cut(err.Error(), "\n")
		return nil, ops.InputError("pipeline", lang.Text{EN: "cannot be read: %s", ZH: "无法读取：%s"}.With(line), lang.Text{EN: "name, and steps: each with name, needs, file or job, and args", ZH: "写 name 与 steps，每步含 name、needs、file 或 job，以及 args"})
	}
	if p.Name == "" || len(p.Steps) == 0 || !stepName.MatchString(p.Name) {
		return nil, ops.InputError("name", lang.Text{EN: "a pipeline has a name and steps", ZH: "流水线要有名称和步骤"}, lang.Text{EN: "name: nightly, of letters, digits, '.', '_' and '-', and steps", ZH: "name: nightly（字母、数字、'.'、'_'、'-'），以及 steps"})
	}
	if err := p.order(); err != nil {
		return nil, err
	}
	for i := range p.Steps {
		if err := p.Steps[i].read(c, dir); err != nil {
			return nil, inStep(p.Steps[i].Name, err)
		}
		if in.Cluster != "" {
			p.Steps[i].spec.Cluster = in.Cluster
		}
	}
	return &p, p.checkValues()
}

// read reads the step's specification.
func (s *stepFile) read(c *ops.Call, dir string) (err error) {
	in := launch.SpecIn{YAML: string(s.Job)}
	switch {
	case (s.File == "") == (len(s.Job) == 0):
		return ops.InputError("file", lang.Text{EN: "a step has either a file or a job", ZH: "每步给出 file 或 job 之一"}, lang.Text{EN: "file: train.yaml, or job: with the specification below it", ZH: "file: train.yaml，或在 job: 下写出规格"})
	case s.File != "":
		if in.File = s.File; !filepath.IsAbs(s.File) {
			in.File = filepath.Join(dir, s.File)
		}
	}
	in.Spec.Args = s.Args
	if s.spec, err = launch.ReadSpec(c, in); err == nil && s.spec.Name == "" {
		s.spec.Name = s.Name
	}
	return err
}

// order sorts the steps so that each follows the steps it needs. A cycle is an error.
func (p *pipelineFile) order() error {
	var names []string
	for _, s := range p.Steps {
		if !stepName.MatchString(s.Name) || slices.Contains(names, s.Name) {
			return ops.InputError("steps", lang.Text{EN: "%q: each step has a name of its own", ZH: "%q：每步要有唯一的名称"}.With(s.Name), lang.Text{EN: "name: train, of letters, digits, '.', '_' and '-'", ZH: "name: train（字母、数字、'.'、'_'、'-'）"})
		}
		names = append(names, s.Name)
	}
	for _, s := range p.Steps {
		for _, n := range s.Needs {
			if !slices.Contains(names, n) {
				return ops.InputError("steps."+s.Name+".needs", lang.Text{EN: "there is no step %q", ZH: "没有步骤 %q"}.With(n), meant(n, names))
			}
		}
	}
	var sorted []stepFile
	has := func(name string) bool {
		return slices.ContainsFunc(sorted, func(s stepFile) bool { return s.Name == name })
	}
	for len(sorted) < len(p.Steps) {
		before := len(sorted)
		for _, s := range p.Steps {
			if !has(s.Name) && !slices.ContainsFunc(s.Needs, func(n string) bool { return !has(n) }) {
				sorted = append(sorted, s)
			}
		}
		if len(sorted) == before {
			return ops.InputError("steps", lang.Text{EN: "some steps need one another in a ring", ZH: "有步骤互相依赖成环"}, lang.Text{EN: "take one of their needs away", ZH: "去掉其中一个 needs"})
		}
	}
	p.Steps = sorted
	return nil
}

func meant(word string, names []string) lang.Text {
	if m := near.Word(word, names, 3); m != "" {
		return ops.DidYouMean.With(m)
	}
	return lang.Text{EN: "one of %s", ZH: "可用：%s"}.With(strings.Join(names, ", "))
}

// valueRefs finds the references to other steps' values in the arguments and the
// environment of s, each as the whole reference, the step and the value's name.
func (s stepFile) valueRefs() [][]string {
	texts := slices.AppendSeq(slices.Concat(s.spec.Args, s.spec.LauncherArgv), maps.Values(s.spec.Env))
	return valueRef.FindAllStringSubmatch(strings.Join(texts, "\n"), -1)
}

// checkValues refuses a reference to a value that no step hands on, or that comes from
// a step that is not needed: only a needed step has a job id when this one is
// submitted.
func (p *pipelineFile) checkValues() error {
	for _, s := range p.Steps {
		for _, m := range s.valueRefs() {
			_, ok := p.value(m[1], m[2], nil)
			switch {
			case !slices.Contains(s.Needs, m[1]):
				return ops.InputError("steps."+s.Name, lang.Text{EN: "%s is handed on by a step that it does not need", ZH: "%s 来自它未依赖的步骤"}.With(m[0]), lang.Text{EN: "needs: [%s]", ZH: "needs: [%s]"}.With(m[1]))
			case !ok:
				return ops.InputError("steps."+s.Name, lang.Text{EN: "%s: the step %s hands on no %s", ZH: "%s：步骤 %s 不提供 %s"}.With(m[0], m[1], m[2]),
					lang.Text{EN: "one of %s, as far as its arguments give it", ZH: "可用：%s（须在其参数中给出）"}.With(strings.Join(valueNames, ", ")))
			}
		}
	}
	return nil
}
