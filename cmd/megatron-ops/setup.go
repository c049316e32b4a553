package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/megatron-ops/megatron-ops/bot/install"
	"github.com/megatron-ops/megatron-ops/internal/config"
	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/lazy"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/view"
	"github.com/megatron-ops/megatron-ops/knowledge"
	"github.com/megatron-ops/megatron-ops/knowledge/eval"
	"github.com/megatron-ops/megatron-ops/mcp/clients"
	"github.com/megatron-ops/megatron-ops/skills"
	"github.com/megatron-ops/megatron-ops/slurm/cluster"
)

// A skillsIn says what to do with which skill.
type skillsIn struct {
	Do     string `arg:"" optional:"" enum:"list,show,export,eval" default:"list" help:"list the skills, show one, export one or all, or score answers" zh:"列出、查看、导出技能，或为回答评分"`
	Name   string `arg:"" optional:"" help:"the skill; all exports every one" zh:"技能名；导出时 all 表示全部"`
	Folder string `arg:"" optional:"" help:"where to export to" zh:"导出到的目录"`
}

// skillsCommand lists, shows, exports or evaluates the built-in skills.
func skillsCommand(ctx context.Context, sh *shell, in skillsIn) error {
	switch named, folder := in.Name != "", in.Folder != ""; {
	case in.Do == "list" && !named:
		if sh.json {
			return sh.printJSON(map[string]any{"skills": skillList()})
		}
		var s view.Section
		for _, k := range skills.All() {
			s.Facts = append(s.Facts, view.Fact{Name: k.Name, Value: k.Description})
		}
		return sh.draw(view.Doc{Sections: []view.Section{s}})
	case in.Do == "show" && named && !folder:
		k, ok := skills.Get(in.Name)
		if !ok {
			return noSkill(in.Name)
		}
		body := k.Body
		if sh.lang == lang.ZH && k.BodyZH != "" {
			body = k.BodyZH
		}
		if sh.json {
			return sh.printJSON(map[string]any{"name": k.Name, "description": k.Description, "body": body})
		}
		_, err := io.WriteString(sh.out, body)
		return err
	case in.Do == "eval" && !folder:
		return evalSkills(ctx, sh, in.Name)
	case in.Do == "export" && folder:
		return exportSkill(in.Name, in.Folder)
	}
	return &ops.Error{Code: ops.BadInput, Message: lang.Text{EN: "skills list, skills show NAME, skills export NAME|all FOLDER, or skills eval [NAME]", ZH: "用法：skills list、skills show NAME、skills export NAME|all FOLDER 或 skills eval [NAME]"}}
}

func skillList() []map[string]string {
	var list []map[string]string
	for _, k := range skills.All() {
		list = append(list, map[string]string{"name": k.Name, "description": k.Description})
	}
	return list
}

// evalSkills asks the skills' own questions and scores the answers of the built-in
// answerer. If a model is configured, it also scores the model's answers without and
// with the skills.
func evalSkills(ctx context.Context, sh *shell, name string) error {
	all, err := eval.Load(eval.Questions)
	if err != nil {
		return err
	}
	if name != "" {
		qs, ok := all[name]
		if !ok {
			return noSkill(name)
		}
		all = map[string][]eval.Question{name: qs}
	}
	answerers := []struct {
		name  string
		asker eval.Asker
	}{{"built-in", knowledge.New(knowledge.Options{})}}
	if m := model(config.Knowledge{ModelPerDay: -1}); m != nil {
		answerers = append(answerers, []struct {
			name  string
			asker eval.Asker
		}{{"model alone", eval.Alone{Model: m}}, {"model with skills", knowledge.New(knowledge.Options{Model: m})}}...)
	}
	t := &view.Table{Header: []string{"skill", "answers", "questions", "right", "share"}}
	scores := map[string]map[string]eval.Score{}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		scores[name] = map[string]eval.Score{}
		for _, a := range answerers {
			score, err := eval.Run(ctx, a.asker, all[name])
			if err != nil {
				return err
			}
			scores[name][a.name] = score
			t.Rows = append(t.Rows, []string{name, a.name, fmt.Sprint(score.Total), fmt.Sprint(score.Passed), fmt.Sprintf("%.1f %%", 100*score.Share())})
		}
	}
	if sh.json {
		return sh.printJSON(map[string]any{"skills": scores})
	}
	return sh.draw(view.Doc{Sections: []view.Section{{Table: t}}})
}

