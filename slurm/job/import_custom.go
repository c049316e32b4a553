package job

import (
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/slurm/script"
)

// placeholderOf has the placeholder that stands for the value of a launcher's option.
var placeholderOf = map[string]string{
	"nnodes": "{nnodes}", "num-machines": "{nnodes}", "num-nodes": "{nnodes}",
	"nproc-per-node": "{gpus_per_node}", "num-gpus": "{gpus_per_node}", "n": "{gpus_per_node}", "nproc": "{gpus_per_node}",
	"node-rank": "{node_rank}", "machine-rank": "{node_rank}",
	"master-addr": "{master_addr}", "main-process-ip": "{master_addr}",
	"master-port": "{master_port}", "main-process-port": "{master_port}",
	"num-processes": "{world_size}", "world-size": "{world_size}", "hostfile": "{hostfile}",
}

// groups are the options that form one group of all nodes, by launcher.
var groups = map[script.Launcher]string{
	script.RunModule:  "--nnodes={nnodes} --nproc-per-node={gpus_per_node} --node-rank={node_rank} --master-addr={master_addr} --master-port={master_port}",
	script.Accelerate: "--num_machines={nnodes} --num_processes={world_size} --machine_rank={node_rank} --main_process_ip={master_addr} --main_process_port={master_port}",
}

// givenByGroup are further options that the options of groups replace.
var givenByGroup = strings.Fields("standalone rdzv-backend rdzv-id rdzv-endpoint m module")

// rendersFlag reports whether launcher: accelerate expresses an option of accelerate.
func rendersFlag(f script.Option) bool {
	return placeholderOf[f.Name] != "" || slices.Contains(givenByGroup, f.Name) || slices.Contains(renderedFlags, f.Name) || f.Name == "multi-gpu"
}

// renderedFlags are the options of a launcher that Render writes from other fields.
var renderedFlags = strings.Fields("max-restarts rdzv-conf tee log-dir redirects role")

// venvOnPath puts the virtual environment on the PATH of a custom launcher, whose words
// Render does not look up in it.
func (m *importer) venvOnPath() {
	if m.spec.Launcher != Custom || m.spec.Venv == "" {
		return
	}
	bin := path.Join(m.spec.Venv, "bin")
	if !path.IsAbs(bin) {
		bin = path.Join(m.spec.Worktree, bin)
	}
	if path.IsAbs(bin) && !slices.Contains(m.spec.Path, bin) {
		m.spec.Path = append([]string{bin}, m.spec.Path...)
	}
}

// custom imports a launcher that only launcher_argv can express: one that starts a
// module or a command, or one that Render does not know. It reports false for other commands.
func (m *importer) custom(st *script.Start) bool {
	kind := st.Launcher
	switch {
	case kind == script.DeepSpeed || kind == script.Composer:
	case kind.Elastic() && (st.Module || st.Flags.Has("no-python")), st.Module && kind == script.Python && m.tasks(st) > 1:
		kind = script.RunModule
	case kind == script.Accelerate && (st.Module || slices.ContainsFunc(st.Flags, func(f script.Option) bool { return !rendersFlag(f) })):
	default:
		return false
	}
	var words []string
	if m.spec.Launcher == UV {
		words = append(words, "uv", "run")
	}
	switch kind {
	case script.RunModule:
		words = append(words, "python", "-m", "torch.distributed.run")
	case script.Accelerate:
		words = append(words, "accelerate", "launch")
	default:
		words = append(words, string(kind))
	}
	group := strings.Fields(groups[kind])
	words = append(words, group...)
	for _, f := range st.Flags {
		m.numbers(f)
		if grouped := len(group) > 0 && (placeholderOf[f.Name] != "" || slices.Contains(givenByGroup, f.Name)); !grouped && f.Name != "m" && f.Name != "module" {
			words = append(words, m.launcherWords(f)...)
		}
	}
	if st.Module {
		words = append(words, "-m")
	}
	m.spec.Launcher, m.spec.LauncherArgv = Custom, words
	return true
}

// wordsBefore returns the words of the commands in the step that start the words of st, such as
// numactl and a script that runs its arguments, and marks these commands as imported.
func (m *importer) wordsBefore(st *script.Start) []string {
	var words []string
	for c := st.Command; c.By != nil; c = c.By {
		args := c.By.Args
		n := len(args) - len(c.Args)
		if n < 1 || !slices.EqualFunc(args[n:], c.Args, func(a, b script.Arg) bool { return a.Word == b.Word && a.Text() == b.Text() }) {
			break // c stands in the text of another shell
		}
		switch name := c.By.Name(); {
		case slices.Contains(shellNames, name), !slices.Contains(wrappers, name):
			var before []string
			for _, a := range args[:n] {
				word, shown := m.job.Filled(a.Value)
				if !shown {
					m.mark(Hidden, a.Line, word, "the file does not show this value: write it out, nothing is expanded", "文件没有给出该值：请直接写出，此处不做展开")
				}
				before = append(before, word)
			}
			words = append(before, words...)
			m.imported[c.By] = true
		case !slices.Contains(plainWrappers, name):
			return words // srun or a container
		}
	}
	return words
}

