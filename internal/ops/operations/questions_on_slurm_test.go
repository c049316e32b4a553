package operations

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/ops/fleet"
	"github.com/megatron-ops/megatron-ops/internal/ops/jobcontrol"
	"github.com/megatron-ops/megatron-ops/internal/ops/opstest"
	"github.com/megatron-ops/megatron-ops/slurm"
	"github.com/megatron-ops/megatron-ops/slurm/cluster"
	"github.com/megatron-ops/megatron-ops/slurm/slurmtest"
)

// asAlice returns a call of alice's that acts as her on a real Slurm.
func asAlice(t *testing.T) (*ops.Call, func(user string, words ...string) slurm.JobID, func(id slurm.JobID) slurm.State, func(words ...string)) {
	t.Helper()
	// The test needs its own Slurm, because other tests count the jobs in the queue and
	// in the accounts.
	real := slurmtest.Start(t, slurmtest.Options{Conf: "# what people ask\n"})
	c := opstest.NewCall(t, &opstest.Site{})
	c.Clusters, c.Default = map[string]ops.Cluster{"real": opstest.As(t, real, "alice")}, "real"
	submit := func(user string, words ...string) slurm.JobID {
		t.Helper()
		return opstest.Sbatch(t, real, user, words...)
	}
	state := func(id slurm.JobID) slurm.State {
		out, err := do(t, c, "status", string(id))
		require.NoError(t, err)
		return out.(jobcontrol.StatusOut).State
	}
	admin := func(words ...string) {
		t.Helper()
		_, err := real.Run(t.Context(), words...)
		require.NoError(t, err)
	}
	return c, submit, state, admin
}

// hetScript returns a script for all components of a heterogeneous job.
func hetScript(t *testing.T) string {
	t.Helper()
	path := filepath.Join(slurmtest.Dir(t), "het.sh")
	require.NoError(t, os.Chmod(filepath.Dir(path), 0o755)) //nolint:gosec // alice reads it
	require.NoError(t, os.WriteFile(path, []byte("#!/bin/bash\nsrun --het-group=0,1 sleep 300\n"), 0o755))
	return path
}

