package slurm

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/megatron-ops/megatron-ops/internal/lang"
)

// queueFields are the columns of a queue listing. Free text of the user comes last.
var queueFields = []column[Job]{
	{"%i", func(j *Job, v string) { j.ID = JobID(v) }},
	{"%A", func(j *Job, v string) {
		if v != string(j.ID) {
			j.RawID = JobID(v)
		}
	}},
	{"%T", func(j *Job, v string) { j.State = ParseState(v) }},
	{"%r", func(j *Job, v string) { j.Reason = emptyIfNone(v) }},
	{"%u", func(j *Job, v string) { j.User = v }},
	{"%a", func(j *Job, v string) { j.Account = emptyIfNone(v) }},
	{"%P", func(j *Job, v string) { j.Partition = v }},
	{"%q", func(j *Job, v string) { j.QOS = emptyIfNone(v) }},
	{"%D", func(j *Job, v string) { j.NumNodes = parseCount(v) }},
	{"%N", func(j *Job, v string) { j.Nodes = nodesOf(v) }},
	{"%M", func(j *Job, v string) {
		if d, ok := ParseDuration(v); ok {
			j.ElapsedS = int64(d.Seconds())
		}
	}},
	{"%l", func(j *Job, v string) { j.TimeLimitS = parseLimit(v) }},
	{"%V", func(j *Job, v string) { j.SubmittedAt = ParseTime(v) }},
	// squeue's start is an estimate while the job waits, and its end is an estimate
	// while the job runs.
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
	{"%k", func(j *Job, v string) { j.Comment = emptyIfNone(v) }},
}

// QueueFormat returns the value of squeue --format that ParseQueue expects. sep
// separates the fields. It must be unpredictable: a job's name may hold any character,
// but not a random string that was chosen after the name.
func QueueFormat(sep string) string { return columnFormat(queueFields, sep) }

// ParseQueue reads the output of squeue --noheader --format=QueueFormat(sep), run with
// SLURM_TIME_FORMAT=%s.
func ParseQueue(out, sep string) ([]Job, error) {
	jobs, err := parseColumns(queueFields, out, sep)
	if err != nil {
		return nil, lang.Text{EN: "squeue's answer: %s", ZH: "squeue 的输出：%s"}.Err(err)
	}
	for i := range jobs {
		jobs[i].forgetStart()
	}
	return jobs, nil
}

// forgetStart removes the start of a job that was cancelled while it waited: the
// controller sets it to the time of the end.
func (j *Job) forgetStart() {
	if j.State == Cancelled && len(j.Nodes) == 0 {
		j.StartedAt = nil
	}
}

// preempted sets when Slurm began to end the job's present run for another job. at is the
// time of preemption that Slurm keeps: of an earlier run until the next preemption, and
// also where gang scheduling only suspends the job. end is when the run ended or, while it
// runs, will end at the latest: a grace time brings that forward, a suspension never does.
func (j *Job) preempted(at, end *time.Time) {
	j.PreemptedAt = nil
	if at == nil || j.StartedAt == nil || at.Before(*j.StartedAt) || j.State == Suspended {
		return
	}
	limit := int64(unlimitedRun)
	if j.TimeLimitS != nil {
		limit = *j.TimeLimitS
	}
	var kept bool // the run is as long as it was to be
	switch {
	case end != nil && j.State == Running:
		kept = int64(end.Sub(*j.StartedAt)/time.Second) >= limit
	case end != nil:
		kept = int64(end.Sub(*j.StartedAt)/time.Second) > j.ElapsedS+1 // it was suspended
	case j.State == Running && j.TimeLimitS == nil:
		// squeue tells no end of a job without a time limit, so only the time that it ran
		// shows that it was not suspended.
		kept = time.Since(*j.StartedAt) > time.Duration(j.ElapsedS)*time.Second+clockSkew
	default:
		kept = true
	}
	if !kept {
		j.PreemptedAt = at
	}
}

// unlimitedRun is how many seconds after the start slurmctld puts the end of a job without
// a time limit.
const unlimitedRun = 365 * 24 * 60 * 60

// clockSkew is how far the clocks of this machine and of the cluster may be apart.
const clockSkew = 15 * time.Second

// A detailField is one column requested with squeue --Format, padded to width.
type detailField struct {
	name  string
	width int
	set   func(j *Job, value string)
}

// Details are the columns of one query with squeue --Format.
type Details []detailField

// AllDetails returns all columns that a job's details have.
func AllDetails() Details { return detailFields }

// FewDetails returns the columns that every release of squeue has.
func FewDetails() Details {
	return slices.DeleteFunc(slices.Clone(detailFields), func(f detailField) bool {
		return !slices.Contains([]string{"JobArrayID", "STDOUT", "Dependency"}, f.name)
	})
}

// Without returns d less the columns that stderr names: squeue names a column that it
// does not know, and leaves it out of its answer or gives none. A time of preemption means
// nothing without the end.
func (d Details) Without(stderr string) Details {
	words := strings.FieldsFunc(strings.ToLower(stderr), func(r rune) bool { return !strings.ContainsRune("abcdefghijklmnopqrstuvwxyz_-", r) })
	if slices.Contains(words, "endtime") {
		words = append(words, "preempttime")
	}
	return slices.DeleteFunc(slices.Clone(d), func(f detailField) bool { return slices.Contains(words, strings.ToLower(f.name)) })
}

