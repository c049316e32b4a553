package job

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/lazy"
)

// launch returns the srun command that starts the training on every node.
func (r *rendering) launch() string {
	var b strings.Builder
	b.WriteString("# One task a node. The text in single quotes is read there, not here.\n")
	words := append([]string{"srun " + strings.Join(r.srunOptions(), " ")}, r.containerOptions()...)
	words = append(words, r.containerWords()...)
	b.WriteString(strings.Join(words, " \\\n  "))
	b.WriteString(" \\\n  bash -c " + r.prelude() + "'\n")
	b.WriteString(indent(r.onNode(), "    "))
	b.WriteString("  ' _ " + strings.Join(r.program(), " ") + ` "${ARGS[@]}"`)
	b.WriteString(r.afterStart())
	return b.String()
}

func indent(text, by string) string {
	var b strings.Builder
	for l := range strings.Lines(text) {
		if strings.TrimSpace(l) != "" {
			b.WriteString(by)
		}
		b.WriteString(l)
	}
	return b.String()
}

// srunOptions returns the default options of srun and those of srun_args. An option of
// srun_args replaces the default of the same name; --no-NAME removes the default NAME.
func (r *rendering) srunOptions() []string {
	options := strings.Fields(r.everyNode())
	if r.CPUsPerTask != nil && len(r.Components) == 0 {
		// Since 22.05 a step does not inherit the job's --cpus-per-task.
		options = append(options, fmt.Sprintf("--cpus-per-task=%d", *r.CPUsPerTask))
	}
	if !r.Minimal {
		options = append(options, "--kill-on-bad-exit=1", "--wait=60", "--unbuffered", "--label")
	}
	if r.into != "" { // srun takes no name from the environment inside a job
		options = append(options, `--job-name="$SLURM_JOB_NAME"`)
	}
	if slices.Contains(r.Preset, perNodeLogs) {
		out, errLog := r.logPaths()
		options = append(options, "--output="+quote(withNode(out)), "--error="+quote(withNode(errLog)))
	}
	for _, a := range r.SrunArgs {
		name, _, _ := strings.Cut(a, "=")
		off, isOff := strings.CutPrefix(name, "--no-")
		n := len(options)
		options = slices.DeleteFunc(options, func(o string) bool {
			have, _, _ := strings.Cut(o, "=")
			return have == name || isOff && have == "--"+off
		})
		if isOff && len(options) < n {
			continue
		}
		options = append(options, quote(a))
	}
	return options
}

// withNode adds the node's name to the file name pattern of a log.
func withNode(pattern string) string {
	ext := path.Ext(pattern)
	return strings.TrimSuffix(pattern, ext) + "-%N" + ext
}

// prelude returns what each node's shell runs before the launch: the guards, the start
// mark and the GPU watch.
func (r *rendering) prelude() string {
	text := ""
	if r.guarded() && r.nodeGuards() != "" {
		text += "$GUARDS"
	}
	if r.traced() {
		text += "$MARK"
	}
	if r.watched() {
		text += "$GPU_USE"
	}
	if text == "" {
		return ""
	}
	if r.Signalled() { // before the ranks start, there is nothing to save
		return `'trap "echo told to end before the ranks started >&2; exit 0" ` + r.ExitSignal() + `;'"` + text + `"`
	}
	return `"` + text + `"`
}

// onNode returns the text of each node's shell, which ends by exec of the launcher.
func (r *rendering) onNode() string {
	var b strings.Builder
	if r.Signalled() {
		b.WriteString("trap \"\" " + r.ExitSignal() + "  # for the ranks alone: they save and end, their launcher waits\n")
	}
	switch {
	case r.Launcher == Custom && r.hasPlaceholders():
		return b.String() + placeholders
	case r.Launcher == Custom:
		return b.String() + "exec \"$@\"\n"
	}
	b.WriteString("exec " + strings.Join(r.launcher(), " \\\n  ") + " \\\n  \"$@\"\n")
	return b.String()
}

// program returns the first arguments of the nodes' shells: the words of a custom
// launcher, preceded by their number if they contain placeholders, and the program. The
// program's arguments follow.
func (r *rendering) program() []string {
	var words []string
	if r.Launcher == Custom {
		if r.hasPlaceholders() {
			words = append(words, fmt.Sprint(len(r.LauncherArgv)))
		}
		for _, w := range r.LauncherArgv {
			words = append(words, quote(w))
		}
	}
	if r.Script == "" {
		return words
	}
	return append(words, quote(r.Script))
}

// hasPlaceholders reports whether a custom launcher's words contain placeholders such
// as {node_rank}, whose values only the node knows.
func (r *rendering) hasPlaceholders() bool {
	return slices.ContainsFunc(r.LauncherArgv, placeholder.MatchString)
}

var placeholder = lazy.New(`\{(?:node_rank|nnodes|world_size|gpus_per_node|master_addr|master_port|hostfile)\}`)

