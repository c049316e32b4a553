package main

import (
	"context"
	"fmt"
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

// watchCommand is list --watch under a word of its own.
func watchCommand(ctx context.Context, sh *shell, words []string) error {
	return sh.operation(ctx, watchOp(), append([]string{"--watch"}, words...))
}

var watchSummary = lang.Text{
	EN: "my jobs, or the named ones: iteration, loss and time left, kept up to date (list --watch)",
	ZH: "我的作业或指定作业的迭代、损失与剩余时间，持续刷新（即 list --watch）",
}

// watchOp is list by the name that was typed, for what is said of its flags.
func watchOp() ops.Op {
	op, _ := operations.Lookup("list")
	op.Name, op.Summary, op.Example, op.Examples = "watch", watchSummary, "watch", []string{"watch 4711"}
	return op
}

// watchPause is between two looks at the jobs, at least; lookShare is how much longer
// than a look it is, so that many jobs' logs do not keep a login node busy.
const (
	watchPause = 5 * time.Second
	lookShare  = 4
)

// watches reports whether an input asks for a table that is drawn anew, where there
// is a terminal to draw it on.
func (sh *shell) watches(ins []any) bool {
	if len(ins) != 1 || sh.json || !isTerminal(sh.out) || !isTerminal(sh.in) {
		return false
	}
	in, ok := ins[0].(*jobcontrol.ListIn)
	return ok && in.Watch
}

// watch draws the table until q is pressed, or all of the jobs that were named have
// ended, and leaves the last one on the terminal.
func (sh *shell) watch(ctx context.Context, call *ops.Call, op ops.Op, in any) error {
	t := &liveTable{sh: sh, look: func() looked {
		began := time.Now()
		out, err := op.Run(ctx, call, in)
		list, _ := out.(jobcontrol.ListOut)
		return looked{list: list, err: err, at: call.Now(), took: time.Since(began)}
	}}
	if named, ok := in.(*jobcontrol.ListIn); ok {
		t.named = len(named.Jobs) > 0
	}
	if input, ok := sh.in.(*input); ok {
		_, err := tea.NewProgram(t, tea.WithContext(ctx), tea.WithInput(input.from), tea.WithOutput(sh.out), tea.WithoutSignalHandler()).Run()
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

// A looked is one look at the jobs.
type looked struct {
	list jobcontrol.ListOut
	err  error
	at   time.Time
	took time.Duration
}

// pause is how long the next look waits.
func (l looked) pause() time.Duration {
	return max(watchPause, (lookShare * l.took).Round(time.Second))
}

// A liveTable is the table as Bubble Tea runs it.
type liveTable struct {
	sh            *shell
	look          func() looked
	last          looked
	named         bool // jobs were: it ends with them
	interrupted   bool
	width, height int
}

type again struct{}

// Init takes the first look.
func (t *liveTable) Init() tea.Cmd { return func() tea.Msg { return t.look() } }

// Update takes what has come: a look, a key, a new size.
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
	case again:
		return t, t.Init()
	case looked:
		if m.err != nil && t.last.at.IsZero() {
			t.last = m
			return t, tea.Quit
		}
		if m.err == nil { // else the old table stays, with its time
			t.last = m
		}
		if t.over() {
			return t, tea.Quit
		}
		return t, tea.Tick(m.pause(), func(time.Time) tea.Msg { return again{} })
	}
	return t, nil
}

// over reports whether every job that was named has ended.
func (t *liveTable) over() bool {
	waits := func(j slurm.State) bool { return !j.Ended() }
	var states []slurm.State
	for _, j := range t.last.list.Jobs {
		states = append(states, j.State)
	}
	return t.named && len(states) > 0 && !slices.ContainsFunc(states, waits)
}

// View is the table, as much of it as the terminal holds, above the keys.
func (t *liveTable) View() tea.View {
	var b strings.Builder
	if !t.last.at.IsZero() && t.last.err == nil {
		_ = view.Text(&b, t.last.list.View(t.sh.lang), view.Style{Color: t.sh.color, Width: t.width}) // a Builder takes all
	}
	lines := strings.Split(strings.TrimRight(b.String(), "\n"), "\n")
	const foot = 2
	if room := t.height - foot - 1; t.height > 0 && len(lines) > room && room > 0 {
		more := lang.Text{EN: "  … %d more", ZH: "  … 还有 %d 行"}.With(len(lines) - room).In(t.sh.lang)
		lines = append(lines[:room], more)
	}
	keys := lang.Text{EN: "%s · every %s · q quits, r looks now", ZH: "%s · 每 %s 刷新 · q 退出，r 立即刷新"}
	at := "…"
	if !t.last.at.IsZero() {
		at = t.last.at.Local().Format(time.TimeOnly)
	}
	v := tea.NewView(strings.Join(lines, "\n") + "\n\n" + fmt.Sprint(keys.With(at, t.last.pause()).In(t.sh.lang)))
	v.AltScreen = true
	return v
}
