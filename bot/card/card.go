// Package card draws a job's message in Slack: what is known about the job, in each state, with
// its buttons. Package jobnews decides when a card is sent and edited.
package card

import (
	"cmp"
	"encoding/json"
	"math"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/view"
	"github.com/megatron-ops/megatron-ops/slurm"
	"github.com/megatron-ops/megatron-ops/slurm/metrics"
)

// News is what is known about a job. Zero values are unknown.
type News struct {
	Job slurm.Job
	// Position is the job's place, from 1, among the InLine jobs that wait for the same
	// partition. A negative Position means that the job is not in line.
	Position, InLine int

	Iteration   int
	Iterations  int
	Loss        *Number
	TFLOPs      *float64 // for each GPU
	SecondsEach float64  // seconds of one iteration
	MFU         *float64 // percent
	ETA         time.Duration
	// Curve holds points of the loss, including the first and the newest. LineAt is when the
	// log was last written to.
	Curve        []metrics.Point
	LineAt       time.Time
	Checkpoint   int // the iteration of the last checkpoint
	CheckpointAt time.Time
	Tracked      string // the URL of the run at its experiment tracker

	// Why says in a few words what went wrong and where: "GPU out of memory, rank 11 on gpu4". Says
	// is the same for a reader of either language; cards of earlier versions have none.
	// Cause is the diagnosis, with the root cause first. Class is the failure's class, and
	// Exclude are the nodes to avoid.
	Why     string
	Says    lang.Text
	Cause   *view.Doc
	Class   string
	Exclude []string
	// Fix says what the button "Apply fix and resubmit" would change. FixSays is the same for a
	// reader of either language; cards of earlier versions have none.
	Fix     []string
	FixSays []lang.Text
}

// actedFor is the longest time between a person's act and the end that it causes.
const actedFor = time.Hour

// LooksAfter names, below a card, who takes care of a failure.
var LooksAfter = lang.Text{EN: "👀 %s looks after it", ZH: "👀 %s 正在处理"}

// Act records that a person has ended the job, unless somebody was faster. bySwitch says that
// they turned on its kill switch, which can be taken back until the job ends; a cancellation,
// which cannot, takes its place.
func (k *Card) Act(who string, at time.Time, bySwitch bool) {
	if k.Acted == "" || at.Sub(k.ActedAt) > actedFor || k.BySwitch && !bySwitch {
		k.Acted, k.ActedAt, k.BySwitch = who, at, bySwitch
	}
}

// TakeBack records that the job's kill switch is off. It forgets who turned the switch on, but
// nobody who has cancelled the job, and nothing of an end that has happened.
func (k *Card) TakeBack() {
	if k.BySwitch && k.EndedAt.IsZero() {
		k.Acted, k.BySwitch = "", false
	}
}

// EndedBy returns the person who has ended the job; it is empty where nobody has.
func (k Card) EndedBy() string {
	if k.EndedAt.Sub(k.ActedAt) > actedFor {
		return ""
	}
	return k.Acted
}

// FixIn returns Fix in the reader's language.
func (n News) FixIn(l lang.Lang) []string {
	if len(n.FixSays) != len(n.Fix) {
		return n.Fix
	}
	said := make([]string, len(n.FixSays))
	for i, x := range n.FixSays {
		said[i] = x.In(l)
	}
	return said
}

// A Number may be one that is not finite, such as the loss of a run that diverged. JSON has no such
// numbers, so they are stored as text.
type Number float64

// String returns the number with four significant digits.
func (n Number) String() string { return strconv.FormatFloat(float64(n), 'g', 4, 64) }

// MarshalJSON writes a number, or text for one that is not finite.
func (n Number) MarshalJSON() ([]byte, error) {
	if v := float64(n); math.IsNaN(v) || math.IsInf(v, 0) {
		return json.Marshal(n.String())
	}
	return json.Marshal(float64(n))
}

// UnmarshalJSON reads what MarshalJSON writes.
func (n *Number) UnmarshalJSON(raw []byte) error {
	v, err := strconv.ParseFloat(strings.Trim(string(raw), `"`), 64)
	*n = Number(v)
	return err
}

// A Card is a job's message. There is one in each place that follows the job, and it is edited
// as long as the job lives.
type Card struct {
	Team     string    `json:"team"`
	User     string    `json:"user"` // the person who asked for the job; empty where the request did not come from Slack
	Approver string    `json:"approver,omitempty"`
	Lang     lang.Lang `json:"lang,omitempty"`
	// Acted is the person who ended the job last, and ActedAt is when.
	Acted   string    `json:"acted,omitempty"`
	ActedAt time.Time `json:"acted_at,omitzero"`
	// BySwitch says that Acted turned on the job's kill switch.
	BySwitch bool `json:"by_switch,omitempty"`
	// Taken is the person who takes care of a failure, and TakenAt is since when.
	Taken   string    `json:"taken,omitempty"`
	TakenAt time.Time `json:"taken_at,omitzero"`
	Places  []Place   `json:"places"`
	Muted   []string  `json:"muted,omitempty"` // the people who muted the job
	News    News      `json:"news"`
	Began   time.Time `json:"began"`
	EndedAt time.Time `json:"ended_at,omitzero"`
	Edits   int       `json:"edits"`
	Page    string    `json:"-"` // URL of the job's page; empty where no page is served
}

// A Place is a channel or a person that has a card of the job.
type Place struct {
	Team    string    `json:"team"`
	Channel string    `json:"channel"` // or a user id
	Hash    string    `json:"hash,omitempty"`
	Edited  time.Time `json:"edited,omitzero"`
	// Pictured is the last quarter of the run for which the loss was sent as a picture.
	Pictured int `json:"pictured,omitempty"`
	// Moved counts the moves of a request for approval, where this is a place of one: a request that
	// comes back to a place is posted there anew.
	Moved int `json:"moved,omitempty"`
}

// ID returns the id of a job's card.
func ID(cluster string, id slurm.JobID) string { return cluster + "/" + string(id) }

// Key returns the outbox key of the card's message in a place.
func (p Place) Key(id string) string { return "card/" + id + "@" + p.Team + "/" + p.Channel }

// Keep returns n with its zero fields filled in from before.
func (n News) Keep(before News) News {
	to, from := reflect.ValueOf(&n).Elem(), reflect.ValueOf(before)
	for i := range to.NumField() {
		if f := to.Field(i); f.IsZero() {
			f.Set(from.Field(i))
		}
	}
	return n
}

// The actions of the buttons that submit a job once more.
const (
	ActAgain = "again" // value: CLUSTER/ID; opens the form with the job's fields
	ActAvoid = "avoid" // value: CLUSTER/ID NODES, or CLUSTER/ID where the card has the nodes; asks for confirmation
)

// The actions of the buttons that continue a run.
const (
	ActMend   = "mend"   // value: CLUSTER/ID; submits the job with the fix from its diagnosis
	ActExtend = "extend" // value: CLUSTER/ID; submits one more job that waits for the end of the chain
)

// ActTake is the action of the button by which a person takes care of a failure; its value is
// CLUSTER/ID.
const ActTake = "take"

// ActMenu is the action of a card's menu. An entry's value is the action of a button, a space,
// and that button's value.
const ActMenu = "menu"

// reason says in a few words what went wrong; it is empty where that is unknown.
func (n News) reason(l lang.Lang) string {
	if said := cmp.Or(n.Says.In(l), n.Why); said != "" || n.Cause == nil {
		return said
	}
	return n.Cause.Title
}
