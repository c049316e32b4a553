// Command slurmwords writes the table of Slurm's words for a job's reason, a job's
// state and a node's state, with the releases that have each word, from a clone of
// Slurm's own repository:
//
//	go run ./tools/slurmwords FOLDER >slurm/testdata/words.tsv
package main

import (
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
)

// tags are the last known patch release of each release whose words are wanted.
var tags = []string{
	"slurm-22-05-8-1", "slurm-23-02-8-1", "slurm-23-11-11-1", "slurm-24-05-8-1", "slurm-24-11-7-1", "slurm-25-05-8-1", "slurm-25-11-7-1", "slurm-26-05-3-1",
}

// A source is where one kind of words is: in a function, or in a table.
type source struct {
	kind, file string
	begin      *regexp.Regexp
	word       *regexp.Regexp
}

var (
	returned = regexp.MustCompile(`return "([^"?]+)"`)
	sources  = []source{
		{"reason", "src/common/slurm_protocol_defs.c", regexp.MustCompile(`^extern char \*job_reason_string\(`), returned},
		{"reason", "src/common/job_state_reason.c", regexp.MustCompile(`^const static entry_t jsra\[\]`), regexp.MustCompile(`\.str = "([^"]+)"`)},
		{"state", "src/common/slurm_protocol_defs.c", regexp.MustCompile(`^extern char \*job_state_string\(`), returned},
		{"node", "src/common/slurm_protocol_defs.c", regexp.MustCompile(`^extern char \*node_state_string\(`), returned},
	}
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: slurmwords FOLDER, a clone of https://github.com/SchedMD/slurm")
		os.Exit(2)
	}
	releases := map[string][]string{} // by "kind\tword"
	for _, tag := range tags {
		release := strings.ReplaceAll(tag[len("slurm-"):len("slurm-22-05")], "-", ".")
		for _, s := range sources {
			text, err := exec.Command("git", "-C", os.Args[1], "show", tag+":"+s.file).Output()
			if err != nil {
				continue // the file was added later
			}
			inside := false
			for line := range strings.Lines(string(text)) {
				inside = inside && line != "}\n" && line != "};\n" || s.begin.MatchString(line)
				if m := s.word.FindStringSubmatch(line); inside && m != nil {
					if key := s.kind + "\t" + m[1]; !slices.Contains(releases[key], release) {
						releases[key] = append(releases[key], release)
					}
				}
			}
		}
	}
	var rows []string
	for key, in := range releases {
		rows = append(rows, key+"\t"+strings.Join(in, " "))
	}
	slices.Sort(rows)
	fmt.Println(strings.Join(rows, "\n"))
}
