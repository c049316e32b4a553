package job

import (
	"cmp"
	"path"
	"slices"
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/lazy"
	"github.com/megatron-ops/megatron-ops/knowledge/megatron"
	"github.com/megatron-ops/megatron-ops/slurm/script"
)

// words imports the program and its arguments.
func (m *importer) words(st *script.Start) {
	m.spec.Script = st.Program.Text()
	if strings.HasPrefix(m.spec.Script, "./") && !st.Flags.Has("no-python") { // the PATH has commands, and not the folder
		m.spec.Script = path.Clean(m.spec.Script)
	}
	if _, shown := m.job.Filled(st.Program.Value); !shown && !strings.Contains(m.spec.Script, "/") {
		m.mark(Hidden, st.Line, m.spec.Script, "the file does not show the program: write out what it starts", "文件没有给出所启动的程序：请直接写出")
	}
	if st.Module {
		m.note(st.Line, "-m "+st.Program.Text(), "a module is started through launcher: custom", "模块需通过 launcher: custom 启动")
	}
	words := st.Program.Text()
	var at valueState
	for _, a := range st.ProgramArgs {
		word, shown := m.job.Filled(a.Value)
		if st.Step != nil && word == ":" {
			m.note(a.Line, "srun … : …", "srun starts several programs side by side: only the first one is imported", "srun 同时启动多个程序：只导入了第一个")
			break
		}
		shown = shown && !home(a.Value)
		words += " " + word
		switch {
		case shown:
			m.spec.Args = append(m.spec.Args, word)
		case manyWords(a.Value) && !at.after, at.complete && loneVariable(a.Value):
			m.mark(Hidden, a.Line, word, "the file does not show these words: they are left out", "文件没有给出这些参数：已略去")
		default:
			m.mark(Hidden, a.Line, word, "the file does not show this value: write it out, nothing is expanded", "文件没有给出该值：请直接写出，此处不做展开")
			m.spec.Args = append(m.spec.Args, word)
		}
		at = at.next(word)
	}
	m.choices(words)
}

// A valueState says what may follow a word of the program.
type valueState struct {
	flag     megatron.Flag // the last flag, if Megatron knows it
	after    bool          // the word is a flag that takes a value
	complete bool          // the word is a switch, or the only value of a flag
}

// next returns the state after word.
func (v valueState) next(word string) valueState {
	name, _, joined := strings.Cut(word, "=")
	if !strings.HasPrefix(word, "--") {
		return valueState{complete: v.after && v.flag.Name != "" && v.flag.Nargs == ""}
	}
	known, ok := megatron.LookupFlag(name)
	if ok && known.Action != megatron.Store {
		return valueState{complete: true}
	}
	return valueState{flag: known, after: !joined, complete: ok && joined && known.Nargs == ""}
}

// loneVariable reports whether v is one variable without quotes, which may be empty.
func loneVariable(v script.Value) bool {
	r := v.Only()
	return r != nil && r.Kind == script.Variable && !v[0].Quoted
}

// home reports whether v begins with ~, which stands for a folder that the file does not
// show.
func home(v script.Value) bool {
	return len(v) > 0 && v[0].Ref == nil && strings.HasPrefix(v[0].Text, "~")
}

// isDefault reports whether the file sets the variable name only by a default such as
// ${NAME:-value}, which the environment may override.
func (m *importer) isDefault(name string) bool {
	return slices.ContainsFunc(m.job.Choices, func(c script.Choice) bool { return c.Name == name && c.Default })
}

var listName = lazy.New(`(?i)(args|opts|options|flags|params|arguments|extra|@)$`)

// manyWords reports whether v is all elements of an array, or one unquoted variable or
// command substitution that may expand to a list of words.
func manyWords(v script.Value) bool {
	r := v.Only()
	return r != nil && r.List() || r != nil && !v[0].Quoted && (r.Kind == script.Output || listName.MatchString(r.Name))
}

// choices adds a note for each variable that the environment or a branch decides, if
// the value that the importer chose for it is among the words of the program.
func (m *importer) choices(words string) {
	inOrder := func(a, b script.Choice) int { return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Name, b.Name)) }
	for _, c := range slices.SortedFunc(slices.Values(m.job.Choices), inOrder) {
		value, _ := m.job.Filled(c.Taken)
		if value = strings.Join(strings.Fields(value), " "); value == "" || !strings.Contains(words, value) {
			continue
		}
		if r := []rune(value); len(r) > 60 {
			value = string(r[:60]) + "…"
		}
		if c.Default {
			m.mark(Taken, c.Line, c.Name+"="+value, "its default is used: the environment may set another value", "取其默认值：环境可能另有设置")
		} else {
			m.mark(Taken, c.Line, c.Name+"="+value, "branches set several values: this one is used", "分支中另有取值：这里取此值")
		}
	}
}

