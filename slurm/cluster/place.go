package cluster

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// usualPlaces are where Slurm's commands lie when they are not on the PATH of a
// shell that has loaded no module: AWS ParallelCluster's and others' own prefix,
// Bright's shared and local folders, and Slurm's own default.
var usualPlaces = []string{
	"/usr/bin", "/usr/local/bin", "/opt/slurm/bin", "/opt/slurm/current/bin", "/opt/slurm/default/bin", "/usr/local/slurm/bin",
	"/cm/shared/apps/slurm/current/bin", "/cm/local/apps/slurm/current/bin", "/opt/slurm*/bin", "/opt/slurm/*/bin",
}

// FindCommands tells the folder of Slurm's commands: where the PATH of environ has
// sbatch, else the first of the usual places that has; "" where none has. onPath
// reports the former.
func FindCommands(environ []string) (folder string, onPath bool) {
	if sbatch := lookIn(environ, "sbatch"); sbatch != "" {
		return filepath.Dir(sbatch), true
	}
	for _, pattern := range usualPlaces {
		found, _ := filepath.Glob(filepath.Join(pattern, "sbatch"))
		for _, f := range slices.Backward(found) { // the newest version last
			if info, err := os.Stat(f); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
				return filepath.Dir(f), false
			}
		}
	}
	return "", false
}

// WithFolder puts the folder of Slurm's commands before the PATH of environ, where
// it is not in it already or another Slurm's commands come first; "" changes
// nothing.
func WithFolder(environ []string, folder string) []string {
	if folder == "" {
		return environ
	}
	environ = slices.Clone(environ)
	i := slices.IndexFunc(environ, func(e string) bool { return strings.HasPrefix(e, "PATH=") })
	if i < 0 {
		return append(environ, "PATH="+folder+":/usr/local/bin:/usr/bin:/bin")
	}
	path := strings.TrimPrefix(environ[i], "PATH=")
	first := lookIn(environ, "sbatch")
	if !slices.Contains(filepath.SplitList(path), folder) || first != "" && filepath.Dir(first) != folder {
		environ[i] = "PATH=" + folder + ":" + path
	}
	return environ
}
