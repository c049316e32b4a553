package launch

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/ops/opstest"
	"github.com/megatron-ops/megatron-ops/internal/view"
	"github.com/megatron-ops/megatron-ops/slurm"
	"github.com/megatron-ops/megatron-ops/slurm/cluster"
)

// An estimatingSite says when a request would start: sooner with fewer nodes.
type estimatingSite struct {
	opstest.Site
	asked  []slurm.Submission
	fails  error
	start  time.Time
	sooner time.Time // for a request with one node
}

func (c *estimatingSite) Test(_ context.Context, s slurm.Submission) (slurm.Estimate, error) {
	c.asked = append(c.asked, s)
	if slices.Contains(s.Args, "--nodes=1") {
		return slurm.Estimate{Start: c.sooner}, c.fails
	}
	return slurm.Estimate{Start: c.start}, c.fails
}

func (*estimatingSite) BatchScript(_ context.Context, id slurm.JobID) (string, error) {
	return map[slurm.JobID]string{"7": "#!/bin/bash\n#SBATCH --nodes=2\n", "8": "#!/bin/bash\n"}[id], nil
}

func TestAWaitingJobIsTriedWithLess(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 6, 11, 10, 0, 0, 0, time.UTC)
	limit := int64(7201)
	cl := &estimatingSite{start: at, sooner: at.Add(-time.Hour)}
	c := opstest.NewCall(t, &opstest.Site{})
	c.Clusters["test"] = cl
	waits := slurm.Job{ID: "7", User: "alice", State: slurm.Pending, NumNodes: 2, GPUs: 16, Partition: "prod", TimeLimitS: &limit, WorkDir: "/w"}
	out, err := TryEarlierStart(t.Context(), c, cl, waits)
	require.NoError(t, err)
	require.Equal(t, &at, out.AsItIs)
	require.Equal(t, []EarlierStep{{Nodes: 1, Start: cl.sooner}}, out.Options)
	require.Equal(t, slurm.Submission{Script: "#!/bin/bash\n#SBATCH --nodes=2\n", Dir: "/w", Args: []string{"--nodes=2", "--time=121", "--partition=prod", "--gpus-per-node=8"}}, cl.asked[0])

	cl.asked = nil
	_, err = TryEarlierStart(t.Context(), c, cl, slurm.Job{ID: "8", State: slurm.Pending, GPUs: 3, NumNodes: 2})
	require.NoError(t, err)
	require.Equal(t, []string{"--nodes=2"}, cl.asked[0].Args, "GPUs that the nodes do not share evenly are left to the script")
	cl.asked = nil
	_, err = TryEarlierStart(t.Context(), c, cl, slurm.Job{ID: "8", State: slurm.Pending, Partition: "cpu"})
	require.NoError(t, err)
	require.Equal(t, []string{"--partition=cpu"}, cl.asked[0].Args, "no GPUs are asked for where the job has none")
	cl.start, cl.asked = time.Time{}, nil
	out, err = TryEarlierStart(t.Context(), c, cl, slurm.Job{ID: "8", State: slurm.Pending, GPUs: 3})
	require.NoError(t, err)
	require.Nil(t, out.AsItIs)
	require.Equal(t, []string{"--gpus-per-node=3"}, cl.asked[0].Args)
	for id, state := range map[slurm.JobID]slurm.State{"7": slurm.Running, "9": slurm.Pending} {
		_, err = TryEarlierStart(t.Context(), c, cl, slurm.Job{ID: id, State: state})
		require.Equal(t, "earlier", ops.AsError(err).Field, "it runs, or has no script")
	}
	_, err = TryEarlierStart(t.Context(), c, &opstest.Site{}, waits)
	require.Error(t, err)
	cl.fails = errors.New("refused")
	_, err = TryEarlierStart(t.Context(), c, cl, waits)
	require.ErrorContains(t, err, "refused")
}

// startsSite estimates a start for each request by the request's last option.
type startsSite struct {
	opstest.Bare
	at map[string]time.Time
}

