// Command testsummary reads what `go test -json` writes and shows it as a person
// wants it: one line a package, what failed with its output, and at the end how
// many tests were skipped and why. It ends with 1 where a test failed, and, with
// CI=true in its environment, where one was skipped.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
)

// An event is one line of `go test -json`.
type event struct {
	Action, Package, Test, Output, ImportPath string
	Elapsed                                   float64
}

func main() { os.Exit(summarize(os.Stdin, os.Stdout, os.Getenv("CI") == "true")) }

func summarize(in io.Reader, out io.Writer, ci bool) int {
	said := map[string]*strings.Builder{} // by package and test
	var skipped []string
	passed, failed := 0, 0
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var e event
		if json.Unmarshal(lines.Bytes(), &e) != nil {
			fmt.Fprintln(out, lines.Text()) // of the go command itself
			continue
		}
		key := e.Package + e.ImportPath + " " + e.Test
		switch e.Action {
		case "output", "build-output":
			if said[key] == nil {
				said[key] = &strings.Builder{}
			}
			said[key].WriteString(e.Output)
			continue
		case "fail", "build-fail":
			failed++
			if said[key] != nil {
				fmt.Fprint(out, said[key])
			}
			fmt.Fprintf(out, "FAIL  %s (%.1f s)\n", key, e.Elapsed)
		case "skip":
			if e.Test != "" {
				skipped = append(skipped, key+": "+reason(said[key]))
			}
		case "pass":
			if e.Test != "" {
				passed++
				break
			}
			fmt.Fprintf(out, "ok    %s (%.1f s)\n", e.Package, e.Elapsed)
		default:
			continue
		}
		delete(said, key)
	}
	fmt.Fprintf(out, "\n%d tests passed, %d failed, %d skipped\n", passed, failed, len(skipped))
	for _, s := range skipped {
		fmt.Fprintln(out, "skipped  "+s)
	}
	if err := lines.Err(); err != nil || failed > 0 || passed == 0 || ci && len(skipped) > 0 {
		return 1
	}
	return 0
}

// reason is what a test said as it was skipped: the line before the verdict.
func reason(said *strings.Builder) string {
	if said == nil {
		return "no reason given"
	}
	why := "no reason given"
	for line := range strings.SplitSeq(said.String(), "\n") {
		if _, text, ok := strings.Cut(line, ".go:"); ok {
			_, why, _ = strings.Cut(text, ": ")
		}
	}
	return why
}
