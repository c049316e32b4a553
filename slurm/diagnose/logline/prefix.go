// Package logline parses the prefixes of log lines: the rank, task or node that launchers write there,
// and times in all the forms that programs write.
package logline

import (
	"net/netip"
	"strings"

	"github.com/megatron-ops/megatron-ops/slurm/diagnose/python"
)

// A Tag is what launchers wrote before a line: Label is the task of srun --label or mpirun, which may be a rank
// or the launcher of several, Local torchrun's local rank, Rank PyTorch's global rank; each is -1 where the line
// has none. Host is the node that pdsh and similar tools write.
type Tag struct {
	Label, Local, Rank int
	Host               string
}

// NoTag is the tag of a line without any prefix.
var NoTag = Tag{Label: -1, Local: -1, Rank: -1}

// CutTag removes the launchers' prefixes from a line, outermost first: "12: [default3]: [rank99]:
// text".
func CutTag(line string) (Tag, string) {
	t := NoTag
	line = cutStamp(line)
	if rest, rank, ok := cutWorker(line); ok {
		t.Rank, line = rank, rest
	}
	for {
		if rest, n, ok := cutLabel(line); ok && t == NoTag {
			t.Label, line = n, rest
			continue
		}
		rest, name, a, b, ok := cutBracket(line)
		if !ok {
			return t, line
		}
		if host, is := strings.CutSuffix(name, ":"); is {
			t.Host = host // the role is a node: "[gpu07:3]:"
		}
		switch {
		case strings.HasSuffix(name, "-") && b < 0: // only a node: "[dgx-09]:"
			t.Host = line[1:strings.IndexByte(line, ']')]
			rest = strings.TrimPrefix(rest, " ")
		case name == "rank":
			t.Rank = a
			rest = strings.TrimPrefix(rest, " ")
		case b >= 0 && name == "": // mpirun's "[1,11]<stderr>:"
			t.Label = b
		case b >= 0: // torchrun's template "[role3|11]:"
			t.Rank = b
		default:
			t.Local = a
		}
		line = rest
	}
}

// cutStamp removes the time that CI and containers' logs put before every line, in UTC, with or without
// a colon after it: "2026-06-10T08:59:16.125Z ". It also removes that of mpirun --timestamp-output:
// "Sat Dec 19 22:18:14 2026[1,3]<stdout>:".
func cutStamp(line string) string {
	if len(line) > 24 && line[24] == '[' && line[3] == ' ' && line[13] == ':' && line[16] == ':' && Digit(line[23]) {
		return line[24:]
	}
	if rest, ok := cutLabelStamp(line); ok {
		return rest
	}
	if len(line) < 21 || line[10] != 'T' || line[4] != '-' || !Digit(line[0]) {
		return line
	}
	stamp, _, utc := strings.Cut(line[:min(len(line), 40)], "Z")
	if !utc || len(stamp) < 19 || strings.Trim(stamp[11:], "0123456789:.") != "" {
		return line
	}
	return strings.TrimPrefix(strings.TrimPrefix(line[len(stamp)+1:], ":"), " ")
}

// cutLabelStamp removes the time that ts(1) or awk put before lines of srun, srun --label and torchrun,
// with the brackets around it: "11-23 04:35:35 3: ", "[Nov 23 04:35:35] [default3]:". A time without
// such a prefix after it belongs to the program.
func cutLabelStamp(line string) (rest string, ok bool) {
	i := strings.IndexByte(line[:min(len(line), 24)], ':')
	if i < 2 || len(line) < i+9 || line[i+3] != ':' || !Digit(line[i-1]) || !Digit(line[i+4]) || !Digit(line[i+5]) {
		return line, false
	}
	if strings.Trim(strings.TrimPrefix(line[:i], "["), "0123456789-/. T") != "" {
		if _, _, _, dated := dateBefore(strings.TrimPrefix(line[:i-2], "[")); !dated {
			return line, false
		}
	}
	rest = strings.TrimLeft(line[i+6:], ".,0123456789Z]")
	if !strings.HasPrefix(rest, " ") {
		return line, false
	}
	rest = rest[1:]
	if _, _, label := cutLabel(rest); label || strings.HasPrefix(rest, "srun: ") || strings.HasPrefix(rest, Daemon) {
		return rest, true
	}
	_, _, _, _, bracket := cutBracket(rest)
	return rest, bracket
}

// cutWorker removes the prefixes of Ray and SkyPilot: "(head, rank=0, pid=4773) " and "(Worker
// pid=4773, ip=10.1.2.3) ". rank is -1 where the prefix has none.
func cutWorker(line string) (rest string, rank int, ok bool) {
	if len(line) < 8 || line[0] != '(' {
		return line, -1, false
	}
	end := strings.IndexByte(line[:min(len(line), 96)], ')')
	if end < 0 || end+1 >= len(line) || line[end+1] != ' ' || !strings.Contains(line[:end], "pid=") {
		return line, -1, false
	}
	rank = -1
	for _, f := range strings.FieldsFunc(line[1:end], func(r rune) bool { return r == ',' || r == ' ' }) {
		if n, isRank := strings.CutPrefix(f, "rank="); isRank {
			if k, isNumber := Number(n); isNumber {
				rank = k
			}
		}
	}
	return line[end+2:], rank, true
}

