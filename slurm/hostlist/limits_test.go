package hostlist_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/slurm/hostlist"
)

// A list names at most ten thousand nodes, whatever its form.
func TestAListHasALimit(t *testing.T) {
	for _, tt := range []struct {
		list  string
		nodes int // 0 if there are too many
	}{
		{"n[0-9999]", 10_000},
		{"n[1-10000]", 10_000},
		{"n[0-10000]", 0},
		{"n[0-4999],m[0-4999]", 10_000},
		{"n[0-4999],m[0-5000]", 0},
		{"n[0-99]r[0-99]", 10_000},
		{"n[0-99]r[0-100]", 0},
		{"n[0-9998],x", 10_000},
		{"n[0-9999],x", 0},
		{strings.TrimSuffix(strings.Repeat("x,", 10_000), ","), 10_000},
		{strings.TrimSuffix(strings.Repeat("x,", 10_001), ","), 0},
	} {
		got, err := hostlist.Expand(tt.list)
		if tt.nodes == 0 {
			require.ErrorContains(t, err, "more than 10000 nodes", tt.list[:min(len(tt.list), 30)])
			continue
		}
		require.NoError(t, err, tt.list[:min(len(tt.list), 30)])
		require.Len(t, got, tt.nodes)
	}
}

func TestAFaultIsToldWithItsColumn(t *testing.T) {
	for list, want := range map[string]string{
		"gpu[1-":        `node list "gpu[1-": missing ']' for the '[' at column 4`,
		"[1":            `node list "[1": missing ']' for the '[' at column 1`,
		"gpu[1[2]]":     `node list "gpu[1[2]]": '[' inside brackets at column 6`,
		"[[1]]":         `node list "[[1]]": '[' inside brackets at column 2`,
		"gpu1]":         `node list "gpu1]": ']' without '[' at column 5`,
		"]":             `node list "]": ']' without '[' at column 1`,
		"a[1]],b":       `node list "a[1]],b": ']' without '[' at column 5`,
		"a,,b":          `node list "a,,b": empty name at column 3`,
		"a,":            `node list "a,": empty name at column 3`,
		"gpu[x]":        `node list "gpu[x]": "x" is not a number or a range such as 01-16`,
		"gpu[3-1]":      `node list "gpu[3-1]": range "3-1" runs backwards`,
		"gpu[1-2-3]":    `node list "gpu[1-2-3]": "1-2-3" is not a number or a range such as 01-16`,
		"a[1]b[2":       `node list "a[1]b[2": missing ']' for the '[' at column 6`,
		"a[1-2]b[4-3]":  `node list "a[1-2]b[4-3]": range "4-3" runs backwards`,
		"a[1],b[2]],[3": `node list "a[1],b[2]],[3": ']' without '[' at column 10`,
	} {
		_, err := hostlist.Expand(list)
		require.EqualError(t, err, want)
	}
}