func (s startsSite) Test(_ context.Context, asked slurm.Submission) (slurm.Estimate, error) {
	return slurm.Estimate{Start: s.at[append([]string{""}, asked.Args...)[len(asked.Args)]]}, nil
}

func TestAStartIsSoonerByAMinuteAtLeast(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)
	script := slurm.Submission{Script: "#!/bin/sh\n#SBATCH --nodes=4 --time=16\n"}
	out, err := tryLess(t.Context(), startsSite{at: map[string]time.Time{
		"":         at,
		"--time=8": at.Add(-time.Minute), "--time=4": at.Add(-59 * time.Second),
		"--nodes=2": at.Add(-time.Hour), "--nodes=1": at.Add(time.Hour),
	}}, script)
	require.NoError(t, err)
	require.Equal(t, []EarlierStep{{TimeLimitS: 480, Start: at.Add(-time.Minute)}, {Nodes: 2, Start: at.Add(-time.Hour)}}, out.Options)
	out, err = tryLess(t.Context(), startsSite{at: map[string]time.Time{"--nodes=1": at}}, script)
	require.NoError(t, err)
	require.Nil(t, out.AsItIs)
	require.Equal(t, []EarlierStep{{Nodes: 1, Start: at}}, out.Options, "a known start is sooner than none")
}

func TestWhenOneNodeWouldStart(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 6, 11, 10, 0, 0, 0, time.UTC)
	for _, tt := range []struct {
		name string
		cl   ops.Cluster
		who  string
		ok   bool
	}{
		{"in time", &estimatingSite{sooner: at, start: at}, "alice", true},
		{"nobody's", &estimatingSite{start: at}, "", false},
		{"never", &estimatingSite{}, "alice", false},
		{"refused", &estimatingSite{start: at, fails: errors.New("no")}, "alice", false},
		{"not told", &opstest.Site{}, "alice", false},
	} {
		c := opstest.NewCall(t, &opstest.Site{})
		c.Who.User = tt.who
		got, ok := LikelyStart(t.Context(), c, tt.cl, "prod", 4)
		require.Equal(t, tt.ok, ok, tt.name)
		if ok {
			require.Equal(t, at, got)
			require.Contains(t, tt.cl.(*estimatingSite).asked[0].Script, "#SBATCH --partition=prod")
			require.Contains(t, tt.cl.(*estimatingSite).asked[0].Script, "--gpus-per-node=4")
		}
	}
}

// A dry run shows the start. Where the cluster gives none and nothing would start
// sooner, it shows nothing about it.
func TestAChainSaysWhoSubmitsItsNextJob(t *testing.T) {
	t.Parallel()
	c := opstest.NewCall(t, &opstest.Site{})
	words := append([]string{"--chain", "3"}, opstest.GoodJob...)
	_, err := opstest.Do(t, c, Submit(), words...)
	asks := ops.AsError(err).Message
	require.Contains(t, asks.EN, "the first of a chain of 3: each job submits the next when it starts, and `touch logs/gpt.stop` ends the chain")
	require.Contains(t, asks.ZH, "作业链（共 3 个）的第一个")
	out, err := opstest.Do(t, c, Submit(), append([]string{"--yes"}, words...)...)
	require.NoError(t, err)
	require.Contains(t, opstest.Text(t, out, lang.EN), "each job submits the next when it starts")
	_, err = opstest.Do(t, c, Submit(), opstest.GoodJob...)
	require.NotContains(t, ops.AsError(err).Message.EN, "chain")
}

func TestADryRunAsksForTheStart(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 6, 11, 10, 0, 0, 0, time.UTC)
	for _, tt := range []struct {
		cl   *estimatingSite
		want *EarlierOut
	}{
		{&estimatingSite{start: at, sooner: at}, &EarlierOut{AsItIs: &at, Options: []EarlierStep{}}},
		{&estimatingSite{start: at, sooner: at.Add(-time.Hour)}, &EarlierOut{AsItIs: &at, Options: []EarlierStep{{Nodes: 1, Start: at.Add(-time.Hour)}}}},
		{&estimatingSite{sooner: at}, &EarlierOut{Options: []EarlierStep{{Nodes: 1, Start: at}}}},
		{&estimatingSite{}, nil},
		{&estimatingSite{start: at, fails: errors.New("no")}, nil},
	} {
		c := opstest.NewCall(t, &opstest.Site{})
		c.Clusters["test"] = tt.cl
		out, err := opstest.Do(t, c, Submit(), append([]string{"--dry-run"}, opstest.GoodJob...)...)
		require.NoError(t, err)
		require.Equal(t, tt.want, out.(SubmitOut).Earlier)
		require.Empty(t, tt.cl.Submitted)
	}
}

