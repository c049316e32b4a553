package pipeline

import (
	"context"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/shellword"
	"github.com/megatron-ops/megatron-ops/slurm"
)

// A Record is a pipeline as it was last submitted. Its file may since have been
// removed or replaced.
type Record struct {
	Name  string         `json:"name"`
	Owner string         `json:"owner"`
	File  string         `json:"file"`
	At    time.Time      `json:"at"`
	Steps []RecordedStep `json:"steps"`
}

// A RecordedStep is a step with the jobs that were submitted for it, newest last, and
// the values that it took from other steps.
type RecordedStep struct {
	Name    string        `json:"name"`
	Needs   []string      `json:"needs"`
	Cluster string        `json:"cluster"`
	Jobs    []slurm.JobID `json:"jobs"`
	Handed  []HandedValue `json:"handed,omitempty"`
	// Job is the newest job in its current state. It is nil where no job was submitted,
	// or where the cluster no longer knows the job.
	Job *slurm.Job `json:"-"`
}

// A HandedValue is a reference to a value of an earlier step, and that value.
type HandedValue struct {
	Ref   string `json:"ref"` // such as <train.save>
	Value string `json:"value"`
}

const (
	document  = "pipeline" // owner/name → a Record
	kept      = 180 * 24 * time.Hour
	keyPrefix = "pipeline/" // in a submission's key, in front of the pipeline's name
)

// record stores how far a pipeline has been submitted, so that it can be shown without
// its file.
func (p *pipelineFile) record(ctx context.Context, c *ops.Call, file string, out Out, jobs map[string]slurm.Job) error {
	docs := c.Docs()
	if file != "-" && !filepath.IsAbs(file) {
		file = filepath.Join(c.Dir, file)
	}
	var before Record
	key := c.Who.User + "/" + p.Name
	if _, err := docs.Get(ctx, document, key, c.Now(), &before); err != nil {
		return err
	}
	r := Record{Name: p.Name, Owner: c.Who.User, File: file, At: c.Now()}
	for i, s := range p.Steps {
		cl, err := c.Cluster(s.spec.Cluster)
		if err != nil {
			return err
		}
		step := RecordedStep{Name: s.Name, Needs: out.Steps[i].Needs, Cluster: cl.Name(), Handed: p.takenValues(s, jobs)}
		if was := slices.IndexFunc(before.Steps, func(b RecordedStep) bool { return b.Name == s.Name && b.Cluster == step.Cluster }); was >= 0 {
			step.Jobs = before.Steps[was].Jobs
		}
		if id := out.Steps[i].JobID; id != nil && !slices.Contains(step.Jobs, *id) {
			step.Jobs = append(step.Jobs, *id)
		}
		r.Steps = append(r.Steps, step)
	}
	return docs.Put(ctx, document, key, r, c.Now().Add(kept))
}

// takenValues returns the values that a step takes from others. The id of a job that is
// not submitted yet is empty.
func (p *pipelineFile) takenValues(s stepFile, jobs map[string]slurm.Job) (all []HandedValue) {
	for _, m := range s.valueRefs() {
		value, _ := p.value(m[1], m[2], jobs)
		if _, there := jobs[m[1]]; m[2] == "job_id" && !there {
			value = ""
		}
		if h := (HandedValue{Ref: m[0], Value: value}); !slices.Contains(all, h) {
			all = append(all, h)
		}
	}
	slices.SortFunc(all, func(a, b HandedValue) int { return strings.Compare(a.Ref, b.Ref) })
	return all
}

// Of returns the pipeline that a job belongs to; empty where it belongs to
// none.
func Of(ctx context.Context, c *ops.Call, cluster string, j slurm.Job) (owner, name string) {
	sub, ok, _ := c.SubmissionOf(ctx, cluster, j)
	if !ok {
		return "", ""
	}
	key, ok := strings.CutPrefix(sub.Key, sub.Owner+"/"+sub.Cluster+"/"+keyPrefix)
	if !ok {
		return "", ""
	}
	name, _, _ = strings.Cut(key, "/")
	return sub.Owner, name
}

// Recorded returns a pipeline as it was submitted, without asking the cluster.
func Recorded(ctx context.Context, c *ops.Call, owner, name string) (Record, error) {
	var r Record
	known, err := c.Docs().Get(ctx, document, owner+"/"+name, c.Now(), &r)
	if err != nil {
		return r, err
	}
	if !known {
		return r, ops.NotFoundError("pipeline",
			lang.Text{EN: "%s has submitted no pipeline %s in the last half year", ZH: "%s 在最近半年内没有提交过流水线 %s"}.With(owner, name),
			lang.Text{EN: "megatron-ops pipeline FILE submits one", ZH: "用 megatron-ops pipeline FILE 提交"})
	}
	return r, nil
}

// Show returns a pipeline as it was submitted, with its jobs in their current
// state.
func Show(ctx context.Context, c *ops.Call, owner, name string) (Record, error) {
	r, err := Recorded(ctx, c, owner, name)
	if err != nil {
		return r, err
	}
	for i := range r.Steps {
		s := &r.Steps[i]
		if len(s.Jobs) == 0 {
			continue
		}
		_, j, err := c.Job(ctx, s.Cluster, s.Jobs[len(s.Jobs)-1])
		switch {
		case err == nil:
			s.Job = &j
		case ops.AsError(err).Code != ops.NotFound:
			return r, err
		}
	}
	return r, nil
}

// Broke returns the first step whose newest job ended without completing; nil where
// none did.
func (r Record) Broke() *RecordedStep {
	for i, s := range r.Steps {
		if s.Job != nil && s.Job.State.Ended() && s.Job.State != slurm.Completed {
			return &r.Steps[i]
		}
	}
	return nil
}

// Done counts the completed steps.
func (r Record) Done() (n int) {
	for _, s := range r.Steps {
		if s.Job != nil && s.Job.State == slurm.Completed {
			n++
		}
	}
	return n
}

// Resume returns the command that continues the pipeline; "" where its file came from
// standard input.
func (r Record) Resume() string {
	if r.File == "-" {
		return ""
	}
	return "megatron-ops pipeline " + shellword.POSIX(r.File)
}
