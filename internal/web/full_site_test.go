package web_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/ops/opstest"
	"github.com/megatron-ops/megatron-ops/internal/ops/pipeline"
	"github.com/megatron-ops/megatron-ops/internal/web"
	"github.com/megatron-ops/megatron-ops/slurm"
)

// A fullCluster also has nodes, accounts and usage.
type fullCluster struct{ *opstest.Site }

func (fullCluster) Nodes(context.Context) ([]slurm.Node, error) {
	var all []slurm.Node
	for i := range 12 {
		n := slurm.Node{Name: fmt.Sprintf("gpu%02d", i+1), State: "allocated", Partitions: []string{"dev"}, GPUs: 8, GPUType: "h100", GPUsUsed: 8, CPUs: 128, CPUsUsed: 96, MemoryMB: 2 << 20}
		if i > 8 {
			n.State, n.GPUsUsed, n.CPUsUsed = "idle", 0, 0
		}
		if i == 11 {
			n.State, n.Reason = "drained", "xid 79: GPU has fallen off the bus"
		}
		all = append(all, n)
	}
	return all, nil
}

func (fullCluster) Partitions(context.Context) ([]slurm.Partition, error) {
	day := int64(86400)
	return []slurm.Partition{{Name: "dev", Default: true, Up: true, State: "up", TimeLimitS: &day, Allocated: 9, Idle: 2, Other: 1, Total: 12, GPUs: 8, Nodes: "gpu[01-12]"}}, nil
}

func (fullCluster) Associations(_ context.Context, user string) ([]slurm.Association, error) {
	return []slurm.Association{{Account: "research", User: user}, {Account: "research", User: user, Partition: "dev"}, {Account: "infra", User: user}}, nil
}
func (fullCluster) QOS(context.Context) ([]slurm.QOS, error)      { return nil, nil }
func (fullCluster) Shares(context.Context) ([]slurm.Share, error) { return nil, nil }

// newFullSite is a site whose job 7 is the third attempt of its name, with a log of
// four ranks.
func newFullSite(t testing.TB, more ...func(*web.Config)) *site {
	t.Helper()
	s := newSite(t, more...)
	s.svc.Clusters["test"] = fullCluster{s.jobs}
	now := time.Date(2026, 11, 21, 9, 5, 0, 0, time.UTC)
	s.svc.Now = func() time.Time { return now }
	at := func(minutes int) *time.Time {
		a := now.Add(time.Duration(minutes) * time.Minute)
		return &a
	}
	limit := int64(7200)
	try := func(id slurm.JobID, state slurm.State, submitted, started, ended int, change func(*slurm.Job)) {
		j := slurm.Job{
			ID: id, Name: "llama-8b", User: "alice", Account: "research", Partition: "dev", State: state, GPUs: 16, NumNodes: 2, TimeLimitS: &limit,
			Nodes: []string{"gpu01", "gpu02"}, SubmittedAt: at(submitted), StartedAt: at(started), ElapsedS: int64(60 * (min(ended, 0) - started)),
		}
		if state.Ended() {
			j.EndedAt = at(ended)
		}
		if change != nil {
			change(&j)
		}
		s.jobs.KnownJobs[id] = j
	}
	var out strings.Builder
	for i := 1; i <= 400; i++ {
		fmt.Fprintf(&out, "0: [2026-11-21 08:%02d:%02d] iteration %8d/ 5000 | consumed samples: %d | elapsed time per iteration (ms): %.1f | throughput per GPU (TFLOP/s/GPU): %.1f | "+
			"learning rate: 1.0E-04 | global batch size: 32 | lm loss: %.5E | grad norm: %.3f |\n",
			i/10%60, i%10*6, i, 32*i, 1900+float64(i*37%90), 410-float64(i*37%23), 2.1+9/float64(i+8), 0.3+float64(i*53%17)/60)
		if i%100 == 1 {
			for rank := range 4 {
				fmt.Fprintf(&out, "%d: [Rank %d] (after %d iterations) memory (MB) | allocated: 41000.0 | max allocated: %d.0 | reserved: 60000.0 | max reserved: 61000.0\n", rank, rank, i, 50000+i*10+rank)
			}
		}
		fmt.Fprintf(&out, "%d: step %d is slow\n", i%4, i)
	}
	out.WriteString("2: WARNING: the fan is loud\n3: RuntimeError: NCCL communicator was aborted on rank 3\n")
	opstest.Write(t, filepath.Join(s.logs, "llama-8b-4713.err"), "1: stderr of rank 1\n")
	log := filepath.Join(s.logs, "llama-8b-4713.out")
	opstest.Write(t, log, out.String())
	try("4711", slurm.Failed, -240, -235, -220, nil)
	try("4712", slurm.Preempted, -215, -180, -70, func(j *slurm.Job) { j.Requeues = []slurm.State{slurm.Preempted} })
	try("4713", slurm.Running, -68, -45, 0, func(j *slurm.Job) { j.Stdout = log })
	try("4800", slurm.Running, -20, -20, 0, func(j *slurm.Job) { j.Name, j.User, j.Account = "theirs-too", "bob", "research" })
	return s
}

