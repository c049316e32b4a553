package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops/operations"
)

// manCommand prints the manual page in the roff format that man(1) reads.
func manCommand(_ context.Context, sh *shell, _ none) error {
	var b strings.Builder
	fmt.Fprintf(&b, ".TH MEGATRON-OPS 1 \"\" \"megatron-ops %s\"\n.SH NAME\nmegatron\\-ops \\- %s\n", roff(version()),
		roff(lang.Text{EN: "plan, render, submit, watch and diagnose Megatron-LM jobs on Slurm", ZH: "在 Slurm 上检查、渲染、提交、监视和诊断 Megatron-LM 作业"}.In(sh.lang)))
	b.WriteString(".SH SYNOPSIS\n.B megatron\\-ops\n.RI [ flags ] \" command \" [ words ]\n")
	b.WriteString(".SH COMMANDS\n")
	all := operations.All()
	for _, c := range commands() {
		all = append(all, c.Op)
	}
	for _, op := range all {
		d := opHelp(op, sh.lang)
		fmt.Fprintf(&b, ".SS \"%s\"\n%s.\n", roff(d.Title), roff(op.Summary.In(sh.lang)))
		if help := op.Help.In(sh.lang); help != "" {
			fmt.Fprintf(&b, ".PP\n%s\n", roff(help))
		}
		for _, s := range d.Sections {
			for _, f := range s.Facts {
				fmt.Fprintf(&b, ".TP\n.B %s\n%s\n", roff(f.Name), roff(f.Value))
			}
		}
		if op.Example != "" {
			fmt.Fprintf(&b, ".PP\n.EX\nmegatron\\-ops %s\n.EE\n", roff(op.Example))
		}
	}
	fmt.Fprintf(&b, ".SH EXIT STATUS\n%s\n", roff(exitCodes.In(sh.lang)))
	b.WriteString(".SH FILES\n.TP\n.I megatron\\-ops.yaml\n")
	b.WriteString("in the working directory, else ~/.config/megatron\\-ops/, else /etc/megatron\\-ops/\n")
	_, err := fmt.Fprint(sh.out, b.String())
	return err
}

// roff escapes text so that it contains no roff requests or escapes.
func roff(text string) string {
	text = strings.NewReplacer(`\`, `\e`, "-", `\-`, `"`, `\(dq`).Replace(text)
	lines := strings.Split(text, "\n")
	for i, l := range lines {
		if strings.HasPrefix(l, ".") || strings.HasPrefix(l, "'") {
			lines[i] = `\&` + l
		}
	}
	return strings.Join(lines, "\n")
}
