package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
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

// flags parses the flags of a command that is not an operation.
func flags(name string, words []string, define func(*flag.FlagSet)) (rest []string, err error) {
	fs := flag.NewFlagSet(name, flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	define(fs)
	err = fs.Parse(words)
	if err == nil {
		return fs.Args(), nil
	}
	// Package flag has no error types: the word at which it stopped tells which error
	// it is.
	stopped := words[len(words)-fs.NArg()-1]
	given, value, valued := strings.Cut(strings.TrimLeft(stopped, "-"), "=")
	e := &ops.Error{Code: ops.BadInput, Field: given, Message: lang.Said(err)}
	switch f := fs.Lookup(given); {
	case f == nil && strings.HasPrefix(stopped, "-"):
		var known []string
		fs.VisitAll(func(f *flag.Flag) { known = append(known, "--"+f.Name) })
		e.Message = lang.Text{EN: "%s has no flag --%s", ZH: "%s 没有选项 --%s"}.With(name, given)
		if len(known) > 0 {
			e.Fix = lang.Text{EN: "%s takes %s", ZH: "%s 可用：%s"}.With(name, strings.Join(known, ", "))
		}
	case f != nil && !valued:
		e.Message = lang.Text{EN: "--%s needs a value", ZH: "--%s 需要一个值"}.With(given)
	case f != nil:
		e.Message = lang.Text{EN: "%q is not a value for --%s", ZH: "%q 不是 --%s 的有效值"}.With(value, given)
	}
	return nil, e
}

// skillsCommand lists, shows, exports or evaluates the built-in skills.
func skillsCommand(ctx context.Context, sh *shell, words []string) error {
	if len(words) == 0 {
		words = []string{"list"}
	}
	switch verb, rest := words[0], words[1:]; {
	case verb == "list" && len(rest) == 0:
		if sh.json {
			return sh.printJSON(map[string]any{"skills": skillList()})
		}
		var s view.Section
		for _, k := range skills.All() {
			s.Facts = append(s.Facts, view.Fact{Name: k.Name, Value: k.Description})
		}
		return sh.draw(view.Doc{Sections: []view.Section{s}})
	case verb == "show" && len(rest) == 1:
		k, ok := skills.Get(rest[0])
		if !ok {
			return noSkill(rest[0])
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
	case verb == "eval" && len(rest) <= 1:
		return evalSkills(ctx, sh, rest)
	case verb == "export" && len(rest) == 2:
		return exportSkill(rest[0], rest[1])
	}
	return &ops.Error{Code: ops.BadInput, Message: lang.Text{EN: "skills list, skills show NAME, skills export NAME|all FOLDER, or skills eval [NAME]", ZH: "用法：skills list、skills show NAME、skills export NAME|all FOLDER 或 skills eval [NAME]"}}
}

// skillList returns the skills for JSON output.
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
func evalSkills(ctx context.Context, sh *shell, names []string) error {
	all, err := eval.Load(eval.Questions)
	if err != nil {
		return err
	}
	if len(names) == 1 {
		qs, ok := all[names[0]]
		if !ok {
			return noSkill(names[0])
		}
		all = map[string][]eval.Question{names[0]: qs}
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

// slackCommand prints the app's manifest.
func slackCommand(_ context.Context, sh *shell, words []string) error {
	if len(words) == 0 || words[0] != "manifest" {
		return &ops.Error{Code: ops.BadInput, Message: lang.Text{EN: "slack manifest [--url https://…]", ZH: "用法：slack manifest [--url https://…]"}}
	}
	url := ""
	if _, err := flags("slack manifest", words[1:], func(f *flag.FlagSet) { f.StringVar(&url, "url", "", "") }); err != nil {
		return err
	}
	cfg, err := loadConfig()
	if err != nil {
		return err
	}
	m, err := install.Manifest(install.ManifestOptions{URL: url, Policy: slackPolicy(nil, cfg), Install: cfg.Slack.Install.URL})
	if err != nil {
		return &ops.Error{Code: ops.BadInput, Field: "url", Message: lang.Said(err)}
	}
	_, err = sh.out.Write(append(bytes.TrimRight(m, "\n"), '\n'))
	return err
}

// sudoersCommand prints the rule that lets the server's login act for people.
func sudoersCommand(_ context.Context, sh *shell, words []string) error {
	login, group := "", ""
	if _, err := flags("sudoers", words, func(f *flag.FlagSet) {
		f.StringVar(&login, "login", "", "")
		f.StringVar(&group, "group", "", "")
	}); err != nil {
		return err
	}
	for field, name := range map[string]string{"login": login, "group": group} {
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
	rule, err := cluster.Sudoers(login, group, helpers)
	if err != nil {
		return &ops.Error{Code: ops.Failed, Field: "program", Message: lang.Said(err), Fix: lang.Text{EN: "install the package, or: install -o root -m 755 megatron-ops /usr/local/bin/", ZH: "请安装软件包，或执行：install -o root -m 755 megatron-ops /usr/local/bin/"}}
	}
	_, err = io.WriteString(sh.out, rule)
	return err
}

// unixName matches names that useradd and groupadd accept.
var unixName = lazy.New(`^[a-z_][a-z0-9_-]{0,31}$`)

// linkCommand writes a code's file on the cluster as the person who runs it.
func linkCommand(ctx context.Context, sh *shell, words []string) error {
	if len(words) != 1 {
		return &ops.Error{Code: ops.BadInput, Field: "code", Message: lang.Text{EN: "link CODE: the code that /megatron link shows", ZH: "用法：link CODE，CODE 是 /megatron link 显示的代码"}}
	}
	cfg, err := loadConfig()
	if err != nil {
		return err
	}
	if cfg.Slack.LinkDir == "" {
		return &ops.Error{Code: ops.BadInput, Field: "slack.link_dir", Message: lang.Text{EN: "no folder for link codes is configured here", ZH: "这里没有配置存放绑定代码的目录"}, Fix: lang.Text{EN: "an operator sets slack.link_dir in /etc/megatron-ops/megatron-ops.yaml to a folder with mode 1777", ZH: "请管理员在 /etc/megatron-ops/megatron-ops.yaml 中把 slack.link_dir 设为权限 1777 的目录"}}
	}
	if err := linkFolder(cfg.Slack).Write(ctx, words[0]); err != nil {
		code := ops.Failed
		if !errors.Is(err, fs.ErrPermission) && !errors.Is(err, fs.ErrNotExist) {
			code = ops.BadInput
		}
		return &ops.Error{Code: code, Field: "code", Message: lang.Said(err)}
	}
	fmt.Fprintln(sh.out, lang.Text{EN: "written: press the button in Slack now", ZH: "已写入：现在在 Slack 中点击按钮"}.In(sh.lang))
	return nil
}

// mcpConfig prints how a client starts this program, or connects to a running server
// with the token that serve created, if this account may read it.
func mcpConfig(sh *shell, words []string) error {
	client := ""
	start, err := mcpStart("mcp config", words, func(f *flag.FlagSet) { f.StringVar(&client, "client", "", "") })
	if err != nil {
		return err
	}
	names := clients.Names()
	if client != "" {
		names = []string{client}
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

// mcpStart returns how a client starts this program, or connects to a running server,
// as the flags of a subcommand say.
func mcpStart(name string, words []string, own func(*flag.FlagSet)) (clients.Start, error) {
	start := clients.Start{Env: clients.PassedOn(os.Getenv)}
	rest, err := flags(name, words, func(f *flag.FlagSet) {
		own(f)
		f.StringVar(&start.URL, "url", "", "")
		for _, name := range []string{"toolsets", "tools", "roots"} {
			f.Func(name, "", func(list string) error { start.Args = append(start.Args, "--"+name, list); return nil })
		}
		f.BoolFunc("read-only", "", func(string) error { start.Args = append(start.Args, "--read-only"); return nil })
	})
	if err != nil {
		return start, err
	}
	if len(rest) > 0 {
		return start, &ops.Error{Code: ops.BadInput, Field: rest[0], Message: lang.Text{EN: "mcp does not accept %q", ZH: "mcp 不认识 %q"}.With(rest[0]), Fix: lang.Text{
			EN: "mcp config --client NAME, or mcp doctor", ZH: "mcp config --client 名称，或 mcp doctor",
		}}
	}
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
func mcpDoctor(ctx context.Context, sh *shell, words []string) error {
	start, err := mcpStart("mcp doctor", words, func(*flag.FlagSet) {})
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
