package job

import (
	"fmt"
	"path"
	"strings"

	"github.com/megatron-ops/megatron-ops/slurm"
)

// ForShell returns the launch as commands to type without Slurm, one per node. The
// commands start the container too, and every value is quoted. nodes are the names of the
// nodes in rank order; without names, the commands contain the placeholder NODE0.
func ForShell(s Spec, o Options, nodes []string) ([]string, error) {
	s = o.Site.Fill(s)
	if errs := s.Validate(); len(errs) > 0 {
		return nil, FieldErrors(errs)
	}
	s = s.WithDefaults()
	if s.Container.Runtime == Pyxis {
		return nil, FieldErrors{{Field: "container.runtime", Value: Pyxis, Msg: phrase("starts containers through Slurm alone", "只能通过 Slurm 启动容器"), Fix: phrase("use enroot, which reads the same .sqsh files", "请用 enroot，它读取同样的 .sqsh 文件")}}
	}
	o.Minimal = true
	r := rendering{Spec: s, Options: o}
	if err := r.prepare(); err != nil {
		return nil, err
	}
	if len(nodes) > 0 && len(nodes) != *s.Nodes {
		return nil, FieldErrors{{Field: "nodes", Value: fmt.Sprint(*s.Nodes), Msg: phrase("does not match the number of nodes named: %d", "与给出的 %d 个节点名不一致", len(nodes)), Fix: phrase("name as many nodes", "请给出同样数目的节点名")}}
	}
	commands := make([]string, *s.Nodes)
	for node := range commands {
		commands[node] = r.byHand(node, nodes)
	}
	return commands, nil
}

func (r *rendering) byHand(node int, nodes []string) string {
	master := "NODE0"
	switch {
	case len(nodes) > 0:
		master = nodes[0]
	case *r.Nodes == 1:
		master = "localhost"
	}
	port := 29500
	if r.MasterPort != nil {
		port = *r.MasterPort
	}
	known := strings.NewReplacer(
		`"$SLURM_NODEID"`, fmt.Sprint(node), `"$NNODES"`, fmt.Sprint(*r.Nodes), `"$GPUS_PER_NODE"`, fmt.Sprint(*r.GPUsPerNode),
		`"$MASTER_ADDR:$MASTER_PORT"`, fmt.Sprintf("%s:%d", quote(master), port), `"$MASTER_ADDR"`, quote(master), `"$MASTER_PORT"`, fmt.Sprint(port),
		`"$((SLURM_NODEID == 0))"`, map[bool]string{true: "1", false: "0"}[node == 0], `"$VENV/bin/python"`, quote(path.Join(r.venvInside(), "bin/python")), `"$WORLD_SIZE"`, fmt.Sprint(r.WorldSize()), `"$SLURM_JOB_ID"`, quote(r.Name))
	env := r.environmentOf()
	var words []string
	words = append(words, "cd "+quote(r.Worktree)+" &&")
	if r.contained() {
		words = append(words, r.containerByHand(env)...)
	} else {
		for _, e := range env {
			words = append(words, e.name+"="+quote(e.value))
		}
	}
	if r.Launcher == Custom {
		for _, w := range r.LauncherArgv {
			words = append(words, quote(strings.NewReplacer("{node_rank}", fmt.Sprint(node), "{nnodes}", fmt.Sprint(*r.Nodes), "{world_size}", fmt.Sprint(r.WorldSize()),
				"{gpus_per_node}", fmt.Sprint(*r.GPUsPerNode), "{master_addr}", master, "{master_port}", fmt.Sprint(port)).Replace(w)))
		}
	} else {
		for _, w := range r.launcher() {
			words = append(words, known.Replace(w))
		}
	}
	if r.Script != "" {
		words = append(words, quote(r.Script))
	}
	words = append(words, argumentLines(r.Args)...)
	return strings.Join(words, " \\\n  ")
}

// environmentOf returns every variable that a launch by hand sets.
func (r *rendering) environmentOf() []setting {
	var out []setting
	if c := r.connections; c.Value != "" && !r.sets("CUDA_DEVICE_MAX_CONNECTIONS") && !r.presetSets("CUDA_DEVICE_MAX_CONNECTIONS") {
		out = append(out, setting{name: "CUDA_DEVICE_MAX_CONNECTIONS", value: c.Value})
	}
	for _, p := range r.presets {
		if !r.sets(p.name) {
			out = append(out, p)
		}
	}
	for _, name := range sorted(r.Env) {
		out = append(out, setting{name: name, value: r.Env[name]})
	}
	return out
}

// containerByHand returns the words that start the container, with the values of the
// variables of env.
func (r *rendering) containerByHand(env []setting) []string {
	var words []string
	pass := map[string]string{Docker: "-e ", Enroot: "--env "}[r.Container.Runtime]
	for _, w := range r.containerWords() {
		if pass != "" && strings.HasPrefix(w, pass) {
			for _, e := range env {
				words = append(words, pass+quote(e.name+"="+e.value))
			}
			continue
		}
		words = append(words, w)
	}
	if pass == "" && len(env) > 0 {
		if len(r.insideEnv()) == 0 {
			words = append(words, "env")
		}
		for _, e := range env {
			words = append(words, quote(e.name+"="+e.value))
		}
	}
	return words
}

