package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/ops/operations"
	"github.com/megatron-ops/megatron-ops/internal/view"
	"github.com/megatron-ops/megatron-ops/mcp/clients"
)

// A surface is a command that is not an operation: its name, its description, the words
// that follow its name, and its flags.
type surface struct {
	name  string
	text  lang.Text
	words string
	flags []flagText
}

// A flagText is a flag of a surface with its description.
type flagText struct {
	name string
	text lang.Text
}

// offerFlags are the flags of every surface that serves agents.
var offerFlags = []flagText{
	{"read-only", lang.Text{EN: "offer no operation that changes something", ZH: "不提供任何会改变状态的操作"}},
	{"toolsets", lang.Text{EN: "groups of tools to offer, with commas", ZH: "要提供的工具组，用逗号分隔"}},
	{"tools", lang.Text{EN: "further single operations to offer, with commas", ZH: "另外提供的单个操作，用逗号分隔"}},
	{"roots", lang.Text{EN: "folders below which agents may name files to read, with commas", ZH: "智能体可读取其中文件的目录，用逗号分隔"}},
}

var serverFlag = flagText{"url", lang.Text{EN: "a server that runs already, instead of starting one", ZH: "已在运行的服务的地址，不再另外启动"}}

var surfaces = []surface{
	{"demo", lang.Text{EN: "the main job, end to end, on this machine", ZH: "在本机完整演示一次主要流程"}, "", []flagText{
		{"furnish", lang.Text{EN: "a new folder for the tutorial: a specification, and stand-ins for Megatron-LM and uv", ZH: "为教程新建目录：作业规格，以及 Megatron-LM 与 uv 的替身"}},
	}},
	{"mcp", lang.Text{EN: "serve coding agents on standard input and output", ZH: "通过标准输入输出为编码智能体提供 MCP 服务"}, "", offerFlags},
	{"serve", lang.Text{EN: "serve Slack and MCP over HTTP", ZH: "通过 HTTP 提供 Slack 与 MCP 服务"}, "", append([]flagText{
		{"listen", lang.Text{EN: "address and port; 127.0.0.1:8080 where left out", ZH: "监听地址与端口；默认 127.0.0.1:8080"}},
		{"pprof", lang.Text{EN: "serve Go's profiles at this loopback address", ZH: "在该回环地址提供 Go 的性能剖析"}},
	}, offerFlags...)},
	{"mcp config", lang.Text{EN: "the settings with which Claude Code, Codex, Gemini CLI, Cursor or VS Code start it", ZH: "输出各客户端的 MCP 配置"}, "", append([]flagText{
		{"client", lang.Text{EN: "only for this one: " + strings.Join(clients.Names(), ", "), ZH: "只输出该客户端的：" + strings.Join(clients.Names(), "、")}}, serverFlag,
	}, offerFlags...)},
	{"mcp doctor", lang.Text{EN: "what coding agents will see: the tools, the cluster, and which agents are installed here", ZH: "检查编码智能体会看到什么：工具、集群，以及本机装有哪些客户端"}, "", append([]flagText{serverFlag}, offerFlags...)},
	{"chat", lang.Text{EN: "the Slack bot at this terminal", ZH: "终端里的 Slack 机器人"}, "", nil},
	{"doctor", lang.Text{
		EN: "check the environment and say what to fix (--report: a full report for a ticket, without secrets)",
		ZH: "检查运行环境，并指出要修复的地方（--report：输出可附在工单中的完整报告，不含秘密）",
	}, "", []flagText{{"report", lang.Text{EN: "one text for a ticket, without secrets", ZH: "输出可附在工单中的一份文本，不含秘密"}}}},
	{"init", lang.Text{EN: "examine this site, ask what is unclear, and write its profile (--yes: do not ask)", ZH: "探测本站点，询问不确定之处，并写出配置（--yes：不询问）"}, "", []flagText{
		{"yes", lang.Text{EN: "do not ask: accept every proposal", ZH: "不询问，接受所有建议"}},
		{"as", lang.Text{EN: "add the Slurm of SLURM_CONF to the file as a cluster of this name", ZH: "把 SLURM_CONF 所指的 Slurm 以该名称加入文件"}},
		{"file", lang.Text{EN: "the file to write, - to show it; megatron-ops.yaml where left out", ZH: "要写的文件，- 表示只显示；默认 megatron-ops.yaml"}},
		{"force", lang.Text{EN: "overwrite the file", ZH: "覆盖已有文件"}},
	}},
	{"skills", lang.Text{EN: "list, show NAME, export NAME|all FOLDER, eval [NAME]", ZH: "list、show NAME、export NAME|all FOLDER、eval [NAME]"}, "[list | show NAME | export NAME|all FOLDER | eval [NAME]]", nil},
	{"slack manifest", lang.Text{EN: "the Slack app's manifest", ZH: "输出 Slack 应用清单"}, "", []flagText{{"url", lang.Text{EN: "the https address at which Slack reaches serve, without Socket Mode", ZH: "不用 Socket Mode 时 Slack 访问 serve 的 https 地址"}}}},
	{"link", lang.Text{EN: "prove to Slack who you are here, with its one-time code", ZH: "用一次性代码向 Slack 证明身份"}, "CODE", nil},
	{"web", lang.Text{EN: "a one-time link to the page that serve shows to browsers", ZH: "输出访问 serve 网页的一次性链接"}, "", nil},
	{"backup", lang.Text{EN: "copy the store to a new file while servers run", ZH: "在服务运行时把数据库备份到新文件"}, "FILE", nil},
	{"policy test", lang.Text{EN: "which specifications would be held for an operator's approval, and why", ZH: "哪些规格需要管理员审批，以及原因"}, "FILE...", nil},
	{"sudoers", lang.Text{EN: "the rule that lets serve act as the person who asks", ZH: "输出让 serve 以提问者身份执行的 sudo 规则"}, "", []flagText{
		{"login", lang.Text{EN: "the account that serve runs as", ZH: "运行 serve 的账户"}},
		{"group", lang.Text{EN: "the group of the people whom it may act as", ZH: "可被代为执行的用户所在的组"}},
	}},
	{"watch", watchSummary, "", nil},
	{"completion", lang.Text{EN: "a script with which bash, zsh or fish complete words, job ids and partitions", ZH: "输出 bash、zsh 或 fish 的补全脚本，可补全作业号与分区"}, "bash|zsh|fish", nil},
	{"man", lang.Text{EN: "the manual page, for man(1)", ZH: "输出 man(1) 手册页"}, "", nil},
	{"version", lang.Text{EN: "the version", ZH: "版本"}, "", nil},
	{"help", lang.Text{EN: "this list, or one command's flags", ZH: "本列表，或某个命令的参数"}, "[command]", nil},
}

