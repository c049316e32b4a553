package job

import (
	"cmp"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/knowledge/megatron"
	"github.com/megatron-ops/megatron-ops/slurm/script"
)

// A Note names a part of an imported file that the specification does not contain, or
// expresses in another way.
type Note struct {
	Line int       `json:"line,omitempty"` // line of the file; 0 if the note is not about one line
	What string    `json:"what"`           // as written; untrusted text
	Why  lang.Text `json:"why"`
	Kind NoteKind  `json:"kind,omitempty"`
}

// A NoteKind says how a note affects the program's arguments.
type NoteKind string

// The kinds of notes. Notes of kind "" do not concern the program's arguments.
const (
	Hidden NoteKind = "hidden" // the file does not show the value of a word; args has the word as written, or not at all
	Taken  NoteKind = "taken"  // the environment or a branch decides a value; Import chose one
)

// Import turns an existing batch script into a specification, with a note for
// everything that the specification cannot express. A script that Render wrote has the
// specification embedded. Import runs nothing and opens no file.
func Import(name string, text []byte) (Spec, []Note) {
	s, unchanged, own := embeddedSpec(string(text))
	if unchanged {
		return s, nil
	}
	read, notes := readScript(name, string(text))
	if own {
		return withEdits(s, read, notes)
	}
	return read, notes
}

// readScript imports a script without its embedded specification.
func readScript(name, text string) (Spec, []Note) {
	read := script.Settle(name, []byte(text))
	if len(read.Jobs) == 0 {
		return Spec{}, []Note{{What: name, Why: lang.Text{EN: "nothing in it starts a job", ZH: "其中没有启动作业的内容"}}}
	}
	m := importer{job: training(read.Jobs)}
	m.options(m.splitComponents(m.job.Options))
	if spaced := m.job.Spaced(); len(spaced) > 0 {
		m.note(spaced[0], strings.TrimSpace(m.job.Script.Lines[spaced[0]-1]), "a comment and no directive, as the others: not imported", "这是注释而不是指令（其余各行相同）：没有导入")
	}
	m.start()
	m.noteOtherCommands()
	m.venvOnPath()
	m.logs()
	m.dropInvalid()
	slices.SortStableFunc(m.notes, func(a, b Note) int { return a.Line - b.Line })
	return m.spec, m.notes
}

// training returns the first job that starts a training, or else one that starts
// anything, or else the first job. jobs has
// the job of the file itself, and the jobs that the file writes and submits.
func training(jobs []*script.Job) *script.Job {
	for _, j := range jobs {
		if st := j.Training(ownProgram); st != nil && st.Launcher != script.Wrapper {
			return j
		}
	}
	if len(jobs[0].Starts) == 0 {
		for _, j := range jobs {
			if len(j.Starts) > 0 {
				return j
			}
		}
	}
	return jobs[0]
}

// ownProgram reports whether a program is one of Megatron's pretrain scripts.
func ownProgram(program string) bool {
	_, ok := megatron.OwnEntry(program)
	return ok
}

type importer struct {
	job      *script.Job
	spec     Spec
	notes    []Note
	imported map[*script.Command]bool // commands that lead to the program
	patterns []string                 // paths of --output and --error
	// mountsHidden is true if the file does not show all mounts of the container.
	mountsHidden bool
}

func (m *importer) note(line int, what, en, zh string) { m.mark("", line, what, en, zh) }

func (m *importer) mark(kind NoteKind, line int, what, en, zh string) {
	n := Note{line, what, lang.Text{EN: en, ZH: zh}, kind}
	if !slices.Contains(m.notes, n) {
		m.notes = append(m.notes, n)
	}
}

// texts returns the fields that hold the value of an sbatch option unchanged, by the
// option's name.
func (m *importer) texts() map[string]*string {
	s := &m.spec
	return map[string]*string{
		"job-name": &s.Name, "account": &s.Account, "partition": &s.Partition, "qos": &s.QOS, "reservation": &s.Reservation,
		"constraint": &s.Constraint, "mem": &s.Mem, "time": &s.Time, "hint": &s.Hint, "nodelist": &s.Nodelist, "exclude": &s.Exclude,
		"dependency": &s.Dependency, "begin": &s.Begin, "array": &s.Array, "signal": &s.Signal, "comment": &s.Comment,
		"mail-user": &s.MailUser, "mail-type": &s.MailType, "mem-per-gpu": &s.MemPerGPU, "switches": &s.Switches,
	}
}

