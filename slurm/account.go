package slurm

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/lang"
)

// An accountField is one column asked of sacct --format.
type accountField struct {
	name string
	set  func(j *Job, value string)
}

// accountFields are the columns of an accounting query. The first cannot hold a
// line break, which ParseAccounts rests on; what a user can write freely comes
// last. Restarts and the output paths are left out: 22.05 does not have them.
var accountFields = []accountField{
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
	{"QOS", func(j *Job, v string) { j.QOS = none(v) }},
	{"NNodes", func(j *Job, v string) { j.NumNodes = parseCount(v) }},
	{"NodeList", func(j *Job, v string) { j.Nodes = nodesOf(v) }},
	{"ElapsedRaw", func(j *Job, v string) { j.ElapsedS, _ = strconv.ParseInt(v, 10, 64) }},
	{"TimelimitRaw", func(j *Job, v string) { j.TimeLimitS = parseLimit(v) }}, // minutes
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
			j.Reason = none(v)
		}
	}},
	{"WorkDir", func(j *Job, v string) { j.WorkDir = v }},
	{"JobName", func(j *Job, v string) { j.Name = v }},
	{"Comment", func(j *Job, v string) { j.Comment = v }},
}

// AccountFormat is the --format to give sacct for ParseAccounts.
func AccountFormat() string {
	names := make([]string, len(accountFields))
	for i, f := range accountFields {
		names[i] = f.name
	}
	return strings.Join(names, ",")
}

// ParseAccounts reads what sacct --parsable2 --noheader --allocations
// --duplicates --delimiter=sep printed in AccountFormat, with
// SLURM_TIME_FORMAT=%s in its environment. The records of a requeued job are
// folded into one. As with QueueFormat, sep must be unforeseeable.
func ParseAccounts(out, sep string) ([]Job, error) {
	out = strings.TrimSuffix(out, "\n")
	if out == "" {
		return nil, nil
	}
	pieces := strings.Split(out, sep)
	width := len(accountFields) - 1 // separators of one record
	if (len(pieces)-1)%width != 0 {
		return nil, lang.Text{
			EN: "sacct's answer is cut short: %d separators are no multiple of %d",
			ZH: "sacct 的输出不完整：%d 个分隔符不是 %d 的倍数",
		}.Err(len(pieces)-1, width)
	}
	var jobs []Job
	id := pieces[0]
	for p := 1; p+width-1 < len(pieces); p += width {
		var j Job
		accountFields[0].set(&j, id)
		for i := 1; i < width; i++ {
			accountFields[i].set(&j, pieces[p+i-1])
		}
		// Between two records stands the last field, which may hold line breaks, a
		// line break, and the next record's job id, which cannot.
		last := pieces[p+width-1]
		if p+width < len(pieces) {
			cut := strings.LastIndexByte(last, '\n')
			if cut < 0 {
				return nil, lang.Text{EN: "sacct's answer has no line break after job %s", ZH: "sacct 的输出在作业 %s 之后没有换行"}.Err(j.ID)
			}
			last, id = last[:cut], last[cut+1:]
		}
		accountFields[width].set(&j, last)
		jobs = append(jobs, j)
	}
	return FoldRuns(jobs), nil
}

// FoldRuns makes one job of the records of each requeued job, which the accounts give
// oldest first.
func FoldRuns(records []Job) []Job {
	var jobs []Job
	at := map[JobID]int{}
	for _, j := range records {
		if i, seen := at[j.ID]; seen {
			jobs[i] = afterRequeue(jobs[i], j)
			continue
		}
		at[j.ID] = len(jobs)
		jobs = append(jobs, j)
	}
	return jobs
}

// afterRequeue is the record of a job's next run, with how the runs before
// ended.
func afterRequeue(before, now Job) Job {
	now.Requeues = append(slices.Clone(before.Requeues), before.State)
	now.Earlier = append(slices.Clone(before.Earlier), before.Last())
	now.Restarts = len(now.Requeues)
	return now
}

// PathFormat is the --format to give sacct for AddPaths.
const PathFormat = "JobID,StdOut,StdErr"

// AddPaths fills in the names of j's output files from what sacct --parsable2
// --noheader --delimiter=sep printed in PathFormat: of j itself, or of its first
// part.
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
