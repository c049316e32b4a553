package script

import (
	"slices"
	"strings"
)

// A prefix is a command that runs the command after it on the same machine, with the
// words unchanged.
type prefix struct {
	sub      []string // subcommands that run a command, such as run
	values   []string // options that take the next word as their value
	operands int      // number of words before the command
}

var prefixes = map[string]prefix{
	"nohup": {}, "exec": {values: []string{"-a"}}, "command": {}, "builtin": {}, "setsid": {}, "unbuffer": {}, "catchsegv": {},
	"time": {values: []string{"-f", "-o"}}, "nice": {values: []string{"-n"}}, "ionice": {values: []string{"-c", "-n"}},
	"stdbuf": {values: []string{"-i", "-o", "-e"}}, "chrt": {operands: 1}, "taskset": {operands: 1}, "flock": {operands: 1},
	"timeout": {values: []string{"-s", "-k", "--signal", "--kill-after"}, operands: 1},
	"numactl": {values: strings.Fields("-N -m -C -i -p -c --cpunodebind --membind --physcpubind --interleave --preferred --localalloc=")},
	"sudo":    {values: []string{"-u", "-g", "-C"}}, "strace": {values: strings.Fields("-o -e -p -s")}, "xvfb-run": {values: []string{"-s", "-n"}},
	"nsys": {sub: []string{"profile", "launch"}, values: strings.Fields("-o -t -c -s -w -x -y -d -f -b -n -p --output --trace --capture-range --sample --delay --duration --stats --cudabacktrace --gpu-metrics-device --capture-range-end --force-overwrite --export --kill --wait --show-output --session --session-new " +
		"--sampling-period --backtrace --cpuctxsw --gpuctxsw --nic-metrics --osrt-threshold --cuda-memory-usage --cuda-graph-trace --python-sampling --python-backtrace " +
		"--pytorch --stop-on-exit --start-later --env-var --run-as --inherit-environment --trace-fork-before-exec")},
	"ncu":    {values: strings.Fields("-o -f -k -c -s --set --section --metrics --target-processes")},
	"uv":     {sub: []string{"run"}, values: strings.Fields("--with --extra --group --python -p --project --directory --env-file --package --index-url --with-editable --only-group --no-group --no-extra --index --with-requirements --config-setting")},
	"uvx":    {},
	"poetry": {sub: []string{"run"}}, "pipenv": {sub: []string{"run"}}, "rye": {sub: []string{"run"}}, "hatch": {sub: []string{"run"}},
	"pixi":  {sub: []string{"run"}, values: []string{"-e", "--environment", "--manifest-path"}},
	"conda": {sub: []string{"run"}, values: strings.Fields("-n -p --name --prefix --cwd")}, "mamba": {sub: []string{"run"}, values: strings.Fields("-n -p --name --prefix --cwd")},
	"micromamba": {sub: []string{"run"}, values: strings.Fields("-n -p --name --prefix --cwd")},
	"xargs":      {values: strings.Fields("-n -P -I -L -d -a")},
	"gdb":        {sub: []string{"--args"}},
}

// run evaluates the effect of a command: a builtin changes the shell, a wrapper starts
// another command, and a launcher is recorded as a Start.
func (r *reader) run(c *Command, f frame) {
	name := c.Name()
	if name == "" {
		if unknownPrefix(c) && (c.Step != nil || r.settling) {
			r.start(c, c.Args[1:], c.Env.spawn(c.Place, Direct, c.Line), f)
			return
		}
		if c.Step != nil && c.By != nil {
			r.wrapper(c)
		}
		return
	}
	if fn, ok := c.Env.funcs[name]; ok && c.Args[0].Text() == name {
		r.functionCall(fn, c, f)
		return
	}
	if h := handlerOf(name); h != nil {
		h(r, c, f)
		return
	}
	if p, ok := prefixes[name]; ok {
		rest := c.Args[1:]
		if len(p.sub) > 0 {
			if len(rest) == 0 || !slices.Contains(p.sub, rest[0].Text()) {
				return
			}
			rest = rest[1:]
		}
		rest = skipOptions(rest, p.values)
		if len(rest) > p.operands {
			r.start(c, rest[p.operands:], c.Env.spawn(c.Place, Direct, c.Line), f)
		}
		return
	}
	if t, ok := r.written(c.Args[0].Text()); ok && (strings.Contains(c.Args[0].Text(), "/") || c.Step != nil) {
		r.nested(c, c.Env.spawn(c.Place, File, c.Line), t, values(c.Args[1:]), f)
		return
	}
	r.launch(c)
}

