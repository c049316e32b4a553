package job

import (
	"path"
	"slices"
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/lazy"
	"github.com/megatron-ops/megatron-ops/slurm/script"
)

var header = lazy.New(`(?m)^# Rendered by megatron-ops (\S+) from specification sha256:[0-9a-f]{64}\n`)

// readBack turns what import found in a script of this program's own into the
// specification that it came from. What the rendering itself adds is taken away
// again; what only it writes is read by its marks. exact reports whether the
// specification gives the same script, so that nothing is left to note.
func readBack(s Spec, text string) (spec Spec, exact bool) {
	head := header.FindStringSubmatch(text)
	if head == nil {
		return s, false
	}
	b := back{Spec: s, text: text}
	b.minimal = !strings.Contains(text, "# Guards: ") && !strings.Contains(text, "# What a diagnosis reads") && !strings.Contains(text, "--kill-on-bad-exit")
	if !b.minimal {
		b.off("# Guards: ", &b.Guards)
		b.off("# What a diagnosis reads", &b.Monitor)
	}
	if strings.Contains(text, "\n# Node check: ") {
		b.NodeCheck = ptr(true)
	}
	b.scheduling()
	b.launching()
	b.surrounding()
	b.containing()
	again, err := Render(b.Spec, Options{Version: head[1], Minimal: b.minimal})
	return b.Spec, err == nil && header.ReplaceAllString(again.Text, "") == header.ReplaceAllString(text, "")
}

// A back is a specification that is being read back.
type back struct {
	Spec
	text    string
	minimal bool
}

// off says that what leaves a mark in the script was switched off.
func (b *back) off(mark string, field **bool) {
	if !strings.Contains(b.text, "\n"+mark) {
		*field = ptr(false)
	}
}

var (
	cdMark     = lazy.New(`(?m)^cd (.*)$`)
	chainMark  = lazy.New(`(?m)^# A chain of ([0-9]+) jobs: `)
	seriesMark = lazy.New(`(?m)^# Runs again ([a-z0-9]+); the next run`)
	switchMark = lazy.New(`(?m)^KILL_SWITCH=(.*)$`)
	sourceMark = lazy.New(`(?m)^source (.*)$`)
	portMark   = lazy.New(`(?m)^export MASTER_PORT=([0-9]+)$`)
	venvMark   = lazy.New(`(?m)^export VENV=(.*)$`)
	programAt  = lazy.New(`(?m)^  ' _ (.*) "\$\{ARGS\[@\]\}"`)
	argsMark   = lazy.New(`(?ms)^ARGS=\(\n(.*?)^\)$`)
	srunMark   = lazy.New(`(?m)^srun (.*) \\\n`)
	pyxisMark  = lazy.New(`(?m)^  --container-mounts=(.*) \\$`)
	mountMark  = lazy.New(`(?m)^  (?:-v|--bind|--mount) (.*) \\$`)
)

// marked is the first value of a mark, with its quotes undone.
func (b *back) marked(p *lazy.Pattern) (string, bool) {
	m := p.FindStringSubmatch(b.text)
	if m == nil {
		return "", false
	}
	w := words(m[1])
	return strings.Join(w, " "), len(w) > 0
}

func (b *back) scheduling() {
	if dir, ok := b.marked(cdMark); ok {
		b.Worktree = dir
	}
	if n, ok := b.marked(chainMark); ok {
		b.Chain = whole(n)
	}
	if every, ok := b.marked(seriesMark); ok {
		b.Every = every
	}
	if file, ok := b.marked(switchMark); ok {
		b.KillSwitch = file
	}
	if file, ok := b.marked(sourceMark); ok {
		b.Train, b.Launcher, b.LauncherArgv = strings.TrimPrefix(file, "./"), "", nil
	}
	if port, ok := b.marked(portMark); ok {
		b.MasterPort = whole(port)
	}
}

// launching reads the program, its arguments and srun's options from their
// places.
func (b *back) launching() {
	delete(b.Rdzv.Conf, "is_host")
	if len(b.Rdzv.Conf) == 0 {
		b.Rdzv.Conf = nil
	}
	if m := argsMark.FindStringSubmatch(b.text); m != nil {
		b.Args = words(m[1])
	} else {
		b.Args = nil
	}
	b.unsignalled()
	if m := programAt.FindStringSubmatch(b.text); m != nil {
		w := words(m[1])
		b.Script = w[len(w)-1]
		if b.Launcher == Custom {
			b.LauncherArgv = w[:len(w)-1]
			if strings.Contains(b.text, "ops_n=$1") {
				b.LauncherArgv = b.LauncherArgv[1:]
			}
		}
	}
	all := srunMark.FindAllString(b.text, -1)
	if len(all) == 0 || b.minimal {
		return
	}
	given := strings.TrimSuffix(all[len(all)-1], " \\\n") + " "
	for _, usual := range []string{"--kill-on-bad-exit", "--wait", "--unbuffered", "--label"} {
		if !strings.Contains(given, " "+usual+"=") && !strings.Contains(given, " "+usual+" ") {
			b.SrunArgs = append([]string{"--no-" + strings.TrimPrefix(usual, "--")}, b.SrunArgs...)
		}
	}
	b.SrunArgs = slices.DeleteFunc(b.SrunArgs, func(a string) bool {
		return strings.HasPrefix(a, "--output=") || strings.HasPrefix(a, "--error=") || a == "--unbuffered" || a == "--label"
	})
}