// A submission that was begun is found by its key, or by its specification without one.
func TestWhatWasBegunIsKnown(t *testing.T) {
	t.Parallel()
	s := &opstest.Site{KnownJobs: map[slurm.JobID]slurm.Job{}}
	c := opstest.NewCall(t, s)
	cl := c.Clusters["test"]
	_, err := opstest.Do(t, c, Submit(), append([]string{"--yes", "--idempotency-key", "k"}, opstest.GoodJob...)...)
	require.NoError(t, err)
	require.True(t, alreadyBegun(t.Context(), c, cl, "k", ""))
	require.False(t, alreadyBegun(t.Context(), c, cl, "other", ""))
	require.False(t, alreadyBegun(t.Context(), c, cl, "", "no such specification"))
	s.Refuse = &slurm.Error{Kind: slurm.Rejected}
	_, err = opstest.Do(t, c, Submit(), append([]string{"--yes", "--idempotency-key", "bad"}, opstest.GoodJob...)...)
	require.Error(t, err)
	require.False(t, alreadyBegun(t.Context(), c, cl, "bad", ""), "Slurm has refused it")
	s.Refuse = errors.New("no answer")
	_, err = opstest.Do(t, c, Submit(), append([]string{"--yes", "--idempotency-key", "lost"}, opstest.GoodJob...)...)
	require.Error(t, err)
	require.True(t, alreadyBegun(t.Context(), c, cl, "lost", ""))
}

func TestWhatCanBeMendedIsMendedInTheFile(t *testing.T) {
	t.Parallel()
	c := opstest.NewCall(t, &opstest.Site{})
	c.Dir = t.TempDir()
	bad := "#!/bin/bash\n#SBATCH --nodes = 2\nsrun hostname\n"
	good := "#!/bin/bash\n#SBATCH --nodes=2\nsrun hostname\n"
	for name, text := range map[string]string{"bad.sh": bad, "good.sh": good} {
		file := filepath.Join(c.Dir, name)
		opstest.Write(t, file, text)
		for _, named := range []string{name, file} {
			_, err := opstest.Do(t, c, Lint(), named, "--fix")
			require.NoError(t, err)
		}
		now, err := os.ReadFile(file)
		require.NoError(t, err)
		require.Equal(t, good, string(now))
		old, err := os.ReadFile(file + ".orig")
		require.Equal(t, text == bad, err == nil, "the old file is kept where it was mended")
		require.Equal(t, err == nil, string(old) == bad)
	}
	file := filepath.Join(c.Dir, "bad.sh")
	worse := bad + "#SBATCH -N 2\r\n"
	opstest.Write(t, file, worse)
	again, err := opstest.Do(t, c, Lint(), "bad.sh", "--fix")
	require.NoError(t, err)
	for name, text := range map[string]string{file + ".orig": bad, file + ".orig2": worse} {
		kept, err := os.ReadFile(name)
		require.NoError(t, err)
		require.Equal(t, text, string(kept), "an earlier original stays")
	}
	var shown strings.Builder
	require.NoError(t, view.Text(&shown, again.(LintOut).View(lang.EN), view.Style{}))
	require.Regexp(t, `(?s)fixed\n.*the original: .*bad\.sh\.orig2\n.*left\n`, shown.String())
	out, err := lintOp(t.Context(), c, LintIn{Script: bad, Fix: true})
	require.NoError(t, err)
	require.Equal(t, good, out.Mended, "a text without a file is mended in the answer")
}

