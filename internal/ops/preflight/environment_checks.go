package preflight

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/lazy"
	"github.com/megatron-ops/megatron-ops/knowledge/rules"
	"github.com/megatron-ops/megatron-ops/slurm/job"
)

// noteRoot adds a note where root runs the check: what root may read and write says
// nothing about what the job's user may.
func (f *fileCheck) noteRoot() {
	if os.Geteuid() == 0 {
		f.add("looked-as-root", rules.Note, "check_files", lang.Text{EN: "you are root, whom no permission and no quota stops: what the job's user may do is not known", ZH: "当前是 root，权限与配额对其无效：作业用户实际能做什么无法得知"},
			lang.Text{EN: "run it as the job's user", ZH: "以作业用户的身份运行"})
	}
}

// environment checks the worktree's file system, uv, and the virtual environment with
// its extras.
func (f *fileCheck) environment() {
	tree := f.spec.Worktree
	if tree == "" || f.may != nil && f.may(tree) != nil || !pathExists(tree) {
		return // reported elsewhere
	}
	if !nodeLocal(tree) && !f.seenByAllNodes(tree) {
		f.add("worktree-shared", rules.Warning, "worktree", phrase("%s lies on a file system of this machine alone, and %d nodes must see it", "%s 位于仅本机可见的文件系统，而 %d 个节点都要访问它", tree, *f.spec.Nodes),
			lang.Text{EN: "a path on NFS, Lustre or another shared file system; name it under shared in the site's profile where every node does see it", ZH: "放在 NFS、Lustre 等共享文件系统上；若各节点确实可见，请写入站点配置的 shared"})
	}
	if f.spec.Launcher != job.UV || inContainer(f.spec) {
		return
	}
	if _, err := exec.LookPath("uv"); err != nil {
		f.add("uv-missing", rules.Warning, "launcher", lang.Text{EN: "uv is not on the PATH here, and the job starts with uv run", ZH: "本机 PATH 中没有 uv，而作业以 uv run 启动"},
			lang.Text{EN: "install uv where the nodes see it, or launcher: python with the environment's own interpreter", ZH: "在各节点可见处安装 uv，或使用 launcher: python"})
	}
	venv := f.spec.Venv
	if !filepath.IsAbs(venv) {
		venv = filepath.Join(tree, venv)
	}
	if (f.may == nil || f.may(venv) == nil) && pathExists(venv) {
		f.checkVenv(tree, venv)
	}
}

// checkVenv checks that a virtual environment is complete and has the worktree's extras
// for training.
func (f *fileCheck) checkVenv(tree, venv string) {
	sync := lang.Text{EN: "once, before submitting: uv sync --extra training --extra dev", ZH: "提交前执行一次：uv sync --extra training --extra dev"}
	packages, _ := filepath.Glob(filepath.Join(venv, "lib", "python3*", "site-packages"))
	if len(packages) == 0 || !pathExists(filepath.Join(venv, "bin", "python")) {
		f.add("environment-synced", rules.Warning, "venv", phrase("%s is not a complete virtual environment: it has no interpreter or no packages", "%s 不是完整的虚拟环境：缺少解释器或软件包", venv), sync)
		return
	}
	have := distributions(packages[0])
	var missing []string
	for _, name := range extras(filepath.Join(tree, "pyproject.toml"), "training", "dev") {
		if !have[name] && !slices.Contains(missing, name) {
			missing = append(missing, name)
		}
	}
	if len(missing) == 0 {
		return
	}
	slices.Sort(missing)
	names := strings.Join(missing[:min(4, len(missing))], ", ")
	f.add("environment-synced", rules.Warning, "venv", phrase("%s lacks %d packages of the extras training and dev, such as %s", "%s 缺少 training、dev 附加依赖中的 %d 个包，例如 %s", venv, len(missing), names), sync)
}

// distributions returns the names of the distributions that are installed in a folder.
func distributions(dir string) map[string]bool {
	have := map[string]bool{}
	folder, err := os.Open(dir)
	if err != nil {
		return have
	}
	defer folder.Close()
	const most = 16_384
	names, _ := folder.Readdirnames(most)
	for _, n := range names {
		if base, ok := strings.CutSuffix(n, ".dist-info"); ok {
			name, _, _ := strings.Cut(base, "-")
			have[distribution(name)] = true
		}
	}
	return have
}

// distribution returns a package's name as PEP 503 compares it.
func distribution(name string) string {
	return strings.ToLower(strings.NewReplacer("_", "-", ".", "-").Replace(name))
}

var (
	extraHead   = lazy.New(`^\s*"?([A-Za-z0-9_-]+)"?\s*=\s*\[`)
	requirement = lazy.New(`["']([A-Za-z0-9][A-Za-z0-9._-]*)([^"']*)["']`)
)

// extras returns the packages that a pyproject.toml lists under the named optional
// dependencies, except those that depend on the platform.
func extras(file string, named ...string) []string {
	b, err := readHead(file, 1<<20)
	if err != nil {
		return nil
	}
	var out []string
	inTable, inList := false, false
	for line := range strings.Lines(string(b)) {
		text, _, _ := strings.Cut(line, "#")
		switch trimmed := strings.TrimSpace(text); {
		case strings.HasPrefix(trimmed, "[") && !inList:
			inTable = trimmed == "[project.optional-dependencies]"
			continue
		case inTable && !inList:
			m := extraHead.FindStringSubmatch(text)
			inList = m != nil && slices.Contains(named, m[1])
		}
		if !inTable || !inList {
			continue
		}
		for _, m := range requirement.FindAllStringSubmatch(text, -1) {
			if !strings.Contains(m[2], ";") {
				out = append(out, distribution(m[1]))
			}
		}
		if end := strings.TrimSpace(text); strings.HasSuffix(end, "]") && !strings.HasSuffix(end, `]",`) {
			inList = false
		}
	}
	return out
}
