package job

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/shellword"
)

// Options are the inputs of a rendering other than the specification. The zero value
// is the usual rendering.
type Options struct {
	// Version is this program's version, for the script's header; empty means devel.
	Version string
	// Minimal renders only the bare launch: no guards, no traces, and no default
	// options of srun.
	Minimal bool
	// Site is the cluster's profile. It fills in fields that the specification leaves
	// out.
	Site Site
	// into is the id of the allocation in which the script runs as a step; empty for a
	// batch script.
	into string
}

// Connections is a value of CUDA_DEVICE_MAX_CONNECTIONS and the reason for it.
type Connections struct{ Value, Reason string }

// A Script is a rendered job.
type Script struct {
	// Text is what sbatch reads.
	Text string
	// Hash is the SHA-256 of the specification, in hex.
	Hash string
	// WorkDir is the folder to submit the script from: its log paths are relative to
	// that folder.
	WorkDir string
	// LogDir is a folder that must exist before the script is submitted. It is
	// relative to WorkDir or absolute.
	LogDir string
	// LogPaths are the patterns of the output and error files, as absolute paths.
	LogPaths []string
	// Warnings name choices that work but that an expert would avoid.
	Warnings []lang.Text
}

// Render writes the batch script of a specification. The same specification and
// options give the same bytes. If Validate finds faults, Render returns them as
// FieldErrors.
func Render(s Spec, o Options) (Script, error) {
	s = o.Site.Fill(s)
	if errs := s.Validate(); len(errs) > 0 {
		return Script{}, FieldErrors(errs)
	}
	hash, given := Hash(s), s
	r := rendering{nodesGiven: s.Nodes != nil, Options: o}
	s = s.WithDefaults()
	r.Spec = s
	if err := r.prepare(); err != nil {
		return Script{}, err
	}
	out, errLog := s.logPaths()
	script := Script{
		Hash: hash, WorkDir: s.Worktree, LogDir: s.LogDir,
		LogPaths: []string{s.absolute(out), s.absolute(errLog)}, Warnings: r.warnings,
	}
	r.line("#!/bin/bash")
	r.line("# Rendered by megatron-ops %s from specification sha256:%s", cmp.Or(o.Version, "devel"), hash)
	r.line("# shellcheck disable=SC1003,SC1112,SC2016,SC2088,SC2089,SC2090 # single quotes hold literal text, or text for the nodes")
	if o.into == "" {
		for _, d := range s.directives(o.Site) {
			r.line("%s", d)
		}
	}
	r.sections()
	script.Text = r.text.String()
	if !o.Minimal {
		script.Text = embedSpec(script.Text, given)
	}
	return script, nil
}