// argumentLines returns the quoted arguments as lines. A flag and its values share a
// line.
func argumentLines(args []string) []string {
	var lines []string
	for _, a := range args {
		if len(lines) == 0 || strings.HasPrefix(a, "--") {
			lines = append(lines, quote(a))
			continue
		}
		lines[len(lines)-1] += " " + quote(a)
	}
	return lines
}

// Hostfile returns the nodes as a hostfile for launchers, with one line
// "NODE slots=GPUS" per node.
func Hostfile(nodes []string, gpusPerNode int) string {
	var b strings.Builder
	for _, n := range nodes {
		fmt.Fprintf(&b, "%s slots=%d\n", n, gpusPerNode)
	}
	return b.String()
}

// An Interactive has the commands of an interactive session. A person types them and
// fills in JOBID and NODE.
type Interactive struct {
	Allocate string // allocates the nodes and keeps them
	Shell    string // allocates one node and starts a shell on it
	Join     string // starts a further shell in the allocation
	Side     string // runs a step next to the training, without a GPU
	Release  string // ends the allocation
}

// ForSession returns the commands of an interactive session with the nodes that s
// requests.
func ForSession(s Spec, o Options) (Interactive, error) {
	s = o.Site.Fill(s)
	if errs := s.Validate(); len(errs) > 0 {
		return Interactive{}, FieldErrors(errs)
	}
	s = s.WithDefaults()
	ask := strings.Join(s.words(o.Site), " ")
	one := s
	one.Nodes = new(1)
	one.Begin, one.Dependency = "", ""
	gpus := ""
	if *s.GPUsPerNode > 0 {
		gpus = " --gres=gpu:0"
	}
	return Interactive{
		Allocate: "salloc --no-shell " + ask,
		Shell:    "srun --pty " + strings.Join(one.words(o.Site), " ") + " bash",
		Join:     "srun --jobid=JOBID --overlap --pty -w NODE bash",
		Side:     fmt.Sprintf("srun --jobid=JOBID --overlap%s --nodes=%d --ntasks-per-node=1 nvidia-smi", gpus, *s.Nodes),
		Release:  "scancel JOBID",
	}, nil
}

// words returns the sbatch options as words of a command line, without the options
// that have no meaning in a session, such as logs, arrays and requeueing.
func (s Spec) words(site Site) []string {
	s.Array, s.Requeue, s.Signal, s.Comment = "", nil, "", ""
	var words []string
	for _, d := range s.options(site) {
		if d.name == "output" || d.name == "error" {
			continue
		}
		words = append(words, d.word())
	}
	return words
}

// IntoStep renders the launch as a script to run inside an existing allocation, with
// `bash script`, any number of times. The script has no directives, and its step runs
// on the nodes of the allocation.
func IntoStep(s Spec, o Options, id slurm.JobID) (Script, error) {
	if !slurm.IsJobID(string(id)) {
		return Script{}, &FieldError{Field: "into", Value: string(id), Msg: phrase("is not a job id", "不是作业号"), Fix: phrase("give a number such as 4711", "请给出数字，例如 4711")}
	}
	var errs FieldErrors
	for _, f := range []struct {
		field string
		given bool
	}{
		{"dependency", s.Dependency != ""},
		{"begin", s.Begin != ""},
		{"array", s.Array != "" && len(s.Sweep) == 0},
		{"sweep", len(s.Sweep) > 0},
		{"chain", s.Chain != nil},
		{"every", s.Every != ""},
		{"components", len(s.Components) > 0},
	} {
		if f.given {
			errs = append(errs, &FieldError{Field: f.field, Msg: notTogether("into"), Fix: phrase("leave it out: a step starts now, and once", "请去掉：步骤会立即启动，且只启动一次")})
		}
	}
	if len(errs) > 0 {
		return Script{}, errs
	}
	o.into = string(id)
	return Render(s, o)
}

// StepName returns the name that the script of IntoStep gives to its step. mark is the
// argument of the script, which distinguishes the launches in one allocation.
func StepName(s Spec, mark string) string { return s.WithDefaults().Name + "-" + mark }

// StepFiles returns the path of the logs of such a step, without the extension.
func StepFiles(s Spec, id slurm.JobID, mark string) string {
	s = s.WithDefaults()
	return s.absolute(path.Join(s.LogDir, s.Name+"-"+string(id)+"-"+mark))
}

// StepTraces returns the folder of the traces that such a step writes for the
// diagnosis.
func StepTraces(s Spec, id slurm.JobID, mark string) string {
	return s.absolute(path.Join(s.WithDefaults().LogDir, string(id), "attempt-"+mark))
}

// stepPreamble returns the commands that ask Slurm for the variables which a batch shell would
// have in its environment.
func stepPreamble(id, name string) string {
	return `# A step in a job that runs already. srun reads the job from here, and shares with the job's other steps.
export SLURM_JOB_ID=` + quote(id) + ` SLURM_OVERLAP=1
IFS=' ' read -r SLURM_NNODES SLURM_JOB_NODELIST <<<"$(squeue --noheader --job="$SLURM_JOB_ID" --states=RUNNING --format='%D %N')"
[[ $SLURM_JOB_NODELIST ]] || { echo "job $SLURM_JOB_ID does not run: allocate first" >&2; exit 3; }
SLURM_RESTART_COUNT=${1:-$(date +%s%5N)}  # each launch has a name and a folder of its own
export SLURM_NNODES SLURM_JOB_NODELIST SLURM_RESTART_COUNT SLURM_JOB_NAME=` + quote(name) + `-$SLURM_RESTART_COUNT
`
}
