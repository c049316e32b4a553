package ops

import (
	"context"
	"fmt"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/view"
	"github.com/megatron-ops/megatron-ops/knowledge/rules"
	"github.com/megatron-ops/megatron-ops/slurm/lint"
)

// LintIn is somebody's existing batch or launch script.
type LintIn struct {
	File   string `json:"-" arg:"" optional:"" name:"script" help:"the script's file" zh:"脚本文件"`
	Script string `json:"script,omitempty" kong:"-" help:"the script's text"`
}

// LintOut is what is wrong with it.
type LintOut struct {
	Name     string         `json:"name"`
	Findings []lint.Finding `json:"findings"`
}

// Found reports that the script has an error.
func (o LintOut) Found() bool {
	for _, f := range o.Findings {
		if f.Severity == rules.Error {
			return true
		}
	}
	return false
}

func lintOp(_ context.Context, c *Call, in LintIn) (LintOut, error) {
	name, text := "script", []byte(in.Script)
	if in.File != "" {
		b, err := c.readFile("script", in.File)
		if err != nil {
			return LintOut{}, err
		}
		name, text = in.File, b
	}
	if len(text) == 0 {
		return LintOut{}, badInput("script", "for example: megatron-ops lint run.sbatch", "there is no script to read")
	}
	return LintOut{Name: name, Findings: append([]lint.Finding{}, lint.CheckIn(name, text, c.Lang)...)}, nil
}

// View shows the findings in the order of the script.
func (o LintOut) View(l lang.Lang) view.Doc {
	if len(o.Findings) == 0 {
		return view.Doc{Tone: view.Good, Title: fmt.Sprintf(lang.Text{EN: "%s: nothing to mend", ZH: "%s：没有需要修改的地方"}.In(l), o.Name)}
	}
	d := view.Doc{Tone: view.Warn, Title: fmt.Sprintf(lang.Text{EN: "%s: %d findings", ZH: "%s：%d 处问题"}.In(l), o.Name, len(o.Findings))}
	if o.Found() {
		d.Tone = view.Bad
	}
	s := view.Section{}
	for _, f := range o.Findings {
		item := fmt.Sprintf("%d: %s: %s", f.Line, f.Severity, f.Message)
		if f.Fix != "" {
			item += "\n" + lang.Text{EN: "fix: ", ZH: "修复："}.In(l) + f.Fix
		}
		s.Items = append(s.Items, item+"\n["+f.Rule+"]")
	}
	d.Sections = []view.Section{s}
	return d
}
