package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/ops/operations"
	"github.com/megatron-ops/megatron-ops/internal/view"
)

// A surface is a command that is not an operation, with its description.
type surface struct {
	name string
	text lang.Text
}

var surfaces = []surface{
	{"demo", lang.Text{EN: "the main job, end to end, on this machine", ZH: "在本机完整演示一次主要流程"}},
	{"mcp", lang.Text{EN: "serve coding agents on standard input and output", ZH: "通过标准输入输出为编码智能体提供 MCP 服务"}},
	{"serve", lang.Text{EN: "serve Slack and MCP over HTTP", ZH: "通过 HTTP 提供 Slack 与 MCP 服务"}},
	{"mcp config", lang.Text{EN: "the settings with which Claude Code, Codex, Gemini CLI, Cursor or VS Code start it", ZH: "输出各客户端的 MCP 配置"}},
	{"mcp doctor", lang.Text{EN: "what coding agents will see: the tools, the cluster, and which agents are installed here", ZH: "检查编码智能体会看到什么：工具、集群，以及本机装有哪些客户端"}},
	{"chat", lang.Text{EN: "the Slack bot at this terminal", ZH: "终端里的 Slack 机器人"}},
	{"doctor", lang.Text{
		EN: "check the environment and say what to fix (--report: a full report for a ticket, without secrets)",
		ZH: "检查运行环境，并指出要修复的地方（--report：输出可附在工单中的完整报告，不含秘密）",
	}},
	{"init", lang.Text{EN: "examine this site, ask what is unclear, and write its profile (--yes: do not ask)", ZH: "探测本站点，询问不确定之处，并写出配置（--yes：不询问）"}},
	{"skills", lang.Text{EN: "list, show NAME, export NAME|all FOLDER, eval [NAME]", ZH: "list、show NAME、export NAME|all FOLDER、eval [NAME]"}},
	{"slack manifest", lang.Text{EN: "the Slack app's manifest", ZH: "输出 Slack 应用清单"}},
	{"link", lang.Text{EN: "prove to Slack who you are here, with its one-time code", ZH: "用一次性代码向 Slack 证明身份"}},
	{"web", lang.Text{EN: "a one-time link to the page that serve shows to browsers", ZH: "输出访问 serve 网页的一次性链接"}},
	{"backup", lang.Text{EN: "copy the store to a new file while servers run", ZH: "在服务运行时把数据库备份到新文件"}},
	{"policy test", lang.Text{EN: "which specifications would be held for an operator's approval, and why", ZH: "哪些规格需要管理员审批，以及原因"}},
	{"sudoers", lang.Text{EN: "the rule that lets serve act as the person who asks", ZH: "输出让 serve 以提问者身份执行的 sudo 规则"}},
	{"record", lang.Text{EN: "what this site's Slurm prints, anonymised, in a folder to attach to a report (--dir)", ZH: "将本站点 Slurm 的输出脱敏后存入目录，供附在报告中（--dir）"}},
	{"watch", watchSummary},
	{"completion", lang.Text{EN: "a script with which bash, zsh or fish complete words, job ids and partitions", ZH: "输出 bash、zsh 或 fish 的补全脚本，可补全作业号与分区"}},
	{"man", lang.Text{EN: "the manual page, for man(1)", ZH: "输出 man(1) 手册页"}},
	{"version", lang.Text{EN: "the version", ZH: "版本"}},
	{"help", lang.Text{EN: "this list, or one command's flags", ZH: "本列表，或某个命令的参数"}},
}

var exitCodes = lang.Text{
	EN: "0 done  1 failed, or not in time  2 bad usage or input, nothing was done  3 something was found  4 not allowed  5 not found",
	ZH: "0 完成  1 失败或等待超时  2 用法或输入有误，什么也没做  3 发现问题  4 不允许  5 未找到",
}