// hostfile returns the commands that write the nodes and their slots to a file, if a
// custom launcher asks for {hostfile}.
func (r *rendering) hostfile() string {
	if r.Launcher != Custom || !slices.Contains(placeholder.FindAllString(strings.Join(r.LauncherArgv, " "), -1), "{hostfile}") {
		return ""
	}
	name := path.Join(r.LogDir, "hostfile-")
	return `# The nodes and their slots, for the launcher.
scontrol show hostnames "` + r.nodelistOfAll() + `" | sed "s/\$/ slots=$GPUS_PER_NODE/" >` + quote(name) + `"$SLURM_JOB_ID"
export HOSTFILE=` + quote(r.inside(r.absolute(name))) + `$SLURM_JOB_ID`
}

// placeholders runs a custom launcher whose words contain placeholders. It replaces
// the placeholders and expands nothing else in the words.
const placeholders = `ops_n=$1 ops_words=(); shift
for ops_w in "${@:1:ops_n}"; do  # what a custom launcher may name
  ops_w=${ops_w//"{node_rank}"/"$SLURM_NODEID"}; ops_w=${ops_w//"{nnodes}"/"$NNODES"}; ops_w=${ops_w//"{world_size}"/"$WORLD_SIZE"}
  ops_w=${ops_w//"{gpus_per_node}"/"$GPUS_PER_NODE"}; ops_w=${ops_w//"{master_addr}"/"$MASTER_ADDR"}; ops_w=${ops_w//"{master_port}"/"$MASTER_PORT"}
  ops_w=${ops_w//"{hostfile}"/"${HOSTFILE:-}"}
  ops_words+=("$ops_w")
done
exec "${ops_words[@]}" "${@:ops_n+1}"
`

// launcher returns the command that starts the ranks of one node, one option per line.
// The text goes into single quotes, so it must not contain any.
func (r *rendering) launcher() []string {
	if r.Launcher == Accelerate {
		return r.accelerate()
	}
	run, conf := []string{r.python() + " -m torch.distributed.run"}, []string{}
	if r.Launcher == UV {
		run[0] = "uv run " + run[0]
	}
	run = append(run, `--nnodes="$NNODES"`, "--nproc-per-node="+r.ranksPerNode())
	if r.Rdzv.Backend == "c10d" {
		run = append(run, "--rdzv-backend=c10d", `--rdzv-endpoint="$MASTER_ADDR:$MASTER_PORT"`, `--rdzv-id="$SLURM_JOB_ID"`)
		// Agents cannot find out which of them hosts the store if several agents share a
		// host name or one host has several names.
		conf = append(conf, `is_host="$((SLURM_NODEID == 0))"`)
	} else {
		run = append(run, `--node-rank="$SLURM_NODEID"`, `--master-addr="$MASTER_ADDR"`, `--master-port="$MASTER_PORT"`)
	}
	for _, k := range sorted(r.Rdzv.Conf) {
		if k == "max_restarts" {
			run = append(run, "--max-restarts="+r.Rdzv.Conf[k])
			continue
		}
		conf = append(conf, k+"="+r.Rdzv.Conf[k])
	}
	if len(conf) > 0 {
		run = append(run, "--rdzv-conf="+strings.Join(conf, ","))
	}
	if r.traced() {
		// torch prefixes each line of output with the role, so the role is the node's name.
		run = append(run, `--role="${SLURMD_NODENAME:-$HOSTNAME}:" --tee=3 --log-dir="$RUN_DIR/${SLURMD_NODENAME:-node-$SLURM_NODEID}"`)
	}
	return run
}

// python returns the interpreter of the ranks: that of the named virtual environment,
// or the one on the PATH, which uv sets for its own environment.
func (r *rendering) python() string {
	if r.ownPython() {
		return `"$VENV/bin/python"`
	}
	return "python"
}

// ownPython reports whether the launch has to use the interpreter of a virtual
// environment by its path, because the launcher does not activate the environment.
func (r *rendering) ownPython() bool {
	return r.Venv != "" && (r.Launcher == Python || r.Launcher == Accelerate)
}

// ranksPerNode returns the number of ranks per node, as a shell word.
func (r *rendering) ranksPerNode() string {
	if *r.GPUsPerNode == 0 {
		return "1"
	}
	return `"$GPUS_PER_NODE"`
}

func (r *rendering) accelerate() []string {
	run := []string{
		r.python() + " -m accelerate.commands.launch",
		`--num_machines="$NNODES"`,
		`--num_processes="$WORLD_SIZE"`,
		`--machine_rank="$SLURM_NODEID"`,
		`--main_process_ip="$MASTER_ADDR"`,
		`--main_process_port="$MASTER_PORT"`,
		"--rdzv_backend=" + r.Rdzv.Backend,
	}
	if n, ok := r.Rdzv.Conf["max_restarts"]; ok {
		run = append(run, "--max_restarts="+n)
	}
	if r.traced() {
		run = append(run, `--role="${SLURMD_NODENAME:-$HOSTNAME}:" --tee=3 --log_dir="$RUN_DIR/${SLURMD_NODENAME:-node-$SLURM_NODEID}"`)
	}
	return run
}