// unsignalled takes the flags of the signal's handler away, which follow from
// signal and kill_switch.
func (b *back) unsignalled() {
	r := rendering{Spec: b.WithDefaults()}
	for n := range min(4, len(b.Args)+1) {
		r.Args = b.Args[:len(b.Args)-n]
		if added := r.exitFlags(); len(added) == n && n > 0 && slices.Equal(added, b.Args[len(b.Args)-n:]) {
			b.Args = r.Args
			return
		}
	}
}

// containing reads the mounts with their flags, and leaves out what follows from
// the worktree.
func (b *back) containing() {
	if !b.contained() {
		return
	}
	if list, ok := b.marked(pyxisMark); ok {
		b.Container.Mounts = strings.Split(list, ",")
	} else if found := mountMark.FindAllString(b.text, -1); len(found) > 0 {
		b.Container.Mounts = nil
		for _, line := range found {
			m := words(mountMark.FindStringSubmatch(line)[1])[0]
			if !slices.Contains(b.Container.Mounts, m) {
				b.Container.Mounts = append(b.Container.Mounts, m)
			}
		}
	}
	own := b.Worktree + ":" + b.Worktree
	b.Container.Mounts = slices.DeleteFunc(b.Container.Mounts, func(m string) bool { return m == own })
	if len(b.Container.Mounts) == 0 {
		b.Container.Mounts = nil
	}
	if b.Container.Workdir == b.inside(b.Worktree) {
		b.Container.Workdir = ""
	}
	for name, v := range b.Env {
		if !b.exported(name) {
			if b.Container.Env == nil {
				b.Container.Env = map[string]string{}
			}
			b.Container.Env[name] = v
			delete(b.Env, name)
		}
	}
	if v := b.Container.Env["UV_PROJECT_ENVIRONMENT"]; v != "" && b.Launcher == UV && b.Venv == "" {
		b.Venv = v
		delete(b.Container.Env, "UV_PROJECT_ENVIRONMENT")
	}
	if len(b.Container.Env) == 0 {
		b.Container.Env = nil
	}
}

// exported reports whether the script gives the variable a line of its own.
func (b *back) exported(name string) bool {
	_, line, ok := strings.Cut(b.text, "\nexport "+name+"=")
	line, _, _ = strings.Cut(line, "\n")
	return ok && len(words("x"+line)) == 1 // those of the traces share theirs
}

// surrounding takes the variables of the rendering's own away, and reads presets.
func (b *back) surrounding() {
	if v, ok := b.marked(venvMark); ok {
		b.Venv = v
		if rest, in := below(path.Clean(b.inside(b.Worktree)), path.Clean(v)); in && rest != "" {
			b.Venv = rest
		}
		delete(b.Env, "VENV")
	}
	for _, s := range traceSettings {
		if b.Env[s.name] == s.value && !b.exported(s.name) {
			delete(b.Env, s.name)
		}
	}
	if strings.Contains(b.text, "\n# Megatron: ") {
		delete(b.Env, "CUDA_DEVICE_MAX_CONNECTIONS")
	} else if RecommendedConnections(b.Spec).Value != "" && b.Env["CUDA_DEVICE_MAX_CONNECTIONS"] == "" && b.GPU == "" {
		b.GPU = "b200" // of the architectures that leave the variable alone
	}
	var named []string
	for _, p := range presets {
		lines := ""
		for _, s := range p.set {
			lines += "\nexport " + s.name + "=" + s.shell()
		}
		if lines != "" && strings.Contains(b.text, lines+"\n") {
			named = append(named, p.Name)
			for _, s := range p.set {
				delete(b.Env, s.name)
			}
		}
	}
	for name, mark := range map[string]string{joinedLog: "\n  > >(tee -a ", perNodeLogs: "-%N.err", privileged: "\n  --privileged \\"} {
		if strings.Contains(b.text, mark) {
			named = append(named, name)
		}
	}
	slices.SortFunc(named, func(x, y string) int { return presetAt(x) - presetAt(y) })
	b.Preset = named
	if len(b.Env) == 0 {
		b.Env = nil
	}
}

func presetAt(name string) int {
	return slices.IndexFunc(presets, func(p Preset) bool { return p.Name == name })
}

// words takes a line of this program's own apart: words with a blank between
// them, each bare, in single quotes or in $'…'.
func words(line string) []string {
	var all []string
	for line = strings.TrimLeft(line, " \n"); line != ""; line = strings.TrimLeft(line, " \n") {
		var w strings.Builder
		for line != "" && line[0] != ' ' && line[0] != '\n' {
			switch {
			case strings.HasPrefix(line, "$'"):
				end := 2
				for end < len(line) && line[end] != '\'' {
					if line[end] == '\\' {
						end++
					}
					end++
				}
				w.WriteString(script.Unescape(line[2:min(end, len(line))]))
				line = line[min(end+1, len(line)):]
			case line[0] == '\'' || line[0] == '"':
				end := strings.IndexByte(line[1:], line[0])
				if end < 0 {
					end = len(line) - 1
				}
				w.WriteString(line[1 : 1+end])
				line = line[min(end+2, len(line)):]
			case line[0] == '\\' && len(line) > 1:
				w.WriteByte(line[1])
				line = line[2:]
			default:
				w.WriteByte(line[0])
				line = line[1:]
			}
		}
		all = append(all, w.String())
	}
	return all
}
