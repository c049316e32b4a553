package job

import (
	"fmt"
	"maps"
	"strconv"
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/lazy"
	"github.com/megatron-ops/megatron-ops/internal/tree"
	"github.com/megatron-ops/megatron-ops/knowledge/megatron"
	"github.com/megatron-ops/megatron-ops/slurm/script"
)

// maxProducts is the most combinations that one recipe may expand to.
const maxProducts = 2000

// ImportRecipe turns one of Megatron's CI recipes into specifications, one for each
// combination of its products, with notes on what the specifications cannot express.
// tests/test_utils/python_scripts/recipe_parser.py defines the format of recipes.
func ImportRecipe(text []byte) ([]Spec, []Note, error) {
	root, err := parseYAML(text)
	if err != nil {
		return nil, nil, err
	}
	common := root.Key("spec")
	if common.Kind != tree.Map {
		return nil, nil, notSpec(phrase("is not a recipe: it has no spec", "不是 recipe：没有 spec"), phrase("give a file of tests/test_utils/recipes", "请给出 tests/test_utils/recipes 中的文件"))
	}
	rows, err := products(root)
	if err != nil {
		return nil, nil, err
	}
	var specs []Spec
	var notes []Note
	seen := map[string]bool{}
	for _, row := range rows {
		values := map[string]string{}
		for i, key := range common.Keys {
			values[key] = common.List[i].Text
		}
		maps.Copy(values, row)
		s, ns := fromRecipe(values)
		specs = append(specs, s)
		for _, n := range ns {
			if key := n.What + n.Why.EN; !seen[key] {
				seen[key] = true
				notes = append(notes, n)
			}
		}
	}
	return specs, notes, nil
}

// products expands the nested products of a recipe. Each outer product gives every
// combination of the lists of its inner products, for its first test case. The list of
// cadence is a label and does not multiply the combinations.
func products(root tree.Node) ([]map[string]string, error) {
	var rows []map[string]string
	for _, p := range root.Key("products").List {
		tests := p.Key("test_case").Texts()
		if len(tests) == 0 || tests[0] == "" {
			continue
		}
		for _, in := range p.Key("products").List {
			combos := []map[string]string{{"test_case": tests[0]}}
			for i, key := range in.Keys {
				if key == "cadence" {
					continue
				}
				var next []map[string]string
				for _, c := range combos {
					for _, v := range in.List[i].Texts() {
						if len(next)+len(rows) > maxProducts {
							return nil, notSpec(phrase("names more than %d combinations", "展开超过 %d 种组合", maxProducts), phrase("split the recipe", "请拆分 recipe"))
						}
						with := map[string]string{key: v}
						maps.Copy(with, c)
						next = append(next, with)
					}
				}
				combos = next
			}
			rows = append(rows, combos...)
		}
	}
	if len(rows) == 0 {
		return nil, notSpec(phrase("is not a recipe: its products name no test case", "不是 recipe：products 没有指明 test_case"), phrase("give a file of tests/test_utils/recipes", "请给出 tests/test_utils/recipes 中的文件"))
	}
	return rows, nil
}

var (
	recipeField = lazy.New(`\{[a-z_]+\}`)
	badInName   = lazy.New(`[^A-Za-z0-9._+-]+`)
)

// fill expands a recipe's template like Python's str.format: {name} is replaced by a
// value, and {{ and }} become braces.
func fill(template string, values map[string]string) string {
	const open, shut = "\x01", "\x02"
	t := strings.NewReplacer("{{", open, "}}", shut).Replace(template)
	t = recipeField.ReplaceAllStringFunc(t, func(f string) string {
		if v, ok := values[f[1:len(f)-1]]; ok {
			return v
		}
		return f
	})
	return strings.NewReplacer(open, "{", shut, "}").Replace(t)
}

// fromRecipe imports one combination of a recipe. It imports the script like any
// other script; then the values that the recipe itself gives override the script's.
func fromRecipe(values map[string]string) (Spec, []Note) {
	m := importer{job: script.Read("recipe", []byte("#!/bin/bash\n"+fill(values["script"], values)+"\n")).Jobs[0]}
	m.start()
	m.noteOtherCommands()
	m.dropInvalid()
	for i := range m.notes {
		m.notes[i].Line = 0 // a line of the expanded script has no meaning in the recipe
	}
	s := m.spec
	name := strings.Trim(badInName.ReplaceAllString(fill(values["name"], values), "-"), "-")
	s.Name = name[:min(len(name), 64)]
	if n := wholeNumber(values["nodes"]); n != nil {
		s.Nodes = n
	}
	if n := wholeNumber(values["gpus"]); n != nil {
		s.GPUsPerNode = n
	}
	if secs, _ := strconv.Atoi(values["time_limit"]); secs > 0 && secs < 1e8 {
		s.Time = fmt.Sprintf("%02d:%02d:%02d", secs/3600, secs/60%60, secs%60)
	}
	if gpu, ok := megatron.LookupGPU(strings.TrimPrefix(values["platforms"], "dgx_")); ok {
		s.GPU = gpu.Name
	}
	for _, a := range s.Args {
		if f := recipeField.FindString(a); f != "" {
			m.notes = append(m.notes, Note{What: a, Why: lang.Text{EN: "CI's runner fills in " + f + ": write it out", ZH: f + " 由 CI 运行器填写：请直接写出"}})
		}
	}
	tell := func(what, en, zh string) {
		m.notes = append(m.notes, Note{What: what, Why: lang.Text{EN: en, ZH: zh}})
	}
	if build := fill(values["build"], values); build != "" {
		tell("build: "+build, "the image that CI builds: give container.image", "CI 构建的镜像：请填写 container.image")
	}
	if values["script_setup"] != "" {
		tell("script_setup", "prepares the container in CI and is not imported", "在 CI 中准备容器的步骤，没有导入")
	}
	if n := values["n_repeat"]; n != "" && n != "1" {
		tell("n_repeat: "+n, "CI runs it so often: submit it again, or use an array", "CI 会重复运行这么多次：请重复提交，或使用数组")
	}
	return s, m.notes
}
