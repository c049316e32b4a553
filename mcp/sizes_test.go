package mcp_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/ops/operations"
	"github.com/megatron-ops/megatron-ops/mcp"
	"github.com/megatron-ops/megatron-ops/slurm"
)

// A bigSite is a cluster of 2,000 nodes and 10,000 jobs that reports everything a
// cluster can.
type bigSite struct{ *site }

func (bigSite) Nodes(context.Context) ([]slurm.Node, error) {
	states := []string{"allocated", "mixed", "idle", "drained*", "down"}
	var all []slurm.Node
	for i := range 2000 {
		n := slurm.Node{
			Name: fmt.Sprintf("gpu-a%04d", i), State: states[i%5], Partitions: []string{fmt.Sprintf("part%d", i%40)}, GPUs: 8, GPUType: "h100",
			CPUs: 192, MemoryMB: 2 << 20,
		}
		if i%5 > 2 {
			at := time.Date(2026, 11, 20, 8, 0, i%60, 0, time.UTC)
			n.Reason, n.ReasonBy, n.ReasonAt = fmt.Sprintf("XID %d on GPU %d, ticket %d: %s", 40+i%60, i%8, i, strings.Repeat("reseat ", i%9)), "root", &at
		}
		all = append(all, n)
	}
	return all, nil
}

func (bigSite) Partitions(context.Context) ([]slurm.Partition, error) {
	var all []slurm.Partition
	for i := range 40 {
		limit := int64(86400)
		all = append(all, slurm.Partition{
			Name: fmt.Sprintf("part%d", i), Default: i == 0, Up: true, State: "up", TimeLimitS: &limit, Allocated: 20,
			Idle: 10, Other: 20, Total: 50, GPUs: 8, Features: []string{"h100", "ib"}, Nodes: fmt.Sprintf("gpu-a[%04d-%04d]", i*50, i*50+49),
		})
	}
	return all, nil
}

func (bigSite) Associations(_ context.Context, user string) ([]slurm.Association, error) {
	var all []slurm.Association
	for i := range 60 {
		all = append(all, slurm.Association{
			Cluster: "test", Account: fmt.Sprintf("project%02d", i), User: user, DefaultQOS: "normal",
			QOS: []string{"normal", "urgent", "low", "long"}, MaxWall: "2-00:00:00", GrpTRES: "gres/gpu=512",
		})
	}
	return all, nil
}

func (bigSite) QOS(context.Context) ([]slurm.QOS, error) {
	return []slurm.QOS{{Name: "normal", Priority: 10, MaxWall: "1-00:00:00"}, {Name: "urgent", Priority: 100}, {Name: "low"}, {Name: "long"}}, nil
}

func (bigSite) Shares(context.Context) ([]slurm.Share, error) {
	var all []slurm.Share
	for i := range 3000 {
		all = append(all, slurm.Share{
			Account: fmt.Sprintf("project%02d", i%60), User: []string{"alice", fmt.Sprintf("u%d", i)}[min(i/60, 1)], Norm: 0.01,
			Used: 0.02, Factor: 0.4,
		})
	}
	return all, nil
}

func (b bigSite) Priorities(_ context.Context, id slurm.JobID) ([]slurm.Priority, error) {
	var all []slurm.Priority
	for i := range 5000 {
		all = append(all, slurm.Priority{
			Job: slurm.JobID(fmt.Sprint(20000 + i)), User: "bob", Total: int64(100000 - i), Age: 1000, FairShare: 2000,
			Size: 300, QOS: 10000,
		})
	}
	return append(all, slurm.Priority{Job: id, User: "alice", Total: 500}), nil
}

func (bigSite) PriorityWeights(context.Context) (slurm.Priority, error) {
	return slurm.Priority{Age: 1000, FairShare: 10000, Size: 1000, QOS: 100000}, nil
}

func (b bigSite) Past(ctx context.Context, f slurm.Filter) ([]slurm.Job, error) {
	return b.Jobs(ctx, f)
}

