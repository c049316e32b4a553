package soak

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// A slurm replaces Slurm's commands, because no developer's machine has a controller
// with ten thousand jobs. It answers with the columns that are requested, keeps an
// ended job in the queue for a while as slurmctld does, and can be told to fail.
type slurm struct {
	bin string // a folder with the commands

	mu    sync.Mutex
	jobs  []*slurmJob // by number: the first is firstJob
	asked map[string]int

	// away makes every command fail as if the controller were unavailable, and slow
	// delays its answer.
	away atomic.Bool
	slow atomic.Int64
	// mute makes sbatch accept the job and then lose the answer.
	mute atomic.Bool
}

const firstJob = 100_000

// endedInQueue is MinJobAge of slurm.conf.
const endedInQueue = 5 * time.Minute

// A slurmJob ends by itself at its end time.
type slurmJob struct {
	id                  int
	name, user, comment string
	submit, start, end  time.Time
	how                 string // the state that it ends in
}

// at returns the job's state at now.
func (j *slurmJob) at(now time.Time) string {
	switch {
	case !now.Before(j.end):
		return j.how
	case !now.Before(j.start):
		return "RUNNING"
	}
	return "PENDING"
}

// newSlurm starts the server and writes the commands, which run this test's own
// program: see TestMain.
func newSlurm(t *testing.T) *slurm {
	t.Helper()
	dir := t.TempDir()
	s := &slurm{bin: filepath.Join(dir, "bin"), asked: map[string]int{}}
	if err := os.Mkdir(s.bin, 0o755); err != nil {
		t.Fatal(err)
	}
	me, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	socket := filepath.Join(dir, "socket")
	for _, name := range []string{"sbatch", "squeue", "sacct", "scancel", "scontrol", "sinfo", "sacctmgr", "sprio", "sshare", "srun", "sdiag"} {
		script := fmt.Sprintf("#!/bin/sh\n%s=%s exec %s %s \"$@\"\n", socketVariable, socket, me, name)
		if err := os.WriteFile(filepath.Join(s.bin, name), []byte(script), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	ln, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: s}
	go func() { _ = server.Serve(ln) }()
	t.Cleanup(func() { server.Close() })
	return s
}

// socketVariable is the environment variable that tells a command where the server
// listens.
const socketVariable = "SOAK_SLURM"

// A commandLine is what a command sends to the server.
type commandLine struct {
	Words []string
	Input string
}

// An outcome is what the command prints and its exit status.
type outcome struct {
	Out, Err string
	Code     int
}

// slurmCommand runs this program as one of Slurm's commands.
func slurmCommand(socket string, words []string) int {
	line := commandLine{Words: words}
	if words[0] == "sbatch" {
		raw, err := io.ReadAll(os.Stdin)
		if err != nil {
			return 1
		}
		line.Input = string(raw)
	}
	body, err := json.Marshal(line)
	if err != nil {
		return 1
	}
	client := http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", socket)
	}}}
	res, err := client.Post("http://slurm/", "application/json", strings.NewReader(string(body)))
	if err != nil {
		fmt.Fprintln(os.Stderr, "slurm_load_jobs error: Unable to contact slurm controller (connect failure)")
		return 1
	}
	defer res.Body.Close()
	var o outcome
	if err := json.NewDecoder(res.Body).Decode(&o); err != nil {
		return 1
	}
	fmt.Print(o.Out)
	fmt.Fprint(os.Stderr, o.Err)
	return o.Code
}

func (s *slurm) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var line commandLine
	if err := json.NewDecoder(r.Body).Decode(&line); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	time.Sleep(time.Duration(s.slow.Load()))
	o := outcome{Err: line.Words[0] + ": error: Unable to contact slurm controller (connect failure)\n", Code: 1}
	if !s.away.Load() {
		o = s.answer(line)
	}
	_ = json.NewEncoder(w).Encode(o)
}

// value is the value of an option in a command line.
func (l commandLine) value(option string) string {
	for _, w := range l.Words {
		if v, ok := strings.CutPrefix(w, "--"+option+"="); ok {
			return v
		}
	}
	return ""
}

func (l commandLine) has(word string) bool { return slices.Contains(l.Words, word) }

