package slurmtest

import (
	"embed"
	"encoding/json"
	"io/fs"
	"path"
	"strconv"
	"strings"
	"testing"
)

// recorded holds the answers of real daemons of five releases, one folder for each:
// what the back ends ask for (queue.txt, rest-jobs.json and so on), rest/ with
// slurmrestd's answers by API version and rest.tsv with their HTTP statuses, text/ with
// the output of commands, rejected.txt and states.txt.
//
//go:embed recorded
var recorded embed.FS

// Releases are the releases with recordings, oldest first.
var Releases = []string{"22.05", "23.11", "24.11", "25.11", "26.05"}

// Recorded returns one recorded file of a release, such as "queue.txt" or
// "rest/v0.0.42/job-running.json".
func Recorded(t testing.TB, release, name string) string {
	t.Helper()
	text, err := recorded.ReadFile(path.Join("recorded", release, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// HasRecorded reports whether a release has a recorded file.
func HasRecorded(release, name string) bool {
	_, err := fs.Stat(recorded, path.Join("recorded", release, name))
	return err == nil
}

// APIs returns the API versions that a release's slurmrestd served, oldest first, as
// numbers: 40 for v0.0.40.
func APIs(t testing.TB, release string) (versions []int) {
	t.Helper()
	folders, err := fs.ReadDir(recorded, path.Join("recorded", release, "rest"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range folders {
		n, err := strconv.Atoi(strings.TrimPrefix(f.Name(), "v0.0."))
		if err != nil {
			t.Fatal(err)
		}
		versions = append(versions, n)
	}
	return versions
}

// An object is a JSON object.
type object = map[string]any

// recordedDocument returns a recorded JSON document.
func recordedDocument(t testing.TB, release, name string) (doc object) {
	t.Helper()
	if err := json.Unmarshal([]byte(Recorded(t, release, name)), &doc); err != nil {
		t.Fatalf("%s %s: %v", release, name, err)
	}
	return doc
}

// recordedStatus returns the HTTP status of a recorded answer.
func recordedStatus(t testing.TB, release, name string) int {
	t.Helper()
	for line := range strings.Lines(Recorded(t, release, "rest.tsv")) {
		f := strings.Split(strings.TrimSpace(line), "\t")
		if f[0] == path.Clean(name) {
			status, err := strconv.Atoi(f[len(f)-1])
			if err != nil {
				t.Fatal(err)
			}
			return status
		}
	}
	t.Fatalf("%s has no status of %s", release, name)
	return 0
}
