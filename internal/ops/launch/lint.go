package launch

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/view"
	"github.com/megatron-ops/megatron-ops/knowledge/rules"
	"github.com/megatron-ops/megatron-ops/slurm/lint"
)

// LintIn is an existing batch or launch script.
type LintIn struct {
	File   string `json:"-" arg:"" optional:"" name:"script" help:"the script's file" zh:"脚本文件"`
	Script string `json:"script,omitempty" kong:"-" help:"the script's text"`
	Fix    bool   `json:"fix,omitempty" help:"fix what can be fixed automatically, in the file itself; the original is kept as FILE.orig" zh:"修复可自动修复的问题：直接改写文件，原文件保留为 FILE.orig"`
}

// LintOut holds the findings in the script.
type LintOut struct {
	Name     string         `json:"name"`
	Findings []lint.Finding `json:"findings"`
	// NoLaunch reports that the script starts nothing that could be checked as a launch.
	NoLaunch bool `json:"no_launch,omitempty"`
	// Applied lists the fixes that were applied, and Mended is the script after them.
	// Findings then holds what is left.
	Applied []lint.Finding `json:"applied,omitempty"`
	Mended  string         `json:"mended,omitempty"`
	// original is the file that keeps the script as it was before the fixes.
	original string
}

// Found reports whether the script has an error.
func (o LintOut) Found() bool {
	return slices.ContainsFunc(o.Findings, func(f lint.Finding) bool { return f.Severity == rules.Error })
}

// Lint returns the operation lint.
func Lint() ops.Op {
	return ops.Define(ops.Op{
		Name: "lint", Effect: ops.Read, Toolset: ops.PlanSet, Closed: true,
		Summary: lang.Text{EN: "the faults of an existing sbatch or launch script, with line and fix", ZH: "检查现有的 sbatch 或启动脚本：问题所在行与修复办法"},
		Help: lang.Text{
			EN: "Use for a script that somebody already has. It reads the script as bash would and stays silent where the script does not show the facts. For a job specification use plan.",
			ZH: "用于检查已有脚本。它按 bash 的方式读取脚本，脚本中看不出的事实不会乱报。检查作业规格请用 plan。",
		},
		Example: "lint run.sbatch",
		Batch:   ops.ByLine(lint.Batch),
	}, lintOp)
}

func lintOp(_ context.Context, c *ops.Call, in LintIn) (LintOut, error) {
	name, text, err := readScript(c, "lint", in.File, in.Script)
	if err != nil {
		return LintOut{}, err
	}
	if lint.IsSpec(name, text) {
		return LintOut{}, ops.InputError("script",
			lang.Text{EN: "%s is a job specification, and lint reads batch scripts", ZH: "%s 是作业规格，而 lint 检查的是批处理脚本"}.With(name),
			lang.Text{EN: "plan judges a specification: `megatron-ops plan -f job.yaml`", ZH: "检查规格请用 plan：`megatron-ops plan -f job.yaml`"})
	}
	if in.Fix {
		return applyFixes(c, in, name, text)
	}
	found, launches := lint.Examine(name, text, c.Lang)
	return LintOut{Name: name, Findings: append([]lint.Finding{}, found...), NoLaunch: !launches}, nil
}

// readScript returns the script that command was given, as a file or as text, and its name.
func readScript(c *ops.Call, command, file, given string) (name string, text []byte, err error) {
	name, text = "script", []byte(given)
	if file != "" {
		if text, err = c.ReadFile("script", file); err != nil {
			return name, nil, err
		}
		name = file
	}
	switch {
	case len(text) == 0 && file != "":
		return name, nil, ops.InputError("script",
			lang.Text{EN: "%s is empty", ZH: "%s 是空文件"}.With(name),
			lang.Text{EN: "name a script that starts something", ZH: "请给出包含启动命令的脚本"})
	case len(text) == 0:
		return name, nil, ops.InputError("script",
			lang.Text{EN: "there is no script to read", ZH: "没有要读取的脚本"},
			lang.Text{EN: "for example: `megatron-ops %s run.sbatch`", ZH: "例如：`megatron-ops %s run.sbatch`"}.With(command))
	case file == "" && len(bytes.Fields(text)) == 1 && bytes.ContainsAny(text, "/."):
		return name, nil, ops.InputError("script",
			lang.Text{EN: "%q is a file's name and no script", ZH: "%q 是文件名，而不是脚本"}.With(string(bytes.TrimSpace(text))),
			lang.Text{EN: "give the script's text, with its line ends", ZH: "请给出脚本全文，并保留换行"})
	case bytes.IndexByte(text, 0) >= 0:
		return name, nil, ops.InputError("script",
			lang.Text{EN: "%s is no text: %s", ZH: "%s 不是文本：%s"}.With(name, lang.Said(lint.ErrNoText)),
			lang.Text{EN: "name a script, saved as UTF-8", ZH: "请给出以 UTF-8 保存的脚本"})
	}
	return name, text, nil
}

