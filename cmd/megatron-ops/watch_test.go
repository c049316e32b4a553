package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	tea "charm.land/bubbletea/v2"
	"charm.land/lipgloss/v2"
	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/ops/jobcontrol"
	"github.com/megatron-ops/megatron-ops/slurm"
)

func TestALiveTableEndsWithItsJobsOrAKey(t *testing.T) {
	seen := func(states ...slurm.State) jobsPoll {
		l := jobsPoll{at: time.Date(2026, 6, 1, 12, 0, 0, 0, time.Local)}
		for i, s := range states {
			l.list.Jobs = append(l.list.Jobs, slurm.Job{ID: slurm.JobID("1" + string(rune('0'+i))), Name: "gpt", State: s})
		}
		return l
	}
	quits := func(cmd tea.Cmd) bool {
		if cmd == nil {
			return false
		}
		_, is := cmd().(tea.QuitMsg) // or the message of the next poll, when its time has come
		return is
	}
	key := func(code rune, mod tea.KeyMod) tea.Msg { return tea.KeyPressMsg{Code: code, Mod: mod, Text: ""} }
	for name, c := range map[string]struct {
		named bool
		msgs  []tea.Msg
		quits bool
	}{
		"mine go on though all have ended": {false, []tea.Msg{seen(slurm.Completed)}, false},
		"named ones run":                   {true, []tea.Msg{seen(slurm.Completed, slurm.Running)}, false},
		"named ones have ended":            {true, []tea.Msg{seen(slurm.Running), seen(slurm.Completed)}, true},
		"none of the name is there yet":    {true, []tea.Msg{seen()}, false},
		"the first look fails":             {false, []tea.Msg{jobsPoll{err: errors.New("no answer")}}, true},
		"a later look fails":               {false, []tea.Msg{seen(slurm.Running), jobsPoll{err: errors.New("no answer")}}, false},
		"q":                                {false, []tea.Msg{seen(slurm.Running), key('q', 0)}, true},
		"another key":                      {false, []tea.Msg{seen(slurm.Running), key('x', 0)}, false},
		"Ctrl-C":                           {false, []tea.Msg{seen(slurm.Running), key('c', tea.ModCtrl)}, true},
	} {
		synctest.Test(t, func(t *testing.T) {
			table := &liveTable{sh: &shell{lang: lang.EN}, named: c.named}
			var cmd tea.Cmd
			for _, m := range c.msgs {
				_, cmd = table.Update(m)
			}
			require.Equal(t, c.quits, quits(cmd), name)
			require.Equal(t, name == "Ctrl-C", table.interrupted, name)
		})
	}
}

func TestALiveTableFitsItsTerminal(t *testing.T) {
	var list jobcontrol.ListOut
	for range 40 {
		list.Jobs = append(list.Jobs, slurm.Job{ID: "4711", Name: "a-name-of-some-length-for-a-job", User: "alice", Partition: "production", State: slurm.Running, Nodes: []string{"gpu1"}})
	}
	for _, width := range []int{40, 60, 100, 200} {
		table := &liveTable{sh: &shell{lang: lang.ZH}, width: width, height: 12, last: jobsPoll{list: list, at: time.Now()}}
		lines := strings.Split(table.View().Content, "\n")
		require.LessOrEqual(t, len(lines), 12)
		fit := lines
		if width < 60 { // too narrow for the table's columns, but not for the keys
			fit = lines[len(lines)-2:]
		}
		for _, l := range fit {
			require.LessOrEqual(t, lipgloss.Width(l), width)
		}
		require.Contains(t, strings.Join(lines[len(lines)-2:], ""), "q 退出，r 立即刷新", "at %d columns", width)
		table.height = 0
		whole := strings.Count(table.View().Content, "\n") + 1
		require.Contains(t, strings.Join(lines, "\n"), fmt.Sprintf("还有 %d 行", whole-len(lines)+1), "all but those that stand there")
		table.height = whole + 1
		require.NotContains(t, table.View().Content, "还有", "a table that just fits is whole")
	}
}

