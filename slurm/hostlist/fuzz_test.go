package hostlist_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/slurm/hostlist"
)

func FuzzCompressedNamesExpandToThemselves(f *testing.F) {
	for _, list := range []string{"gpu[1-3]", "gpu[08-11],x", "r[1-2]n[07-08]", "gpu[3-1]", "a[0009-0011,5]", "[1-3]", "n[9998-10001],n010", "n[0-9999][0-9999]", "n[1", "n]", ",", "n[1-2]x[3]y"} {
		f.Add(list)
	}
	f.Fuzz(func(t *testing.T, list string) {
		names, err := hostlist.Expand(list)
		if err != nil {
			return
		}
		require.LessOrEqual(t, len(names), 10_000)
		compressed := hostlist.Compress(names)
		again, err := hostlist.Expand(compressed)
		require.NoError(t, err, "%q", compressed)
		slices.Sort(names)
		slices.Sort(again)
		require.Equal(t, slices.Compact(names), again, "%q", compressed)
	})
}
