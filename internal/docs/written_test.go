package docs

import (
	"fmt"
	"slices"
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/ops/operations"
	"github.com/megatron-ops/megatron-ops/knowledge/rules"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/outcome"
	"github.com/megatron-ops/megatron-ops/slurm/job"
	"github.com/megatron-ops/megatron-ops/slurm/lint"
)

//go:generate go test . -update

// A Page is one generated file.
type Page struct {
	Name string
	text func() string
}

// Text is the contents that the page must have.
func (p Page) Text() string {
	return "<!-- Written from the code by `make generate`: change the code instead. -->\n\n" + p.text()
}

// Pages are the generated pages of docs/.
func Pages() []Page {
	return []Page{
		{"operations.md", operationsPage},
		{"specification.md", specification},
		{"rules.md", ruleTable},
		{"lint.md", lintTable},
		{"failures.md", failures},
	}
}

// cell escapes text for a cell of a Markdown table.
func cell(s string) string {
	return strings.NewReplacer("|", `\|`, "\n", " ", "<", "&lt;").Replace(s)
}

func operationsPage() string {
	var b strings.Builder
	b.WriteString("# Operations\n\nOne table serves the shell (`megatron-ops NAME`), Slack (`/megatron NAME`) and agents (the MCP tool `NAME`): the same words, fields and answers. ")
	b.WriteString("In the shell every operation takes `--output text|json`, `--lang en|zh` and `--cluster NAME`.\n\n")
	b.WriteString("| operation | effect | what it does |\n|---|---|---|\n")
	for _, op := range operations.All() {
		fmt.Fprintf(&b, "| [%s](#%s) | %s | %s |\n", op.Name, op.Name, op.Effect, cell(op.Summary.EN))
	}
	for _, op := range operations.All() {
		fmt.Fprintf(&b, "\n## %s\n\n%s\n\n%s\n\n    megatron-ops %s\n", op.Name, op.Help.EN, op.Help.ZH, op.Example)
		var rows []string
		spec := takesSpec(op)
		for _, p := range op.Params() {
			if spec && specFlags[p.Name] {
				continue
			}
			name := "`--" + p.Name + "`"
			if p.Arg {
				name = "`" + p.Name + "`"
			}
			rows = append(rows, fmt.Sprintf("| %s | %s | %s |", name, p.Type, cell(p.Help.EN)))
		}
		if op.Batch != nil {
			rows = append(rows, "| `--batch` | text | JSON Lines in a file, `-` for standard input: one answer a line, in order |")
		}
		if len(rows) > 0 {
			b.WriteString("\n| word | type | meaning |\n|---|---|---|\n" + strings.Join(rows, "\n") + "\n")
		}
		if spec {
			b.WriteString("\nIt also takes every field of the [job specification](specification.md) as a flag.\n")
		}
	}
	return b.String()
}

var specFlags = func() map[string]bool {
	m := map[string]bool{}
	for _, f := range job.Fields() {
		m[strings.NewReplacer(".", "-", "_", "-").Replace(f.Name)] = true
	}
	return m
}()

// takesSpec reports whether op has a flag for every field of the specification.
func takesSpec(op ops.Op) bool {
	return slices.ContainsFunc(op.Params(), func(p ops.Param) bool { return p.Name == "worktree" })
}

func specification() string {
	var b strings.Builder
	b.WriteString("# The job specification\n\nA YAML or JSON file, flags (`_` becomes `-`, and `container.image` is `--container-image`), Slack words and MCP arguments share these names. An unknown key is an error.\n\n")
	b.WriteString("| field | type | meaning | 说明 | example | default |\n|---|---|---|---|---|---|\n")
	for _, f := range job.Fields() {
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s | %s |\n", f.Name, f.Type, cell(f.Doc.EN), cell(f.Doc.ZH), code(f.Example), code(f.Default))
	}
	b.WriteString("\n## Presets\n\nThe names that `preset` takes at every site. One without variables changes the launch. A site adds its own in the [configuration](configuration.md).\n\n")
	b.WriteString("| preset | what it is for | 用途 | variables |\n|---|---|---|---|\n")
	for _, p := range job.Presets() {
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", p.Name, cell(p.Doc.EN), cell(p.Doc.ZH), code(strings.Join(p.Sets, " ")))
	}
	return b.String()
}