func noSkill(name string) error {
	var names []string
	for _, k := range skills.All() {
		names = append(names, k.Name)
	}
	return &ops.Error{Code: ops.NotFound, Field: "skill", Message: lang.Text{EN: "there is no skill %q", ZH: "没有技能 %q"}.With(name), Fix: lang.Same(strings.Join(names, ", "))}
}

// exportSkill writes a skill's folder, or all of them, below dir.
func exportSkill(name, dir string) error {
	if name != "all" {
		if _, ok := skills.Get(name); !ok {
			return noSkill(name)
		}
	}
	return fs.WalkDir(skills.FS, ".", func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		first, _, nested := strings.Cut(path, "/")
		if !nested || name != "all" && first != name {
			return nil
		}
		b, err := fs.ReadFile(skills.FS, path)
		if err != nil {
			return err
		}
		file := filepath.Join(dir, filepath.FromSlash(path))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return err
		}
		mode := os.FileMode(0o644)
		if strings.Contains(path, "/scripts/") {
			mode = 0o755
		}
		return os.WriteFile(file, b, mode)
	})
}

// A manifestIn says how Slack reaches the app.
type manifestIn struct {
	URL string `help:"the https address at which Slack reaches serve, without Socket Mode" zh:"不用 Socket Mode 时 Slack 访问 serve 的 https 地址" ex:"https://ops.example.org"`
}

func slackManifest(_ context.Context, sh *shell, in manifestIn) error {
	cfg, err := loadConfig()
	if err != nil {
		return err
	}
	m, err := install.Manifest(install.ManifestOptions{URL: in.URL, Policy: slackPolicy(nil, cfg), Install: cfg.Slack.Install.URL})
	if err != nil {
		return &ops.Error{Code: ops.BadInput, Field: "url", Message: lang.Said(err)}
	}
	_, err = sh.out.Write(append(bytes.TrimRight(m, "\n"), '\n'))
	return err
}

// A sudoersIn names the two sides of the rule.
type sudoersIn struct {
	Login string `help:"the account that serve runs as" zh:"运行 serve 的账户"`
	Group string `help:"the group of the people whom it may act as" zh:"可被代为执行的用户所在的组"`
}

// sudoersCommand prints the rule that lets the server's login act for people.
func sudoersCommand(_ context.Context, sh *shell, in sudoersIn) error {
	for field, name := range map[string]string{"login": in.Login, "group": in.Group} {
		if !unixName.MatchString(name) {
			return &ops.Error{Code: ops.BadInput, Field: field, Message: lang.Text{EN: "%q is not a valid name of a user or group", ZH: "%q 不是本系统中的名称"}.With(name), Fix: lang.Text{EN: "sudoers --login megatron-ops --group researchers", ZH: "例如：sudoers --login megatron-ops --group researchers"}}
		}
	}
	cfg, err := loadConfig()
	if err != nil {
		return err
	}
	var helpers []cluster.Helper
	for _, name := range slices.Sorted(maps.Keys(cfg.Clusters)) {
		if c := cfg.Clusters[name]; c.Kind == "cli" && c.ActAs {
			helpers = append(helpers, helperOf(c))
		}
	}
	if len(helpers) == 0 {
		helpers = []cluster.Helper{helperOf(config.Cluster{})}
	}
	rule, err := cluster.Sudoers(in.Login, in.Group, helpers)
	if err != nil {
		return &ops.Error{Code: ops.Failed, Field: "program", Message: lang.Said(err), Fix: lang.Text{EN: "install the package, or: install -o root -m 755 megatron-ops /usr/local/bin/", ZH: "请安装软件包，或执行：install -o root -m 755 megatron-ops /usr/local/bin/"}}
	}
	_, err = io.WriteString(sh.out, rule)
	return err
}

