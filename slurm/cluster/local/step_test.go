package local

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/slurm"
)

// placement describes where the tasks of a step run: "local1:0,1 local2:2".
func placement(s step) string {
	var nodes []string
	tasks := map[string][]string{}
	for _, t := range s.tasks() {
		if len(tasks[t.Name]) == 0 {
			nodes = append(nodes, t.Name)
		}
		if len(tasks[t.Name]) != t.Local || s.Nodes[t.Node] != t.Name {
			return fmt.Sprintf("task %d is not the %d. of node %d", t.Proc, t.Local, t.Node)
		}
		tasks[t.Name] = append(tasks[t.Name], strconv.Itoa(t.Proc))
	}
	for i, node := range nodes {
		nodes[i] = node + ":" + strings.Join(tasks[node], ",")
	}
	return strings.Join(nodes, " ")
}

// An srun in a job of two nodes starts its tasks where Slurm's would.
func TestWhereAnSrunStartsItsTasks(t *testing.T) {
	t.Parallel()
	const each, all = "SLURM_NTASKS_PER_NODE=2 SLURM_NTASKS=4", "SLURM_NTASKS=8"
	for _, c := range []struct{ job, args, want string }{
		{"", "x", "local1:0 local2:1"},
		{each, "x", "local1:0,1 local2:2,3"},
		{each, "-n1 x", "local1:0"},
		{each, "-n 2 x", "local1:0,1"},
		{each, "-n3 x", "local1:0,1 local2:2"},
		{each, "--ntasks=5 x", "local1:0,1,2 local2:3,4"},
		{each, "-N1 x", "local1:0,1"},
		{each, "-w local2 x", "local2:0,1"},
		{each, "-w local2 -N2 x", "local2:0,1 local1:2,3"},
		{each, "--ntasks-per-node=1 x", "local1:0 local2:1"},
		{each, "--ntasks-per-node=1 -n2 x", "local1:0 local2:1"},
		{all, "x", "local1:0,1,2,3 local2:4,5,6,7"},
		{all, "-N1 x", "local1:0"},
		{all, "-N2 x", "local1:0,1,2,3 local2:4,5,6,7"},
		{all, "-N2 -n3 x", "local1:0,1 local2:2"},
		{all, "-N 1-2 x", "local1:0"},
		{"", "-N2 -n1 x", "local1:0"},
		{"", "-n1 x", "local1:0"},
		{"", "-n3 x", "local1:0,1 local2:2"},
	} {
		s, err := readStep(strings.Fields(c.args), environOf(strings.Fields(c.job)), []string{"local1", "local2"})
		require.NoError(t, err, c.args)
		require.Equal(t, c.want, placement(s), "%s: %s", c.job, c.args)
	}
}

// The other options of srun, joined and separate.
func TestWhatAnSrunIsTold(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]step{
		"x -l y":                              {Argv: []string{"x", "-l", "y"}},
		"-- -x":                               {Argv: []string{"-x"}},
		"-":                                   {Argv: []string{"-"}},
		"-l x":                                {Label: true},
		"-lQ x":                               {Label: true, Quiet: true},
		"-uvl x":                              {Label: true},
		"-K x":                                {KillOnBad: true},
		"-K1 x":                               {KillOnBad: true},
		"-K0 x":                               {},
		"--kill-on-bad-exit x":                {KillOnBad: true},
		"--kill-on-bad-exit=0 x":              {},
		"--jobid 7 --mem=0 --overlap x":       {},
		"-c 4 x":                              {CPUs: 4},
		"-t 5 x":                              {Limit: 5 * time.Minute},
		"--time=0:30 x":                       {Limit: 30 * time.Second},
		"-W 30 x":                             {Wait: 30 * time.Second},
		"-o a -e b -i c -D d --export=A x":    {Output: "a", Error: "b", Input: "c", Chdir: "d", Export: "A"},
		"--output=a --error=b x":              {Output: "a", Error: "b"},
		"--gres=none x":                       {GPUs: -4},
		"--gres=gpu:0 x":                      {GPUs: -4},
		"--gres=nvme:7,gres:gpu:h100:2 x":     {GPUs: -2},
		"--gres=nvme:7 x":                     {},
		"--gpus-per-node=h100:3 x":            {GPUs: -1},
		"--gpus-per-task=1 --job-name=a x":    {GPUs: -3},
		"--gpus=8 x":                          {},
		"--overcommit --comment=a --nice=1 x": {},
	} {
		s, err := readStep(strings.Fields(args), environ{"SLURM_GPUS_ON_NODE": "4"}, []string{"local1"})
		require.NoError(t, err, args)
		if want.Argv == nil {
			want.Argv = []string{"x"}
		}
		if want.Export == "" {
			want.Export = "ALL"
		}
		want.GPUs += 4 // those of the job, less what is said above
		want.Nodes, want.NTasks = []string{"local1"}, 1
		require.Equal(t, want, s, args)
	}
	for args, says := range map[string]string{
		"": "No command given", "-l": "No command given", "-N": "requires an argument", "-n x y": `Invalid numeric value "x" for --ntasks`, "-n 0 y": `Invalid numeric value "0" for --ntasks`,
		"-N 2 y": "Only allocated 1 nodes asked for 2", "-w local2 y": "not in the allocation: local2", "-w gpu1 y": "Invalid node name specified: gpu1",
		"-w local[1 y": "local[1", "-t x y": "Invalid --time", "--gres=gpu:x y": "gres", "-W x y": "x", "--test-only y": "unrecognized option", "-V": "unrecognized option", "-% y": "unrecognized option '-%'", "--no-such y": "unrecognized option '--no-such'",
	} {
		_, err := readStep(strings.Fields(args), environ{}, []string{"local1"})
		require.ErrorContains(t, err, says, args)
	}
}