// start imports the training command: its launcher, arguments, environment, step,
// container and working directory.
func (m *importer) start() {
	m.imported = map[*script.Command]bool{}
	if len(m.job.Starts) == 0 {
		m.note(0, m.job.Script.Name, "no training command is found in it", "没有找到训练命令")
		return
	}
	st := m.job.Training(ownProgram)
	if len(m.job.Starts) > 1 {
		m.note(st.Line, st.Name(), "one of several starts: only the training is imported", "有多条启动命令，只取训练这一条，其余未导入")
	}
	m.launcher(st)
	for _, c := range st.Chain() {
		kept := m.imported[c]
		m.imported[c] = true
		if name := c.Name(); c != st.Command && name != "" && !kept && !slices.Contains(wrappers, name) {
			m.note(c.Line, name, "this command before the program is not imported: if the program needs it, launcher: custom accepts any words", "它位于程序之前，未导入：如果程序需要它，可用 launcher: custom 写任意命令")
		}
	}
	m.words(st)
	m.redirections(st)
	m.variables(st)
	if st.Step != nil {
		m.step(st.Step)
	}
	if n := m.tasks(st); n > 1 && st.Launcher == script.Python && m.wholeNodes(st) {
		m.spec.GPUsPerNode = &n
		m.note(st.Line, "gpus_per_node: "+strconv.Itoa(n), "no GPUs are asked for: one for each task of a node is taken", "脚本没有申请 GPU：按每个节点的任务数取值")
	}
	if m.withoutGPUs(st) {
		m.spec.GPUsPerNode = new(0)
		m.note(st.Line, "gpus_per_node: 0", "the file asks for no GPUs", "脚本没有申请 GPU")
	}
	if st.Container != nil {
		m.container(st.Container)
		m.noteOutsideContainer(st)
	}
	m.worktree(st)
}

// wrappers are the commands before a program that a specification can express in a
// field, or that have no effect on the program.
var wrappers = strings.Fields("srun bash sh env exec uv time docker podman singularity apptainer enroot")

func (m *importer) launcher(st *script.Start) {
	if slices.ContainsFunc(st.Chain(), func(c *script.Command) bool { return c.Name() == "uv" }) {
		m.spec.Launcher = UV
	}
	if m.custom(st) {
		m.hiddenFlags(st)
		return
	}
	switch {
	case m.spec.Launcher == UV && st.Launcher.Elastic():
	case st.Launcher.Elastic():
		m.spec.Launcher = Python
		if st.Launcher != script.RunModule {
			m.note(st.Line, launcherName(st), "started as python -m torch.distributed.run, which finds the environment's packages", "改用 python -m torch.distributed.run 启动，以便找到环境中的包")
		}
	case st.Launcher == script.Accelerate:
		m.spec.Launcher = Accelerate
	case st.Launcher == script.Python && m.tasks(st) > 1:
		m.spec.Launcher = Python
		m.note(st.Line, cmp.Or(st.Python.Text(), st.Program.Text()), "srun starts one process for each GPU there; here torch.distributed.run starts those of a node", "原脚本由 srun 为每个 GPU 启动一个进程；这里由 torch.distributed.run 启动节点内的各进程")
	default:
		m.spec.Launcher, m.spec.LauncherArgv = Custom, m.wordsBefore(st)
		for _, a := range st.Args {
			if a.Line == st.Program.Line && a.Text() == st.Program.Text() {
				break
			}
			m.spec.LauncherArgv = append(m.spec.LauncherArgv, a.Text())
		}
		if len(m.spec.LauncherArgv) == 0 {
			m.spec.LauncherArgv = []string{"bash"}
			if onPath(st) {
				m.spec.LauncherArgv = []string{"env"} // bash would look for a shell script of that name
			}
		}
	}
	for _, f := range st.Flags {
		m.launcherFlag(f)
	}
	m.hiddenFlags(st)
}

// onPath reports whether st starts a command that only the PATH finds, such as
// "oumi train", and not a shell script.
func onPath(st *script.Start) bool {
	name, shown := st.Program.Value.Literal()
	return shown && name != "" && !strings.ContainsAny(name, "/.") && st.Program.Text() == st.Name()
}

