package scan

import (
	"bufio"
	"bytes"
	"io/fs"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/internal/lazy"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/logline"
)

// TestDigitsDoNotDecideAnAnswerThatIsKept asks each expression of which answers are kept about the lines
// of the labelled logs, and about the same lines with other digits.
func TestDigitsDoNotDecideAnAnswerThatIsKept(t *testing.T) {
	other := func(text string) string {
		return strings.Map(func(r rune) rune {
			if r < 0x80 && logline.Digit(byte(r)) {
				return '0' + (r-'0'+7)%10
			}
			return r
		}, text)
	}
	matched := map[*lazy.Pattern]int{}
	logs := os.DirFS("../testdata/cases")
	require.NoError(t, fs.WalkDir(logs, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := fs.ReadFile(logs, path)
		require.NoError(t, err)
		for lines := bufio.NewScanner(bytes.NewReader(b)); lines.Scan(); {
			text := lines.Text()
			require.Equal(t, logline.DigitsAsZeros(text), logline.DigitsAsZeros(other(text)), text)
			for _, re := range []*lazy.Pattern{otherProgress, whole, tallyForm, epochsToBe, epochAlone} {
				if m := re.MatchString(text); m {
					matched[re]++
					require.True(t, re.MatchString(other(text)), "%s with other digits", text)
				}
			}
		}
		return nil
	}))
	require.Len(t, matched, 5, "an expression that no line matches was not tried")
}
