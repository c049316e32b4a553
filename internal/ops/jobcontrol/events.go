package jobcontrol

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/view"
	"github.com/megatron-ops/megatron-ops/slurm"
)

// EventsIn says since when.
type EventsIn struct {
	Since string `json:"since,omitempty" placeholder:"WHEN" help:"next_since of an earlier answer, a time such as 2026-11-21T08:00:00Z, or 6h; 1h where left out" zh:"上次结果的 next_since、时间（如 2026-11-21T08:00:00Z）或 6h；省略为 1h"`
	ops.OnCluster
}

// EventsOut is what happened, oldest first, and where to go on.
type EventsOut struct {
	Events []Event `json:"events"`
	// NextSince is the since of the next question: it misses nothing and tells nothing twice.
	NextSince string `json:"next_since"`
}

// An Event is something that happened to a job.
type Event struct {
	At    time.Time   `json:"at"`
	Job   slurm.JobID `json:"job_id"`
	Name  string      `json:"name"`
	What  string      `json:"event"` // submitted, started, ended
	State slurm.State `json:"state,omitempty"`
	Exit  *string     `json:"exit_code,omitempty"`
	// Restarts is how often the job had been put back into the queue before this start.
	Restarts int `json:"restarts,omitempty"`
}

// Events is the operation events.
func Events() ops.Op {
	return ops.Define(ops.Op{
		Name: "events", Effect: ops.Read, Toolset: ops.JobsSet,
		Summary: lang.Text{EN: "what happened to my jobs since an earlier answer or a time", ZH: "自上次结果或某时刻以来我的作业发生了什么"},
		Help: lang.Text{
			EN: "Use to catch up instead of asking for each job: submissions, starts and ends, also of what happened while nobody asked. Give next_since back to go on.",
			ZH: "无需逐个查询作业即可了解进展：提交、开始、结束，包括无人查询期间发生的。把 next_since 传回即可继续。",
		},
		Example: "events --since 6h",
	}, events)
}

const (
	// eventsLate is how much later than it happened a cluster's accounting may tell
	// of a thing: that far back is looked again.
	eventsLate = 2 * time.Minute
	// mostTold bounds the events that a cursor names as told.
	mostTold = 64
)

// A sinceMark is a cursor: everything before At was told, and of what is later
// the events named.
type sinceMark struct {
	at   time.Time
	told []string
}

func (m sinceMark) String() string {
	s := m.at.UTC().Format(time.RFC3339)
	if len(m.told) > 0 {
		s += "~" + strings.Join(m.told, ",")
	}
	return s
}

func parseSince(s string, now time.Time) (sinceMark, error) {
	at, told, _ := strings.Cut(s, "~")
	if d, err := time.ParseDuration(at); err == nil && d > 0 {
		return sinceMark{at: now.Add(-d).Truncate(time.Second)}, nil
	}
	when, err := time.Parse(time.RFC3339, at)
	if err != nil {
		return sinceMark{}, ops.InputError("since",
			lang.Text{EN: "%q is no time", ZH: "%q 不是时间"}.With(s),
			lang.Text{EN: "next_since of an earlier answer, a time such as 2026-11-21T08:00:00Z, or 6h", ZH: "上次结果的 next_since、时间（如 2026-11-21T08:00:00Z）或 6h"})
	}
	m := sinceMark{at: when}
	if told != "" {
		m.told = strings.Split(told, ",")
	}
	return m, nil
}

// key names an event in a cursor.
func (e Event) key() string {
	sum := sha256.Sum256([]byte(fmt.Sprint(e.Job, e.What, e.At.Unix())))
	return hex.EncodeToString(sum[:3])
}

func events(ctx context.Context, c *ops.Call, in EventsIn) (EventsOut, error) {
	out := EventsOut{Events: []Event{}}
	in.Since = cmp.Or(in.Since, "1h")
	now := c.Now()
	since, err := parseSince(in.Since, now)
	if err != nil {
		return out, err
	}
	cl, err := c.Cluster(in.Cluster)
	if err != nil {
		return out, err
	}
	jobs, err := c.LookAll(ctx, cl, slurm.Filter{User: c.Who.User, Since: since.at})
	if err != nil {
		return out, c.SlurmError(err, "")
	}
	var all []Event
	for _, j := range jobs {
		all = append(all, eventsOf(j)...)
	}
	slices.SortStableFunc(all, func(a, b Event) int { return a.At.Compare(b.At) })
	next := sinceMark{at: now.Add(-eventsLate).Truncate(time.Second)}
	if next.at.Before(since.at) {
		next.at = since.at
	}
	for _, e := range all {
		if e.At.Before(since.at) {
			continue
		}
		if !slices.Contains(since.told, e.key()) {
			out.Events = append(out.Events, e)
		}
		if !e.At.Before(next.at) {
			next.told = append(next.told, e.key())
		}
	}
	if len(next.told) > mostTold { // many at once: what is told late of them is let go
		next = sinceMark{at: all[len(all)-1].At.Add(time.Second)}
	}
	out.NextSince = next.String()
	return out, nil
}

// eventsOf is what a job's times tell.
func eventsOf(j slurm.Job) []Event {
	var all []Event
	add := func(at *time.Time, e Event) {
		if at != nil {
			e.At, e.Job, e.Name = at.Truncate(time.Second), j.ID, j.Name
			all = append(all, e)
		}
	}
	add(j.SubmittedAt, Event{What: "submitted"})
	add(j.StartedAt, Event{What: "started", Restarts: j.Restarts})
	if j.State.Ended() {
		add(j.EndedAt, Event{What: "ended", State: j.State, Exit: j.ExitCode})
	}
	return all
}

var eventWords = map[string]lang.Text{
	"submitted": {EN: "submitted", ZH: "已提交"},
	"started":   {EN: "started", ZH: "已开始"},
	"ended":     {EN: "ended", ZH: "已结束"},
}

// View is a table of the events.
func (o EventsOut) View(l lang.Lang) view.Doc {
	d := view.Doc{Title: lang.Text{EN: "nothing happened since", ZH: "此后没有事件"}.In(l)}
	if len(o.Events) > 0 {
		d.Title = lang.Text{EN: "events: %d", ZH: "%d 个事件"}.With(len(o.Events)).In(l)
		t := &view.Table{Header: []string{
			lang.Text{EN: "time", ZH: "时间"}.In(l), lang.Text{EN: "job", ZH: "作业"}.In(l),
			lang.Text{EN: "name", ZH: "名称"}.In(l), lang.Text{EN: "event", ZH: "事件"}.In(l),
		}}
		for _, e := range o.Events {
			what := eventWords[e.What].In(l)
			if e.State != "" {
				what += " " + string(e.State)
			}
			if e.Restarts > 0 {
				what += lang.Text{EN: ", restart %d", ZH: "，第 %d 次重启"}.With(e.Restarts).In(l)
			}
			t.Rows = append(t.Rows, []string{e.At.Local().Format("2006-01-02 15:04:05"), string(e.Job), e.Name, what})
		}
		d.Sections = []view.Section{{Table: t}}
	}
	d.Next = []string{"events --since '" + o.NextSince + "'"}
	return d
}
