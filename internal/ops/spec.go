package ops

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/knowledge/megatron"
	"github.com/megatron-ops/megatron-ops/slurm"
	"github.com/megatron-ops/megatron-ops/slurm/job"
)

// SpecIn is a job specification as it comes: a file, its text, or field by
// field. Fields given beside a file or text win over it.
type SpecIn struct {
	File string   `json:"-" short:"f" name:"file" placeholder:"FILE" help:"job specification, YAML or JSON" zh:"作业规格文件（YAML 或 JSON）"`
	YAML string   `json:"yaml,omitempty" name:"yaml" placeholder:"TEXT" help:"the job specification as YAML text" zh:"YAML 文本形式的作业规格"`
	Spec job.Spec `json:"spec,omitzero" embed:"" help:"the job specification"`
	// From begins with a job's own specification, and Without takes out of it.
	From    slurm.JobID `json:"from,omitempty" name:"from" placeholder:"JOBID" help:"begin with the specification of this earlier job of mine; what is given besides changes it" zh:"以我之前这个作业的规格为起点；另外给出的内容用于修改它"`
	Without []string    `json:"without,omitempty" name:"without" placeholder:"NAME" help:"with from: leave this flag or environment variable out" zh:"与 from 合用：去掉这个参数或环境变量"`
	Line    string      `json:"command_line,omitempty" name:"command-line" placeholder:"TEXT" help:"the program's arguments as one shell-quoted line; added to args" zh:"以一行 shell 引用文本给出的程序参数，追加到 args"`
	// Place is the file, said without a flag.
	Place string `json:"-" arg:"" optional:"" name:"job.yaml" help:"the job specification's file; after -- come the program's own arguments" zh:"作业规格文件；-- 之后是程序自身的参数"`
	words []string
}

// AfterDashes takes the words after "--": the program's own arguments.
func (in *SpecIn) AfterDashes(words []string) { in.words = words }

// megatronArgs marks the inputs whose words after "--" are Megatron's flags.
func (in *SpecIn) megatronArgs() {}

const maxSpec = 1 << 20

// Resolve is the specification that an operation would act on: what in says,
// and what the site's profile fills in. No file is read for it.
func (c *Call) Resolve(in SpecIn) (job.Spec, error) {
	in.File, in.Place = "", ""
	return c.spec(in)
}

// spec reads what in says and fills in what the site knows. Every fault of
// every field is told at once.
func (c *Call) spec(in SpecIn) (job.Spec, error) {
	name, text, err := c.given(in)
	if err != nil {
		return job.Spec{}, err
	}
	s, notes, err := c.draftOf(in, name, text)
	if err != nil {
		return s, err
	}
	for _, n := range notes {
		if n.Kind == job.Hidden {
			return s, badInput("file", "megatron-ops import it into a job.yaml, write out what its notes name, and use that", "line %d: the script does not show %s", n.Line, n.What)
		}
	}
	if errs := s.Validate(); len(errs) > 0 && !isScript(name, text) {
		return s, fieldErrors(job.Locate(job.FieldErrors(errs), name, text))
	}
	return s, sound(s)
}

// sound is the error of every field of s that is wrong, or nil.
func sound(s job.Spec) error {
	if errs := s.Validate(); len(errs) > 0 {
		return fieldErrors(job.FieldErrors(errs))
	}
	return nil
}

// given is the text that in holds or names, and its file's name.
func (c *Call) given(in SpecIn) (name string, text []byte, err error) {
	name = cmp.Or(in.File, in.Place)
	if name == "" {
		return "", []byte(in.YAML), nil
	}
	text, err = c.readFile("file", name)
	return name, text, err
}

// draft is the specification before its fields are checked, with the notes of
// the script that it was read from.
func (c *Call) draft(in SpecIn) (job.Spec, []job.Note, error) {
	name, text, err := c.given(in)
	if err != nil {
		return job.Spec{}, nil, err
	}
	return c.draftOf(in, name, text)
}

