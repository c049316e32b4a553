package job

import (
	"cmp"
	"path"
	"slices"
	"strings"

	"github.com/megatron-ops/megatron-ops/slurm/script"
)

// worktree imports the folder in which the training starts. Where that is no folder of
// the host, it is container.workdir, and the worktree is the folder of the shell outside.
func (m *importer) worktree(st *script.Start) {
	inside := cmp.Or(folder(st.Env, true), m.spec.Container.Workdir)
	image := inside != "" && m.inImage(inside)
	var dirs []string // the likeliest first
	if host, ok := m.spec.Container.Mounts.ToHost(inside); ok {
		dirs = append(dirs, host)
	}
	dirs = append(dirs, folder(st.Env, false))
	if !image {
		dirs = append(dirs, inside)
	}
	if o, ok := m.job.Options.Get("chdir"); ok {
		dirs = append(dirs, o.Text())
	}
	found := slices.IndexFunc(dirs, path.IsAbs)
	if found >= 0 {
		m.spec.Worktree = dirs[found]
	}
	if inside != "" && inside != m.spec.workdir() {
		m.spec.Container.Workdir = inside
	}
	if found >= 0 || image {
		m.relativeProgram()
	}
	switch {
	case found >= 0:
		return
	case image:
		m.note(0, "worktree", "the code lies in the image, in container.workdir: give worktree, a folder of the host for the logs", "代码在镜像内的 container.workdir：请填写 worktree，即主机上存放日志的目录")
		return
	}
	if dir := m.hiddenFolder(st); dir != "" {
		m.note(st.Line, dir, "the file does not show this folder, where the code lies: give worktree", "文件没有给出代码所在的这个目录：请填写 worktree")
		return
	}
	dir, inImage := path.Dir(m.spec.Script), st.Container != nil && m.inImage(path.Dir(m.spec.Script))
	if host := m.onHost(dir); path.IsAbs(dir) && path.IsAbs(host) && checkPath(host) == fine && !inImage {
		m.spec.Worktree = host
		m.spec.Script = path.Base(m.spec.Script)
		m.note(st.Line, dir, "the script does not show a working folder: the program's folder is used as worktree", "脚本没有说明工作目录：以程序所在目录作为 worktree")
		return
	}
	m.note(0, "worktree", "the script does not show the folder of the code: give worktree", "脚本没有说明代码目录：请填写 worktree")
}

// hiddenFolder returns the folder of the program, or else the working directory, as
// the file writes it. The text contains a variable whose value the file does not show. If
// it is the folder of the program, the program's path becomes relative to it.
func (m *importer) hiddenFolder(st *script.Start) string {
	program, dir := st.Program.Text(), st.Shell.Dir.String()
	if rest, ok := strings.CutPrefix(program, dir+"/"); ok && dir != "" {
		m.spec.Script = path.Clean(rest)
		return dir
	}
	if v := st.Program.Value; len(v) > 1 && v[0].Ref != nil && !v[1:].Unknown() && strings.HasPrefix(v[1:].String(), "/") {
		m.spec.Script = path.Clean(v[1:].String()[1:])
		return v[:1].String()
	}
	return dir
}

// inImage reports whether the folder of a container that has no mounts of its own, as
// pyxis and docker, is certainly one of the image.
func (m *importer) inImage(dir string) bool {
	c := m.spec.Container
	if c.Runtime != Pyxis && c.Runtime != Enroot && c.Runtime != Docker || m.mountsHidden {
		return false
	}
	_, mounted := c.Mounts.ToHost(dir)
	return !mounted
}

// onHost returns the host's path of a folder in the container.
func (m *importer) onHost(dir string) string {
	if host, ok := m.spec.Container.Mounts.ToHost(dir); ok {
		return host
	}
	return dir
}

// relativeProgram makes the program's path relative if it lies where the training starts.
func (m *importer) relativeProgram() {
	if rest, ok := relativeTo(path.Clean(m.onHost(m.spec.workdir())), path.Clean(m.onHost(m.spec.Script))); ok && rest != "" {
		m.spec.Script = rest
	}
}

// folder returns the last known folder of a shell and of those that started it, looking
// only at those in containers or only at those outside.
func folder(sh *script.Shell, contained bool) string {
	for ; sh != nil; sh = sh.Parent {
		if dir, ok := sh.Dir.Literal(); ok && path.IsAbs(dir) && (sh.Container != nil) == contained {
			return dir
		}
	}
	return ""
}

// redirections notes where the program's input comes from and its output goes to. Words
// such as <PATH TO DATA> are redirections for a shell, too.
func (m *importer) redirections(st *script.Start) {
	var all []script.Redirect
	for _, c := range st.Chain() {
		all = append(all, c.Redirects...)
	}
	for _, r := range all {
		if t := r.Target.String(); strings.HasPrefix(t, "-") && r.Op != "<<<" {
			m.mark(Hidden, r.Line, "<…> "+t, "words in angle brackets are redirections to a shell, which takes them and the word after them away: replace them",
				"尖括号中的文字会被 shell 当作重定向，连同其后的一个词一起被拿走：请改成真正的值")
			return
		}
	}
	for _, r := range all {
		switch t := r.Target.String(); {
		case r.Op == "<":
			m.note(r.Line, r.Op+" "+t, "this input is not imported", "该输入没有导入")
		case slices.Contains(outputs, r.Op) && t != "/dev/null":
			m.note(r.Line, r.Op+" "+t, "the output is not written there: the logs are in log_dir", "输出不写到该处：日志在 log_dir 中")
		}
	}
}

// outputs are the operators that write a program's output to a file.
var outputs = strings.Fields("> >> >| &> &>>")