// A treeSite is a cluster that accepts worktrees, with or without a default folder.
type treeSite struct {
	opstest.Site
	into   string
	there  bool // the tree is there already
	brings int
}

func (p *treeSite) SyncDefaults() (string, []string) { return p.into, nil }

func (p *treeSite) CompareTree(_ context.Context, t *cluster.SourceTree, _ string) (d cluster.TreeDifference, err error) {
	for _, f := range t.Files {
		if !p.there {
			d.Added = append(d.Added, cluster.TreeChange{Path: f.Path, Bytes: f.Bytes})
		}
	}
	return d, nil
}

func (p *treeSite) BringTree(ctx context.Context, t *cluster.SourceTree, to, _ string, _ cluster.GitSource) (cluster.TreeDifference, error) {
	p.brings++
	return p.CompareTree(ctx, t, to)
}

func TestWhatIsBroughtAndWhereTo(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	opstest.Write(t, filepath.Join(root, "tree", ".git", "HEAD"), "")
	opstest.Write(t, filepath.Join(root, "tree", "inner", "train.py"), "")
	opstest.Write(t, filepath.Join(root, "plain", "train.py"), "")
	require.Equal(t, filepath.Join(root, "tree"), worktreeAround(filepath.Join(root, "tree", "inner")))
	require.Equal(t, filepath.Join(root, "tree"), worktreeAround(filepath.Join(root, "tree")))
	for _, tt := range []struct {
		name, dir, into string
		in              SyncIn
		who             ops.Surface
		from, to, field string
	}{
		{"from below the worktree", "tree/inner", "/lustre", SyncIn{}, ops.Shell, "tree", "/lustre/tree", ""},
		{"a folder by name", "", "/lustre", SyncIn{Dir: "plain/"}, ops.Shell, "plain", "/lustre/plain", ""},
		{"to a place of one's own", "plain", "/lustre", SyncIn{To: "/w/x/../y"}, ops.Chat, "plain", "/w/y", ""},
		{"without a place", "plain", "", SyncIn{}, ops.Shell, "", "", "to"},
		{"to the root", "plain", "", SyncIn{To: "/a/.."}, ops.Shell, "", "", "to"},
		{"to a relative place", "plain", "", SyncIn{To: "a"}, ops.Shell, "", "", "to"},
		{"to a place with a line end", "plain", "", SyncIn{To: "/a\nb"}, ops.Shell, "", "", "to"},
		{"a folder that is not there", "", "/lustre", SyncIn{Dir: "none"}, ops.Shell, "", "", "dir"},
		{"a file", "", "/lustre", SyncIn{Dir: "plain/train.py"}, ops.Shell, "", "", "dir"},
		{"an agent's relative folder", "-", "/lustre", SyncIn{Dir: "plain"}, ops.MCP, "", "", "dir"},
		{"an agent's without a folder", "-", "/lustre", SyncIn{}, ops.MCP, "", "", "dir"},
	} {
		c := opstest.NewCall(t, &opstest.Site{})
		c.Who.Surface = tt.who
		if c.Dir = filepath.Join(root, tt.dir); tt.dir == "-" {
			c.Dir = ""
		}
		b, err := newTransfer(c, &treeSite{Site: opstest.Site{OfKind: "ssh"}, into: tt.into}, tt.in)
		if tt.field != "" {
			require.Equal(t, tt.field, ops.AsError(err).Field, tt.name)
			continue
		}
		require.NoError(t, err, tt.name)
		require.Equal(t, [2]string{filepath.Join(root, tt.from), tt.to}, [2]string{b.dir, b.to}, tt.name)
	}
	c := opstest.NewCall(t, &opstest.Site{})
	for _, who := range []ops.Surface{ops.Slack, ops.MCPHTTP, ops.Web} {
		c.Who.Surface = who
		_, err := newTransfer(c, &treeSite{Site: opstest.Site{OfKind: "ssh"}}, SyncIn{})
		require.Equal(t, ops.NotAllowed, ops.AsError(err).Code, who)
	}
	c.Who.Surface = ops.Shell
	for _, cl := range []ops.Cluster{&treeSite{}, &opstest.Site{OfKind: "ssh"}} {
		_, err := newTransfer(c, cl, SyncIn{Dir: root})
		require.Error(t, err)
	}
}