// Names and comments are missing here because a column of fixed width cannot hold a
// line break.
var detailFields = []detailField{
	{"JobArrayID", 64, func(*Job, string) {}},
	{"exit_code", 24, func(j *Job, v string) {
		if j.State.Ended() {
			j.ExitCode = exitCode(v)
		}
	}},
	{"tres-alloc", 512, func(j *Job, v string) {
		// For a job of several parts the line describes only one part.
		if n := gpusInTRES(v); n > 0 {
			j.GPUs = max(j.GPUs, n)
		}
	}},
	{"RestartCnt", 16, func(j *Job, v string) { j.Restarts = parseCount(v) }},
	{"STDOUT", 4096, func(j *Job, v string) { j.Stdout = emptyIfNone(v) }},
	{"STDERR", 4096, func(j *Job, v string) { j.Stderr = emptyIfNone(v) }},
	{"Dependency", 1024, func(j *Job, v string) { j.Dependency = emptyIfNone(v) }},
	{"PreemptTime", 24, func(j *Job, v string) { j.PreemptedAt = ParseTime(v) }},
	{"EndTime", 24, func(j *Job, v string) { j.preempted(j.PreemptedAt, ParseTime(v)) }},
}

// Format returns the value of squeue --Format for d.
func (d Details) Format() string {
	columns := make([]string, len(d))
	for i, f := range d {
		columns[i] = fmt.Sprintf("%s:%d", f.name, f.width)
	}
	return strings.Join(columns, ",")
}

// length returns the length of a record with its line break.
func (d Details) length() int {
	n := 1
	for _, f := range d {
		n += f.width
	}
	return n
}

// Add adds to j the first line of the output of squeue --noheader --Format=d.Format().
// A record that is shorter than its columns changes nothing: a column is missing, and the
// values after it would be taken for those of another. A file name may have a line break.
func (d Details) Add(j *Job, out string) {
	line, _, _ := strings.Cut(out, "\n")
	if n := d.length(); len(line) < n-1 && (len(out) < n || out[n-1] != '\n') {
		return
	}
	at := 0
	of := *j // the job that the paths belong to: of an array, the element of the line
	for i, f := range d {
		if at >= len(line) {
			break
		}
		end := min(at+f.width, len(line))
		v := strings.Clone(strings.TrimSpace(line[at:end])) // copied, because the line is wide and mostly blank
		if i == 0 && IsJobID(v) && JobID(v).Array() == j.ID.Array() {
			of.ID = JobID(v)
		}
		f.set(j, v)
		at = end
	}
	j.Stdout, j.Stderr = ExpandPattern(j.Stdout, of), ExpandPattern(cmp.Or(j.Stderr, j.Stdout), of)
	if len(j.Tasks) > 0 {
		j.patternPaths()
	}
}

// noTask is the task number that scontrol prints for tasks that wait.
const noTask = "_4294967294"

// CorrectPaths sets j's output paths from the output of scontrol show job for task, which
// is j or represents it.
func CorrectPaths(j *Job, task JobID, out string) {
	_, number, _ := strings.Cut(string(task), "_")
	for line := range strings.Lines(out) {
		name, path, _ := strings.Cut(strings.TrimSpace(line), "=")
		path = strings.ReplaceAll(path, noTask, "_"+number)
		switch {
		case path == "" || path == "(null)":
		case name == "StdOut":
			j.Stdout = path
		case name == "StdErr":
			j.Stderr = path
		}
	}
	if len(j.Tasks) > 0 {
		j.patternPaths()
	}
}

// WasSuspended reports whether the present run of a job was suspended, according to the output
// of scontrol show job: Slurm then keeps how long it had run before.
func WasSuspended(out string) bool {
	_, seconds, _ := strings.Cut(out, "SecsPreSuspend=")
	return strings.IndexFunc(seconds, func(r rune) bool { return r >= '1' && r <= '9' }) == 0
}

// AddAll adds to each of jobs its record in the output of squeue --noheader
// --Format=d.Format() for many jobs, and returns the ids of those that have a record. A
// record is the full width of all columns and a line break, so a line break in a file
// name cannot pass for the start of another job's record. AddAll ignores an answer of
// any other form.
func (d Details) AddAll(jobs []Job, out string) map[JobID]bool {
	if len(d) == 0 {
		return nil
	}
	length := d.length()
	records := map[JobID]string{}
	for ; out != ""; out = out[length:] {
		if len(out) < length || out[length-1] != '\n' {
			return nil
		}
		id := JobID(strings.TrimSpace(out[:d[0].width]))
		if _, twice := records[id]; twice {
			return nil
		}
		records[id] = out[:length-1]
	}
	told := map[JobID]bool{}
	for i := range jobs {
		if record, ok := records[jobs[i].ID]; ok {
			d.Add(&jobs[i], record+"\n")
			told[jobs[i].ID] = true
		}
	}
	return told
}
