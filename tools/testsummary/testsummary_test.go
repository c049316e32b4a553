package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSummaryTellsFailuresAndWhySomethingWasSkipped(t *testing.T) {
	const pass = `{"Action":"output","Package":"a","Test":"TestA","Output":"noise of a test that passed\n"}
{"Action":"pass","Package":"a","Test":"TestA","Elapsed":0.1}
{"Action":"pass","Package":"a","Elapsed":0.2}
`
	const skip = `{"Action":"output","Package":"b","Test":"TestB","Output":"    b_test.go:7: no Node: run make setup\n"}
{"Action":"output","Package":"b","Test":"TestB","Output":"--- SKIP: TestB (0.00s)\n"}
{"Action":"skip","Package":"b","Test":"TestB","Elapsed":0}
{"Action":"skip","Package":"without tests"}
`
	const fail = `{"Action":"output","Package":"c","Test":"TestC","Output":"    c_test.go:9: expected 1\n"}
{"Action":"fail","Package":"c","Test":"TestC","Elapsed":0.1}
`
	const broken = `{"ImportPath":"d","Action":"build-output","Output":"d.go:1: undefined: x\n"}
{"ImportPath":"d","Action":"build-fail"}
`
	for _, c := range []struct {
		in   string
		ci   bool
		code int
		want string
	}{
		{pass, true, 0, "1 tests passed, 0 failed, 0 skipped"},
		{pass + skip, false, 0, "skipped  b TestB: no Node: run make setup"},
		{pass + skip, true, 1, "1 skipped"},
		{pass + fail, false, 1, "c_test.go:9: expected 1"},
		{pass + broken, false, 1, "undefined: x"},
		{"", false, 1, "0 tests passed"},
		{"go: cannot find module\n", false, 1, "cannot find module"},
	} {
		var out strings.Builder
		require.Equal(t, c.code, summarize(strings.NewReader(c.in), &out, c.ci), c.want)
		require.Contains(t, out.String(), c.want)
		require.NotContains(t, out.String(), "noise")
	}
}
