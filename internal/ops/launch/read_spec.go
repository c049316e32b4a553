package launch

import (
	"bytes"
	"cmp"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/knowledge/megatron"
	"github.com/megatron-ops/megatron-ops/knowledge/recipes"
	"github.com/megatron-ops/megatron-ops/slurm"
	"github.com/megatron-ops/megatron-ops/slurm/job"
)

// SpecIn is a job specification as the caller gives it: a file, its text, or single
// fields. Single fields take precedence over a file or text.
type SpecIn struct {
	File string   `json:"-" short:"f" name:"file" placeholder:"FILE" help:"job specification, YAML or JSON" zh:"作业规格文件（YAML 或 JSON）"`
	YAML string   `json:"yaml,omitempty" name:"yaml" placeholder:"TEXT" help:"the job specification as YAML text" zh:"YAML 文本形式的作业规格"`
	Spec job.Spec `json:"spec,omitzero" embed:"" help:"the job specification"`
	// From starts with the specification of an earlier job; Without removes parts of
	// it.
	From    slurm.JobID `json:"from,omitempty" name:"from" placeholder:"JOBID" help:"begin with the specification of this earlier job of mine; what is given besides changes it" zh:"以我之前这个作业的规格为起点；另外给出的内容用于修改它"`
	Without []string    `json:"without,omitempty" name:"without" placeholder:"NAME" help:"with from: leave this flag or environment variable out" zh:"与 from 合用：去掉这个参数或环境变量"`
	Line    string      `json:"command_line,omitempty" name:"command-line" placeholder:"TEXT" help:"the program's arguments as one shell-quoted line; added to args" zh:"以一行 shell 引用文本给出的程序参数，追加到 args"`
	// Recipe starts with a model's published layout; modelOnly takes only the model.
	Recipe    string `json:"recipe,omitempty" name:"recipe" placeholder:"MODEL" help:"model to begin with, such as llama3-70b:fp8" zh:"作为起点的模型，例如 llama3-70b:fp8"`
	GPUs      int    `json:"gpus,omitempty" name:"gpus" placeholder:"N" help:"GPUs in all" zh:"GPU 总数"`
	modelOnly bool
	// Place is the file, given as an argument without a flag.
	Place string `json:"-" arg:"" optional:"" name:"job.yaml" help:"the job specification's file; after -- come the program's own arguments" zh:"作业规格文件；-- 之后是程序自身的参数"`
	words []string
}

// Specified is an operation's input that has a job specification.
type Specified interface{ Specification() *SpecIn }

// Specification returns in, also for an input in which it is embedded.
func (in *SpecIn) Specification() *SpecIn { return in }

// AfterDashes receives the words after "--", which are the program's own arguments.
func (in *SpecIn) AfterDashes(words []string) { in.words = words }

// MegatronArgs marks the inputs whose words after "--" are Megatron's flags.
func (in *SpecIn) MegatronArgs() {}

// Resolve returns the specification that an operation would use: what in says, and what
// the site's profile fills in. It reads no file.
func Resolve(c *ops.Call, in SpecIn) (job.Spec, error) {
	in.File, in.Place = "", ""
	return ReadSpec(c, in)
}

// ReadSpec reads what in says and fills in what the site knows. It reports all faults
// of all fields together.
func ReadSpec(c *ops.Call, in SpecIn) (job.Spec, error) {
	name, text, err := readInput(c, in)
	if err != nil {
		return job.Spec{}, err
	}
	s, notes, err := draftOf(c, in, name, text)
	if err != nil {
		return s, err
	}
	for _, n := range notes {
		if n.Kind == job.Hidden {
			return s, ops.InputError("file",
				lang.Text{EN: "line %d: the script does not show %s", ZH: "第 %d 行：脚本中看不出 %s"}.With(n.Line, n.What),
				lang.Text{EN: "`megatron-ops import` it into a job.yaml, write out what its notes name, and use that", ZH: "请用 `megatron-ops import` 转成 job.yaml，补全其说明中指出的内容后再使用"})
		}
	}
	if errs := s.Validate(); len(errs) > 0 && !isScript(name, text) {
		return s, ops.FieldErrors(job.Locate(job.FieldErrors(errs), name, text))
	}
	return s, validate(s)
}

// validate returns the error about every wrong field of s, or nil.
func validate(s job.Spec) error {
	if errs := s.Validate(); len(errs) > 0 {
		return ops.FieldErrors(job.FieldErrors(errs))
	}
	return nil
}

