package local_test

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/slurm"
	"github.com/megatron-ops/megatron-ops/slurm/cluster/local"
	"github.com/megatron-ops/megatron-ops/slurm/slurmtest"
)

func TestMain(m *testing.M) {
	if code, ok := local.Standin(os.Args); ok {
		os.Exit(code)
	}
	flag.Parse()
	slurmtest.TempInMemory()
	if err := flag.Set("test.parallel", "8"); err != nil { // jobs mostly wait
		panic(err)
	}
	os.Exit(m.Run())
}

// A testCluster is a local cluster with a directory for its jobs.
type testCluster struct {
	*local.Cluster
	dir, state string
}

func newTestCluster(t *testing.T) testCluster {
	t.Helper()
	base := slurmtest.Dir(t)
	b := testCluster{dir: filepath.Join(base, "work"), state: filepath.Join(base, "state")}
	require.NoError(t, os.Mkdir(b.dir, 0o755))
	b.Cluster = local.New("here", b.state)
	return b
}

// submit submits body as a script with the given directives, one a word.
func (b testCluster) submit(t *testing.T, directives, body string) slurm.JobID {
	t.Helper()
	text := "#!/bin/bash\n"
	for d := range strings.FieldsSeq(directives) {
		text += "#SBATCH " + d + "\n"
	}
	id, err := b.Submit(t.Context(), slurm.Submission{Script: text + body + "\n", Dir: b.dir})
	require.NoError(t, err)
	t.Cleanup(func() { _ = b.Cancel(context.Background(), id) })
	return id
}

func (b testCluster) until(t *testing.T, id slurm.JobID, ok func(slurm.Job) bool) slurm.Job {
	t.Helper()
	var j slurm.Job
	require.Eventually(t, func() bool {
		var err error
		j, err = b.Job(t.Context(), id)
		require.NoError(t, err)
		return ok(j)
	}, 60*time.Second, 20*time.Millisecond, "%v", id)
	return j
}

// output runs body to its end and returns what it wrote.
func (b testCluster) output(t *testing.T, directives, body string) (slurm.Job, string) {
	t.Helper()
	id := b.submit(t, directives, body)
	j := b.until(t, id, func(j slurm.Job) bool { return j.State.Ended() })
	text, err := os.ReadFile(j.Stdout)
	require.NoError(t, err)
	return j, string(text)
}

func TestVariablesOfAJob(t *testing.T) {
	t.Parallel()
	b := newTestCluster(t)
	_, out := b.output(t, "--nodes=2 --ntasks-per-node=2 --gpus-per-node=4 --cpus-per-task=3 --time=10", `
echo "$SLURM_JOB_ID $SLURM_NNODES $SLURM_NTASKS $SLURM_JOB_NODELIST $SLURM_GPUS_ON_NODE $SLURM_GPUS_PER_NODE $SLURM_TASKS_PER_NODE ${SLURM_RESTART_COUNT-unset} $SLURM_SUBMIT_DIR"
scontrol show hostnames "$SLURM_JOB_NODELIST" | tr '\n' ' '; echo
srun bash -c 'echo "task $SLURM_PROCID $SLURM_NODEID $SLURM_LOCALID $SLURMD_NODENAME $SLURM_CPUS_PER_TASK $CUDA_VISIBLE_DEVICES"' | sort
srun -N1 -n1 -w local2 --gres=gpu:0 bash -c 'echo "one on $SLURMD_NODENAME, GPUs ${CUDA_VISIBLE_DEVICES-none}, step $SLURM_STEP_ID"'`)
	require.Contains(t, out, "1 2 4 local[1-2] 4 4 2(x2) unset "+b.dir+"\n")
	require.Contains(t, out, "task 0 0 0 local1 3 0,1,2,3\ntask 1 0 1 local1 3 0,1,2,3\ntask 2 1 0 local2 3 0,1,2,3\ntask 3 1 1 local2 3 0,1,2,3\n")
	require.Contains(t, out, "one on local2, GPUs none, step 1\n")
}

