package cluster

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// usualPlaces are the folders of Slurm's commands where the PATH lacks them because the
// shell has loaded no module: the prefix of AWS ParallelCluster and others, Bright's
// shared and local folders, and Slurm's own default.
var usualPlaces = []string{
	"/usr/bin", "/usr/local/bin", "/opt/slurm/bin", "/opt/slurm/current/bin", "/opt/slurm/default/bin", "/usr/local/slurm/bin",
	"/cm/shared/apps/slurm/current/bin", "/cm/local/apps/slurm/current/bin", "/opt/slurm*/bin", "/opt/slurm/*/bin",
}

// FindCommands returns the folder of Slurm's commands: the folder of sbatch on the PATH
// of environ, else the first of the usual places with an sbatch, else "". onPath
// reports the first case.
func FindCommands(environ []string) (folder string, onPath bool) {
	if sbatch := LookIn(environ, "sbatch"); sbatch != "" {
		return filepath.Dir(sbatch), true
	}
	for _, pattern := range usualPlaces {
		found, _ := filepath.Glob(filepath.Join(pattern, "sbatch"))
		for _, f := range slices.Backward(found) { // the newest version sorts last
			if info, err := os.Stat(f); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
				return filepath.Dir(f), false
			}
		}
	}
	return "", false
}

// WithFolder puts the folder of Slurm's commands in front of the PATH of environ,
// unless the PATH contains the folder and no other sbatch comes first. An empty folder
// changes nothing.
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
	first := LookIn(environ, "sbatch")
	if !slices.Contains(filepath.SplitList(path), folder) || first != "" && filepath.Dir(first) != folder {
		environ[i] = "PATH=" + folder + ":" + path
	}
	return environ
}
