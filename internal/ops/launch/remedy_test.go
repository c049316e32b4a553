package launch

import (
	"context"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/ops/opstest"
	"github.com/megatron-ops/megatron-ops/internal/store"
	"github.com/megatron-ops/megatron-ops/knowledge/megatron"
	"github.com/megatron-ops/megatron-ops/slurm"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/outcome"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/report"
	"github.com/megatron-ops/megatron-ops/slurm/job"
	"github.com/stretchr/testify/require"
)

// failing returns a specification that the plan accepts.
func failing(more ...string) job.Spec {
	nodes, gpus := 2, 8
	args := "--num-layers 24 --hidden-size 1024 --num-attention-heads 16 --seq-length 2048 --max-position-embeddings 2048 " +
		"--micro-batch-size 4 --global-batch-size 64 --train-iters 100 --lr 1e-4 --tensor-model-parallel-size 4"
	return job.Spec{
		Name: "gpt", Nodes: &nodes, GPUsPerNode: &gpus, GPU: "h100", Time: "1:00:00", Worktree: "/lustre/m",
		Args: append(strings.Fields(args), more...),
	}
}

func TestARemedyChangesWhatTheDiagnosisNames(t *testing.T) {
	c := &ops.Call{Service: &ops.Service{Now: time.Now, Default: "local"}}
	for name, x := range map[string]struct {
		change func(*job.Spec)
		report report.Report
		says   string
		check  func(*testing.T, job.Spec)
	}{
		"out of GPU memory": {
			report: report.Report{Class: outcome.CUDAOOM, Fit: &report.Fit{Flags: []string{"--micro-batch-size", "2"}, EstimateGiB: 61.5, TotalGiB: 80}},
			says:   "--micro-batch-size 2",
			check: func(t *testing.T, s job.Spec) {
				require.Equal(t, 1, strings.Count(strings.Join(s.Args, " "), "--micro-batch-size"))
			},
		},
		"memory in pieces": {
			report: report.Report{Class: outcome.CUDAOOM, Memory: &report.Memory{TriedGiB: 2, ReservedGiB: 9}},
			says:   "expandable_segments",
			check: func(t *testing.T, s job.Spec) {
				require.Equal(t, "expandable_segments:True", s.Env["PYTORCH_CUDA_ALLOC_CONF"])
			},
		},
		"out of GPU memory for no reason that is known": {
			report: report.Report{Class: outcome.CUDAOOM},
			says:   "--micro-batch-size 2 instead of 4",
			check: func(t *testing.T, s job.Spec) {
				require.Equal(t, 1, strings.Count(strings.Join(s.Args, " "), "--micro-batch-size"))
			},
		},
		"out of host memory": {
			change: func(s *job.Spec) { s.Mem = "500G" }, report: report.Report{Class: outcome.HostOOM}, says: "1000G",
			check: func(t *testing.T, s job.Spec) { require.Equal(t, "1000G", s.Mem) },
		},
		"host memory that nobody asked for": {
			report: report.Report{Class: outcome.HostOOM}, says: "mem: 0",
			check: func(t *testing.T, s job.Spec) { require.True(t, *s.Exclusive) },
		},
		"a port that is taken": {
			report: report.Report{Class: outcome.PortInUse}, says: "master_port: 24711",
			check: func(t *testing.T, s job.Spec) { require.Equal(t, 24711, *s.MasterPort) },
		},
		"the time limit": {
			change: func(s *job.Spec) { s.Args = append(s.Args, "--save", "/ckpt/gpt", "--save-interval", "50") },
			report: report.Report{Class: outcome.SlurmTimeLimit, ExcludeNodes: []string{"gpu2", "gpu1"}}, says: "/ckpt/gpt",
			check: func(t *testing.T, s job.Spec) {
				require.Contains(t, strings.Join(s.Args, " "), "--load /ckpt/gpt")
				require.Equal(t, "gpu[1-2]", s.Exclude)
			},
		},
		"a layout that was forced": {
			change: func(s *job.Spec) {
				s.Args = append(s.Args, "--sequence-parallel")
				s.Args = append(megatron.WithoutFlags(s.Args, []string{"--tensor-model-parallel-size"}), "--tensor-model-parallel-size", "3")
			},
			report: report.Report{Class: outcome.ParallelConfig}, says: "--tensor-model-parallel-size",
			check: func(t *testing.T, s job.Spec) { require.NotContains(t, strings.Join(s.Args, " "), "size 3") },
		},
		"too many workers": {
			change: func(s *job.Spec) { s.Args = append(s.Args, "--num-workers", "8") },
			report: report.Report{Class: outcome.ShmBusError}, says: "--num-workers 4 instead of 8",
			check: func(t *testing.T, s job.Spec) { require.Contains(t, strings.Join(s.Args, " "), "--num-workers 4") },
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := failing()
			if x.change != nil {
				x.change(&s)
			}
			had, err := json.Marshal(s)
			require.NoError(t, err)
			r, ok := remedyOf(c, s, "4711", x.report)
			require.True(t, ok)
			require.Contains(t, r.Changes[0].EN, x.says)
			require.NotEmpty(t, r.Changes[0].ZH)
			for _, l := range r.Changes {
				require.NotContains(t, l.EN+l.ZH, "%!")
			}
			x.check(t, r.Spec)
			after, err := json.Marshal(s)
			require.NoError(t, err)
			require.JSONEq(t, string(had), string(after), "what failed keeps its own specification")
		})
	}
}

