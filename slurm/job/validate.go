package job

import (
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/lazy"
)

// Validate checks each field, and fields that depend on each other, and returns all
// faults. It does not check files, the cluster or Megatron's own rules.
func (s Spec) Validate() []*FieldError {
	v := validator{}
	for _, r := range fieldChecks(s) {
		v.field(r)
	}
	v.program(s)
	v.environment("env", s.Env)
	v.environment("container.env", s.Container.Env)
	v.sbatch(s)
	v.launch(s)
	v.container(s.Container)
	v.schedule(s)
	v.sweep(s)
	v.components(s)
	return v.errs
}

// A fieldCheck is the value of a field that its grammar checks. An empty value is a field
// that was left out.
type fieldCheck struct {
	field, value string
	grammar      grammar
}

func fieldChecks(s Spec) []fieldCheck {
	pathFix := phrase("a path of printable characters, without '..'; nothing in it is expanded", "由可见字符组成、不含 '..' 的路径；其中不做任何展开")
	file := grammar{checkPath, pathFix}
	absolute := grammar{checkAbsolute, phrase("an absolute path of printable characters, without '..'; nothing in it is expanded", "由可见字符组成、不含 '..' 的绝对路径；其中不做任何展开")}
	rs := []fieldCheck{
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
		{"mem_per_gpu", s.MemPerGPU, memGrammar},
		{"switches", s.Switches, switchesGrammar},
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
		{"worktree", s.Worktree, grammar{checkWorktree, absolute.fix}},
		{"venv", s.Venv, file},
		{"script", s.Script, file},
		{"megatron", s.Megatron, releaseGrammar},
		{"launcher", s.Launcher, oneOf(enums["launcher"]...)},
		{"rdzv.backend", s.Rdzv.Backend, oneOf(enums["rdzv.backend"]...)},
		{"container.runtime", s.Container.Runtime, oneOf(enums["container.runtime"]...)},
		{"container.image", s.Container.Image, grammar{checkImage, phrase("a registry name such as nvcr.io#nvidia/pytorch:25.04-py3, or a .sqsh or .sif file", "镜像仓库中的名称，例如 nvcr.io#nvidia/pytorch:25.04-py3，或 .sqsh、.sif 文件")}},
		{"container.workdir", s.Container.Workdir, absolute},
		{"log_dir", s.LogDir, grammar{checkLogDir, phrase("a folder of the worktree such as logs, or of a shared file system such as /scratch/alice/logs", "工作树内的目录，例如 logs，或共享文件系统上的目录，例如 /scratch/alice/logs")}},
		{"artifact.path", s.Artifact.Path, file},
		{"kill_switch", s.KillSwitch, file},
	}
	for _, m := range s.Container.Mounts.separate() {
		rs = append(rs, fieldCheck{"container.mounts", m, grammar{checkMount, phrase("host:inside or host:inside:flags, both absolute", "host:inside 或 host:inside:flags，两侧都是绝对路径")}})
	}
	for _, p := range s.Path {
		rs = append(rs, fieldCheck{"path", p, pathEntryGrammar})
	}
	for _, f := range s.ExtraFlags {
		rs = append(rs, fieldCheck{"extra_flags", f, extraFlagGrammar})
	}
	for _, p := range s.Preset {
		rs = append(rs, fieldCheck{"preset", p, wordGrammar})
	}
	for _, c := range s.Retry.On {
		rs = append(rs, fieldCheck{"retry.on", c, classGrammar})
	}
	return rs
}

// give returns the fix for a value that a grammar rejects.
func give(what lang.Text) lang.Text { return phrase("give %s", "请给出%s", what) }

// use returns the fix that names the field to use instead.
func use(field string) lang.Text { return phrase("use %s", "请用 %s", field) }

func notTogether(with string) lang.Text {
	return phrase("does not go together with %s", "不能与 %s 同时使用", with)
}

type validator struct{ errs []*FieldError }

