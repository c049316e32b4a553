package slurm

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/lang"
)

// A queueField is one column asked of squeue --format.
type queueField struct {
	code string
	set  func(j *Job, value string)
}

// queueFields are the columns of a queue listing. What a user can write freely
// comes last.
var queueFields = []queueField{
	{"%i", func(j *Job, v string) { j.ID = JobID(v) }},
	{"%A", func(j *Job, v string) {
		if v != string(j.ID) {
			j.RawID = JobID(v)
		}
	}},
	{"%T", func(j *Job, v string) { j.State = ParseState(v) }},
	{"%r", func(j *Job, v string) { j.Reason = none(v) }},
	{"%u", func(j *Job, v string) { j.User = v }},
	{"%a", func(j *Job, v string) { j.Account = none(v) }},
	{"%P", func(j *Job, v string) { j.Partition = v }},
	{"%q", func(j *Job, v string) { j.QOS = none(v) }},
	{"%D", func(j *Job, v string) { j.NumNodes = parseCount(v) }},
	{"%N", func(j *Job, v string) { j.Nodes = nodesOf(v) }},
	{"%M", func(j *Job, v string) {
		if d, ok := ParseDuration(v); ok {
			j.ElapsedS = int64(d.Seconds())
		}
	}},
	{"%l", func(j *Job, v string) { j.TimeLimitS = parseLimit(v) }},
	{"%V", func(j *Job, v string) { j.SubmittedAt = ParseTime(v) }},
	// squeue's start is an estimate while the job waits, and its end one while
	// the job runs.
	{"%S", func(j *Job, v string) {
		if j.State == Pending {
			j.EstStart = j.estimated(ParseTime(v))
		} else {
			j.StartedAt = ParseTime(v)
		}
	}},
	{"%e", func(j *Job, v string) {
		if j.State.Ended() {
			j.EndedAt = ParseTime(v)
		}
	}},
	{"%Q", func(j *Job, v string) {
		n := int64(parseCount(v))
		j.Priority = &n
	}},
	{"%b", func(j *Job, v string) { j.GPUs = gpusPerNode(v) * max(j.NumNodes, 1) }},
	{"%Z", func(j *Job, v string) { j.WorkDir = v }},
	{"%j", func(j *Job, v string) { j.Name = v }},
	{"%k", func(j *Job, v string) { j.Comment = none(v) }},
}

// QueueFormat is the format to give squeue for ParseQueue. sep stands between
// the fields and must be a string that nobody can foresee: a job's name may hold
// any character, but not a random one chosen after it.
func QueueFormat(sep string) string {
	codes := make([]string, len(queueFields))
	for i, f := range queueFields {
		codes[i] = f.code
	}
	return sep + strings.Join(codes, sep) + sep
}

// ParseQueue reads what squeue --noheader printed in QueueFormat(sep), with
// SLURM_TIME_FORMAT=%s in its environment.
func ParseQueue(out, sep string) ([]Job, error) {
	records, err := split(out, sep, len(queueFields))
	if err != nil {
		return nil, lang.Text{EN: "squeue's answer: %s", ZH: "squeue 的输出：%s"}.Err(err)
	}
	jobs := make([]Job, 0, len(records))
	for _, values := range records {
		var j Job
		for i, f := range queueFields {
			f.set(&j, values[i])
		}
		jobs = append(jobs, j)
	}
	return jobs, nil
}

// split splits records of n fields, each record written as sep f1 sep … fn sep
// and a line break. Splitting at sep gives n+1 pieces a record, the first of
// which is what stood between two records.
func split(out, sep string, n int) ([][]string, error) {
	if strings.TrimSpace(out) == "" {
		return nil, nil
	}
	pieces := strings.Split(out, sep)
	if len(pieces)%(n+1) != 1 {
		return nil, lang.Text{EN: "cut short: %d pieces are no multiple of %d", ZH: "不完整：%d 段不是 %d 的倍数"}.Err(len(pieces)-1, n+1)
	}
	records := make([][]string, 0, len(pieces)/(n+1))
	for at := 1; at+n <= len(pieces); at += n + 1 {
		// A job that is kept must not keep the whole answer, of megabytes.
		records = append(records, strings.Split(strings.Join(pieces[at:at+n], sep), sep))
	}
	return records, nil
}

// A detailField is one column asked of squeue --Format, which pads to a width.
type detailField struct {
	name  string
	width int
	set   func(j *Job, value string)
}

// Names and comments are left out: fixed columns cannot hold a line break.
var detailFields = []detailField{
	{"JobArrayID", 64, func(*Job, string) {}},
	{"exit_code", 24, func(j *Job, v string) {
		if j.State.Ended() {
			j.ExitCode = exitCode(v)
		}
	}},
	{"tres-alloc", 512, func(j *Job, v string) {
		// The line is one part's where the job has several.
		if n := gpusInTRES(v); n > 0 {
			j.GPUs = max(j.GPUs, n)
		}
	}},
	{"RestartCnt", 16, func(j *Job, v string) { j.Restarts = parseCount(v) }},
	{"STDOUT", 4096, func(j *Job, v string) { j.Stdout = none(v) }},
	{"STDERR", 4096, func(j *Job, v string) { j.Stderr = none(v) }},
}

// DetailFormat is the --Format to give squeue for AddDetail.
func DetailFormat() string {
	columns := make([]string, len(detailFields))
	for i, f := range detailFields {
		columns[i] = fmt.Sprintf("%s:%d", f.name, f.width)
	}
	return strings.Join(columns, ",")
}

// AddDetail fills j with what squeue --noheader printed in DetailFormat for it,
// of the first line where there are several. A line of another form changes
// nothing: the detail is a help, not a need.
func AddDetail(j *Job, out string) {
	line, _, _ := strings.Cut(out, "\n")
	at := 0
	of := *j // whose files they are: of an array, the element of the line
	for i, f := range detailFields {
		if at >= len(line) {
			break
		}
		end := min(at+f.width, len(line))
		v := strings.Clone(strings.TrimSpace(line[at:end])) // the line is wide and mostly blank
		if i == 0 && IsJobID(v) && JobID(v).Array() == j.ID.Array() {
			of.ID = JobID(v)
		}
		f.set(j, v)
		at = end
	}
	j.Stdout, j.Stderr = ExpandPattern(j.Stdout, of), ExpandPattern(cmp.Or(j.Stderr, j.Stdout), of)
}

// AddDetails fills each of jobs from its record in what squeue --noheader printed
// in DetailFormat for many, and returns those that have one. A record has the
// columns' whole width and a line break, so that a line break in a file's name
// begins no record of another job. An answer of another form has none.
func AddDetails(jobs []Job, out string) map[JobID]bool {
	length := 1
	for _, f := range detailFields {
		length += f.width
	}
	records := map[JobID]string{}
	for ; out != ""; out = out[length:] {
		if len(out) < length || out[length-1] != '\n' {
			return nil
		}
		id := JobID(strings.TrimSpace(out[:detailFields[0].width]))
		if _, twice := records[id]; twice {
			return nil
		}
		records[id] = out[:length-1]
	}
	told := map[JobID]bool{}
	for i := range jobs {
		if record, ok := records[jobs[i].ID]; ok {
			AddDetail(&jobs[i], record)
			told[jobs[i].ID] = true
		}
	}
	return told
}
