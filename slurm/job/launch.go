package job

import (
	"fmt"
	"slices"
	"strings"
)

// launch is the one srun that starts the training on every node.
func (r *rendering) launch() string {
	var b strings.Builder
	b.WriteString("# One task a node. The text in single quotes is read there, not here.\n")
	b.WriteString("srun " + strings.Join(r.srunOptions(), " ") + " \\\n")
	b.WriteString("  bash -c '\n")
	b.WriteString(indent(r.onNode(), "    "))
	b.WriteString("  ' _ " + strings.Join(r.program(), " ") + ` "${ARGS[@]}"`)
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

// srunOptions are the usual options, less those that srun_args replaces, and
// srun_args. --no-label and its kin take a usual option away.
func (r *rendering) srunOptions() []string {
	options := []string{`--ntasks="$NNODES"`, "--ntasks-per-node=1"}
	if r.CPUsPerTask != nil {
		// Since 22.05 a step does not inherit the job's --cpus-per-task.
		options = append(options, fmt.Sprintf("--cpus-per-task=%d", *r.CPUsPerTask))
	}
	if !r.Minimal {
		options = append(options, "--kill-on-bad-exit=1", "--wait=60", "--unbuffered", "--label")
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

// onNode is what each node's shell does: its guards, its marker, the launcher.
func (r *rendering) onNode() string {
	return r.nodeGuards() + r.marker() + "exec " + strings.Join(r.launcher(), " \\\n  ") + " \\\n  \"$@\"\n"
}

// program is what the launcher starts; the arguments follow.
func (r *rendering) program() []string {
	return []string{quote(r.Script)}
}

// launcher is the command that starts the ranks of one node, one option a
// line, as it stands inside single quotes.
func (r *rendering) launcher() []string {
	run := []string{"python -m torch.distributed.run"}
	if r.Launcher == UV {
		run[0] = "uv run " + run[0]
	}
	procs := `"$GPUS_PER_NODE"`
	if *r.GPUsPerNode == 0 {
		procs = "1"
	}
	return append(run,
		`--nnodes="$NNODES"`,
		"--nproc-per-node="+procs,
		`--node-rank="$SLURM_NODEID"`,
		`--master-addr="$MASTER_ADDR"`,
		`--master-port="$MASTER_PORT"`)
}
