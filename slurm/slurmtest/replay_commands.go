package slurmtest

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// replayRelease is the environment variable that tells a replayed command its release.
const replayRelease = "SLURMTEST_REPLAY"

// ReplayCommands creates a folder of Slurm's commands that give the recorded answers of
// a release, and returns an environment with that folder in the PATH. The commands are
// links to the test's own binary, so its TestMain must call ReplayCommand.
func ReplayCommands(t testing.TB, release string) (environ []string) {
	t.Helper()
	folder := t.TempDir()
	me, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"sbatch", "squeue", "sacct", "scancel", "scontrol", "sinfo", "sacctmgr"} {
		if err := os.Symlink(me, filepath.Join(folder, name)); err != nil {
			t.Fatal(err)
		}
	}
	return []string{"PATH=" + folder + ":/usr/bin:/bin", replayRelease + "=" + release}
}

// ReplayCommand runs this process as the replayed command that it was started as; ok is
// false in any other process.
func ReplayCommand(argv []string) (code int, ok bool) {
	release := os.Getenv(replayRelease)
	if release == "" || len(argv) == 0 {
		return 0, false
	}
	stdout, stderr, code := answerCommand(release, filepath.Base(argv[0]), argv[1:])
	fmt.Print(stdout)
	fmt.Fprint(os.Stderr, stderr)
	return code, true
}

// A table is a recorded listing with fields between bars.
type table struct {
	columns []string
	rows    [][]string
}

// readTable reads a recorded listing. columns are the columns of its command line.
func readTable(release, name, columns string) table {
	text, _ := recorded.ReadFile("recorded/" + release + "/text/" + name)
	t := table{columns: strings.FieldsFunc(columns, func(r rune) bool { return r == '|' || r == ',' })}
	for line := range strings.Lines(string(text)) {
		if f := strings.Split(strings.TrimSuffix(line, "\n"), "|"); len(f) == len(t.columns) {
			t.rows = append(t.rows, f)
		}
	}
	if len(t.rows) > 0 {
		t.rows = t.rows[1:] // without the heading
	}
	return t
}

// format returns the rows that keep selects, each formatted by line, with the given
// columns. A column that was not recorded is empty.
func (t table) format(columns []string, line func(fields []string) string, keep func(row []string) bool) string {
	var b strings.Builder
	for _, row := range t.rows {
		if !keep(row) {
			continue
		}
		fields := make([]string, len(columns))
		for i, c := range columns {
			if at := slices.Index(t.columns, c); at >= 0 {
				fields[i] = row[at]
			}
		}
		b.WriteString(line(fields))
	}
	return b.String()
}

// The columns of the recorded listings.
const (
	queueColumns   = "%i|%A|%T|%r|%u|%a|%P|%q|%D|%N|%M|%l|%V|%S|%e|%Q|%b|%j|%k"
	accountColumns = "JobID,JobIDRaw,JobName,State,ExitCode,DerivedExitCode,User,Account,Partition,QOS,NNodes,NodeList,ElapsedRaw,TimelimitRaw," +
		"Submit,Start,End,Priority,AllocTRES,Reason,Comment"
	nodeColumns      = "%N|%T|%R|%G|%C|%m|%f|%H|%u|%E"
	partitionColumns = "%P|%a|%l|%s|%F|%G|%f|%N"
)

var formatLetter = regexp.MustCompile(`%[A-Za-z]`)

