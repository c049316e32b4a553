package opstest

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
)

// An Answer is an operation's answer in a named case.
type Answer struct {
	Name string
	Out  any
}

// Pinned compares answers, as a shell shows them in both languages, and the attributes
// of operations with testdata/shown.txt. With update it writes that file.
func Pinned(t *testing.T, update bool, answers []Answer, operations ...ops.Op) {
	t.Helper()
	var b strings.Builder
	for _, a := range answers {
		for _, l := range []lang.Lang{lang.EN, lang.ZH} {
			fmt.Fprintf(&b, "== %s (%s)\n%s\n", a.Name, l, Text(t, a.Out, l))
		}
	}
	for _, op := range operations {
		fmt.Fprintf(&b, "%s: %v, core %v, idempotent %v, closed %v\n", op.Name, op.Effect, op.Core, op.Idempotent || op.Effect == ops.Read, op.Closed)
	}
	file := filepath.Join("testdata", "shown.txt")
	if update {
		Write(t, file, b.String())
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, string(want), b.String())
}
