package diagnose

import (
	"path"
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/lazy"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/outcome"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/report"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/scan"
)

// notActivated matches messages of the script's shell and of conda about a Python environment that
// could not be activated.
var notActivated = lazy.New(`\b(?:conda|mamba|micromamba): command not found|/activate: No such file|^(?:CommandNotFoundError|Environment(?:Name|Location|File)NotFound)\b` +
	`|^Could not find conda environment: |conda init`)

// withoutEnvironment adds to the verdict of a missing module the line that says that the script could
// not activate its environment and went on without it.
func (j *job) withoutEnvironment(v verdict, live []*scan.Event) verdict {
	if v.class != outcome.ImportError || !report.MissingModule.MatchString(v.event.Text) {
		return v
	}
	for _, e := range live {
		if notActivated.MatchString(e.Text) && (e.File != v.event.File || e.Off < v.event.Off) {
			v.others = append([]*scan.Event{e}, v.others...)
			return v
		}
	}
	return v
}

var importedFrom = lazy.New(`cannot import name .* from (?:partially initialized module )?['"]?([\w.]+)['"]?.*\((/[^)]*)\)`)

// importKind returns the kind of an import error, judging by the paths in the traceback and by the
// worktree if that is known.
func (j *job) importKind(r *report.Report, e *scan.Event) report.ImportKind {
	module, from := "", ""
	if m := importedFrom.FindStringSubmatch(r.RootLine); m != nil {
		module, from = m[1], m[2]
	} else if m := report.MissingModule.FindStringSubmatch(r.RootLine); m != nil {
		module = m[1]
	}
	if module == "" {
		return ""
	}
	script, inner := "", ""
	if e != nil && e.Stack != nil {
		for _, f := range e.Stack.Frames {
			if strings.HasPrefix(f.File, "/") && !strings.Contains(f.File, "-packages/") && !strings.Contains(f.File, "/lib/python") {
				if script == "" {
					script = path.Dir(f.File)
				}
				inner = f.File
			}
		}
	}
	own := module == "megatron" || strings.HasPrefix(module, "megatron.")
	within := func(file, dir string) bool { return strings.HasPrefix(file, strings.TrimSuffix(dir, "/")+"/") }
	switch {
	case script != "" && j.given.Worktree != "" && !within(script+"/", j.given.Worktree):
		r.ImportRoot = script
		return report.WrongWorktree
	case from != "" && script != "" && own && !within(from, script) && !strings.Contains(from, "-packages/"):
		r.ImportRoot = from
		return report.StalePath
	case own && script != "" && inner != "" && !within(inner, script):
		r.ImportRoot = inner
		return report.StalePath
	case own && script != "":
		r.ImportRoot = script
		return report.OldCheckout
	case own:
		return ""
	}
	return report.NoSync
}
