package joblogs_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/ops/jobcontrol"
	"github.com/megatron-ops/megatron-ops/internal/ops/joblogs"
	"github.com/megatron-ops/megatron-ops/internal/ops/opstest"
	"github.com/megatron-ops/megatron-ops/slurm"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose"
	"github.com/megatron-ops/megatron-ops/slurm/job"
)

// A job that is silent for the time of many iterations hangs: the alarm says since
// when, where it was, and what to look at.
func TestASilentJobRaisesAnAlarm(t *testing.T) {
	c, j := running(t, 0)
	ids := func(j slurm.Job) (ids []string) {
		all, err := joblogs.Alarms(t.Context(), c, j)
		require.NoError(t, err)
		for _, a := range all {
			ids = append(ids, a.ID)
		}
		return ids
	}
	require.Empty(t, ids(j), "it goes on")
	old := time.Now().Add(-time.Hour)
	require.NoError(t, os.Chtimes(j.Stdout, old, old))
	require.Equal(t, []string{"hang"}, ids(j))
	all, err := joblogs.Alarms(t.Context(), c, j)
	require.NoError(t, err)
	a := all[0]
	require.Equal(t, "No progress for 01:00:00, where an iteration took 4.0 s; the last one was 60. Node: n[1-2].", a.Says(lang.EN))
	require.Equal(t, "已有 01:00:00 没有进展（此前每次迭代 4.0 秒），最后一次迭代为第 60 次。节点：n[1-2]。", a.Says(lang.ZH))
	require.Contains(t, opstest.Text(t, a, lang.EN), "77: no progress")
	require.Contains(t, opstest.Text(t, a, lang.EN), "py-spy dump")
	require.Contains(t, a.Notice(j).Text.ZH, "py-spy dump")
	require.NotEqual(t, a.Notice(j).Key, a.Notice(slurm.Job{ID: "77", Cluster: "test", Restarts: 1}).Key, "after a restart it is another notice")
	for name, other := range map[string]func(*slurm.Job){
		"it has ended":        func(j *slurm.Job) { j.State = slurm.Failed },
		"it waits":            func(j *slurm.Job) { j.State = slurm.Pending },
		"it has no log":       func(j *slurm.Job) { j.Stdout = filepath.Join(t.TempDir(), "gpt-77.out") },
		"it has another file": func(j *slurm.Job) { j.Stdout = "/dev/null" },
	} {
		o := j
		other(&o)
		require.Empty(t, ids(o), name)
	}
}

