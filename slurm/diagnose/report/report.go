// Package report holds the result of a diagnosis: its fields, which are the JSON of the command line,
// MCP and the job pages; its texts in both languages; answers to follow-up questions; and the advice
// that fits the job.
package report

import (
	"strings"
	"time"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/logfile"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/outcome"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/python"
)

// A Report is the result of a diagnosis. Its JSON is a public contract; unknown values are null. Texts
// from logs are free of control characters and secrets.
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
	Runs      int           `json:"runs,omitempty"` // runs in one log, of which the last is judged
	SinceS    *int64        `json:"seconds_without_progress,omitempty"`
	LastIter  *int          `json:"last_iteration,omitempty"`
	Evidence  []Evidence    `json:"evidence"`
	// PassedOver are errors in the logs that are no cause, because their process went on.
	PassedOver []PassedOver `json:"passed_over,omitempty"`
	Notes      []string     `json:"notes,omitempty"`

	// Notes come from Clocks (nodes whose clocks were corrected), RanksRead (how many ranks have a log
	// of their own) and NoLog (why a job has no log).
	Clocks    []Clock   `json:"clocks,omitempty"`
	RanksRead int       `json:"ranks_read,omitempty"`
	NoLog     lang.Text `json:"-"`

	// Why names the step of the method that decided. Laggard says how the rank is known for which a
	// collective waited: behind, other, recorder, named, exit, silent or unheard. Or it says why no rank is named: unlogged,
	// where a node has no log; quiet, where all of a node's just stop; unreached, where several nodes could not reach one;
	// unprefixed, where one rank's lines do not name it; local, where they name only its number on its node. Or it is all, where
	// all raised the same, and RootRank is that of the line shown.
	Why     string `json:"why,omitempty"`
	Laggard string `json:"laggard,omitempty"`
	// Collective is the collective that the laggard never entered.
	Collective string  `json:"collective,omitempty"`
	Missed     *Missed `json:"missed,omitempty"`
	// MissedBy are all ranks that never entered it, if there are several.
	MissedBy []int `json:"missed_by,omitempty"`
	// Stacks are the py-spy dumps in the logs, smallest group first. Fit is the change of flags that
	// avoids an out-of-memory error. Rules are the ids of launch rules that explain a refusal. Peer is
	// the address and node that could not be reached. Differs are the start markers that differ between
	// nodes.
	Stacks  []StackGroup `json:"stacks,omitempty"`
	Fit     *Fit         `json:"fit,omitempty"`
	Rules   []string     `json:"rules,omitempty"`
	Peer    string       `json:"peer,omitempty"`
	Differs []string     `json:"differs,omitempty"`
	// ImportKind says why a module was not found, and ImportRoot is the checkout that shows it.
	ImportKind ImportKind `json:"import_kind,omitempty"`
	ImportRoot string     `json:"import_root,omitempty"`
	// Already lists the conditions of remedies that the job meets already or cannot meet; see AsksFor.
	Already []string `json:"already,omitempty"`
	// OnlyRanks are the ranks whose logs are present, if logs of other ranks are missing.
	OnlyRanks []int `json:"only_ranks,omitempty"`
	// Behind names the ranks for which a hanging job waits, if the logs show them.
	Behind *Behind `json:"behind,omitempty"`

	// Unreadable are the logs that could not be read.
	Unreadable []logfile.Unreadable `json:"unreadable,omitempty"`
	// LeftOut are documents beside the logs. They are read only if they are named.
	LeftOut []string `json:"left_out,omitempty"`
	// OtherJobs are logs in the folder of jobs older than the newest. OtherLogs are logs with the
	// job's number that are another job's, with the reason. Neither were read.
	OtherJobs []string             `json:"other_jobs,omitempty"`
	OtherLogs []logfile.Unreadable `json:"other_logs,omitempty"`
	// StepS is the usual time of an iteration and AgeS the age of the newest line. MayHang says that a
	// running job has been silent for longer than a few iterations take.
	StepS   *float64 `json:"seconds_per_iteration,omitempty"`
	AgeS    *int64   `json:"last_line_age_s,omitempty"`
	MayHang bool     `json:"may_hang,omitempty"`
	// ExitCode and State are Slurm's, given only if nothing else is known of the end. For
	// a job that Slurm preempted or requeued, State is which of the two.
	ExitCode string `json:"exit_code,omitempty"`
	State    string `json:"job_state,omitempty"`

	offered bool // see Offered
}

// Evidence is one line on which the verdict rests.
type Evidence struct {
	File   string     `json:"file"`
	LineNo int        `json:"line_no"`
	Rank   *int       `json:"rank"`
	Node   string     `json:"node,omitempty"`
	Time   *time.Time `json:"time"`
	Text   string     `json:"text"`
	Why    string     `json:"why"` // cause, same cause, downstream, earlier attempt, last sign, start
}

// A PassedOver is an error after which its process went on, with the number of lines and of reported
// iterations that followed it in its file before the cause.
type PassedOver struct {
	File       string `json:"file"`
	LineNo     int    `json:"line_no"`
	Rank       *int   `json:"rank"`
	Text       string `json:"text"`
	Lines      int    `json:"lines_after"`
	Iterations int    `json:"iterations_after"`
}

// Layout is the parallel layout that the run printed.
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

// QuietClass reports whether a class has no line as its cause.
func QuietClass(class string) bool {
	return class == outcome.Success || class == outcome.Running || class == outcome.Hang
}

// A StackGroup is a set of ranks whose main threads have the same stack in the output of `py-spy dump`,
// innermost frame first.
type StackGroup struct {
	Ranks  []int    `json:"ranks"` // -1 for an unknown rank
	Frames []string `json:"frames"`
}

// leftOut names the files that were not read, and why.
func (r Report) leftOut(l lang.Lang) string {
	var all []string
	for _, o := range []struct {
		files []string
		why   lang.Text
	}{
		{r.OtherJobs, said("%s, of jobs before the newest in this folder", "%s，属于该目录中较早的作业")},
		{r.LeftOut, said("%s", "%s")},
	} {
		if len(o.files) > 0 {
			all = append(all, o.why.With(logfile.Few(o.files)).In(l))
		}
	}
	for i, o := range r.OtherLogs {
		if i == 3 {
			all = append(all, said("and %d more of other jobs", "另有 %d 个属于其他作业").With(len(r.OtherLogs)-i).In(l))
			break
		}
		all = append(all, o.Said().In(l))
	}
	if len(all) == 0 {
		return ""
	}
	return said("%s; name a file to read it", "%s；直接给出文件名即可读取").With(strings.Join(all, said("; ", "；").In(l))).In(l)
}

func said(en, zh string) lang.Text { return lang.Text{EN: en, ZH: zh} }