// Hash returns the SHA-256 of a specification, in hex. It depends neither on the order
// of keys nor on the format that the specification was written in.
func Hash(s Spec) string {
	b, err := json.Marshal(s)
	if err != nil {
		panic(err) // a Spec holds only strings, numbers and lists of them
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// logPaths returns the file name patterns of the job's two logs. The names of an
// array's logs contain the array's id and the element's index.
func (s Spec) logPaths() (out, err string) {
	base := "%x-%j"
	if s.Array != "" {
		base = "%x-%A_%a"
	}
	base = path.Join(s.LogDir, base)
	return base + ".out", base + ".err"
}

// A rendering holds the state while one script is written.
type rendering struct {
	Spec
	Options
	text        strings.Builder
	nodesGiven  bool // the specification itself has the number of nodes
	connections Connections
	presets     []setting
	warnings    []lang.Text
}

func (r *rendering) line(format string, a ...any) {
	fmt.Fprintf(&r.text, format+"\n", a...)
}

// block writes related lines after an empty line.
func (r *rendering) block(text string) {
	if text != "" {
		r.line("\n%s", strings.TrimRight(text, "\n"))
	}
}

func (r *rendering) prepare() error {
	var err error
	if r.presets, err = expandPresets(r.Preset, r.Site); err != nil {
		return err
	}
	r.connections = RecommendedConnections(r.Spec)
	r.warn()
	return nil
}

// traced reports whether the job writes traces for the diagnosis.
func (r *rendering) traced() bool { return *r.Monitor && !r.Minimal }

// guarded reports whether the script checks the nodes.
func (r *rendering) guarded() bool { return *r.Guards && !r.Minimal }

// sections writes everything after the directives.
func (r *rendering) sections() {
	r.block("set -euo pipefail\n" + r.path() + "cd " + quote(r.Worktree))
	if r.into != "" {
		r.block(stepPreamble(r.into, r.Name))
	}
	r.block(r.beforeStart())
	r.block(r.series())
	r.block(r.runID())
	r.block(r.chained())
	r.block(r.secrets())
	if r.Train != "" {
		r.block(r.environment())
		r.block(r.sourced())
		return
	}
	r.block(r.rendezvous())
	r.block(r.traces())
	r.block(r.environment())
	r.block(r.batchGuards())
	r.block(r.gpuWatch())
	r.block(r.imageGuard())
	r.block(r.nodeCheck())
	r.block(r.hostfile())
	r.block(r.arguments())
	r.block(r.points())
	r.block(r.launch())
}

// path returns the command that puts the folders of the specification and of the site
// in front of the PATH.
func (r *rendering) path() string {
	dirs := append(slices.Clone(r.Path), r.Site.Path...)
	if len(dirs) == 0 {
		return ""
	}
	return "export PATH=" + quote(strings.Join(dirs, ":")) + ":$PATH\n"
}

// rendezvous returns the exports by which the nodes find one another. They have the
// same names in every job.
func (r *rendering) rendezvous() string {
	port := "${MASTER_PORT:-29500}"
	if r.MasterPort != nil {
		port = fmt.Sprint(*r.MasterPort)
	}
	world := "$((NNODES * GPUS_PER_NODE))"
	if *r.GPUsPerNode == 0 {
		world = "$NNODES"
	}
	// head may exit before scontrol has written every name, which gives scontrol a
	// SIGPIPE. +o pipefail keeps this from ending the script of a large job.
	return r.unsetFirstComponent() + `MASTER_ADDR=$(set +o pipefail; scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n1)
export MASTER_ADDR
export MASTER_PORT=` + port + `
export NNODES=` + r.nodesOfAll() + `
export GPUS_PER_NODE=` + fmt.Sprint(*r.GPUsPerNode) + `
export WORLD_SIZE=` + world
}

// environment returns the exports of the user, the presets and the rules. If several
// of them set a variable, the user's value wins.
func (r *rendering) environment() string {
	var b strings.Builder
	if c := r.connections; c.Value != "" && !r.sets("CUDA_DEVICE_MAX_CONNECTIONS") && !r.presetSets("CUDA_DEVICE_MAX_CONNECTIONS") {
		fmt.Fprintf(&b, "# Megatron: %s.\nexport CUDA_DEVICE_MAX_CONNECTIONS=%s\n", oneLine(c.Reason), quote(c.Value))
	}
	if r.ownPython() {
		fmt.Fprintf(&b, "export VENV=%s\n", quote(r.venvInside()))
	}
	for _, p := range r.presets {
		if _, own := r.Env[p.name]; !own {
			fmt.Fprintf(&b, "export %s=%s\n", p.name, p.shell())
		}
	}
	for _, name := range sorted(r.Env) {
		fmt.Fprintf(&b, "export %s=%s\n", name, quote(r.Env[name]))
	}
	return b.String()
}

// sets reports whether the specification itself gives the variable a value.
func (r *rendering) sets(name string) bool {
	_, own := r.Env[name]
	return own
}

// oneLine makes text safe in a comment of the script.
func oneLine(s string) string {
	return strings.Map(func(c rune) rune {
		if shellword.Invisible(c) {
			return ' '
		}
		return c
	}, s)
}

// arguments returns the program's arguments as a bash array, with each flag and its
// values on one line.
func (r *rendering) arguments() string {
	args := append(slices.Clone(r.Args), r.exitFlags()...)
	if len(args) == 0 {
		return "ARGS=()"
	}
	return "ARGS=(\n  " + strings.Join(argumentLines(args), "\n  ") + "\n)"
}
