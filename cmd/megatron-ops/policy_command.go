package main

import (
	"context"
	"math"
	"os"
	"strconv"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/ops/operations"
	"github.com/megatron-ops/megatron-ops/internal/policy"
	"github.com/megatron-ops/megatron-ops/internal/view"
)

// A policyAnswer is the judgement of one specification by the site's limits.
type policyAnswer struct {
	File string     `json:"file"`
	Use  policy.Use `json:"use"`
	// Held are the reasons for which an operator must approve it; empty: nobody need.
	Held []string `json:"held"`
}

var (
	textHeld = lang.Text{EN: "%s: held for an operator", ZH: "%s：需要管理员审批"}
	textFree = lang.Text{EN: "%s: needs nobody's approval", ZH: "%s：无需审批"}
	textMost = lang.Text{EN: "at most %s at once, %s GPU hours", ZH: "最多同时 %s，%s GPU 小时"}
)

// A policyIn names the specifications to judge.
type policyIn struct {
	Files []string `arg:"" name:"file" text:"" help:"a specification to judge by the site's limits" zh:"要按站点限额判断的作业规格"`
}

// policyTest reports which specifications need an
// operator's approval, and why. It exits with 3 if any does.
func policyTest(ctx context.Context, sh *shell, in policyIn) error {
	cfg, err := loadConfig()
	if err != nil {
		return err
	}
	svc, err := sh.service()
	if err != nil {
		return err
	}
	submit, _ := operations.Lookup("submit")
	d, all := view.Doc{}, []policyAnswer{}
	held := false
	for _, file := range in.Files {
		text, err := os.ReadFile(file)
		if err != nil {
			return &ops.Error{Code: ops.BadInput, Field: "file", Message: lang.Said(err), Fix: lang.Text{
				EN: "name a specification that can be read", ZH: "请给出一个可读的作业规格文件",
			}}
		}
		asked := submit.NewIn()
		if err := submit.Words(asked, []string{"--yaml", string(text)}); err != nil {
			return err
		}
		use, _, err := policy.Of(ctx, &ops.Call{Service: svc}, asked)
		if err != nil {
			return err
		}
		a := policyAnswer{File: file, Use: use, Held: []string{}}
		s := view.Section{Heading: textFree.With(file).In(sh.lang), Text: textMost.With(ops.Counted(use.GPUs, "GPU"), hoursOf(use.GPUHours)).In(sh.lang)}
		for _, why := range cfg.Slack.Approval.Over(use) {
			a.Held = append(a.Held, why.EN)
			s.Items = append(s.Items, why.In(sh.lang))
			s.Heading, held = textHeld.With(file).In(sh.lang), true
		}
		all, d.Sections = append(all, a), append(d.Sections, s)
	}
	show := func() error { return sh.draw(d) }
	if sh.json {
		show = func() error { return sh.printJSON(map[string]any{"requests": all}) }
	}
	if err := show(); err != nil {
		return err
	}
	if held {
		return found
	}
	return nil
}

func hoursOf(v float64) string {
	if math.IsInf(v, 1) {
		return "∞"
	}
	return strconv.FormatFloat(math.Round(10*v)/10, 'f', -1, 64)
}
