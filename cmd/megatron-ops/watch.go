package main

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/ops/jobcontrol"
	"github.com/megatron-ops/megatron-ops/internal/ops/operations"
	"github.com/megatron-ops/megatron-ops/internal/view"
	"github.com/megatron-ops/megatron-ops/slurm"
)

// watchCommand is list --watch under a name of its own.
func watchCommand() command {
	op, _ := operations.Lookup("list")
	op.Name, op.Example, op.Examples = "watch", "watch", []string{"watch 4711"}
	op.Summary = lang.Text{
		EN: "my jobs, or the named ones: iteration, loss and time left, kept up to date (list --watch)",
		ZH: "我的作业或指定作业的迭代、损失与剩余时间，持续刷新（即 list --watch）",
	}
	return command{op, func(ctx context.Context, sh *shell, words []string) error {
		return sh.operation(ctx, op, append([]string{"--watch"}, words...))
	}}
}

// minPollPause is the shortest pause between two polls of the jobs. The pause is at
// least pollPauseFactor times as long as a poll, so that reading many jobs' logs does
// not keep a login node busy.
const (
	minPollPause    = 5 * time.Second
	pollPauseFactor = 4
)

// wantsLiveTable reports whether an input asks for a live table and there is a terminal
// to draw it on.
func (sh *shell) wantsLiveTable(ins []any) bool {
	if len(ins) != 1 || sh.json || !canDraw(sh.out) || !isTerminal(sh.in) {
		return false
	}
	in, ok := ins[0].(*jobcontrol.ListIn)
	return ok && in.Watch
}

// watch draws the table until q is pressed or all named jobs have ended. It leaves the
// last table on the terminal.
func (sh *shell) watch(ctx context.Context, call *ops.Call, op ops.Op, in any) error {
	t := &liveTable{sh: sh}
	asked, _ := in.(*jobcontrol.ListIn)
	t.named = asked != nil && len(asked.Jobs) > 0
	list := func(in any) (jobcontrol.ListOut, error) {
		out, err := op.Run(ctx, call, in)
		list, _ := out.(jobcontrol.ListOut)
		return list, err
	}
	shown := map[slurm.JobID]slurm.Job{}
	t.poll = func() jobsPoll {
		began := time.Now()
		found, err := list(in)
		if err == nil && asked != nil && !t.named {
			err = addEnded(&found, shown, func(ids []slurm.JobID) (jobcontrol.ListOut, error) {
				return list(&jobcontrol.ListIn{Jobs: ids, User: cmp.Or(asked.User, call.Who.User), OnCluster: asked.OnCluster})
			})
		}
		return jobsPoll{list: found, err: err, at: call.Now(), took: time.Since(began)}
	}
	if input, ok := sh.in.(*interruptibleReader); ok {
		_, err := tea.NewProgram(t, tea.WithContext(ctx), tea.WithInput(input.from), tea.WithOutput(file(sh.out)), tea.WithoutSignalHandler()).Run()
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil {
			return err
		}
	}
	if t.last.err != nil {
		return t.last.err
	}
	if t.interrupted {
		return exitCode(130)
	}
	return sh.show(t.last.list)
}

// addEnded adds the jobs that were shown before and have ended since: nobody who looks
// away for a moment should miss that a job has failed. A job that has ended does not
// change, so that list is asked for it once.
func addEnded(found *jobcontrol.ListOut, shown map[slurm.JobID]slurm.Job, list func([]slurm.JobID) (jobcontrol.ListOut, error)) error {
	gone := maps.Clone(shown)
	for _, j := range found.Jobs {
		shown[j.ID] = j
		delete(gone, j.ID)
	}
	ids := slices.Sorted(maps.Keys(gone))
	unknown := slices.DeleteFunc(slices.Clone(ids), func(id slurm.JobID) bool { return gone[id].State.Ended() })
	var err error
	if len(unknown) > 0 {
		var asked jobcontrol.ListOut
		asked, err = list(unknown)
		if e := ops.AsError(err); e != nil && e.Code == ops.NotFound { // a Slurm without accounts forgets its jobs
			err = nil
		}
		for _, j := range asked.Jobs {
			shown[j.ID] = j
		}
	}
	for _, id := range ids {
		if shown[id].State.Ended() {
			found.Jobs = append(found.Jobs, shown[id])
		}
	}
	return err
}