// A submission with a transfer asks about both, and the job runs in the destination.
func TestAJobIsSubmittedWithItsTree(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	opstest.Write(t, filepath.Join(root, "tree", ".git", "HEAD"), "")
	opstest.Write(t, filepath.Join(root, "tree", "inner", "train.py"), "x")
	p := &treeSite{Site: opstest.Site{OfKind: "ssh", KnownJobs: map[slurm.JobID]slurm.Job{}}, into: "/lustre"}
	c := opstest.NewCall(t, &opstest.Site{})
	c.Clusters["test"], c.Dir = p, filepath.Join(root, "tree", "inner")
	words := slices.Clone(opstest.GoodJob)
	words[slices.Index(words, "/lustre/m")] = "."
	submit := func(more ...string) (SubmitOut, error) {
		out, err := opstest.Do(t, c, Submit(), append(append([]string{"--sync"}, more...), words...)...)
		o, _ := out.(SubmitOut)
		return o, err
	}
	_, err := submit()
	e := ops.AsError(err)
	require.True(t, e.Confirm)
	require.Contains(t, e.Message.EN, "; then this submits gpt")
	require.NotEmpty(t, e.Details)
	o, err := submit("--dry-run", "--yes")
	require.NoError(t, err)
	require.Zero(t, p.brings)
	require.True(t, o.Sync.pending())
	require.Contains(t, opstest.Text(t, o, lang.EN), "differs: ")
	o, err = submit("--yes")
	require.NoError(t, err)
	require.Equal(t, 1, p.brings)
	require.False(t, o.Sync.pending())
	require.Contains(t, p.Submitted[0].Script, "cd /lustre/tree/inner")
	p.there = true
	_, err = submit()
	require.True(t, strings.HasPrefix(ops.AsError(err).Message.EN, "this submits"), "nothing is to come")
	details := ops.AsError(err).Details
	require.Len(t, details, 1, "the plan's warning, and no files")
	require.Contains(t, details[0].EN, "warning: --bf16: ")
}

// A limit is halved down to a minute.
func TestWhichLimitsAreTried(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)
	for minutes, options := range map[string]int{"3": 0, "4": 2, "5": 2} {
		soon := map[string]time.Time{"": at.Add(time.Hour), "--time=1": at, "--time=2": at, "--time=3": at}
		out, err := tryLess(t.Context(), startsSite{at: soon}, slurm.Submission{Script: "#!/bin/sh\n#SBATCH --time=" + minutes + "\n"})
		require.NoError(t, err)
		require.Len(t, out.Options, options, minutes)
	}
}

// A server asks with the rights of the person whose request it is, and with its own about
// another's; in a shell the process has the person's.
func TestWithWhoseRightsASmallerRequestIsTried(t *testing.T) {
	t.Parallel()
	own, as := &estimatingSite{}, &estimatingSite{}
	for _, tt := range []struct {
		who   ops.Surface
		owner string
		acts  bool
	}{{ops.Shell, "alice", false}, {ops.Slack, "alice", true}, {ops.Slack, "bob", false}} {
		c := opstest.NewCall(t, &opstest.Site{})
		c.Clusters["test"], c.Who.Surface, c.Who.User = own, tt.who, "alice"
		if tt.who != ops.Shell {
			c.Self = "service"
		}
		c.As = func(_ ops.Cluster, user string) (ops.Cluster, error) {
			require.Equal(t, "alice", user)
			return as, nil
		}
		own.asked, as.asked = nil, nil
		_, err := TryEarlierStart(t.Context(), c, own, slurm.Job{ID: "8", User: tt.owner, State: slurm.Pending, NumNodes: 2})
		require.NoError(t, err)
		require.Equal(t, tt.acts, len(as.asked) > 0, "%+v", tt)
		require.Equal(t, tt.acts, len(own.asked) == 0, "%+v", tt)
	}
}