// The cost of a checkpoint that comes too late, and how the job can be made to save
// earlier. With one checkpoint only, the time between two comes from the log.
func TestHowFarTheNextCheckpointIs(t *testing.T) {
	for name, c := range map[string]struct {
		interval int
		age      time.Duration // age of the only checkpoint; 0: there is none
		left     time.Duration
		args     []string
		says     []string // parts of the text in status
		late     string   // a part of the alarm's fix
	}{
		"it comes in time":         {600, 10 * time.Minute, 2 * time.Hour, nil, []string{"10 min ago", "the next is due in 30 min", "2.7 GPU hours would be lost now"}, ""},
		"too late":                 {600, 10 * time.Minute, 20 * time.Minute, nil, []string{"in 20 min, and the next checkpoint is due in 30 min: 8.0 GPU hours would be lost"}, "signal: USR1@300"},
		"it saves when told":       {600, 10 * time.Minute, 20 * time.Minute, []string{"--exit-signal-handler"}, []string{"8.0 GPU hours would be lost"}, "cancel 77 --signal TERM"},
		"it saves by itself":       {600, 10 * time.Minute, 20 * time.Minute, []string{"--exit-duration-in-mins", "230"}, []string{"the next is due in 30 min"}, ""},
		"no interval is known":     {0, 10 * time.Minute, 20 * time.Minute, nil, []string{"iteration 60, 10 min ago; 2.7 GPU hours would be lost now"}, ""},
		"in seconds":               {600, 39*time.Minute + 15*time.Second, 2 * time.Hour, nil, []string{"due in 45 s"}, ""},
		"in hours":                 {3000, 100 * time.Minute, 9 * time.Hour, nil, []string{"1 h 40 min ago", "due in 1 h 40 min"}, ""},
		"none was saved":           {600, 0, 2 * time.Hour, nil, []string{"none yet; 53.3 GPU hours would be lost now; the next is due in 0 s"}, ""},
		"it is due":                {600, 41 * time.Minute, 2 * time.Hour, nil, []string{"41 min ago", "due in 0 s"}, ""},
		"half a minute is rounded": {600, 10*time.Minute + 30*time.Second, 2 * time.Hour, nil, []string{"11 min ago"}, ""},
		"a minute and a half":      {600, 90 * time.Second, 2 * time.Hour, nil, []string{"2 min ago"}, ""},
		"an hour and a half":       {3000, 90 * time.Minute, 9 * time.Hour, nil, []string{"1 h 30 min ago"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				call, j := running(t, 0)
				cl := call.Clusters["test"].(*opstest.Site)
				call.Clusters["test"] = localFilesSite{cl}
				dir := t.TempDir()
				if c.age > 0 {
					opstest.SaveAt(t, dir, map[int]time.Duration{60: c.age}, "60")
				}
				start, limit := time.Now().Add(-200*time.Minute), int64((200*time.Minute + c.left).Seconds())
				j.StartedAt, j.ElapsedS, j.TimeLimitS = &start, 200*60, &limit
				cl.Put(j)
				require.NoError(t, os.Chtimes(j.Stdout, time.Now(), time.Now()))
				args := append([]string{"--save", dir}, c.args...)
				if c.interval > 0 {
					args = append(args, "--save-interval", fmt.Sprint(c.interval))
				}
				remember(t, call, "77", "name: gpt\nnodes: 2\ngpus_per_node: 8\nworktree: /w\nargs: ["+strings.Join(args, ", ")+"]\n")
				out, err := opstest.Do(t, call, jobcontrol.Status(), "77")
				require.NoError(t, err)
				for _, says := range c.says {
					require.Contains(t, opstest.Text(t, out, lang.EN), says)
				}
				require.Equal(t, c.interval == 0, !strings.Contains(opstest.Text(t, out, lang.EN), "the next is due in"))
				require.Equal(t, c.interval == 0, out.(jobcontrol.StatusOut).Checkpoint.EveryS == nil, "an interval that is not known is null, not 0 s")
				alarms, err := joblogs.Alarms(t.Context(), call, j)
				require.NoError(t, err)
				require.Equal(t, c.late != "", len(alarms) == 1, "%v", alarms)
				if c.late != "" {
					require.Contains(t, alarms[0].Fix.EN, c.late)
					require.Contains(t, opstest.Text(t, out, lang.EN), c.late)
				}
			})
		})
	}
}

// remoteSite is a cluster on another machine, whose login node lists a folder.
type remoteSite struct {
	*opstest.Site
	looks  int
	broken bool
}

func (*remoteSite) Kind() string { return "ssh" }

func (f *remoteSite) RunShell(context.Context, string, ...string) (string, error) {
	f.looks++
	if f.broken {
		return "", errors.New("no route to host")
	}
	return "", nil
}

// The state of a remote checkpoint is reused for half a minute for people, and for five
// minutes for the watcher; a server of agents does not look at all.
func TestAFarCheckpointIsLookedAtSeldom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, j := running(t, 0)
		cl := &remoteSite{Site: &opstest.Site{KnownJobs: map[slurm.JobID]slurm.Job{"77": j}}}
		c := opstest.NewCall(t, cl.Site)
		c.Clusters["test"] = cl
		s := job.Spec{Cluster: "test", Args: []string{"--save", "/far/ckpt"}}
		looks := func(by ops.Surface, after time.Duration) int {
			time.Sleep(after)
			before := cl.looks
			c.Who.Surface = by
			_, _, ok := joblogs.ResumeSpec(t.Context(), c, s)
			require.False(t, ok)
			return cl.looks - before
		}
		require.Equal(t, 1, looks(ops.Shell, 0))
		require.Equal(t, 0, looks(ops.Shell, 29*time.Second))
		require.Equal(t, 1, looks(ops.Shell, time.Second))
		require.Equal(t, 0, looks(ops.Watcher, 299*time.Second))
		require.Equal(t, 1, looks(ops.Watcher, time.Second))
		require.Equal(t, 0, looks(ops.MCPHTTP, time.Hour))
		cl.broken = true
		require.Equal(t, 1, looks(ops.Shell, time.Hour))
		require.Equal(t, 0, looks(ops.Shell, time.Second), "nor is one that does not answer asked at once")
	})
}

