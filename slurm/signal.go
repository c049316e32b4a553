package slurm

import (
	"strconv"
	"strings"
	"time"
)

// signalNumbers are the signals that Slurm knows by name, without SIG, as Linux numbers them;
// EXIT is bash's name for the end of a script.
var signalNumbers = map[string]int{
	"EXIT": 0, "HUP": 1, "INT": 2, "QUIT": 3, "ABRT": 6, "KILL": 9, "USR1": 10, "USR2": 12, "ALRM": 14, "TERM": 15,
	"CONT": 18, "STOP": 19, "TSTP": 20, "TTIN": 21, "TTOU": 22, "URG": 23,
}

// SignalNumber reads a signal as sbatch accepts it: "USR1", "SIGUSR1" or "10".
func SignalNumber(word string) (n int, ok bool) {
	if n, err := strconv.Atoi(word); err == nil {
		return n, n >= 1 && n <= 64
	}
	n = signalNumbers[SignalName(word)]
	return n, n > 0
}

// SignalName returns the name of a signal in capitals without SIG. word is a name or a
// number.
func SignalName(word string) string {
	if n, err := strconv.Atoi(word); err == nil {
		for name, number := range signalNumbers {
			if n == number {
				return name
			}
		}
	}
	return strings.TrimPrefix(strings.ToUpper(word), "SIG")
}

// A SignalAhead is the signal that --signal=[R|B:]NAME[@seconds] sends before the time limit.
type SignalAhead struct {
	// BatchOnly sends it to the batch shell alone, not to the steps.
	BatchOnly bool
	// Reservation allows reservations that the job would overlap; the signal then comes early.
	Reservation bool
	Name        string // as given: a name or a number
	Before      time.Duration
}

// ParseSignal reads a value of --signal. Where ok is false, sbatch refuses it, and s has what can be
// read.
func ParseSignal(v string) (s SignalAhead, ok bool) {
	to, rest, cut := strings.Cut(v, ":")
	if !cut {
		to, rest = "", v
	}
	s.BatchOnly, s.Reservation = strings.ContainsAny(to, "Bb"), strings.ContainsAny(to, "Rr")
	name, ahead, timed := strings.Cut(rest, "@")
	s.Name, s.Before = name, time.Minute // Slurm's default
	seconds, err := strconv.ParseUint(ahead, 10, 16)
	if timed {
		s.Before = time.Duration(seconds) * time.Second
	}
	_, known := SignalNumber(name)
	return s, known && (err == nil || !timed) && strings.Trim(to, "RBrb") == ""
}