func (v *validator) add(field, value string, msg, fix lang.Text) {
	v.errs = append(v.errs, &FieldError{Field: field, Value: value, Msg: msg, Fix: fix})
}

func (v *validator) field(r fieldCheck) {
	if r.value == "" {
		return
	}
	if why := r.grammar.check(r.value); why != fine {
		fix := give(r.grammar.fix)
		if plain, ok := meantPlainly(r.value, func(meant string) bool { return r.grammar.check(meant) == fine }); ok {
			fix = plain
		}
		v.add(r.field, r.value, why, fix)
	}
}

func (v *validator) number(field string, n *int, lo, hi int) {
	if n != nil && (*n < lo || *n > hi) {
		v.add(field, strconv.Itoa(*n), phrase("is out of range", "超出范围"), phrase("give a number from %d to %d", "请给出 %d 到 %d 之间的数", lo, hi))
	}
}

// program validates the program, its arguments, the options of srun, and the numbers.
func (v *validator) program(s Spec) {
	switch {
	case s.Worktree == "":
		v.add("worktree", "", phrase("is missing", "缺失"), phrase("give the absolute path of a Megatron-LM checkout that every node sees", "请给出所有节点可见的 Megatron-LM 代码目录的绝对路径"))
	case path.Clean(s.Worktree) == "/":
		v.add("worktree", s.Worktree, phrase("is the root directory", "是根目录"), phrase("give the Megatron-LM checkout", "请给出 Megatron-LM 代码目录"))
	}
	unmountable := func(field, dir string) {
		if s.contained() && strings.ContainsAny(dir, ":,") {
			v.add(field, dir, phrase("has a ':' or a ',', which a container mount cannot contain", "含有 ':' 或 ','，容器挂载无法表示"), phrase("give a path without them", "请给出不含它们的路径"))
		}
	}
	if path.IsAbs(s.LogDir) {
		unmountable("log_dir", s.LogDir)
	}
	unmountable("worktree", s.Worktree)
	if path.IsAbs(s.Script) && checkPath(s.Script) == fine && !insideJob(s, s.Script) {
		v.add("script", s.Script, phrase("lies outside the worktree", "位于工作树之外"), phrase("give a path relative to the worktree, such as pretrain_gpt.py", "请给出相对于工作树的路径，例如 pretrain_gpt.py"))
	}
	v.words("args", s.Args, s.Launcher != "custom")
	v.words("launcher_argv", s.LauncherArgv, false)
	for _, w := range s.SrunArgs {
		if !srunWord.MatchString(w) || unprintable(w) != fine {
			v.add("srun_args", w, phrase("is not one long option of srun", "不是一个 srun 长选项"), phrase("give --option or --option=value, one element each", "请写 --option 或 --option=value，每项一个"))
		}
	}
	v.sizes(s)
	v.number("nice", s.Nice, -maxNice, maxNice)
	v.number("master_port", s.MasterPort, 1, 65_535)
	v.number("retry.max", s.Retry.Max, 0, 100)
	v.number("chain", s.Chain, 1, 1000)
}

// sizes validates the numbers that each component of a job can set for itself.
func (v *validator) sizes(s Spec) {
	v.number("nodes", s.Nodes, 1, 100_000)
	v.number("gpus_per_node", s.GPUsPerNode, 0, 1024)
	v.number("cpus_per_task", s.CPUsPerTask, 1, 65_536)
	v.number("segment", s.Segment, 1, 100_000)
}

// maxNice is the largest value of Slurm's --nice.
const maxNice = 2_147_483_645

// maxWord is Linux's MAX_ARG_STRLEN: the limit in bytes of one argument or variable.
const maxWord = 128 << 10

