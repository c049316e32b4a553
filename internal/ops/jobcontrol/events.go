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

// EventsOut holds the events, oldest first, and the cursor for the next call.
type EventsOut struct {
	Events []Event `json:"events"`
	// NextSince is the since of the next call. It skips no event and repeats none.
	NextSince string `json:"next_since"`
}

// An Event is one change in a job's life.
type Event struct {
	At    time.Time   `json:"at"`
	Job   slurm.JobID `json:"job_id"`
	Name  string      `json:"name"`
	What  string      `json:"event"` // submitted, started, requeued (with the state in which the run ended) or ended
	State slurm.State `json:"state,omitempty"`
	Exit  *string     `json:"exit_code,omitempty"`
	// Restarts is how often the job had been requeued before this start.
	Restarts int `json:"restarts,omitempty"`
}

// Events returns the operation events.
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
	// eventsLate is how late a cluster's accounting may report an event. Each answer
	// covers at least this much of the past again.
	eventsLate = 2 * time.Minute
	// maxKeys is the most events that a cursor lists by their keys.
	maxKeys = 64
)

// An eventCursor says which events were already reported: all events before at, and the
// later events whose keys it lists.
type eventCursor struct {
	at   time.Time
	keys []string
}

func (m eventCursor) String() string {
	s := m.at.UTC().Format(time.RFC3339)
	if len(m.keys) > 0 {
		s += "~" + strings.Join(m.keys, ",")
	}
	return s
}

func parseSince(s string, now time.Time) (eventCursor, error) {
	at, keys, _ := strings.Cut(s, "~")
	if d, err := time.ParseDuration(at); err == nil && d > 0 {
		return eventCursor{at: now.Add(-d).Truncate(time.Second)}, nil
	}
	when, err := time.Parse(time.RFC3339, at)
	if err != nil {
		return eventCursor{}, ops.InputError("since",
			lang.Text{EN: "%q is no time", ZH: "%q 不是时间"}.With(s),
			lang.Text{EN: "next_since of an earlier answer, a time such as 2026-11-21T08:00:00Z, or 6h", ZH: "上次结果的 next_since、时间（如 2026-11-21T08:00:00Z）或 6h"})
	}
	m := eventCursor{at: when}
	if keys != "" {
		m.keys = strings.Split(keys, ",")
	}
	return m, nil
}

// key identifies an event in a cursor.
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
	next := eventCursor{at: now.Add(-eventsLate).Truncate(time.Second)}
	if next.at.Before(since.at) {
		next.at = since.at
	}
	for _, e := range all {
		if e.At.Before(since.at) {
			continue
		}
		if !slices.Contains(since.keys, e.key()) {
			out.Events = append(out.Events, e)
		}
		if !e.At.Before(next.at) {
			next.keys = append(next.keys, e.key())
		}
	}
	if len(next.keys) > maxKeys { // too many for a cursor: events that are reported late are skipped
		next = eventCursor{at: all[len(all)-1].At.Add(time.Second)}
	}
	out.NextSince = next.String()
	return out, nil
}

// eventsOf derives a job's events from its times.
func eventsOf(j slurm.Job) []Event {
	var all []Event
	add := func(at *time.Time, e Event) {
		if at != nil {
			e.At, e.Job, e.Name = at.Truncate(time.Second), j.ID, j.Name
			all = append(all, e)
		}
	}
	submitted := j.SubmittedAt
	if len(j.Earlier) > 0 { // Slurm takes the last requeue for the submission
		submitted = j.Earlier[0].SubmittedAt
	}
	add(submitted, Event{What: "submitted"})
	for i, r := range j.Earlier {
		add(r.StartedAt, Event{What: "started", Restarts: i})
		add(r.EndedAt, Event{What: "requeued", State: r.State})
	}
	add(j.StartedAt, Event{What: "started", Restarts: j.Restarts})
	if j.State.Ended() {
		add(j.EndedAt, Event{What: "ended", State: j.State, Exit: j.ExitCode})
	}
	return all
}

var eventWords = map[string]lang.Text{
	"submitted": {EN: "submitted", ZH: "已提交"},
	"started":   {EN: "started", ZH: "已开始"},
	"requeued":  {EN: "put back into the queue after", ZH: "已放回队列，上一次运行为"},
	"ended":     {EN: "ended", ZH: "已结束"},
}

// View shows a table of the events.
func (o EventsOut) View(l lang.Lang) view.Doc {
	d := view.Doc{Title: lang.Text{EN: "nothing has happened since then", ZH: "此后没有事件"}.In(l)}
	if len(o.Events) > 0 {
		d.Title = lang.Text{EN: "events: %d", ZH: "%d 个事件"}.With(len(o.Events)).In(l)
		t := &view.Table{Header: view.Columns(l, "time|job|name|event", "时间|作业|名称|事件")}
		for _, e := range o.Events {
			what := eventWords[e.What].In(l)
			if e.State != "" {
				what += " " + string(e.State)
			}
			if e.Restarts > 0 {
				what += lang.Text{EN: ", restart %d", ZH: "，第 %d 次重启"}.With(e.Restarts).In(l)
			}
			t.Rows = append(t.Rows, []string{e.At.Local().Format(time.DateTime), string(e.Job), e.Name, what})
		}
		d.Sections = []view.Section{{Table: t}}
	}
	d.Next = []string{"events --since '" + o.NextSince + "'"}
	return d
}
