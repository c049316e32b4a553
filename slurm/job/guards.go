package job

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

// nodeLocal are stat's names of file systems that are local to one node.
const nodeLocal = "tmpfs|overlayfs|ext2/ext3|xfs|btrfs|zfs"

// batchGuards returns the checks that the first node makes before the launch. A check
// stops the job only if a fault is proven; a check that cannot decide prints one
// warning.
func (r *rendering) batchGuards() string {
	if !r.guarded() {
		return ""
	}
	var b strings.Builder
	b.WriteString(`# Guards: proof of a fault stops the job, a doubt is one line (guards: false leaves them out).
` + guardFunction)
	if r.nodesGiven {
		fmt.Fprintf(&b, `[[ $NNODES == %d ]] || guard stop "nodes: %d asked for, $NNODES given"
`, *r.Nodes, *r.Nodes)
	}
	b.WriteString(`getent hosts "$MASTER_ADDR" >/dev/null 2>&1 || guard warning "$MASTER_ADDR does not resolve, or getent is missing"
`)
	if r.traced() {
		b.WriteString(`[[ $DIRTY != unknown ]] || guard warning "git is missing, or $PWD is no checkout: the start marks carry no commit"
`)
	}
	if r.into == "" { // a batch script runs on the first node; a step's script may run on the login node
		b.WriteString(`! (: <"/dev/tcp/127.0.0.1/$MASTER_PORT") 2>/dev/null || guard stop "port $MASTER_PORT is taken on $MASTER_ADDR; choose another master_port"
`)
	}
	if r.Launcher == UV && r.venvOnHost() != "" {
		fmt.Fprintf(&b, "[[ -x %s ]] || guard warning %s\n", quote(path.Join(r.venvOnHost(), "bin/python")),
			quote("no virtual environment in "+r.Venv+"; without one uv run builds it on every node: run uv sync first"))
	}
	if *r.Nodes > 1 {
		b.WriteString(`case $(stat -f -c %T . 2>/dev/null) in ` + nodeLocal + `) guard warning "$PWD looks local to this node" ;; esac
`)
		b.WriteString(r.sharedList() + "\n")
	}
	if on := r.nodeGuards(); on != "" {
		b.WriteString("GUARDS='  # what every node looks at itself\n" + on + "'")
	}
	return b.String()
}

// listingNode names the node that lists the shared paths; see sharedList.
func (r *rendering) listingNode() string {
	if r.into != "" {
		return "the login node"
	}
	return "the first node"
}

// sharedList returns the part of the script that lists, in SEEN, which shared paths
// exist on the first node: the worktree, the environment, the program, its data, and a
// file that the script has just written to the log folder. The other nodes check that
// they see the same paths.
func (r *rendering) sharedList() string {
	host := r.sharedPaths()
	if r.contained() {
		var b strings.Builder
		b.WriteString("SEEN=\n")
		for _, p := range host {
			in, ok := r.mounts().ToContainer(r.absolute(p))
			if ok {
				fmt.Fprintf(&b, "[[ ! -e %s ]] || SEEN+=%s$'\\n'\n", quote(p), quote(in))
			}
		}
		if r.traced() {
			b.WriteString(`: >"$RUN_DIR_HERE/seen"; SEEN+=$RUN_DIR/seen` + "\n")
		}
		return b.String() + "export SEEN"
	}
	words := make([]string, 0, len(host)+1)
	for _, p := range host {
		words = append(words, quote(p))
	}
	b := "SEEN=\n"
	if r.traced() {
		b += `: >"$RUN_DIR/seen"` + "\n"
		words = append(words, `"$RUN_DIR/seen"`)
	}
	return b + "for SHARED in " + strings.Join(words, " ") + `; do [[ ! -e $SHARED ]] || SEEN+=$SHARED$'\n'; done
export SEEN`
}

// pathFlags are Megatron's flags whose values are files or folders that every node
// reads. The values of dataFlags are prefixes of .bin and .idx files.
var (
	pathFlags = strings.Fields("--load --save --vocab-file --merge-file --tokenizer-model --data-cache-path --tensorboard-dir --data-args-path --per-split-data-args-path --nccl-communicator-config-path")
	dataFlags = strings.Fields("--data-path --train-data-path --valid-data-path --test-data-path")
)

