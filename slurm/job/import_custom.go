package job

import (
	"path"
	"slices"
	"strconv"
	"strings"

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
// module, or one that Render does not know. It reports false for other commands.
func (m *importer) custom(st *script.Start) bool {
	kind := st.Launcher
	switch {
	case kind == script.DeepSpeed || kind == script.Composer:
	case st.Module && kind.Elastic(), st.Module && kind == script.Python && m.tasks(st) > 1:
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

// numbers imports the numbers in a launcher's option that are fields of their own.
func (m *importer) numbers(f script.Option) {
	switch n := wholeNumber(f.Text()); placeholderOf[f.Name] {
	case "{gpus_per_node}":
		if n != nil && m.spec.GPUsPerNode == nil {
			m.spec.GPUsPerNode = n
		}
	case "{master_port}":
		m.launcherFlag(f)
	case "{world_size}":
		m.processes(f)
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

// launcherWords returns the words of launcher_argv for one option of the launcher.
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
