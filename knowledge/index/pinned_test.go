package index_test

import (
	"flag"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/knowledge/index"
)

var update = flag.Bool("update", false, "write testdata")

// The terms of texts with their weights, and the Docs that the texts find with their
// scores. Review shows every change.
func TestTermsAndScoresArePinned(t *testing.T) {
	t.Parallel()
	texts, err := os.ReadFile("testdata/texts.txt")
	require.NoError(t, err)
	x := open(t, docs...)
	var out strings.Builder
	for q := range strings.Lines(string(texts)) {
		q = strings.TrimSuffix(q, "\n")
		fmt.Fprintf(&out, "%s\n  ", strconv.Quote(q))
		for _, term := range index.Terms(q) {
			fmt.Fprintf(&out, " %s:%.4g", term.Key, term.Weight)
		}
		fmt.Fprintf(&out, "\n  field %t", x.HasFieldTerm(q, len(docs)))
		for _, hit := range x.Search(q, 3) {
			fmt.Fprintf(&out, " %d:%.4f", hit.Doc, hit.Score)
		}
		out.WriteString("\n")
	}
	const golden = "testdata/terms.golden"
	if *update {
		require.NoError(t, os.WriteFile(golden, []byte(out.String()), 0o644))
	}
	want, err := os.ReadFile(golden)
	require.NoError(t, err)
	wanted := strings.Split(string(want), "\n")
	for i, line := range strings.Split(out.String(), "\n") {
		if i >= len(wanted) || line != wanted[i] {
			require.Failf(t, "a reading changed", "line %d: %q; go test ./knowledge/index -run Pinned -update writes what is so now", i+1, line)
		}
	}
}