func TestWhereNoChangeHelpsNoneIsOffered(t *testing.T) {
	c := &ops.Call{Service: &ops.Service{Now: time.Now, Default: "local"}}
	for name, r := range map[string]report.Report{
		"a mistake in code":             {Class: outcome.UserException},
		"a broken node":                 {Class: outcome.GPUHardware, ExcludeNodes: []string{"gpu1"}},
		"no checkpoint to go on from":   {Class: outcome.SlurmTimeLimit},
		"a variable that was not own":   {Class: outcome.MaxConnections},
		"a change that breaks a rule":   {Class: outcome.CUDAOOM, Fit: &report.Fit{Flags: []string{"--tensor-model-parallel-size", "5"}}},
		"a refusal that the plan lacks": {Class: outcome.BadArgs},
	} {
		_, ok := remedyOf(c, failing(), "4711", r)
		require.False(t, ok, name)
	}
	_, ok, err := RemedyFor(t.Context(), c, "local", "4711", report.Report{Class: outcome.PortInUse})
	require.NoError(t, err)
	require.False(t, ok, "a job of somebody else's making has no specification here")
}

func TestTheRemedyOfASubmittedJobIsFound(t *testing.T) {
	st, err := store.Open(context.Background(), filepath.Join(t.TempDir(), "state.db"))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, st.Close()) })
	spec, err := json.Marshal(failing())
	require.NoError(t, err)
	_, _, err = st.Begin(t.Context(), store.Submission{Key: "k", Token: "t", Cluster: "slurm", Owner: "ada", Name: "gpt", Spec: spec, Dir: "/lustre/m", CreatedAt: time.Now()})
	require.NoError(t, err)
	require.NoError(t, st.Finish(t.Context(), "k", store.Submitted, "4711", "", time.Now()))
	c := &ops.Call{Service: &ops.Service{Now: time.Now, Default: "slurm", Store: func() (*store.Store, error) { return st, nil }}}
	r, ok, err := RemedyFor(t.Context(), c, "slurm", "4711", report.Report{Class: outcome.PortInUse})
	require.NoError(t, err)
	require.True(t, ok)
	require.Equal(t, 24711, *r.Spec.MasterPort)
	away, cancel := context.WithCancel(t.Context())
	cancel()
	_, ok, err = RemedyFor(away, c, "slurm", "4711", report.Report{Class: outcome.PortInUse})
	require.False(t, ok)
	require.Contains(t, lang.Said(err).EN, "what job 4711 was submitted with cannot be read at this moment")
	require.Contains(t, lang.Said(err).ZH, "暂时无法读取作业 4711 提交时的规格")
}

func TestABrokenNodeIsLeftOut(t *testing.T) {
	c := &ops.Call{Service: &ops.Service{Now: time.Now, Default: "local"}}
	broken := report.Report{Class: outcome.GPUHardware, Retry: true, ExcludeNodes: []string{"gpu1", "gpu2"}}
	r, ok := withoutFailedNodes(c, failing(), broken)
	require.True(t, ok)
	patch, ok := PatchOf("4711", failing(), r.Spec)
	require.True(t, ok)
	require.Equal(t, `submit --from 4711 --yaml '{"exclude":"gpu[1-2]"}'`, patch.Command())
	broken.Retry = false
	_, ok = withoutFailedNodes(c, failing(), broken)
	require.False(t, ok, "another try is not worth it")
}

// fourNodes is a cluster of four nodes.
type fourNodes struct{ *opstest.Site }

func (fourNodes) Nodes(context.Context) (all []slurm.Node, err error) {
	for _, n := range []string{"gpu1", "gpu2", "gpu3", "gpu4"} {
		all = append(all, slurm.Node{Name: n, State: "idle", Partitions: []string{"batch"}})
	}
	return all, nil
}

// A change that Slurm would refuse, because too few nodes are left, is not offered.
func TestNodesAreLeftOutWhereEnoughRemain(t *testing.T) {
	spec := failing()
	spec.Nodes = new(4)
	site := &opstest.Site{KnownJobs: map[slurm.JobID]slurm.Job{"4711": {ID: "4711", User: "alice"}}}
	c := opstest.NewCall(t, site)
	c.Clusters = map[string]ops.Cluster{"test": fourNodes{site}}
	st, err := c.Store()
	require.NoError(t, err)
	raw, err := json.Marshal(spec)
	require.NoError(t, err)
	_, _, err = st.Begin(t.Context(), store.Submission{Key: "k", Token: "t", Cluster: "test", Owner: "alice", Name: "gpt", Spec: raw, Dir: "/lustre/m", CreatedAt: time.Now()})
	require.NoError(t, err)
	require.NoError(t, st.Finish(t.Context(), "k", store.Submitted, "4711", "", time.Now()))
	broken := report.Report{Class: outcome.GPUHardware, Retry: true, ExcludeNodes: []string{"gpu3"}}
	patch, err := PatchFor(t.Context(), c, "test", "4711", broken)
	require.Nil(t, patch)
	require.Contains(t, lang.Said(err).EN, "without gpu3 too few nodes are left for the job: 3 of 4")
	require.Contains(t, lang.Said(err).ZH, "排除 gpu3 后 4 个节点只剩 3 个")

	both := report.Report{Class: outcome.PortInUse, Retry: true, ExcludeNodes: []string{"gpu3"}}
	patch, err = PatchFor(t.Context(), c, "test", "4711", both)
	require.NoError(t, err)
	require.Empty(t, patch.Spec.Exclude, "the other change stays")
	require.NotNil(t, patch.Spec.MasterPort)
	require.Contains(t, strings.Join(patch.Changes, "\n"), "without gpu3 too few nodes are left for the job: 3 of 4")
	require.NotContains(t, strings.Join(patch.Changes, "\n"), "exclude: gpu3")
	r, ok, err := RemedyFor(t.Context(), c, "test", "4711", both)
	require.NoError(t, err)
	require.True(t, ok)
	require.Empty(t, r.Spec.Exclude, "the button in Slack makes the same change")
}