// words validates arguments, which may contain any character except NUL.
func (v *validator) words(field string, words []string, glued bool) {
	for _, w := range words {
		switch {
		case strings.ContainsRune(w, 0):
			v.add(field, w, phrase("contains a NUL byte, which an argument cannot contain", "含有 NUL 字节，参数无法携带"), phrase("leave it out", "请去掉"))
			return
		case len(w) >= maxWord:
			v.add(field, w, phrase("is longer than the system allows for one argument", "超过系统允许的单个参数长度"), phrase("put it in a file", "请放入文件"))
			return
		}
		if msg, fix := flagWord(w, glued); msg != fine {
			v.add(field, w, msg, fix)
		}
	}
}

var srunWord = lazy.New(`^--[a-z][a-z0-9-]*(?:=.*)?$`)

// insideJob reports whether an absolute path lies in the worktree. In a container it
// always reports true, because the image may contain the code.
func insideJob(s Spec, p string) bool {
	if s.contained() {
		return true
	}
	_, ok := relativeTo(path.Clean(s.Worktree), path.Clean(p))
	return ok
}

// deniedNames are variables that change how bash, the dynamic loader or another program
// works. Quoting their values would not make them safe.
var (
	deniedNames    = strings.Fields("ENV PATH IFS PS0 PS1 PS2 PS4 PROMPT_COMMAND SHELLOPTS CDPATH GLOBIGNORE POSIXLY_CORRECT PYTHONSTARTUP PYTHONINSPECT PYTHONHOME PERL5OPT PERL5LIB RUBYOPT NODE_OPTIONS GCONV_PATH GIT_SSH GIT_SSH_COMMAND GIT_EXTERNAL_DIFF GIT_CONFIG_COUNT")
	deniedPrefixes = strings.Fields("BASH LD_ SLURM_ SBATCH_ SRUN_ SALLOC_ ops_")
	// setByScript are the variables that the script sets itself, with what to use instead.
	setByScript = map[string]lang.Text{
		"MASTER_ADDR":      phrase("it is the job's first node", "它是作业的首个节点"),
		"MASTER_PORT":      use("master_port"),
		"NNODES":           use("nodes"),
		"GPUS_PER_NODE":    use("gpus_per_node"),
		"WORLD_SIZE":       phrase("it follows from nodes and gpus_per_node", "它由 nodes 与 gpus_per_node 得出"),
		"NODE_RANK":        phrase("it is read on the node", "它在节点上读取"),
		"RANK":             phrase("torch sets it", "由 torch 设置"),
		"LOCAL_RANK":       phrase("torch sets it", "由 torch 设置"),
		"LOCAL_WORLD_SIZE": phrase("torch sets it", "由 torch 设置"),
	}
	// internalNames are names of variables that the script or bash uses internally.
	internalNames = strings.Fields("ARGS CODE DIRTY GPU_USE GUARDS HOSTFILE KILL_SWITCH LINK MARK NODE_CHECK RUN_DIR RUN_DIR_HERE SAID SECRET SECRETS SEEN SHARED STEP TOLD VENV WATCH " +
		"_ COMP_WORDBREAKS DIRSTACK EPOCHREALTIME EPOCHSECONDS EUID FUNCNAME GROUPS HISTCMD HOSTNAME LINENO OLDPWD OPTARG OPTERR OPTIND PIPESTATUS PPID PWD RANDOM REPLY SECONDS SHLVL SRANDOM UID")
	secretName = lazy.New(`(?i)(?:^|_)(?:API_?KEY|ACCESS_KEY|SECRET_KEY|KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIALS?|JWT)$`)
)

