package job

import (
	"fmt"
	"path"
	"slices"
	"sort"
	"strconv"
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/lazy"
)

// Validate checks every field by itself, and those that belong together, and
// returns every fault in the order of the specification. It does not look at
// files, the cluster or Megatron's own rules.
func (s Spec) Validate() []*FieldError {
	v := validator{}
	for _, r := range rows(s) {
		v.row(r)
	}
	v.program(s)
	v.environment("env", s.Env)
	v.environment("container.env", s.Container.Env)
	v.launch(s)
	v.container(s.Container)
	v.schedule(s)
	return v.errs
}

// A row is one field that a grammar alone decides; an empty value is a field
// left out.
type row struct {
	field, value string
	grammar      grammar
}

func rows(s Spec) []row {
	pathFix := "a path of printable characters, without '..'; nothing in it is expanded"
	file := grammar{checkPath, pathFix}
	absolute := grammar{checkAbsolute, "an absolute " + pathFix[2:]}
	rs := []row{
		{"name", s.Name, nameGrammar},
		{"cluster", s.Cluster, wordGrammar},
		{"team", s.Team, wordGrammar},
		{"account", s.Account, wordGrammar},
		{"partition", s.Partition, wordsGrammar},
		{"qos", s.QOS, wordsGrammar},
		{"reservation", s.Reservation, wordsGrammar},
		{"constraint", s.Constraint, constraintGrammar},
		{"gpu_request", s.GPURequest, oneOf(enums["gpu_request"]...)},
		{"gpu", s.GPU, wordGrammar},
		{"mem", s.Mem, memGrammar},
		{"time", s.Time, timeGrammar},
		{"hint", s.Hint, oneOf(enums["hint"]...)},
		{"nodelist", s.Nodelist, hostGrammar},
		{"exclude", s.Exclude, hostGrammar},
		{"dependency", s.Dependency, dependencyGrammar},
		{"begin", s.Begin, beginGrammar},
		{"array", s.Array, arrayGrammar},
		{"train", s.Train, file},
		{"every", s.Every, everyGrammar},
		{"signal", s.Signal, signalGrammar},
		{"comment", s.Comment, commentGrammar},
		{"mail_user", s.MailUser, mailUserGrammar},
		{"mail_type", s.MailType, mailTypeGrammar},
		{"worktree", s.Worktree, absolute},
		{"venv", s.Venv, file},
		{"script", s.Script, file},
		{"launcher", s.Launcher, oneOf(enums["launcher"]...)},
		{"rdzv.backend", s.Rdzv.Backend, oneOf(enums["rdzv.backend"]...)},
		{"container.runtime", s.Container.Runtime, oneOf(enums["container.runtime"]...)},
		{"container.image", s.Container.Image, grammar{checkImage, "a registry name such as nvcr.io#nvidia/pytorch:25.04-py3, or a .sqsh or .sif file"}},
		{"container.workdir", s.Container.Workdir, absolute},
		{"log_dir", s.LogDir, grammar{checkLogDir, "a folder inside the worktree, such as logs"}},
		{"artifact.path", s.Artifact.Path, file},
		{"kill_switch", s.KillSwitch, file},
	}
	for _, m := range s.Container.Mounts {
		rs = append(rs, row{"container.mounts", m, grammar{checkMount, "host:inside or host:inside:flags, both absolute"}})
	}
	for _, p := range s.Preset {
		rs = append(rs, row{"preset", p, wordGrammar})
	}
	for _, c := range s.Retry.On {
		rs = append(rs, row{"retry.on", c, wordGrammar})
	}
	return rs
}

type validator struct{ errs []*FieldError }

func (v *validator) add(field, value, msg, fix string) {
	v.errs = append(v.errs, &FieldError{Field: field, Value: value, Msg: msg, Fix: fix})
}

func (v *validator) row(r row) {
	if r.value == "" {
		return
	}
	if why := r.grammar.check(r.value); why != "" {
		v.add(r.field, r.value, why, "give "+r.grammar.fix)
	}
}