// --export filters an environment, but the variables that Slurm itself sets are always
// exported.
func TestWhatIsExported(t *testing.T) {
	t.Parallel()
	around := []string{"A=1", "B=2", "HOME=/h", "MEGATRON_LOCAL_DIR=/s", "PATH=/p", "SLURM_JOB_ID=7", "USER=u"}
	const always = "HOME=/h MEGATRON_LOCAL_DIR=/s PATH=/p SLURM_JOB_ID=7 USER=u"
	for list, want := range map[string]string{
		"": "A=1 B=2 " + always, "ALL": "A=1 B=2 " + always, "NONE": always, "NIL": always, "A": "A=1 " + always, "B,A": "A=1 B=2 " + always,
		"C": always, "C=3": "C=3 " + always, "A=9,ALL": "A=9 B=2 " + always, "ALL,C=3": "A=1 B=2 C=3 " + always, "ALL,A=9": "A=9 B=2 " + always,
		"A=": "A= " + always, "PATH=/q": strings.Replace(always, "/p", "/q", 1), ",=x": always,
	} {
		require.Equal(t, strings.Fields(want), environOf(around).export(list).entries(), list)
	}
	require.Equal(t, []string{"A=1", "SLACK=x", "CUDA_VISIBLE_DEVICES_OF=x", "SLURMX=1"}, inherited([]string{
		"A=1", "SLACK=x", "SLACK_BOT_TOKEN=x", "OPENAI_API_KEY=x", "SLURM_JWT=x", "SLURM_JOB_ID=6", "SLURMD_NODENAME=x", "SBATCH_PARTITION=x",
		"MEGATRON_OPS_STANDIN=1", "CUDA_VISIBLE_DEVICES=0", "CUDA_VISIBLE_DEVICES_OF=x", "SLURMX=1",
	}), "secrets and another job's variables stay outside")
}