// unknownPrefix reports whether a variable that the file does not show, and that may well be
// empty, stands before a launcher, as in "$PROFILER torchrun …".
func unknownPrefix(c *Command) bool {
	ref := c.Args[0].Value.Only()
	return ref != nil && ref.Kind == Variable && !ref.Positional && !c.Args[0].Value[0].Quoted && len(c.Args) > 2 &&
		(launcherNames[c.Args[1].Text()] || pythonName.MatchString(c.Args[1].Text()))
}

// A handler evaluates a command that changes the shell or starts another command.
type handler = func(r *reader, c *Command, f frame)

// handlerOf returns the handler of a command, or nil if the command has none.
func handlerOf(name string) handler {
	switch name {
	case "set":
		return (*reader).set
	case "cd", "pushd":
		return (*reader).cd
	case "source", ".":
		return (*reader).source
	case "eval":
		return (*reader).eval
	case "trap":
		return (*reader).trap
	case "read", "mapfile", "readarray":
		return (*reader).read
	case "getopts":
		return (*reader).getopts
	case "printf":
		return (*reader).printf
	case "unset":
		return (*reader).unset
	case "shift":
		return (*reader).shift
	case "exit":
		return (*reader).exit
	case "cat", "tee":
		return (*reader).write
	case "srun":
		return (*reader).srun
	case "salloc":
		return (*reader).salloc
	case "sbatch":
		return (*reader).sbatch
	case "env":
		return (*reader).env
	case "bash", "sh", "dash", "zsh", "ksh":
		return (*reader).bash
	case "docker", "podman", "nvidia-docker", "podman-hpc":
		return (*reader).docker
	case "singularity", "apptainer", "singularity_wrapper", "apptainer_wrapper":
		return (*reader).singularity
	case "enroot":
		return (*reader).enroot
	case "shifter":
		return (*reader).shifter
	case "ssh", "pdsh", "clush", "parallel-ssh", "pssh":
		return (*reader).ssh
	case "mpirun", "mpiexec", "mpiexec.hydra", "orterun", "horovodrun":
		return (*reader).mpirun
	}
	return nil
}

// skipOptions returns args without the leading options. Options in values have the
// next word as their value.
func skipOptions(args []Arg, values []string) []Arg {
	for len(args) > 0 {
		s := args[0].Text()
		if s == "--" {
			return args[1:]
		}
		if !strings.HasPrefix(s, "-") || s == "-" {
			return args
		}
		args = args[1:]
		if slices.Contains(values, s) && len(args) > 0 {
			args = args[1:]
		}
	}
	return args
}

func (r *reader) srun(c *Command, f frame) {
	opts, rest := stepArgs(c.Args[1:])
	step := &Step{Options: opts, Line: c.Line, Command: c}
	for _, o := range opts {
		if o.Name == "" {
			step.OptionsUnknown = true
		}
	}
	r.job.Steps = append(r.job.Steps, step)
	p := c.Place
	p.Step = step
	if box := pyxisContainer(opts); box != nil {
		box.Line, box.Command = c.Line, c
		p.Container = box
	}
	env := c.Env.spawn(p, Direct, c.Line)
	if e, ok := opts.Get("export"); ok {
		for _, kv := range splitValue(e.Value, ',') {
			if name, val, has := cutValue(kv); has && isName(name) {
				env.vars[name] = &Var{Value: val, Exported: true, Line: e.Line}
			}
		}
	}
	if d, ok := opts.Get("chdir"); ok && p.Container == nil { // a container begins in a folder of its own
		env.Dir = d.Value
	}
	c.Step = step
	r.start(c, rest, env, f)
}

func (r *reader) salloc(c *Command, f frame) {
	opts, rest := stepArgs(c.Args[1:])
	r.job.Allocations = append(r.job.Allocations, &Step{Options: opts, Line: c.Line, Command: c})
	r.start(c, rest, c.Env.spawn(c.Place, Direct, c.Line), f)
}

