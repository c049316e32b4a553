package jobcontrol

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/view"
	"github.com/megatron-ops/megatron-ops/slurm"
)

// An accountant is a cluster that reports accounts, limits and shares.
type accountant interface {
	Associations(ctx context.Context, user string) ([]slurm.Association, error)
	QOS(context.Context) ([]slurm.QOS, error)
	Shares(context.Context) ([]slurm.Share, error)
}

// AccountsIn names a user; "all" asks for everybody's shares.
type AccountsIn struct {
	User string `json:"user,omitempty" arg:"" optional:"" help:"whose; mine where left out, all for everybody's shares in order" zh:"谁的；省略为我的，all 按公平份额列出所有人"`
	ops.OnCluster
}

// AccountsOut is what a user may use, and the user's fair share.
type AccountsOut struct {
	User string `json:"user"`
	// Ranking holds everybody's shares, highest factor first, where the call asks for
	// all.
	Ranking  []slurm.Share `json:"ranking,omitempty"`
	Accounts []AccountOut  `json:"accounts"`
	QOS      []slurm.QOS   `json:"qos"` // the QOS that at least one of the accounts may use
}

// An AccountOut is an account with the user's fair share in it.
type AccountOut struct {
	slurm.Association
	Standing *Standing `json:"standing"` // nil where the cluster keeps no shares
}

// A Standing is a user's fair share in one account.
type Standing struct {
	Factor float64 `json:"fair_share"`
	// Due is the share of the cluster that the user is entitled to, Used the share that
	// was used recently, and Ratio is Used / Due.
	Due   float64 `json:"due"`
	Used  float64 `json:"used"`
	Ratio float64 `json:"used_over_due"`
	// Rank is 1 for the user with the highest factor. Of is the number of users with a
	// factor.
	Rank int    `json:"rank"`
	Of   int    `json:"of"`
	Says string `json:"says"`
}

// Accounts returns the operation accounts.
func Accounts() ops.Op {
	return ops.Define(ops.Op{
		Name: "accounts", Effect: ops.Read, Toolset: ops.JobsSet,
		Summary: lang.Text{EN: "my accounts and QOS, their limits, and my fair share in words", ZH: "我的账户与 QOS、其限制，以及公平份额说明"},
		Help:    lang.Text{EN: "Use to choose account and qos, or to see why a limit holds a job.", ZH: "用于选择 account 与 qos，或查看作业受何限制。"},
		Example: "accounts",
	}, accounts)
}

func accounts(ctx context.Context, c *ops.Call, in AccountsIn) (AccountsOut, error) {
	out := AccountsOut{User: in.User, Accounts: []AccountOut{}, QOS: []slurm.QOS{}}
	if out.User == "" || out.User == "me" {
		out.User = c.Who.User
	}
	if !ops.IsLogin(out.User) {
		return out, ops.InputError("user", lang.Text{EN: "%q is no user", ZH: "%q 不是有效的用户名"}.With(out.User), lang.Text{EN: "a login name", ZH: "登录名"})
	}
	cl, err := c.Cluster(in.Cluster)
	if err != nil {
		return out, err
	}
	a, err := ops.Capable[accountant](cl, lang.Text{EN: "tell of accounts and limits", ZH: "提供账户与限额信息"})
	if err != nil {
		return out, err
	}
	if out.User == "all" {
		if out.Ranking, err = a.Shares(ctx); err != nil {
			return out, c.SlurmError(err, "")
		}
		out.Ranking = slices.DeleteFunc(out.Ranking, func(s slurm.Share) bool { return s.User == "" }) // accounts, which have no factor
		slices.SortStableFunc(out.Ranking, func(x, y slurm.Share) int { return cmp.Compare(y.Factor, x.Factor) })
		return out, nil
	}
	assocs, err := a.Associations(ctx, out.User)
	if err != nil {
		return out, c.SlurmError(err, "")
	}
	if len(assocs) == 0 {
		return out, ops.NotFoundError("user",
			lang.Text{EN: "%s has no account on %s", ZH: "%s 在 %s 上没有账户"}.With(out.User, cl.Name()),
			lang.Text{EN: "ask the operators to add an account", ZH: "请联系管理员添加账户"})
	}
	// A site without the multifactor plugin keeps no shares; the rest of the answer is
	// still valid.
	shares, _ := a.Shares(ctx)
	all, err := a.QOS(ctx)
	if err != nil {
		return out, c.SlurmError(err, "")
	}
	for _, as := range assocs {
		out.Accounts = append(out.Accounts, AccountOut{as, standing(shares, as.Account, out.User, c.Lang)})
	}
	for _, q := range all {
		if slices.ContainsFunc(assocs, func(a slurm.Association) bool { return slices.Contains(a.QOS, q.Name) }) {
			out.QOS = append(out.QOS, q)
		}
	}
	return out, nil
}