// variables imports the environment that the script gives to the program.
func (m *importer) variables(st *script.Start) {
	for _, name := range st.Env.Names() {
		v, ok := st.Env.Env(name)
		if !ok {
			continue
		}
		value, literal := m.job.Filled(v)
		literal = literal && !home(v)
		switch {
		case setByScript[name] != fine:
			if n := wholeNumber(value); name == "MASTER_PORT" && n != nil && *n != 29500 {
				m.spec.MasterPort = n
			}
			if n := wholeNumber(value); name == "GPUS_PER_NODE" && n != nil && m.spec.GPUsPerNode == nil {
				m.spec.GPUsPerNode = n
			}
		case secretName.MatchString(name):
			m.note(v.Line(), name, "a secret stays out of the specification: export it before submitting, or use the secrets file", "密钥不写入规格：请在提交前导出，或使用密钥文件")
		case name == "PATH" && m.addsToPath(v):
		case name == "PYTHONPATH" && !literal && m.pythonPath(v):
		case isDenied(name):
			m.note(v.Line(), name, "this variable changes the shell or Slurm itself and is not imported", "该变量会改变 shell 或 Slurm 本身，不导入")
		case !literal:
			m.note(v.Line(), name+"="+v.String(), "the file does not show this value", "文件没有给出该值")
		default:
			m.set(name, value)
		}
	}
	for _, c := range m.job.Choices {
		if value, imported := m.spec.Env[c.Name]; c.Dropped && !imported && setByScript[c.Name] == fine && !isDenied(c.Name) {
			m.note(c.Line, c.Name, "only a branch that is not taken sets it: it is not imported", "只有未采用的分支设置它：没有导入")
		} else if taken, _ := c.Taken.Literal(); imported && !c.Default && taken == value {
			m.note(c.Line, c.Name+"="+value, "branches set several values: this one is used", "分支中另有取值：这里取此值")
		}
	}
}

// addsToPath imports the folders of a value such as /opt/bin:$PATH as path. It
// reports whether v has that form.
func (m *importer) addsToPath(v script.Value) bool {
	dirs, ok := m.before(v, "PATH")
	if !ok {
		return false
	}
	for _, dir := range strings.Split(dirs, ":") {
		if !slices.Contains(m.spec.Path, dir) {
			m.spec.Path = append(m.spec.Path, dir)
		}
	}
	return true
}

// before returns the folders that v puts in front of the variable's own value, as
// /opt/bin:$PATH does.
func (m *importer) before(v script.Value, name string) (string, bool) {
	last := len(v) - 1
	if last < 1 || v[last].Ref == nil || v[last].Ref.Name != name {
		return "", false
	}
	text, shown := m.job.Filled(v[:last])
	dirs, colon := strings.CutSuffix(text, ":")
	return dirs, shown && colon && dirs != "" && !slices.Contains(strings.Split(dirs, ":"), "")
}

// after is before for folders that follow the variable's own value.
func (m *importer) after(v script.Value, name string) (string, bool) {
	if len(v) < 2 || v[0].Ref == nil || v[0].Ref.Name != name {
		return "", false
	}
	text, shown := m.job.Filled(v[1:])
	dirs, colon := strings.CutPrefix(text, ":")
	return dirs, shown && colon && dirs != "" && !slices.Contains(strings.Split(dirs, ":"), "")
}

// pythonPath imports the folders that the script adds to PYTHONPATH. It reports whether
// v has that form.
func (m *importer) pythonPath(v script.Value) bool {
	dirs, ok := m.before(v, "PYTHONPATH")
	if !ok {
		dirs, ok = m.after(v, "PYTHONPATH")
	}
	if !ok {
		return false
	}
	m.set("PYTHONPATH", dirs)
	m.note(v.Line(), "PYTHONPATH="+v.String(), "only the folders that the script adds are imported", "只导入脚本自己加入的目录")
	return true
}

func (m *importer) set(name, value string) {
	if m.spec.Env == nil {
		m.spec.Env = map[string]string{}
	}
	m.spec.Env[name] = value
}

// noteOutsideContainer notes the variables that the script exports but the container
// does not get.
func (m *importer) noteOutsideContainer(st *script.Start) {
	for _, name := range m.job.Shell.Names() {
		if _, inside := st.Env.Env(name); inside || setByScript[name] != fine {
			continue
		}
		if v, ok := m.job.Shell.Env(name); ok {
			m.note(v.Line(), name, "set outside the container, which does not see it: put it in env if it is wanted", "在容器外设置，容器内看不到：若需要请写入 env")
		}
	}
}
