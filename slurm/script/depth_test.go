package script_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/slurm/script"
)

// A stack overflow ends the whole program, whoever sent the script.
func TestADeeplyNestedScriptIsRefused(t *testing.T) {
	t.Parallel()
	for _, open := range []string{
		"(", "$(", "((", "$((", "{ ", "if ", "if a; then ", "while ", "for a in b; do ", "case a in a) ", "if a; then b; el", "! ", "${a:-", "${a[$((", "<(", "`", "\\`",
		"\"$(", "[[ ( ", "[[ ! ", "time ", "coproc ", "a() ", "a | ", "a && ", "((a ? ", "((-", "((a ** ", "((a = ", "@(", "a=(", "<<E", "\"${a:-", "$\"$(", "select a in b; do ",
	} {
		s := script.Read("job.sh", []byte("#!/bin/bash\n"+strings.Repeat(open, 1<<20/len(open))))
		require.NotEmpty(t, s.Jobs, open)
	}
	for _, inner := range []string{"( ", "! ", "-", "a ** ", "a ? ", "a = ", "${a:-", "a[", "a, "} {
		for _, start := range []string{"((", "[[ ", "a=$((", "[[ a -eq "} {
			script.Read("job.sh", []byte(start+strings.Repeat(inner, 1<<20/len(inner))))
		}
	}

	deep := script.Read("job.sh", []byte("#!/bin/bash\necho a\n"+strings.Repeat("(", 1<<20)))
	require.Len(t, deep.Jobs[0].Refusals, 1)
	require.Equal(t, 3, deep.Jobs[0].Refusals[0].Line)
	require.Contains(t, deep.Jobs[0].Refusals[0].Message, "nested too deeply")

	usual := strings.Repeat("if a; then\n", 50) + "echo $(echo $(echo $((1 + (2 * (3 + 4))))))\n" + strings.Repeat("fi\n", 50)
	require.Empty(t, script.Read("job.sh", []byte("#!/bin/bash\n"+usual)).Jobs[0].Refusals)
}
