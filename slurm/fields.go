package slurm

import (
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/megatron-ops/megatron-ops/slurm/hostlist"
)

// ParseTime reads a time as Slurm prints it under SLURM_TIME_FORMAT=%s, or in its usual
// local form. It returns nil for a word that is no time, such as N/A.
func ParseTime(s string) *time.Time {
	if n, err := strconv.ParseInt(s, 10, 64); err == nil {
		if n <= 0 {
			return nil
		}
		t := time.Unix(n, 0)
		return &t
	}
	// A time without a zone is in the zone of the machine that printed it.
	t, err := time.ParseInLocation("2006-01-02T15:04:05", s, time.Local)
	if err != nil {
		return nil // N/A, None, Unknown, (null)
	}
	return &t
}

// maxEstimate bounds how far ahead an estimated start can lie. For a job behind one
// without a time limit, Slurm reports a start one year after that job began, which is
// no estimate.
const maxEstimate = 180 * 24 * time.Hour

// IsEstimate reports whether t, a start time that Slurm reports for a pending job, is a
// real estimate.
func IsEstimate(t time.Time) bool { return !t.IsZero() && time.Until(t) < maxEstimate }

// estimated returns t where t is a real estimate of j's start, else nil. A start that
// the user asked for (--begin) is no estimate; estimated keeps it however far ahead it
// lies.
func (j *Job) estimated(t *time.Time) *time.Time {
	if t == nil || !IsEstimate(*t) && !strings.HasPrefix(j.Reason, "BeginTime") {
		return nil
	}
	return t
}

// ParseDuration reads a time span as Slurm writes and accepts it: "30" is minutes; the
// other forms are "MM:SS", "HH:MM:SS", "D-HH", "D-HH:MM" and "D-HH:MM:SS". ok is false
// for UNLIMITED and for anything else that is no time span.
func ParseDuration(s string) (d time.Duration, ok bool) {
	days, clock, hasDays := strings.Cut(s, "-")
	if !hasDays {
		days, clock = "0", s
	}
	parts := strings.Split(clock, ":")
	n := make([]int64, len(parts)+1)
	for i, p := range append([]string{days}, parts...) {
		v, err := strconv.ParseInt(strings.TrimSpace(p), 10, 32)
		if err != nil || v < 0 {
			return 0, false
		}
		n[i] = v
	}
	var seconds int64
	switch day := n[0] * 86400; {
	case len(parts) == 3:
		seconds = day + n[1]*3600 + n[2]*60 + n[3]
	case len(parts) == 2 && hasDays:
		seconds = day + n[1]*3600 + n[2]*60
	case len(parts) == 2:
		seconds = n[1]*60 + n[2]
	case len(parts) == 1 && hasDays:
		seconds = day + n[1]*3600
	case len(parts) == 1:
		seconds = n[1] * 60
	default:
		return 0, false
	}
	return time.Duration(min(seconds, longest)) * time.Second, true
}

// longest is the longest duration in seconds, 292 years. Slurm accepts longer ones.
const longest = int64(math.MaxInt64 / time.Second)

// parseLimit reads a time limit and returns it in seconds; nil where there is none.
func parseLimit(s string) *int64 {
	d, ok := ParseDuration(s)
	if !ok {
		return nil
	}
	n := int64(d / time.Second)
	return &n
}

// parseCount reads a plain or abbreviated number, such as "16" or "2K"; 0 where s is no
// number.
func parseCount(s string) int {
	scale := 1
	if k, ok := strings.CutSuffix(s, "K"); ok {
		s, scale = k, 1024
	}
	n, err := strconv.ParseFloat(s, 64)
	if err != nil {
		return 0
	}
	return int(n * float64(scale))
}

// gpusInTRES returns the number of GPUs in a TRES list such as
// "billing=2,cpu=2,gres/gpu=16,gres/gpu:h100=16,node=2". The count without a type,
// where present, includes those with a type.
func gpusInTRES(tres string) int {
	typed := 0
	for item := range strings.SplitSeq(tres, ",") {
		name, value, _ := strings.Cut(item, "=")
		switch {
		case name == "gres/gpu":
			return parseCount(value)
		case strings.HasPrefix(name, "gres/gpu:"):
			typed += parseCount(value)
		}
	}
	return typed
}

// gpusPerNode returns the number of GPUs in a GRES request such as "gres:gpu:8",
// "gres/gpu:h100:8" or "gpu:a100:4(S:0-1)".
func gpusPerNode(gres string) int {
	gpus := 0
	for item := range strings.SplitSeq(gres, ",") {
		item = strings.TrimPrefix(strings.TrimPrefix(item, "gres:"), "gres/")
		item, _, _ = strings.Cut(item, "(")
		words := strings.FieldsFunc(item, func(r rune) bool { return r == ':' || r == '=' })
		if len(words) == 0 || words[0] != "gpu" {
			continue
		}
		if n, err := strconv.Atoi(words[len(words)-1]); err == nil {
			gpus += n
		} else {
			gpus++ // "gres:gpu" without a count means one
		}
	}
	return gpus
}

