package pipeline_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/ops/opstest"
	"github.com/megatron-ops/megatron-ops/internal/ops/pipeline"
	"github.com/megatron-ops/megatron-ops/slurm"
)

const trainYAML = `name: gpt
nodes: 2
gpu: h100
time: "1:00:00"
worktree: /lustre/m
args: [--num-layers=24, --hidden-size=1024, --num-attention-heads=16, --seq-length=2048, --max-position-embeddings=2048, --micro-batch-size=2,
  --global-batch-size=64, --train-iters=100, --lr=1e-4, --tensor-model-parallel-size=4]
`

const nightlyYAML = `name: nightly
steps:
  - name: evaluate
    needs: [train, preprocess]
    file: train.yaml
    args: [--load=<train.save>]
  - name: preprocess
    job: {name: prep, nodes: 1, gpus_per_node: 0, launcher: custom, launcher_argv: [bash], script: prep.sh, time: 10, worktree: /lustre/m}
  - name: train
    needs: [preprocess]
    file: train.yaml
    args: [--save=ckpt, --save-interval=10]
`

// pipelineCall returns a call in a shell, in a folder with a pipeline, and a cluster
// that keeps the submitted jobs waiting.
func pipelineCall(t *testing.T, text string) (*ops.Call, *opstest.Site) {
	t.Helper()
	site := &opstest.Site{KnownJobs: map[slurm.JobID]slurm.Job{}}
	c := opstest.NewCall(t, site)
	c.Dir = t.TempDir()
	opstest.Write(t, filepath.Join(c.Dir, "train.yaml"), trainYAML)
	opstest.Write(t, filepath.Join(c.Dir, "nightly.yaml"), text)
	return c, site
}

func TestAPipelineIsSubmittedOnceAndGoesOnWhereItBroke(t *testing.T) {
	c, site := pipelineCall(t, nightlyYAML)
	run := func(flags ...string) pipeline.Out {
		t.Helper()
		out, err := opstest.Do(t, c, pipeline.Submit(), append([]string{"nightly.yaml"}, flags...)...)
		require.NoError(t, err)
		return out.(pipeline.Out)
	}
	put := func(states map[slurm.JobID]slurm.State) {
		for id, s := range states {
			site.Put(slurm.Job{ID: id, User: "alice", State: s})
		}
	}
	_, err := opstest.Do(t, c, pipeline.Submit(), "nightly.yaml")
	require.True(t, ops.AsError(err).Confirm)
	require.Equal(t, "this submits 3 jobs of the pipeline nightly", ops.AsError(err).Message.In(lang.EN))
	run("--dry-run")
	require.Empty(t, site.Submitted)

	out := run("--yes")
	require.Len(t, site.Submitted, 3)
	require.Contains(t, opstest.Text(t, out, lang.EN), "nightly: 3 jobs submitted")
	require.NotContains(t, site.Submitted[0].Script, "--dependency=")
	require.Contains(t, site.Submitted[1].Script, "--dependency=afterok:4701\n")
	require.Contains(t, site.Submitted[2].Script, "--dependency=afterok:4702:4701\n")
	require.Contains(t, site.Submitted[2].Script, "--kill-on-invalid-dep=yes")
	require.Contains(t, site.Submitted[2].Script, "--load=/lustre/m/ckpt", "the checkpoint's path is handed on")

	put(map[slurm.JobID]slurm.State{"4701": slurm.Completed, "4702": slurm.Running, "4703": slurm.Pending})
	out = run("--yes")
	require.Len(t, site.Submitted, 3, "nothing twice")
	require.Contains(t, opstest.Text(t, out, lang.ZH), "nightly：已完成 1/3 步")

	put(map[slurm.JobID]slurm.State{"4702": slurm.Failed, "4703": slurm.Cancelled})
	require.Contains(t, opstest.Text(t, run("--show"), lang.EN), "FAILED")
	require.Len(t, site.Submitted, 3)
	out = run("--yes")
	require.Len(t, site.Submitted, 5, "what broke, and what follows it")
	require.Equal(t, slurm.JobID("4701"), *out.Steps[0].JobID)
	require.Equal(t, 2, out.Steps[1].Attempt)
	require.NotContains(t, site.Submitted[3].Script, "--dependency=", "what is completed is not waited for")
	require.Contains(t, site.Submitted[4].Script, "--dependency=afterok:4704\n")

	put(map[slurm.JobID]slurm.State{"4704": slurm.Completed, "4705": slurm.Completed})
	require.Contains(t, opstest.Text(t, run("--yes"), lang.EN), "all steps are completed")
	require.Len(t, site.Submitted, 5)
}

