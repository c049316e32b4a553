// Package report is the answer to what broke: its fields, which are the JSON of the
// command line, MCP and the job pages, its words in both languages, what follow-up
// questions are answered from it, and the advice that fits the job.
package report

import (
	"strings"
	"time"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/logfile"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/outcome"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/python"
)

// A Report is the answer to what broke. Its JSON is the contract's; unknown
// values are null. All text from logs is clean and free of secrets.
type Report struct {
	Class           string   `json:"class"`
	Retry           bool     `json:"retry"`
	RootFile        string   `json:"root_file"`
	RootLineNo      *int     `json:"root_line_no"`
	RootLine        string   `json:"root_line"`
	RootRank        *int     `json:"root_rank"`
	RootNode        *string  `json:"root_node"`
	ExcludeNodes    []string `json:"exclude_nodes"`
	DownstreamRanks int      `json:"downstream_ranks"`
	Summary         string   `json:"summary"`
	Advice          []string `json:"advice"`

	Who       string        `json:"who"`
	Phase     string        `json:"phase,omitempty"`
	Traceback *python.Frame `json:"traceback,omitempty"`
	Memory    *Memory       `json:"memory,omitempty"`
	Layout    *Layout       `json:"layout,omitempty"`
	Attempts  int           `json:"attempts"`
	Runs      int           `json:"runs,omitempty"` // of one file, of which the last is judged
	SinceS    *int64        `json:"seconds_without_progress,omitempty"`
	LastIter  *int          `json:"last_iteration,omitempty"`
	Evidence  []Evidence    `json:"evidence"`
	Notes     []string      `json:"notes,omitempty"`

	// Clocks, RanksRead and NoLog are what the notes say: nodes whose clocks were
	// corrected, how many ranks have a log of their own, and why a job has none.
	Clocks    []Clock   `json:"clocks,omitempty"`
	RanksRead int       `json:"ranks_read,omitempty"`
	NoLog     lang.Text `json:"-"`

	// Why names the step of the method that decided, and Laggard the rank
	// that a collective waited for.
	Why     string `json:"why,omitempty"`
	Laggard string `json:"laggard,omitempty"`
	// Collective is the one that the laggard never entered.
	Collective string  `json:"collective,omitempty"`
	Missed     *Missed `json:"missed,omitempty"`
	// MissedBy are all ranks that never entered it, where they are several.
	MissedBy []int `json:"missed_by,omitempty"`
	// Stacks are what py-spy dumps in the logs show, the smallest group first.
	// Fit is the change that would fit after an out-of-memory error, Rules the
	// rows of the rules table that explain a refusal, Peer the address and node
	// that could not be reached, and Differs the start markers that are not the
	// same on all nodes.
	Stacks  []StackGroup `json:"stacks,omitempty"`
	Fit     *Fit         `json:"fit,omitempty"`
	Rules   []string     `json:"rules,omitempty"`
	Peer    string       `json:"peer,omitempty"`
	Differs []string     `json:"differs,omitempty"`
	// ImportKind is why a module was not found, and ImportRoot the checkout that
	// shows it.
	ImportKind ImportKind `json:"import_kind,omitempty"`
	ImportRoot string     `json:"import_root,omitempty"`
	// Already is what remedies of the class ask for and the job has, or cannot have.
	Already []string `json:"already,omitempty"`
	// OnlyRanks are the ranks whose logs are here, where those of others are not.
	OnlyRanks []int `json:"only_ranks,omitempty"`
	// Behind is who a hanging job waits for, where the logs show it.
	Behind *Behind `json:"behind,omitempty"`

	// Unreadable is what could not be read.
	Unreadable []logfile.Unreadable `json:"unreadable,omitempty"`
	// LeftOut are documents beside the logs, which are read where they are named.
	LeftOut []string `json:"left_out,omitempty"`
	// OtherJobs are logs of jobs before the newest in the folder, and Older those that were
	// written last before the job started: they tell nothing of it and were not read.
	OtherJobs []string `json:"other_jobs,omitempty"`
	Older     []string `json:"older,omitempty"`
	// StepS is the usual time of an iteration, AgeS the age of the newest line,
	// and MayHang whether that is longer than a few iterations, of a job that runs.
	StepS   *float64 `json:"seconds_per_iteration,omitempty"`
	AgeS    *int64   `json:"last_line_age_s,omitempty"`
	MayHang bool     `json:"may_hang,omitempty"`
	// ExitCode and State are Slurm's, where they are all that is known of an end.
	ExitCode string `json:"exit_code,omitempty"`
	State    string `json:"job_state,omitempty"`

	offered bool // see Offered
}

// Evidence is one line that the answer rests on.
type Evidence struct {
	File   string     `json:"file"`
	LineNo int        `json:"line_no"`
	Rank   *int       `json:"rank"`
	Node   string     `json:"node,omitempty"`
	Time   *time.Time `json:"time"`
	Text   string     `json:"text"`
	Why    string     `json:"why"` // cause, same cause, downstream, earlier attempt, last sign, start
}

// Layout is what the run printed of its own shape.
type Layout struct {
	WorldSize      int `json:"world_size,omitempty"`
	TP             int `json:"tp,omitempty"`
	PP             int `json:"pp,omitempty"`
	CP             int `json:"cp,omitempty"`
	DP             int `json:"dp,omitempty"`
	EP             int `json:"ep,omitempty"`
	MicroBatchSize int `json:"micro_batch_size,omitempty"`
	SeqLength      int `json:"seq_length,omitempty"`
}

// Found reports whether something is wrong with the job.
func (r Report) Found() bool { return r.Class != outcome.Success && r.Class != outcome.Running }

// QuietClass reports whether a class has no line that is its cause.
func QuietClass(class string) bool {
	return class == outcome.Success || class == outcome.Running || class == outcome.Hang
}

// A StackGroup is the ranks whose main threads stand at the same place, by the
// output of `py-spy dump`, innermost frame first.
type StackGroup struct {
	Ranks  []int    `json:"ranks"` // -1 for a rank that is not known
	Frames []string `json:"frames"`
}

// leftOut names what was not read, and why.
func (r Report) leftOut(l lang.Lang) string {
	var all []string
	for _, o := range []struct {
		files []string
		why   lang.Text
	}{
		{r.OtherJobs, said("%s, of earlier jobs than the newest in this folder", "%s，属于该目录中较早的作业")},
		{r.Older, said("%s, last written before the job started", "%s，最后写入时间早于作业启动")},
		{r.LeftOut, said("%s", "%s")},
	} {
		if len(o.files) > 0 {
			all = append(all, o.why.With(logfile.Few(o.files)).In(l))
		}
	}
	if len(all) == 0 {
		return ""
	}
	return said("%s; a file that is named is read", "%s；直接给出文件名即可读取").With(strings.Join(all, said("; ", "；").In(l))).In(l)
}

func said(en, zh string) lang.Text { return lang.Text{EN: en, ZH: zh} }