// The page of a running job says at its head where the log has been silent for too long.
func TestAJobThatMayHangIsSaidToAtItsHead(t *testing.T) {
	s := newFullSite(t)
	const warning = `<p class="problem">Iteration 400, 1.9 s an iteration. No line for 1 h: perhaps a hang</p>`
	log := filepath.Join(s.logs, "llama-8b-4713.out")
	opstest.Write(t, log, " iteration      400/    5000 | elapsed time per iteration (ms): 1900.0 | lm loss: 2.1E+00 |\n")
	now := time.Now() // the age of a file is by the machine's clock
	began, silent := now.Add(-2*time.Hour), now.Add(-time.Hour)
	j := s.jobs.KnownJobs["4713"]
	j.StartedAt = &began
	s.jobs.KnownJobs["4713"] = j
	for _, file := range []string{log, filepath.Join(s.logs, "llama-8b-4713.err")} {
		require.NoError(t, os.Chtimes(file, silent, silent))
	}
	_, body := s.as("alice").get("/web/jobs/test/4713")
	require.Contains(t, body, warning)
	require.NoError(t, os.Chtimes(log, now, now))
	_, body = s.as("alice").get("/web/jobs/test/4713")
	require.NotContains(t, body, "perhaps a hang")
}

const nightly = `name: nightly
steps:
  - name: preprocess
    job: {name: prep, nodes: 1, gpus_per_node: 0, launcher: custom, launcher_argv: [bash], script: prep.sh, time: 10, worktree: /lustre/m}
  - name: train
    needs: [preprocess]
    job: {name: gpt, nodes: 2, gpu: h100, time: "1:00:00", worktree: /lustre/m, args: [--num-layers=24, --hidden-size=1024, --num-attention-heads=16,
      --seq-length=2048, --max-position-embeddings=2048, --micro-batch-size=2, --global-batch-size=64, --train-iters=100, --lr=1e-4,
      --tensor-model-parallel-size=4, --save=ckpt, --save-interval=10]}
  - name: evaluate
    needs: [train]
    job: {name: eval, nodes: 1, gpus_per_node: 0, launcher: custom, launcher_argv: [bash], script: eval.sh, time: 10, worktree: /lustre/m, args: [<train.save>]}
  - name: report
    needs: [train, preprocess]
    job: {name: report, nodes: 1, gpus_per_node: 0, launcher: custom, launcher_argv: [bash], script: report.sh, time: 10, worktree: /lustre/m}
`

// runPipeline submits what is left of a pipeline of alice's.
func (s *site) runPipeline() error {
	c := &ops.Call{Service: s.svc, Who: ops.Caller{Surface: ops.Shell, ID: "alice", User: "alice"}, Dir: s.logs}
	opstest.Write(s.t, filepath.Join(s.logs, "nightly.yaml"), nightly)
	op, in := pipeline.Submit(), pipeline.In{File: "nightly.yaml", Yes: true}
	_, err := op.Run(s.t.Context(), c, &in)
	return err
}

// pipeline submits a pipeline of alice's whose second step fails.
func (s *site) pipeline() {
	s.t.Helper()
	require.NoError(s.t, s.runPipeline())
	require.Len(s.t, s.jobs.Submitted, 4)
	for id, state := range map[slurm.JobID]slurm.State{"4701": slurm.Completed, "4702": slurm.Failed, "4703": slurm.Cancelled} {
		s.jobs.KnownJobs[id] = slurm.Job{ID: id, Name: "step", User: "alice", State: state, ElapsedS: 90, GPUs: 16}
	}
}