func (v *validator) number(field string, n *int, lo, hi int) {
	if n != nil && (*n < lo || *n > hi) {
		v.add(field, strconv.Itoa(*n), "is out of range", fmt.Sprintf("give a number from %d to %d", lo, hi))
	}
}

// program checks what runs and with which words.
func (v *validator) program(s Spec) {
	switch {
	case s.Worktree == "":
		v.add("worktree", "", "is missing", "give the absolute path of a Megatron-LM checkout that every node sees")
	case path.Clean(s.Worktree) == "/":
		v.add("worktree", s.Worktree, "is the root directory", "give the Megatron-LM checkout")
	}
	if s.contained() && strings.ContainsAny(s.Worktree, ":,") {
		v.add("worktree", s.Worktree, "has a ':' or a ',', which no container's mount can carry", "give a path without them")
	}
	if path.IsAbs(s.Script) && checkPath(s.Script) == "" && !insideJob(s, s.Script) {
		v.add("script", s.Script, "lies outside the worktree", "give a path relative to the worktree, such as pretrain_gpt.py")
	}
	v.words("args", s.Args)
	v.words("launcher_argv", s.LauncherArgv)
	for _, w := range s.SrunArgs {
		if !srunWord.MatchString(w) || unprintable(w) != "" {
			v.add("srun_args", w, "is not one long option of srun", "give --option or --option=value, one element each")
		}
	}
	v.number("nodes", s.Nodes, 1, 100_000)
	v.number("gpus_per_node", s.GPUsPerNode, 0, 1024)
	v.number("cpus_per_task", s.CPUsPerTask, 1, 65_536)
	v.number("master_port", s.MasterPort, 1, 65_535)
	v.number("retry.max", s.Retry.Max, 0, 100)
	v.number("chain", s.Chain, 1, 1000)
}

// maxWord is Linux's MAX_ARG_STRLEN: what one argument or variable may hold.
const maxWord = 128 << 10

// words checks arguments, which may hold any character but one.
func (v *validator) words(field string, words []string) {
	for _, w := range words {
		switch {
		case strings.ContainsRune(w, 0):
			v.add(field, w, "holds a NUL byte, which no argument can carry", "leave it out")
			return
		case len(w) >= maxWord:
			v.add(field, w, "is longer than the system takes as one argument", "put it in a file")
			return
		}
	}
}

var srunWord = lazy.New(`^--[a-z][a-z0-9-]*(?:=.*)?$`)

// insideJob reports whether an absolute path lies in the worktree, or in a
// container, where the image may hold the code.
func insideJob(s Spec, p string) bool {
	if s.Container.Runtime != "" && s.Container.Runtime != NoContainer {
		return true
	}
	_, ok := below(path.Clean(s.Worktree), path.Clean(p))
	return ok
}

// denied are the variables that change what bash or the loader itself does, so
// that no quoting of their value helps; ours are set by the script.
var (
	denied         = strings.Fields("ENV PATH IFS PS0 PS1 PS2 PS4 PROMPT_COMMAND SHELLOPTS CDPATH GLOBIGNORE POSIXLY_CORRECT PYTHONSTARTUP PYTHONINSPECT PYTHONHOME PERL5OPT PERL5LIB RUBYOPT NODE_OPTIONS GCONV_PATH GIT_SSH GIT_SSH_COMMAND GIT_EXTERNAL_DIFF GIT_CONFIG_COUNT")
	deniedPrefixes = strings.Fields("BASH LD_ SLURM_ SBATCH_ SRUN_ SALLOC_ ops_")
	// ours are the variables that the script sets itself, with what to say instead.
	ours = map[string]string{"MASTER_ADDR": "it is the job's first node", "MASTER_PORT": "use master_port", "NNODES": "use nodes", "GPUS_PER_NODE": "use gpus_per_node", "WORLD_SIZE": "it follows from nodes and gpus_per_node", "NODE_RANK": "it is read on the node", "RANK": "torch sets it", "LOCAL_RANK": "torch sets it", "LOCAL_WORLD_SIZE": "torch sets it"}
	// taken are the names that the script uses for itself, and bash for its own.
	taken = strings.Fields("ARGS CODE DIRTY GUARDS HOSTFILE KILL_SWITCH LINK MARK NODE_CHECK RUN_DIR RUN_DIR_HERE SAID SECRET SECRETS SEEN SHARED STEP VENV WATCH " +
		"_ COMP_WORDBREAKS DIRSTACK EPOCHREALTIME EPOCHSECONDS EUID FUNCNAME GROUPS HISTCMD HOSTNAME LINENO OLDPWD OPTARG OPTERR OPTIND PIPESTATUS PPID PWD RANDOM REPLY SECONDS SHLVL SRANDOM UID")
	secretName = lazy.New(`(?i)(?:^|_)(?:API_?KEY|ACCESS_KEY|SECRET_KEY|KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIALS?|JWT)$`)
)