// A jobsPoll is the result of one poll of the jobs.
type jobsPoll struct {
	list jobcontrol.ListOut
	err  error
	at   time.Time
	took time.Duration
}

// pause is how long the next poll waits.
func (l jobsPoll) pause() time.Duration {
	return max(minPollPause, (pollPauseFactor * l.took).Round(time.Second))
}

// A liveTable is the table as a Bubble Tea model.
type liveTable struct {
	sh            *shell
	poll          func() jobsPoll
	last          jobsPoll
	failed        error // of the newest poll: the table shows an earlier one
	named         bool  // jobs were named: the table ends with them
	interrupted   bool
	width, height int
}

type pollMsg struct{}

// Init starts the first poll.
func (t *liveTable) Init() tea.Cmd { return func() tea.Msg { return t.poll() } }

// Update handles a poll, a key or a new size.
func (t *liveTable) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch m := msg.(type) {
	case tea.WindowSizeMsg:
		t.width, t.height = m.Width, m.Height
	case tea.KeyPressMsg:
		switch m.String() {
		case "ctrl+c":
			t.interrupted = true
			return t, tea.Quit
		case "q", "esc":
			return t, tea.Quit
		case "r":
			return t, t.Init()
		}
	case pollMsg:
		return t, t.Init()
	case jobsPoll:
		if m.err != nil && t.last.at.IsZero() {
			t.last = m
			return t, tea.Quit
		}
		if t.failed = m.err; m.err == nil { // otherwise the old table stays, with its time
			t.last = m
		}
		if t.allEnded() {
			return t, tea.Quit
		}
		return t, tea.Tick(m.pause(), func(time.Time) tea.Msg { return pollMsg{} })
	}
	return t, nil
}

func (t *liveTable) allEnded() bool {
	waits := func(j slurm.State) bool { return !j.Ended() }
	var states []slurm.State
	for _, j := range t.last.list.Jobs {
		states = append(states, j.State)
	}
	return t.named && len(states) > 0 && !slices.ContainsFunc(states, waits)
}

// View is as much of the table as the terminal holds, above the keys.
func (t *liveTable) View() tea.View {
	var b strings.Builder
	if !t.last.at.IsZero() && t.last.err == nil {
		doc := t.last.list.View(t.sh.lang)
		doc.Next = nil                                                        // nothing can be typed below a live table
		_ = view.Text(&b, doc, view.Style{Color: t.sh.color, Width: t.width}) // a strings.Builder never fails
	}
	lines := strings.Split(strings.TrimRight(b.String(), "\n"), "\n")
	var stale strings.Builder
	if t.failed != nil {
		says := lang.Text{EN: "not up to date: %s", ZH: "不是最新状态：%s"}.With(lang.Said(t.failed)).In(t.sh.lang)
		_ = view.Text(&stale, view.Doc{Title: says, Tone: view.Warn}, view.Style{Color: t.sh.color, Width: t.width})
	}
	at := "…"
	if !t.last.at.IsZero() {
		at = t.last.at.Local().Format(time.TimeOnly)
	}
	keys := lang.Text{EN: "%s · every %s · q quits, r looks now", ZH: "%s · 每 %s 刷新 · q 退出，r 立即刷新"}.With(at, t.last.pause()).In(t.sh.lang)
	foot := stale.String() + strings.TrimRight(view.Behind("", keys, t.width), "\n")
	if room := t.height - strings.Count(foot, "\n") - 3; t.height > 0 && len(lines) > room && room > 0 {
		more := lang.Text{EN: "  … %d more", ZH: "  … 还有 %d 行"}.With(len(lines) - room).In(t.sh.lang)
		lines = append(lines[:room], more)
	}
	v := tea.NewView(strings.Join(lines, "\n") + "\n\n" + foot)
	v.AltScreen = true
	return v
}