// launcherName returns the launcher as the file calls it.
func launcherName(st *script.Start) string {
	if st.Python.Text() == "" {
		return st.Name()
	}
	return string(st.Launcher)
}

func (m *importer) hiddenFlags(st *script.Start) {
	if st.FlagsUnknown {
		m.note(st.Line, st.Name(), "the file does not show some of the launcher's options", "启动器的部分选项文件中没有给出")
	}
}

// tasks returns the number of tasks per node of the step that starts st, or 0 if it
// is unknown.
func (m *importer) tasks(st *script.Start) int {
	if st.Step != nil {
		if n, ok := m.job.TasksPerNode(st.Step.Options); ok {
			return n
		}
	}
	n, _ := m.job.TasksPerNode(m.job.Options)
	return n
}

// launcherFlag imports one option of torch.distributed.run or of accelerate.
func (m *importer) launcherFlag(f script.Option) {
	value := f.Text()
	switch strings.ReplaceAll(f.Name, "_", "-") {
	case "node-rank", "master-addr", "standalone", "rdzv-id", "rdzv-endpoint", "machine-rank", "main-process-ip", "use-env", "multi-gpu":
	case "num-processes", "nproc-per-node", "nnodes", "num-machines":
		m.numbers(f)
	case "master-port", "main-process-port":
		if n := wholeNumber(value); n != nil && !(*n == 29500 && m.isDefault("MASTER_PORT")) {
			m.spec.MasterPort = n
		}
	case "rdzv-backend":
		if value != "static" {
			m.spec.Rdzv.Backend = value
		}
	case "max-restarts":
		m.conf("max_restarts", value)
	case "rdzv-conf":
		for kv := range strings.SplitSeq(value, ",") {
			switch k, v, ok := strings.Cut(kv, "="); {
			case k == "rdzv_backend" || k == "rdzv_endpoint":
				m.note(f.Line, "--"+f.Name+" "+kv, "the launch gives the rendezvous itself", "rendezvous 由启动命令给出")
			case ok:
				m.conf(k, v)
			}
		}
	case "tee", "log-dir", "redirects", "role":
		m.note(f.Line, "--"+f.Name, "monitor sets it", "由 monitor 设置")
	default:
		m.note(f.Line, "--"+f.Name, "a launcher option that the specification does not have", "规格不包含的启动器选项")
	}
}

func (m *importer) conf(k, v string) {
	if m.spec.Rdzv.Conf == nil {
		m.spec.Rdzv.Conf = map[string]string{}
	}
	m.spec.Rdzv.Conf[k] = v
}

// renderedStepOptions are the srun options that Render chooses by itself.
var renderedStepOptions = strings.Fields("het-group pack-group nodes ntasks ntasks-per-node jobid cpus-per-task label unbuffered kill-on-bad-exit wait gpus-per-node gpus-per-task gres container-image container-mounts container-workdir container-env export")

func (m *importer) step(s *script.Step) {
	for _, o := range s.Options {
		if o.Name == "" {
			continue // OptionsUnknown
		}
		if !m.job.Batch() && m.ownOption(s, o) {
			continue
		}
		if m.spec.GPUsPerNode == nil && slices.Contains([]string{"gpus-per-node", "gres", "gpus-per-task"}, o.Name) {
			m.options(script.Options{o}) // only the step names the GPUs
			continue
		}
		if o.Name == "chdir" && path.IsAbs(o.Text()) {
			continue // the worktree
		}
		m.narrower(o)
		if slices.Contains(renderedStepOptions, o.Name) {
			if o.Name == "wait" || o.Name == "kill-on-bad-exit" {
				m.srun(o, map[string]string{"wait": "60", "kill-on-bad-exit": "1"}[o.Name])
			}
			continue
		}
		m.srun(o, "")
	}
	if s.OptionsUnknown {
		m.note(s.Line, "srun", "the file does not show some of its options", "部分选项文件中没有给出")
	}
}