// draftOf is draft for a text that was read already.
func (c *Call) draftOf(in SpecIn, name string, text []byte) (job.Spec, []job.Note, error) {
	var base job.Spec
	var notes []job.Note
	line, err := megatron.SplitWords(in.Line)
	if err != nil {
		return base, nil, badInput("command_line", "give args as a list, one element each", "%v", err)
	}
	in.Spec.Args = slices.Concat(in.Spec.Args, line, in.words)
	switch {
	case isScript(name, text):
		// Somebody's own launch script: what it says, as a specification.
		base, notes = job.Import(name, text)
	case len(text) > 0:
		s, err := job.Decode(text)
		if err != nil {
			return base, nil, fieldErrors(job.Locate(err, name, text))
		}
		base = s
	}
	s := job.Spec{}
	if in.From != "" {
		in.Spec.Cluster = cmp.Or(in.Spec.Cluster, base.Cluster)
		earlier, err := c.from(in, base.Args)
		if err != nil {
			return base, nil, err
		}
		overlay(reflect.ValueOf(&s).Elem(), reflect.ValueOf(earlier))
	}
	overlay(reflect.ValueOf(&s).Elem(), reflect.ValueOf(base))
	overlay(reflect.ValueOf(&s).Elem(), reflect.ValueOf(in.Spec))
	if c.Dir != "" && s.Worktree != "" && !filepath.IsAbs(s.Worktree) {
		s.Worktree = filepath.Join(c.Dir, s.Worktree)
	}
	return c.site(s).Fill(s), notes, nil
}

// isScript reports whether text is a shell script rather than a specification.
func isScript(name string, text []byte) bool {
	switch filepath.Ext(name) {
	case ".sh", ".sbatch", ".slurm", ".bash":
		return true
	}
	return bytes.HasPrefix(text, []byte("#!"))
}

// site is the profile of the cluster that s goes to.
func (c *Call) site(s job.Spec) job.Site {
	if c.Sites == nil {
		return job.Site{}
	}
	name := s.Cluster
	if name == "" {
		name = c.Default
	}
	return c.Sites(name)
}

// On names the cluster, as the flag that every command takes does.
func (in *SpecIn) On(cluster string) { in.Spec.Cluster = cluster }

// overlay copies the fields of over that are set onto dst. Arguments given
// twice follow one another, since argparse lets the last one win.
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

// fieldErrors turns what the specification says of its fields into one error:
// the first field, and the others with it.
func fieldErrors(err error) error {
	var all []*Error
	for _, f := range job.AsFieldErrors(err) {
		value := ""
		if f.Value != "" {
			value = fmt.Sprintf("%q ", f.Value)
		}
		e := &Error{Code: BadInput, Field: f.Field}
		e.Message, e.Fix = f.In(lang.EN)
		e.Message = value + e.Message
		e.zh.message, e.zh.fix = f.In(lang.ZH)
		e.zh.message = value + e.zh.message
		all = append(all, e)
	}
	if len(all) == 0 {
		return &Error{Code: BadInput, Message: err.Error()}
	}
	all[0].More = all[1:]
	return all[0]
}

// readFile reads a file that the shell named; other surfaces have no files of
// their own here.
func (c *Call) readFile(field, path string) ([]byte, error) {
	if c.Who.Surface != Shell && c.Who.Surface != Chat {
		return nil, badInput(field, "give the text itself", "files are read in the shell only")
	}
	if path == "-" && c.Stdin != nil {
		return io.ReadAll(io.LimitReader(c.Stdin, maxSpec))
	}
	if !filepath.IsAbs(path) {
		path = filepath.Join(c.Dir, path)
	}
	st, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, badInput(field, "check the path", "%s: there is no such file", path)
	case err != nil:
		return nil, badInput(field, "check the path and its permissions", "%s", strings.TrimPrefix(err.Error(), "stat "))
	case !st.Mode().IsRegular():
		return nil, badInput(field, "name a file", "%s is not a regular file", path)
	case st.Size() > maxSpec:
		return nil, badInput(field, "a specification has a few lines", "%s has %d bytes, more than %d", path, st.Size(), maxSpec)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, badInput(field, "check the file's permissions", "%s", strings.TrimPrefix(err.Error(), "open "))
	}
	return b, nil
}
