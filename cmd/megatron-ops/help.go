package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/ops/operations"
	"github.com/megatron-ops/megatron-ops/internal/view"
)

var exitCodes = lang.Text{
	EN: "0 done  1 failed, or not in time  2 bad usage or input, nothing was done  3 something was found  4 not allowed  5 not found",
	ZH: "0 完成  1 失败或等待超时  2 用法或输入有误，什么也没做  3 发现问题  4 不允许  5 未找到",
}

// A helpIn names the command that help describes.
type helpIn struct {
	Command []string `arg:"" optional:"" help:"the command to describe" zh:"要说明的命令"`
}

func helpCommand(_ context.Context, sh *shell, in helpIn) error { return sh.help(in.Command) }

// help describes every command, or one.
func (sh *shell) help(words []string) error {
	sh.warnOfLang()
	if len(words) > 0 {
		all := beginningWith(words[0])
		if c, _, ok := lookup(words); ok {
			all = []command{c}
		}
		if len(all) == 0 {
			return noCommand(words)
		}
		for i, c := range all {
			if i > 0 {
				fmt.Fprintln(sh.out)
			}
			if err := sh.draw(opHelp(c.Op, sh.lang)); err != nil {
				return err
			}
		}
		return nil
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
	for _, c := range commands() {
		others = append(others, view.Fact{Name: c.Name, Value: c.Summary.In(sh.lang)})
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

// flagSection lists flags under their heading, or is empty where there are none.
func flagSection(flags []view.Fact, l lang.Lang) view.Section {
	if len(flags) == 0 {
		return view.Section{}
	}
	return view.Section{Heading: lang.Text{EN: "flags", ZH: "参数"}.In(l), Facts: flags}
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
			if p.Several {
				word += "..."
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
			{Text: strings.TrimSpace(op.Summary.In(l) + "\n\n" + op.Help.In(l))},
			{Facts: args},
			flagSection(flags, l),
			{Heading: lang.Text{EN: "exit codes", ZH: "退出码"}.In(l), Text: exitCodes.In(l)},
		},
		Next: append([]string{op.Example}, op.Examples...),
	}
}