// shellNames are the shells; with words after the name of a file, they run that file.
// plainWrappers run the words after them where they run themselves.
var shellNames, plainWrappers = strings.Fields("bash sh"), strings.Fields("env exec time uv")

// numbers imports the numbers in a launcher's option that are fields of their own.
func (m *importer) numbers(f script.Option) {
	switch n := wholeNumber(f.Text()); placeholderOf[f.Name] {
	case "{gpus_per_node}":
		m.number(f, n, &m.spec.GPUsPerNode, lang.Text{EN: "the specification starts one process for each GPU: for as many, ask for as many (gpus_per_node)", ZH: "规格为每个 GPU 启动一个进程：需要该数量时请申请同样多的 GPU（gpus_per_node）"})
	case "{nnodes}":
		m.number(f, n, &m.spec.Nodes, lang.Text{EN: "the specification starts one group of all nodes: for as many, ask for as many (nodes)", ZH: "规格在全部节点上启动为一组：需要该数量时请申请同样多的节点（nodes）"})
	case "{master_port}":
		m.launcherFlag(f)
	case "{world_size}":
		m.processes(f)
	}
}

// number imports n as a field that the script's other options leave open. It notes a number
// other than theirs, which changes.
func (m *importer) number(f script.Option, n *int, field **int, why lang.Text) {
	switch {
	case n == nil:
	case *field == nil:
		*field = n
	case **field != *n:
		m.note(f.Line, f.Given+"="+f.Text(), why.EN, why.ZH)
	}
}

// ownOption imports an option of the step of a script without directives: there srun asks for
// the job. It reports false for an option of the step alone.
func (m *importer) ownOption(s *script.Step, o script.Option) bool {
	switch value, shown := m.job.Filled(o.Value); {
	case o.Name == "cpus-per-task":
		if n := wholeNumber(value); n != nil {
			tasks, _ := m.job.TasksPerNode(s.Options)
			m.spec.CPUsPerTask = new(*n * max(tasks, 1))
		}
	case o.Name == "ntasks" && shown:
		if tasks, known := m.job.TasksPerNode(s.Options); known && tasks > 0 && !s.Options.Has("nodes") {
			if n := wholeNumber(value); n != nil {
				m.spec.Nodes = new((*n + tasks - 1) / tasks)
			}
		}
	case m.texts()[o.Name] != nil || slices.Contains(askedOfSrun, o.Name):
		if shown {
			o.Value = script.Value{{Text: value, Line: o.Line}}
		}
		m.options(script.Options{o})
	default:
		return false
	}
	return true
}

// askedOfSrun are further options with which srun asks for a job.
var askedOfSrun = strings.Fields("nodes gpus gpus-per-node gres gpus-per-task output error exclusive")

// narrower notes an option with which a step takes only a part of the job: Render's step
// takes all of it.
func (m *importer) narrower(o script.Option) {
	given, all := o.Text(), m.spec.Nodes
	if o.Name == "gres" || o.Name == "gpus-per-node" {
		items := strings.Split(given, ",")
		if o.Name == "gres" { // which may ask for other resources too: gpu:4,nvme:1
			items = slices.DeleteFunc(items, func(item string) bool { return !strings.HasPrefix(item, "gpu") })
		}
		if len(items) != 1 {
			return
		}
		given, all = items[0][strings.LastIndexByte(items[0], ':')+1:], m.spec.GPUsPerNode
	} else if o.Name != "nodes" {
		return
	}
	if n := wholeNumber(given); n != nil && all != nil && *n != *all {
		m.note(o.Line, "srun --"+o.Name+"="+o.Text(), "the specification takes all nodes and GPUs of the job", "规格使用作业的全部节点与 GPU")
	}
}

// processes notes a number of processes other than one for each GPU.
func (m *importer) processes(f script.Option) {
	nodes, _, known := m.job.Nodes()
	n, shown := m.job.Int(f.Value)
	if gpus, _, has := m.job.GPUs(); has && known && shown && n != nodes*gpus {
		m.note(f.Line, f.Given+"="+strconv.Itoa(n), "the specification starts one process for each GPU", "规格为每个 GPU 启动一个进程")
	}
}

func (m *importer) launcherWords(f script.Option) []string {
	value, shown := m.job.Filled(f.Value)
	if p := placeholderOf[f.Name]; p != "" && f.Has {
		value, shown = p, true
	}
	switch {
	case !f.Has:
		return []string{f.Given}
	case !shown:
		m.note(f.Line, f.Given+"="+value, "the file does not show this value", "文件没有给出该值")
		return nil
	case strings.HasPrefix(f.Given, "--"):
		return []string{f.Given + "=" + value}
	}
	return []string{f.Given, value}
}