// An allocation in which nothing runs is reported with its cost.
func TestAnIdleAllocationIsToldWithItsCost(t *testing.T) {
	a := joblogs.IdleAlarm(slurm.IdleAllocation{Job: slurm.Job{ID: "7", GPUs: 16, Nodes: []string{"n1", "n2"}}, For: 45 * time.Minute, GPUHours: 12})
	require.Equal(t, "Has held 16 GPUs for 45 min without a running step: 12.0 GPU hours. Node: n1,n2.", a.Says(lang.EN))
	require.Equal(t, "占用 16 张 GPU 已 45 分钟 而没有运行任何步骤：12.0 GPU 小时。节点：n1,n2。", a.Says(lang.ZH))
	require.Contains(t, opstest.Text(t, a, lang.EN), "`cancel 7` gives the nodes back")
}

// samplingSite is a cluster whose nodes answer commands beside a job.
type samplingSite struct {
	*opstest.Site
	alone, beside string // the outputs of a step without and with the job's GPUs
	asked         []slurm.Exec
}

func (s *samplingSite) Exec(_ context.Context, x slurm.Exec) ([]slurm.NodeOutput, error) {
	s.asked = append(s.asked, x)
	if x.GPUs {
		return []slurm.NodeOutput{{Node: "n1", Text: s.beside}}, nil
	}
	return []slurm.NodeOutput{{Node: "n1", Text: s.alone}}, nil
}

// Only a person who may change the job samples its GPUs, in a shell and within bounds.
// Where a step without GPUs sees none, a second one shares the job's.
func TestSamplingGPUs(t *testing.T) {
	const gpu = "0, 40960, 81920, 87\n"
	for name, c := range map[string]struct {
		words         []string
		alone, beside string
		surface       ops.Surface
		state         slurm.State
		asked         int
		err           string
	}{
		"seen at once":            {words: []string{"--sample", "1"}, alone: gpu, asked: 1},
		"seen beside the job":     {words: []string{"--sample", "1"}, alone: "No devices were found\n", beside: gpu, asked: 2},
		"not seen":                {words: []string{"--sample", "1"}, alone: "x\n", beside: "a\nNo devices were found\n", asked: 2, err: "did not answer: No devices were found"},
		"two hours":               {words: []string{"--sample", "3600", "--samples", "2"}, alone: gpu, asked: 1},
		"longer":                  {words: []string{"--sample", "3601", "--samples", "2"}, err: "2 samples each 3601 s cannot be taken"},
		"backwards":               {words: []string{"--sample", "-1"}, err: `"-1" is not a number of 0 or more`},
		"fewer than none":         {words: []string{"--sample", "1", "--samples", "-1"}, err: `"-1" is not a number of 0 or more`},
		"by an agent":             {words: []string{"--sample", "1"}, surface: ops.MCP, err: "from the shell only"},
		"of a job that has ended": {words: []string{"--sample", "1"}, state: slurm.Completed, err: "only a running job uses GPUs"},
	} {
		call, j := running(t, 0)
		if c.state != "" {
			j.State = c.state
		}
		if c.surface != "" {
			call.Who.Surface = c.surface
		}
		cl := &samplingSite{Site: call.Clusters["test"].(*opstest.Site), alone: c.alone, beside: c.beside}
		cl.Put(j)
		call.Clusters["test"] = cl
		out, err := opstest.Do(t, call, joblogs.Metrics(), append([]string{"77"}, c.words...)...)
		require.Len(t, cl.asked, c.asked, name)
		if c.err != "" {
			require.ErrorContains(t, err, c.err, name)
			continue
		}
		require.NoError(t, err, name)
		text := opstest.Text(t, out, lang.EN)
		require.Contains(t, text, "40.0", name)
		require.Contains(t, text, "80.0", name)
		require.Contains(t, text, "87 %", name)
	}
}