// readInput returns the text that in holds or names, and its file's name.
func readInput(c *ops.Call, in SpecIn) (name string, text []byte, err error) {
	var given []string
	for _, source := range []string{in.File, in.Place, map[bool]string{true: "--yaml"}[in.YAML != ""]} {
		if source != "" {
			given = append(given, source)
		}
	}
	if len(given) > 1 {
		return "", nil, ops.InputError("file",
			lang.Text{EN: "several specifications are given: %s", ZH: "给出了多份规格：%s"}.With(strings.Join(given, ", ")),
			lang.Text{EN: "give one; the program's own arguments come after --", ZH: "请只给出一份；程序自身的参数写在 -- 之后"})
	}
	name = cmp.Or(in.File, in.Place)
	if name == "" {
		return "", []byte(in.YAML), nil
	}
	text, err = c.ReadFile("file", name)
	if m, ok := recipes.Lookup(name); ok && err != nil {
		e := ops.AsError(err)
		e.Fix = lang.Text{EN: "it is a model: name it with --recipe %s", ZH: "这是一个模型名：请用 --recipe %s 指定"}.With(m.Name)
		return name, nil, e
	}
	return name, text, err
}

// draft returns the specification before its fields are checked.
func draft(c *ops.Call, in SpecIn) (job.Spec, error) {
	name, text, err := readInput(c, in)
	if err != nil {
		return job.Spec{}, err
	}
	s, _, err := draftOf(c, in, name, text)
	return s, err
}

// draftOf is draft for a text that was already read. It also returns the notes about a
// script that the specification came from.
func draftOf(c *ops.Call, in SpecIn, name string, text []byte) (job.Spec, []job.Note, error) {
	var base job.Spec
	var notes []job.Note
	line, err := megatron.SplitWords(in.Line)
	if err != nil {
		return base, nil, ops.InputError("command_line", lang.Said(err), lang.Text{EN: "give args as a list, one element each", ZH: "请把 args 写成列表，每项一个"})
	}
	in.Spec.Args = slices.Concat(in.Spec.Args, line, in.words)
	switch {
	case isScript(name, text):
		// An existing launch script is turned into a specification.
		base, notes = job.Import(name, text)
	case len(text) > 0:
		s, err := job.Decode(text)
		if err != nil {
			return base, nil, ops.FieldErrors(job.Locate(err, name, text))
		}
		base = s
	}
	if name != "" && (len(bytes.TrimSpace(text)) == 0 || reflect.ValueOf(base).IsZero()) {
		return base, nil, ops.InputError("file",
			lang.Text{EN: "%s is empty, or has only comments", ZH: "%s 是空文件，或只有注释"}.With(name),
			lang.Text{EN: "write name: value lines into it, such as nodes: 2; `megatron-ops import SCRIPT` makes one from a launch script", ZH: "请写入 name: value 形式的行，例如 nodes: 2；`megatron-ops import SCRIPT` 可由启动脚本生成"})
	}
	s := job.Spec{}
	if in.Recipe != "" {
		if s, err = recipe(c, in, base); err != nil {
			return s, nil, err
		}
	}
	if in.From != "" {
		in.Spec.Cluster = cmp.Or(in.Spec.Cluster, base.Cluster)
		earlier, err := earlierSpec(c, in, base.Args)
		if err != nil {
			return base, nil, err
		}
		overlay(reflect.ValueOf(&s).Elem(), reflect.ValueOf(earlier))
	}
	overlay(reflect.ValueOf(&s).Elem(), reflect.ValueOf(base))
	overlay(reflect.ValueOf(&s).Elem(), reflect.ValueOf(in.Spec))
	if in.From != "" && base.Array+in.Spec.Array == "" {
		s = s.Recounted()
	}
	if c.Dir != "" && s.Worktree != "" && !filepath.IsAbs(s.Worktree) && !job.StaysAsWritten(s.Worktree) {
		s.Worktree = filepath.Join(c.Dir, s.Worktree)
	}
	if in.Recipe != "" {
		s.Args = withoutMockData(s.Args)
	}
	s = c.SiteOf(s).Fill(s)
	if in.GPUs != 0 {
		s, err = setNodes(s, in.GPUs, c.SiteOf(s))
	}
	return s, notes, err
}

// isScript reports whether text is a shell script rather than a specification.
func isScript(name string, text []byte) bool {
	switch filepath.Ext(name) {
	case ".sh", ".sbatch", ".slurm", ".bash":
		return true
	}
	return bytes.HasPrefix(text, []byte("#!"))
}

// On sets the cluster, as the flag --cluster does that every command takes.
func (in *SpecIn) On(cluster string) { in.Spec.Cluster = cluster }

// overlay copies the non-zero fields of over to dst. Arguments are appended, because
// argparse lets the last one win.
func overlay(dst, over reflect.Value) {
	for i := range over.NumField() {
		d, o := dst.Field(i), over.Field(i)
		switch {
		case o.Kind() == reflect.Struct:
			overlay(d, o)
		case o.IsZero() || (o.Kind() == reflect.Slice && o.Len() == 0):
		case o.Kind() == reflect.Map && !d.IsNil():
			for _, k := range o.MapKeys() {
				d.SetMapIndex(k, o.MapIndex(k))
			}
		case over.Type().Field(i).Name == "Args":
			d.Set(reflect.AppendSlice(d, o))
		default:
			d.Set(o)
		}
	}
}
