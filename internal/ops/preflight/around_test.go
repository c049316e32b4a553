package preflight

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/ops/opstest"
	"github.com/megatron-ops/megatron-ops/knowledge/rules"
	"github.com/megatron-ops/megatron-ops/slurm"
	"github.com/megatron-ops/megatron-ops/slurm/job"
)

// around returns the rules that a job breaks, on a cluster of this kind.
func around(t *testing.T, kind string, s job.Spec, change func(*ops.Call)) string {
	t.Helper()
	c := opstest.NewCall(t, &opstest.Site{OfKind: kind})
	if change != nil {
		change(c)
	}
	return strings.Join(ids(Surroundings(c, s.WithDefaults())), " ")
}

func TestWhatLiesAroundAJob(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	opstest.Write(t, filepath.Join(dir, "tree", "pretrain_gpt.py"), "")
	opstest.Write(t, filepath.Join(dir, "tree", ".venv", "x"), "")
	opstest.Write(t, filepath.Join(dir, "bare", "other.py"), "")
	tree, bare := filepath.Join(dir, "tree"), filepath.Join(dir, "bare")
	num := func(n int) *int { return &n }
	site := func(s job.Site) func(*ops.Call) {
		return func(c *ops.Call) { c.Sites = func(string) job.Site { return s } }
	}
	agent := func(may error) func(*ops.Call) {
		return func(c *ops.Call) {
			c.Who.Surface = ops.MCPHTTP
			c.MayRead = func(string) error { return may }
		}
	}
	for _, tt := range []struct {
		name, kind string
		spec       job.Spec
		change     func(*ops.Call)
		want       string
	}{
		{"all is there", "local", job.Spec{Worktree: tree, Time: "1"}, nil, ""},
		{"no worktree", "local", job.Spec{Time: "1"}, nil, "worktree-given"},
		{"minutes", "local", job.Spec{Worktree: tree, Time: "2880"}, nil, ""},
		{"seconds, which are minutes to Slurm", "local", job.Spec{Worktree: tree, Time: "14400"}, nil, "time-in-minutes"},
		{"a week in minutes", "local", job.Spec{Worktree: tree, Time: "10080"}, nil, ""},
		{"hours in seconds, or days in minutes", "local", job.Spec{Worktree: tree, Time: "86400"}, nil, "time-in-minutes"},
		{"days, and minutes with seconds", "local", job.Spec{Worktree: tree, Time: "4000:00"}, nil, ""},
		{"training without GPUs", "local", job.Spec{Worktree: tree, Time: "1", GPUsPerNode: num(0), Args: []string{"--train-iters=10"}}, nil, "training-without-gpus"},
		{
			"a program of its own without GPUs", "ssh",
			job.Spec{Worktree: "/w", Time: "1", GPUsPerNode: num(0), Launcher: job.Custom, LauncherArgv: []string{"python", "tune.py"}, Args: []string{"--train-iters", "10"}},
			nil, "",
		},
		{"preprocessing without GPUs", "local", job.Spec{Worktree: tree, Time: "1", GPUsPerNode: num(0), Args: []string{"--workers", "10"}}, nil, ""},
		{"no time", "local", job.Spec{Worktree: tree}, nil, "no-time-limit"},
		{"a worktree that is not there", "cli", job.Spec{Worktree: "/none", Time: "1"}, nil, "worktree-exists"},
		{"one that is a file", "cli", job.Spec{Worktree: filepath.Join(tree, "pretrain_gpt.py"), Time: "1"}, nil, "worktree-exists"},
		{"one on another machine", "ssh", job.Spec{Worktree: "/none", Time: "1"}, nil, ""},
		{"an agent that may not look", "cli", job.Spec{Worktree: "/none", Time: "1"}, agent(errors.New("no")), ""},
		{"an agent that may look", "cli", job.Spec{Worktree: "/none", Time: "1"}, agent(nil), "worktree-exists"},
		{"no script and no environment", "local", job.Spec{Worktree: bare, Time: "1"}, nil, "script-exists environment-synced"},
		{"a script by its path", "local", job.Spec{Worktree: bare, Time: "1", Script: "/none.py", Launcher: job.Python}, nil, ""},
		{"another launcher", "local", job.Spec{Worktree: bare, Time: "1", Launcher: job.Python}, nil, "script-exists"},
		{"a module", "local", job.Spec{Worktree: bare, Time: "1", Script: "pkg.train", Launcher: job.Custom, LauncherArgv: []string{"python", "-m"}}, nil, ""},
		{"a script of a custom launcher", "local", job.Spec{Worktree: bare, Time: "1", Script: "pkg.train", Launcher: job.Custom, LauncherArgv: []string{"python"}}, nil, "script-exists"},
		{"an environment by its path", "local", job.Spec{Worktree: bare, Time: "1", Venv: "/none"}, nil, "script-exists"},
		{"nodes that share no /tmp", "cli", job.Spec{Worktree: "/tmp/none", Time: "1", Nodes: num(2)}, nil, "worktree-exists worktree-shared"},
		{"one node", "cli", job.Spec{Worktree: "/tmp/none", Time: "1", Nodes: num(1)}, nil, "worktree-exists"},
		{"nodes that are this machine", "local", job.Spec{Worktree: "/tmp/none", Time: "1", Nodes: num(2)}, nil, "worktree-exists"},
		{"as many CPUs as there are", "ssh", job.Spec{Worktree: "/w", Time: "1", CPUsPerTask: num(8)}, site(job.Site{CPUsPerNode: 8, ThreadsPerCore: 2}), ""},
		{"more CPUs", "ssh", job.Spec{Worktree: "/w", Time: "1", CPUsPerTask: num(9)}, site(job.Site{CPUsPerNode: 8}), "cpus-fit-node"},
		{"cores of one thread", "ssh", job.Spec{Worktree: "/w", Time: "1", CPUsPerTask: num(8), Hint: "nomultithread"}, site(job.Site{CPUsPerNode: 8, ThreadsPerCore: 1}), ""},
		{"an address of one node", "ssh", job.Spec{Worktree: "/w", Time: "1", Nodes: num(1), Script: "t.py", Args: []string{"--init-method", "tcp://n:1"}}, nil, ""},
		{"an address of two", "ssh", job.Spec{Worktree: "/w", Time: "1", Nodes: num(2), Script: "t.py", Args: []string{"--init-method=tcp://n:1"}}, nil, "own-script-agrees"},
		{"one node's own disk", "ssh", job.Spec{Worktree: "/w", Time: "1", Nodes: num(1), Script: "t.py", Args: []string{"--save", "/tmp/ck"}}, nil, ""},
		{"two nodes' own disks", "ssh", job.Spec{Worktree: "/w", Time: "1", Nodes: num(2), Script: "t.py", Args: []string{"--save", "/tmp/ck"}}, nil, "outputs-shared"},
		{"an address that the shell fills in", "ssh", job.Spec{Worktree: "/w", Time: "1", Nodes: num(2), Script: "t.py", Args: []string{"--init-method", "tcp://$A:1"}}, nil, ""},
	} {
		require.Equal(t, tt.want, around(t, tt.kind, tt.spec, tt.change), tt.name)
	}
}