// The numbers of several runs go into one file of each kind; an error names the word
// that named what cannot be written or read.
func TestMetricsOfSeveralRuns(t *testing.T) {
	c, j := running(t, 0)
	other := j
	other.ID, other.Name, other.State, other.Stdout = "78", "wide", slurm.Completed, filepath.Join(j.WorkDir, "wide-78.out")
	require.NoError(t, os.WriteFile(other.Stdout, []byte(" [2026-06-11 10:00:00.000000] iteration        1/     100 | elapsed time per iteration (ms): 4000.0 | lm loss: 3.5E+00 |\n"), 0o600))
	mute := j
	mute.ID, mute.Stdout = "79", filepath.Join(j.WorkDir, "gpt-79.out")
	require.NoError(t, os.WriteFile(mute.Stdout, []byte("loading\n"), 0o600))
	site := c.Clusters["test"].(*opstest.Site)
	over := mute
	over.ID, over.State = "80", slurm.Failed
	over.Stdout = filepath.Join(j.WorkDir, "gpt-80.out")
	require.NoError(t, os.WriteFile(over.Stdout, []byte("loading\n"), 0o600))
	site.Put(other)
	site.Put(mute)
	site.Put(over)
	c.Dir = t.TempDir()
	out, err := opstest.Do(t, c, joblogs.Metrics(), "77", "78", "--csv", "all.csv", "--png", "all.png")
	require.NoError(t, err)
	text := opstest.Text(t, out, lang.EN)
	require.Contains(t, text, "gpt 77: iteration 60, 4 s an iteration", "whose pulse it is")
	require.NotContains(t, text, "wide 78: iteration", "what has ended has none")
	table, err := os.ReadFile(filepath.Join(c.Dir, "all.csv"))
	require.NoError(t, err)
	require.Equal(t, 60, strings.Count(string(table), "\ngpt 77,"))
	require.Equal(t, 1, strings.Count(string(table), "\nwide 78,"))
	picture, err := os.ReadFile(filepath.Join(c.Dir, "all.png"))
	require.NoError(t, err)
	require.Equal(t, "\x89PNG", string(picture[:4]))
	require.Nil(t, out.(joblogs.MetricsOut).SpareS, "whose limit it would be is not said")

	out, err = opstest.Do(t, c, joblogs.Metrics(), "77", "80", "79")
	require.NoError(t, err)
	require.Len(t, out.(joblogs.MetricsOut).Runs, 1)
	require.Contains(t, out.(joblogs.MetricsOut).Findings, "80: no iteration was logged; `diagnose 80` says how it ended")
	text = opstest.Text(t, out, lang.ZH)
	require.Contains(t, text, "gpt 77", "a run without iterations hides no other")
	require.Contains(t, text, "80：没有输出任何迭代日志；`diagnose 80` 会说明它如何结束")
	require.Contains(t, text, "79：还没有输出任何迭代日志")

	for name, tt := range map[string]struct {
		words   []string
		surface ops.Surface
		field   string
		says    string
	}{
		"nothing was logged yet":     {[]string{"79"}, ops.Shell, "job", "79: no iteration was logged yet"},
		"nothing is to come":         {[]string{"80"}, ops.Shell, "job", "80: no iteration was logged"},
		"a folder that is not there": {[]string{"77", "--csv", "/nowhere/all.csv"}, ops.Shell, "csv", "no such file"},
		"its picture":                {[]string{"77", "--png", "/nowhere/all.png"}, ops.Shell, "png", "no such file"},
		"by an agent":                {[]string{"77", "--csv", "all.csv"}, ops.MCP, "csv", "in the shell only"},
		"samples of two":             {[]string{"77", "78", "--sample", "1"}, ops.Shell, "sample", "GPUs are sampled of one job"},
		"samples of a log":           {[]string{j.Stdout, "--sample", "1"}, ops.Shell, "sample", "GPUs are sampled of one job"},
		"a log that is not there":    {[]string{"/nowhere/x.out"}, ops.Shell, "job", "/nowhere/x.out"},
	} {
		c.Who.Surface = tt.surface
		_, err := opstest.Do(t, c, joblogs.Metrics(), tt.words...)
		require.ErrorContains(t, err, tt.says, name)
		require.Equal(t, tt.field, ops.AsError(err).Field, name)
		require.Equal(t, name == "nothing is to come", strings.Contains(ops.AsError(err).Fix.EN, "`diagnose 80` says how it ended"), name)
	}
}

