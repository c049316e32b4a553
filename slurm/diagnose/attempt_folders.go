package diagnose

import (
	"maps"
	"path"
	"slices"

	"github.com/megatron-ops/megatron-ops/slurm/diagnose/logfile"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/scan"
)

// placeAttemptFolders determines the first rank of the files that torchrun's launchers kept apart for each rank
// (--log-dir). The files of one attempt's folder are one node's, so that what one of them says holds for all.
func (j *job) placeAttemptFolders() {
	ofFolder := map[string]int{}
	for i, f := range j.src.Logs {
		if folder := attemptFolder(f.Name); folder != "" && j.baseRank[i] >= 0 {
			ofFolder[folder] = j.baseRank[i]
		}
	}
	only, onlyOne := j.onlyBase()
	for i, f := range j.src.Logs {
		folder := attemptFolder(f.Name)
		if folder == "" || j.baseRank[i] >= 0 {
			continue
		}
		if base, ok := ofFolder[folder]; ok {
			j.baseRank[i] = base
		} else if onlyOne {
			j.baseRank[i] = only
		}
	}
}

// ranksIn returns the ranks that wrote lines of a file: those that prefix their lines, and otherwise those that said
// that they joined the others.
func ranksIn(f *scan.Facts) []int {
	if len(f.Ranks) > 0 {
		return slices.Collect(maps.Keys(f.Ranks))
	}
	return slices.Collect(maps.Keys(f.Came))
}

// attemptFolder returns the folder of the attempt to which a rank's own file belongs, or the empty string for
// another file.
func attemptFolder(name string) string {
	if !logfile.AttemptPath.MatchString(name) {
		return ""
	}
	return path.Dir(path.Dir(name))
}

// onlyBase returns the first rank of the only node on which a launcher reported, if all attempts' logs
// are in one launcher's folder.
func (j *job) onlyBase() (base int, ok bool) {
	folder := ""
	for _, f := range j.src.Logs {
		at := logfile.AttemptPath.FindStringIndex(f.Name)
		if at == nil {
			continue
		}
		if folder != "" && f.Name[:at[0]] != folder {
			return 0, false
		}
		folder = f.Name[:at[0]]
	}
	for _, base = range j.firstRank {
	}
	return base, folder != "" && len(j.firstRank) == 1
}
