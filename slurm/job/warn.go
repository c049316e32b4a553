package job

import (
	"path"
	"slices"
	"strings"
)

// warn says what works and an expert would not do.
func (r *rendering) warn() {
	add := func(cond bool, text string) {
		if cond {
			r.warnings = append(r.warnings, text)
		}
	}
	sig := r.exitSignal()
	add(slices.Contains(r.Preset, privileged), "docker-privileged gives the container the whole node; most sites forbid it, and training does not need it")
	add(r.Signal != "" && slices.Contains([]string{"TERM", "INT", "HUP", "QUIT"}, sig), "signal: torch's launcher ends the ranks itself on SIG"+sig+", after 30 seconds whether they have saved or not; USR1 leaves them the time")
	add(r.signalled() && r.Container.Runtime == Docker, "docker passes a signal on to the container's first process only, so the ranks may not save; scancel still ends the job")
	add(r.Signal != "" && !strings.Contains(r.Signal, "@"), "signal: without @seconds Slurm sends it 60 seconds before the end, which is short for a checkpoint")
	add(r.Container.Runtime == Enroot && !strings.HasSuffix(r.Container.Image, ".sqsh") && strings.ContainsAny(r.Container.Image, ":/"), "enroot starts a .sqsh file: make it once with enroot import --output FILE.sqsh docker://IMAGE")
	add(r.contained() && path.IsAbs(r.Venv) && r.venvOnHost() == "" && r.inShared(r.Venv),
		"venv: "+r.Venv+" lies on a shared file system that is not mounted into the container: add a mount, or name the image's own, such as /opt/venv")
	add(slices.Contains(r.Preset, perNodeLogs) && slices.Contains(r.Preset, joinedLog), "joined-log gets nothing where per-node-logs takes the output")
	add(*r.GPUsPerNode > 0 && r.CPUsPerTask == nil && !(r.Exclusive != nil && *r.Exclusive),
		"cpus_per_task is not given: on many clusters the ranks of a node then share one CPU")
	saves := slices.ContainsFunc(r.Args, func(a string) bool { return strings.HasPrefix(a, "--exit-duration-in-mins") })
	add(r.Time != "" && !r.signalled() && !saves && strings.HasPrefix(path.Base(r.Script), "pretrain_"),
		"nothing makes the job save before its time limit: set signal: USR1@300, or give --exit-duration-in-mins")
	for _, dir := range []string{"/tmp", "/var/tmp", "/dev/shm"} {
		_, local := below(dir, path.Clean(r.Worktree))
		add(local && *r.Nodes > 1, "worktree: "+dir+" is local to each node on most clusters")
	}
}

// inShared reports whether a path looks like one of the node's and not of an
// image: a file system that the site shares, or a home.
func (r *rendering) inShared(p string) bool {
	return slices.ContainsFunc(append([]string{"/home", "/lustre", "/mnt", path.Dir(path.Clean(r.Worktree))}, r.Site.Shared...), func(dir string) bool {
		_, in := below(path.Clean(dir), path.Clean(p))
		return in
	})
}