// A rank's own log is followed, too; Slurm is asked once whether it belongs to the job.
func TestFollowingTellsWhatRanksWriteBeside(t *testing.T) { synctest.Test(t, followingBeside) }

func followingBeside(t *testing.T) {
	c, j := running(t, 0)
	s := c.Clusters["test"].(*opstest.Site)
	s.OfKind = "local"
	beside := filepath.Join(j.WorkDir, "rank-77.3.log")
	require.NoError(t, os.WriteFile(beside, []byte("loading\n"), 0o600))
	go func() {
		time.Sleep(3 * time.Second)
		_ = os.WriteFile(beside, []byte("loading\nrank 3 is ready\n"), 0o600)
		time.Sleep(3 * time.Second)
		j.State = slurm.Completed
		s.Put(j)
	}()
	var streamed strings.Builder
	c.Stream = func(text string) { streamed.WriteString(text) }
	_, err := opstest.Do(t, c, joblogs.Logs(), "77", "--follow")
	require.NoError(t, err)
	require.Contains(t, streamed.String(), "rank 3 is ready")
}

// Who sees the lines as they come, or sits at a shell, follows until the job ends; any
// other caller gets its answer before.
func TestFollowingLastsAsLongAsItsCallerCan(t *testing.T) {
	for name, tt := range map[string]struct {
		by             ops.Surface
		stream, values bool
		last           bool // the job's last line, of 50 s later, is seen
	}{
		"a person in a shell reads along":            {ops.Shell, true, false, true},
		"a shell whose output is text waits":         {ops.Shell, false, false, true},
		"a shell whose output is values reads along": {ops.Shell, false, true, true},
		"a session in a terminal reads along":        {ops.Chat, true, false, true},
		"an agent cannot interrupt it":               {ops.MCP, false, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, j := running(t, 0)
				s := c.Clusters["test"].(*opstest.Site)
				s.OfKind, c.Who.Surface = "local", tt.by
				var seen strings.Builder
				if tt.stream {
					c.Stream = func(text string) { seen.WriteString(text) }
				}
				if tt.values {
					c.Emit = func(v any) { seen.WriteString(v.(diagnose.Line).Text) }
				}
				time.AfterFunc(50*time.Second, func() {
					_ = os.WriteFile(filepath.Join(j.WorkDir, "rank-77.3.log"), []byte("the last line\n"), 0o600)
					j.State = slurm.Completed
					s.Put(j)
				})
				out, err := opstest.Do(t, c, joblogs.Logs(), "77", "--follow")
				require.NoError(t, err)
				require.Equal(t, tt.last, strings.Contains(seen.String()+opstest.Text(t, out, lang.EN), "the last line"))
			})
		})
	}
}

// A caller that cannot interrupt following gets an answer after 25 s, or with the
// newest 500 lines.
func TestAnAgentFollowsWithinBounds(t *testing.T) { synctest.Test(t, agentFollows) }

func agentFollows(t *testing.T) {
	for lines, tt := range map[int]struct {
		kept  int
		first string
		took  time.Duration
		title string
	}{
		499: {499, "line 1", 25 * time.Second, ""},
		500: {500, "line 1", 25 * time.Second, ""},
		501: {500, "line 2", 0, "the newest lines; there are others before them"},
	} {
		c, j := running(t, 0)
		var b strings.Builder
		for i := range lines {
			fmt.Fprintf(&b, "line %d\n", i+1)
		}
		require.NoError(t, os.WriteFile(j.Stdout, []byte(b.String()), 0o600))
		c.Who.Surface = ops.MCP
		began := time.Now()
		out, err := opstest.Do(t, c, joblogs.Logs(), "77", "--follow", "--tail", "600")
		require.NoError(t, err)
		require.Equal(t, tt.took, time.Since(began), lines)
		o := out.(joblogs.LogsOut)
		require.Len(t, o.Lines, tt.kept)
		require.Equal(t, tt.first, o.Lines[0].Text)
		require.Equal(t, tt.title, o.View(lang.EN).Title)
	}
}

