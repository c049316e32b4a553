package logline

import (
	"strings"
	"time"
)

// Yearless is the year of a time whose log names none, as in PyTorch's "E0610 08:59:06.36". The year
// comes from other lines.
const Yearless = 0

// ParseTime finds the first time of day in the first 120 bytes of a line, with the date before it.
// Formats: Megatron's and Python's "2026-04-04 20:30:32,5", Slurm's and containers'
// "2026-06-10T08:59:16", torchelastic's "2026-04-06_04:12:45", glog's "E0610 08:59:06.361206", syslog's
// "Jun 10 08:59:16", date(1)'s "Wed Jun 10 08:42:43 UTC 2026".
func ParseTime(line string) (time.Time, bool) {
	head := line[:min(len(line), 120)]
	for from := 0; ; {
		i := strings.IndexByte(head[from:], ':')
		if i < 0 {
			return time.Time{}, false
		}
		i += from
		from = i + 1
		if i < 2 || i+5 >= len(head) || head[i+3] != ':' {
			continue
		}
		h, ok1 := twoDigits(head[i-2:])
		m, ok2 := twoDigits(head[i+1:])
		s, ok3 := twoDigits(head[i+4:])
		if !ok1 || !ok2 || !ok3 || h > 23 || m > 59 || s > 60 {
			continue
		}
		if afternoon := strings.HasPrefix(head[i+6:], " PM "); afternoon && h < 12 {
			h += 12
		} else if h == 12 && strings.HasPrefix(head[i+6:], " AM ") {
			h = 0
		}
		year, month, day, ok := dateBefore(head[:i-2])
		if !ok {
			continue
		}
		if year == Yearless {
			year = yearAfter(head[i+6:])
		}
		return time.Date(year, time.Month(month), day, h, m, s, fraction(head[i+6:]), time.UTC), true
	}
}

func twoDigits(s string) (int, bool) {
	if len(s) < 2 || s[0] < '0' || s[0] > '9' || s[1] < '0' || s[1] > '9' {
		return 0, false
	}
	return int(s[0]-'0')*10 + int(s[1]-'0'), true
}

// fraction parses ".361206213" or ",526" as nanoseconds.
func fraction(s string) int {
	if s == "" || s[0] != '.' && s[0] != ',' {
		return 0
	}
	n, scale := 0, 1_000_000_000
	for i := 1; i < len(s) && s[i] >= '0' && s[i] <= '9' && scale > 1; i++ {
		n, scale = n*10+int(s[i]-'0'), scale/10
	}
	return n * scale
}

const months = "JanFebMarAprMayJunJulAugSepOctNovDec"

// dateBefore parses the date at the end of s.
func dateBefore(s string) (year, month, day int, ok bool) {
	s = strings.TrimRight(s, " T_\t")
	n := len(s)
	if n >= 10 && (s[n-3] == '-' || s[n-3] == '/') && s[n-6] == s[n-3] { // 2026-06-10
		y, ok1 := Number(s[n-10 : n-6])
		m, ok2 := twoDigits(s[n-5:])
		d, ok3 := twoDigits(s[n-2:])
		return y, m, d, ok1 && ok2 && ok3 && validDate(m, d)
	}
	if n >= 10 && s[n-5] == '/' && s[n-8] == '/' { // 06/10/2026, the American order
		m, ok1 := twoDigits(s[n-10:])
		d, ok2 := twoDigits(s[n-7:])
		y, ok3 := Number(s[n-4:])
		if m > 12 {
			m, d = d, m
		}
		if ok1 && ok2 && ok3 && validDate(m, d) {
			return y, m, d, true
		}
	}
	if n >= 5 { // glog: a letter, month and day
		m, ok1 := twoDigits(s[n-4:])
		d, ok2 := twoDigits(s[n-2:])
		if c := s[n-5]; ok1 && ok2 && c >= 'A' && c <= 'Z' && validDate(m, d) {
			return Yearless, m, d, true
		}
	}
	if n == 5 || n == 6 && s[0] == '[' { // 06-10 and nothing else
		m, ok1 := twoDigits(s[n-5:])
		d, ok2 := twoDigits(s[n-2:])
		if c := s[n-3]; (c == '-' || c == '/') && ok1 && ok2 && validDate(m, d) {
			return Yearless, m, d, true
		}
	}
	if i := strings.LastIndexByte(s, ' '); i >= 3 { // Jun 10
		d, ok1 := Number(s[i+1:])
		word := strings.TrimRight(s[:i], " ")
		if len(word) >= 3 {
			m := strings.Index(months, word[len(word)-3:])
			if ok1 && m >= 0 && m%3 == 0 && validDate(m/3+1, d) {
				return Yearless, m/3 + 1, d, true
			}
		}
	}
	return 0, 0, 0, false
}

func validDate(m, d int) bool { return m >= 1 && m <= 12 && d >= 1 && d <= 31 }

// yearAfter parses the year that date(1) writes after the time. mpirun's tag may follow the year
// directly.
func yearAfter(s string) int {
	words := strings.FieldsFunc(s, func(r rune) bool { return r == ' ' || r == '[' })
	for _, w := range words[:min(3, len(words))] {
		if y, ok := Number(w); ok && y >= 1990 && y < 2200 {
			return y
		}
	}
	return Yearless
}