// The batch script's variables describe its allocation; a variable without a meaning is
// not set.
func TestTheVariablesOfAScript(t *testing.T) {
	t.Parallel()
	started := time.Unix(1_750_000_000, 0)
	for directives, want := range map[string]string{ // after "!": not set
		"": "SLURM_JOB_ID=7 SLURM_JOB_NODELIST=local[1-2] SLURM_TASKS_PER_NODE=1(x2) SLURM_CPUS_ON_NODE=1 ENVIRONMENT=BATCH " +
			"!SLURM_NTASKS !SLURM_NTASKS_PER_NODE !SLURM_GPUS_ON_NODE !CUDA_VISIBLE_DEVICES !SLURM_JOB_END_TIME !SLURM_RESTART_COUNT !SLURM_ARRAY_TASK_ID !SLURM_JOB_ACCOUNT !SLURM_JOB_QOS",
		"--ntasks=3":                               "SLURM_NTASKS=3 SLURM_NPROCS=3 !SLURM_NTASKS_PER_NODE",
		"--ntasks-per-node=4 --cpus-per-task=3":    "SLURM_NTASKS=8 SLURM_NTASKS_PER_NODE=4 SLURM_TASKS_PER_NODE=4(x2) SLURM_CPUS_ON_NODE=12 SLURM_JOB_CPUS_PER_NODE=12(x2) SLURM_CPUS_PER_TASK=3",
		"--gpus-per-node=3":                        "SLURM_GPUS_ON_NODE=3 SLURM_GPUS_PER_NODE=3 SLURM_JOB_GPUS=0,1,2 CUDA_VISIBLE_DEVICES=0,1,2",
		"--time=10":                                "SLURM_JOB_END_TIME=1750000600 SLURM_JOB_START_TIME=1750000000",
		"--account=a --qos=q --dependency=after:1": "SLURM_JOB_ACCOUNT=a SLURM_JOB_QOS=q SLURM_JOB_DEPENDENCY=after:1 SLURM_JOB_PARTITION=local",
		"--partition=p --job-name=n":               "SLURM_JOB_PARTITION=p SLURM_JOB_NAME=n",
	} {
		r, err := requestOf("--nodes=2 " + directives)
		require.NoError(t, err)
		sub := submission{Request: r, Dir: "/w", Env: []string{"PATH=/usr/bin"}, User: "u"}
		rec := newRecords("7", 7, sub)[0]
		rec.Job.Nodes, rec.Job.StartedAt, rec.Port = []string{"local1", "local2"}, &started, 20_007
		got := environOf(batchEnviron(sub, rec, store{"/s"}, "/s/bin"))
		require.Equal(t, []string{"/s/bin:/usr/bin", "/s", "20007", "u"}, []string{got["PATH"], got[storeVar], got["MASTER_PORT"], got["SLURM_JOB_USER"]})
		for word := range strings.FieldsSeq(want) {
			name, value, _ := strings.Cut(strings.TrimPrefix(word, "!"), "=")
			given, set := got[name]
			require.Equal(t, !strings.HasPrefix(word, "!"), set, "%s: %s", directives, word)
			require.Equal(t, value, given, "%s: %s", directives, word)
		}
	}
	for array, want := range map[string][]string{ // the last element's: count, least, most, step
		"4": {"1", "4", "4", ""}, "1-7:3": {"3", "1", "7", "3"},
	} {
		r, err := requestOf("--array=" + array)
		require.NoError(t, err)
		sub := submission{Request: r}
		all := newRecords("7", 7, sub)
		rec := all[len(all)-1]
		rec.Job.Nodes, rec.Job.StartedAt, rec.Job.Restarts = []string{"local1"}, &started, 2
		got := environOf(batchEnviron(sub, rec, store{"/s"}, "/s/bin"))
		require.Equal(t, want, []string{got["SLURM_ARRAY_TASK_COUNT"], got["SLURM_ARRAY_TASK_MIN"], got["SLURM_ARRAY_TASK_MAX"], got["SLURM_ARRAY_TASK_STEP"]})
		require.Equal(t, []string{strconv.Itoa(6 + len(all)), "7", want[2], "2"}, []string{got["SLURM_JOB_ID"], got["SLURM_ARRAY_JOB_ID"], got["SLURM_ARRAY_TASK_ID"], got["SLURM_RESTART_COUNT"]})
		require.Equal(t, "1", got["SLURM_TASKS_PER_NODE"])
	}
}

// waitingReason says in Slurm's words why a job does not start yet.
func TestWhyAJobWaits(t *testing.T) {
	t.Parallel()
	c := storedJobs(t, slurm.Running, slurm.Failed)
	for name, tt := range map[string]struct {
		request request
		nodes   int
		running int
		want    string
	}{
		"held":                          {request{Hold: true}, 1, 0, "JobHeldUser"},
		"for its time":                  {request{Begin: time.Now().Add(time.Hour)}, 1, 0, "BeginTime"},
		"its time has come":             {request{Begin: time.Now().Add(-time.Hour)}, 1, 0, ""},
		"for another":                   {request{Dependency: "afterany:1"}, 1, 0, "Dependency"},
		"for what does not come":        {request{Dependency: "afterok:2"}, 1, 0, "DependencyNeverSatisfied"},
		"the other has ended":           {request{Dependency: "afterany:2"}, 1, 0, ""},
		"for more nodes than there are": {request{}, 4, 0, "Resources"},
		"there are enough":              {request{}, 3, 0, ""},
		"for others of its array":       {request{ArrayLimit: 2}, 1, 2, "JobArrayTaskLimit"},
		"few enough of them run":        {request{ArrayLimit: 2}, 1, 1, ""},
		"as many as may run":            {request{}, 1, 9, ""},
	} {
		s := supervisor{store: c.store, sub: submission{Request: tt.request, Machine: 3}, running: tt.running}
		r := record{Job: slurm.Job{ID: "9", NumNodes: tt.nodes}}
		got, err := s.waitingReason(&r, s.control("9"))
		require.NoError(t, err, name)
		require.Equal(t, tt.want, got, name)
		if got == "" {
			require.Len(t, r.Job.Nodes, tt.nodes, name)
			require.Equal(t, tt.running+1, s.running, name)
		}
		c.store.free("9", r.Job.Nodes)
	}
}
