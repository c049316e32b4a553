package script

import (
	"slices"
	"strings"
)

// A Place says where a command runs.
type Place struct {
	// Step is the srun step, or nil in the batch shell.
	Step *Step
	// Container is nil outside of containers.
	Container *Container
	// Remote is the command that runs it on another node without srun, such as ssh,
	// pdsh or mpirun, or nil.
	Remote *Command
}

// A Step is one srun command, or one salloc command.
type Step struct {
	Options Options
	Line    int
	Command *Command
	// OptionsUnknown is true if a variable holds some of the options.
	OptionsUnknown bool
}

// A Container is one container that a command starts.
type Container struct {
	// Runtime is docker, podman, pyxis, enroot, singularity or apptainer.
	Runtime string
	Image   Value
	Options []Option
	Line    int
	Command *Command
	// PassesEnv is true if the container inherits the environment.
	PassesEnv bool
	// EnvFile is true if a file whose text is unknown sets variables.
	EnvFile bool
	// Env are the variables that the options set. A nil value means that the variable
	// is passed from the environment outside.
	Env    map[string]*Var
	Mounts []Mount
	// MountsUnknown is true if some mounts are unknown.
	MountsUnknown bool
	Workdir       Value
}

// A Mount makes a path of the host visible in the container.
type Mount struct {
	Host, Inside Value
	Flags        string // such as ro
	Line         int
}

// Docker reports whether the runtime is docker or podman.
func (c *Container) Docker() bool { return c.Runtime == "docker" || c.Runtime == "podman" }

// Get returns the last option that has one of the names.
func (c *Container) Get(names ...string) (Option, bool) { return Options(c.Options).Get(names...) }

// dockerSwitches are the options of docker run and exec that take no value.
var dockerSwitches = strings.Fields("rm it ti i t d interactive tty detach init privileged read-only no-healthcheck oom-kill-disable publish-all P sig-proxy disable-content-trust help q quiet env-host no-hosts replace rmi systemd tls-verify http-proxy")

// singularitySwitches are the options of singularity and apptainer exec and run that
// take no value.
var singularitySwitches = strings.Fields("nv rocm nvccli cleanenv e contain c containall C no-home no-init fakeroot f writable w writable-tmpfs compat net n ipc i pid p uts u userns U keep-privs no-privs unsquash disable-cache vm allow-setuid no-eval nohttps no-https underlay no-umask")

// containerOptions parses the options before the image. switches are the options that
// take no value.
func containerOptions(args []Arg, switches []string) (opts []Option, rest []Arg) {
	for len(args) > 0 {
		a := args[0]
		if len(a.Value) == 0 {
			return opts, args
		}
		lead := a.Value[0].Text
		if a.Value[0].Ref != nil {
			if len(a.Value) == 1 && !a.Value[0].Quoted && len(args) > 1 && strings.HasPrefix(args[1].Text(), "-") {
				opts = append(opts, Option{Given: a.Text(), Line: a.Line, Value: a.Value})
				args = args[1:]
				continue
			}
			return opts, args
		}
		if !strings.HasPrefix(lead, "-") || lead == "-" {
			return opts, args
		}
		args = args[1:]
		name, val, has := cutValue(a.Value)
		o := Option{Name: strings.TrimLeft(name, "-"), Given: name, Value: val, Has: has, Line: a.Line}
		single := !strings.HasPrefix(name, "--")
		switch {
		case slices.Contains(switches, o.Name):
		case single && len(o.Name) > 1 && strings.Trim(o.Name, "itdPq") == "": // several switches, such as -dit
			for _, c := range o.Name {
				opts = append(opts, Option{Name: string(c), Given: name, Line: a.Line})
			}
			continue
		case single && len(o.Name) > 1: // -v/a:/b, -eNAME=x
			p := a.Value[0]
			p.Text = p.Text[2:]
			o.Name = o.Name[:1]
			o.Value, o.Has = append(Value{p}, a.Value[1:]...), true
		case !has && len(args) > 0:
			o.Value, o.Has, args = args[0].Value, true, args[1:]
		}
		opts = append(opts, o)
	}
	return opts, nil
}

func (c *Container) setEnv(v Value, line int) {
	name, val, has := cutValue(v)
	if c.Env == nil {
		c.Env = map[string]*Var{}
	}
	if !has {
		c.Env[name] = nil
		return
	}
	c.Env[name] = &Var{Value: val, Exported: true, Line: line}
}

// mount adds a mount of the form host:inside[:flags].
func (c *Container) mount(v Value, line int) {
	v = withoutBlanks(v) // "/a, /b": the blank is no part of the path
	parts := splitValue(v, ':')
	m := Mount{Host: parts[0], Inside: parts[0], Line: line}
	if len(parts) > 1 && len(parts[1]) > 0 {
		m.Inside = parts[1]
	}
	if len(parts) > 2 {
		m.Flags, _ = parts[2].Literal()
	}
	if r := v.Only(); r != nil {
		c.MountsUnknown = true
	}
	c.Mounts = append(c.Mounts, m)
}

