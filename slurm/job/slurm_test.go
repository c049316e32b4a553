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
