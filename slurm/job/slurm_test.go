package job_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/slurm/job"
	"github.com/megatron-ops/megatron-ops/slurm/slurmtest"
)

// A slurmUser is alice on a real Slurm cluster, with her worktree. The tests of this
// package share the cluster.
type slurmUser struct {
	*slurmtest.Cluster
	t    *testing.T
	tree string
}

// mails is the program that Slurm runs in place of mail(1) in these tests.
const mails = "/tmp/megatron-ops-test-mail"

func onSlurm(t *testing.T) slurmUser {
	t.Helper()
	if slurmtest.Missing() == "" && !testing.Short() {
		require.NoError(t, os.WriteFile(mails, []byte("#!/bin/sh\necho \"$@\" >>"+mails+".sent\n"), 0o755))
	}
	real := slurmtest.Start(t, slurmtest.Options{Conf: "MailProg=" + mails + "\n"})
	tree, err := os.MkdirTemp(real.Work, "alice-")
	require.NoError(t, err)
	d := slurmUser{real, t, tree}
	d.file("pretrain_gpt.py", trainer)
	d.file(".venv/bin/python", "#!/bin/sh\nexec python3 \"$@\"\n")
	_, err = real.Run(t.Context(), "chown", "-R", "alice", tree)
	require.NoError(t, err)
	return d
}

// trainer imitates Megatron as far as Slurm is concerned: it runs until it receives the
// signal of its flags, and then saves and ends. Its first line of output shows that it now
// handles the signal.
const trainer = `import os, signal, sys, time
asked = []
if "--exit-signal-handler" in sys.argv:
    signal.signal(getattr(signal, sys.argv[sys.argv.index("--exit-signal") + 1]), lambda *_: asked.append(1))
os.write(1, f"argv {sys.argv[1:]} on {os.environ.get('SLURMD_NODENAME')} sees {os.environ.get('CUDA_VISIBLE_DEVICES')}\n".encode())
end = time.time() + float(os.environ.get("T_SECONDS", "0"))
while time.time() < end:
    time.sleep(0.1)
    if asked:
        os.write(1, b"saved before the end\n")
        sys.exit(0)
sys.exit(int(os.environ.get("T_EXIT", "0")))
`

