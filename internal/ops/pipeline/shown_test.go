package pipeline

import (
	"flag"
	"testing"

	"github.com/megatron-ops/megatron-ops/internal/ops/opstest"
	"github.com/megatron-ops/megatron-ops/knowledge/rules"
	"github.com/megatron-ops/megatron-ops/slurm"
)

var rewrite = flag.Bool("update", false, "rewrite the golden files")

// The answers are pinned in both languages.
func TestAnswersAreShownAsTheyAre(t *testing.T) {
	t.Parallel()
	id := slurm.JobID("7")
	step := func(name string, state slurm.State, more func(*Step)) Step {
		s := Step{Name: name, State: state, JobID: &id}
		if more != nil {
			more(&s)
		}
		return s
	}
	done := step("data", slurm.Completed, nil)
	broke := step("train", slurm.Failed, func(s *Step) { s.Needs, s.Attempt = []string{"data"}, 2 })
	isNew := step("eval", slurm.Pending, func(s *Step) { s.New = true })
	refused := Step{Name: "eval", Problems: []rules.Problem{{Severity: rules.Error, Field: "gpu", Message: "wrong", Fix: "mend it"}, {Severity: rules.Note, Message: "noted"}}}
	opstest.Pinned(t, *rewrite, []opstest.Answer{
		{Name: "no pipelines", Out: ListOut{}},
		{Name: "pipelines", Out: ListOut{Pipelines: []Out{{Name: "a", Steps: []Step{done}}, {Name: "b", Steps: []Step{done, broke}, BrokenAt: "train"}}}},
		{Name: "a pipeline that is through", Out: ListOut{one: true, Pipelines: []Out{{Name: "a", shown: true, Steps: []Step{done}, Page: "https://ops/a"}}}},
		{Name: "a pipeline that broke", Out: Out{Name: "b", shown: true, File: "/w/p.yaml", Steps: []Step{done, broke, {Name: "eval", Earlier: []slurm.JobID{"3", "5"}, Attempt: 3}}, BrokenAt: "train"}},
		{Name: "a pipeline that began", Out: Out{Name: "b", Steps: []Step{done, isNew}}},
		{Name: "a pipeline that was refused", Out: Out{Name: "b", Steps: []Step{refused}}},
		{Name: "a pipeline that stopped", Out: Out{Name: "b", Steps: []Step{isNew, refused}}},
		{Name: "a dry run of a pipeline", Out: Out{Name: "b", dry: true, Page: "https://ops/b", Steps: []Step{{Name: "data"}}}},
	}, Submit(), List())
}
