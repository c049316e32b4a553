package scan

import (
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/lazy"
)

// inEpilogue reports whether a line belongs to the account of the job that a site's epilogue writes, whose
// lines are not the program's last words. A job's row with another state than success is.
func (s *scanner) inEpilogue(text string) bool {
	const longest = 50 // lines
	switch {
	case epilogue.MatchString(text):
		s.epilogueTo = s.Lines + longest
	case s.Lines <= s.epilogueTo && !strings.ContainsAny(text, ":,|") && !strings.ContainsAny(text[:1], drawn):
		s.epilogueTo = 0 // no row of an account: another run was appended
	}
	return s.Lines <= s.epilogueTo && !accountedLost.MatchString(text)
}

// epilogue matches the heading of such an account, as PACE, NHR@FAU, SURF and KIT write it.
var epilogue = lazy.On("pilog|STATISTICS|FEEDBACK", `^\W*(?:Begin|Start)(?:ning)?(?: of)?(?: [A-Za-z]+)? [Ee]pilog(?:ue)?\b|^(?:=+ )?JOB[ _](?:STATISTICS|FEEDBACK)\b`)

// accounted matches the row of a batch system's account of a job, which an epilogue appends to the log,
// that says that the job's script completed: seff(1)'s and PBS's.
var accounted = lazy.New(`^(?:Job )?State\s*: COMPLETED\b|^(?:\s+Exit (?:Status|Code|Value): +|Exit (?:Status|Code|Value):\s{2,})0$`)

// accountedLost matches a job's or step's row in a table of sacct(1) whose state is none of a job that did
// its work. Scripts print such a table as their last command. Only a state that fills its column has a
// single space before it.
var accountedLost = lazy.New(`^\s*\d+(?:_\d+)?(?:\.\w+)?\+?(?:[ |].*)?` +
	`(?:(?:  |\|)(?:FAILED|TIMEOUT|CANCELLED|OUT_OF_ME|NODE_FAIL|PREEMPTED|BOOT_FAIL|DEADLINE)| (?:CANCELLED|OUT_OF_ME)\+)`)
