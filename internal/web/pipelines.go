package web

import (
	"fmt"
	"slices"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops/pipeline"
	"github.com/megatron-ops/megatron-ops/slurm"
)

// A pipelinePage is a pipeline with its steps in columns: each step to the right of
// those that it needs.
type pipelinePage struct {
	pipeline.Record
	Shown []pipelineStep
}

// A pipelineStep is a step and its column, from 0. Steps beyond the last column of the
// page's layout are in the last one.
type pipelineStep struct {
	pipeline.RecordedStep
	Column int
	// Waits says why a step has no job to show.
	Waits string
}

// Earlier returns the step's jobs before its newest, newest first.
func (s pipelineStep) Earlier() []slurm.JobID {
	before := slices.Clone(s.Jobs[:len(s.Jobs)-1])
	slices.Reverse(before)
	return before
}

// mostColumns is how many columns page.css has.
const mostColumns = 6

func (v *visit) loadPipeline() (p pipelinePage, err error) {
	p.Record, err = pipeline.Show(v.r.Context(), v.call(), v.r.PathValue("owner"), v.r.PathValue("name"))
	column := map[string]int{}
	for _, s := range p.Steps { // each step is to the right of what it needs
		at := 0
		for _, n := range s.Needs {
			at = max(at, column[n]+1)
		}
		column[s.Name] = at
		shown := pipelineStep{RecordedStep: s, Column: min(at, mostColumns-1)}
		if s.Job == nil {
			shown.Waits = noJobReason(s).In(v.lang)
		}
		p.Shown = append(p.Shown, shown)
	}
	return p, err
}

func noJobReason(s pipeline.RecordedStep) lang.Text {
	if len(s.Jobs) > 0 {
		return textForgotten.With(s.Jobs[len(s.Jobs)-1])
	}
	return textNotSubmitted
}

func (v *visit) pipeline() error {
	p, err := v.loadPipeline()
	if err != nil {
		return err
	}
	return v.pageOrPart("pipeline", "pipelinehead", pageData{Title: p.Name, Here: "jobs", Body: p})
}

// pipelineStream reports when a step gets another job, or its job another state.
func (v *visit) pipelineStream() error {
	return v.stream(func() (any, error) {
		p, err := v.loadPipeline()
		if err != nil {
			return nil, err
		}
		var states []string
		for _, s := range p.Steps {
			if s.Job != nil {
				states = append(states, fmt.Sprint(s.Job.ID, s.Job.State))
			}
		}
		slices.Sort(states)
		return map[string]any{"steps": states}, nil
	})
}
