package diagnose

import (
	"slices"
	"strconv"
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/lazy"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/scan"
)

var lastNumber = lazy.New(`^(.*[^0-9])(\d{1,5})((?:\.[a-z]+(?:\.gz|\.zst)?)?)$`)

// ofNode ends what stands before a number that counts nodes, as srun's %n does.
var ofNode = lazy.New(`(?i)(?:^|[^a-z])node[-_]?$`)

// placeSeries reads ranks from names that count: srun --output=x-%t.log
// writes one file for each task, from 0 on. As many files as there are nodes
// are one for each node.
func (j *job) placeSeries() {
	series := map[string]map[int]int{} // name around the number → number → file
	for i := range j.files {
		m := lastNumber.FindStringSubmatch(j.src.Logs[i].Name)
		if m == nil || j.fileRank[i] >= 0 || j.fileNode[i] != "" || ofNode.MatchString(m[1]) {
			continue
		}
		n, _ := strconv.Atoi(m[2])
		key := m[1] + "*" + m[3]
		if series[key] == nil {
			series[key] = map[int]int{}
		}
		series[key][n] = i
	}
	for key, files := range series {
		most, nodes := 0, false
		for k, i := range files {
			most, nodes = max(most, k), nodes || ofOtherRanks(j.files[i], k)
		}
		if nodes || atEnd(key) && slices.Contains(j.src.Files(), strings.TrimSuffix(key, ".*")) {
			continue // a node's, or the older parts of a log
		}
		count := most + 1 // a rank without a word has an empty file
		whole := len(files) == count || j.world > 0 && len(files) > j.world/2 && !atEnd(key)
		if count < 2 || !whole || j.world > 0 && count > j.world || j.world > count && count <= max(1, len(j.nodes)) {
			continue
		}
		for k, i := range files {
			j.fileRank[i] = k
		}
	}
}

// atEnd reports whether files' names end with the number that counts them, as "err.0" to
// "err.3" of ranks do, and also the older parts of a log, "x.log.1" beside "x.log".
func atEnd(key string) bool { return strings.HasSuffix(key, "*") }

// ofOtherRanks reports whether lines of a file are another rank's than k, or a launcher
// tells there of others or of several local ones: then the file is a node's.
func ofOtherRanks(f *scan.Facts, k int) bool {
	for r := range f.Ranks {
		if r != k {
			return true
		}
	}
	return slices.ContainsFunc(f.Elastic, func(e scan.ElasticEntry) bool { return e.Rank >= 0 && e.Rank != k || e.Local > 0 })
}