// standing finds the user's share in an account, and explains it in words (sshare(1);
// Slurm's "Fair Tree" page: with Fair Tree, factors are ranks).
func standing(shares []slurm.Share, account, user string, l lang.Lang) *Standing {
	var s *Standing
	for _, sh := range shares {
		if sh.User == user && strings.TrimSpace(sh.Account) == account {
			s = &Standing{Factor: sh.Factor, Due: sh.Norm, Used: sh.Used, Rank: 1}
		}
	}
	if s == nil {
		return nil
	}
	for _, sh := range shares {
		if sh.User == "" {
			continue // an account, which has no factor of its own
		}
		s.Of++
		if sh.Factor > s.Factor {
			s.Rank++
		}
	}
	if s.Due > 0 {
		s.Ratio = s.Used / s.Due
	}
	s.Says = fmt.Sprintf(lang.Text{
		EN: "fair share %.2f: place %d of %d; 1 goes first, 0 last, and 0.5 is the middle of the ranking (under the older formula: exactly your due was used). You are due %.1f %% and recently used %.1f %%, %s. Older use counts less each day, so waiting raises your share.",
		ZH: "公平份额 %.2f：第 %d 名，共 %d 名；1 最优先，0 最后，0.5 为排名居中（旧公式下表示恰好用完应得份额）。应得 %.1f %%，近期已用 %.1f %%，%s。历史用量会逐日衰减，等待即可回升。",
	}.In(l), s.Factor, s.Rank, s.Of, 100*s.Due, 100*s.Used, ratio(s.Ratio).In(l))
	return s
}

func ratio(r float64) lang.Text {
	switch {
	case r > 1.05:
		return lang.Text{EN: "%.1f times your due, so others go first", ZH: "为应得的 %.1f 倍，因此他人优先"}.With(r)
	case r < 0.95:
		return lang.Text{EN: "less than your due, so your jobs are raised", ZH: "少于应得份额，您的作业优先级会提高"}
	}
	return lang.Text{EN: "just about your due", ZH: "与应得份额大致相当"}
}

// View shows the accounts with their limits, the fair share in words, and the QOS.
func (o AccountsOut) View(l lang.Lang) view.Doc {
	if o.User == "all" {
		return o.ranking(l)
	}
	d := view.Doc{Title: fmt.Sprintf(lang.Text{EN: "accounts of %s", ZH: "%s 的账户"}.In(l), o.User)}
	t := &view.Table{Header: view.Columns(l, "account|partition|QOS|default|limits", "账户|分区|QOS|默认 QOS|限制")}
	var says []string
	for _, a := range o.Accounts {
		t.Rows = append(t.Rows, []string{a.Account, orAll(a.Partition, l), strings.Join(a.QOS, ","), a.DefaultQOS, limits(l,
			"jobs", "作业", a.MaxJobs, "in the queue", "排队", a.MaxSubmit, "time", "时限", a.MaxWall, "per job", "单作业", a.MaxTRES,
			"in total", "合计", a.GrpTRES, "budget", "机时预算", a.GrpMinutes)})
		if a.Standing != nil {
			says = append(says, l.Named(a.Account, a.Standing.Says))
		}
	}
	d.Sections = append(d.Sections, view.Section{Table: t})
	d.Add(view.Section{Heading: lang.Text{EN: "fair share", ZH: "公平份额"}.In(l), Items: says})
	q := &view.Table{Header: view.Columns(l, "QOS|priority|limits|preempts", "QOS|优先级|限制|可抢占")}
	for _, one := range o.QOS {
		q.Rows = append(q.Rows, []string{one.Name, strconv.Itoa(one.Priority), limits(l,
			"time", "时限", one.MaxWall, "per job", "单作业", one.MaxTRES, "per user", "每用户", one.MaxTRESPU, "jobs per user", "每用户作业", one.MaxJobsPU,
			"in the queue", "排队", one.MaxSubmit, "in total", "合计", one.GrpTRES), strings.Join(one.Preempts, ",")})
	}
	d.Add(view.Section{Table: q})
	return d
}

// ranking shows everybody's share: whose jobs go first, other things being equal.
func (o AccountsOut) ranking(l lang.Lang) view.Doc {
	t := &view.Table{Header: view.Columns(l, "place|user|account|fair share|due|used recently", "名次|用户|账户|公平份额|应得|近期已用")}
	for i, s := range o.Ranking {
		t.Rows = append(t.Rows, []string{
			strconv.Itoa(i + 1), s.User, strings.TrimSpace(s.Account), fmt.Sprintf("%.3f", s.Factor), fmt.Sprintf("%.1f %%", 100*s.Norm), fmt.Sprintf("%.1f %%", 100*s.Used),
		})
	}
	return view.Doc{Sections: []view.Section{{Table: t, Text: lang.Text{
		EN: "Whoever is higher goes first, all else being equal; the place counts, not the number.",
		ZH: "其他条件相同时，名次靠前者优先；重要的是相对名次而非数值。",
	}.In(l)}}}
}

func orAll(s string, l lang.Lang) string { return cmp.Or(s, lang.Text{EN: "all", ZH: "全部"}.In(l)) }

// limits joins triples of English name, Chinese name and value into one line, and
// leaves out those without a value.
func limits(l lang.Lang, triples ...string) string {
	var words []string
	for t := range slices.Chunk(triples, 3) {
		if t[2] != "" {
			words = append(words, lang.Text{EN: t[0], ZH: t[1]}.In(l)+" "+t[2])
		}
	}
	if len(words) == 0 {
		return "-"
	}
	return strings.Join(words, "; ")
}
