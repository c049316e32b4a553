package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/ops/operations"
)

// A command is what a command line begins with: an operation of the table, or something that only a
// shell does. run gets the words after the name.
type command struct {
	ops.Op
	run func(ctx context.Context, sh *shell, words []string) error
}

// only returns a command that is not an operation. Its words and flags are the fields of In, read as
// those of an operation are.
func only[In any](name string, summary lang.Text, example string, run func(context.Context, *shell, In) error) command {
	op := ops.Define[In, any](ops.Op{Name: name, Summary: summary, Example: example}, nil)
	return command{op, func(ctx context.Context, sh *shell, words []string) error {
		in := new(In)
		if err := op.Words(in, words); err != nil {
			return err
		}
		return run(ctx, sh, *in)
	}}
}

// none is the input of a command that takes neither words nor flags.
type none struct{}

// commands returns the commands that are not operations, in the order of the help.
func commands() []command {
	return []command{
		only("demo", lang.Text{EN: "the main job, end to end, on this machine", ZH: "在本机完整演示一次主要流程"}, "demo", demoCommand),
		only("mcp", lang.Text{EN: "serve coding agents on standard input and output", ZH: "通过标准输入输出为编码智能体提供 MCP 服务"}, "mcp", mcpCommand),
		only("serve", lang.Text{EN: "serve Slack and MCP over HTTP", ZH: "通过 HTTP 提供 Slack 与 MCP 服务"}, "serve --listen 127.0.0.1:8080", serve),
		only("mcp config", lang.Text{EN: "the settings with which Claude Code, Codex, Gemini CLI, Cursor or VS Code start it", ZH: "输出各客户端的 MCP 配置"}, "mcp config", mcpConfig),
		only("mcp doctor", lang.Text{EN: "what coding agents will see: the tools, the cluster, and which agents are installed here", ZH: "检查编码智能体会看到什么：工具、集群，以及本机装有哪些客户端"}, "mcp doctor", mcpDoctor),
		only("chat", lang.Text{EN: "the Slack bot at this terminal", ZH: "终端里的 Slack 机器人"}, "chat", chatCommand),
		only("doctor", lang.Text{
			EN: "check the environment and say what to fix (--report: a full report for a ticket, without secrets)",
			ZH: "检查运行环境，并指出要修复的地方（--report：输出可附在工单中的完整报告，不含秘密）",
		}, "doctor", doctor),
		only("init", lang.Text{EN: "examine this site, ask what is unclear, and write its profile (--yes: do not ask)", ZH: "探测本站点，询问不确定之处，并写出配置（--yes：不询问）"}, "init", initCommand),
		only("skills", lang.Text{EN: "list, show NAME, export NAME|all FOLDER, eval [NAME]", ZH: "list、show NAME、export NAME|all FOLDER、eval [NAME]"}, "skills show run-on-slurm", skillsCommand),
		only("slack manifest", lang.Text{EN: "the Slack app's manifest", ZH: "输出 Slack 应用清单"}, "slack manifest", slackManifest),
		only("link", lang.Text{EN: "prove to Slack who you are here, with its one-time code", ZH: "用一次性代码向 Slack 证明身份"}, "link CODE", linkCommand),
		only("web", lang.Text{EN: "a one-time link to the page that serve shows to browsers", ZH: "输出访问 serve 网页的一次性链接"}, "web 4711", webCommand),
		only("backup", lang.Text{EN: "copy the store to a new file while servers run", ZH: "在服务运行时把数据库备份到新文件"}, "backup state-2026-11-21.db", backupCommand),
		only("policy test", lang.Text{EN: "which specifications would be held for an operator's approval, and why", ZH: "哪些规格需要管理员审批，以及原因"}, "policy test job.yaml", policyTest),
		only("sudoers", lang.Text{EN: "the rule that lets serve act as the person who asks", ZH: "输出让 serve 以提问者身份执行的 sudo 规则"}, "sudoers --login megatron-ops --group researchers", sudoersCommand),
		watchCommand(),
		only("completion", lang.Text{EN: "a script with which bash, zsh or fish complete words, job ids and partitions", ZH: "输出 bash、zsh 或 fish 的补全脚本，可补全作业号与分区"}, "completion bash", completionCommand),
		only("man", lang.Text{EN: "the manual page, for man(1)", ZH: "输出 man(1) 手册页"}, "man", manCommand),
		only("version", lang.Text{EN: "the version", ZH: "版本"}, "version", versionCommand),
		only("help", lang.Text{EN: "this list, or one command's flags", ZH: "本列表，或某个命令的参数"}, "help submit", helpCommand),
	}
}

