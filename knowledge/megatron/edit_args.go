package megatron

import (
	"slices"
	"strconv"
	"strings"
)

// ValueOf returns the last value in args of a flag, which may have several names.
// given reports whether args contain the flag at all.
func ValueOf(args []string, names ...string) (value string, given bool) {
	for i, a := range args {
		name, v, joined := strings.Cut(a, "=")
		if !slices.Contains(names, name) {
			continue
		}
		given = true
		if joined {
			value = v
		} else if i+1 < len(args) {
			value = args[i+1]
		}
	}
	return value, given
}

// LastOf returns the last value of a flag in args, or "".
func LastOf(args []string, flag string) string {
	v, _ := ValueOf(args, flag)
	return v
}

// NumberOf returns the last value of a flag in args as a number, or fallback where
// it is no integer above 0.
func NumberOf(args []string, flag string, fallback int) int {
	n, err := strconv.Atoi(LastOf(args, flag))
	if err != nil || n < 1 {
		return fallback
	}
	return n
}

// WithoutFlags returns args without the named flags and their values.
func WithoutFlags(args, flags []string) []string {
	var kept []string
	dropping := false
	for _, a := range args {
		if strings.HasPrefix(a, "--") {
			name, _, _ := strings.Cut(a, "=")
			dropping = slices.Contains(flags, name)
		}
		if !dropping {
			kept = append(kept, a)
		}
	}
	return kept
}