// help describes every command, or one.
func (sh *shell) help(words []string) error {
	if len(words) > 0 {
		if op, ok := operations.Lookup(words[0]); ok {
			return sh.draw(opHelp(op, sh.lang))
		}
		if words[0] == "watch" {
			return sh.draw(opHelp(watchOp(), sh.lang))
		}
		if i := slices.IndexFunc(surfaces, func(s surface) bool { return s.name == words[0] }); i >= 0 {
			return sh.draw(view.Doc{Title: "megatron-ops " + words[0], Sections: []view.Section{{Text: surfaces[i].text.In(sh.lang)}}})
		}
		return sh.dispatch(nil, []string{words[0]}) //nolint:staticcheck // an unknown word never uses its context
	}
	d := view.Doc{
		Title: lang.Text{
			EN: "megatron-ops: plan, render, submit, watch and diagnose Megatron-LM jobs on Slurm",
			ZH: "megatron-ops：在 Slurm 上检查、渲染、提交、监视和诊断 Megatron-LM 作业",
		}.In(sh.lang),
	}
	var opRows, others []view.Fact
	for _, op := range operations.All() {
		opRows = append(opRows, view.Fact{Name: op.Name, Value: op.Summary.In(sh.lang)})
	}
	for _, s := range surfaces {
		others = append(others, view.Fact{Name: s.name, Value: s.text.In(sh.lang)})
	}
	d.Sections = []view.Section{
		{Heading: lang.Text{EN: "operations", ZH: "操作"}.In(sh.lang), Facts: opRows},
		{Heading: lang.Text{EN: "other commands", ZH: "其他"}.In(sh.lang), Facts: others},
		{Heading: lang.Text{EN: "every command takes", ZH: "所有命令都接受"}.In(sh.lang), Facts: []view.Fact{
			{Name: "-o, --output", Value: "text | json | yaml"},
			{Name: "--lang", Value: "en | zh"},
			{Name: "-v, --verbose", Value: lang.Text{EN: "also show notes, which need no action", ZH: "同时显示无需处理的说明"}.In(sh.lang)},
			{Name: "--cluster", Value: lang.Text{EN: "local, slurm, or a cluster of the configuration", ZH: "local、slurm，或配置中的集群名"}.In(sh.lang)},
		}},
		{Heading: lang.Text{EN: "exit codes", ZH: "退出码"}.In(sh.lang), Text: exitCodes.In(sh.lang)},
	}
	d.Next = []string{"demo", `ask "how do I launch two nodes?"`, "help submit"}
	return sh.draw(d)
}

func (sh *shell) draw(d view.Doc) error {
	return view.Text(sh.out, d, view.Style{Color: sh.color, Program: "megatron-ops", Width: sh.width(), Next: lang.Text{EN: "try:", ZH: "试试："}.In(sh.lang)})
}

// opHelp describes an operation's arguments and flags.
func opHelp(op ops.Op, l lang.Lang) view.Doc {
	var args, flags []view.Fact
	usage := "megatron-ops " + op.Name
	for _, p := range op.Params() {
		text := p.Help.In(l)
		if len(p.Enum) > 0 {
			text += " (" + strings.Join(p.Enum, ", ") + ")"
		}
		if p.Arg {
			word := "<" + p.Name + ">"
			if !p.Required {
				word = "[" + p.Name + "]"
			}
			usage += " " + word
			args = append(args, view.Fact{Name: p.Name, Value: text})
			continue
		}
		name := "--" + p.Name
		if p.Short != 0 {
			name = fmt.Sprintf("-%c, %s", p.Short, name)
		}
		flags = append(flags, view.Fact{Name: name, Value: text})
	}
	if op.Batch != nil {
		flags = append(flags, view.Fact{Name: "--batch", Value: lang.Text{EN: "JSON Lines in a file, - for standard input: one answer a line", ZH: "从文件读取 JSON Lines（- 表示标准输入），每行一个回答"}.In(l)})
	}
	return view.Doc{
		Title: usage,
		Sections: []view.Section{
			{Text: op.Summary.In(l) + "\n\n" + op.Help.In(l)},
			{Facts: args},
			{Heading: lang.Text{EN: "flags", ZH: "参数"}.In(l), Facts: flags},
			{Heading: lang.Text{EN: "exit codes", ZH: "退出码"}.In(l), Text: exitCodes.In(l)},
		},
		Next: append([]string{op.Example}, op.Examples...),
	}
}
