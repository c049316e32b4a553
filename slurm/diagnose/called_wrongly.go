package diagnose

import (
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/logline"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/outcome"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/pattern"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/scan"
)

// calledWrongly is for a job that ended, of which nothing else is known than
// that a program printed at last how it is to be called.
func (j *job) calledWrongly(live []*scan.Event) (verdict, bool) {
	running, known := j.given.running()
	if known && running || j.didWell() || j.leftOtherwise(live) {
		return verdict{}, false
	}
	for i, f := range j.files {
		if m := f.Usage; m != nil && len(f.Progress) == 0 {
			t, text := logline.CutTag(m.Text)
			e := &scan.Event{
				File: i, Off: m.Off, Raw: m.Text, Text: text, Tag: t, Class: outcome.BadArgs, Weight: pattern.Generic,
				Rank: -1, Node: j.fileNode[i], Before: m.At,
			}
			return verdict{class: outcome.BadArgs, event: e, why: "a usage text"}, true
		}
	}
	return verdict{}, false
}

// leftOtherwise reports whether launchers tell with which codes processes left, and
// none is the one of a wrong call. A script says 1 for others, unless they had worked.
func (j *job) leftOtherwise(live []*scan.Event) (told bool) {
	worked := j.launched(live)
	for _, e := range live {
		if e.Exit == badUsage {
			return false
		}
		told = told || e.Agent && e.Exit != 0 && (e.Exit != 1 || e.Pid != "" || worked) && (e.First || !scan.ToldToEnd(e.Exit))
	}
	return told
}

// badUsage is argparse's exit code, and that of most commands.
const badUsage = 2
