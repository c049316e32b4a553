package megatron

import (
	"slices"
	"strconv"
	"strings"
)

// ValueOf is the last value that args give a flag.
func ValueOf(args []string, flag string) (value string, given bool) {
	for i, a := range args {
		if v, ok := strings.CutPrefix(a, flag+"="); ok {
			value, given = v, true
		} else if a == flag {
			given = true
			if i+1 < len(args) {
				value = args[i+1]
			}
		}
	}
	return value, given
}

// LastOf is the last value that args give a flag, or "".
func LastOf(args []string, flag string) string {
	v, _ := ValueOf(args, flag)
	return v
}

// NumberOf is the number of 1 or more that args give a flag, or otherwise.
func NumberOf(args []string, flag string, otherwise int) int {
	n, err := strconv.Atoi(LastOf(args, flag))
	if err != nil || n < 1 {
		return otherwise
	}
	return n
}

// WithoutFlags is args less the named flags and their values.
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