// applyFixes applies the fixes that need no decision.
func applyFixes(c *ops.Call, in LintIn, name string, text []byte) (LintOut, error) {
	mended, applied, left := lint.Fix(text, c.Lang)
	_, launches := lint.Examine(name, mended, c.Lang)
	out := LintOut{Name: name, Findings: append([]lint.Finding{}, left...), Applied: applied, Mended: string(mended), NoLaunch: !launches}
	if in.File == "" || len(applied) == 0 {
		return out, nil
	}
	path := in.File
	if !filepath.IsAbs(path) {
		path = filepath.Join(c.Dir, path)
	}
	st, err := os.Stat(path)
	if err != nil {
		return out, err
	}
	if out.original, err = keepOriginal(path, text, st.Mode().Perm()); err != nil {
		return out, &ops.Error{Code: ops.Failed, Field: "script", Message: lang.Said(err), Fix: lang.Text{EN: "a folder that you may write", ZH: "请给出您有写权限的目录"}}
	}
	if err := os.WriteFile(path, mended, st.Mode().Perm()); err != nil {
		return out, &ops.Error{Code: ops.Failed, Field: "script", Message: lang.Said(err)}
	}
	return out, nil
}

// keepOriginal writes text beside path, to a file that did not exist, and returns its
// name. An earlier original stays as it is.
func keepOriginal(path string, text []byte, mode fs.FileMode) (string, error) {
	name := path + ".orig"
	for n := 2; ; n++ {
		f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
		if errors.Is(err, fs.ErrExist) && n < 1000 {
			name = fmt.Sprintf("%s.orig%d", path, n)
			continue
		}
		if err != nil {
			return "", err
		}
		_, err = f.Write(text)
		return name, errors.Join(err, f.Close())
	}
}

// View shows the findings in the order of the script.
func (o LintOut) View(l lang.Lang) view.Doc {
	switch clean := len(o.Findings) == 0 && len(o.Applied) == 0; {
	case clean && o.NoLaunch:
		return view.Doc{Title: lang.Text{
			EN: "%s: nothing to fix, but there is no launch in it to check: it starts nothing with srun, sbatch, torchrun or python",
			ZH: "%s：没有需要修改的地方，但其中没有可检查的启动命令：它没有用 srun、sbatch、torchrun 或 python 启动任何程序",
		}.With(o.Name).In(l)}
	case clean:
		return view.Doc{Tone: view.Good, Title: fmt.Sprintf(lang.Text{EN: "%s: nothing to fix", ZH: "%s：没有需要修改的地方"}.In(l), o.Name)}
	}
	d := view.Doc{Tone: view.Warn, Title: lang.Text{EN: "%s: %s", ZH: "%s：%s"}.With(o.Name, ops.Counted(len(o.Findings), "finding")).In(l)}
	if o.Found() {
		d.Tone = view.Bad
	}
	if len(o.Applied) > 0 {
		d.Title = fmt.Sprintf(lang.Text{EN: "%s: %d fixed, %d left", ZH: "%s：已修复 %d 处，剩余 %d 处"}.In(l), o.Name, len(o.Applied), len(o.Findings))
		s := view.Section{Heading: lang.Text{EN: "fixed", ZH: "已修复"}.In(l)}
		for _, f := range o.Applied {
			s.Items = append(s.Items, lang.Text{EN: "%d: %s\n[%s]", ZH: "%d：%s\n[%s]"}.With(f.Line, f.Fix, f.Rule).In(l))
		}
		d.Sections = append(d.Sections, s)
	}
	if o.original != "" {
		d.Sections = append(d.Sections, view.Section{Text: lang.Text{EN: "the original: %s", ZH: "原文件：%s"}.With(o.original).In(l)})
	}
	s := view.Section{}
	if len(o.Applied) > 0 && len(o.Findings) > 0 {
		s.Heading = lang.Text{EN: "left", ZH: "剩余"}.In(l)
	}
	for _, f := range o.Findings {
		item := lang.Text{EN: "%d: %s: %s", ZH: "%d：%s：%s"}.With(f.Line, f.Severity.Says(), f.Message).In(l)
		if f.Fix != "" {
			item += "\n" + lang.Text{EN: "fix: ", ZH: "修复："}.In(l) + f.Fix
		}
		s.Items = append(s.Items, item+"\n["+f.Rule+"]")
	}
	d.Sections = append(d.Sections, s)
	return d
}
