package job

import (
	"maps"
	"path"
	"slices"
	"strings"
)

// contained reports whether the ranks run in a container.
func (s Spec) contained() bool {
	return s.Container.Runtime != "" && s.Container.Runtime != NoContainer
}

// mounts are the container's mounts, with the worktree and a folder of logs beside it
// where none covers them.
func (s Spec) mounts() Mounts {
	ms := s.Container.Mounts.apart()
	for _, dir := range []string{s.Worktree, s.LogDir} {
		if _, ok := ms.ToContainer(dir); !ok && path.IsAbs(dir) {
			ms = append(ms, dir+":"+dir)
		}
	}
	return ms
}

// OnHost is where a path that the ranks use lies on the host; ok is false for
// one that only the image has.
func (s Spec) OnHost(p string) (host string, ok bool) {
	if !s.contained() {
		return s.absolute(p), true
	}
	if !path.IsAbs(p) {
		p = path.Join(s.workdir(), p)
	}
	return s.mounts().ToHost(p)
}

// InContainer is where the ranks see a path of the host; ok is false for one
// that no mount shows them.
func (s Spec) InContainer(p string) (inside string, ok bool) {
	if !s.contained() {
		return s.absolute(p), true
	}
	return s.mounts().ToContainer(s.absolute(p))
}

// inside is where a path of the host is seen by the ranks.
func (s Spec) inside(p string) string {
	if s.contained() {
		if in, ok := s.mounts().ToContainer(p); ok {
			return in
		}
	}
	return p
}

// absolute is a path of the host, from the worktree where it is relative.
func (s Spec) absolute(p string) string {
	if path.IsAbs(p) {
		return p
	}
	return path.Join(s.Worktree, p)
}

// venvOnHost is the virtual environment as the host sees it, or "" where it
// lies in the image.
func (s Spec) venvOnHost() string {
	if s.Venv == "" {
		return ""
	}
	if s.contained() && path.IsAbs(s.Venv) {
		host, _ := s.mounts().ToHost(s.Venv)
		return host
	}
	return s.Venv
}

// venvInside is the virtual environment as the ranks see it.
func (s Spec) venvInside() string {
	if path.IsAbs(s.Venv) {
		return s.Venv
	}
	return s.inside(s.absolute(s.Venv))
}

// workdir is where the ranks start.
func (s Spec) workdir() string {
	if s.Container.Workdir != "" {
		return s.Container.Workdir
	}
	return s.inside(s.Worktree)
}

// containerOptions are pyxis's options of srun, with which Slurm itself starts
// the container.
func (r *rendering) containerOptions() []string {
	if r.Container.Runtime != Pyxis {
		return nil
	}
	options := []string{
		"--container-image=" + quote(r.Container.Image),
		"--container-mounts=" + quote(strings.Join(r.mounts(), ",")),
		"--container-workdir=" + quote(r.workdir()),
	}
	if names := r.ownNames(); len(names) > 0 {
		// Without this the image's own values would win.
		options = append(options, "--container-env="+quote(strings.Join(names, ",")))
	}
	return options
}

// containerWords are the command that starts the container on each node, one
// option or a few that belong together each; the program follows.
func (r *rendering) containerWords() []string {
	c := r.Container
	var words []string
	add := func(w ...string) { words = append(words, w...) }
	switch c.Runtime {
	case Docker:
		gpus := ""
		if *r.GPUsPerNode > 0 {
			gpus = "--gpus all "
		}
		add("docker run --rm --init", gpus+"--network host --ipc=host --ulimit memlock=-1 --ulimit stack=67108864")
		if slices.Contains(r.Preset, privileged) {
			add("--privileged")
		}
		for _, m := range r.mounts() {
			add("-v " + quote(bind(m)))
		}
		add("-w "+quote(r.workdir()), r.passed("-e"), quote(c.Image))
	case Singularity, Apptainer:
		exec := c.Runtime + " exec"
		if *r.GPUsPerNode > 0 {
			exec += " --nv"
		}
		add(exec)
		for _, m := range r.mounts() {
			add("--bind " + quote(bind(m)))
		}
		add("--pwd "+quote(r.workdir()), quote(c.Image))
	case Enroot:
		add("enroot start --rw")
		for _, m := range r.mounts() {
			add("--mount " + quote(enrootMount(m)))
		}
		add(r.passed("--env"), quote(c.Image), "env --chdir="+quote(r.workdir()))
	}
	if len(r.insideEnv()) > 0 {
		if c.Runtime != Enroot {
			add("env")
		}
		for _, name := range sorted(r.insideEnv()) {
			add(quote(name + "=" + r.insideEnv()[name]))
		}
	}
	return words
}

