package mcp_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/slurm"
)

// What a confused agent sends, and the words with which each answer explains the
// correction.
func TestWrongCallsAreToldHowToRepair(t *testing.T) {
	s := newSite()
	s.set("4711", func(j *slurm.Job) { j.State = slurm.Completed })
	c := connectAlice(t, s)
	for _, w := range []struct{ tool, args, says string }{
		{"plan", `{}`, "--num-layers (or --encoder-num-layers) must be given"},
		{"plan", `{"spec":"job.yaml"}`, `give an object, such as {"nodes": 2`},
		{"plan", `{"specification":{"nodes":2}}`, "did you mean spec?"},
		{"plan", `{"spec":{"nodes":"two"}}`, "write a number such as 8"},
		{"plan", `{"spec":{"nodes":2,"args":"--tensor-model-parallel-size 4"}}`, "write a list, one element each"},
		{"plan", `{"nodes":2,"args":["--bf16"]}`, `put it into spec: {"spec": {"nodes": …}}`},
		{"plan", `{"model":"llama3-70b","gpus":64,"gpu":"h100"}`, `put it into spec: {"spec": {"gpu": …}}`},
		{"plan", `{"recipe":"llama3-70b","spec":{"gpu":"hh100"}}`, "did you mean h100?"},
		{"recommend", `{"model":"llama3-70b","spec":{"gpu":"gb20"}}`, "did you mean gb200?"},
		{"memory", `{"spec":{"gpu":"h10","args":["--num-layers","2"]}}`, "did you mean a10, h100, h20?"},
		{"plan", `{"spec":{"num_nodes":2,"gpus":8}}`, "the fields are name, cluster"},
		{"plan", `{"spec":{"micro_batch_size":4}}`, "it is Megatron's: write --micro-batch-size in args"},
		{"plan", `{"spec":{"worktree":"Megatron-LM"}}`, "give an absolute path"},
		{"plan", `{"spec":{"worktree":"/w","time":"two hours"}}`, "such as 04:00:00"},
		{"plan", `{"spec":{"worktree":"/w","env":["A=1"]}}`, "write a map of NAME: value"},
		{"plan", `{"spec":{"worktree":"/w","container":"nvcr.io/nvidia/pytorch:25.01"}}`, "a map of runtime, image"},
		{"plan", `{"spec":{"worktree":"/w","args":["--tensor-parallel-size","4"]}}`, "use --tensor-model-parallel-size"},
		{"plan", `{"yaml":"nodes: [2"}`, `not YAML near "[": sequence end`},
		{"plan", `{"file":"job.yaml"}`, "known here: yaml, spec"},
		{"submit", `{"spec":{"worktree":"/w","name":"my run"}}`, "give 1 to 64 of letters"},
		{"submit", `{"spec":` + goodSpec + `,"confirm":true}`, "did you mean confirm_token?"},
		{"submit", `{"spec":` + goodSpec + `,"confirm_token":"yes"}`, "call submit again without it"},
		{"submit", `{"spec":` + goodSpec + `,"yes":true}`, "leave it out"},
		{"submit", `{"script":"#!/bin/bash"}`, `put it into spec: {"spec": {"script": …}}`},
		{"submit", `{"spec":{"worktree":"/w","cluster":"prod"}}`, "clusters here: test"},
		{"status", `{}`, "job id as squeue prints it: 4711"},
		{"status", `{"job_id":"4711"}`, "did you mean job?"},
		{"status", `{"id":4711}`, "known here: job"},
		{"status", `{"job":"gpt-7b"}`, "a job id such as 4711"},
		{"status", `{"job":"99999"}`, "list"},
		{"status", `{"job":["4711"]}`, "job id as squeue prints it"},
		{"cancel", `{"job":"all"}`, "a job id such as 4711"},
		{"cancel", `{}`, "for example: `cancel {\"job\":\"4711\"}`"},
		{"cancel", `{"partition":"dev"}`, "for example: `cancel {\"mine\":true,\"partition\":\"dev\"}`"},
		{"cancel", `{"job":"4712"}`, "ask its owner or an operator"},
		{"cancel", `{"job":"99"}`, "not known to Slurm"},
		{"lint", `{"script":"/home/me/run.sbatch"}`, "give the script's text"},
		{"import", `{}`, "for example: `import {\"script\":\"#!/bin/bash"},
		{"plan", `{"gpus":-7}`, "a number of 1 or more"},
		{"import", `{"script":"run.sbatch\n"}`, "give the script's text"},
		{"logs", `{"job":"4711","tail":"many"}`, "give a whole number"},
		{"logs", `{"job":"4711","tail":-5}`, "a number of lines, such as 50"},
		{"logs", `{"job":"4711","rank":"zero"}`, "give a whole number"},
		{"logs", `{"job":"4711","level":"debug"}`, "use one of error, warning"},
		{"logs", `{"job":"4711","lines":50}`, "known here: job, tail, rank"},
		{"diagnose", `{"job":"/var/log/syslog"}`, "give a job's id"},
		{"diagnose", `{"path":"/w/logs"}`, "known here: job"},
		{"list", `{"state":["BUSY"]}`, "for example PENDING, RUNNING or FAILED"},
		{"list", `{"status":"RUNNING"}`, "did you mean state?"},
		{"nodes", `{"partition":"gpu","free":true}`, "known here: partition"},
		{"ask", `{"q":"how do I set MASTER_ADDR?"}`, "give question: the question"},
		{"ask", `{"question":""}`, "there is no question"},
		{"constants", `{"gpu":"h100","tensor_parallel":4}`, "known here: nodes, gpus_per_node, gpu, tp"},
		{"wait", `{"job":"4711","timeout":60}`, "did you mean timeout_s?"},
		{"recommend", `{"gpus":16,"model":"llama-7b"}`, "did you mean llama2-7b?"},
		{"recommend", `{"gpus":16,"size":"7b"}`, "known here: yaml, spec"},
		{"explain", `{"word":"NCCL_IB_HCAX"}`, "this is about `NCCL_IB_HCA`"},
		{"compare", `{"job":"4711"}`, "give failed: job id"},
		{"metrics", `{"jobs":[]}`, "give jobs: job ids"},
		{"run", `{"job":"4711","command":"nvidia-smi"}`, "known here: job"},
	} {
		r := c.do(w.tool, w.args)
		require.Contains(t, r.Text, w.says, "%s %s", w.tool, w.args)
		require.NotContains(t, r.Text, "known here: yaml, spec, command_line, into, idempotency_key, dry_run, yes", "an argument that nobody may give")
		if e, refused := r.Structured["error"].(map[string]any); refused {
			require.True(t, r.IsError)
			require.NotEmpty(t, e["fix"], "%s %s", w.tool, w.args)
		}
	}
}

