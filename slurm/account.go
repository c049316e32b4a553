package slurm

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/lang"
)

// accountFields are the columns of an accounting query. ParseAccounts relies on the
// first column having no line break. Columns with free text of the user come last.
// Restarts and the output paths are missing because Slurm 22.05 has no such columns.
var accountFields = []column[Job]{
	{"JobID", func(j *Job, v string) { j.ID = JobID(v) }},
	{"JobIDRaw", func(j *Job, v string) {
		if v != string(j.ID) {
			j.RawID = JobID(v)
		}
	}},
	{"State", func(j *Job, v string) {
		j.State = ParseState(v)
		if _, who, ok := strings.Cut(v, " by "); ok {
			j.Reason = "by uid " + who
		}
	}},
	{"ExitCode", func(j *Job, v string) {
		if j.State.Ended() {
			j.ExitCode = exitCode(v)
		}
	}},
	{"User", func(j *Job, v string) { j.User = v }},
	{"Account", func(j *Job, v string) { j.Account = v }},
	{"Partition", func(j *Job, v string) { j.Partition = v }},
	{"QOS", func(j *Job, v string) { j.QOS = emptyIfNone(v) }},
	{"NNodes", func(j *Job, v string) { j.NumNodes = parseCount(v) }},
	{"NodeList", func(j *Job, v string) { j.Nodes = nodesOf(v) }},
	{"ElapsedRaw", func(j *Job, v string) { j.ElapsedS, _ = strconv.ParseInt(v, 10, 64) }},
	{"TimelimitRaw", func(j *Job, v string) { j.TimeLimitS = parseLimit(v) }}, // in minutes
	{"Submit", func(j *Job, v string) { j.SubmittedAt = ParseTime(v) }},
	{"Start", func(j *Job, v string) { j.StartedAt = ParseTime(v) }},
	{"End", func(j *Job, v string) {
		if j.State.Ended() || j.State == Requeued {
			j.EndedAt = ParseTime(v)
		}
	}},
	{"Priority", func(j *Job, v string) {
		if n, err := strconv.ParseInt(v, 10, 64); err == nil {
			j.Priority = &n
		}
	}},
	{"AllocTRES", func(j *Job, v string) { j.GPUs = gpusInTRES(v) }},
	{"Reason", func(j *Job, v string) {
		if j.Reason == "" {
			j.Reason = emptyIfNone(v)
		}
	}},
	{"WorkDir", func(j *Job, v string) { j.WorkDir = v }},
	{"JobName", func(j *Job, v string) { j.Name = v }},
	{"Comment", func(j *Job, v string) { j.Comment = v }},
}

// AccountFormat is the value of sacct --format that ParseAccounts expects.
func AccountFormat() string { return strings.Trim(columnFormat(accountFields, ","), ",") }

// ParseAccounts reads the output of sacct --parsable2 --noheader --allocations
// --duplicates --delimiter=sep --format=AccountFormat(), run with SLURM_TIME_FORMAT=%s.
// It folds the records of a requeued job into one. As with QueueFormat, sep must be
// unpredictable.
func ParseAccounts(out, sep string) ([]Job, error) {
	records, err := splitAccounts(out, sep, len(accountFields))
	if err != nil {
		return nil, err
	}
	return FoldRuns(rowsOf(accountFields, records)), nil
}

// splitAccounts splits the output of sacct --parsable2 --noheader --delimiter=sep into
// records of n fields, of which the first contains no line break. With an error it
// returns the records before the fault.
func splitAccounts(out, sep string, n int) (records [][]string, err error) {
	out = strings.TrimSuffix(out, "\n")
	if out == "" {
		return nil, nil
	}
	pieces := strings.Split(out, sep)
	width := n - 1 // separators of one record
	if (len(pieces)-1)%width != 0 {
		err = lang.Text{
			EN: "sacct's answer is cut short: %d separators are no multiple of %d",
			ZH: "sacct 的输出不完整：%d 个分隔符不是 %d 的倍数",
		}.Err(len(pieces)-1, width)
	}
	first := pieces[0]
	for p := 1; p+width-1 < len(pieces); p += width {
		values := slices.Concat([]string{first}, pieces[p:p+width])
		// The piece between two records holds the last field, which may contain line
		// breaks, then a line break, then the first field of the next record.
		if p+width < len(pieces) {
			last := values[width]
			cut := strings.LastIndexByte(last, '\n')
			if cut < 0 {
				return records, lang.Text{EN: "sacct's answer has no line break after job %s", ZH: "sacct 的输出在作业 %s 之后没有换行"}.Err(first)
			}
			values[width], first = last[:cut], last[cut+1:]
		}
		records = append(records, values)
	}
	return records, err
}