// A pipeline's page shows its steps, and where and how to continue.
func TestAPipelineHasAPage(t *testing.T) {
	s := newFullSite(t)
	s.pipeline()
	b := s.as("alice")
	_, body := b.get("/web/jobs/test/4702")
	require.Contains(t, body, `<a href="/web/pipelines/alice/nightly">nightly</a>`)
	_, body = b.get("/web/jobs/test/7")
	require.NotContains(t, body, "/web/pipelines/")
	status, body := b.get("/web/pipelines/alice/nightly")
	require.Equal(t, 200, status)
	require.Contains(t, body, "1 of 4 steps completed")
	require.Contains(t, body, `It broke at train: <a href="/web/jobs/test/4702">4702</a> failed`)
	require.Contains(t, body, "megatron-ops pipeline "+filepath.Join(s.logs, "nightly.yaml"))
	require.Contains(t, body, "<code>&lt;train.save&gt;</code></dt><dd><code>/lustre/m/ckpt</code>")
	require.Contains(t, body, "Slurm no longer knows job 4704")
	require.NotContains(t, body, "earlier tries")
	require.Regexp(t, `column2" id="step-report"`, body, "behind all that it needs")
	require.Contains(t, body, `after <a href="#step-train">train</a>, <a href="#step-preprocess">preprocess</a>`)
	status, body = b.get("/web/pipelines/bob/nightly")
	require.Equal(t, 404, status, body)
	require.NoError(t, s.runPipeline())
	_, body = b.get("/web/pipelines/alice/nightly")
	require.Contains(t, body, `earlier tries: <a class="id" href="/web/jobs/test/4702">4702</a> </p>`)
}

func TestAttemptsAtARunStandInOneTimeline(t *testing.T) {
	s := newFullSite(t)
	_, body := s.as("bob").get("/web/jobs/test/4712/attempts")
	require.Equal(t, 3, strings.Count(body, "<li"))
	first, second, third := strings.Index(body, ">4711<"), strings.Index(body, ">4712<"), strings.Index(body, ">4713<")
	require.True(t, first < second && second < third, "the oldest first")
	require.Contains(t, body[first:second], `<li aria-current="true">`, "the page's own")
	require.Contains(t, body, "put back into the queue after: preempted")
	require.Regexp(t, `class="waits" x="0" width="20" `, body, "five minutes of four hours in the queue")
	require.Regexp(t, `class="runs" x="812" width="187" `, body, "what runs goes to the end")
	for i := range 20 {
		id := slurm.JobID(fmt.Sprint(4800 + i))
		j := s.jobs.KnownJobs["4712"]
		j.ID = id
		s.jobs.KnownJobs[id] = j
	}
	_, body = s.as("bob").get("/web/jobs/test/4712/attempts")
	require.Equal(t, 12, strings.Count(body, "<li"), "of many the next ones")
	require.Contains(t, body, `<li aria-current="true">`)
	// A job that was never run again has a timeline of its own.
	_, body = s.as("bob").get("/web/jobs/test/8/attempts")
	require.Equal(t, 1, strings.Count(body, "<li"))
}

func TestCurvesAreWhatATrainerWatches(t *testing.T) {
	s := newFullSite(t)
	_, body := s.as("alice").get("/web/jobs/test/4713/curves.json")
	var run struct {
		Curves []struct {
			Name, Unit string
			X          []int
			Y          []float64
		}
	}
	require.NoError(t, json.Unmarshal([]byte(body), &run))
	var names []string
	for _, c := range run.Curves {
		names = append(names, c.Name+"/"+c.Unit)
	}
	require.Equal(t, []string{"Loss/", "Time of an iteration/s", "Throughput/TFLOP/s/GPU", "Peak GPU memory/GiB", "Gradient norm/", "Learning rate/"}, names)
	require.InDelta(t, 1.937, run.Curves[1].Y[0], 1e-9, "seconds")
	require.Equal(t, []int{1, 101, 201, 301}, run.Curves[3].X)
	require.InDelta(t, 53013/1024.0, run.Curves[3].Y[3], 1e-9, "of the rank that took most")
}

func TestALogIsChosenByRankAndLevel(t *testing.T) {
	s := newFullSite(t)
	b := s.as("alice")
	lines := func(query string) (lines []string) {
		status, body := b.get("/web/jobs/test/4713/log.json?file=1&" + query)
		require.Equal(t, 200, status, body)
		var w struct{ Lines []string }
		require.NoError(t, json.Unmarshal([]byte(body), &w))
		return w.Lines
	}
	require.Len(t, lines("rank=3"), 100+4+1)
	require.Equal(t, []string{"3: RuntimeError: NCCL communicator was aborted on rank 3"}, lines("level=error&end=1"))
	require.Equal(t, []string{"2: WARNING: the fan is loud"}, lines("level=warning&rank=2&from=0"))
	require.Equal(t, []string{"3: step 3 is slow"}, lines("rank=3&find=STEP+3+"))

	_, body := b.get("/web/jobs/test/4713/log.json?file=all&rank=1")
	var w struct{ Lines []string }
	require.NoError(t, json.Unmarshal([]byte(body), &w))
	require.Len(t, w.Lines, 100+4+1, "of both files")
	require.Contains(t, w.Lines, "1: stderr of rank 1")
	_, body = b.get("/web/jobs/test/4713/log.json?file=all&find=STDERR")
	require.NoError(t, json.Unmarshal([]byte(body), &w))
	require.Equal(t, []string{"1: stderr of rank 1"}, w.Lines)
	status, _ := b.get("/web/jobs/test/4713/log.json?file=all&level=none")
	require.Equal(t, 400, status)
}