func (v *validator) environment(field string, env map[string]string) {
	for _, name := range sorted(env) {
		at := field + "." + name
		switch value := env[name]; {
		case envNameGrammar.check(name) != "":
			v.add(field, name, "is not a variable's name", "give "+envNameGrammar.fix)
		case isDenied(name):
			v.add(at, "", "may not be set: it changes how the shell, the loader or Slurm works", "leave it out")
		case slices.Contains(taken, name):
			v.add(at, "", "is a name that bash or the script uses for itself", "choose another name")
		case ours[name] != "":
			v.add(at, "", "is set by the script", ours[name])
		case secretName.MatchString(name) && value != "":
			v.add(at, "", "looks like a secret, and a specification is stored and shown", "leave it out: export it before submitting, or put it in the secrets file (mode 600)")
		case strings.ContainsRune(value, 0):
			v.add(at, value, "holds a NUL byte, which no variable can carry", "leave it out")
		case len(name)+len(value)+2 > maxWord:
			v.add(at, "", "is longer than the system takes", "put it in a file")
		}
	}
}

func isDenied(name string) bool {
	return slices.Contains(denied, name) || slices.ContainsFunc(deniedPrefixes, func(p string) bool { return strings.HasPrefix(name, p) })
}

func sorted[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	return keys
}

func (v *validator) launch(s Spec) {
	if s.Launcher == Custom && len(s.LauncherArgv) == 0 {
		v.add("launcher_argv", "", "is missing", "give the words of the launcher, such as [python, -m, mylauncher]")
	}
	if s.Launcher != Custom && len(s.LauncherArgv) > 0 {
		v.add("launcher_argv", s.LauncherArgv[0], "is only for the launcher custom", "set launcher: custom, or leave it out")
	}
	for _, key := range sorted(s.Rdzv.Conf) {
		v.row(row{"rdzv.conf", key, rdzvKeyGrammar})
		v.row(row{"rdzv.conf." + key, s.Rdzv.Conf[key], form(`[A-Za-z0-9._/:-]{1,128}`, "a plain value, without commas")})
	}
}

func (v *validator) container(c Container) {
	used := c.Runtime != "" && c.Runtime != NoContainer
	if used && c.Image == "" {
		v.add("container.image", "", "is missing", "give the image that "+c.Runtime+" starts")
	}
	if !used && (c.Image != "" || len(c.Mounts) > 0 || c.Workdir != "" || len(c.Env) > 0) {
		v.add("container.runtime", "", "is missing", "say which runtime starts the container: pyxis, enroot, singularity, apptainer or docker")
	}
}

func (v *validator) schedule(s Spec) {
	alone := []struct {
		field string
		set   bool
	}{{"array", s.Array != ""}, {"chain", s.Chain != nil && *s.Chain > 1}, {"every", s.Every != ""}}
	for i, a := range alone {
		for _, b := range alone[i+1:] {
			if a.set && b.set {
				v.add(b.field, "", "does not go together with "+a.field, "keep one of them")
			}
		}
	}
}