// sbatch records a submission. It also reads the submitted script, if that is a
// here-document or a file that this script wrote.
func (r *reader) sbatch(c *Command, f frame) {
	opts, rest := stepArgs(c.Args[1:])
	sub := &Submission{Command: c, Options: opts}
	r.job.Submissions = append(r.job.Submissions, sub)
	if doc := c.hereDoc(); doc != nil && len(rest) == 0 {
		r.deferred = append(r.deferred, func() { sub.Job = r.subjob(doc.text, opts, f) })
	}
	if len(rest) > 0 {
		sub.File = rest[0].Text()
		if t, ok := r.written(sub.File); ok {
			r.deferred = append(r.deferred, func() { sub.Job = r.subjob(t, opts, f) })
		}
	}
}

// hereDoc returns the first here-document or here-string of c, or nil.
func (c *Command) hereDoc() *Document {
	i := slices.IndexFunc(c.Redirects, func(red Redirect) bool { return red.Doc != nil })
	if i < 0 {
		return nil
	}
	return c.Redirects[i].Doc
}

func (r *reader) env(c *Command, f frame) {
	args := skipOptions(c.Args[1:], []string{"-u", "--unset", "-C", "--chdir", "-S"})
	env := c.Env.spawn(c.Place, Direct, c.Line)
	for len(args) > 0 {
		name, val, has := cutValue(args[0].Value)
		if !has || !isName(name) {
			break
		}
		env.vars[name] = &Var{Value: val, Exported: true, Line: args[0].Line}
		r.noteAssignment(name, env.vars[name], f)
		args = args[1:]
	}
	r.start(c, args, env, f)
}

func values(args []Arg) []Value {
	out := make([]Value, len(args))
	for i, a := range args {
		out[i] = a.Value
	}
	return out
}

// bash evaluates the text of -c, a here-document, or a file that this script wrote. Any
// other script is recorded as a Start of unknown text.
func (r *reader) bash(c *Command, f frame) {
	sh := c.Env.spawn(c.Place, CommandText, c.Line)
	args := c.Args[1:]
	command := false
	for len(args) > 0 {
		s := args[0].Text()
		if s == "--" {
			args = args[1:]
			break
		}
		if len(s) < 2 || s[0] != '-' && s[0] != '+' {
			break
		}
		args = args[1:]
		switch {
		case s == "--login":
			sh.Login = true
		case s == "--rcfile", s == "--init-file":
			if len(args) > 0 {
				args = args[1:]
			}
		case strings.HasPrefix(s, "--"):
		default:
			for _, o := range s[1:] {
				switch o {
				case 'c':
					command = true
				case 'l', 'i':
					sh.Login = true
				case 'o':
					if len(args) > 0 {
						sh.option(args[0].Text(), s[0] == '-')
						args = args[1:]
					}
				default:
					sh.option(string(o), s[0] == '-')
				}
			}
		}
		if command {
			break
		}
	}
	switch {
	case command && len(args) > 0:
		pos := args[1:]
		if len(pos) > 0 {
			pos = pos[1:]
		}
		r.nested(c, sh, r.flatten(args[0].Value), values(pos), f)
	case len(args) == 0 || args[0].Text() == "-s" || args[0].Text() == "-":
		if doc := c.hereDoc(); doc != nil {
			sh.Kind = HereDoc
			r.nested(c, sh, doc.text, nil, f)
		}
	default:
		if t, ok := r.written(args[0].Text()); ok {
			sh.Kind = File
			r.nested(c, sh, t, values(args[1:]), f)
			return
		}
		r.wrapper(c)
	}
}

func (r *reader) docker(c *Command, f frame) {
	args := skipOptions(c.Args[1:], nil)
	name := strings.TrimPrefix(c.Name(), "nvidia-")
	if name == "podman-hpc" {
		name = "podman"
	}
	if len(args) > 0 && args[0].Text() == "container" {
		args = args[1:]
	}
	if len(args) == 0 {
		return
	}
	sub := args[0].Text()
	if sub != "run" && sub != "exec" && sub != "create" {
		return
	}
	opts, rest := containerOptions(args[1:], dockerSwitches)
	box := dockerContainer(name, opts)
	if sub == "exec" {
		box.MountsUnknown = true
	}
	r.inContainer(c, box, rest, f)
}