// The environment in a specification is shown only to users who may change the job.
func TestASpecificationIsItsOwners(t *testing.T) {
	s := newFullSite(t)
	status, _ := s.as("alice").post("/web/do", map[string][]string{"op": {"submit"}, "cluster": {"test"}, "word": append([]string{"--env", "SECRET_SAUCE=yes", "--comment", "hf_abcdefghijklmnopqrstuvwxyz012345678"}, opstest.GoodJob...)})
	require.Equal(t, 200, status)
	s.jobs.KnownJobs["4701"] = slurm.Job{ID: "4701", Name: "gpt", User: "alice", State: slurm.Running}
	_, body := s.as("alice").get("/web/jobs/test/4701/specification")
	require.Contains(t, body, "SECRET_SAUCE: ")
	require.NotContains(t, body, "hf_abc", "whoever looks over a shoulder reads no token")
	require.Regexp(t, `(?s)comment: .*#SBATCH --comment=`, body)
	require.Contains(t, body, "#SBATCH --job-name=gpt")
	status, body = s.as("bob").get("/web/jobs/test/4701/specification")
	require.Equal(t, http.StatusForbidden, status)
	require.NotContains(t, body, "SAUCE")
	status, _ = s.as("root").get("/web/jobs/test/4701/specification")
	require.Equal(t, 200, status, "an operator's too")
	_, body = s.as("bob").get("/web/jobs/test/4701")
	require.NotContains(t, body, "/specification")
	_, body = s.as("alice").get("/web/jobs/test/4701/plan")
	require.Contains(t, body, "gpt")
	status, _ = s.as("alice").get("/web/jobs/test/4713/specification")
	require.Equal(t, http.StatusNotFound, status, "it was not submitted here")
}

// What a submission changed is shown with its script, collapsed.
func TestWhatASubmissionChanged(t *testing.T) {
	s := newFullSite(t)
	b, now := s.as("alice"), s.svc.Now()
	for _, minutes := range []string{"10", "20"} {
		words := slices.Clone(opstest.GoodJob)
		words[slices.Index(words, "--time")+1] = minutes
		status, body := b.post("/web/do", map[string][]string{"op": {"submit"}, "cluster": {"test"}, "word": words})
		require.Equal(t, 200, status, body)
		now = now.Add(time.Minute)
		s.svc.Now = func() time.Time { return now }
	}
	_, body := b.get("/web/jobs/test/4702/changes")
	require.Contains(t, body, "<td>time</td>")
	require.Regexp(t, `(?s)<pre[^>]*>.*#SBATCH --time=`, body)
}

// askedCluster counts the requests for a user's accounts.
type askedCluster struct {
	fullCluster
	asked *int
}

func (c askedCluster) Associations(ctx context.Context, user string) ([]slurm.Association, error) {
	*c.asked++
	return c.fullCluster.Associations(ctx, user)
}

// A user's accounts are requested once in five minutes, however many pages show them.
func TestAccountsAreAskedForNowAndThen(t *testing.T) {
	s := newFullSite(t)
	asked := 0
	s.svc.Clusters["test"] = askedCluster{fullCluster{s.jobs}, &asked}
	b, now := s.as("alice"), s.svc.Now()
	for _, c := range []struct {
		after time.Duration
		asked int
	}{{0, 1}, {4 * time.Minute, 1}, {6 * time.Minute, 2}} {
		s.svc.Now = func() time.Time { return now.Add(c.after) }
		_, body := b.get("/web/jobs")
		require.Contains(t, body, `<option value="account:infra">`)
		require.Equal(t, c.asked, asked, c.after)
	}
}

// A team is an account: a selection shows its jobs and its usage.
func TestATeamIsAnAccount(t *testing.T) {
	s := newFullSite(t)
	b := s.as("alice")
	_, body := b.get("/web/jobs?of=account:research")
	require.Contains(t, body, "theirs-too")
	require.NotContains(t, body, ">theirs<", "of no account")
	require.Contains(t, body, `<option value="account:research" selected>Account research</option>`)
	require.Contains(t, body, `<option value="account:infra">`)
	require.Equal(t, 1, strings.Count(body, `value="account:research"`), "an account stands once")
	_, body = b.get("/web/jobs?of=account:infra")
	require.Contains(t, body, "No job fits.")

	_, body = b.get("/web/usage?of=account:research&by=user&days=30")
	require.Contains(t, body, "alice")
	require.Contains(t, body, `<option value="account:research" selected>`)
	_, all := b.get("/web/usage?of=all&by=state&days=90")
	require.Contains(t, all, "PREEMPTED")
}
