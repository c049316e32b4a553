package rules

import (
	"cmp"
	_ "embed"
	"slices"
	"strings"
	"sync"

	"github.com/megatron-ops/megatron-ops/knowledge/megatron"
)

// sourcesFile has a line for each rule whose check is in different places in
// different releases. A line names the place in each release. A number alone is a
// line of the file that the row names. A dash means that the release has no such
// check.
//
//go:embed sources.csv
var sourcesFile string

// sources holds, by rule id, the check's source in each release except the newest.
var sources = sync.OnceValue(func() map[string][]string {
	lines := strings.Split(strings.TrimSpace(sourcesFile), "\n")
	all := make(map[string][]string, len(lines))
	for _, line := range lines[1:] {
		fields := strings.Split(line, ",")
		all[fields[0]] = fields[1:]
	}
	return all
})

// sourceIn returns the source of a row's check in a release; false where the
// release has no such check.
func (r *row) sourceIn(release megatron.Release) (string, bool) {
	if r.until != 0 && release > r.until {
		return "", false
	}
	release = release.OrNewest()
	in, listed := sources()[r.id]
	if !listed || int(release) > len(in) {
		return r.source, true
	}
	at := in[release-1]
	switch {
	case at == "-":
		return "", false
	case strings.Contains(at, ":"):
		return at, true
	}
	file, _, _ := strings.Cut(r.source, ":")
	return file + ":" + at, true
}

// span returns the first and the last release with the check; zero means the
// oldest and the newest known release.
func (r *row) span() (since, until megatron.Release) {
	all := megatron.Releases()
	for _, release := range all {
		if _, ok := r.sourceIn(release); ok {
			since = cmp.Or(since, release)
			until = release
		}
	}
	if since == all[0] {
		since = 0
	}
	if until == all[len(all)-1] {
		until = 0
	}
	return since, until
}

var tables [16]struct {
	once sync.Once
	rows []row
}

// tableOf returns the rows of a release, each with the release's own source. Their
// order is the order of the newest release's checks.
func tableOf(release megatron.Release) []row {
	release = release.OrNewest()
	at := &tables[release]
	at.once.Do(func() {
		for _, r := range table() {
			if source, ok := r.sourceIn(release); ok {
				r.source = source
				at.rows = append(at.rows, r)
			}
		}
		at.rows = slices.Clip(at.rows)
	})
	return at.rows
}
