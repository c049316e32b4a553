package diagnose

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sort"
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/lazy"
	"github.com/megatron-ops/megatron-ops/internal/view"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/logfile"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/logline"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/scan"
)

// A Comparison lists the differences between the logs of a failed run and of a good run of the same
// kind.
type Comparison struct {
	Arguments []Change `json:"arguments"` // Megatron's, as both runs printed them
	Start     []Change `json:"start"`     // commit, argv, container and other start markers
	Nodes     []string `json:"new_nodes"` // nodes that only the failed run used
	New       []Line   `json:"new_lines"` // lines that match no line of the good run when numbers, paths and how far a bar has come are ignored
}

// A Change is a value that differs. It is empty where a run does not have it.
type Change struct {
	Name string `json:"name"`
	Good string `json:"good"`
	Bad  string `json:"bad"`
}

// maxNew bounds the new lines of a Comparison.
const maxNew = 40

// ownPaths are arguments that differ between any two runs.
var ownPaths = map[string]bool{
	"save": true, "tensorboard_dir": true, "rank": true, "local_rank": true, "wandb_exp_name": true, "iteration": true,
	"consumed_train_samples": true,
}

// Compare compares the logs of a failed run with those of a good run.
func Compare(ctx context.Context, failed, good logfile.Source) (Comparison, error) {
	var c Comparison
	bad, err := scan.All(ctx, failed)
	if err != nil {
		return c, err
	}
	well, err := scan.All(ctx, good)
	if err != nil {
		return c, err
	}
	a, b := newJob(good, well, Context{}), newJob(failed, bad, Context{})
	c.Arguments = changed(a.args, b.args)
	c.Start = changed(markersOf(well), markersOf(bad))
	for n := range b.nodes {
		if a.nodes[n] == 0 && b.nodes[n] > 1 {
			c.Nodes = append(c.Nodes, n)
		}
	}
	sort.Strings(c.Nodes)
	seen := map[string]bool{}
	for _, f := range good.Logs {
		for _, l := range templateLines(ctx, f) {
			seen[scan.Form(l.Text)] = true
		}
	}
	for _, f := range failed.Logs {
		for _, l := range templateLines(ctx, f) {
			if t := scan.Form(l.Text); !seen[t] && len(c.New) < maxNew {
				seen[t] = true
				l.File, l.Text = f.Name, logline.Show(l.Text)
				c.New = append(c.New, l)
			}
		}
	}
	return c, ctx.Err()
}

func changed(good, bad map[string]string) (all []Change) {
	names := maps.Clone(good)
	maps.Copy(names, bad)
	for n := range names {
		if good[n] != bad[n] && !ownPaths[n] {
			all = append(all, Change{n, logline.Show(good[n]), logline.Show(bad[n])})
		}
	}
	slices.SortFunc(all, func(a, b Change) int { return cmp.Compare(a.Name, b.Name) })
	return all
}

func markersOf(files []*scan.Facts) map[string]string {
	all := map[string]string{}
	for _, f := range files {
		maps.Copy(all, f.Markers)
		for _, n := range f.NodeStarts {
			for name, v := range n.With {
				if name != "env" { // it contains paths with the job's id
					all[name] = v
				}
			}
		}
	}
	return all
}

// templateLines returns the lines of a log that a diagnosis would examine, without iteration lines.
func templateLines(ctx context.Context, f *logfile.File) (lines []Line) {
	var buf []byte
	var d logfile.Digest
	if f.Digested != nil {
		d = *f.Digested
	} else {
		d = scan.Condense(ctx, f, &buf, logfile.MinWindow, 0)
	}
	for _, l := range d.Lines {
		if scan.IsProgress(l.Text) {
			continue
		}
		for _, piece := range scan.Pieces(l.Text) {
			_, text := logline.CutTag(strings.TrimRight(string(piece), " "))
			if text != "" && !scan.StartLine.MatchString(text) && !frameOrRule.MatchString(text) {
				lines = append(lines, Line{LineNo: l.No, Text: text})
			}
		}
	}
	return lines
}

// frameOrRule matches a frame of a native stack, of a collective's stack as PyTorch's watchdog prints it, and
// a rule. Any other failure has them too.
var frameOrRule = lazy.New(`^(?:frame #\d+: |#\d+ \S+ from /)|^[-=*]{20,}$`)

// View shows the comparison.
func (c Comparison) View(l lang.Lang) view.Doc {
	word := func(en, zh string) string { return said(en, zh).In(l) }
	doc := view.Doc{Title: word("Compared with the good run", "与成功的运行比较")}
	table := func(heading string, changes []Change) {
		if len(changes) == 0 {
			return
		}
		t := view.Table{Header: []string{word("name", "名称"), word("good run", "成功的运行"), word("failed run", "失败的运行")}}
		for _, ch := range changes {
			t.Rows = append(t.Rows, []string{ch.Name, ch.Good, ch.Bad})
		}
		doc.Sections = append(doc.Sections, view.Section{Heading: heading, Table: &t})
	}
	table(word("Arguments that differ", "不同的参数"), c.Arguments)
	table(word("Start that differs", "不同的启动条件"), c.Start)
	if len(c.Nodes) > 0 {
		doc.Sections = append(doc.Sections, view.Section{Heading: word("New nodes", "新出现的节点"), Items: c.Nodes})
	}
	if len(c.New) > 0 {
		var b strings.Builder
		for _, n := range c.New {
			b.WriteString(n.File + ": " + n.Text + "\n")
		}
		doc.Sections = append(doc.Sections, view.Section{Heading: word("Lines of a new form", "新出现的日志形式"), Code: b.String(), Lang: "log", Fold: true})
	}
	if len(doc.Sections) == 0 {
		doc.Sections = []view.Section{{Text: word("The two runs say the same.", "两次运行的日志没有差别。")}}
	}
	return doc
}
