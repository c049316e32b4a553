package scan

import (
	"slices"
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/lazy"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/logline"
)

// An Account is what Slurm's accounting says of a job that has ended: the output of seff(1), or the job's row
// in a table of sacct(1).
type Account struct {
	Mark
	Jobs        []string // the job's ids; of an array's task its own id and "4711_3"; none if the lines do not tell
	State, Exit string   // as printed: "OUT_OF_ME+", "1:0"
	Before      int      // sentences of the log before the account
	Behind      int      // sentences after it
	rows        int      // sentences of its own after the line with the state
	ran         ranBefore
}

// accounts are the accounts in a file, and the job that the lines are about.
type accounts struct {
	all   []Account
	jobs  []string // under the heading of seff's output
	until int      // the number of the line to which that output may extend
	table int      // the number of the line to which the table of the last "JobID" may extend
	head  int      // sentences before the heading of either
}

const (
	seffHead    = 6   // lines to the one with the state
	seffRows    = 7   // lines after that
	sacctRows   = 100 // lines
	mostAccount = 64  // accounts of one file
)

var (
	seffState = lazy.New(`^State: ([A-Z_]+) \(exit code (\d+)`)
	// sacctState matches the states of a job in a row; those of narrow columns end with a plus sign.
	sacctState = lazy.New(`[ |](RUNNING|PENDING|COMPLETED|FAILED|TIMEOUT|CANCELLED|OUT_OF_MEMORY|OUT_OF_ME|NODE_FAIL|PREEMPTED|BOOT_FAIL|DEADLINE)(\+)?(?: by \d+)?(?:[ |]|$)`)
	sacctExit  = lazy.New(`[ |](\d{1,3}:\d{1,3})(?:[ |]|$)`)
)

// account reads a line of Slurm's accounting. Within the job, both programs call it running, which says nothing.
func (s *scanner) account(text string, off int64) {
	a := &s.accounts
	switch c := text[0]; {
	case len(a.all) >= mostAccount:
	case c == 'J' && strings.HasPrefix(text, "Job ID: "):
		a.jobs, a.until, a.head = []string{text[len("Job ID: "):]}, s.Lines+seffHead, s.Ran.Sentences
	case c == 'A' && strings.HasPrefix(text, "Array Job ID: ") && s.Lines <= a.until:
		a.jobs = append(a.jobs, text[len("Array Job ID: "):])
	case c == 'S':
		if g := seffState.FindStringSubmatch(text); g != nil {
			if s.Lines > a.until {
				a.jobs, a.head = nil, s.Ran.Sentences
			}
			m := Mark{Off: off, Text: text, At: s.now}
			a.all = append(a.all, Account{Mark: m, Jobs: a.jobs, State: g[1], Exit: g[2] + ":0", Before: a.head, rows: seffRows, ran: s.Ran})
		}
	case (c == ' ' || c == 'J') && strings.HasPrefix(strings.TrimLeft(text, " "), "JobID"):
		a.table, a.head = s.Lines+sacctRows, s.Ran.Sentences
	case (c == ' ' || logline.Digit(c)) && s.Lines <= a.table:
		text = strings.TrimLeft(text, " ")
		id := text[:min(len(text), strings.IndexFunc(text+" ", func(r rune) bool { return r != '_' && (r < '0' || r > '9') }))]
		row := text[len(id):]
		if n := len(a.all); n > 0 && strings.HasPrefix(row, ".") && slices.Contains(a.all[n-1].Jobs, id) {
			a.all[n-1].rows++ // a step of the same job
		}
		if g := sacctState.FindStringSubmatch(row); g != nil && id != "" && strings.ContainsAny(row[:1], " |") {
			exit := ""
			if e := sacctExit.FindStringSubmatch(row); e != nil {
				exit = e[1]
			}
			m := Mark{Off: off, Text: text, At: s.now}
			a.all = append(a.all, Account{Mark: m, Jobs: []string{id}, State: g[1] + g[2], Exit: exit, Before: a.head, ran: s.Ran})
		}
	}
}

// Accounts returns the accounts of jobs at the end of a log.
func (f *Facts) Accounts() (last []Account) {
	for _, a := range f.accounts.all {
		behind := f.Ran.Sentences - a.ran.Sentences
		a.Behind = max(0, behind-a.rows-1)
		if a.ran.Phases == f.Ran.Phases && behind <= 2*LongTail && !f.iteratedSince(a.Off) {
			last = append(last, a)
		}
	}
	return last
}