// sharedPaths returns the paths that every node must see, as paths of the host.
func (r *rendering) sharedPaths() []string {
	paths := []string{r.Worktree, r.Script}
	if v := r.venvOnHost(); v != "" {
		paths = append(paths, v)
	}
	flag := ""
	for _, a := range r.Args {
		value := a
		if strings.HasPrefix(a, "--") {
			var has bool
			if flag, value, has = strings.Cut(a, "="); !has {
				continue
			}
		}
		isData := slices.Contains(dataFlags, flag)
		if !isData && !slices.Contains(pathFlags, flag) || !strings.HasPrefix(value, "/") || checkPath(value) != fine {
			continue
		}
		if isData {
			value += ".idx"
		}
		if r.contained() {
			host, ok := r.mounts().ToHost(value)
			if !ok {
				continue
			}
			value = host
		}
		if !slices.Contains(paths, value) {
			paths = append(paths, value)
		}
	}
	// SEEN is a list in one shell variable, so names with quotes are left out.
	return slices.DeleteFunc(paths, func(p string) bool { return strings.ContainsAny(p, `'"\`) })
}

// nodeGuards returns the checks that every node makes before it starts its ranks. The
// text goes into single quotes, so it must not contain any.
func (r *rendering) nodeGuards() string {
	var b strings.Builder
	if *r.Nodes > 1 {
		b.WriteString(`  while IFS= read -r p; do  # a file system may need a moment to show what is new
    [[ -z $p || -e $p ]] || { sleep 5; [[ -e $p ]]; } || guard stop "$p is seen by ` + r.listingNode() + ` and not here"
  done <<<"$SEEN"
`)
	}
	if r.into != "" {
		b.WriteString(`  [[ $SLURM_NODEID != 0 ]] || ! (: <"/dev/tcp/127.0.0.1/$MASTER_PORT") 2>/dev/null || guard stop "port $MASTER_PORT is taken; another launch may still run: squeue --steps --me"
`)
	}
	if r.Launcher == UV {
		b.WriteString(`  command -v uv >/dev/null || guard warning "uv is not on the PATH"
`)
	}
	if *r.GPUsPerNode > 0 {
		b.WriteString(`  while IFS=", " read -r gpu used; do  # a GPU with less than 2 GB in use counts as free
    if [[ ! $gpu$used =~ ^[0-9]+$ || -z $used ]]; then odd=1; elif ((10#$used < 2000)); then free=$((free + 1)); fi
  done <<<"$(nvidia-smi --query-gpu=index,memory.used --format=csv,noheader,nounits 2>/dev/null)"
  if [[ $odd ]]; then guard warning "nvidia-smi does not say which GPUs are free"
  elif ((free < GPUS_PER_NODE)); then guard stop "$free GPUs are free and $GPUS_PER_NODE are needed"; fi
`)
	}
	if *r.Nodes > 1 {
		b.WriteString(`  [[ $SLURM_NODEID == 0 ]] || (  # says so if the first node stays out of reach
    for _ in {1..60}; do
      sleep 2; kill -0 $$ 2>/dev/null || exit
      (: <"/dev/tcp/$MASTER_ADDR/$MASTER_PORT") 2>/dev/null && exit
    done
    guard warning "no answer from $MASTER_ADDR port $MASTER_PORT for two minutes") &
`)
	}
	if b.Len() == 0 {
		return ""
	}
	return guardFunction + "look() {\n  local p gpu used free=0 odd=\n" + b.String() + "}\nlook\n"
}

// guardFunction prints what a guard found, and ends the shell if the fault is proven.
// It waits a second before it ends the shell: srun ends the step together with the
// first task that ends, and may otherwise drop the last output of that task.
const guardFunction = `guard() { echo "guard: $1: ${SLURMD_NODENAME:-$HOSTNAME}: $2" >&2; [[ $1 != stop ]] || { sleep 1; exit 3; }; }
`
