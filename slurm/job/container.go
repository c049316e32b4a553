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

// mounts returns the container's mounts. It adds the worktree and an absolute log
// folder if no mount covers them.
func (s Spec) mounts() Mounts {
	ms := s.Container.Mounts.separate()
	for _, dir := range []string{s.Worktree, s.LogDir} {
		if _, ok := ms.ToContainer(dir); !ok && path.IsAbs(dir) {
			ms = append(ms, dir+":"+dir)
		}
	}
	return ms
}

// OnHost returns the host's path for a path that the ranks use; ok is false for a
// path that exists only in the image.
func (s Spec) OnHost(p string) (host string, ok bool) {
	if !s.contained() {
		return s.absolute(p), true
	}
	if !path.IsAbs(p) {
		p = path.Join(s.workdir(), p)
	}
	return s.mounts().ToHost(p)
}

// InContainer returns the ranks' path for a path of the host; ok is false if no
// mount covers the path.
func (s Spec) InContainer(p string) (inside string, ok bool) {
	if !s.contained() {
		return s.absolute(p), true
	}
	return s.mounts().ToContainer(s.absolute(p))
}

// inside is InContainer, but returns p itself if no mount covers p.
func (s Spec) inside(p string) string {
	if s.contained() {
		if in, ok := s.mounts().ToContainer(p); ok {
			return in
		}
	}
	return p
}

// absolute returns a path of the host as an absolute path. Relative paths start at
// the worktree.
func (s Spec) absolute(p string) string {
	if path.IsAbs(p) {
		return p
	}
	return path.Join(s.Worktree, p)
}

// venvOnHost returns the host's path of the virtual environment, or "" if the
// environment is part of the image.
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

// venvInside returns the ranks' path of the virtual environment.
func (s Spec) venvInside() string {
	if path.IsAbs(s.Venv) {
		return s.Venv
	}
	return s.inside(s.absolute(s.Venv))
}

// workdir returns the ranks' working directory, as a path in the container.
func (s Spec) workdir() string {
	if s.Container.Workdir != "" {
		return s.Container.Workdir
	}
	return s.inside(s.Worktree)
}

// containerOptions returns the srun options of pyxis, with which Slurm itself starts
// the container. Other runtimes have none; see containerWords.
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
		// Without --container-env, the values of these variables in the image win.
		options = append(options, "--container-env="+quote(strings.Join(names, ",")))
	}
	return options
}

// containerWords returns the command that starts the container on each node, before
// the program. Each element becomes one line: an option, or a few related options.
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
		for _, m := range r.mounts().Split() {
			add("-v " + quote(bind(m)))
		}
		add("-w "+quote(r.workdir()), r.passOptions("-e"), quote(c.Image))
	case Singularity, Apptainer:
		exec := c.Runtime + " exec"
		if *r.GPUsPerNode > 0 {
			exec += " --nv"
		}
		add(exec)
		for _, m := range r.mounts().Split() {
			add("--bind " + quote(bind(m)))
		}
		add("--pwd "+quote(r.workdir()), quote(c.Image))
	case Enroot:
		add("enroot start --rw")
		for _, m := range r.mounts().Split() {
			add("--mount " + quote(enrootMount(m)))
		}
		add(r.passOptions("--env"), quote(c.Image), "env --chdir="+quote(r.workdir()))
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

// bind returns a mount in the form host:inside[:flags].
func bind(m Mount) string {
	if m.Flags != "" {
		m.Flags = ":" + m.Flags
	}
	return m.Host + ":" + m.Inside + m.Flags
}

// enrootMount returns a mount in enroot's form, whose flags are fstab options. Once
// flags are given, enroot binds the folder and creates the target only if the flags
// say so.
func enrootMount(m Mount) string {
	if m.Flags != "" {
		m.Flags = ":rbind,x-create=auto," + strings.ReplaceAll(m.Flags, "+", ",")
	}
	return m.Host + ":" + m.Inside + m.Flags
}

// insideEnv returns the variables that only processes in the container get: those of
// container.env, and UV_PROJECT_ENVIRONMENT if uv has to use an environment outside
// the worktree.
func (r *rendering) insideEnv() map[string]string {
	env := map[string]string{}
	maps.Copy(env, r.Container.Env)
	if _, own := env["UV_PROJECT_ENVIRONMENT"]; r.contained() && r.Launcher == UV && path.IsAbs(r.Venv) && !own && !r.sets("UV_PROJECT_ENVIRONMENT") {
		env["UV_PROJECT_ENVIRONMENT"] = r.Venv
	}
	return env
}

// launchNames are the variables that the launch command reads on each node.
var launchNames = strings.Fields("MASTER_ADDR MASTER_PORT NNODES GPUS_PER_NODE WORLD_SIZE SLURM_JOB_ID SLURM_NODEID SLURM_PROCID SLURM_NNODES SLURM_RESTART_COUNT SLURMD_NODENAME CUDA_VISIBLE_DEVICES")

// ownNames returns the names of the variables that the script sets for the ranks.
func (r *rendering) ownNames() []string {
	var names []string
	add := func(n string) {
		if !slices.Contains(names, n) {
			names = append(names, n)
		}
	}
	if r.traced() {
		for _, s := range r.traceSettings() {
			add(s.name)
		}
	}
	if r.connections.Value != "" {
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

// passOptions returns options that pass variables by name to a runtime that starts the
// container with an empty environment. The runtime reads the values on the node.
func (r *rendering) passOptions(option string) string {
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