// bind writes a mount with both of its sides.
func bind(mount string) string {
	m := Mounts{mount}.Split()[0]
	out := m.Host + ":" + m.Inside
	if m.Flags != "" {
		out += ":" + m.Flags
	}
	return out
}

// enrootMount writes a mount as enroot's fields of fstab: with flags it neither
// binds nor makes the target unless they say so.
func enrootMount(mount string) string {
	m := Mounts{mount}.Split()[0]
	if m.Flags != "" {
		m.Flags = ":rbind,x-create=auto," + strings.ReplaceAll(m.Flags, "+", ",")
	}
	return m.Host + ":" + m.Inside + m.Flags
}

// insideEnv is what only the container's processes get: the user's, and where
// uv finds an environment that is not the worktree's own.
func (r *rendering) insideEnv() map[string]string {
	env := map[string]string{}
	maps.Copy(env, r.Container.Env)
	if _, own := env["UV_PROJECT_ENVIRONMENT"]; r.contained() && r.Launcher == UV && path.IsAbs(r.Venv) && !own && !r.sets("UV_PROJECT_ENVIRONMENT") {
		env["UV_PROJECT_ENVIRONMENT"] = r.Venv
	}
	return env
}

// launchNames are the variables that the launch itself reads on the node.
var launchNames = strings.Fields("MASTER_ADDR MASTER_PORT NNODES GPUS_PER_NODE WORLD_SIZE SLURM_JOB_ID SLURM_NODEID SLURM_PROCID SLURM_NNODES SLURM_RESTART_COUNT SLURMD_NODENAME CUDA_VISIBLE_DEVICES")

// ownNames are the variables that the script sets for the ranks.
func (r *rendering) ownNames() []string {
	var names []string
	add := func(n string) {
		if !slices.Contains(names, n) {
			names = append(names, n)
		}
	}
	if r.traced() {
		for _, s := range traceSettings {
			add(s.name)
		}
	}
	if r.Connections.Value != "" {
		add("CUDA_DEVICE_MAX_CONNECTIONS")
	}
	for _, n := range append(r.runNames(), r.sweptNames()...) {
		add(n)
	}
	for _, p := range r.presets {
		add(p.name)
	}
	for _, n := range sorted(r.Env) {
		add(n)
	}
	return names
}

// passed hands variables by name to a runtime that starts with an empty
// environment: their values are read on the node.
func (r *rendering) passed(option string) string {
	names := slices.Clone(launchNames)
	if r.traced() {
		names = append(names, "RUN_DIR", "DIRTY")
	}
	if r.guarded() && *r.Nodes > 1 {
		names = append(names, "SEEN")
	}
	if r.ownPython() {
		names = append(names, "VENV")
	}
	if r.hostfile() != "" {
		names = append(names, "HOSTFILE")
	}
	names = append(names, r.ownNames()...)
	if r.Site.SecretsFile != "" {
		names = append(names, secretNames...)
	}
	var lines []string
	for chunk := range slices.Chunk(names, 6) {
		lines = append(lines, option+" "+strings.Join(chunk, " "+option+" "))
	}
	return strings.Join(lines, " \\\n  ")
}