// The first line of scontrol show hostnames is an address that programs can connect to,
// and each job has a port of its own.
func TestRendezvousOnOneHost(t *testing.T) {
	t.Parallel()
	b := newTestCluster(t)
	serve := `MASTER_ADDR=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
export MASTER_ADDR MASTER_PORT=${MASTER_PORT:-29500}
set -euo pipefail
srun python3 -c '
import os, socket, time
where = (os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]))
if os.environ["SLURM_NODEID"] == "0":
    s = socket.create_server(("", where[1]))
    s.accept()[0].sendall(b"hello")
else:
    for _ in range(100):
        try:
            print(where[1], socket.create_connection(where).recv(5).decode()); break
        except OSError:
            time.sleep(0.1)
'`
	one, two := b.submit(t, "--nodes=2", serve), b.submit(t, "--nodes=2", serve)
	ports := map[string]bool{}
	for _, id := range []slurm.JobID{one, two} {
		j := b.until(t, id, func(j slurm.Job) bool { return j.State.Ended() })
		out, err := os.ReadFile(j.Stdout)
		require.NoError(t, err)
		require.Equal(t, slurm.Completed, j.State, "%s", out)
		m := regexp.MustCompile(`([0-9]+) hello`).FindSubmatch(out)
		require.NotNil(t, m, "%s", out)
		ports[string(m[1])] = true
	}
	require.Len(t, ports, 2)
}

func TestSrun(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, directives, body, want string }{
		{"labels", "--nodes=2", "srun --label echo hi | sort", "0: hi\n1: hi\n"},
		{"a file for each task", "--nodes=2 --job-name=x", "srun -o 'f-%x-%j-%t-%n-%N-%2t.log' echo hi; cat f-x-*-1-1-local2-01.log", "hi\n"},
		{"standard input for all", "--nodes=2", "srun cat <<<same", "same\nsame\n"},
		{"exact arguments", "", `srun printf '<%s>\n' 'a b' '$HOME' "it's" '*' ''`, "<a b>\n<$HOME>\n<it's>\n<*>\n<>\n"},
		{"the highest exit code", "--nodes=2", `srun bash -c 'exit $SLURM_PROCID' 2>&1; echo "code $?"`, "srun: error: local2: task 1: Exited with exit code 1\ncode 1\n"},
		{"a signal", "", `srun bash -c 'kill -9 $$' 2>&1; echo "code $?"`, "srun: error: local1: task 0: Killed\ncode 137\n"},
		{"exports", "", `A=1; export A B=2; srun --export=A,C=3 bash -c 'echo "${A-none} ${B-none} ${C-none} ${SLURM_PROCID-none}"'`, "1 none 3 0\n"},
		{"a directory", "", "srun --chdir=/ pwd", "/\n"},
		{"options of one letter", "--nodes=2", "srun -N1 -n2 -l -K1 -u echo hi | sort", "0: hi\n1: hi\n"},
		{"beside a step", "", "srun bash -c 'until [ -e go ]; do sleep 0.05; done' & srun --overlap --jobid=$SLURM_JOB_ID bash -c 'echo beside; touch go'; wait", "beside\n"},
		{"an unknown option is refused", "", "srun --bogus=1 true 2>&1", "srun: error: unrecognized option '--bogus=1'\n"},
		{"containers are refused", "", "srun --container-image=x true 2>&1", "srun: error: unrecognized option '--container-image=x'\n"},
		{"too many nodes are refused", "", "srun -N2 true 2>&1", "srun: error: Only allocated 1 nodes asked for 2\n"},
		{"no command", "", "srun -N1 2>&1", "srun: error: fatal: No command given to execute.\n"},
		{"a program that is not there", "", "srun nosuchprogram 2>&1 | tail -n 1", "srun: error: local1: task 0: Exited with exit code 2\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			_, out := newTestCluster(t).output(t, c.directives, c.body)
			require.Equal(t, c.want, out)
		})
	}
}

