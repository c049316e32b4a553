package pages

import (
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/knowledge/cards"
	"github.com/megatron-ops/megatron-ops/knowledge/compute"
	"github.com/megatron-ops/megatron-ops/knowledge/library"
	"github.com/megatron-ops/megatron-ops/knowledge/megatron"
	"github.com/megatron-ops/megatron-ops/knowledge/rules"
)

// Write returns the generated files of the skills under fsys, by path: all reference pages,
// and every other Markdown page with an outdated block.
func Write(fsys fs.FS) (map[string]string, error) {
	out := map[string]string{
		"slurm-user-guide/references/states.md": states(),
	}
	bySkill := map[string][]cards.Card{}
	for _, c := range library.BuiltIn().Cards {
		if strings.HasPrefix(c.ID, library.MessagePrefix) {
			continue // the skills have a table of the rules instead
		}
		bySkill[c.Skill] = append(bySkill[c.Skill], c)
	}
	for skill, list := range bySkill {
		for file, text := range references(skill, list) {
			out[skill+"/references/"+file] = text
		}
	}
	err := fs.WalkDir(fsys, ".", func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || path.Ext(p) != ".md" || out[p] != "" {
			return err
		}
		text, err := fs.ReadFile(fsys, p)
		if err != nil {
			return err
		}
		l := lang.EN
		if strings.HasSuffix(p, ".zh.md") {
			l = lang.ZH
		}
		filled, err := fill(string(text), l)
		if err != nil {
			return fmt.Errorf("%s: %w", p, err)
		}
		if l == lang.ZH {
			filled = lang.FullWidth(filled)
		}
		if filled != string(text) {
			out[p] = filled
		}
		return nil
	})
	return out, err
}

// The markers of a generated block.
const (
	begin = "<!-- begin generated: "
	end   = "<!-- end generated: "
	stop  = " -->"
)

// blocks maps the names in markers to the functions that generate the blocks.
var blocks = map[string]func(lang.Lang) string{
	"cdmc":      connections,
	"constants": constants,
	"flags":     flags,
}

// fill replaces the text between each pair of markers.
func fill(text string, l lang.Lang) (string, error) {
	var b strings.Builder
	for {
		before, rest, ok := strings.Cut(text, begin)
		b.WriteString(before)
		if !ok {
			return b.String(), nil
		}
		name, rest, _ := strings.Cut(rest, stop)
		write, known := blocks[name]
		if !known {
			return "", fmt.Errorf("block %q: no such block", name)
		}
		_, after, ok := strings.Cut(rest, end+name+stop)
		if !ok {
			return "", fmt.Errorf("block %q has no end marker", name)
		}
		b.WriteString(begin + name + stop + "\n" + write(l) + end + name + stop)
		text = after
	}
}

// A table collects rows of Markdown.
type table struct{ strings.Builder }

func newTable(head ...string) *table {
	t := &table{}
	t.row(head...)
	t.row(slices.Repeat([]string{"---"}, len(head))...)
	return t
}

func (t *table) row(cells ...string) {
	for i, c := range cells {
		cells[i] = strings.NewReplacer("|", `\|`, "\n", " ").Replace(c)
	}
	t.WriteString("| " + strings.Join(cells, " | ") + " |\n")
}

func code(s string) string { return "`" + s + "`" }

// connections returns the table of CUDA_DEVICE_MAX_CONNECTIONS.
func connections(l lang.Lang) string {
	t := newTable(lang.Text{EN: "configuration", ZH: "配置"}.In(l), lang.Text{EN: "value", ZH: "取值"}.In(l), lang.Text{EN: "reason", ZH: "原因"}.In(l))
	for _, c := range []struct {
		when         lang.Text
		arch, tp     int
		fsdp, expert bool
	}{
		{lang.Text{EN: "`--overlap-moe-expert-parallel-comm`", ZH: "`--overlap-moe-expert-parallel-comm`"}, 9, 2, false, true},
		{lang.Text{EN: "Torch-FSDP2 or Megatron-FSDP, any GPU", ZH: "Torch-FSDP2 或 Megatron-FSDP,任何 GPU"}, 9, 2, true, false},
		{lang.Text{EN: "Blackwell", ZH: "Blackwell"}, 10, 2, false, false},
		{lang.Text{EN: "TP = 1 and CP = 1", ZH: "TP = 1 且 CP = 1"}, 9, 1, false, false},
		{lang.Text{EN: "Hopper or Ampere with TP > 1 or CP > 1", ZH: "Hopper 或 Ampere,TP > 1 或 CP > 1"}, 9, 2, false, false},
	} {
		value, why := rules.Connections(c.arch, c.tp, 1, false, c.fsdp, c.expert)
		t.row(c.when.In(l), value, why.In(l))
	}
	return t.String()
}

// constants returns the table of launch constants for an unknown configuration.
func constants(l lang.Lang) string {
	t := newTable(lang.Text{EN: "constant", ZH: "常量"}.In(l), lang.Text{EN: "value", ZH: "取值"}.In(l), lang.Text{EN: "reason", ZH: "原因"}.In(l))
	for _, c := range rules.Constants(rules.Config{}) {
		if c.Name == "CUDA_DEVICE_MAX_CONNECTIONS" {
			continue // has its own table
		}
		t.row(c.Name, code(c.Value), c.Reason.In(l))
	}
	return t.String()
}

// layoutFlags are the flags that set a layout.
var layoutFlags = []string{
	"--tensor-model-parallel-size", "--pipeline-model-parallel-size", "--context-parallel-size",
	"--expert-model-parallel-size", "--expert-tensor-parallel-size", "--num-virtual-stages-per-pipeline-rank",
	"--num-layers-per-virtual-pipeline-stage", "--sequence-parallel", "--use-distributed-optimizer",
	"--micro-batch-size", "--global-batch-size", "--use-megatron-fsdp", "--ckpt-format", "--distributed-timeout-minutes",
}

func flags(l lang.Lang) string {
	t := newTable(lang.Text{EN: "flag", ZH: "参数"}.In(l), lang.Text{EN: "type", ZH: "类型"}.In(l), lang.Text{EN: "default", ZH: "默认值"}.In(l))
	for _, name := range layoutFlags {
		f, _ := megatron.LookupFlag(name)
		def := f.Default
		if def == "" {
			def = lang.Text{EN: "none", ZH: "无"}.In(l)
		}
		t.row(code(f.Name), string(f.Type), def)
	}
	return t.String()
}

// states returns the page with the tables of job states, node states and suffixes, in both
// languages.
func states() string {
	var b strings.Builder
	b.WriteString(written)
	b.WriteString("# States of jobs and nodes\n\nFrom squeue(1) and sinfo(1), in our words.\n")
	titles := map[string]string{"job": "Job states / 作业状态", "node": "Node states / 节点状态", "suffix": "Signs behind a node state / 节点状态后的符号"}
	for _, kind := range []string{"job", "node", "suffix"} {
		b.WriteString("\n## " + titles[kind] + "\n\n")
		t := newTable("code", "state", "meaning", "含义")
		for _, c := range compute.Codes {
			if c.Kind == kind {
				t.row(code(c.Short), c.Long, c.EN, c.ZH)
			}
		}
		b.WriteString(t.String())
	}
	return b.String()
}

const written = "<!-- Written from knowledge/ by `go test ./knowledge/pages -update`: change the code or the cards instead. -->\n\n"
