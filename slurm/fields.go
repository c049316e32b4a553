package slurm

import (
	"strconv"
	"strings"
	"time"

	"github.com/megatron-ops/megatron-ops/slurm/hostlist"
)

// ParseTime reads a time as Slurm prints it under SLURM_TIME_FORMAT=%s, or in
// its usual local form; nil where Slurm has none.
func ParseTime(s string) *time.Time {
	if n, err := strconv.ParseInt(s, 10, 64); err == nil {
		if n <= 0 {
			return nil
		}
		t := time.Unix(n, 0)
		return &t
	}
	// Times without a zone are those of the machine that printed them.
	t, err := time.ParseInLocation("2006-01-02T15:04:05", s, time.Local)
	if err != nil {
		return nil // N/A, None, Unknown, (null)
	}
	return &t
}

// farthestStart is how far ahead a start can be that Slurm has worked out. Behind a
// job without a time limit it says a year after that one began, which is no estimate.
const farthestStart = 180 * 24 * time.Hour

// IsEstimate reports whether t, as Slurm's estimate of a job's start, is one.
func IsEstimate(t time.Time) bool { return !t.IsZero() && time.Until(t) < farthestStart }

// estimated is t where it is an estimate of j's start. A time that was asked for is
// none, and is kept however far it is.
func (j *Job) estimated(t *time.Time) *time.Time {
	if t == nil || !IsEstimate(*t) && !strings.HasPrefix(j.Reason, "BeginTime") {
		return nil
	}
	return t
}

// ParseDuration reads a span as Slurm writes and takes it: "30" is minutes,
// "MM:SS", "HH:MM:SS", "D-HH", "D-HH:MM", "D-HH:MM:SS". ok is false for
// UNLIMITED and for what is no span.
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
	return time.Duration(seconds) * time.Second, true
}

// parseLimit reads a time limit in seconds; nil for none.
func parseLimit(s string) *int64 {
	d, ok := ParseDuration(s)
	if !ok {
		return nil
	}
	n := int64(d / time.Second)
	return &n
}

// parseCount reads a plain or shortened number, such as "16" or "2K".
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

// gpusInTRES counts the GPUs of a TRES list such as
// "billing=2,cpu=2,gres/gpu=16,gres/gpu:h100=16,node=2". The untyped count, where
// there is one, includes the typed ones.
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

// gpusPerNode counts the GPUs of a GRES request such as "gres:gpu:8",
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
			gpus++ // "gres:gpu" alone asks for one
		}
	}
	return gpus
}

// nodesOf expands a node list; one that cannot be read is kept as it came.
func nodesOf(list string) []string {
	nodes, err := hostlist.Expand(list)
	if err != nil {
		return []string{list}
	}
	return nodes
}

// none turns Slurm's words for nothing into the empty string.
func none(s string) string {
	switch s {
	case "(null)", "None", "N/A", "NONE", "Unknown":
		return ""
	}
	return s
}

// pairs reads the Key=Value words of a line of scontrol --oneliner, in which nothing
// is a user's.
func pairs(line string) map[string]string {
	v := map[string]string{}
	for word := range strings.FieldsSeq(line) {
		key, value, _ := strings.Cut(word, "=")
		v[key] = none(value)
	}
	return v
}

// exitCode reads "3:0", or a raw wait status as squeue 22.05 prints it.
func exitCode(s string) *string {
	if strings.Contains(s, ":") {
		return &s
	}
	raw, err := strconv.ParseUint(s, 10, 32)
	if err != nil {
		return nil
	}
	code := strconv.FormatUint(raw>>8, 10) + ":" + strconv.FormatUint(raw&127, 10)
	return &code
}

// ParseState reads a state as any Slurm command prints it: sacct's "CANCELLED by
// 1001" and a list such as "RUNNING,COMPLETING" give their first word.
func ParseState(s string) State {
	if i := strings.IndexAny(s, " ,+"); i > 0 {
		s = s[:i]
	}
	return State(strings.ToUpper(s))
}

// ParseMemory reads --mem in megabytes: "512", "64G", "1T"; K, M, G and T count
// in 1024, M where there is none.
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

// ParseBegin reads the forms of --begin that people use: now, now+N[unit], a
// clock time, a date, or both, in the zone of now.
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
