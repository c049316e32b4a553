package answers

import (
	"cmp"
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/knowledge/megatron"
	"github.com/megatron-ops/megatron-ops/knowledge/rules"
)

// releasesOf describes the releases that have a flag. A flag that was removed and came
// back has several ranges of releases.
func releasesOf(spans []megatron.Span) lang.Text {
	for i := 1; i < len(spans); i++ {
		if before := spans[i-1]; spans[i].Since > before.Until+1 {
			return lang.Text{EN: "%s, then again %s", ZH: "%s，之后又有：%s"}.With(releaseRange(spans[0].Since, before.Until), releasesOf(spans[i:]))
		}
	}
	all := megatron.Releases()
	first, last := spans[0].Since, spans[len(spans)-1].Until
	switch {
	case first == all[0] && last == all[len(all)-1]:
		return lang.Text{EN: "all that are known, %s to %s", ZH: "已知的全部版本，%s 至 %s"}.With(first.String(), last.String())
	case last == all[len(all)-1]:
		return lang.Text{EN: "since %s", ZH: "自 %s 起"}.With(first.String())
	case first == all[0]:
		return lang.Text{EN: "up to %s; gone since", ZH: "到 %s 为止，之后已移除"}.With(last.String())
	}
	return lang.Text{EN: "%s; gone since", ZH: "%s，之后已移除"}.With(releaseRange(first, last))
}

func releaseRange(first, last megatron.Release) lang.Text {
	if first == last {
		return lang.Same(first.String())
	}
	return lang.Text{EN: "%s to %s", ZH: "%s 至 %s"}.With(first.String(), last.String())
}

// releasesOfRule describes the releases that make a check; it is empty where all do.
func releasesOfRule(r rules.Rule) lang.Text {
	switch {
	case r.Since == r.Until:
		return lang.Same(r.Since)
	case r.Since != "" && r.Until != "":
		return lang.Text{EN: "%s to %s", ZH: "%s 至 %s"}.With(r.Since, r.Until)
	case r.Since != "":
		return lang.Text{EN: "since %s", ZH: "自 %s 起"}.With(r.Since)
	case r.Until != "":
		return lang.Text{EN: "up to %s", ZH: "到 %s 为止"}.With(r.Until)
	}
	return lang.Text{}
}

// requirement describes what a rule requires, its condition, and the releases that
// check it where these are not simply the flag's own. came is the flag's first release.
func requirement(r rules.Rule, flag string, came megatron.Release) lang.Text {
	says := r.Requirement
	if when := r.Condition; when.EN != "" && when.EN != "always" && when.EN != flag {
		says = lang.Text{EN: "%s (when: %s)", ZH: "%s（条件：%s）"}.With(says, when)
	}
	if r.Since == came.String() && r.Until == "" {
		r.Since = ""
	}
	if of := releasesOfRule(r); of.EN != "" {
		says = lang.Text{EN: "%s [%s]", ZH: "%s【%s】"}.With(says, of)
	}
	return says
}

// changesOf lists how each later definition of a flag differs from the one before.
func changesOf(spans []megatron.Span) []flagChange {
	var out []flagChange
	for i := 1; i < len(spans); i++ {
		was, is := spans[i-1].Flag, spans[i].Flag
		says := lang.Text{}
		add := func(what lang.Text, a, b string) {
			if a == b {
				return
			}
			one := lang.Text{EN: "%s %s → %s", ZH: "%s %s → %s"}.With(what, cmp.Or(a, "-"), cmp.Or(b, "-"))
			if says.EN != "" {
				one = lang.Text{EN: "%s; %s", ZH: "%s；%s"}.With(says, one)
			}
			says = one
		}
		add(lang.Text{EN: "default", ZH: "默认值"}, was.Default, is.Default)
		add(lang.Text{EN: "choices", ZH: "可选值"}, strings.Join(was.Choices, " "), strings.Join(is.Choices, " "))
		add(lang.Text{EN: "type", ZH: "类型"}, string(was.Type), string(is.Type))
		add(lang.Text{EN: "values", ZH: "取值个数"}, was.Nargs, is.Nargs)
		if says.EN != "" {
			out = append(out, flagChange{spans[i].Since.String(), says})
		}
	}
	return out
}

type flagChange struct {
	since string
	says  lang.Text
}