// A job's id is shown once the job has one.
func TestAStepThatTakesAJobsNumberIsToldIt(t *testing.T) {
	c, _ := pipelineCall(t, strings.Replace(nightlyYAML, "<train.save>", "<train.job_id>", 1))
	text := func(flag string, l lang.Lang) string {
		out, err := opstest.Do(t, c, pipeline.Submit(), "nightly.yaml", flag)
		require.NoError(t, err)
		return opstest.Text(t, out, l)
	}
	require.Contains(t, text("--dry-run", lang.EN), "evaluate takes <train.job_id>, which is known once that job is submitted")
	require.Contains(t, text("--show", lang.ZH), "其值在该作业提交后才知道")
	require.Contains(t, text("--yes", lang.EN), "evaluate takes <train.job_id> = 4702")
}

// A submitted pipeline is shown without its file: each step's jobs, the values that it
// took, where it broke, and how to continue.
func TestASubmittedPipelineIsShownLater(t *testing.T) {
	c, site := pipelineCall(t, nightlyYAML)
	c.PageURL = "https://ops.example.org"
	run := func(flags ...string) pipeline.Out {
		t.Helper()
		out, err := opstest.Do(t, c, pipeline.Submit(), append([]string{"nightly.yaml"}, flags...)...)
		require.NoError(t, err)
		return out.(pipeline.Out)
	}
	show := func() pipeline.Record {
		t.Helper()
		r, err := pipeline.Show(t.Context(), c, "alice", "nightly")
		require.NoError(t, err)
		return r
	}
	run("--dry-run")
	_, err := pipeline.Show(t.Context(), c, "alice", "nightly")
	require.Equal(t, ops.NotFound, ops.AsError(err).Code, "a dry run is none")
	require.Contains(t, opstest.Text(t, run("--yes"), lang.EN), "https://ops.example.org/web/pipelines/alice/nightly")
	for _, id := range []slurm.JobID{"4701", "4702", "4703"} {
		site.Put(slurm.Job{ID: id, User: "alice", State: slurm.Completed})
		owner, name := pipeline.Of(t.Context(), c, "test", slurm.Job{ID: id})
		require.Equal(t, "alice/nightly", owner+"/"+name)
	}
	owner, _ := pipeline.Of(t.Context(), c, "test", slurm.Job{ID: "4799"})
	require.Empty(t, owner)
	require.Equal(t, 3, show().Done())
	require.Empty(t, show().Answer(c).BrokenAt)
	require.Equal(t, []pipeline.HandedValue{{Ref: "<train.save>", Value: "/lustre/m/ckpt"}}, show().Steps[2].Handed)

	site.Put(slurm.Job{ID: "4702", User: "alice", State: slurm.Failed})
	site.Put(slurm.Job{ID: "4703", User: "alice", State: slurm.Cancelled})
	require.Equal(t, "train", show().Answer(c).BrokenAt, "the first that broke, not what fell with it")
	require.Equal(t, "megatron-ops pipeline "+filepath.Join(c.Dir, "nightly.yaml"), show().Resume())
	run("--show")
	run("--yes")
	r := show()
	require.Equal(t, []slurm.JobID{"4702", "4704"}, r.Steps[1].Jobs)
	require.Equal(t, []slurm.JobID{"4703", "4705"}, r.Steps[2].Jobs)
	require.Nil(t, r.Steps[1].Job, "the cluster knows none of the new ones")
	require.Empty(t, r.Answer(c).BrokenAt)
	site.Put(slurm.Job{ID: "4704", User: "alice", State: slurm.Running})
	site.Put(slurm.Job{ID: "4705", User: "alice", State: slurm.Pending})
	run("--yes")
	require.Equal(t, r.Steps[1].Jobs, show().Steps[1].Jobs, "said again, nothing is written twice")
}

func TestOneWrongStepStopsAll(t *testing.T) {
	c, site := pipelineCall(t, strings.Replace(nightlyYAML, "--save-interval=10]", "--save-interval=10, --tensor-model-parallel-size=5]", 1))
	out, err := opstest.Do(t, c, pipeline.Submit(), "nightly.yaml", "--yes")
	require.NoError(t, err)
	require.True(t, out.(pipeline.Out).Found())
	require.Empty(t, site.Submitted)
	require.Contains(t, opstest.Text(t, out, lang.EN), "train: --")
}