func (s *slurm) answer(l commandLine) outcome {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	s.asked[l.Words[0]]++
	switch name := l.Words[0]; {
	case name == "sbatch" && l.has("--test-only"):
		return outcome{Err: "sbatch: Job 1 to start at 2030-01-01T00:00:00 using 1 processors on nodes n1 in partition prod\n"}
	case name == "sbatch":
		return s.sbatch(l, now)
	case name == "squeue" && l.has("--steps"):
		return outcome{}
	case name == "squeue":
		return s.squeue(l, now)
	case name == "sacct":
		return s.sacct(l, now)
	case name == "scancel":
		id := l.Words[len(l.Words)-1]
		for _, j := range s.chosen(id, "") {
			if now.Before(j.end) {
				j.how, j.end, j.start = "CANCELLED", now, earlier(j.start, now)
			}
		}
		return outcome{}
	case name == "sinfo" && l.has("--Node"):
		return listing(l.value("format"), []map[string]string{{
			"%N": "n1", "%T": "mixed", "%R": "prod", "%G": "gpu:h100:8", "%C": "10/90/0/100", "%m": "1000000", "%f": "(null)", "%H": "Unknown", "%u": "Unknown", "%E": "none",
		}})
	case name == "sinfo":
		return listing(l.value("format"), []map[string]string{{
			"%P": "prod*", "%a": "up", "%l": "infinite", "%s": "1-infinite", "%F": "1/0/0/1", "%G": "gpu:h100:8", "%f": "(null)", "%N": "n1",
		}})
	}
	return outcome{}
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

var jobNameLine = regexp.MustCompile(`(?m)^#SBATCH (?:--job-name=|-J )"?([^"\s]+)`)

// sbatch accepts a job, which starts soon and runs briefly.
func (s *slurm) sbatch(l commandLine, now time.Time) outcome {
	name := l.value("job-name")
	if m := jobNameLine.FindStringSubmatch(l.Input); m != nil && name == "" {
		name = m[1]
	}
	start := now.Add(time.Duration(5+rand.IntN(20)) * time.Second)
	j := s.add(name, me, start, start.Add(time.Duration(10+rand.IntN(20))*time.Second), "COMPLETED")
	j.comment, j.submit = l.value("comment"), now
	if s.mute.Load() {
		return outcome{Err: "sbatch: error: Batch job submission failed: Socket timed out on send/recv operation\n", Code: 1}
	}
	return outcome{Out: strconv.Itoa(j.id) + "\n"}
}

// add puts a job into the queue. The caller holds the lock, unless nothing asks yet.
func (s *slurm) add(name, user string, start, end time.Time, how string) *slurmJob {
	j := &slurmJob{id: firstJob + len(s.jobs), name: name, user: user, submit: time.Now(), start: start, end: end, how: how}
	s.jobs = append(s.jobs, j)
	return j
}

// chosen are the jobs with one of the ids, of this user. An empty argument means all.
func (s *slurm) chosen(ids, user string) []*slurmJob {
	list := s.jobs
	if ids != "" {
		list = nil
		for id := range strings.SplitSeq(ids, ",") {
			if n, err := strconv.Atoi(id); err == nil && n >= firstJob && n < firstJob+len(s.jobs) {
				list = append(list, s.jobs[n-firstJob])
			}
		}
	}
	if user == "" {
		return list
	}
	return slices.DeleteFunc(slices.Clone(list), func(j *slurmJob) bool { return j.user != user })
}

var letter = regexp.MustCompile(`%[A-Za-z]`)

// listing formats rows by a format of letters, with a separator around each.
func listing(format string, rows []map[string]string) outcome {
	sep, _, _ := strings.Cut(format, "%")
	letters := letter.FindAllString(format, -1)
	var b strings.Builder
	for _, r := range rows {
		for _, l := range letters {
			b.WriteString(sep + r[l])
		}
		b.WriteString(sep + "\n")
	}
	return outcome{Out: b.String()}
}

func epoch(t time.Time) string { return strconv.FormatInt(t.Unix(), 10) }

func (s *slurm) squeue(l commandLine, now time.Time) outcome {
	user := l.value("user")
	if l.has("--me") {
		user = me
	}
	list := slices.DeleteFunc(slices.Clone(s.chosen(l.value("jobs"), user)), func(j *slurmJob) bool { return now.After(j.end.Add(endedInQueue)) })
	if ids := l.value("jobs"); len(list) == 0 && ids != "" && !strings.Contains(ids, ",") {
		return outcome{Err: "slurm_load_jobs error: Invalid job id specified\n", Code: 1}
	}
	if columns := l.value("Format"); columns != "" {
		return details(columns, list)
	}
	rows := make([]map[string]string, 0, len(list))
	for _, j := range list {
		state := j.at(now)
		row := map[string]string{
			"%i": strconv.Itoa(j.id), "%A": strconv.Itoa(j.id), "%T": state, "%r": "None", "%u": j.user, "%a": "research", "%P": "prod", "%q": "normal",
			"%D": "1", "%N": "n1", "%l": "1:00:00", "%V": epoch(j.submit), "%S": epoch(j.start), "%e": epoch(j.end), "%Q": "100", "%b": "gres/gpu:8",
			"%Z": "/soak", "%j": j.name, "%k": cmp.Or(j.comment, "(null)"), "%M": "0:00",
		}
		switch state {
		case "PENDING":
			row["%r"], row["%N"] = "Priority", ""
		case "RUNNING":
			row["%M"] = clock(now.Sub(j.start))
		default:
			row["%M"] = clock(j.end.Sub(j.start))
		}
		rows = append(rows, row)
	}
	return listing(l.value("format"), rows)
}

func clock(d time.Duration) string {
	return fmt.Sprintf("%d:%02d", int(d.Minutes()), int(d.Seconds())%60)
}

// details formats columns of fixed width, as --Format does.
func details(columns string, list []*slurmJob) outcome {
	var b strings.Builder
	for _, j := range list {
		for column := range strings.SplitSeq(columns, ",") {
			name, width, _ := strings.Cut(column, ":")
			n, _ := strconv.Atoi(width)
			value := map[string]string{
				"JobArrayID": strconv.Itoa(j.id), "exit_code": "0:0", "tres-alloc": "cpu=8,node=1,gres/gpu=8", "RestartCnt": "0",
				"STDOUT": "/soak/none.out", "STDERR": "/soak/none.out",
			}[name]
			fmt.Fprintf(&b, "%-*s", n, value)
		}
		b.WriteString("\n")
	}
	return outcome{Out: b.String()}
}

// sacct answers from the accounting database, which has every job from its start on.
func (s *slurm) sacct(l commandLine, now time.Time) outcome {
	user := l.value("user")
	var since time.Time
	if t, err := time.Parse("2006-01-02T15:04:05", l.value("starttime")); err == nil {
		since = t
	}
	var b strings.Builder
	for _, j := range s.chosen(l.value("jobs"), user) {
		state := j.at(now)
		if state == "PENDING" || l.value("jobs") == "" && j.end.Before(since) {
			continue
		}
		code := map[string]string{"FAILED": "1:0"}[state]
		end := "Unknown"
		if state != "RUNNING" {
			end = epoch(j.end)
		}
		row := map[string]string{
			"JobID": strconv.Itoa(j.id), "JobIDRaw": strconv.Itoa(j.id), "JobName": j.name, "State": state, "ExitCode": cmp.Or(code, "0:0"), "DerivedExitCode": "0:0",
			"User": j.user, "Account": "research", "Partition": "prod", "QOS": "normal", "NNodes": "1", "NodeList": "n1",
			"ElapsedRaw": strconv.Itoa(int(earlier(now, j.end).Sub(j.start).Seconds())), "TimelimitRaw": "60", "Submit": epoch(j.submit), "Start": epoch(j.start), "End": end,
			"Priority": "100", "AllocTRES": "cpu=8,gres/gpu=8,node=1", "Reason": "None", "WorkDir": "/soak", "Comment": j.comment,
			"StdOut": "/soak/none.out", "StdErr": "/soak/none.out", "SubmitLine": "sbatch --comment=" + j.comment,
		}
		for i, column := range strings.Split(l.value("format"), ",") {
			if i > 0 {
				b.WriteString(l.value("delimiter"))
			}
			b.WriteString(row[column])
		}
		b.WriteString("\n")
	}
	return outcome{Out: b.String()}
}