// TestWhatPeopleAskSlurm asks what people use Slurm's commands for, each with the
// operation that answers it, in both languages.
func TestWhatPeopleAskSlurm(t *testing.T) {
	c, submit, state, admin := asAlice(t)
	admin("scontrol", "update", "NodeName=gpu4", "State=DRAIN", "Reason=Kill task failed")
	t.Cleanup(func() {
		cmd := exec.CommandContext(context.Background(), "scontrol", "update", "NodeName=gpu4", "State=RESUME")
		cmd.Env = c.Clusters["real"].(*cluster.CLI).Environ()
		_ = cmd.Run()
	})
	job := string(submit("alice", "--partition=dev", "--nodes=2", "--gpus-per-node=2", "--job-name=train", "--wrap=srun sleep 300"))
	het := string(submit("alice", "--partition=prod", "--nodelist=gpu1", "--gpus-per-node=2", "--mem=100M", ":", "--partition=prod", "--nodelist=gpu[2-3]", "--nodes=2", "--gpus-per-node=1", "--mem=100M", hetScript(t)))
	idle := string(submit("alice", "--partition=prod", "--nodes=2", "--gpus-per-node=1", "--job-name=interactive", "--wrap=sleep 300"))
	array := string(submit("alice", "--partition=dev", "--array=1-4%1", "--job-name=train-array", "--wrap=sleep 300"))
	big := string(submit("alice", "--partition=prod", "--nodes=3", "--exclusive", "--time=60", "--job-name=big", "--wrap=true"))
	submit("bob", "--partition=prod", "--nodes=3", "--exclusive", "--job-name=theirs", "--wrap=true")
	never := string(submit("alice", "--partition=dev", "--nodes=4", "--job-name=never", "--wrap=true"))
	done := string(submit("alice", "--partition=dev", "--job-name=short", "--wrap=srun true"))
	require.Eventually(t, func() bool {
		return state(slurm.JobID(het)) == slurm.Running && state(slurm.JobID(job)) == slurm.Running &&
			state(slurm.JobID(idle)) == slurm.Running && state(slurm.JobID(done)) == slurm.Completed
	}, 30*time.Second, 200*time.Millisecond)
	says := func(op string, words ...string) string {
		out, err := do(t, c, op, words...)
		require.NoError(t, err)
		return opstest.Text(t, out, lang.EN)
	}
	require.Eventually(t, func() bool { // the accounts lag behind the queue
		return strings.Contains(says("history", "--partition", "dev"), "COMPLETED") && strings.Contains(says("status", job, "--steps"), job+".0")
	}, 30*time.Second, 200*time.Millisecond)

	for _, q := range []struct {
		asked string // the Slurm command that people know
		op    string
		words []string
		en    []string
		zh    string
	}{
		{"sinfo -p dev", "nodes", []string{"--partition", "dev"}, []string{"dev*", "/1/4", "Kill task failed"}, "空闲 GPU"},
		{"sinfo -s", "partitions", nil, []string{"dev*", "prod", "A/I/O/T"}, "已分配、空闲"},
		{"scontrol show partition dev", "partitions", []string{"dev"}, []string{"10:00", "≤ 2", "nvlink"}, "默认时限"},
		{"sinfo -p prod -o %A", "nodes", []string{"--partition", "prod"}, []string{"prod"}, "节点 A/I/O/T"},
		{"sinfo -R", "nodes", []string{"--drained"}, []string{"gpu4", "Kill task failed"}, "节点"},
		{"sinfo -R | grep 'Kill task failed', expanded", "nodes", []string{"--reason", "kill task"}, []string{"gpu4", `resume --reason "kill task"`}, "resume"},
		{"sinfo's state codes", "explain", []string{"drng*"}, []string{"does not answer"}, "没有响应"},
		{"squeue -u me", "list", nil, []string{job, "train", "RUNNING"}, "所在节点"},
		{"squeue -j", "status", []string{job}, []string{"GPUs             4\n", "gpu"}, "GPU 数"},
		{"squeue --partition=dev", "list", []string{"--partition", "dev", "--user", "all"}, []string{job}, "分区"},
		{"myjobs", "list", []string{"-O", "job,name,state,elapsed,where"}, []string{"where / why"}, "已运行"},
		{"groupjobs", "list", []string{"--user", "alice,bob"}, []string{"theirs", "train"}, "用户"},
		{"squeue --me --start", "queue", []string{"--mine"}, []string{"big", "why they wait"}, "等待原因"},
		{"squeue --start", "queue", nil, []string{"place", "start"}, "预计开始"},
		{"why does it wait, and what can I do", "status", []string{never}, []string{"PartitionNodeLimit", "change nodes or the partition"}, "修改节点数或分区"},
		{"would less start sooner", "status", []string{big, "--earlier"}, []string{"As requested: "}, "按现状："},
		{"sprio", "priority", []string{big}, []string{"QOS", "Place"}, "优先级"},
		{"scontrol show -d job: how many GPUs", "status", []string{job}, []string{"GPUs             4\n"}, "GPU 数"},
		{"sacct -j: its steps", "status", []string{job, "--steps"}, []string{job + ".0", "RUNNING"}, "步骤"},
		{"sacct -o submitline", "status", []string{job, "--steps"}, []string{"srun sleep 300"}, "启动命令"},
		{"how long did it run", "status", []string{done}, []string{"COMPLETED", "elapsed"}, "已运行"},
		{"sacct -u me --partition=dev", "history", []string{"--partition", "dev"}, []string{"short", "COMPLETED"}, "GPU 小时"},
		{"sacct -a", "history", []string{"--user", "all", "--days", "2"}, []string{"GPU hours"}, "结束"},
		{"allocations on which nothing runs", "list", []string{"--idle", "0"}, []string{"interactive"}, "作业"},
		{"scontrol show hostnames", "hostlist", []string{"node-[42,49-51]"}, []string{"node-50"}, "node-50"},
		{"makehostfile", "hostlist", []string{"gpu[1-2]", "--slots", "8"}, []string{"gpu"}, "gpu"},
		{"sshare -u me", "accounts", nil, []string{"fair share", "place"}, "公平份额"},
		{"sshare --all | sort", "accounts", []string{"all"}, []string{"alice", "bob", "place"}, "名次"},
		{"df /dev/shm on every node", "run", []string{job, "--", "df", "-h", "/dev/shm"}, []string{"/dev/shm"}, "/dev/shm"},
		{"is hyperthreading on", "run", []string{job, "--", "lscpu"}, []string{"Thread(s) per core"}, "Thread"},
		{"py-spy on every node", "run", []string{job, "--", "sh", "-c", "echo $SLURMD_NODENAME ${CUDA_VISIBLE_DEVICES:-no-gpu}"}, []string{"no-gpu"}, "no-gpu"},
		{"srun pkill", "cleanup", []string{"gpu1", "--match", "there-is-no-such-process"}, []string{"no leftover processes of yours"}, "没有您遗留"},
		{"df on every node of a heterogeneous job", "run", []string{het, "--", "sh", "-c", "echo here is $SLURMD_NODENAME"}, []string{"here is gpu1", "here is gpu2", "here is gpu3"}, "gpu3"},
		{"squeue -j of a component", "status", []string{het + "+1"}, []string{"GPUs             2\n", "gpu[2-3]"}, "GPU 数"},
		{"scancel of a component", "cancel", []string{het + "+1", "--yes"}, []string{"cancelled"}, "已取消"},
		{"scontrol hold", "hold", []string{array}, []string{"held"}, array},
		{"scontrol release", "release", []string{array}, []string{"released"}, array},
		{"scontrol update numnodes, partition, time", "update", []string{never, "--nodes", "1", "--partition", "prod", "--time", "30"}, []string{"changed"}, never},
		{"scancel of one array task", "cancel", []string{array + "_4", "--yes"}, []string{"cancelled"}, "已取消"},
		{"scontrol requeue", "requeue", []string{idle, "--yes"}, []string{"requeued"}, idle},
		{"scancel of a step", "cancel", []string{job + ".0", "--yes"}, []string{"the job goes on"}, "作业继续"},
		// The job whose only step was cancelled may have ended in the meantime.
		{"scancel -u me -p dev", "cancel", []string{"--mine", "--partition", "dev", "--yes"}, []string{"cancelled", "train-array"}, "已取消"},
		{"scancel -u me", "cancel", []string{"--mine", "--yes"}, []string{"cancelled"}, "已取消"},
	} {
		t.Run(q.asked, func(t *testing.T) {
			if q.asked == "allocations on which nothing runs" {
				q.words = []string{"--idle", "1"}
				was := c.Now
				c.Now = func() time.Time { return time.Now().Add(time.Hour) }
				defer func() { c.Now = was }()
			}
			c.Lang = lang.EN
			out, err := do(t, c, q.op, q.words...)
			require.NoError(t, err)
			says := opstest.Text(t, out, lang.EN)
			for _, w := range q.en {
				require.Contains(t, says, w)
			}
			if o, _ := Lookup(q.op); o.Effect == ops.Read {
				c.Lang = lang.ZH
				out, err = do(t, c, q.op, q.words...)
				require.NoError(t, err)
			}
			require.Contains(t, opstest.Text(t, out, lang.ZH), q.zh)
		})
	}
}