// FoldRuns merges the records of each requeued job into one job. The records of a job
// come oldest first, as sacct lists them. Where a site has begun to count its jobs anew,
// the newest job has the id.
func FoldRuns(records []Job) []Job {
	var jobs []Job
	at := map[JobID]int{}
	for _, j := range records {
		i, seen := at[j.ID]
		switch {
		case !seen:
			at[j.ID] = len(jobs)
			jobs = append(jobs, j)
		case jobs[i].SameJob(j):
			jobs[i] = afterRequeue(jobs[i], j)
		default:
			jobs[i] = j
		}
	}
	return jobs
}

// SameJob reports whether two records with one id can be of one job: they can unless
// they name two users.
func (j *Job) SameJob(o Job) bool { return j.User == "" || o.User == "" || j.User == o.User }

// afterRequeue returns the record of a job's next run, extended by the ends of the runs
// before it.
func afterRequeue(before, now Job) Job {
	now.Requeues = append(slices.Clone(before.Requeues), before.State)
	now.Earlier = append(slices.Clone(before.Earlier), before.Last())
	now.Restarts = len(now.Requeues)
	return now
}

// An AccountsError says that the accounts gave no answer, or only a part of it, although the
// queue did.
type AccountsError struct{ Err error }

// Error returns what the accounts said.
func (e *AccountsError) Error() string { return e.Err.Error() }

// Unwrap returns the error of the accounts.
func (e *AccountsError) Unwrap() error { return e.Err }

// WithPast adds to the queue's jobs those ended jobs of the accounts that have left the
// queue, and to a requeued job in the queue its earlier runs. failed is the error of the
// accounts; it becomes an AccountsError.
func WithPast(jobs, past []Job, match func(Job) bool, failed error) ([]Job, error) {
	queued := map[JobID]int{}
	for i, j := range jobs {
		queued[j.ID] = i
	}
	for _, j := range past {
		switch i, is := queued[j.ID]; {
		case is:
			jobs[i].RunsBefore(j)
		case j.State.Ended() && match(j):
			jobs = append(jobs, j)
		}
	}
	if failed != nil {
		return jobs, &AccountsError{failed}
	}
	return jobs, nil
}

// RunsBefore adds to a job of the queue the earlier runs in its record of the accounts.
// The newest record may be of the present run, which may begin and end in the second of
// its submission. Slurm takes the end of a run for the submission of the next.
func (j *Job) RunsBefore(known Job) {
	if j.SubmittedAt == nil || !j.SameJob(known) {
		return
	}
	for _, r := range append(slices.Clone(known.Earlier), known.Last()) {
		present := r.SubmittedAt != nil && !r.SubmittedAt.Before(*j.SubmittedAt)
		if (r.State.Ended() || r.State == Requeued) && !present && r.StartedAt != nil && r.EndedAt != nil && !r.EndedAt.After(*j.SubmittedAt) {
			j.Earlier, j.Requeues = append(j.Earlier, r), append(j.Requeues, r.State)
		}
	}
	j.Restarts = max(j.Restarts, len(j.Requeues))
}

// PathFormat is the value of sacct --format that AddPaths expects.
const PathFormat = "JobID,StdOut,StdErr"

// AddPaths sets the paths of j's output files from the output of sacct --parsable2
// --noheader --delimiter=sep --format=PathFormat: from j's own line, or else from the
// first line of its array or heterogeneous job.
func AddPaths(j *Job, out, sep string) {
	for line := range strings.Lines(out) {
		f := strings.Split(strings.TrimSuffix(line, "\n"), sep)
		if len(f) != 3 || JobID(f[0]).Array() != j.ID.Array() || f[1] == "" {
			continue
		}
		of := *j
		of.ID = JobID(f[0])
		if j.Stdout == "" || f[0] == string(j.ID) {
			j.Stdout, j.Stderr = ExpandPattern(f[1], of), ExpandPattern(cmp.Or(f[2], f[1]), of)
		}
	}
}