// unixName matches names that useradd and groupadd accept.
var unixName = lazy.New(`^[a-z_][a-z0-9_-]{0,31}$`)

// A linkIn is what Slack showed.
type linkIn struct {
	Code string `arg:"" help:"the code that /megatron link shows" zh:"/megatron link 显示的代码"`
}

// linkCommand writes a code's file on the cluster as the person who runs it.
func linkCommand(ctx context.Context, sh *shell, in linkIn) error {
	cfg, err := loadConfig()
	if err != nil {
		return err
	}
	if cfg.Slack.LinkDir == "" {
		return &ops.Error{Code: ops.BadInput, Field: "slack.link_dir", Message: lang.Text{EN: "no folder for link codes is configured here", ZH: "这里没有配置存放绑定代码的目录"}, Fix: lang.Text{EN: "an operator sets slack.link_dir in /etc/megatron-ops/megatron-ops.yaml to a folder with mode 1777", ZH: "请管理员在 /etc/megatron-ops/megatron-ops.yaml 中把 slack.link_dir 设为权限 1777 的目录"}}
	}
	if err := linkFolder(cfg.Slack).Write(ctx, in.Code); err != nil {
		code := ops.Failed
		if !errors.Is(err, fs.ErrPermission) && !errors.Is(err, fs.ErrNotExist) {
			code = ops.BadInput
		}
		return &ops.Error{Code: code, Field: "code", Message: lang.Said(err)}
	}
	fmt.Fprintln(sh.out, lang.Text{EN: "written: press the button in Slack now", ZH: "已写入：现在在 Slack 中点击按钮"}.In(sh.lang))
	return nil
}

// A startIn says which server a client starts or reaches.
type startIn struct {
	URL string `help:"a server that runs already, instead of starting one" zh:"已在运行的服务的地址，不再另外启动"`
	offerIn
}

// A configIn names the client to configure.
type configIn struct {
	Client string `enum:",claude,codex,gemini,cursor,vscode,opencode,goose" default:"" help:"only for this one" zh:"只输出该客户端的"`
	startIn
}

// mcpConfig prints how a client starts this program, or connects to a running server
// with the token that serve created, if this account may read it.
func mcpConfig(_ context.Context, sh *shell, in configIn) error {
	start, err := in.start()
	if err != nil {
		return err
	}
	names := clients.Names()
	if in.Client != "" {
		names = []string{in.Client}
	}
	for _, name := range names {
		setup, err := clients.Config(name, start)
		if err != nil {
			return err
		}
		d := view.Doc{Title: setup.Title}
		d.Add(view.Section{Code: setup.Command})
		d.Sections = append(d.Sections, view.Section{Text: setup.File, Code: setup.Snippet})
		if err := sh.draw(d); err != nil {
			return err
		}
	}
	return nil
}

// start returns how a client starts this program, or connects to a running server.
func (in startIn) start() (start clients.Start, err error) {
	start = clients.Start{Env: clients.PassedOn(os.Getenv), URL: in.URL, Args: in.args()}
	if start.URL != "" {
		if state, err := config.StateDir(os.Getenv); err == nil {
			start.Token, _ = readToken(ownTokenFile(state), "mcp.tokens") // without a token its place stays open
		}
	}
	start.Binary, err = os.Executable()
	return start, err
}

// mcpDoctor reports what coding agents will see: the server as they start or reach it,
// and which clients are installed here.
func mcpDoctor(ctx context.Context, sh *shell, in startIn) error {
	start, err := in.start()
	if err != nil {
		return err
	}
	var checks []check
	for _, f := range clients.Examine(ctx, start, exec.LookPath) {
		checks = append(checks, check{what: f.What.In(sh.lang), err: f.Wrong, fix: f.Fix.In(sh.lang), note: f.Note.In(sh.lang)})
	}
	return sh.drawChecks(checks)
}

func loadConfig() (config.Config, error) {
	dir, err := os.Getwd()
	if err != nil {
		return config.Config{}, err
	}
	return config.Load(dir, os.Getenv)
}