// nodesOf expands a hostlist. A list that cannot be read becomes one name.
func nodesOf(list string) []string {
	nodes, err := hostlist.Expand(list)
	if err != nil {
		return []string{list}
	}
	return nodes
}

// emptyIfNone turns Slurm's words for a missing value into the empty string.
func emptyIfNone(s string) string {
	switch s {
	case "(null)", "None", "N/A", "NONE", "Unknown":
		return ""
	}
	return s
}

// keyValues reads the Key=Value words of one line of scontrol --oneliner. It suits only
// listings without user text, in which a value has no blanks.
func keyValues(line string) map[string]string {
	v := map[string]string{}
	for word := range strings.FieldsSeq(line) {
		key, value, _ := strings.Cut(word, "=")
		v[key] = emptyIfNone(value)
	}
	return v
}

// exitCode reads an exit code such as "3:0", or a raw wait status as squeue of 22.05
// prints it; nil for anything else.
func exitCode(s string) *string {
	if strings.Contains(s, ":") {
		return &s
	}
	raw, err := strconv.ParseUint(s, 10, 32)
	if err != nil {
		return nil
	}
	code := strconv.FormatUint(raw>>8, 10) + ":0"
	if signal := raw & 127; signal != 0 { // what is left of an exit code then means nothing, and scontrol and sacct show 0
		code = "0:" + strconv.FormatUint(signal, 10)
	}
	return &code
}

// ParseState reads a state as any Slurm command prints it. From sacct's "CANCELLED by
// 1001" and from a list such as "RUNNING,COMPLETING" it takes the first word.
func ParseState(s string) State {
	if i := strings.IndexAny(s, " ,+"); i > 0 {
		s = s[:i]
	}
	return State(strings.ToUpper(s))
}

// ParseMemory reads a value of --mem and returns it in MiB: "512", "64G", "1T". K, M, G
// and T are powers of 1024; a number without a unit is in M.
func ParseMemory(s string) (mb int64, ok bool) {
	if s == "" {
		return 0, false
	}
	unit := s[len(s)-1]
	digits := strings.TrimRight(s, "KMGTkmgt")
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || n < 0 || len(s)-len(digits) > 1 || n > 1<<40 {
		return 0, false
	}
	switch unit {
	case 'K', 'k':
		return (n + 1023) / 1024, true
	case 'G', 'g':
		return n << 10, true
	case 'T', 't':
		return n << 20, true
	}
	return n, true
}

// ParseBegin reads the common forms of --begin: now, now+N[unit], a clock time, a date,
// or a date with a time, in the time zone of now.
func ParseBegin(v string, now time.Time) (time.Time, error) {
	if rest, ok := strings.CutPrefix(v, "now"); ok {
		if rest == "" {
			return now, nil
		}
		n := strings.TrimLeft(rest, "+0123456789")
		amount, err := strconv.Atoi(strings.TrimPrefix(strings.TrimSuffix(rest, n), "+"))
		unit := map[string]time.Duration{
			"": time.Second, "second": time.Second, "seconds": time.Second,
			"minute": time.Minute, "minutes": time.Minute, "hour": time.Hour, "hours": time.Hour,
			"day": 24 * time.Hour, "days": 24 * time.Hour, "week": 7 * 24 * time.Hour, "weeks": 7 * 24 * time.Hour,
		}[n]
		if err == nil && unit > 0 {
			return now.Add(time.Duration(amount) * unit), nil
		}
	}
	switch v {
	case "tomorrow":
		y, m, d := now.Date()
		return time.Date(y, m, d+1, 0, 0, 0, 0, now.Location()), nil
	case "today":
		return now, nil
	}
	for _, layout := range []string{"2006-01-02T15:04:05", "2006-01-02T15:04", "2006-01-02"} {
		if t, err := time.ParseInLocation(layout, v, now.Location()); err == nil {
			return t, nil
		}
	}
	for _, layout := range []string{"15:04:05", "15:04"} {
		if c, err := time.Parse(layout, v); err == nil {
			y, m, d := now.Date()
			t := time.Date(y, m, d, c.Hour(), c.Minute(), c.Second(), 0, now.Location())
			if t.Before(now) {
				t = t.AddDate(0, 0, 1)
			}
			return t, nil
		}
	}
	return time.Time{}, Sayf("Invalid --begin specification")
}
