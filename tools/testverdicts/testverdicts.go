// Command testverdicts reads the events that gotestsum recorded of a run of all tests
// (`go test -json`, one run after the other) and reports what its summary omits: which
// tests failed and then passed when they were run again, and why others were skipped.
// It exits with 1 if the last run of a test failed, if no test passed, or, with CI=true
// in its environment, if a test was skipped.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
)

// An event is one line of `go test -json`.
type event struct{ Action, Package, Test, Output string }

func main() { os.Exit(verdicts(os.Stdin, os.Stdout, os.Getenv("CI") == "true")) }

func verdicts(in io.Reader, out io.Writer, ci bool) int {
	last := map[string]string{} // the last verdict, by package and test
	why := map[string]string{}
	var flaky []string
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var e event
		if json.Unmarshal(lines.Bytes(), &e) != nil || e.Test == "" {
			continue
		}
		test := e.Package + " " + e.Test
		switch e.Action {
		case "output":
			// The text of a skipped test: `    a_test.go:7: no Node: run make setup`.
			if _, text, ok := strings.Cut(e.Output, ".go:"); ok {
				_, text, _ = strings.Cut(text, ": ")
				why[test] = strings.TrimSpace(text)
			}
		case "pass", "fail", "skip":
			if last[test] == "fail" && e.Action == "pass" {
				flaky = append(flaky, test)
			}
			last[test] = e.Action
		}
	}
	count, skipped := map[string]int{}, []string{}
	for test, verdict := range last {
		count[verdict]++
		if verdict == "skip" {
			skipped = append(skipped, test+": "+why[test])
		}
	}
	for _, told := range []struct {
		word  string
		tests []string
	}{{"skipped", skipped}, {"flaky, failed once and passed alone", flaky}} {
		slices.Sort(told.tests)
		for _, test := range told.tests {
			fmt.Fprintf(out, "%s: %s\n", told.word, test)
		}
	}
	fmt.Fprintf(out, "%d passed, %d failed, %d skipped\n", count["pass"], count["fail"], count["skip"])
	if lines.Err() != nil || count["fail"] > 0 || count["pass"] == 0 || ci && count["skip"] > 0 {
		return 1
	}
	return 0
}