func (d slurmUser) file(name, text string) {
	path := filepath.Join(d.tree, name)
	require.NoError(d.t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(d.t, os.WriteFile(path, []byte(text), 0o755))
}

// spec returns a job of one node that starts Python directly, with changes.
func (d slurmUser) spec(name string, change ...func(*job.Spec)) job.Spec {
	s := job.Spec{
		Name: name, Worktree: d.tree, Nodes: new(1), GPUsPerNode: new(1), Time: "5", Partition: "prod", Guards: new(false), Monitor: new(false),
		Launcher: job.Custom, LauncherArgv: []string{"python3"}, Env: map[string]string{},
	}
	for _, c := range change {
		c(&s)
	}
	return s
}

// submit renders a job and submits it as alice.
func (d slurmUser) submit(s job.Spec, words ...string) string {
	d.t.Helper()
	id, err := d.try(s, job.Options{}, words...)
	require.NoError(d.t, err)
	return id
}

func (d slurmUser) try(s job.Spec, o job.Options, words ...string) (string, error) {
	d.t.Helper()
	script, err := job.Render(s, o)
	require.NoError(d.t, err)
	file := filepath.Join(d.tree, s.Name+".sbatch")
	require.NoError(d.t, os.WriteFile(file, []byte(script.Text), 0o644))
	_, err = d.RunAs(d.t.Context(), "alice", "mkdir", "-p", filepath.Join(script.WorkDir, script.LogDir))
	require.NoError(d.t, err)
	out, err := d.RunAs(d.t.Context(), "alice", append(append([]string{"env", "-C", d.tree, "sbatch", "--parsable"}, words...), file)...)
	if err == nil {
		d.t.Cleanup(func() { _, _ = d.Run(context.Background(), "scancel", out) })
	}
	return out, err
}

// show returns one field of a job from scontrol.
func (d slurmUser) show(id, field string) string {
	d.t.Helper()
	out, err := d.Run(d.t.Context(), "scontrol", "show", "job", "-o", id)
	require.NoError(d.t, err)
	m := regexp.MustCompile(`(?:^|\s)` + field + `=(\S*)`).FindStringSubmatch(out)
	if m == nil {
		return ""
	}
	return m[1]
}

func (d slurmUser) becomes(id string, states ...string) {
	d.t.Helper()
	deadline := time.Now().Add(100 * time.Second)
	for time.Now().Before(deadline) {
		if now := d.show(id, "JobState"); regexp.MustCompile(`^(?:` + strings.Join(states, "|") + `)$`).MatchString(now) {
			return
		}
		time.Sleep(200 * time.Millisecond)
	}
	d.t.Fatalf("job %s is %s (%s), not %v\n%s", id, d.show(id, "JobState"), d.show(id, "Reason"), states, d.logs())
}

// log returns the text of one log, as soon as the text contains want.
func (d slurmUser) log(name, want string) string {
	d.t.Helper()
	var text []byte
	require.Eventually(d.t, func() bool {
		text, _ = os.ReadFile(filepath.Join(d.tree, "logs", name))
		return strings.Contains(string(text), want)
	}, 30*time.Second, 100*time.Millisecond, "%s lacks %q\n%s", name, want, d.logs())
	return string(text)
}

func (d slurmUser) logs() string {
	var b strings.Builder
	files, _ := filepath.Glob(filepath.Join(d.tree, "logs", "*.*"))
	for _, f := range files {
		text, _ := os.ReadFile(f)
		fmt.Fprintf(&b, "== %s\n%s\n", filepath.Base(f), text)
	}
	return b.String()
}

func (d slurmUser) as(words ...string) string {
	d.t.Helper()
	out, err := d.RunAs(d.t.Context(), "alice", words...)
	require.NoError(d.t, err)
	return out
}

func TestSlurmTakesEveryDirectiveAsItWasMeant(t *testing.T) {
	d := onSlurm(t)
	_, err := d.Run(t.Context(), "scontrol", "create", "reservation", "ReservationName=maint", "Users=alice", "StartTime=now", "Duration=60", "Nodes=gpu4")
	require.NoError(t, err)
	t.Cleanup(func() { _, _ = d.Run(context.Background(), "scontrol", "delete", "ReservationName=maint") })
	for name, c := range map[string]struct {
		change func(*job.Spec)
		field  string
		want   string // regular expression
	}{
		"account":       {func(s *job.Spec) { s.Account = "infra" }, "Account", "infra"},
		"partition":     {func(s *job.Spec) { s.Partition = "dev,prod" }, "Partition", "dev,prod"},
		"qos":           {func(s *job.Spec) { s.QOS = "scavenge" }, "QOS", "scavenge"},
		"reservation":   {func(s *job.Spec) { s.Reservation = "maint" }, "Reservation", "maint"},
		"constraint":    {func(s *job.Spec) { s.Constraint = "h100&nvlink" }, "Features", "h100&nvlink"},
		"one of":        {func(s *job.Spec) { s.Constraint = "[a100|h100]" }, "Features", regexp.QuoteMeta("[a100|h100]")},
		"nodelist":      {func(s *job.Spec) { s.Nodes = new(2); s.Nodelist = "gpu[1-2]" }, "ReqNodeList", regexp.QuoteMeta("gpu[1-2]")},
		"exclude":       {func(s *job.Spec) { s.Exclude = "gpu[1,3]" }, "ExcNodeList", regexp.QuoteMeta("gpu[1,3]")},
		"nodes":         {func(s *job.Spec) { s.Nodes = new(3) }, "NumNodes", "3.*"},
		"cpus_per_task": {func(s *job.Spec) { s.CPUsPerTask = new(32) }, "CPUs/Task", "32"},
		"mem":           {func(s *job.Spec) { s.Mem = "64G" }, "MinMemoryNode", "64G"},
		"all memory":    {func(s *job.Spec) { s.Mem = "0" }, "MinMemoryNode", "0"},
		"time":          {func(s *job.Spec) { s.Time = "1-02:03:00" }, "TimeLimit", "1-02:03:00"},
		"minutes":       {func(s *job.Spec) { s.Time = "90" }, "TimeLimit", "01:30:00"},
		"exclusive":     {func(s *job.Spec) { s.Exclusive = new(true) }, "OverSubscribe", "NO"},
		"hint":          {func(s *job.Spec) { s.Hint = "nomultithread" }, "ReqB:S:C:T", `0:0:\*:1`},
		"gres":          {func(s *job.Spec) { s.GPURequest = "gres"; s.GPUsPerNode = new(4) }, "TresPerNode", "gres[:/]gpu:4"},
		"gpus-per-node": {func(s *job.Spec) { s.GPUsPerNode = new(4) }, "TresPerNode", "gres[:/]gpu:4"},
		"gpus":          {func(s *job.Spec) { s.GPURequest = "gpus"; s.Nodes = new(2); s.GPUsPerNode = new(4) }, "TresPerJob", "gres[:/]gpu:8"},
		"no GPU":        {func(s *job.Spec) { s.GPUsPerNode = new(0) }, "TresPerNode", ""},
		"comment":       {func(s *job.Spec) { s.Comment = `said"go",it's100%#x$HOME` }, "Comment", regexp.QuoteMeta(`said"go",it's100%#x$HOME`)},
		"mail_user":     {func(s *job.Spec) { s.MailUser, s.MailType = "alice@example.org", "END,FAIL" }, "MailUser", "alice@example.org"},
		"mail_type":     {func(s *job.Spec) { s.MailUser, s.MailType = "alice@example.org", "END,FAIL" }, "MailType", ".*END,FAIL"},
		"requeue":       {func(s *job.Spec) { s.Requeue = new(true) }, "Requeue", "1"},
		"no requeue":    {func(s *job.Spec) { s.Requeue = new(false) }, "Requeue", "0"},
		"array":         {func(s *job.Spec) { s.Array = "1-9:2%2" }, "ArrayTaskThrottle", "2"},
		"log":           {func(*job.Spec) {}, "StdOut", ".*/logs/directives-[0-9]+.out"},
	} {
		t.Run(name, func(t *testing.T) {
			d := d
			d.t = t
			id := d.submit(d.spec("directives", c.change), "--hold")
			require.Regexp(t, "^"+c.want+"$", d.show(id, c.field))
		})
	}
}

func TestSlurmTakesEveryFormOfBegin(t *testing.T) {
	d := onSlurm(t)
	for _, g := range grammars {
		if g.field != "begin" {
			continue
		}
		for _, form := range g.takes {
			id, err := d.try(d.spec("begin", func(s *job.Spec) { s.Begin = form }), job.Options{}, "--hold")
			require.NoError(t, err, form)
			d.as("scancel", id)
		}
	}
	for form, after := range map[string]time.Duration{
		"now+60": time.Minute, "now+2hours": 2 * time.Hour, "now+30minutes": 30 * time.Minute, "now+1day": 24 * time.Hour, "now+2weeks": 14 * 24 * time.Hour,
	} {
		id := d.submit(d.spec("begin", func(s *job.Spec) { s.Begin = form }))
		at, err := time.ParseInLocation("2006-01-02T15:04:05", d.show(id, "EligibleTime"), time.Local)
		require.NoError(t, err)
		require.WithinDuration(t, time.Now().Add(after), at, 20*time.Second, form)
		require.Equal(t, "BeginTime", d.show(id, "Reason"))
	}
	id := d.submit(d.spec("begin", func(s *job.Spec) { s.Begin = "2030-01-20T12:34:00" }))
	require.Equal(t, "2030-01-20T12:34:00", d.show(id, "EligibleTime"))
}

func TestSlurmWaitsForEveryKindOfDependency(t *testing.T) {
	d := onSlurm(t)
	quick := func(s *job.Spec) { s.Partition = "dev" }
	good := d.submit(d.spec("good", quick), "--hold")
	bad := d.submit(d.spec("bad", quick, func(s *job.Spec) { s.Env["T_EXIT"] = "3" }), "--hold")
	array := d.submit(d.spec("elements", quick, func(s *job.Spec) { s.Array = "1-2" }), "--hold")
	kinds := map[string]struct {
		on   string
		runs bool
	}{
		"afterok of a success":    {"afterok:" + good, true},
		"afterok of a failure":    {"afterok:" + bad, false},
		"afternotok of a failure": {"afternotok:" + bad, true},
		"afternotok of a success": {"afternotok:" + good, false},
		"afterany of both":        {"afterany:" + good + ":" + bad, true},
		"after its start":         {"after:" + good, true},
		"all of them":             {"afterok:" + good + ",afterok:" + bad, false},
		"any of them":             {"afterok:" + good + "?afterok:" + bad, true},
		"one element":             {"afterok:" + array + "_1", true},
	}
	ids := map[string]string{}
	for name, k := range kinds {
		ids[name] = d.submit(d.spec("waits", quick, func(s *job.Spec) { s.Dependency = k.on }))
	}
	corr := d.submit(d.spec("corr", quick, func(s *job.Spec) { s.Array, s.Dependency = "1-2", "aftercorr:"+array }))
	single := d.submit(d.spec("good", quick, func(s *job.Spec) { s.Dependency = "singleton" }))
	later := d.submit(d.spec("later", quick, func(s *job.Spec) { s.Dependency = "after:" + good + "+60" }))
	for _, id := range append([]string{single, later}, ids["afterok of a success"], ids["any of them"]) {
		require.Equal(t, "PENDING", d.show(id, "JobState"))
		require.Equal(t, "Dependency", d.show(id, "Reason"))
	}
	d.as("scontrol", "release", good, bad, array)
	for name, k := range kinds {
		if k.runs {
			d.becomes(ids[name], "COMPLETED")
			continue
		}
		require.Eventually(t, func() bool { return d.show(ids[name], "Reason") == "DependencyNeverSatisfied" }, 60*time.Second, 200*time.Millisecond, name)
	}
	d.becomes(single, "COMPLETED")
	d.becomes(corr, "COMPLETED")
	require.Equal(t, "PENDING", d.show(later, "JobState"), "sixty minutes after the other's start")
}

func TestAChainRunsOneJobAfterTheOtherOnSlurm(t *testing.T) {
	d := onSlurm(t)
	d.submit(d.spec("chain", func(s *job.Spec) { s.Chain = new(3); s.Env["T_EXIT"] = "7" }))
	require.Eventually(t, func() bool {
		done, _ := filepath.Glob(filepath.Join(d.tree, "logs", "chain-*.out"))
		return len(done) == 3 && strings.Contains(d.logs(), "link 3 of 3")
	}, 100*time.Second, 200*time.Millisecond, "%s", d.logs())
	require.Contains(t, d.logs(), "link 2 of 3", "a link that fails is followed all the same")
	require.Empty(t, d.as("squeue", "--me", "--noheader", "--name=chain", "--states=PENDING"))

	d.file("logs/chain.stop", "")
	id := d.submit(d.spec("chain", func(s *job.Spec) { s.Chain = new(3) }))
	d.becomes(id, "COMPLETED")
	d.log("chain-"+id+".err", "chain.stop is there: the chain ends")
	require.Empty(t, d.as("squeue", "--me", "--noheader", "--name=chain", "--states=PENDING"))
}

func TestAnArrayKeepsItsLimitAndItsLogsOnSlurm(t *testing.T) {
	d := onSlurm(t)
	id := d.submit(d.spec("elements", func(s *job.Spec) { s.Array = "1-4%2"; s.Env["T_SECONDS"] = "2" }))
	most := 0
	require.Eventually(t, func() bool {
		running := strings.Fields(d.as("squeue", "--me", "--noheader", "--array", "--jobs="+id, "--states=RUNNING", "--format=%i"))
		most = max(most, len(running))
		return strings.Count(d.logs(), "argv []") == 4
	}, 60*time.Second, 100*time.Millisecond, "%s", d.logs())
	require.Equal(t, 2, most)
	for n := 1; n <= 4; n++ {
		require.FileExists(t, filepath.Join(d.tree, "logs", fmt.Sprintf("elements-%s_%d.out", id, n)))
	}
}

// A person holds the array, edits the file that its elements source, and releases the
// array, which keeps its place in the queue.
func TestATrainIsEditedBetweenItsElementsOnSlurm(t *testing.T) {
	d := onSlurm(t)
	d.file("train-64.sh", "echo first edition; sleep 3\n")
	id := d.submit(d.spec("train", func(s *job.Spec) { s.Train, s.Array, s.Launcher, s.LauncherArgv = "train-64.sh", "1-2%1", "", nil }))
	d.log("train-"+id+"_1.out", "first edition")
	d.as("scontrol", "hold", id)
	d.file("train-64.sh", "echo second edition; srun --ntasks=1 hostname\n")
	d.becomes(id+"_1", "COMPLETED") // then nothing but the hold keeps the second element from starting
	require.Equal(t, "JobHeldUser", d.show(id+"_2", "Reason"))
	require.NoFileExists(t, filepath.Join(d.tree, "logs", "train-"+id+"_2.out"))
	_, _ = d.RunAs(t.Context(), "alice", "scontrol", "release", id) // it reports an error for the element that has ended
	require.NotContains(t, d.log("train-"+id+"_2.out", "second edition"), "first edition")
}

func TestMegatronIsAskedToSaveBeforeTheTimeLimitOnSlurm(t *testing.T) {
	d := onSlurm(t)
	ids := map[string]string{}
	for _, signal := range []string{"USR1@280", "B:USR2@280"} {
		name := strings.NewReplacer(":", "-", "@", "-").Replace(signal)
		ids[name] = d.submit(d.spec(name, func(s *job.Spec) { s.Signal, s.Time, s.Nodes = signal, "60", new(2); s.Env["T_SECONDS"] = "300" }))
	}
	for name, id := range ids {
		d.started(name+"-"+id+".out", 2)
		d.endsSoon(id)
	}
	for name, id := range ids {
		d.becomes(id, "COMPLETED")
		out := d.log(name+"-"+id+".out", "saved before the end")
		require.Equal(t, 2, strings.Count(out, "saved before the end"), "every rank was told: %s", out)
		require.Contains(t, out, "--exit-signal-handler")
	}
}

// started waits until the given number of ranks handle the signal.
func (d slurmUser) started(name string, ranks int) {
	d.t.Helper()
	require.Eventually(d.t, func() bool {
		text, _ := os.ReadFile(filepath.Join(d.tree, "logs", name))
		return strings.Count(string(text), "argv [") == ranks
	}, 100*time.Second, 100*time.Millisecond, "%s", d.logs())
}

// endsSoon shortens a job's time limit, so that Slurm sends the signal, which is due 280
// seconds before the limit, at its next check. Slurm checks twice a minute. With the short
// limit from the start, the signal could arrive before the ranks handle it.
func (d slurmUser) endsSoon(id string) {
	d.t.Helper()
	_, err := d.Run(d.t.Context(), "scontrol", "update", "JobId="+id, "TimeLimit=5")
	require.NoError(d.t, err)
}

// Ranks below torch's own launcher save too. The launcher must survive the signal, so that
// its ranks have time to save.
func TestRanksBelowTorchsLauncherSaveOnSlurm(t *testing.T) {
	tools := slurmtest.Torch(t)
	d := onSlurm(t)
	below := func(s *job.Spec) {
		s.Launcher, s.LauncherArgv, s.Nodes, s.GPUsPerNode, s.Monitor = job.UV, nil, new(2), new(2), nil
		s.Env["T_SECONDS"] = "300"
	}
	_, err := d.Run(t.Context(), "cp", "-r", tools, filepath.Join(d.tree, "tools")) // to a folder that alice can read
	require.NoError(t, err)
	path := "--export=ALL,PATH=" + filepath.Join(d.tree, "tools") + ":" + d.Bin() + ":/usr/bin:/bin"
	signalled := d.submit(d.spec("below", below, func(s *job.Spec) { s.Signal, s.Time, s.MasterPort = "USR1@280", "60", new(d.Port(0)) }), path)
	switched := d.submit(d.spec("switch", below, func(s *job.Spec) { s.KillSwitch, s.MasterPort = "STOP", new(d.Port(1)) }), path)
	d.started("switch-"+switched+".out", 4)
	d.file("STOP", "")
	d.started("below-"+signalled+".out", 4)
	d.endsSoon(signalled)
	for name, id := range map[string]string{"below": signalled, "switch": switched} {
		d.becomes(id, "COMPLETED")
		saved := 0
		files, err := filepath.Glob(filepath.Join(d.tree, "logs", id, "attempt-0", "gpu*", "*", "attempt_0", "*", "stdout.log"))
		require.NoError(t, err)
		for _, f := range files {
			text, err := os.ReadFile(f)
			require.NoError(t, err)
			saved += strings.Count(string(text), "saved before the end")
		}
		require.Equal(t, 4, saved, "%s: every rank has saved: %s", name, d.logs())
	}
}

func TestTheKillSwitchEndsWhatRunsAndWhatWouldStartOnSlurm(t *testing.T) {
	d := onSlurm(t)
	id := d.submit(d.spec("switched", func(s *job.Spec) {
		s.KillSwitch, s.Array = filepath.Join(d.tree, "STOP"), "1-3%1"
		s.Env["T_SECONDS"] = "300"
	}))
	d.log("switched-"+id+"_1.out", "argv")
	d.file("STOP", "")
	d.log("switched-"+id+"_1.out", "saved before the end")
	for _, n := range []string{"2", "3"} {
		require.Contains(t, d.log("switched-"+id+"_"+n+".err", "not starting"), "remove it first")
	}
	require.Eventually(t, func() bool {
		return !strings.Contains(d.as("sacct", "-n", "-X", "-P", "-j", id, "--format=State"), "RUNNING")
	}, 20*time.Second, 300*time.Millisecond)
	require.NotContains(t, d.as("sacct", "-n", "-X", "-P", "-j", id, "--format=State"), "FAILED")
}

func TestARequeuedJobKeepsItsLogAndStartsAnotherAttemptOnSlurm(t *testing.T) {
	d := onSlurm(t)
	id := d.submit(d.spec("again", func(s *job.Spec) {
		s.Requeue, s.Monitor = new(true), new(true)
		s.Env["T_SECONDS"] = "300"
	}))
	d.log("again-"+id+".out", "attempt=0")
	d.as("scontrol", "requeue", id)
	// Slurm delays a requeued job by two minutes. It sets the start time when the first run has ended.
	require.Eventually(t, func() bool {
		_, _ = d.Run(t.Context(), "scontrol", "update", "JobId="+id, "StartTime=now")
		return strings.Contains(d.logs(), "attempt=1")
	}, 90*time.Second, time.Second, "%s", d.logs())
	out := d.log("again-"+id+".out", "attempt=1")
	require.Contains(t, out, "attempt=0", "the log of the first run is kept")
	for _, attempt := range []string{"attempt-0", "attempt-1"} {
		require.FileExists(t, filepath.Join(d.tree, "logs", id, attempt, "start-0"))
	}
}

func TestASeriesGoesOnIsListedStopsAndTidiesUpOnSlurm(t *testing.T) {
	d := onSlurm(t)
	d.file("logs/watchdog-1.out", "old")
	d.file("logs/other-1.out", "old")
	old := time.Now().AddDate(0, 0, -9)
	for _, f := range []string{"watchdog-1.out", "other-1.out"} {
		require.NoError(t, os.Chtimes(filepath.Join(d.tree, "logs", f), old, old))
	}
	_, err := d.Run(t.Context(), "chown", "-R", "alice", d.tree)
	require.NoError(t, err)
	site := job.Site{Partition: "prod", CPUPartition: "dev"}
	id, err := d.try(d.spec("watchdog", func(s *job.Spec) { s.Every, s.GPUsPerNode, s.Partition = "12h", new(0), ""; s.Env["T_EXIT"] = "5" }), job.Options{Site: site})
	require.NoError(t, err)
	d.becomes(id, "FAILED")
	require.Equal(t, "dev", d.show(id, "Partition"), "a job without GPUs goes to the CPU partition")
	require.NotContains(t, d.show(id, "TRES"), "gpu")
	list := func() []string {
		return strings.Fields(d.as("squeue", "--me", "--noheader", "--name=watchdog", "--format=%i"))
	}
	queued := list()
	require.Len(t, queued, 1, "the next run is queued, although this one failed")
	next := queued[0]
	t.Cleanup(func() { _, _ = d.Run(context.Background(), "scancel", next) })
	at, err := time.ParseInLocation("2006-01-02T15:04:05", d.show(next, "EligibleTime"), time.Local)
	require.NoError(t, err)
	require.WithinDuration(t, time.Now().Add(12*time.Hour), at, time.Minute)
	require.NoFileExists(t, filepath.Join(d.tree, "logs", "watchdog-1.out"))
	require.FileExists(t, filepath.Join(d.tree, "logs", "other-1.out"), "only its own logs are tidied up")

	d.file("logs/watchdog.stop", "")
	_, err = d.Run(t.Context(), "scontrol", "update", "JobId="+next, "StartTime=now")
	require.NoError(t, err)
	d.becomes(next, "FAILED")
	require.Empty(t, list(), "the series has ended")
}

func TestLogsOfEachNodeAndOneOfAllOnSlurm(t *testing.T) {
	d := onSlurm(t)
	apart := d.submit(d.spec("apart", func(s *job.Spec) { s.Nodes, s.Preset, s.Nodelist = new(2), []string{"per-node-logs"}, "gpu[1-2]" }))
	elements := d.submit(d.spec("elements", func(s *job.Spec) { s.Array, s.Preset, s.Nodelist = "2", []string{"per-node-logs"}, "gpu3" }))
	joined := d.submit(d.spec("joined", func(s *job.Spec) { s.Nodes, s.Preset = new(2), []string{"joined-log"} }))
	failed := d.submit(d.spec("failed", func(s *job.Spec) { s.Preset = []string{"joined-log"}; s.Env["T_EXIT"] = "7" }))
	d.becomes(apart, "COMPLETED")
	for _, node := range []string{"gpu1", "gpu2"} {
		require.Contains(t, d.log("apart-"+apart+"-"+node+".out", "argv"), "on "+node)
	}
	require.Contains(t, d.log("elements-"+elements+"_2-gpu3.out", "argv"), "on gpu3")
	d.becomes(joined, "COMPLETED")
	d.becomes(failed, "FAILED")
	require.Equal(t, "7:0", d.show(failed, "ExitCode"), "the pipe to the joined log does not hide the exit status")
	all := d.log("joined-"+joined+".log", "argv")
	require.Contains(t, all, "0: argv")
	require.Contains(t, all, "1: argv")
}

func TestEveryWayToAskForGPUsGivesThemOnSlurm(t *testing.T) {
	d := onSlurm(t)
	for _, form := range []string{"gpus-per-node", "gres", "gpus"} {
		id := d.submit(d.spec(form, func(s *job.Spec) { s.Nodes, s.GPUsPerNode, s.GPURequest = new(2), new(3), form }))
		d.becomes(id, "COMPLETED")
		require.Equal(t, 2, strings.Count(d.log(form+"-"+id+".out", "sees"), "sees 0,1,2"), "%s: %s", form, d.logs())
	}
}

func TestSlurmSendsTheMail(t *testing.T) {
	d := onSlurm(t)
	id := d.submit(d.spec("mailed", func(s *job.Spec) { s.MailUser, s.MailType = "alice@example.org", "BEGIN,END" }))
	d.becomes(id, "COMPLETED")
	require.Eventually(t, func() bool {
		sent, _ := os.ReadFile(mails + ".sent")
		return strings.Contains(string(sent), "Job_id="+id+" Name=mailed Ended") && strings.Contains(string(sent), "alice@example.org")
	}, 90*time.Second, 500*time.Millisecond)
}

// guarded returns a job of two nodes with guards.
func (d slurmUser) guarded(name string, change ...func(*job.Spec)) job.Spec {
	return d.spec(name, append([]func(*job.Spec){func(s *job.Spec) {
		s.Nodes, s.Nodelist, s.GPUsPerNode, s.Guards, s.Monitor = new(2), "gpu[1-2]", new(2), nil, nil
		s.MasterPort = new(d.Port(2))
	}}, change...)...)
}

func TestGuardsOnSlurm(t *testing.T) {
	d := onSlurm(t)
	d.file("ckpt/here", "")
	path := "--export=ALL,PATH=" + filepath.Join(d.tree, "bin") + ":" + d.Bin() + ":/usr/bin:/bin"
	d.file("bin/nvidia-smi", "#!/bin/sh\ncat "+filepath.Join(d.tree, "gpus")+"\n")
	load := func(s *job.Spec) { s.Args = []string{"--load", filepath.Join(d.tree, "ckpt/here")} }

	t.Run("nothing is wrong", func(t *testing.T) {
		d := d
		d.t = t
		d.file("gpus", "0, 3\n1, 4\n")
		id := d.submit(d.guarded("fine", load), path)
		d.becomes(id, "COMPLETED")
		require.Equal(t, 2, strings.Count(d.log("fine-"+id+".out", "argv"), "argv ["))
		said := d.log("fine-"+id+".err", "")
		require.NotContains(t, said, "guard: stop")
		require.NotContains(t, said, "free")
	})
	t.Run("fewer nodes than asked for", func(t *testing.T) {
		d := d
		d.t = t
		id := d.submit(d.guarded("fewer", func(s *job.Spec) { s.Nodelist = "" }), "--nodes=1")
		d.becomes(id, "FAILED")
		require.Equal(t, "3:0", d.show(id, "ExitCode"))
		d.log("fewer-"+id+".err", "guard: stop: gpu1: nodes: 2 asked for, 1 given")
	})
	t.Run("a port that is taken", func(t *testing.T) {
		d := d
		d.t = t
		l, err := net.Listen("tcp", fmt.Sprint("127.0.0.1:", d.Port(3)))
		require.NoError(t, err)
		defer l.Close()
		id := d.submit(d.guarded("port", func(s *job.Spec) { s.MasterPort = new(d.Port(3)) }))
		d.becomes(id, "FAILED")
		d.log("port-"+id+".err", fmt.Sprintf("guard: stop: gpu1: port %d is taken on gpu1", d.Port(3)))
	})
	t.Run("an image of a registry", func(t *testing.T) {
		d := d
		d.t = t
		const image = "docker://registry.example.com/team/megatron:dev"
		contained := func(s *job.Spec) { s.Container = job.Container{Runtime: job.Apptainer, Image: image} }
		d.file("gpus", "0, 3\n1, 4\n")
		d.file("asked", "")
		require.NoError(t, os.Chmod(filepath.Join(d.tree, "asked"), 0o666)) //nolint:gosec // alice's jobs write there
		d.file("bin/apptainer", "#!/bin/sh\nwhile [ \"$1\" != "+image+" ]; do shift; done\nshift\nexec \"$@\"\n")
		d.file("bin/skopeo", "#!/bin/sh\necho \"$SLURMD_NODENAME $*\" >>"+filepath.Join(d.tree, "asked")+"\necho '{}'\n")
		id := d.submit(d.guarded("image", contained), path)
		d.becomes(id, "COMPLETED")
		require.Equal(t, 2, strings.Count(d.log("image-"+id+".out", "argv"), "argv ["))
		require.NotContains(t, d.log("image-"+id+".err", ""), "image")
		asked, err := os.ReadFile(filepath.Join(d.tree, "asked"))
		require.NoError(t, err)
		require.Equal(t, "gpu1 inspect --raw "+image+"\n", string(asked), "one node asks")

		d.file("bin/skopeo", "#!/bin/sh\necho 'level=fatal msg=\"reading manifest dev in registry.example.com/team/megatron: manifest unknown\"' >&2\nexit 1\n")
		id = d.submit(d.guarded("noimage", contained), path)
		d.becomes(id, "FAILED")
		require.Equal(t, "3:0", d.show(id, "ExitCode"))
		d.log("noimage-"+id+".err", "guard: stop: gpu1: image "+image+" cannot be pulled: ")
		require.NotContains(t, d.log("noimage-"+id+".out", ""), "argv [")
	})
	t.Run("a GPU that is in use", func(t *testing.T) {
		d := d
		d.t = t
		d.file("gpus", "0, 3\n1, 60000\n")
		id := d.submit(d.guarded("busy"), path)
		d.becomes(id, "FAILED")
		d.log("busy-"+id+".err", ": 1 GPUs are free and 2 are needed")
		require.NotContains(t, d.log("busy-"+id+".out", ""), "argv [")
	})
	t.Run("a folder that one node does not have", func(t *testing.T) {
		d := d
		d.t = t
		pid, err := os.ReadFile(filepath.Join(d.Dir, "run", "slurmd.gpu2.pid"))
		require.NoError(t, err)
		inside := func(words ...string) error {
			out, err := exec.Command("nsenter", append([]string{"--target", strings.TrimSpace(string(pid)), "--mount"}, words...)...).CombinedOutput()
			if err != nil {
				err = fmt.Errorf("%w: %s", err, out)
			}
			return err
		}
		require.NoError(t, inside("mount", "-t", "tmpfs", "none", filepath.Join(d.tree, "ckpt")))
		defer func() { require.NoError(t, inside("umount", filepath.Join(d.tree, "ckpt"))) }()
		id := d.submit(d.guarded("unseen", load))
		d.becomes(id, "FAILED")
		d.log("unseen-"+id+".err", "guard: stop: gpu2: "+filepath.Join(d.tree, "ckpt/here")+" is seen by the first node and not here")
		require.NotContains(t, d.log("unseen-"+id+".out", ""), "on gpu2 sees")
	})
}