func withoutBlanks(v Value) Value {
	v = slices.Clone(v)
	for len(v) > 0 && v[0].Ref == nil {
		if v[0].Text = strings.TrimLeft(v[0].Text, " \t\n"); v[0].Text != "" {
			break
		}
		v = v[1:]
	}
	for len(v) > 0 && v[len(v)-1].Ref == nil {
		last := &v[len(v)-1]
		if last.Text = strings.TrimRight(last.Text, " \t\n"); last.Text != "" {
			break
		}
		v = v[:len(v)-1]
	}
	return v
}

// splitValue splits v at each sep in its known parts.
func splitValue(v Value, sep byte) []Value {
	out := []Value{nil}
	for _, p := range v {
		if p.Ref != nil {
			out[len(out)-1] = append(out[len(out)-1], p)
			continue
		}
		for i, s := range strings.Split(p.Text, string(sep)) {
			if i > 0 {
				out = append(out, nil)
			}
			if s != "" {
				q := p
				q.Text = s
				out[len(out)-1] = append(out[len(out)-1], q)
			}
		}
	}
	return out
}

func dockerContainer(name string, opts []Option) *Container {
	c := &Container{Runtime: name, Options: opts, Env: map[string]*Var{}}
	for _, o := range opts {
		switch o.Name {
		case "":
			c.MountsUnknown, c.EnvFile = true, true
		case "e", "env":
			c.setEnv(o.Value, o.Line)
		case "env-file":
			c.EnvFile = true
		case "env-host":
			c.PassesEnv = true
		case "v", "volume":
			c.mount(o.Value, o.Line)
		case "volumes-from":
			c.MountsUnknown = true
		case "mount":
			c.Mounts = append(c.Mounts, keyedMount(o))
		case "w", "workdir":
			c.Workdir = o.Value
		}
	}
	return c
}

// keyedMount reads a mount such as type=bind,src=/data,dst=/data. Without dst, the path
// is the same on both sides.
func keyedMount(o Option) Mount {
	m := Mount{Line: o.Line}
	for _, kv := range splitValue(o.Value, ',') {
		k, v, _ := cutValue(kv)
		switch k {
		case "src", "source":
			m.Host = v
		case "dst", "target", "destination":
			m.Inside = v
		case "ro", "readonly":
			m.Flags = "ro"
		}
	}
	if len(m.Inside) == 0 {
		m.Inside = m.Host
	}
	return m
}

func singularityContainer(name string, opts []Option, sh *Shell) *Container {
	c := &Container{Runtime: name, Options: opts, PassesEnv: true, Env: map[string]*Var{}, Workdir: sh.Dir}
	for _, o := range opts {
		switch o.Name {
		case "":
			c.MountsUnknown = true
		case "cleanenv", "e", "containall", "C":
			c.PassesEnv = false
		case "env":
			for _, kv := range splitValue(o.Value, ',') {
				c.setEnv(kv, o.Line)
			}
		case "env-file":
			c.EnvFile = true
		case "B", "bind", "mount":
			if m := keyedMount(o); o.Name == "mount" && len(m.Host) > 0 {
				c.Mounts = append(c.Mounts, m)
				continue
			}
			for _, m := range splitValue(o.Value, ',') {
				c.mount(m, o.Line)
			}
		case "pwd", "cwd":
			c.Workdir = o.Value
		}
	}
	for _, n := range sh.Names() {
		for _, prefix := range []string{"SINGULARITYENV_", "APPTAINERENV_"} {
			if inner, ok := strings.CutPrefix(n, prefix); ok {
				v, _ := sh.Env(n)
				c.Env[inner] = &Var{Value: v, Exported: true}
			}
		}
		if n == "SINGULARITY_BIND" || n == "APPTAINER_BIND" || n == "SINGULARITY_BINDPATH" || n == "APPTAINER_BINDPATH" {
			v, _ := sh.Env(n)
			for _, m := range splitValue(v, ',') {
				c.mount(m, 0)
			}
		}
	}
	return c
}

// pyxisContainer returns the container of an srun with --container-image or
// --container-name, or nil.
func pyxisContainer(opts Options) *Container {
	img, ok := opts.Get("container-image", "container-name")
	if !ok {
		return nil
	}
	c := &Container{Runtime: "pyxis", Image: img.Value, Options: opts, PassesEnv: true}
	for _, o := range opts {
		switch o.Name {
		case "container-mounts":
			for _, m := range splitValue(o.Value, ',') {
				c.mount(m, o.Line)
			}
		case "container-workdir":
			c.Workdir = o.Value
		}
	}
	return c
}
