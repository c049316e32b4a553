package ops

import (
	"cmp"
	"io"
	"slices"
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/checkout"
	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/view"
	"github.com/megatron-ops/megatron-ops/internal/within"
	"github.com/megatron-ops/megatron-ops/knowledge/megatron"
	"github.com/megatron-ops/megatron-ops/knowledge/rules"
	"github.com/megatron-ops/megatron-ops/slurm/job"
)

// Judged is the release of Megatron-LM that an answer rests on, and why.
type Judged struct {
	checkout.Found
	Why string `json:"why"`
}

// asReleased finds the release that s runs, and returns s with it.
func (c *Call) asReleased(s job.Spec) (job.Spec, *Judged) {
	from := checkout.Sources{Spec: s.Megatron, Worktree: s.Worktree, Image: s.Container.Image, Site: c.site(s).Megatron}
	if s.Worktree != "" && c.hereToo(s) {
		from.Read = readSmall
	}
	found := checkout.Find(from)
	s.Megatron = found.Release
	return s, &Judged{found, found.Why.In(c.Lang)}
}

// readSmall reads the start of a regular file: what a checkout says of itself
// is short, but for a list of many branches.
func readSmall(path string) ([]byte, error) {
	f, err := (*within.Folders)(nil).Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, 4<<20))
}

func (j *Judged) section(l lang.Lang) view.Section {
	return view.Section{Facts: []view.Fact{{
		Name: "Megatron-LM " + j.Release, Value: lang.Text{EN: "judged by its rules: ", ZH: "据其规则判断："}.In(l) + j.Why,
	}}}
}

// An Upgrade is what another release says of a job's arguments.
type Upgrade struct {
	Release string `json:"release"`
	// OK is false where that release would refuse to start.
	OK bool `json:"ok"`
	// New are the problems that only that release has, Gone those that it has no more.
	New  []rules.Problem `json:"new"`
	Gone []rules.Problem `json:"gone"`
}

// against judges s by another release as well.
func (c *Call) against(s job.Spec, version string) (*Upgrade, error) {
	match, ok := megatron.ParseRelease(version)
	if !ok {
		return nil, badInput("against", "a release such as 0.19.0, or main", "%q names no release of Megatron-LM", version)
	}
	now, _ := c.asReleased(s.WithDefaults())
	then := now
	then.Megatron = match.Release.String()
	a, b := rules.CheckIn(megatronRun(now), c.Lang), rules.CheckIn(megatronRun(then), c.Lang)
	return &Upgrade{Release: match.Release.String(), OK: b.OK, New: onlyIn(b.Problems, a.Problems), Gone: onlyIn(a.Problems, b.Problems)}, nil
}

// onlyIn is the problems of a that b does not have.
func onlyIn(a, b []rules.Problem) []rules.Problem {
	out := []rules.Problem{}
	for _, p := range a {
		if !slices.ContainsFunc(b, func(q rules.Problem) bool { return p.Rule == q.Rule && p.Field == q.Field }) {
			out = append(out, p)
		}
	}
	return out
}

func (u *Upgrade) sections(l lang.Lang) []view.Section {
	verdict := lang.Text{EN: "Megatron-LM %s would start it", ZH: "Megatron-LM %s 可以启动"}
	if !u.OK {
		verdict = lang.Text{EN: "Megatron-LM %s would refuse it", ZH: "Megatron-LM %s 会拒绝启动"}
	}
	head := view.Section{Heading: verdict.With(u.Release).In(l)}
	if len(u.New)+len(u.Gone) == 0 {
		head.Text = lang.Text{EN: "nothing changes for these arguments", ZH: "对这些参数没有变化"}.In(l)
	}
	for _, p := range u.Gone {
		head.Items = append(head.Items, lang.Text{EN: "no longer said: ", ZH: "不再有："}.In(l)+p.Field+": "+p.Message)
	}
	return append([]view.Section{head}, problemSections(u.New, l)...)
}

// releasesOf says in which releases a flag is known.
func releasesOf(spans []megatron.Span) lang.Text {
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
	return lang.Text{EN: "%s to %s; gone since", ZH: "%s 至 %s，之后已移除"}.With(first.String(), last.String())
}

type flagChange struct {
	since string
	says  lang.Text
}

// changesOf says what each later definition of a flag has of its own.
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