// The stand-ins of scontrol, scancel, sbatch and srun answer as Slurm's commands do.
func TestCommandsInsideAJob(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, directives, body, want string }{
		{"a list of names", "", "scontrol show hostlist local1,local2,local5", "local[1-2,5]\n"},
		{"names of nodes that connect", "--nodes=2", "scontrol show hostname", "127.0.1.1\n127.0.1.2\n"},
		{"of some nodes", "--nodes=2", "scontrol show hostnames local2", "127.0.1.2\n"},
		{"of a job", "", "scontrol show jobid $SLURM_JOB_ID | grep -o -e 'JobId=.*' -e 'Restarts=.*' -e 'Num.*' -e 'NodeList=.*'", "JobId=1 JobName=sbatch\nRestarts=0 ExitCode=0:0\nNumNodes=1\nNodeList=local1\n"},
		{"of a job that is not there", "", "scontrol show job 99 2>&1; echo $?", "scontrol: error: job 99: not known on this machine\n1\n"},
		{"what nobody can", "", "scontrol ping 2>&1; echo $?", "scontrol: error: `scontrol ping` is not known to the embedded back end, which runs jobs on this machine without Slurm\n1\n"},
		{"another job, from standard input", "", "printf '#!/bin/sh\\n' | sbatch --hold; scontrol hold 2; scontrol release 99 2>/dev/null || scancel 2 && echo done", "Submitted batch job 2\ndone\n"},
		{"the script of a job, to a file", "", "scontrol write batch_script $SLURM_JOB_ID && grep -c 'write batch_script' slurm-1.sh", "1\n"},
		{
			"the script of a job that is not there", "", "scontrol write batch_script 99 - 2>&1; echo $?",
			"scontrol: error: job 99: not known on this machine\n1\n",
		},
		{
			"a job that queues itself again", "", "[[ ${LINK:-} ]] || scontrol write batch_script $SLURM_JOB_ID - | LINK=2 sbatch --dependency=afterany:$SLURM_JOB_ID",
			"Submitted batch job 2\n",
		},
		{"a running job is not held", "", "scontrol hold $SLURM_JOB_ID 2>&1 | grep -o 'no longer pending'", "no longer pending\n"},
		{"an option of scancel", "", "scancel --me 2>&1; echo $?", "scancel: error: option --me is not known to the embedded back end\n1\n"},
		{
			"a signal to the tasks", "", `trap 'echo shell' USR1; srun bash -c 'trap "echo task; exit" USR1; scancel --signal=USR1 $SLURM_JOB_ID; while :; do sleep 0.1; done' 2>/dev/null`,
			"task\n",
		},
		{
			"a signal to the batch shell", "", `trap 'echo shell; exit' USR1; scancel -b -s SIGUSR1 $SLURM_JOB_ID; while :; do sleep 0.1; done`,
			"shell\n",
		},
		{"a signal that is none", "", "scancel --signal=NONE $SLURM_JOB_ID 2>&1; echo $?", "scancel: error: Unknown job signal: NONE\n1\n"},
		{"a signal of an unset variable", "", "scancel --signal=$NONE $SLURM_JOB_ID 2>&1; echo $?", "scancel: error: Unknown job signal: \n1\n"},
		{"a job that is no job", "", "scancel x 2>/dev/null; echo $?", "1\n"},
		{"a script that is none", "", "echo true | sbatch 2>&1 | grep -c 'does not look like a batch script'", "1\n"},
		{"quiet", "", "srun -Q bash -c 'exit 3' 2>&1; echo $?", "3\n"},
		{"output thrown away", "", "srun -o none echo hi", ""},
		{"a file as input", "--nodes=2", "echo hi >in; srun -i in cat", "hi\nhi\n"},
		{"no input", "", "srun -i none cat <<<hi", ""},
		{"errors in a file of their own", "", "srun -o out -e 'err-%s-%a-%A' bash -c 'echo o; echo e >&2'; cat err-0-4294967294-1", "e\n"},
		{"the last line without an end", "", "srun -l printf hi", "0: hi\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if strings.Contains(c.want, "127.0.1.") && runtime.GOOS != "linux" {
				t.Skip("all nodes have one address")
			}
			_, out := newTestCluster(t).output(t, c.directives, c.body)
			require.Equal(t, c.want, out)
		})
	}
}

func TestABadExitEndsTheOthers(t *testing.T) {
	t.Parallel()
	b := newTestCluster(t)
	j, out := b.output(t, "--nodes=2", `srun --kill-on-bad-exit=1 bash -c '[ $SLURM_PROCID = 1 ] && exit 3; exec sleep 60' 2>&1`)
	require.Equal(t, slurm.Failed, j.State)
	require.Contains(t, out, "task 1: Exited with exit code 3")
	require.Contains(t, out, "CANCELLED AT")
	require.Contains(t, out, "task 0: Terminated")
}

func TestTimeLimit(t *testing.T) {
	t.Parallel()
	b := newTestCluster(t)
	j, out := b.output(t, "--time=0:02 --signal=B:USR1@1", "trap 'echo warned' USR1; sleep 60 & wait; wait")
	require.Equal(t, slurm.Timeout, j.State)
	require.Equal(t, "0:0", *j.ExitCode)
	require.Contains(t, out, "warned\n")
	require.Regexp(t, `slurmstepd: error: \*\*\* JOB 1 ON local1 CANCELLED AT \S+ DUE TO TIME LIMIT \*\*\*`, out)
}