func (v *validator) environment(field string, env map[string]string) {
	for _, name := range sorted(env) {
		at := field + "." + name
		switch value := env[name]; {
		case envNameGrammar.check(name) != fine:
			v.add(field, name, phrase("is not a variable's name", "不是有效的变量名"), give(envNameGrammar.fix))
		case name == "PATH":
			v.add(at, "", phrase("may not be set: the launch itself needs the programs on it", "不允许设置：启动本身要用到其中的程序"), use("path"))
		case isDenied(name):
			v.add(at, "", phrase("may not be set: it changes how the shell, the loader or Slurm works", "不允许设置：它会改变 shell、加载器或 Slurm 的行为"), phrase("leave it out", "请去掉"))
		case slices.Contains(internalNames, name):
			v.add(at, "", phrase("is a name that bash or the script uses for itself", "是 bash 或脚本自用的名称"), phrase("choose another name", "请换一个名称"))
		case setByScript[name] != fine:
			v.add(at, "", phrase("is set by the script", "由脚本设置"), setByScript[name])
		case secretName.MatchString(name) && value != "":
			v.add(at, "", phrase("looks like a secret, and a specification is stored and shown", "像是密钥，而规格会被保存和显示"), phrase("leave it out: export it before submitting, or put it in the secrets file (mode 600)", "请去掉：在提交前 export，或放入密钥文件（权限 600）"))
		case strings.ContainsRune(value, 0):
			v.add(at, value, phrase("contains a NUL byte, which a variable cannot contain", "含有 NUL 字节，环境变量无法携带"), phrase("leave it out", "请去掉"))
		case len(name)+len(value)+2 > maxWord:
			v.add(at, "", phrase("is longer than the system allows", "超过系统允许的长度"), phrase("put it in a file", "请放入文件"))
		}
	}
}

func isDenied(name string) bool {
	return slices.Contains(deniedNames, name) || slices.ContainsFunc(deniedPrefixes, func(p string) bool { return strings.HasPrefix(name, p) })
}

func sorted[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

func (v *validator) launch(s Spec) {
	if s.Launcher == Custom && len(s.LauncherArgv) == 0 {
		v.add("launcher_argv", "", phrase("is missing", "缺失"), phrase("give the words of the launcher, such as [python, -m, mylauncher]", "请给出启动器的各个词，例如 [python, -m, mylauncher]"))
	}
	if s.Launcher != Custom && len(s.LauncherArgv) > 0 {
		v.add("launcher_argv", s.LauncherArgv[0], phrase("is only for the launcher custom", "只用于 custom 启动器"), phrase("set launcher: custom, or leave it out", "请设置 launcher: custom，或去掉它"))
	}
	for _, key := range sorted(s.Rdzv.Conf) {
		v.field(fieldCheck{"rdzv.conf", key, rdzvKeyGrammar})
		v.field(fieldCheck{"rdzv.conf." + key, s.Rdzv.Conf[key], form(`[A-Za-z0-9._/:-]{1,128}`, phrase("a plain value, without commas", "普通的值，不含逗号"))})
	}
}

func (v *validator) container(c Container) {
	used := c.Runtime != "" && c.Runtime != NoContainer
	if used && c.Image == "" {
		v.add("container.image", "", phrase("is missing", "缺失"), phrase("give the image that %s starts", "请给出 %s 要启动的镜像", c.Runtime))
	}
	if !used && (c.Image != "" || len(c.Mounts) > 0 || c.Workdir != "" || len(c.Env) > 0) {
		v.add("container.runtime", "", phrase("is missing", "缺失"), phrase("say which runtime starts the container: pyxis, enroot, singularity, apptainer or docker", "请说明由哪个运行时启动容器：pyxis、enroot、singularity、apptainer 或 docker"))
	}
}

func (v *validator) schedule(s Spec) {
	if s.Mem != "" && s.MemPerGPU != "" {
		v.add("mem_per_gpu", "", notTogether("mem"), phrase("keep one of them", "只保留其中一个"))
	}
	alone := []struct {
		field string
		set   bool
	}{{"array", s.Array != ""}, {"chain", s.Chain != nil && *s.Chain > 1}, {"every", s.Every != ""}}
	for i, a := range alone {
		for _, b := range alone[i+1:] {
			if a.set && b.set {
				v.add(b.field, "", notTogether(a.field), phrase("keep one of them", "只保留其中一个"))
			}
		}
	}
}