// A job's files are checked with the rights of the job's user, or not at all.
func TestWhoseFilesAreLookedAt(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := job.Spec{Worktree: dir, Args: []string{"--data-path", filepath.Join(dir, "none")}}
	for _, tt := range []struct {
		kind   string
		who    ops.Caller
		looked bool
	}{
		{"cli", ops.Caller{Surface: ops.Shell, User: "alice"}, true},
		{"cli", ops.Caller{Surface: ops.Slack, User: "bot"}, true},
		{"cli", ops.Caller{Surface: ops.Slack, User: "alice"}, false},
		{"ssh", ops.Caller{Surface: ops.Shell, User: "alice"}, false},
	} {
		c := opstest.NewCall(t, &opstest.Site{OfKind: tt.kind})
		c.Self, c.Who = "bot", tt.who
		cl, err := c.Cluster("")
		require.NoError(t, err)
		ps := OnCluster(t.Context(), c, cl, s, s.WithDefaults(), job.Script{}, nil)
		require.Equal(t, tt.looked, slices.Contains(ids(ps), "data-missing"), "%s %+v", tt.kind, tt.who)
	}
}

// A refusingSite is a cluster that refuses.
type refusingSite struct {
	twoPartitions
	says  error
	nodes []slurm.Node
}

func (w *refusingSite) Test(context.Context, slurm.Submission) (slurm.Estimate, error) {
	return slurm.Estimate{}, w.says
}

func (w *refusingSite) Nodes(context.Context) ([]slurm.Node, error) { return w.nodes, nil }

// Slurm's refusal names the field that it is about, and is an error unless nodes are
// out of service.
func TestWhatSlurmWouldRefuse(t *testing.T) {
	t.Parallel()
	c := opstest.NewCall(t, &opstest.Site{})
	c.Lang = lang.EN
	idle, out := slurm.Node{State: "idle"}, slurm.Node{State: "drained"}
	for _, tt := range []struct {
		says  string
		nodes []slurm.Node
		field string
		final bool
	}{
		{"Invalid partition name specified", nil, "partition", true},
		{"allocation failure: Invalid account or account/partition combination specified", nil, "partition", true},
		{"Invalid qos specification", nil, "qos", true},
		{"Invalid feature specification", nil, "constraint", true},
		{"Requested time limit is invalid (missing or exceeds some limit)", nil, "time", true},
		{"Memory specification can not be satisfied", nil, "mem", true},
		{"Something else", nil, "nodes", true},
		{"Requested node configuration is not available", []slurm.Node{idle}, "nodes", true},
		{"Requested node configuration is not available", []slurm.Node{idle, out}, "nodes", false},
		{"Invalid qos specification", []slurm.Node{out}, "qos", true},
	} {
		cl := &refusingSite{says: &slurm.Error{Kind: slurm.Rejected, Msg: lang.Same(tt.says)}, nodes: tt.nodes}
		ps := testOnly(t.Context(), c, cl, job.Spec{}, job.Script{Text: "#!/bin/sh\n"})
		require.Len(t, ps, 1, tt.says)
		require.Equal(t, tt.field, ps[0].Field, tt.says)
		require.Equal(t, tt.final, ps[0].Severity == rules.Error, tt.says)
		require.NotContains(t, ps[0].Message, "allocation failure: ")
		require.Empty(t, testOnly(t.Context(), c, cl, job.Spec{}, job.Script{}), "there is no script yet")
	}
	for _, err := range []error{nil, errors.New("timeout"), &slurm.Error{Kind: slurm.Unreachable}} {
		require.Empty(t, testOnly(t.Context(), c, &refusingSite{says: err}, job.Spec{}, job.Script{Text: "#!/bin/sh\n"}))
	}
	require.Empty(t, testOnly(t.Context(), c, &opstest.Site{}, job.Spec{}, job.Script{Text: "#!/bin/sh\n"}))
}