// Unusual but clear ways to write a call are accepted.
func TestClearCallsAreTaken(t *testing.T) {
	c := connectAlice(t, newSite())
	quoted := `{"spec":` + quote(goodSpec) + `}`
	for tool, args := range map[string]string{"status": `{"job":4711}`, "list": `{"state":"RUNNING"}`, "plan": quoted} {
		r := c.do(tool, args)
		require.False(t, r.IsError, "%s %s: %s", tool, args, r.Text)
	}
	require.Equal(t, true, c.do("plan", quoted).Structured["ok"])
}

// A person is asked only about what would be done: never about a call that is wrong or
// does nothing.
func TestNobodyIsAskedAboutNothing(t *testing.T) {
	s := newSite()
	s.set("4711", func(j *slurm.Job) { j.State = slurm.Completed })
	cfg, audit := config(t, s)
	conv := converse(t, cfg)
	conv.send(asking(hello))
	conv.read()
	for _, job := range []string{"4711", "4712", "99", "all"} {
		conv.send(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"cancel","arguments":{"job":"` + job + `"}}}`)
		reply := conv.read()
		require.Nil(t, reply["method"], "%s: no question", job)
		require.EqualValues(t, 2, reply["id"])
	}
	conv.close()
	require.Empty(t, *audit, "nothing was decided")
	require.Equal(t, slurm.Running, s.jobs["4712"].State)
}
