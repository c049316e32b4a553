package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestVerdictsTellWhatWasSkippedAndWhatIsFlaky(t *testing.T) {
	const pass = `{"Action":"output","Package":"a","Test":"TestA","Output":"noise of a test that passed\n"}
{"Action":"pass","Package":"a","Test":"TestA"}
{"Action":"pass","Package":"a"}
`
	const skip = `{"Action":"output","Package":"b","Test":"TestB","Output":"    b_test.go:7: no Node: run make setup\n"}
{"Action":"output","Package":"b","Test":"TestB","Output":"--- SKIP: TestB (0.00s)\n"}
{"Action":"skip","Package":"b","Test":"TestB"}
{"Action":"skip","Package":"without tests"}
`
	const fail = `{"Action":"fail","Package":"c","Test":"TestC"}
`
	const again = `{"Action":"pass","Package":"c","Test":"TestC"}
`
	for _, c := range []struct {
		in   string
		ci   bool
		code int
		want string
	}{
		{pass, true, 0, "1 passed, 0 failed, 0 skipped"},
		{pass + skip, false, 0, "skipped: b TestB: no Node: run make setup"},
		{pass + skip, true, 1, "1 passed, 0 failed, 1 skipped"},
		{pass + fail, false, 1, "1 passed, 1 failed, 0 skipped"},
		{pass + fail + again, true, 0, "flaky, failed once and passed alone: c TestC\n2 passed, 0 failed, 0 skipped"},
		{pass + fail + fail, true, 1, "1 failed"},
		{"", false, 1, "0 passed"},
	} {
		var out strings.Builder
		require.Equal(t, c.code, verdicts(strings.NewReader(c.in), &out, c.ci), c.want)
		require.Contains(t, out.String(), c.want)
		require.NotContains(t, out.String(), "noise")
	}
}