// CutHost removes the node that pdsh, dsh, mpirun and loggers put before a line: "node07: text",
// "[dgx-09] text". sure says that the text after it begins like a line, so that the prefix is certainly
// a node.
func CutHost(line string) (rest, host string, sure, ok bool) {
	from, end := 0, ": "
	if strings.HasPrefix(line, "[") && !strings.HasPrefix(line, "[rank") {
		from, end = 1, "] "
	}
	i := strings.Index(line[:min(len(line), 64)], end)
	if i < 2 {
		return line, "", false, false
	}
	host = line[from:i]
	named := !strings.HasPrefix(strings.ToLower(host), "rank") && HasDigit(host) && !Digit(host[0]) && IsWord(strings.ReplaceAll(host, ".", ""))
	if _, err := netip.ParseAddr(host); !named && host != "localhost" && err != nil {
		return line, "", false, false
	}
	rest = line[i+2:]
	for _, head := range []string{python.Header, `  File "`, "[rank", "[default", "[W", "[E", "[20", " iteration ", "> "} {
		sure = sure || strings.HasPrefix(rest, head)
	}
	return rest, host, sure, true
}

// cutLabel removes srun's "%*d: ". Before an empty line srun writes only "3:".
func cutLabel(line string) (rest string, n int, ok bool) {
	i := 0
	for i < len(line) && i < 6 && line[i] == ' ' {
		i++
	}
	start := i
	for i < len(line) && i-start < 6 && line[i] >= '0' && line[i] <= '9' {
		n = n*10 + int(line[i]-'0')
		i++
	}
	if i == start || i >= len(line) || line[i] != ':' {
		return line, -1, false
	}
	if i+1 == len(line) {
		return "", n, true
	}
	if line[i+1] != ' ' {
		return line, -1, false
	}
	return line[i+2:], n, true
}

// cutBracket removes "[name3]:", "[name3|11]:", mpirun's "[1,11]<stderr>:" and horovodrun's
// "[11]<stderr>:".
func cutBracket(line string) (rest, name string, a, b int, ok bool) {
	if len(line) < 4 || line[0] != '[' {
		return line, "", -1, -1, false
	}
	end := strings.IndexByte(line[:min(len(line), 48)], ']')
	if end < 2 {
		return line, "", -1, -1, false
	}
	inner, after := line[1:end], line[end+1:]
	if mpi, found := strings.CutPrefix(after, "<std"); found {
		if i := strings.Index(mpi, ">:"); i >= 0 && i <= 3 {
			rank := inner[strings.IndexByte(inner, ',')+1:]
			if n, isNumber := Number(rank); isNumber {
				return mpi[i+2:], "", -1, n, true
			}
		}
		return line, "", -1, -1, false
	}
	if !strings.HasPrefix(after, ":") {
		return line, "", -1, -1, false
	}
	b = -1
	if left, right, two := strings.Cut(inner, "|"); two {
		n, isNumber := Number(right)
		if !isNumber {
			return line, "", -1, -1, false
		}
		inner, b = left, n
	}
	i := len(inner)
	for i > 0 && inner[i-1] >= '0' && inner[i-1] <= '9' {
		i--
	}
	a, isNumber := Number(inner[i:])
	name = inner[:i]
	word := name
	if host, is := strings.CutSuffix(name, ":"); is {
		word = strings.ReplaceAll(host, ".", "")
	}
	if i == 0 || !isNumber || !IsWord(word) {
		return line, "", -1, -1, false
	}
	return after[1:], name, a, b, true
}

// Daemon is the prefix of slurmstepd's lines.
const Daemon = "slurmstepd"

// CutDaemonTime removes the time that slurmstepd writes since Slurm 25.05 instead of its name and node:
// "[2026-11-21T00:45:02.072] error: ".
func CutDaemonTime(line string) (rest string, ok bool) {
	if len(line) < 24 || line[0] != '[' || line[5] != '-' || line[11] != 'T' {
		return line, false
	}
	end := strings.IndexByte(line[:min(len(line), 40)], ']')
	if end < 0 || !strings.HasPrefix(line[end+1:], " error: ") && !strings.HasPrefix(line[end+1:], " fatal: ") {
		return line, false
	}
	_, ok = ParseTime(line[:end])
	return line[end+2:], ok
}

// IsWord reports whether s consists of letters, digits, hyphens and underscores only, and is not empty.
func IsWord(s string) bool {
	for i := 0; i < len(s); i++ {
		c := s[i]
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && c != '_' && c != '-' && (c < '0' || c > '9') {
			return false
		}
	}
	return s != ""
}

// Number parses s as a decimal number of at most nine digits.
func Number(s string) (n int, ok bool) {
	if s == "" || len(s) > 9 {
		return 0, false
	}
	for i := 0; i < len(s); i++ {
		if s[i] < '0' || s[i] > '9' {
			return 0, false
		}
		n = n*10 + int(s[i]-'0')
	}
	return n, true
}

// Digit reports whether a byte is a decimal digit.
func Digit(c byte) bool { return c >= '0' && c <= '9' }

// HasDigit reports whether s contains a decimal digit.
func HasDigit(s string) bool { return strings.ContainsAny(s, "0123456789") }
