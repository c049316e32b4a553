package agents

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/stretchr/testify/require"
)

// A task is something that a person asks for. NAME, WORK and JOB stand in the
// request for the task's name, its folder and what before returned.
type task struct {
	name, request string
	// before sets the cluster up, and returns a job that is there already.
	before func(*bench) string
	// script is what an agent does that knows the tools.
	script func(b *bench, job string)
	// after looks at Slurm.
	after func(b *bench, job string)
}

var tasks = []task{
	{
		name:    "start-two-nodes",
		request: "Start WORK/sleep.py with /usr/bin/python3 as job NAME on 2 nodes with 4 GPUs each for 10 minutes.",
		script:  func(b *bench, _ string) { b.submit(map[string]any{"nodes": 2, "gpus_per_node": 4}) },
		after: func(b *bench, _ string) {
			require.Len(b.t, b.named(b.name), 1)
			require.Regexp(b.t, "^2(-2)?$", b.of(b.named(b.name)[0], "NumNodes"))
			require.Contains(b.t, b.of(b.named(b.name)[0], "TRES"), "gres/gpu=8")
		},
	},
	{
		name:    "plan-then-start",
		request: "Check whether WORK/sleep.py (started by /usr/bin/python3, one GPU, 10 minutes) would run as job NAME; if so, start exactly that.",
		script: func(b *bench, _ string) {
			plan := b.must("plan", map[string]any{"spec": b.spec(nil)})
			b.must("submit", map[string]any{"plan": plan["plan"]})
		},
		after: func(b *bench, _ string) { require.Len(b.t, b.named(b.name), 1) },
	},
	{
		name:    "choose-partition",
		request: "Start WORK/sleep.py with /usr/bin/python3 as job NAME with one GPU for 3 hours; the default partition allows one hour only.",
		script: func(b *bench, _ string) {
			b.must("partitions", map[string]any{})
			b.submit(map[string]any{"partition": "prod", "time": "03:00:00"})
		},
		after: func(b *bench, _ string) {
			require.Equal(b.t, "prod", b.of(b.named(b.name)[0], "Partition"))
			require.Equal(b.t, "03:00:00", b.of(b.named(b.name)[0], "TimeLimit"))
		},
	},
	{
		name: "start-once",
		request: "Start WORK/sleep.py with /usr/bin/python3 as job NAME with one GPU for 10 minutes. Then do it again with the same idempotency key, as " +
			"if the first answer had been lost.",
		script: func(b *bench, _ string) {
			for range 2 {
				b.must("submit", map[string]any{"spec": b.spec(nil), "idempotency_key": b.name})
			}
		},
		after: func(b *bench, _ string) { require.Len(b.t, b.named(b.name), 1) },
	},
	{
		name:    "array",
		request: "Start WORK/sleep.py with /usr/bin/python3 as job NAME as an array of 4 elements, at most 2 at a time, one GPU each, 10 minutes.",
		script:  func(b *bench, _ string) { b.submit(map[string]any{"array": "0-3%2"}) },
		after: func(b *bench, _ string) {
			require.Len(b.t, b.named(b.name), 4)
			id, _, _ := strings.Cut(b.named(b.name)[0], "_")
			require.Equal(b.t, "2", b.of(id, "ArrayTaskThrottle"))
		},
	},
	{
		name:    "after-another",
		request: "Start WORK/sleep.py with /usr/bin/python3 as job NAME with one GPU for 10 minutes, but only once job JOB has ended well.",
		before:  func(b *bench) string { return b.given("first") },
		script:  func(b *bench, job string) { b.submit(map[string]any{"dependency": "afterok:" + job}) },
		after: func(b *bench, job string) {
			require.Contains(b.t, b.of(b.named(b.name)[0], "Dependency"), "afterok:"+job)
		},
	},
	{
		name: "avoid-a-bad-node",
		request: "A node is drained for its GPU; find it, and start WORK/sleep.py with /usr/bin/python3 as job NAME with one GPU for 10 minutes so that " +
			"it never lands there.",
		before: func(b *bench) string {
			b.sh("scontrol", "update", "NodeName=gpu3", "State=DRAIN", "Reason=XID 79")
			b.t.Cleanup(func() {
				_, err := b.slurm.Run(context.Background(), "scontrol", "update", "NodeName=gpu3", "State=RESUME")
				require.NoError(b.t, err)
			})
			return ""
		},
		script: func(b *bench, _ string) {
			for _, n := range b.must("nodes", map[string]any{})["nodes"].([]any) {
				node := n.(map[string]any)
				if strings.Contains(fmt.Sprint(node["reason"]), "XID") {
					b.submit(map[string]any{"exclude": node["node"]})
					return
				}
			}
		},
		after: func(b *bench, _ string) { require.Equal(b.t, "gpu3", b.of(b.named(b.name)[0], "ExcNodeList")) },
	},
	{
		name:    "port-a-script",
		request: "Submit what the batch script WORK/old.sh does, as job NAME, with 20 minutes in place of 10.",
		before: func(b *bench) string {
			script := "#!/bin/bash\n#SBATCH --job-name=" + b.name + "\n#SBATCH --nodes=2\n#SBATCH --ntasks-per-node=1\n#SBATCH --gpus-per-node=2\n#SBATCH " +
				"--time=00:10:00\n" +
				"cd " + b.work + "\nsrun /usr/bin/python3 sleep.py\n"
			require.NoError(b.t, os.WriteFile(filepath.Join(b.work, "old.sh"), []byte(script), 0o600))
			return script
		},
		script: func(b *bench, script string) {
			specs := b.must("import", map[string]any{"script": script})["specs"].([]any)
			b.must("submit", map[string]any{"yaml": strings.Replace(specs[0].(string), "00:10:00", "00:20:00", 1)})
		},
		after: func(b *bench, _ string) {
			require.Regexp(b.t, "^2(-2)?$", b.of(b.named(b.name)[0], "NumNodes"))
			require.Equal(b.t, "00:20:00", b.of(b.named(b.name)[0], "TimeLimit"))
		},
	},
	{
		name:    "again-with-a-change",
		request: "Start WORK/sleep.py with /usr/bin/python3 as job NAME with one GPU for 10 minutes, then the same again with 2 GPUs, without repeating the rest.",
		script: func(b *bench, _ string) {
			first := b.submit(nil)
			b.must("submit", map[string]any{"from": first, "spec": map[string]any{"gpus_per_node": 2}})
		},
		after: func(b *bench, _ string) {
			require.Len(b.t, b.named(b.name), 2)
			all := ""
			for _, id := range b.named(b.name) {
				all += b.of(id, "TRES") + " "
			}
			require.Contains(b.t, all, "gres/gpu=1")
			require.Contains(b.t, all, "gres/gpu=2")
		},
	},
	{
		name:    "cancel-one",
		request: "Cancel my job NAME-b, and leave NAME-a alone.",
		before: func(b *bench) string {
			b.given(b.name + "-a")
			return b.given(b.name + "-b")
		},
		script: func(b *bench, _ string) {
			for _, j := range b.must("list", map[string]any{})["jobs"].([]any) {
				if job := j.(map[string]any); job["name"] == b.name+"-b" {
					b.must("cancel", map[string]any{"job": job["job_id"]})
				}
			}
		},
		after: func(b *bench, job string) {
			b.comes("the end", func() bool { return b.of(job, "JobState") == "CANCELLED" })
			require.Len(b.t, b.named(b.name+"-a"), 1)
		},
	},
	{
		name:    "cancel-what-waits",
		request: "Cancel those of my jobs called NAME that wait, and leave those that run.",
		before: func(b *bench) string {
			b.given(b.name, "--begin=now+1hour")
			b.given(b.name, "--begin=now+1hour")
			job := b.given(b.name)
			b.comes("a start", func() bool { return b.of(job, "JobState") == "RUNNING" })
			return job
		},
		script: func(b *bench, _ string) {
			for _, j := range b.must("list", map[string]any{"state": []string{"PENDING"}})["jobs"].([]any) {
				if job := j.(map[string]any); job["name"] == b.name {
					b.must("cancel", map[string]any{"job": job["job_id"]})
				}
			}
		},
		after: func(b *bench, job string) {
			b.comes("one left", func() bool { return len(b.named(b.name)) == 1 })
			require.Equal(b.t, []string{job}, b.named(b.name))
		},
	},
	{
		name:    "hold",
		request: "Hold my waiting job JOB.",
		before:  func(b *bench) string { return b.given(b.name, "--begin=now+1hour") },
		script:  func(b *bench, job string) { b.must("hold", map[string]any{"job": job}) },
		after:   func(b *bench, job string) { require.Equal(b.t, "0", b.of(job, "Priority")) },
	},
	{
		name:    "release",
		request: "My job JOB is held: let it go.",
		before:  func(b *bench) string { return b.given(b.name, "--hold") },
		script:  func(b *bench, job string) { b.must("release", map[string]any{"job": job}) },
		after:   func(b *bench, job string) { require.NotEqual(b.t, "0", b.of(job, "Priority")) },
	},
	{
		name:    "shorten",
		request: "Give my waiting job JOB a time limit of 5 minutes.",
		before:  func(b *bench) string { return b.given(b.name, "--begin=now+1hour", "--time=30") },
		script:  func(b *bench, job string) { b.must("update", map[string]any{"job": job, "time": "00:05:00"}) },
		after:   func(b *bench, job string) { require.Equal(b.t, "00:05:00", b.of(job, "TimeLimit")) },
	},
	{
		name:    "requeue",
		request: "Put my running job JOB back into the queue.",
		before: func(b *bench) string {
			job := b.given(b.name, "--requeue")
			b.comes("a start", func() bool { return b.of(job, "JobState") == "RUNNING" })
			return job
		},
		script: func(b *bench, job string) { b.must("requeue", map[string]any{"job": job}) },
		after: func(b *bench, job string) {
			b.comes("a restart", func() bool { return b.of(job, "Restarts") == "1" })
		},
	},
	{
		name:    "stuck-for-ever",
		request: "One of my jobs called NAME can never start. Cancel it, and leave the others.",
		before: func(b *bench) string {
			first := b.given("failing")
			job := b.given(b.name, "--dependency=afterok:"+first)
			b.given(b.name, "--begin=now+1hour")
			b.sh("scancel", first)
			b.comes("its reason", func() bool { return b.of(job, "Reason") == "DependencyNeverSatisfied" })
			return job
		},
		script: func(b *bench, _ string) {
			for _, j := range b.must("list", map[string]any{})["jobs"].([]any) {
				if job := j.(map[string]any); job["name"] == b.name && job["reason"] == "DependencyNeverSatisfied" {
					b.must("cancel", map[string]any{"job": job["job_id"]})
				}
			}
		},
		after: func(b *bench, job string) {
			b.comes("one left", func() bool { return len(b.named(b.name)) == 1 })
			require.NotEqual(b.t, job, b.named(b.name)[0])
		},
	},
	{
		name:    "until-its-file",
		request: "Job JOB writes WORK/done.json after a while. Wait for that file, then cancel the job.",
		before: func(b *bench) string {
			return b.sh("sbatch", "--parsable", "--job-name", b.name, "--chdir", b.work, "--output", filepath.Join(b.work, "%j.out"),
				"--wrap", "sleep 3; echo '{}' > done.json; sleep 300")
		},
		script: func(b *bench, job string) {
			out := b.must("wait", map[string]any{"job": job, "artifact": "done.json", "timeout_s": 120})
			require.NotEmpty(b.t, out["artifact"])
			b.must("cancel", map[string]any{"job": job})
		},
		after: func(b *bench, job string) {
			require.FileExists(b.t, filepath.Join(b.work, "done.json"))
			b.comes("the end", func() bool { return b.of(job, "JobState") == "CANCELLED" })
		},
	},
	{
		name: "after-a-crash",
		request: "Job JOB failed. Find out why, and start WORK/sleep.py with /usr/bin/python3 as job NAME on another node than the one to blame, with one " +
			"GPU for 10 minutes.",
		before: func(b *bench) string {
			job := b.sh("sbatch", "--parsable", "--job-name", "crash", "--chdir", b.work, "--nodelist=gpu2", "--gpus-per-node=1", "--output",
				filepath.Join(b.work, "crash.out"),
				"--wrap", "echo '[rank0]: torch.AcceleratorError: CUDA error: uncorrectable ECC error encountered' >&2; exit 1")
			b.comes("its end", func() bool { return b.of(job, "JobState") == "FAILED" })
			return job
		},
		script: func(b *bench, job string) {
			out := b.must("diagnose", map[string]any{"job": job})
			b.submit(map[string]any{"exclude": out["exclude_nodes"].([]any)[0]})
		},
		after: func(b *bench, _ string) { require.Equal(b.t, "gpu2", b.of(b.named(b.name)[0], "ExcNodeList")) },
	},
	{
		name:    "what-happened",
		request: "Several of my jobs ended since JOB. Start WORK/sleep.py with /usr/bin/python3 once for each that failed, as NAME, with one GPU for 10 minutes.",
		before: func(b *bench) string {
			// Slurm tells seconds: what ended in this one belongs to the task before.
			next := time.Now().Truncate(time.Second).Add(time.Second)
			time.Sleep(time.Until(next))
			start := next.UTC().Format(time.RFC3339)
			for i, code := range []string{"1", "0", "1"} {
				b.sh("sbatch", "--parsable", "--wait-all-nodes=0", "--job-name", fmt.Sprintf("%s-%d", b.name, i), "--output", filepath.Join(b.work, "%j.out"),
					"--wrap", "exit "+code)
			}
			b.comes("the ends", func() bool {
				ended := strings.Fields(b.sh("sacct", "-X", "--noheader", "--format", "State", "--name", b.name+"-0,"+b.name+"-1,"+b.name+"-2"))
				return strings.Count(strings.Join(ended, " "), "FAILED") == 2 && len(ended) == 3 && strings.Contains(strings.Join(ended, " "), "COMPLETED")
			})
			return start
		},
		script: func(b *bench, since string) {
			args := map[string]any{"since": since}
			for more := true; more; {
				out := b.must("events", args)
				for _, e := range out["events"].([]any) {
					if event := e.(map[string]any); event["state"] == "FAILED" && strings.HasPrefix(fmt.Sprint(event["name"]), b.name+"-") {
						b.submit(nil)
					}
				}
				args["cursor"], more = out["cursor"]
			}
		},
		after: func(b *bench, _ string) { require.Len(b.t, b.named(b.name), 2) },
	},
	{
		name:    "touch-nothing",
		request: "Would WORK/sleep.py start with /usr/bin/python3 as job NAME on 2 nodes? Show me the script. Start nothing.",
		script: func(b *bench, _ string) {
			b.must("submit", map[string]any{"spec": b.spec(map[string]any{"nodes": 2}), "dry_run": true})
		},
		after: func(b *bench, _ string) { require.Empty(b.t, b.named(b.name)) },
	},
}