// newBigSite's job 4711 ran on 512 nodes and left 20 MB of log.
func newBigSite(t *testing.T) bigSite {
	t.Helper()
	s := newSite()
	at := time.Now().Add(-24 * time.Hour)
	end := at.Add(3 * time.Hour)
	states := []slurm.State{slurm.Pending, slurm.Running, slurm.Completed, slurm.Failed, slurm.Cancelled}
	for i := range 10_000 {
		id := slurm.JobID(fmt.Sprint(20000 + i))
		j := slurm.Job{
			ID: id, Name: fmt.Sprintf("llama-405b-sweep-%d-%s", i, strings.Repeat("x", i%40)), User: []string{"alice", "bob"}[i%2], Account: "project01",
			Partition: fmt.Sprintf("part%d", i%40), State: states[i%5], Reason: "Priority", NumNodes: 64, GPUs: 512, SubmittedAt: &at, Priority: new(int64(i)),
		}
		if j.State != slurm.Pending {
			j.StartedAt, j.ElapsedS = &at, 10800
			for n := range 64 {
				j.Nodes = append(j.Nodes, fmt.Sprintf("gpu-a%04d", (i*7+n*3)%2000))
			}
		}
		if j.State.Ended() {
			j.EndedAt = &end
		}
		s.jobs[id] = j
	}
	dir := filepath.Join(t.TempDir(), "logs")
	require.NoError(t, os.MkdirAll(dir, 0o755))
	var out strings.Builder
	for i := range 100_000 {
		fmt.Fprintf(&out, "511: %s", strings.Replace(trainingLog, "      1/", fmt.Sprintf("%7d/", i+1), 1))
	}
	for r := range 4096 {
		fmt.Fprintf(&out, "%d: [rank%d]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. "+
			"GPU %d has a total capacity of 79.11 GiB\n", r/8, r, r%8)
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, "gpt-4711.out"), []byte(out.String()), 0o644))
	s.set("4711", func(j *slurm.Job) {
		j.State, j.ExitCode, j.Stdout, j.NumNodes, j.GPUs, j.EndedAt, j.Nodes = slurm.Failed, new("1:0"), filepath.Join(dir, "gpt-4711.out"), 512, 4096, &end, nil
		for n := range 512 {
			j.Nodes = append(j.Nodes, fmt.Sprintf("gpu-a%04d", n*3))
		}
	})
	return bigSite{s}
}