// The last table stays on the terminal after watch ends, and an error of the first poll
// is reported.
func TestALiveTableLeavesTheLastLook(t *testing.T) {
	for _, look := range []error{nil, slurm.ErrUnreachable} {
		r, w, err := os.Pipe()
		require.NoError(t, err)
		defer r.Close()
		defer w.Close()
		op := ops.Define(ops.Op{Name: "list", Effect: ops.Read}, func(context.Context, *ops.Call, jobcontrol.ListIn) (jobcontrol.ListOut, error) {
			return jobcontrol.ListOut{Jobs: []slurm.Job{{ID: "4711", Name: "gpt", State: slurm.Completed}}}, look
		})
		var out strings.Builder
		sh := &shell{streams: streams{in: &interruptibleReader{ctx: t.Context(), from: r}, out: &out, err: io.Discard}, lang: lang.EN}
		in := op.NewIn()
		in.(*jobcontrol.ListIn).Jobs = []slurm.JobID{"4711"}
		err = sh.watch(t.Context(), &ops.Call{Service: &ops.Service{Now: time.Now}, Lang: lang.EN}, op, in)
		require.ErrorIs(t, err, look)
		require.Equal(t, look == nil, strings.Contains(out.String(), "4711"), "%q", out.String())
	}
}

// A job that ended while the table was watched stays in it.
func TestALiveTableKeepsWhatEnded(t *testing.T) {
	shown := map[slurm.JobID]slurm.Job{}
	var asked []slurm.JobID
	look := func(running ...slurm.JobID) (states []slurm.State) {
		var found jobcontrol.ListOut
		for _, id := range running {
			found.Jobs = append(found.Jobs, slurm.Job{ID: id, State: slurm.Running})
		}
		require.NoError(t, addEnded(&found, shown, func(ids []slurm.JobID) (ended jobcontrol.ListOut, _ error) {
			for asked = ids; len(ids) > 0; ids = ids[1:] {
				ended.Jobs = append(ended.Jobs, slurm.Job{ID: ids[0], State: slurm.Failed})
			}
			return ended, nil
		}))
		for _, j := range found.Jobs {
			states = append(states, j.State)
		}
		return states
	}
	forgotten := map[slurm.JobID]slurm.Job{"7": {ID: "7", State: slurm.Running}}
	require.NoError(t, addEnded(&jobcontrol.ListOut{}, forgotten, func([]slurm.JobID) (jobcontrol.ListOut, error) {
		return jobcontrol.ListOut{}, ops.NotFoundError("job", lang.Text{}, lang.Text{})
	}), "a Slurm without accounts forgets its jobs")
	require.Equal(t, []slurm.State{slurm.Running, slurm.Running}, look("1", "2"))
	require.Nil(t, asked, "nothing has ended")
	require.Equal(t, []slurm.State{slurm.Running, slurm.Failed}, look("2"))
	require.Equal(t, []slurm.State{slurm.Running, slurm.Failed, slurm.Failed}, look("3"))
	require.Equal(t, []slurm.JobID{"2"}, asked, "what ended before is known")
}

// While Slurm does not answer, the table says that it is old, and why.
func TestALiveTableSaysThatItIsOld(t *testing.T) {
	table := &liveTable{sh: &shell{lang: lang.EN}, width: 60, height: 12}
	table.Update(jobsPoll{at: time.Now()})
	require.NotContains(t, table.View().Content, "not up to date")
	require.NotContains(t, table.View().Content, "list --all", "a command cannot be typed there")
	table.Update(jobsPoll{err: errors.New("no answer within 15s")})
	require.Contains(t, table.View().Content, "not up to date: no answer within 15s\n")
	table.Update(jobsPoll{at: time.Now()})
	require.NotContains(t, table.View().Content, "not up to date")
}

// TestALookThatTakesLongIsTakenLessOften pins how often the table is refreshed, and
// that it says so.
func TestALookThatTakesLongIsTakenLessOften(t *testing.T) {
	for took, pause := range map[time.Duration]string{0: "5s", time.Second: "5s", 15 * time.Second: "1m0s"} {
		table := &liveTable{sh: &shell{lang: lang.EN}, width: 80, height: 12, last: jobsPoll{at: time.Now(), took: took}}
		require.Contains(t, table.View().Content, "every "+pause+" ", "after a look of %s", took)
	}
}
