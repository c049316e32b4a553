package diagnose

import (
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/lazy"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/logfile"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/scan"
)

// lastNumber matches the last number in a file's name, or in that of a folder for one process: "err.3", "rank_3/stderr.log".
var lastNumber = lazy.New(`^(|.*[^0-9])(\d{1,5})((?:\.[a-z]+(?:\.gz|\.zst)?)?)$|` +
	`^(|.*/(?:(?:proc|process|task)[-_.=]?)?|(?:proc|process|task)[-_.=]?)(\d{1,5})(/[^/0-9]+)$`)

// nodeNumber matches the text before a number that counts nodes, such as srun's %n.
var nodeNumber = lazy.New(`(?i)(?:^|[^a-z])node[-_]?$`)

// placeLetters returns the ranks that names such as "r3.log" give, if the files are a series from 0 on. A file alone may
// as well be a run's.
func (j *job) placeLetters() map[int]int {
	series := map[string]map[int]int{} // by name without the rank: the ranks of its files
	for i := range j.files {
		name := path.Base(j.src.Logs[i].Name)
		m := rankLetter.FindStringSubmatchIndex(name)
		if m == nil || loraPath.MatchString(name) {
			continue
		}
		from, to := max(m[2], m[4]), max(m[3], m[5])
		all := name[:from] + "*" + name[to:]
		if series[all] == nil {
			series[all] = map[int]int{}
		}
		series[all][i], _ = strconv.Atoi(name[from:to])
	}
	ranks := map[int]int{}
	for _, of := range series {
		found := slices.Sorted(maps.Values(of))
		if found[0] == 0 && found[len(found)-1] > 0 {
			maps.Copy(ranks, of)
		}
	}
	return ranks
}

// placeSeries assigns ranks to files with consecutive numbers in their names: srun --output=x-%t.log
// writes one file for each task, from 0 on. As many files as nodes are one file for each node instead.
func (j *job) placeSeries() {
	series := map[string]map[int]int{} // name with "*" for the number → number → file
	folders := map[string]bool{}       // that hold folders of processes
	for i := range j.files {
		m := lastNumber.FindStringSubmatch(j.src.Logs[i].Name)
		if m != nil && m[5] != "" {
			if m = m[3:]; attemptFolder(j.src.Logs[i].Name) != "" || logfile.PlainPath.MatchString(j.src.Logs[i].Name) {
				continue // local ranks
			}
			folders[m[1]] = true
		}
		if m == nil || j.fileRank[i] >= 0 || j.fileNode[i] != "" || nodeNumber.MatchString(m[1]) {
			continue
		}
		n, _ := strconv.Atoi(m[2])
		key := m[1] + "*" + m[3]
		if series[key] == nil {
			series[key] = map[int]int{}
		}
		series[key][n] = i
	}
	ofNodes := map[string]bool{} // by the key without the extension: a node's standard output and error have one name
	for key, files := range series {
		for k, i := range files {
			if hasOtherRanks(j.files[i], k) {
				ofNodes[stem(key)] = true
			}
		}
	}
	tasks := -1 // the highest of srun's tasks that is a rank
	for _, f := range j.files {
		for _, e := range f.Events {
			if j.taskRank && len(e.Tasks) > 0 {
				tasks = max(tasks, slices.Max(e.Tasks))
			}
		}
	}
	for key, files := range series {
		most := slices.Max(slices.Collect(maps.Keys(files)))
		if ofNodes[stem(key)] || tasks > most || numberAtEnd(key) && slices.Contains(j.src.Files(), strings.TrimSuffix(key, ".*")) {
			continue // the files are nodes', or older parts of one log
		}
		if strings.Contains(key, "*/") && (len(folders) > 1 || !j.manyProcesses() || j.world > 0 && j.world != most+1) {
			continue // the folders may be attempts', seeds', or a node's
		}
		count := most + 1 // an empty file is a rank that wrote nothing
		whole := len(files) == count || j.world > 0 && len(files) > j.world/2 && !numberAtEnd(key)
		if count < 2 || !whole || j.world > 0 && count > j.world || j.world > count && count <= max(1, len(j.nodes)) {
			continue
		}
		for k, i := range files {
			j.fileRank[i] = k
		}
	}
}

// stem returns a file's name without its extension.
func stem(name string) string { return strings.TrimSuffix(name, path.Ext(name)) }

// numberAtEnd reports whether files' names end with their number. So do ranks' "err.0" to "err.3", but
// also the older parts of a log, "x.log.1" beside "x.log".
func numberAtEnd(key string) bool { return strings.HasSuffix(key, "*") }

// hasOtherRanks reports whether a file has lines of another rank than k, a node's start line for
// other ranks, or a launcher's report on other ranks or on several local ones. Then the file is a node's.
func hasOtherRanks(f *scan.Facts, k int) bool {
	if slices.ContainsFunc(f.NodeStarts, func(n scan.NodeStart) bool { return n.First != k || n.Last != k }) {
		return true
	}
	for r := range f.Ranks {
		if r != k {
			return true
		}
	}
	return slices.ContainsFunc(f.Elastic, func(e scan.ElasticEntry) bool { return e.Rank >= 0 && e.Rank != k || e.Local > 0 })
}