// For any size of the cluster, of a job and of its logs, an answer takes at most 1,500
// tokens in either form unless the caller asks for more.
func TestAnswersStayWithin1500Tokens(t *testing.T) {
	if testing.Short() {
		t.Skip("writes and reads a long log; not with -short")
	}
	s := newBigSite(t)
	cfg, _ := config(t, s.site)
	svc, err := cfg.Service()
	require.NoError(t, err)
	svc.Clusters["test"] = s
	c := connect(t, serve(t, cfg, mcp.HTTP{Tokens: map[string]ops.Caller{"t": {ID: "alice", User: "alice", Operator: true}}}),
		map[string]string{"Authorization": "Bearer t"})
	model := `"args":["--num-layers","126","--hidden-size","16384","--ffn-hidden-size","53248","--num-attention-heads","128","--group-query-attention",` +
		`"--num-query-groups","8",` +
		`"--seq-length","8192","--max-position-embeddings","8192","--micro-batch-size","1","--global-batch-size","2048","--train-iters","100","--lr",` +
		`"1e-4","--bf16","--swiglu","--mock-data","--tokenizer-type","NullTokenizer","--vocab-size","128000"]`
	huge := `{"spec":{"name":"x","nodes":512,"gpus_per_node":8,"gpu":"h100","worktree":"/w","partition":"part1",` + model + `}}`
	manyWrong := `{"spec":{"name":"x","nodes":3,"gpus_per_node":7,"gpu":"h100","worktree":"/w","args":["--tensor-model-parallel-size","5",` +
		`"--pipeline-model-parallel-size","7","--context-parallel-size","3",` +
		`"--expert-model-parallel-size","9","--num-experts","10","--sequence-parallel","--use-distributed-optimizer","--fp8-format","hybrid",` +
		`"--no-such-flag","--another-wrong","1","--num-layers","13","--hidden-size","1001","--num-attention-heads","7",` +
		`"--seq-length","4096","--max-position-embeddings","128","--micro-batch-size","3","--global-batch-size","128","--recompute-granularity",` +
		`"selective","--recompute-method","uniform","--overlap-grad-reduce","--tp-comm-overlap"]}}`
	script := `"#!/bin/bash\n` + strings.Repeat(`#SBATCH --nodes=2\nexport CUDA_DEVICE_MAX_CONNECTIONS=8\nsrun torchrun --nproc_per_node 4 `+
		`pretrain_gpt.py --num-layers 4 $ARGS\n`, 300) + `"`
	calls := map[string][]string{
		"constants": {`{}`, `{"gpu":"b200","nodes":512,"tp":8}`},
		"plan":      {huge, manyWrong, `{}`},
		"render":    {huge},
		"submit":    {huge, manyWrong, `{"dry_run":true,` + huge[1:]},
		"smoke":     {huge},
		"status":    {`{"job":"4711"}`, `{"job":"20001"}`, `{}`},
		"list":      {`{}`, `{"user":"all"}`, `{"all":true,"user":"all"}`},
		"cancel":    {`{"job":"4711"}`, `{"job":"20001"}`, `{"mine":true}`},
		"logs":      {`{"job":"4711"}`, `{"job":"4711","rank":3}`, `{"job":"4711","level":"error"}`, `{"job":"4711","collapse":true}`},
		"diagnose":  {`{"job":"4711"}`, `{"job":"20003"}`},
		"metrics":   {`{"jobs":["4711"]}`},
		"compare":   {`{"failed":"4711","good":"20002"}`},
		"diff":      {`{"job":"4711","from":"20002"}`},
		"ask": {`{"question":"how do I run Megatron-LM on Slurm with two nodes? show the whole script"}`, `{"question":"如何在 Slurm ` +
			`上提交一个两节点的训练作业？请给出完整脚本"}`, `{"question":"` + strings.Repeat("what is tensor parallelism ", 200) + `"}`},
		"wait":       {`{"job":"4711"}`, `{"job":"20001","timeout_s":1}`},
		"lint":       {`{"script":` + script + `}`},
		"import":     {`{"script":` + script + `}`},
		"recommend":  {huge, `{"spec":{"nodes":2,"gpus_per_node":8,"gpu":"a100","worktree":"/w",` + model + `}}`},
		"memory":     {huge},
		"image":      {`{}`},
		"rules":      {`{}`, `{"find":"parallel"}`},
		"explain":    {`{}`, `{"word":"PENDING"}`, `{"word":"--tensor-model-parallel-size"}`, `{"word":"args"}`},
		"hostlist":   {`{"nodes":["n[1-10000]"]}`},
		"nodes":      {`{}`, `{"drained":true}`, `{"partition":"part1"}`},
		"partitions": {`{}`}, "accounts": {`{}`}, "queue": {`{}`, `{"mine":true}`}, "priority": {`{"job":"20000"}`},
		"history": {`{}`, `{"days":30,"user":"all"}`}, "audit": {`{}`}, "knowledge": {`{}`},
		"run": {`{"job":"20001","argv":["hostname"]}`}, "cleanup": {`{"nodes":["gpu-a[0000-1999]"]}`}, "resume": {`{}`}, "requeue": {`{"job":"20001"}`},
		"hold": {`{"job":"20000"}`}, "release": {`{"job":"20000"}`}, "update": {`{"job":"20000","time":"1:00:00"}`}, "killswitch": {`{"turn":"on","job":"4711"}`},
	}
	for _, o := range operations.All() {
		if calls[o.Name] == nil {
			calls[o.Name] = []string{`{}`}
		}
		for _, args := range calls[o.Name] {
			start := time.Now()
			r := c.do(o.Name, args)
			took := time.Since(start)
			r.lean(t, fmt.Sprintf("%s %.60s, after %s", o.Name, args, took.Round(time.Millisecond)))
			for _, rows := range []string{"jobs", "lines", "nodes", "partitions", "findings", "rules"} {
				if list, ok := r.Structured[rows].([]any); ok && strings.Contains(fmt.Sprint(r.Structured["notice"]), rows+" shortened") {
					require.NotEmpty(t, list, "%s %.100s: a shortened list still has something", o.Name, args)
				}
			}
		}
	}
}