func TestAPipelineThatCannotBeIsRefused(t *testing.T) {
	for change, want := range map[string]string{
		"needs: [train, preprocess]=>needs: [trian]":                            `steps.evaluate.needs: there is no step "trian"`,
		"needs: [train, preprocess]=>needs: [preprocess]":                       "steps.evaluate: <train.save> is handed on by a step that it does not need",
		"<train.save>=><train.lod>":                                             "steps.evaluate: <train.lod>: the step train hands on no lod",
		"<train.save>=><train.load>":                                            "steps.evaluate: <train.load>: the step train hands on no load",
		"- name: preprocess=>- name: train":                                     `steps: "train": each step has a name of its own`,
		"name: preprocess\n=>name: preprocess\n    needs: [evaluate]\n":         "steps: some steps need one another in a ring",
		"file: train.yaml\n    args: [--load=>args: [--load":                    "steps.evaluate.file: a step has either a file or a job",
		"name: nightly=>nam: nightly":                                           `pipeline: cannot be read: json: unknown field "nam"`,
		"name: nightly=>name: [nightly":                                         `pipeline: is not YAML near "steps": `,
		"nodes: 1,=>nodez: 1,":                                                  "steps.preprocess.nodez: is not a field of the job specification",
		"file: train.yaml\n    args: [--save=>file: no.yaml\n    args: [--save": "steps.train.file: ",
	} {
		old, changed, _ := strings.Cut(change, "=>")
		require.Contains(t, nightlyYAML, old)
		c, site := pipelineCall(t, strings.Replace(nightlyYAML, old, changed, 1))
		_, err := opstest.Do(t, c, pipeline.Submit(), "nightly.yaml", "--yes")
		require.Error(t, err, change)
		require.True(t, strings.HasPrefix(ops.AsError(err).Error(), want), "%s: %s", change, ops.AsError(err).Error())
		require.NotEmpty(t, ops.AsError(err).Message.In(lang.ZH))
		require.Empty(t, site.Submitted)
	}
	c, _ := pipelineCall(t, nightlyYAML)
	c.Who.Surface = ops.MCP
	_, err := opstest.Do(t, c, pipeline.Submit(), "nightly.yaml", "--yes")
	require.Equal(t, ops.NotAllowed, ops.AsError(err).Code, "each submission of an agent is approved by itself")
}

// A pipeline is found by its name, without its file, on every surface that may read.
func TestAPipelineIsShownByItsName(t *testing.T) {
	c, site := pipelineCall(t, nightlyYAML)
	_, err := opstest.Do(t, c, pipeline.Submit(), "status")
	require.Equal(t, ops.NotFound, ops.AsError(err).Code)
	_, err = opstest.Do(t, c, pipeline.Submit(), "nightly.yaml", "--yes")
	require.NoError(t, err)
	for id, state := range map[slurm.JobID]slurm.State{"4701": slurm.Completed, "4702": slurm.Failed, "4703": slurm.Cancelled} {
		site.KnownJobs[id] = slurm.Job{ID: id, State: state, User: "alice"}
	}
	c.Who.Surface = ops.MCP
	out, err := opstest.Do(t, c, pipeline.List(), "nightly")
	require.NoError(t, err)
	p := out.(pipeline.ListOut).Pipelines[0]
	require.Equal(t, "train", p.BrokenAt)
	require.Equal(t, 1, p.Done())
	require.Equal(t, []pipeline.HandedValue{{Ref: "<train.save>", Value: "/lustre/m/ckpt"}}, p.Steps[2].Handed)
	require.Equal(t, filepath.Join(c.Dir, "nightly.yaml"), p.File)
	for l, want := range map[lang.Lang][]string{
		lang.EN: {"nightly: broke at train (FAILED), 1 of 3 steps completed", "evaluate takes <train.save> = /lustre/m/ckpt", "diagnose 4702", "pipeline " + p.File},
		lang.ZH: {"nightly：在 train 中断（FAILED），已完成 1/3 步", "evaluate 取得 <train.save> = /lustre/m/ckpt"},
	} {
		for _, w := range want {
			require.Contains(t, opstest.Text(t, out, l), w)
		}
	}
	c.Who.User = "bob"
	_, err = opstest.Do(t, c, pipeline.List(), "nightly")
	require.Equal(t, ops.NotFound, ops.AsError(err).Code, "it is somebody else's")
	c.Who.User, c.Who.Surface = "alice", ops.Shell
	out, err = opstest.Do(t, c, pipeline.Submit(), "nightly.yaml", "--yes")
	require.NoError(t, err)
	require.Len(t, site.Submitted, 5)
	require.Equal(t, []slurm.JobID{"4702"}, out.(pipeline.Out).Steps[1].Earlier)
	out, err = opstest.Do(t, c, pipeline.Submit(), "status", "nightly")
	require.NoError(t, err)
	require.Contains(t, opstest.Text(t, out, lang.EN), "1 of 3 steps completed")
}