func TestExitCodes(t *testing.T) {
	t.Parallel()
	b := newTestCluster(t)
	for body, want := range map[string]string{"exit 0": "0:0", "exit 41": "41:0", "kill -9 $$": "0:9", "nosuchcommand": "127:0"} {
		j, _ := b.output(t, "", body)
		require.Equal(t, want, *j.ExitCode, body)
	}
	id := b.submit(t, "--output=no/such/directory/x.out", "true")
	j := b.until(t, id, func(j slurm.Job) bool { return j.State.Ended() })
	require.Equal(t, "JobLaunchFailure 0:53", j.Reason+" "+*j.ExitCode)
}

func TestRequeueStartsAnew(t *testing.T) {
	t.Parallel()
	b := newTestCluster(t)
	id := b.submit(t, "--open-mode=append", `echo "run ${SLURM_RESTART_COUNT-first}"; [ "${SLURM_RESTART_COUNT-}" ] || sleep 60`)
	b.until(t, id, func(j slurm.Job) bool {
		said, _ := os.ReadFile(j.Stdout) // a job runs before its first command has
		return j.State == slurm.Running && strings.Contains(string(said), "run first")
	})
	require.NoError(t, b.Requeue(t.Context(), id))
	j := b.until(t, id, func(j slurm.Job) bool { return j.State == slurm.Completed })
	err := b.MayRequeue(t.Context(), id)
	require.ErrorContains(t, err, "it is COMPLETED, and without Slurm only a job that runs can be requeued")
	require.Contains(t, slurm.FixOf(err).EN, "submit --from "+string(id))
	require.Equal(t, err, b.Requeue(t.Context(), id))
	require.Equal(t, 1, j.Restarts)
	require.Equal(t, []slurm.State{slurm.Requeued}, j.Requeues)
	require.Len(t, j.Earlier, 1)
	require.Equal(t, slurm.Requeued, j.Earlier[0].State)
	require.NotNil(t, j.Earlier[0].EndedAt)
	out, err := os.ReadFile(j.Stdout)
	require.NoError(t, err)
	require.Regexp(t, `(?s)run first\n.*DUE TO JOB REQUEUE.*run 1\n`, string(out))
	fixed := b.submit(t, "--no-requeue", "sleep 60")
	b.until(t, fixed, func(j slurm.Job) bool { return j.State == slurm.Running })
	require.ErrorContains(t, b.Requeue(t.Context(), fixed), "presently disabled")
	require.ErrorContains(t, b.MayRequeue(t.Context(), fixed), "presently disabled")
}

// Without --kill-on-invalid-dep such a job waits forever, as under Slurm.
func TestAJobWhoseDependencyCannotBeSatisfiedIsCancelledWhereItAsksForThat(t *testing.T) {
	t.Parallel()
	b := newTestCluster(t)
	fails := b.submit(t, "", "exit 1")
	b.until(t, fails, func(j slurm.Job) bool { return j.State == slurm.Failed })
	kept := b.submit(t, "--dependency=afterok:"+string(fails)+" --kill-on-invalid-dep=no", "true")
	killed := b.submit(t, "--dependency=afterok:"+string(fails)+" --kill-on-invalid-dep=yes", "true")
	j := b.until(t, killed, func(j slurm.Job) bool { return j.State.Ended() })
	require.Equal(t, []string{"CANCELLED", "DependencyNeverSatisfied"}, []string{string(j.State), j.Reason})
	require.Nil(t, j.StartedAt)
	j = b.until(t, kept, func(j slurm.Job) bool { return j.Reason == "DependencyNeverSatisfied" })
	require.Equal(t, slurm.Pending, j.State)
	require.Equal(t, "afterok:"+string(fails), j.Dependency)
	require.NoError(t, b.Cancel(t.Context(), kept))
	_, err := b.Submit(t.Context(), slurm.Submission{Script: "#!/bin/sh\n#SBATCH --kill-on-invalid-dep=perhaps\n", Dir: b.dir})
	require.ErrorContains(t, err, "Invalid --kill-on-invalid-dep specification")
}

