package launch

import (
	"slices"

	"github.com/megatron-ops/megatron-ops/internal/checkout"
	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/ops/preflight"
	"github.com/megatron-ops/megatron-ops/internal/view"
	"github.com/megatron-ops/megatron-ops/internal/within"
	"github.com/megatron-ops/megatron-ops/knowledge/megatron"
	"github.com/megatron-ops/megatron-ops/knowledge/rules"
	"github.com/megatron-ops/megatron-ops/slurm/job"
)

// Judged is the release of Megatron-LM that an answer is based on, and why that one.
type Judged struct {
	checkout.Found
	Why string `json:"why"`
}

// withRelease finds the release that s runs, and returns s with it.
func withRelease(c *ops.Call, s job.Spec) (job.Spec, *Judged) {
	from := checkout.Sources{Spec: s.Megatron, Worktree: s.Worktree, Image: s.Container.Image, Site: c.SiteOf(s).Megatron}
	if s.Worktree != "" && preflight.SharesFiles(c, s) {
		from.Read = readSmall
	}
	found := checkout.Find(from)
	s.Megatron = found.Release
	return s, &Judged{found, found.Why.In(c.Lang)}
}

// fullSpec returns s with all its defaults and the release that it runs.
func fullSpec(c *ops.Call, s job.Spec) job.Spec {
	full, _ := withRelease(c, s.WithDefaults())
	return full
}

// readSmall reads the start of a regular file. The files of a checkout that name its
// release are short, except for a list of many branches.
func readSmall(path string) ([]byte, error) { return (*within.Folders)(nil).ReadFile(path, 4<<20) }

func (j *Judged) section(l lang.Lang) view.Section {
	return view.Section{Facts: []view.Fact{{
		Name:  lang.Text{EN: "judged by", ZH: "判断依据"}.In(l),
		Value: lang.Text{EN: "the rules of Megatron-LM %s: %s", ZH: "Megatron-LM %s 的规则：%s"}.With(j.Release, j.Why).In(l),
	}}}
}

// An Upgrade is what another release says about a job's arguments.
type Upgrade struct {
	Release string `json:"release"`
	// OK is false where that release would refuse to start.
	OK bool `json:"ok"`
	// New holds the problems that only that release has, and Gone those that it no
	// longer has.
	New  []rules.Problem `json:"new"`
	Gone []rules.Problem `json:"gone"`
	was  bool            // whether the job's own release would start it
}

// judgeAgainst also judges s by another release.
func judgeAgainst(c *ops.Call, s job.Spec, version string) (*Upgrade, error) {
	match, ok := megatron.ParseRelease(version)
	if !ok {
		return nil, ops.InputError("against",
			lang.Text{EN: "%q names no release of Megatron-LM", ZH: "%q 不是 Megatron-LM 的版本"}.With(version),
			lang.Text{EN: "a release such as 0.19.0, or main", ZH: "版本号如 0.19.0，或 main"})
	}
	now, _ := withRelease(c, s.WithDefaults())
	then := now
	then.Megatron = match.Release.String()
	a, b := rules.CheckIn(MegatronRun(now), c.Lang), rules.CheckIn(MegatronRun(then), c.Lang)
	return &Upgrade{Release: match.Release.String(), OK: b.OK, was: a.OK, New: onlyIn(b.Problems, a.Problems), Gone: onlyIn(a.Problems, b.Problems)}, nil
}

// onlyIn returns the problems of a that b does not have.
func onlyIn(a, b []rules.Problem) []rules.Problem {
	out := []rules.Problem{}
	for _, p := range a {
		if !slices.ContainsFunc(b, func(q rules.Problem) bool { return p.Rule == q.Rule && p.Field == q.Field }) {
			out = append(out, p)
		}
	}
	return out
}

// verdict says in one line whether the other release starts the job, and whether the
// job's own release disagrees.
func (u *Upgrade) verdict() lang.Text {
	switch {
	case u.OK && u.was:
		return lang.Text{EN: "Megatron-LM %s would start it as well", ZH: "Megatron-LM %s 同样可以启动"}
	case u.OK:
		return lang.Text{EN: "Megatron-LM %s would start it", ZH: "Megatron-LM %s 可以启动"}
	case u.was:
		return lang.Text{EN: "Megatron-LM %s would refuse it", ZH: "Megatron-LM %s 会拒绝启动"}
	}
	return lang.Text{EN: "Megatron-LM %s would refuse it as well", ZH: "Megatron-LM %s 同样会拒绝启动"}
}

func (u *Upgrade) section(l lang.Lang) view.Section {
	head := view.Section{Heading: u.verdict().With(u.Release).In(l)}
	if len(u.New)+len(u.Gone) == 0 {
		head.Text = lang.Text{EN: "its verdict on these arguments is the same", ZH: "它对这些参数的判断完全相同"}.In(l)
	}
	for _, p := range u.New {
		head.Items = append(head.Items, lang.Text{EN: "new: ", ZH: "新增："}.In(l)+problemItem(p, l))
	}
	for _, p := range u.Gone {
		head.Items = append(head.Items, lang.Text{EN: "no longer: ", ZH: "不再有："}.In(l)+p.Field+": "+p.Message)
	}
	return head
}
