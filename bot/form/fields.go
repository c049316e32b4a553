package form

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/megatron-ops/megatron-ops/bot/answer"
	"github.com/megatron-ops/megatron-ops/bot/typed"
	"github.com/megatron-ops/megatron-ops/internal/lang"
)

// A Field is one field of the submit form. Its name is that of the job specification's field.
type Field struct {
	Name    string
	Label   lang.Text
	Hint    lang.Text
	Needed  bool
	Initial string
	kind    kind
}

// A kind is what a field takes as input.
type kind int

const (
	oneLine kind = iota
	someLines
	number
	choice  // one of the values that the cluster has, where those are known
	choices // several values of a list
	rare    // a choice that is shown only where there are values to choose from
)

// Fields are the fields of the submit form. The specification has more fields. A pasted YAML
// may set all of them, and a form that started from a specification keeps those that it does
// not show.
var Fields = []Field{
	{Name: "name", Label: lang.Text{EN: "Name", ZH: "名称"}, Needed: true},
	{
		Name: "worktree", Label: lang.Text{EN: "Worktree", ZH: "工作树"}, Needed: true,
		Hint: lang.Text{EN: "the absolute path of a Megatron-LM checkout that every node sees", ZH: "所有节点都能访问的 Megatron-LM 代码目录的绝对路径"},
	},
	{Name: "partition", Label: lang.Text{EN: "Partition", ZH: "分区"}, kind: choice},
	{Name: "account", Label: lang.Text{EN: "Account", ZH: "账户"}, kind: choice},
	{Name: "qos", Label: lang.Text{EN: "QOS", ZH: "QOS"}, kind: choice},
	{Name: "reservation", Label: lang.Text{EN: "Reservation", ZH: "预留"}, kind: rare},
	{Name: "nodes", Label: lang.Text{EN: "Nodes", ZH: "节点数"}, kind: number, Needed: true, Initial: "1"},
	{Name: "gpus_per_node", Label: lang.Text{EN: "GPUs per node", ZH: "每节点 GPU 数"}, kind: number, Initial: "8"},
	{Name: "gpu", Label: lang.Text{EN: "GPU", ZH: "GPU 型号"}, kind: choice},
	{Name: "time", Label: lang.Text{EN: "Time limit", ZH: "时间上限"}, Hint: lang.Text{EN: "HH:MM:SS or D-HH:MM:SS", ZH: "HH:MM:SS 或 D-HH:MM:SS"}},
	{Name: "script", Label: lang.Text{EN: "Program", ZH: "程序"}, Initial: "pretrain_gpt.py", Hint: lang.Text{EN: "relative to the worktree", ZH: "相对于工作树的路径"}},
	{
		Name: "args", Label: lang.Text{EN: "Megatron arguments", ZH: "Megatron 参数"}, kind: someLines,
		Hint: lang.Text{EN: "as on a command line: --num-layers 24 --hidden-size 1024 …", ZH: "与命令行写法相同：--num-layers 24 --hidden-size 1024 …"},
	},
	{Name: "preset", Label: lang.Text{EN: "Presets", ZH: "预设"}, kind: choices},
	{Name: "env", Label: lang.Text{EN: "Environment", ZH: "环境变量"}, kind: someLines, Hint: lang.Text{EN: "NAME=value, one a line", ZH: "每行一个 NAME=value"}},
}

// Rare reports whether most jobs leave the field empty.
func (f Field) Rare() bool { return f.kind == rare || f.kind == choices }

// TooLong reports whether a form cannot show a value of the field: half of it would be another
// value. Such a field is not in the form, and its job keeps what its specification has.
func (f Field) TooLong(value string) bool {
	return utf8.RuneCountInString(answer.Visible(value)) > answer.MaxText
}

var textFormEnv = lang.Text{EN: "line %d is not NAME=value", ZH: "第 %d 行不是 NAME=value 的形式"}

// SpecOf returns the job specification for a form's values. errs are messages by field.
func SpecOf(values map[string]string, l lang.Lang) (s map[string]any, errs map[string]string) {
	errs = map[string]string{}
	s = map[string]any{}
	for _, f := range Fields {
		v := strings.TrimSpace(answer.Visible(values[f.Name]))
		if v == "" {
			continue
		}
		if f.kind != someLines {
			v = typed.NarrowValue(v)
		}
		switch {
		case f.kind == number:
			s[f.Name] = v // the specification's reader says what is wrong with it
			if n, err := strconv.Atoi(v); err == nil {
				s[f.Name] = n
			}
		case f.kind == choices:
			s[f.Name] = strings.Split(v, ",")
		case f.Name == "args":
			s[f.Name] = typed.Words(v)
		case f.Name == "env":
			env := map[string]string{}
			for i, line := range strings.Split(v, "\n") {
				if line = strings.TrimSpace(line); line == "" {
					continue
				}
				name, value, ok := strings.Cut(strings.TrimPrefix(line, "export "), "=")
				if !ok || name == "" {
					errs[f.Name] = fmt.Sprintf(textFormEnv.In(l), i+1)
					continue
				}
				env[name] = unquoted(value)
			}
			s[f.Name] = env
		default:
			s[f.Name] = v
		}
	}
	return s, errs
}

// FieldsOfSpec returns the form's values for a specification.
func FieldsOfSpec(spec map[string]any) map[string]string {
	values := map[string]string{}
	for _, f := range Fields {
		switch v := spec[f.Name].(type) {
		case string:
			values[f.Name] = v
		case uint64, int64, int:
			values[f.Name] = fmt.Sprint(v)
		case []any:
			var words []string
			for _, w := range v {
				words = append(words, quoted(fmt.Sprint(w)))
			}
			values[f.Name] = strings.Join(words, map[bool]string{true: ",", false: " "}[f.kind == choices])
		case map[string]any:
			var lines []string
			for _, k := range slices.Sorted(maps.Keys(v)) {
				value := fmt.Sprint(v[k])
				if unquoted(value) != value {
					value = quoted(value)
				}
				lines = append(lines, k+"="+value)
			}
			values[f.Name] = strings.Join(lines, "\n")
		}
	}
	return values
}

// unquoted reads a value in quotes, also in those that keyboards make, as a shell does. Any other
// value is what it says.
func unquoted(value string) string {
	if words := typed.Words(value); len(words) == 1 && strings.IndexAny(value, `"'“”‘’`) == 0 {
		return words[0]
	}
	return value
}

// quoted quotes a word so that typed.Words reads it back as one word.
func quoted(w string) string {
	if w != "" && !strings.ContainsAny(w, " \t\n\"'") {
		return w
	}
	if strings.Contains(w, `"`) {
		return "'" + w + "'"
	}
	return `"` + w + `"`
}