func TestAHeldJobShowsTheNodesThatItWasGiven(t *testing.T) {
	t.Parallel()
	b := newTestCluster(t)
	id := b.submit(t, "--nodes=3 --gpus-per-node=2 --hold", "true")
	b.until(t, id, func(j slurm.Job) bool { return j.Reason == "JobHeldUser" })
	require.NoError(t, b.Update(t.Context(), id, slurm.Update{NumNodes: 2}))
	j := b.until(t, id, func(j slurm.Job) bool { return j.NumNodes == 2 })
	require.Equal(t, slurm.Pending, j.State)
	require.Equal(t, 4, j.GPUs)
	require.NoError(t, b.Release(t.Context(), id))
	j = b.until(t, id, func(j slurm.Job) bool { return j.State.Ended() })
	require.Len(t, j.Nodes, 2)
}

func TestJobsShareTheMachineByWholeNodes(t *testing.T) {
	t.Parallel()
	b := newTestCluster(t)
	b.Size = 3
	first := b.submit(t, "--nodes=2", "sleep 60")
	j := b.until(t, first, func(j slurm.Job) bool { return j.State == slurm.Running })
	require.Equal(t, []string{"local1", "local2"}, j.Nodes)
	second := b.submit(t, "--nodes=2", "true")
	b.until(t, second, func(j slurm.Job) bool { return j.Reason == "Resources" })
	require.NoError(t, b.Cancel(t.Context(), first))
	b.until(t, second, func(j slurm.Job) bool { return j.State == slurm.Completed })
	_, err := b.Submit(t.Context(), slurm.Submission{Script: "#!/bin/sh\n#SBATCH --nodes=4\n", Dir: b.dir})
	require.ErrorContains(t, err, "configuration is not available: this machine stands for 3 nodes")
}

// No process of a job survives it, not even one that has detached itself.
func TestNothingOutlivesItsJob(t *testing.T) {
	t.Parallel()
	b := newTestCluster(t)
	id := b.submit(t, "", `setsid bash -c 'trap "" TERM HUP; echo $$ >stray; exec sleep 300' & until [ -s stray ]; do sleep 0.02; done; exit 0`)
	b.until(t, id, func(j slurm.Job) bool { return j.State == slurm.Completed })
	text, err := os.ReadFile(filepath.Join(b.dir, "stray"))
	require.NoError(t, err)
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	require.NoError(t, err)
	require.Eventually(t, func() bool { return syscall.Kill(pid, 0) != nil }, 10*time.Second, 20*time.Millisecond)
}

// age sets back the time at which a job was submitted by an hour.
func (b testCluster) age(t *testing.T, id slurm.JobID) {
	t.Helper()
	path := filepath.Join(b.state, "jobs", string(id), string(id)+".json")
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	record := map[string]any{}
	require.NoError(t, json.Unmarshal(text, &record))
	record["Job"].(map[string]any)["submitted_at"] = time.Now().Add(-time.Hour)
	text, err = json.Marshal(record)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(path, text, 0o644))
}

// A job survives the process that submitted it. A job whose supervisor and runner are
// killed has lost its node. A waiting job whose supervisor is killed gets a new one.
func TestJobsSurviveTheirKeepers(t *testing.T) {
	t.Parallel()
	b := newTestCluster(t)
	running := b.submit(t, "", "sleep 300")
	waiting := b.submit(t, "--hold", "echo taken up")
	b.until(t, running, func(j slurm.Job) bool { return j.State == slurm.Running })
	kill := func(words ...string) {
		t.Helper()
		out, err := exec.Command("pgrep", "-f", strings.Join(words, " ")).Output()
		require.NoError(t, err, "%v", words)
		for pid := range strings.FieldsSeq(string(out)) {
			n, _ := strconv.Atoi(pid)
			_ = syscall.Kill(n, syscall.SIGKILL)
		}
	}
	kill("__standin supervise", b.state, string(waiting))
	b.age(t, waiting) // a young job is given time for its first supervisor to start
	kill("__standin supervise", b.state, string(running))
	other := testCluster{local.New("again", b.state), b.dir, b.state}
	j, err := other.Job(t.Context(), running)
	require.NoError(t, err)
	require.Equal(t, slurm.Running, j.State, "the runner goes on without a supervisor")
	kill("__standin run", b.state, string(running))
	j = other.until(t, running, func(j slurm.Job) bool { return j.State.Ended() })
	require.Equal(t, slurm.NodeFail, j.State)
	require.NoError(t, other.Release(t.Context(), waiting))
	j = other.until(t, waiting, func(j slurm.Job) bool { return j.State.Ended() })
	require.Equal(t, slurm.Completed, j.State)
}