func code(s string) string {
	if s == "" {
		return ""
	}
	return "`" + cell(s) + "`"
}

func ruleTable() string {
	var b strings.Builder
	b.WriteString("# Rules\n\nEvery launch rule that `plan` judges. A rule whose source is a file of Megatron-LM (at commit d98e8a64) is one that Megatron itself checks: breaking it makes `ok` false. `megatron-ops explain ID` tells one in full, in English or Chinese.\n")
	topic := ""
	for _, r := range rules.Table() {
		if r.Topic != topic {
			topic = r.Topic
			fmt.Fprintf(&b, "\n## %s\n\n| rule | when | must hold | why | severity | source |\n|---|---|---|---|---|---|\n", topic)
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s | %s |\n", r.ID, cell(r.Condition.In(lang.EN)), cell(r.Requirement.In(lang.EN)), cell(r.Reason.In(lang.EN)), r.Severity, cell(r.Source))
	}
	return b.String()
}

func lintTable() string {
	var b strings.Builder
	b.WriteString("# Lint rules\n\n`megatron-ops lint FILE` reads somebody's sbatch or launch script as bash would. An error means that the job is refused, fails, hangs or does another thing than written; a warning that it can run but will likely hurt. A rule stays silent where the script does not show the facts. Megatron-LM's flags judge Megatron-LM's own scripts: of a program of NeMo, Megatron-Bridge or a fork, or one with Hydra's settings, only the directives and the launch are judged.\n\n")
	b.WriteString("| rule | severity | why | fix | 原因 |\n|---|---|---|---|---|\n")
	for _, r := range lint.Rules() {
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s |\n", r.ID, r.Severity, cell(r.Why.EN), cell(r.Fix.EN), cell(r.Why.ZH))
	}
	return b.String()
}

func failures() string {
	var b strings.Builder
	b.WriteString("# Failure classes\n\nWhat `megatron-ops diagnose` calls the first cause of a job's end. Retry says whether the same job, unchanged, is worth starting again.\n\n")
	b.WriteString("| class | name | 名称 | who acts | retry | first remedies | source |\n|---|---|---|---|---|---|---|\n")
	for _, c := range outcome.Classes() {
		var advice []string
		for _, a := range c.Advice {
			advice = append(advice, a.EN)
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s | %s | %s |\n", c.ID, cell(c.Name.EN), cell(c.Name.ZH), cell(c.Who.EN), c.Retry, cell(strings.Join(advice, " ")), cell(c.Source))
	}
	b.WriteString("\n## How the first cause is found\n\nThe answer names the step that decided (`why`), its evidence, and the errors that are no cause because the run went on after them (`passed_over`).\n")
	for _, step := range diagnose.Method() {
		fmt.Fprintf(&b, "\n- **%s**: %s\n  %s\n", step.ID, step.How.EN, step.How.ZH)
	}
	b.WriteString(launchersWord)
	return b.String()
}

// launchersWord says how far the launcher's own summary can be trusted: 13 summaries of
// six runs of PyTorch 1.13 on a real Slurm cluster, each with one faulty rank or node,
// were compared with the true cause.
const launchersWord = `
## What torchelastic calls the root cause

"Root Cause (first observed failure)" is the first failure that one node's agent saw among its own ranks. Every agent writes
one, so every node without the guilty rank names a victim. In six failed runs of PyTorch 1.13 on a real Slurm, 11 of 13 such
summaries named a victim. The diagnosis uses them for exit codes, times and ranks only, never as the cause.

“Root Cause (first observed failure)” 只是某个节点的 agent 在自己的 rank 中最先看到的失败。每个 agent 都会写一份，因此没有肇事 rank 的节点都会点名受害者。
在真实 Slurm 上六次失败的 PyTorch 1.13 训练中，13 份汇总里有 11 份点名的是受害者。诊断只取其中的退出码、时间与 rank，从不当作原因。
`