// inContainer evaluates a command in a container. rest is the image and the command.
func (r *reader) inContainer(c *Command, box *Container, rest []Arg, f frame) {
	box.Line, box.Command = c.Line, c
	r.job.Containers = append(r.job.Containers, box)
	if len(rest) == 0 {
		return
	}
	box.Image = rest[0].Value
	p := c.Place
	p.Container = box
	rest = rest[1:]
	if ep, ok := box.Get("entrypoint"); ok && ep.Has {
		rest = append([]Arg{{Value: ep.Value, Line: ep.Line}}, rest...)
	}
	r.start(c, rest, c.Env.spawn(p, Direct, c.Line), f)
}

func (r *reader) singularity(c *Command, f frame) {
	args := skipOptions(c.Args[1:], nil)
	if len(args) == 0 {
		return
	}
	switch args[0].Text() {
	case "exec", "run", "shell":
		opts, rest := containerOptions(args[1:], singularitySwitches)
		name, wrapped := strings.CutSuffix(c.Name(), "_wrapper")
		if wrapped {
			rest = append([]Arg{{}}, rest...) // the wrappers of the site CSC supply the image themselves
		}
		r.inContainer(c, singularityContainer(name, opts, c.Env), rest, f)
	}
}

func (r *reader) enroot(c *Command, f frame) {
	if c.argText(1) != "start" {
		return
	}
	opts, rest := containerOptions(c.Args[2:], strings.Fields("rw w root r"))
	box := singularityContainer("enroot", opts, c.Env)
	box.Workdir = nil
	for _, o := range opts {
		switch o.Name {
		case "m":
			box.mount(o.Value, o.Line)
		case "e":
			box.setEnv(o.Value, o.Line)
		}
	}
	box.PassesEnv = true
	r.inContainer(c, box, rest, f)
}

func (r *reader) shifter(c *Command, f frame) {
	opts, rest := containerOptions(c.Args[1:], nil)
	box := &Container{Runtime: "shifter", Options: opts, PassesEnv: true, MountsUnknown: true, Workdir: c.Env.Dir, Line: c.Line, Command: c}
	r.job.Containers = append(r.job.Containers, box)
	p := c.Place
	p.Container = box
	r.start(c, rest, c.Env.spawn(p, Direct, c.Line), f)
}

// ssh evaluates the words of a remote command, which the remote shell joins by blanks.
func (r *reader) ssh(c *Command, f frame) {
	rest := skipOptions(c.Args[1:], strings.Fields("-p -i -l -o -J -F -w -h -H -t -f -u -g -x -b"))
	if c.Name() == "ssh" {
		if len(rest) == 0 {
			return
		}
		rest = rest[1:]
	}
	p := c.Place
	p.Remote = c
	sh := c.Env.spawn(p, CommandText, c.Line)
	sh.vars = map[string]*Var{}
	if len(rest) == 0 {
		if doc := c.hereDoc(); doc != nil {
			sh.Kind = HereDoc
			r.nested(c, sh, doc.text, nil, f)
		}
		return
	}
	if (rest[0].Text() == "bash" || rest[0].Text() == "sh") && len(c.Redirects) > 0 {
		r.start(c, rest, sh, f)
		return
	}
	r.nested(c, sh, r.flatten(joinWords(values(rest))), nil, f)
}

// mpiOne and mpiTwo are the options of mpirun that take one and two values.
var (
	mpiOne = strings.Fields("-np -n -c -N -npernode --npernode -x -H -host --host -hostfile --hostfile -machinefile --machinefile --map-by -map-by --bind-to -bind-to -ppn -wdir --wdir --rank-by -bootstrap -f -genvlist -iface -hosts -perhost --output-filename --timeout --prefix --tune -am --ppr -p --np -launcher --num-proc --hosts")
	mpiTwo = strings.Fields("--mca -mca -genv -env --pmca --gmca -gmca")
)

func (r *reader) mpirun(c *Command, f frame) {
	args := c.Args[1:]
	p := c.Place
	p.Remote = c
	env := c.Env.spawn(p, Direct, c.Line)
	for len(args) > 0 {
		s := args[0].Text()
		if !strings.HasPrefix(s, "-") {
			break
		}
		n := 1
		if slices.Contains(mpiTwo, s) {
			n = 3
		} else if slices.Contains(mpiOne, s) {
			n = 2
		}
		if s == "-x" && len(args) > 1 {
			if name, val, has := cutValue(args[1].Value); has {
				env.vars[name] = &Var{Value: val, Exported: true, Line: args[1].Line}
			}
		}
		args = args[min(n, len(args)):]
	}
	r.start(c, args, env, f)
}