// Nobody can cancel a job whose records were removed, so it stops waiting and does not
// create the folder again.
func TestAWaitingJobEndsWithItsRecords(t *testing.T) {
	t.Parallel()
	b := newTestCluster(t)
	id := b.submit(t, "--begin=now+1hour", "true")
	b.until(t, id, func(j slurm.Job) bool { return j.Reason == "BeginTime" })
	require.NoError(t, os.RemoveAll(b.state))
	require.Eventually(t, func() bool {
		return exec.Command("pgrep", "-f", "__standin supervise "+b.state).Run() != nil
	}, 10*time.Second, 20*time.Millisecond)
	require.NoDirExists(t, b.state)
}

func TestChainsOfJobs(t *testing.T) {
	t.Parallel()
	b := newTestCluster(t)
	require.NoError(t, os.WriteFile(filepath.Join(b.dir, "next.sh"), []byte("#!/bin/bash\n#SBATCH --output=next.out\necho next\n"), 0o755))
	_, out := b.output(t, "", `n=$(sbatch --parsable --dependency=afterok:$SLURM_JOB_ID next.sh); echo "next is $n"; scontrol show job $SLURM_JOB_ID | grep -o 'JobState=[A-Z]*'`)
	require.Equal(t, "next is 2\nJobState=RUNNING\n", out)
	j := b.until(t, "2", func(j slurm.Job) bool { return j.State.Ended() })
	require.Equal(t, slurm.Completed, j.State)
}

// A job that another job submitted runs on after that job has ended, as under Slurm.
func TestAJobOutlivesTheJobThatSubmittedIt(t *testing.T) {
	t.Parallel()
	b := newTestCluster(t)
	require.NoError(t, os.WriteFile(filepath.Join(b.dir, "next.sh"), []byte("#!/bin/bash\necho $SLURM_JOB_ID >started\nuntil [ -e finish ]; do sleep 0.05; done\n"), 0o755))
	first, _ := b.output(t, "", `sbatch next.sh; until [ -s started ]; do sleep 0.05; done`)
	require.Equal(t, slurm.Completed, first.State)
	require.NoError(t, os.WriteFile(filepath.Join(b.dir, "finish"), nil, 0o600))
	j := b.until(t, "2", func(j slurm.Job) bool { return j.State.Ended() })
	require.Equal(t, slurm.Completed, j.State)
}

// A job that the disk has no room for is refused; it waited for good. The limit on a
// file's size stands for the disk's.
func TestAJobWithoutRoomOnTheDiskIsRefused(t *testing.T) {
	t.Parallel()
	if os.Getenv("NO_ROOM") == "" {
		cmd := exec.Command("sh", "-c", `ulimit -f 64; exec "$0" -test.run=^TestAJobWithoutRoom`, os.Args[0])
		cmd.Env = append(os.Environ(), "NO_ROOM=1")
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s", out)
		return
	}
	b := newTestCluster(t)
	_, err := b.Submit(t.Context(), slurm.Submission{Script: "#!/bin/sh\n", Dir: b.dir})
	require.ErrorIs(t, err, slurm.ErrRejected)
	require.ErrorContains(t, err, "the job cannot be stored: ")
	require.Contains(t, slurm.FixOf(err).EN, "make room in "+b.state)
	left, err := os.ReadDir(filepath.Join(b.state, "jobs"))
	require.NoError(t, err)
	require.Empty(t, left)
}

func TestSubmissionsAtOnce(t *testing.T) {
	t.Parallel()
	b := newTestCluster(t)
	const number = 8
	got := make(chan slurm.JobID, number)
	for range number {
		go func() {
			id, err := b.Submit(context.Background(), slurm.Submission{Script: "#!/bin/sh\n#SBATCH --hold\n", Dir: b.dir})
			if err != nil {
				id = slurm.JobID(fmt.Sprint(err))
			}
			got <- id
		}()
	}
	seen := map[slurm.JobID]bool{}
	for range number {
		id := <-got
		require.True(t, slurm.IsJobID(string(id)), "%s", id)
		require.False(t, seen[id], "%s twice", id)
		seen[id] = true
	}
	for id := range seen {
		require.NoError(t, b.Cancel(t.Context(), id))
	}
	for id := range seen {
		b.until(t, id, func(j slurm.Job) bool { return j.State == slurm.Cancelled })
	}
}