// A request that just meets a partition's conditions is accepted.
func TestWhomAPartitionJustLetsIn(t *testing.T) {
	t.Parallel()
	num := func(n int) *int { return &n }
	hour := int64(3600)
	allows := []slurm.PartitionLimits{{Name: "big", Accounts: []string{"a"}, QOS: []string{"q", "normal"}, MinNodes: 2, MaxCPUs: 8, DefaultTimeS: &hour}}
	mine := []slurm.Association{{Account: "a", DefaultQOS: "q"}, {Account: "b", DefaultQOS: "other"}}
	for _, tt := range []struct {
		spec job.Spec
		mine []slurm.Association
		want string
	}{
		{job.Spec{Partition: "big", Account: "a", Nodes: num(2), CPUsPerTask: num(8)}, mine, ""},
		{job.Spec{Partition: "big", Account: "b", Nodes: num(1), CPUsPerTask: num(9)}, mine, "partition-account partition-qos partition-nodes cpus-over-node"},
		{job.Spec{Partition: "big", Account: "b", QOS: "q", Nodes: num(2)}, mine, "partition-account"},
		{job.Spec{Partition: "big", Nodes: num(2)}, mine, ""},
		{job.Spec{Partition: "big", Nodes: num(2)}, mine[1:], "partition-account partition-qos"},
		{job.Spec{Partition: "big", Nodes: num(2)}, nil, ""},
		{job.Spec{Partition: "other", Account: "b", Nodes: num(1)}, mine, ""},
	} {
		r := request{spec: tt.spec.WithDefaults(), lang: lang.EN}
		r.checkAdmission(allows, tt.mine)
		require.Equal(t, tt.want, strings.Join(ids(r.ps), " "), "%+v", tt.spec)
	}
	for _, tt := range []struct {
		spec  job.Spec
		limit slurm.Limit
		want  string
	}{
		{job.Spec{Nodes: num(2)}, slurm.Limit{Name: "GrpTRES", TRES: "node", Max: 2}, ""},
		{job.Spec{Nodes: num(3)}, slurm.Limit{Name: "GrpTRES", TRES: "node", Max: 2}, "nodes"},
		{job.Spec{Nodes: num(2), GPUsPerNode: num(4)}, slurm.Limit{Name: "GrpTRES", TRES: "gres/gpu", Max: 8}, ""},
		{job.Spec{Nodes: num(2), GPUsPerNode: num(5)}, slurm.Limit{Name: "GrpTRES", TRES: "gres/gpu", Max: 9}, "gpus_per_node"},
		{job.Spec{Nodes: num(2), CPUsPerTask: num(4)}, slurm.Limit{Name: "GrpTRES", TRES: "cpu", Max: 8}, ""},
		{job.Spec{Nodes: num(2), CPUsPerTask: num(5)}, slurm.Limit{Name: "GrpTRES", TRES: "cpu", Max: 9}, "cpus_per_task"},
		{job.Spec{Time: "60"}, slurm.Limit{Name: "MaxWallPJ", Max: 60}, ""},
		{job.Spec{Time: "61"}, slurm.Limit{Name: "MaxWallPJ", Max: 60}, "time"},
		{job.Spec{Partition: "big"}, slurm.Limit{Name: "MaxWallPJ", Max: 60}, ""},
		{job.Spec{Partition: "big"}, slurm.Limit{Name: "MaxWallPJ", Max: 59}, "time"},
		{job.Spec{}, slurm.Limit{Name: "MaxWallPJ", Max: 59}, ""},
	} {
		r := request{spec: tt.spec.WithDefaults(), lang: lang.EN}
		r.limits([]slurm.Limit{tt.limit}, allows)
		var fields []string
		for _, p := range r.ps {
			fields = append(fields, p.Field)
		}
		require.Equal(t, tt.want, strings.Join(fields, " "), "%+v %+v", tt.spec, tt.limit)
	}
}
