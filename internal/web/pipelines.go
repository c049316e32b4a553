package web

import (
	"fmt"
	"net/http"
	"slices"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops/jobcontrol"
	"github.com/megatron-ops/megatron-ops/slurm"
)

// A pipelinePage is a pipeline with its steps in columns: each behind those that it
// needs.
type pipelinePage struct {
	jobcontrol.PipelineRecord
	Shown []pipelineStep
}

// A pipelineStep is a step and its column, from 0 on; those behind the last column of
// the page's form stand in it.
type pipelineStep struct {
	jobcontrol.RecordedStep
	Column int
	// Waits says why a step has no job to show.
	Waits string
}

// Earlier are the jobs of the step before its newest, the newest of them first.
func (s pipelineStep) Earlier() []slurm.JobID {
	before := slices.Clone(s.Jobs[:len(s.Jobs)-1])
	slices.Reverse(before)
	return before
}

// mostColumns is how many columns page.css knows.
const mostColumns = 6

func (v *visit) pipelineNow() (p pipelinePage, err error) {
	p.PipelineRecord, err = jobcontrol.ShowPipeline(v.r.Context(), v.call(), v.r.PathValue("owner"), v.r.PathValue("name"))
	column := map[string]int{}
	for _, s := range p.Steps { // each stands behind what it needs
		at := 0
		for _, n := range s.Needs {
			at = max(at, column[n]+1)
		}
		column[s.Name] = at
		shown := pipelineStep{RecordedStep: s, Column: min(at, mostColumns-1)}
		if s.Job == nil {
			shown.Waits = waits(s).In(v.lang)
		}
		p.Shown = append(p.Shown, shown)
	}
	return p, err
}

func waits(s jobcontrol.RecordedStep) lang.Text {
	if len(s.Jobs) > 0 {
		return textForgotten.With(s.Jobs[len(s.Jobs)-1])
	}
	return textNotSubmitted
}

func (v *visit) pipeline() error {
	p, err := v.pipelineNow()
	if err != nil {
		return err
	}
	if v.r.Header.Get("X-Part") != "" {
		return v.partly("pipelinehead", p)
	}
	v.page(http.StatusOK, "pipeline", pageOf{Title: p.Name, Here: "jobs", Body: p})
	return nil
}

// pipelineStream tells when a step's job is another, or in another state.
func (v *visit) pipelineStream() error {
	return v.stream(func() (any, error) {
		p, err := v.pipelineNow()
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