// srun adds an option to srun_args, unless its value is the one that Render writes.
func (m *importer) srun(o script.Option, rendered string) {
	value, literal := o.Value.Literal()
	w := "--" + o.Name + valueSuffix(o, value)
	switch {
	case !literal || !srunWord.MatchString(w):
		m.note(o.Line, "srun --"+o.Name+valueSuffix(o, o.Text()), "the file does not show this value", "文件没有给出该值")
	case value != rendered || !o.Has:
		m.spec.SrunArgs = append(m.spec.SrunArgs, w)
	}
}

func (m *importer) container(c *script.Container) {
	if !slices.Contains(enums["container.runtime"], c.Runtime) && c.Runtime != "podman" {
		m.note(c.Line, c.Runtime, "no such container runtime can be rendered: give container.runtime and image", "无法渲染这种容器运行时：请填写 container.runtime 与 image")
		return
	}
	m.spec.Container.Runtime = c.Runtime
	if c.Runtime == "podman" {
		m.spec.Container.Runtime = Docker
		m.note(c.Line, "podman", "docker is the nearest runtime", "最接近的运行时是 docker")
	}
	m.spec.Container.Image = c.Image.String()
	if c.Image.Unknown() {
		m.note(c.Line, c.Image.String(), "the file does not show the image", "文件没有给出镜像")
	}
	for _, mount := range c.Mounts {
		text := mount.Host.String() + ":" + mount.Inside.String()
		if mount.Host.Unknown() || mount.Inside.Unknown() {
			m.mountsHidden = true
			m.note(mount.Line, text, "the file does not show this mount", "文件没有给出该挂载")
			continue
		}
		if mount.Flags != "" {
			text += ":" + mount.Flags
		}
		m.spec.Container.Mounts = append(m.spec.Container.Mounts, text)
	}
	if c.MountsUnknown {
		m.mountsHidden = true
		m.note(c.Line, c.Runtime, "the file does not show some mounts", "部分挂载文件中没有给出")
	}
	m.spec.Container.Workdir, _ = c.Workdir.Literal()
	if c.EnvFile {
		m.note(c.Line, "--env-file", "the variables that this file sets are not imported", "该文件设置的变量没有导入")
	}
}

// unnoted are commands that get no note: a rendered script does not need them, or
// they have no lasting effect.
var unnoted = strings.Fields("cd command export set echo printf read clear mkdir date hostname scontrol head true : [ [[ test readonly local declare unset shopt ulimit umask exit return wait tee bash uv grep awk sed cut tr sort wc basename dirname realpath readlink pwd nvidia-smi getent env sleep trap docker singularity apptainer enroot squeue sinfo sacct ls cat shift break continue")

// noteOtherCommands notes the commands whose effect the specification cannot express.
func (m *importer) noteOtherCommands() {
	for _, c := range m.job.Commands {
		name := c.Name()
		if files := teeFiles(c); len(files) > 0 {
			m.note(c.Line, "tee "+strings.Join(files, " "), "this copy of the output is not written: the logs are in log_dir", "不再另写这份输出：日志在 log_dir 中")
		}
		nested := c.By != nil && !m.besideTraining(c)
		if m.imported[c] || nested || c.Subst || c.Function || name == "" || slices.Contains(unnoted, name) || c.Trap || name == "srun" && m.looksOnly(c) {
			continue
		}
		words := script.Texts(c.Args)
		if m.activates(words) || name == "kill" && slices.Contains(words, "-0") { // which only asks whether a process lives
			continue
		}
		m.note(c.Line, strings.Join(words, " "), "this command is not imported: run it before submitting, in the image, or in the environment", "该命令没有导入：请在提交前、镜像内或环境中完成")
	}
	for _, h := range m.job.Handlers {
		m.note(h.Line, "trap "+strings.Join(h.Signals, " "), "a signal handler is not imported: see signal and kill_switch", "信号处理没有导入：参见 signal 与 kill_switch")
	}
}

// besideTraining reports whether c stands in the text of the shell that starts the training,
// as in srun bash -c "pip install x; python train.py". A condition changes nothing.
func (m *importer) besideTraining(c *script.Command) bool {
	return m.imported[c.By] && slices.Contains(shellNames, c.By.Name()) && !c.Condition
}