// answerCommand returns the answer to one command line.
func answerCommand(release, name string, args []string) (stdout, stderr string, code int) {
	value := func(option string) string {
		for _, a := range args {
			if v, ok := strings.CutPrefix(a, "--"+option+"="); ok {
				return v
			}
		}
		return ""
	}
	// A --format of letters begins with its separator.
	letters := formatLetter.FindAllString(value("format"), -1)
	separated := func(fields []string) string {
		sep, _, _ := strings.Cut(value("format"), "%")
		return sep + strings.Join(fields, sep) + sep + "\n"
	}
	all := func([]string) bool { return true }
	ids := strings.Split(value("jobs"), ",")
	chosen := func(row []string) bool {
		return value("jobs") == "" || slices.ContainsFunc(ids, func(id string) bool {
			return row[0] == id || strings.HasPrefix(row[0], id+"_") || strings.HasPrefix(row[0], id+"+")
		})
	}
	switch name {
	case "squeue":
		t := readTable(release, "squeue-array-long.txt", queueColumns)
		if f := value("Format"); f != "" {
			return t.format([]string{"%i"}, func(fields []string) string { return detail(release, f, fields[0]) }, chosen), "", 0
		}
		if value("format") == "%i" { // one row for all waiting elements
			return waiting(release, chosen), "", 0
		}
		if stdout = t.format(letters, separated, chosen); stdout == "" && len(ids) == 1 && ids[0] != "" {
			return "", "slurm_load_jobs error: Invalid job id specified\n", 1
		}
		return stdout, "", 0
	case "sacct":
		if strings.Contains(value("format"), "StdOut") && release < "24.05" {
			return "", "sacct: error: Invalid field requested: \"StdOut\"\n", 1
		}
		line := func(fields []string) string { return strings.Join(fields, value("delimiter")) + "\n" }
		return readTable(release, "sacct.txt", accountColumns).format(strings.Split(value("format"), ","), line, chosen), "", 0
	case "sinfo":
		if strings.HasPrefix(value("Format"), "NodeList") {
			text, _ := recorded.ReadFile("recorded/" + release + "/text/sinfo-gresused.txt")
			return string(text), "", 0
		}
		if slices.Contains(args, "--Node") {
			return readTable(release, "sinfo-N.txt", nodeColumns).format(letters, separated, all), "", 0
		}
		return readTable(release, "sinfo-partitions.txt", partitionColumns).format(letters, separated, all), "", 0
	case "scontrol":
		for what, file := range map[string]string{
			"config": "scontrol-show-config.txt", "assoc_mgr": "scontrol-show-assoc_mgr.txt", "partition": "scontrol-show-partitions.txt",
		} {
			if slices.Contains(args, "show") && slices.Contains(args, what) {
				text, _ := recorded.ReadFile("recorded/" + release + "/text/" + file)
				return string(text), "", 0
			}
		}
	}
	asked := slices.DeleteFunc(slices.Clone(args), func(a string) bool { return a == "--parsable" })
	for _, r := range rejections(release) {
		if r.Argv[0] == name && slices.Equal(r.Argv[1:], asked) {
			return r.Stdout, r.Stderr, r.Code
		}
	}
	return "", fmt.Sprintf("%s: nothing is recorded of %q\n", name, args), 97
}

// waiting returns the ids of the waiting jobs, as squeue prints them without --array.
func waiting(release string, chosen func(row []string) bool) string {
	text, _ := recorded.ReadFile("recorded/" + release + "/text/squeue.txt")
	var b strings.Builder
	for line := range strings.Lines(string(text)) {
		if f := strings.Fields(line); len(f) > 4 && f[4] == "PD" && chosen(f) {
			b.WriteString(f[0] + "\n")
		}
	}
	return b.String()
}

// detail returns squeue's line for one job in the columns of --Format. Only
// slurmrestd's recordings contain the output paths, so detail makes them up.
func detail(release, format, id string) string {
	out := "/cluster/work/a/logs/%j.out"
	if strings.Contains(id, "_") {
		out = "/cluster/work/a/logs/%A_%a.out"
	}
	values := map[string]string{"JobArrayID": id, "exit_code": "", "tres-alloc": "", "RestartCnt": "0", "STDOUT": out, "STDERR": "(null)"}
	if release < "24.11" {
		values["STDERR"] = out
	}
	var b strings.Builder
	for column := range strings.SplitSeq(format, ",") {
		name, width, _ := strings.Cut(column, ":")
		n, _ := strconv.Atoi(width)
		fmt.Fprintf(&b, "%-*s", n, values[name])
	}
	return b.String() + "\n"
}

// A Refusal is a recorded command line that a release refused or accepted.
type Refusal struct {
	Name           string
	As             string // the user; "" is root
	Argv           []string
	Stdout, Stderr string
	Code           int
}

// Refusals returns the recorded refusals of a release.
func Refusals(t testing.TB, release string) []Refusal {
	t.Helper()
	all := rejections(release)
	if len(all) == 0 {
		t.Fatalf("nothing is recorded of %s", release)
	}
	return all
}

// rejections reads the recorded refusals of a release, none where there is no recording.
func rejections(release string) (all []Refusal) {
	text, _ := recorded.ReadFile("recorded/" + release + "/rejected.txt")
	for entry := range strings.SplitSeq("\n"+string(text), "\n## ") {
		name, rest, _ := strings.Cut(entry, "\n")
		command, said, ok := strings.Cut(rest, "\n")
		if !ok || !strings.HasPrefix(command, "$ ") {
			continue
		}
		r := Refusal{Name: name}
		words := strings.Fields(strings.TrimPrefix(command, "$ "))
		if strings.HasPrefix(words[0], "[") {
			r.As, words = strings.Trim(words[0], "[]"), words[1:]
		}
		r.Argv = words
		said, last, _ := strings.Cut(said, "(rc=")
		_, _ = fmt.Sscanf(last, "%d", &r.Code)
		r.Stdout, r.Stderr, _ = strings.Cut(said, "--- stderr\n")
		all = append(all, r)
	}
	return all
}
