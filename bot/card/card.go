// Package card is a job's message in Slack: what is known of the job, and how its
// card is drawn in each state, with its buttons. When it is sent and edited is
// decided in package bot.
package card

import (
	"reflect"
	"time"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/view"
	"github.com/megatron-ops/megatron-ops/slurm"
	"github.com/megatron-ops/megatron-ops/slurm/metrics"
)

// News is what the watcher has seen of a job. Zero values are not known.
type News struct {
	Job slurm.Job
	// Position is the job's place among the InLine jobs that wait for the same
	// partition, from 1; below 0: it is not in line.
	Position, InLine int

	Iteration   int
	Iterations  int
	Loss        *float64
	TFLOPs      *float64 // a GPU
	SecondsEach float64  // of an iteration
	MFU         *float64 // percent
	ETA         time.Duration
	// Curve are points of the loss, the first and the newest among them, and LineAt
	// is when the log was written to last.
	Curve        []metrics.Point
	LineAt       time.Time
	Checkpoint   int // the iteration of the last one
	CheckpointAt time.Time
	Tracked      string // the run's address at its tracker of experiments

	// Why is what went wrong in a few words, with its place: "GPU out of memory, rank
	// 11 on gpu4". Cause is the diagnosis, root cause first; Class is its class and
	// Exclude are the nodes to avoid.
	Why     string
	Cause   *view.Doc
	Class   string
	Exclude []string
	// Fix says what a button would change before it submits the job again.
	Fix []string
}

// A Card is a job's message: one in each place that follows the job, edited in
// place for as long as the job lives.
type Card struct {
	Team     string    `json:"team"`
	User     string    `json:"user"` // who asked for the job; empty: not from Slack
	Approver string    `json:"approver,omitempty"`
	Lang     lang.Lang `json:"lang,omitempty"`
	Acted    string    `json:"acted,omitempty"` // who changed it last
	// Taken is who looks after a failure, and since when.
	Taken   string    `json:"taken,omitempty"`
	TakenAt time.Time `json:"taken_at,omitzero"`
	Places  []Place   `json:"places"`
	Muted   []string  `json:"muted,omitempty"` // people
	News    News      `json:"news"`
	Began   time.Time `json:"began"`
	EndedAt time.Time `json:"ended_at,omitzero"`
	Edits   int       `json:"edits"`
	Page    string    `json:"-"` // the job's page; empty where browsers reach none
}

// A Place is where a card stands.
type Place struct {
	Team    string    `json:"team"`
	Channel string    `json:"channel"` // or a user's id
	Hash    string    `json:"hash,omitempty"`
	Edited  time.Time `json:"edited,omitzero"`
	// Pictured is the last quarter of the run of which the loss is shown as a picture.
	Pictured int `json:"pictured,omitempty"`
}

// ID names a job's card.
func ID(cluster string, id slurm.JobID) string { return cluster + "/" + string(id) }

// Key names the card's message in a place.
func (p Place) Key(id string) string { return "card/" + id + "@" + p.Team + "/" + p.Channel }

// Keep fills in from before what this news does not tell.
func (n News) Keep(before News) News {
	to, from := reflect.ValueOf(&n).Elem(), reflect.ValueOf(before)
	for i := range to.NumField() {
		if f := to.Field(i); f.IsZero() {
			f.Set(from.Field(i))
		}
	}
	return n
}

// The buttons that submit a job once more.
const (
	ActAgain = "again" // value: CLUSTER/ID; opens the form with the job's fields
	ActAvoid = "avoid" // value: CLUSTER/ID NODES; asks for a yes
)

// The buttons that carry a run on.
const (
	ActMend   = "mend"   // value: CLUSTER/ID; submits the job with its diagnosis' fix
	ActExtend = "extend" // value: CLUSTER/ID; one more job that waits for its end
)

// ActTake is the button by which somebody says that they look after a failure;
// its value is CLUSTER/ID.
const ActTake = "take"

// ActMenu is the menu of a card. The value of an entry is the action of a button,
// a space, and that button's value.
const ActMenu = "menu"

// reason is what went wrong in a few words; empty where that is not known.
func (n News) reason() string {
	if n.Why == "" && n.Cause != nil {
		return n.Cause.Title
	}
	return n.Why
}