// lookup returns the command that words begin with, a name of two words before one of one, and the words
// after its name.
func lookup(words []string) (c command, rest []string, ok bool) {
	all := commands()
	for n := min(2, len(words)); n > 0; n-- {
		name := strings.Join(words[:n], " ")
		if i := slices.IndexFunc(all, func(c command) bool { return c.Name == name }); i >= 0 {
			return all[i], words[n:], true
		}
	}
	op, ok := operations.Lookup(words[0])
	return command{op, func(ctx context.Context, sh *shell, words []string) error { return sh.runTraced(ctx, op, words) }}, words[1:], ok
}

// beginningWith returns the commands whose names go on after a word.
func beginningWith(word string) []command {
	return slices.DeleteFunc(commands(), func(c command) bool { return !strings.HasPrefix(c.Name, word+" ") })
}

func (sh *shell) dispatch(ctx context.Context, words []string) error {
	if len(words) == 0 {
		return sh.help(nil)
	}
	if alias, ok := map[string]string{"-h": "help", "--help": "help", "--version": "version"}[words[0]]; ok {
		words = slices.Concat([]string{alias}, words[1:])
	}
	if i := slices.IndexFunc(words, func(w string) bool { return w == "-h" || w == "--help" || w == "--" }); i >= 0 && words[i] != "--" {
		return sh.help(words[:i])
	}
	if c, rest, ok := lookup(words); ok {
		return c.run(ctx, sh, rest)
	}
	return noCommand(words)
}

func noCommand(words []string) error {
	name := words[0]
	e := &ops.Error{Code: ops.BadInput, Field: "command", Message: lang.Text{EN: "there is no command %q", ZH: "没有命令 %q"}.With(name), Fix: lang.Text{EN: "see: megatron-ops help", ZH: "用法见：megatron-ops help"}}
	if group := beginningWith(name); len(group) > 0 {
		e.Message, e.Fix = lang.Text{EN: "there is no command %q", ZH: "没有命令 %q"}.With(strings.Join(words[:min(2, len(words))], " ")), lang.Same("megatron-ops "+group[0].Example)
	} else if again, refused := operations.OnceMore(words); len(again) > 0 || refused != nil {
		e = cmp.Or(refused, e)
		for i, r := range again {
			if i == 0 {
				e.Fix = lang.Text{EN: "`megatron-ops %s` %s", ZH: "`megatron-ops %s` %s"}.With(r.Command, r.Does)
				continue
			}
			e.Fix = lang.Text{EN: "%s, `megatron-ops %s` %s", ZH: "%s，`megatron-ops %s` %s"}.With(e.Fix, r.Command, r.Does)
		}
	} else if near := operations.Nearest(name); near != "" {
		e.Fix = lang.Text{EN: "did you mean `megatron-ops %s`?", ZH: "是否想写 `megatron-ops %s`？"}.With(near)
	}
	return e
}

func versionCommand(_ context.Context, sh *shell, _ none) error {
	sh.warnOfLang()
	if sh.json {
		return sh.printJSON(map[string]string{"version": version()})
	}
	_, err := fmt.Fprintln(sh.out, "megatron-ops", version())
	return err
}
