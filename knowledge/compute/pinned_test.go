package compute_test

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/knowledge/compute"
)

var update = flag.Bool("update", false, "write testdata")

// The computed answers to all labelled questions and to the questions of
// testdata/more.txt. Review shows every change.
func TestComputedAnswersArePinned(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	for _, q := range labelled(t) {
		got, ok := compute.Answer(q, lang.Of(q))
		if !ok {
			if strings.ContainsAny(q, "0123456789") {
				fmt.Fprintf(&out, "%s\t-\n", strconv.Quote(q))
			}
			continue
		}
		fmt.Fprintf(&out, "%s\t%s\t%t %t\t%s\n", strconv.Quote(q), got.Section, got.Asked(), got.Setting, strconv.Quote(got.Text))
	}
	const golden = "testdata/computed.golden"
	if *update {
		require.NoError(t, os.WriteFile(golden, []byte(out.String()), 0o644))
	}
	want, err := os.ReadFile(golden)
	require.NoError(t, err)
	wanted := strings.Split(string(want), "\n")
	for i, line := range strings.Split(out.String(), "\n") {
		if i >= len(wanted) || line != wanted[i] {
			require.Failf(t, "a computed answer changed", "line %d: %s; go test ./knowledge/compute -run Pinned -update writes what is so now", i+1, line)
		}
	}
	require.Len(t, wanted, strings.Count(out.String(), "\n")+1)
}

// labelled returns the questions of all sets and of testdata/more.txt.
func labelled(t *testing.T) (list []string) {
	t.Helper()
	sets, err := filepath.Glob("../eval/questions/*.jsonl")
	require.NoError(t, err)
	for _, path := range append(sets, "../testdata/asked.jsonl", "../testdata/derived.jsonl", "testdata/more.txt") {
		f, err := os.Open(path)
		require.NoError(t, err)
		lines := bufio.NewScanner(f)
		for lines.Scan() {
			var row struct{ Q string }
			if filepath.Ext(path) == ".txt" {
				row.Q = lines.Text()
			} else {
				require.NoError(t, json.Unmarshal(lines.Bytes(), &row))
			}
			list = append(list, row.Q)
		}
		require.NoError(t, lines.Err())
		require.NoError(t, f.Close())
	}
	return list
}