// An answer without a tail is bounded, and says that there is more.
func TestTheFirstLinesOfALongLog(t *testing.T) {
	c, j := running(t, 0)
	j.State = slurm.Completed
	c.Clusters["test"].(*opstest.Site).Put(j)
	require.NoError(t, os.WriteFile(j.Stdout, []byte(strings.Repeat("x\n", 200_001)), 0o600))
	out, err := opstest.Do(t, c, joblogs.Logs(), "77")
	require.NoError(t, err)
	require.Len(t, out.(joblogs.LogsOut).Lines, 200_000)
	require.Equal(t, "the first lines; --tail shows the newest", out.(joblogs.LogsOut).View(lang.EN).Title)
}

// emptyLog makes a job with that state whose log has no line.
func emptyLog(now slurm.State) func(*slurm.Job) {
	return func(j *slurm.Job) {
		j.State = now
		_ = os.Truncate(j.Stdout, 0) // if this fails, the case fails
	}
}

// plainLog makes a job whose lines name no writer.
func plainLog(j *slurm.Job) { _ = os.WriteFile(j.Stdout, []byte("hello\n"), 0o600) }

// nodesLog makes a job with one log of each node.
func nodesLog(j *slurm.Job) {
	j.Nodes = []string{"gpu1", "gpu2"}
	for _, node := range j.Nodes {
		_ = os.WriteFile(strings.TrimSuffix(j.Stdout, ".out")+"-"+node+".out", []byte("hello\n"), 0o600)
	}
}

// Each line follows its writer. Where there are no lines, the answer says why.
func TestLinesOfALog(t *testing.T) {
	for name, tt := range map[string]struct {
		in    joblogs.LogsIn
		job   func(*slurm.Job)
		shows string
		err   string
	}{
		"each with its rank or file":      {shows: "gpt-77.out | loading\n  rank 3 | [rank3]: hello\n  rank 4 | [rank4]: hello\n"},
		"joined":                          {in: joblogs.LogsIn{Collapse: true}, shows: "× 2 ranks | [rank3]: hello"},
		"the newest":                      {in: joblogs.LogsIn{Tail: 1}, shows: "rank 4 | [rank4]: hello"},
		"of a rank that wrote none":       {in: joblogs.LogsIn{Rank: new(int)}, shows: "no lines of rank 0. Ranks with lines: 3-4"},
		"of a rank where none is named":   {in: joblogs.LogsIn{Rank: new(int)}, job: plainLog, shows: "no lines of rank 0. No line says which rank wrote it"},
		"of a node that has none":         {in: joblogs.LogsIn{Node: "gpu9", Level: "error"}, shows: "no lines of node gpu9, level error. Nodes with lines: n1"},
		"of a node among others":          {in: joblogs.LogsIn{Node: "gpu9"}, job: nodesLog, shows: "no lines of node gpu9. Nodes with lines: gpu[1-2]"},
		"fewer than none":                 {in: joblogs.LogsIn{Tail: -1}, err: "-1 is negative"},
		"before it starts there are none": {job: func(j *slurm.Job) { j.State, j.Stdout = slurm.Pending, "/nowhere/gpt-77.out" }, shows: "job 77 waits and has no log yet"},
		"of a log that stayed empty":      {in: joblogs.LogsIn{Rank: new(int)}, job: emptyLog(slurm.Failed), shows: "job 77 has ended, and its log is empty"},
		"of a log that is empty yet":      {in: joblogs.LogsIn{Tail: 5}, job: emptyLog(slurm.Running), shows: "job 77 has written nothing yet"},
		"afterwards there should be":      {job: func(j *slurm.Job) { j.State, j.Stdout = slurm.Failed, "/nowhere/gpt-77.out" }, err: "no log was found at /nowhere/gpt-77.out"},
	} {
		c, j := running(t, 0)
		j.State = slurm.Failed
		require.NoError(t, os.WriteFile(j.Stdout, []byte("loading\n[rank3]: hello\n[rank4]: hello\n"), 0o600))
		if tt.job != nil {
			tt.job(&j)
		}
		c.Clusters["test"].(*opstest.Site).Put(j)
		tt.in.Job = "77"
		out, err := joblogs.Logs().Run(t.Context(), c, &tt.in)
		if tt.err != "" {
			require.ErrorContains(t, err, tt.err, name)
			continue
		}
		require.NoError(t, err, name)
		require.Contains(t, opstest.Text(t, out, lang.EN), tt.shows, name)
	}
}