var exitCodes = lang.Text{
	EN: "0 done  1 failed, or not in time  2 bad usage or input, nothing was done  3 something was found  4 not allowed  5 not found",
	ZH: "0 完成  1 失败或等待超时  2 用法或输入有误，什么也没做  3 发现问题  4 不允许  5 未找到",
}

// help describes every command, or one.
func (sh *shell) help(words []string) error {
	sh.warnOfLang()
	if len(words) > 0 {
		if op, ok := operations.Lookup(words[0]); ok {
			return sh.draw(opHelp(op, sh.lang))
		}
		if words[0] == "watch" {
			return sh.draw(opHelp(watchOp(), sh.lang))
		}
		if found := surfacesOf(words); len(found) > 0 {
			for i, s := range found {
				if i > 0 {
					fmt.Fprintln(sh.out)
				}
				if err := sh.draw(s.help(sh.lang)); err != nil {
					return err
				}
			}
			return nil
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

// surfacesOf returns the surface that words begin with, the one of two words first, or
// else all whose names begin with the first word.
func surfacesOf(words []string) (found []surface) {
	for n := min(2, len(words)); n > 0; n-- {
		name := strings.Join(words[:n], " ")
		if i := slices.IndexFunc(surfaces, func(s surface) bool { return s.name == name }); i >= 0 {
			return surfaces[i : i+1]
		}
	}
	for _, s := range surfaces {
		if strings.HasPrefix(s.name, words[0]+" ") {
			found = append(found, s)
		}
	}
	return found
}

// help describes the words and flags that may follow the surface's name.
func (s surface) help(l lang.Lang) view.Doc {
	return view.Doc{Title: strings.TrimSpace("megatron-ops " + s.name + " " + s.words), Sections: []view.Section{{Text: s.text.In(l)}, flagSection(s.flagFacts(l), l)}}
}

// flagSection lists flags under their heading, or is empty where there are none.
func flagSection(flags []view.Fact, l lang.Lang) view.Section {
	if len(flags) == 0 {
		return view.Section{}
	}
	return view.Section{Heading: lang.Text{EN: "flags", ZH: "参数"}.In(l), Facts: flags}
}

func (s surface) flagFacts(l lang.Lang) (facts []view.Fact) {
	for _, f := range s.flags {
		facts = append(facts, view.Fact{Name: "--" + f.name, Value: f.text.In(l)})
	}
	return facts
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
			flagSection(flags, l),
			{Heading: lang.Text{EN: "exit codes", ZH: "退出码"}.In(l), Text: exitCodes.In(l)},
		},
		Next: append([]string{op.Example}, op.Examples...),
	}
}