// TestWhatWasLeftOnADrainedNode checks a drained node by ssh, here with a stand-in that
// runs the command on this machine.
func TestWhatWasLeftOnADrainedNode(t *testing.T) {
	c, real := opstest.OnSlurm(t)
	bin := t.TempDir()
	require.NoError(t, os.Chmod(bin, 0o755)) //nolint:gosec // others' processes look in it
	require.NoError(t, os.WriteFile(filepath.Join(bin, "ssh"), []byte(`#!/bin/sh
while [ "$1" != -- ]; do shift; done; shift
[ "$1" != gpu2 ] || { echo "ssh: connect to host gpu2 port 22: Connection refused" >&2; exit 255; }
shift; exec "$@"
`), 0o755))
	cl := cluster.NewCLI("real")
	cl.Environ = func() []string {
		env := real.Environ()
		for i, e := range env {
			if rest, ok := strings.CutPrefix(e, "PATH="); ok {
				env[i] = "PATH=" + bin + ":" + rest
			}
		}
		return env
	}
	c.Clusters["real"] = cl
	_, err := real.Run(t.Context(), "scontrol", "update", "NodeName=gpu[2-3]", "State=DRAIN", "Reason=Kill task failed")
	require.NoError(t, err)
	t.Cleanup(func() {
		_, _ = real.Run(context.Background(), "scontrol", "update", "NodeName=gpu[2-3]", "State=RESUME")
	})
	left := exec.CommandContext(t.Context(), "setpriv", "--reuid=alice", "--regid=alice", "--clear-groups", "sleep", "4243")
	require.NoError(t, left.Start())
	t.Cleanup(func() { _ = left.Process.Kill(); _ = left.Wait() })

	out, err := do(t, c, "nodes", "--reason", "kill task", "--check")
	require.NoError(t, err)
	o := out.(fleet.NodesOut)
	require.Len(t, o.Nodes, 2)
	require.Contains(t, o.Nodes[0].Unseen, "Connection refused")
	var found bool
	for _, p := range o.Nodes[1].Left {
		found = found || p.User == "alice" && p.PID == left.Process.Pid && p.Command == "sleep 4243"
		require.NotContains(t, p.Command, "etimes")
	}
	require.True(t, found, "%+v", o.Nodes[1].Left)
	says := opstest.Text(t, o, lang.EN)
	require.Contains(t, says, "not checked: ")
	require.Contains(t, says, `resume --reason "kill task"`)

	c.Who = ops.Caller{Surface: ops.Slack, ID: "T1/U1", User: "alice"}
	_, err = do(t, c, "nodes", "--reason", "kill task", "--check")
	require.Equal(t, ops.NotAllowed, ops.AsError(err).Code)
}