// looksOnly reports whether c is a step that changes nothing, or starts one of the trainings,
// which have a note of their own.
func (m *importer) looksOnly(c *script.Command) bool {
	if len(c.Starts) == 0 {
		return c.Name() == "srun" || slices.Contains(unnoted, c.Name()) ||
			slices.ContainsFunc(m.job.Starts, func(st *script.Start) bool { return st.Command == c })
	}
	return !slices.ContainsFunc(c.Starts, func(s *script.Command) bool { return !m.looksOnly(s) })
}

// teeFiles returns the files that a tee in a pipeline writes.
func teeFiles(c *script.Command) (files []string) {
	if c.Name() == "tee" && c.PipedInto && !c.Subst && c.By == nil {
		files = slices.DeleteFunc(script.Texts(c.Args)[1:], func(w string) bool { return strings.HasPrefix(w, "-") })
	}
	return files
}

// activates imports the virtual environment that a script activates as venv. It
// reports whether words are such a command.
func (m *importer) activates(words []string) bool {
	if len(words) != 2 || words[0] != "source" && words[0] != "." {
		return false
	}
	dir, ok := strings.CutSuffix(words[1], "/bin/activate")
	if !ok || checkPath(dir) != fine || strings.ContainsAny(dir, "$`") {
		return false
	}
	if rest, in := relativeTo(path.Clean(m.spec.Worktree), path.Clean(dir)); in && path.IsAbs(dir) {
		dir = rest
	}
	m.spec.Venv = dir
	return true
}

// logs imports the folder of the logs, and notes if the names of the logs change.
func (m *importer) logs() {
	for _, p := range m.patterns {
		dir, base := path.Split(p)
		dir = strings.TrimSuffix(dir, "/")
		if rest, ok := relativeTo(path.Clean(m.spec.Worktree), path.Clean(dir)); ok && path.IsAbs(dir) {
			dir = rest
		}
		if dir != "" && checkLogDir(dir) == fine {
			m.spec.LogDir = dir
		}
		if want := strings.TrimSuffix(base, path.Ext(base)); want != "%x-%j" && want != "%x-%A_%a" || dir == "" {
			m.note(0, p, "logs are named NAME-JOBID.out and .err in log_dir", "日志名为 log_dir 下的 NAME-JOBID.out 与 .err")
		}
	}
	if m.spec.LogDir == "logs" {
		m.spec.LogDir = ""
	}
}

// dropInvalid removes the values that Validate rejects, with a note for each, so that
// the rest can be rendered.
func (m *importer) dropInvalid() {
	texts := map[string]*string{
		"launcher":          &m.spec.Launcher,
		"script":            &m.spec.Script,
		"gpu":               &m.spec.GPU,
		"worktree":          &m.spec.Worktree,
		"container.image":   &m.spec.Container.Image,
		"container.workdir": &m.spec.Container.Workdir,
	}
	for option, p := range m.texts() {
		texts[fieldOf[option]] = p
	}
	numbers := map[string]**int{
		"nodes":         &m.spec.Nodes,
		"gpus_per_node": &m.spec.GPUsPerNode,
		"cpus_per_task": &m.spec.CPUsPerTask,
		"segment":       &m.spec.Segment,
		"nice":          &m.spec.Nice,
		"master_port":   &m.spec.MasterPort,
	}
	for _, e := range m.spec.Validate() {
		text, isText := texts[e.Field]
		number, isNumber := numbers[e.Field]
		name, isEnv := strings.CutPrefix(e.Field, "env.")
		conf, isConf := strings.CutPrefix(e.Field, "rdzv.conf.")
		switch {
		case isText && *text != "":
			*text = ""
		case isNumber:
			*number = nil
		case isEnv:
			delete(m.spec.Env, name)
		case isConf:
			delete(m.spec.Rdzv.Conf, conf)
		case e.Field == "sbatch":
			m.spec.Sbatch = slices.DeleteFunc(m.spec.Sbatch, func(s string) bool { return s == e.Value })
		case e.Field == "path":
			m.spec.Path = slices.DeleteFunc(m.spec.Path, func(s string) bool { return s == e.Value })
		case e.Field == "container.mounts":
			m.spec.Container.Mounts = slices.DeleteFunc(m.spec.Container.Mounts, func(s string) bool { return s == e.Value })
		default:
			continue
		}
		m.note(0, strings.TrimSuffix(e.Field+": "+e.Value, ": "), "left out: "+e.Msg.EN, "已略去："+e.Msg.ZH)
	}
}
