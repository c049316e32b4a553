package launch

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/ops/preflight"
	"github.com/megatron-ops/megatron-ops/internal/store"
	"github.com/megatron-ops/megatron-ops/internal/view"
	"github.com/megatron-ops/megatron-ops/knowledge/rules"
	"github.com/megatron-ops/megatron-ops/slurm"
	"github.com/megatron-ops/megatron-ops/slurm/cluster"
	"github.com/megatron-ops/megatron-ops/slurm/job"
)

// SubmitIn is the job to submit.
type SubmitIn struct {
	SpecIn
	Into           slurm.JobID `json:"into,omitempty" placeholder:"JOBID" help:"start it as a step in this running job of mine, such as a salloc, instead of queueing it" zh:"作为步骤在我这个运行中的作业（如 salloc 分配）里启动，而不是排队"`
	IdempotencyKey string      `json:"idempotency_key,omitempty" name:"idempotency-key" placeholder:"KEY" help:"a second call with the same key answers with the first one's job" zh:"相同的键再次调用时，返回第一次提交的作业"`
	DryRun         bool        `json:"dry_run,omitempty" name:"dry-run" help:"plan and render, submit nothing" zh:"只做检查和渲染，不提交"`
	Yes            bool        `json:"yes,omitempty" help:"do not ask before submitting" zh:"不再询问，直接提交"`
	Sync           bool        `json:"sync,omitempty" help:"sync first" zh:"在通过 ssh 访问的集群上：先像 sync 一样传输本机的代码目录"`
	Force          bool        `json:"force,omitempty" help:"submit in spite of errors" zh:"有错误也提交"`
}

// SubmitOut is the result. JobID is nil where nothing was submitted.
type SubmitOut struct {
	JobID            *slurm.JobID    `json:"job_id"`
	Cluster          string          `json:"cluster"`
	Script           string          `json:"script"`
	LogPaths         []string        `json:"log_paths"`
	IdempotencyKey   string          `json:"idempotency_key"`
	AlreadySubmitted bool            `json:"already_submitted"`
	Problems         []rules.Problem `json:"problems"`
	Name             string          `json:"name"`
	// Refused says why nothing was submitted, where errors of the plan stopped the
	// submission.
	Refused string `json:"refused,omitempty"`
	// Sync is what the transfer of the worktree changed on the cluster, or would
	// change.
	Sync *SyncOut `json:"sync,omitempty"`
	// DryRun reports that the call did not ask to submit. Earlier says whether the job
	// would start sooner if it asked for less.
	DryRun  bool        `json:"dry_run,omitempty"`
	Earlier *EarlierOut `json:"earlier,omitempty"`
	// Page is the address of the job's page, where browsers reach one.
	Page string `json:"page,omitempty"`

	// elsewhere is what a command about the job must add where the job is not on the
	// default cluster.
	elsewhere string
	// chain says who submits the other jobs of a chain.
	chain lang.Text
}

// Found reports whether errors stopped the submission.
func (o SubmitOut) Found() bool { return o.JobID == nil && rules.Blocking(o.Problems) }

// Did reports whether there is a job, or whether the worktree was brought.
func (o SubmitOut) Did() bool { return o.JobID != nil || o.Sync != nil && o.Sync.Brought }

// Undone says, for the audit trail, why nothing was submitted; "" where something was.
func (o SubmitOut) Undone() string {
	switch {
	case o.JobID != nil:
		return ""
	case o.DryRun:
		return "dry run"
	}
	return "refused: " + o.errors()
}

// errors names the rules that have an error.
func (o SubmitOut) errors() string {
	var ids []string
	for _, p := range o.Problems {
		if p.Severity == rules.Error && !slices.Contains(ids, p.Rule) {
			ids = append(ids, p.Rule)
		}
	}
	return strings.Join(ids, ", ")
}

// Submit returns the operation submit.
func Submit() ops.Op {
	return ops.Define(ops.Op{
		Name: "submit", Effect: ops.Write, Toolset: ops.JobsSet, Core: true,
		Summary: lang.Text{EN: "plan, render and submit a job, exactly once", ZH: "检查、渲染并提交作业，且只提交一次"},
		Help: lang.Text{
			EN: "Use to start a run. Errors of the plan stop it. Give an idempotency key and a retry answers with the first job instead of starting a second. dry_run shows the script and submits nothing.",
			ZH: "用于启动训练。检查出的错误会阻止提交。给出幂等键后，重试会返回第一次的作业而不会再提交一次。dry_run 只显示脚本，不提交。",
		},
		Example:  "submit -f job.yaml --yes",
		Examples: []string{`submit -f job.yaml -N 4 -t 2:00:00 --dry-run`, `submit -f job.yaml --cluster far --sync`, `submit --from 4711 --env NCCL_DEBUG=INFO`, `submit -f job.yaml --sweep lr=1e-4,3e-4 --sweep seed=1..4`},
	}, submit)
}

func submit(ctx context.Context, c *ops.Call, in SubmitIn) (SubmitOut, error) {
	s, err := ReadSpec(c, in.SpecIn)
	if err != nil {
		return SubmitOut{}, err
	}
	cl, err := c.Cluster(s.Cluster)
	if err != nil {
		return SubmitOut{}, err
	}
	var tree *treeTransfer
	if in.Sync {
		if tree, s, err = transferFor(c, cl, s); err != nil {
			return SubmitOut{}, err
		}
	}
	key := in.IdempotencyKey
	var sc job.Script
	if opts := (job.Options{Version: c.Version, Site: c.SiteOf(s)}); in.Into != "" {
		var held *allocation
		if held, s, err = allocationFor(ctx, c, cl, in.Into, s); err != nil {
			return SubmitOut{}, err
		}
		cl = held
		sc, err = job.IntoStep(s, opts, in.Into)
	} else {
		sc, err = job.Render(s, opts)
	}
	if err != nil {
		return SubmitOut{}, ops.FieldErrors(err)
	}
	full := s.WithDefaults()
	out := SubmitOut{
		Cluster: cl.Name(), Script: sc.Text, Name: full.Name, DryRun: in.DryRun,
		IdempotencyKey: in.IdempotencyKey, LogPaths: []string{}, Problems: []rules.Problem{},
	}
	out.elsewhere = c.Elsewhere(cl.Name())
	out.LogPaths = append(out.LogPaths, sc.LogPaths...)
	if in.Into == "" {
		out.chain = chainText(full)
	}
	c.Step(1, 3, lang.Text{EN: "planned", ZH: "已检查"}.In(c.Lang))
	verdict, err := JudgeSpec(c, s)
	if err != nil {
		return out, err
	}
	out.Problems = verdict.Problems
	held, isStep := cl.(*allocation)
	var brings lang.Text
	confirmed := in.Yes || c.Confirmed
	if tree != nil && !(rules.Blocking(out.Problems) && !in.Force) {
		if brings, err = tree.before(ctx, c, &out, !in.DryRun && confirmed); err != nil {
			return out, err
		}
		confirmed = confirmed && !out.Sync.other
	}
	source := func() *cluster.GitSource { return nil }
	if !in.DryRun && confirmed {
		source = startSource(ctx, c, cl, s)
	}
	switch {
	case out.Sync.pending(): // the worktree must be transferred before the files can be checked
	case isStep: // the allocation's time limit applies
		out.Problems = slices.DeleteFunc(out.Problems, func(p rules.Problem) bool { return p.Field == "time" })
	case in.DryRun || !alreadyBegun(ctx, c, cl, key, sc.Hash):
		out.Problems = preflight.OnCluster(ctx, c, cl, s, fullSpec(c, s), sc, out.Problems)
	}
	if in.DryRun {
		out.Earlier = dryEarlier(ctx, cl, s, sc)
	}
	if in.DryRun || rules.Blocking(out.Problems) && !in.Force {
		if out.Found() {
			out.Refused = lang.Text{EN: "the plan has errors: %s", ZH: "检查发现错误：%s"}.With(out.errors()).In(c.Lang)
		}
		return out, nil
	}
	if !confirmed {
		would := out.question(full)
		if isStep {
			would = held.question(full.Name)
		}
		return out, out.unconfirmed(would, brings)
	}
	if err := c.RequireAgreed(sc.Text); err != nil {
		return out, err
	}
	prefix := ""
	if isStep { // the same key in two allocations means two launches
		prefix = string(held.job) + "/"
	}
	if key != "" {
		key = prefix + key
	}
	id, key, already, err := c.SubmitOnce(ctx, cl, s, sc, key)
	out.IdempotencyKey = strings.TrimPrefix(key, prefix)
	if err != nil {
		return out, err
	}
	out.JobID, out.AlreadySubmitted, out.Page = &id, already, c.JobPage(out.Cluster, id)
	if !already {
		keepSource(ctx, c, cl, id, source())
	}
	if isStep {
		if held.started == "" { // an earlier call started it
			_, held.started, _ = launchedSpec(ctx, c, cl.Name(), id)
		}
		out.LogPaths = held.logPaths(held.started)
		return out, nil
	}
	out.expandLogPaths(id)
	return out, nil
}

// question says what submitting the specification would do.
func (o SubmitOut) question(full job.Spec) lang.Text {
	gpus := full.WorldSize()
	if *full.GPUsPerNode == 0 && len(full.Components) == 0 {
		gpus = 0
	}
	would := lang.Text{EN: "this submits %s to %s: %s, %s, time limit %s", ZH: "将提交 %s 到 %s：%s，%s，时限 %s"}.
		With(full.Name, o.Cluster, ops.Counted(*full.Nodes, "node"), ops.Counted(gpus, "GPU"), timeLimit(full.Time))
	if o.chain.EN != "" {
		would = lang.Text{EN: "%s; %s", ZH: "%s；%s"}.With(would, o.chain)
	}
	return would
}

// unconfirmed asks for a yes to a submission, and before it to the transfer of its
// worktree where that is still to come. brings says what the transfer would do.
func (o SubmitOut) unconfirmed(would, brings lang.Text) *ops.Error {
	e := ops.ConfirmError(would)
	e.Details = warned(o.Problems)
	if o.Sync != nil {
		e.Shown = o.Sync.digest
	}
	if o.Sync.pending() {
		e.Message, e.Details = lang.Text{EN: "%s; then %s", ZH: "%s；然后%s"}.With(brings, would), append(e.Details, o.Sync.lines()...)
	}
	return e
}

// expandLogPaths puts the job's id and name into the paths of its logs.
func (o *SubmitOut) expandLogPaths(id slurm.JobID) {
	of := slurm.Job{ID: id, Name: o.Name}
	if options, err := slurm.ReadDirectives(o.Script); err == nil && options.Value("array") != "" {
		of.ID, of.State = id+"_%a", slurm.Pending // each element has its own file
	}
	for i, p := range o.LogPaths {
		o.LogPaths[i] = slurm.ExpandPattern(p, of)
	}
}

// chainText says who submits the other jobs of a chain; it is empty for a single job.
func chainText(s job.Spec) lang.Text {
	if s.Chain == nil || *s.Chain < 2 {
		return lang.Text{}
	}
	return lang.Text{
		EN: "it is the first of a chain of %d: each job submits the next when it starts, and `touch %s` ends the chain",
		ZH: "它是作业链（共 %d 个）的第一个：每个作业启动时提交下一个，`touch %s` 可结束作业链",
	}.With(*s.Chain, s.StopFile())
}

func timeLimit(given string) lang.Text {
	if given == "" {
		return lang.Text{EN: "the partition's", ZH: "由分区决定"}
	}
	return lang.Same(given)
}

// View says what was submitted, or what prevents the submission.
func (o SubmitOut) View(l lang.Lang) view.Doc {
	d := view.Doc{Sections: problemSections(o.Problems, l)}
	if o.Sync != nil {
		tree := o.Sync.View(l)
		d.Sections = append(append([]view.Section{{Text: tree.Title}}, tree.Sections...), d.Sections...)
	}
	switch {
	case o.JobID != nil:
		format := lang.Text{EN: "%s submitted to %s as job %s", ZH: "%s 已提交到 %s，作业号 %s"}
		if o.AlreadySubmitted {
			format = lang.Text{EN: "%s had been submitted to %s already: job %s", ZH: "%s 此前已提交到 %s：作业号 %s"}
		}
		d.Title, d.Tone = fmt.Sprintf(format.In(l), o.Name, o.Cluster, *o.JobID), view.Good
		d.Sections = append(d.Sections, view.Section{Text: o.chain.In(l)}, view.Section{Heading: lang.Text{EN: "logs", ZH: "日志"}.In(l), Items: o.LogPaths})
		if o.Page != "" {
			d.Sections = append(d.Sections, view.Section{Facts: []view.Fact{{Name: lang.Text{EN: "page", ZH: "网页"}.In(l), Value: o.Page}}})
		}
		d.Next = []string{"status " + string(*o.JobID) + o.elsewhere, "logs " + string(*o.JobID) + " --tail 20" + o.elsewhere}
	case o.Found():
		d.Title, d.Tone = fmt.Sprintf(lang.Text{
			EN: "%s was not submitted: fix the errors, or use --force", ZH: "%s 没有提交：请先修复错误，或使用 --force",
		}.In(l), o.Name), view.Bad
	default:
		d.Title = fmt.Sprintf(lang.Text{EN: "%s: dry run, nothing was submitted", ZH: "%s：试运行，没有提交"}.In(l), o.Name)
		switch e := o.Earlier; {
		case e == nil:
		case len(e.Options) > 0:
			d.Sections = append(d.Sections, e.Section("", l))
		case e.AsItIs != nil:
			d.Sections = append(d.Sections, view.Section{Text: lang.Text{EN: "it would start at %s", ZH: "预计将于 %s 开始"}.With(e.AsItIs.Format(time.DateTime)).In(l)})
		}
		d.Sections = append(d.Sections, view.Section{Code: o.Script, Lang: "bash", Fold: true})
	}
	return d
}

// alreadyBegun reports whether the submission was begun before. The cluster is then not
// asked again whether it would accept the job.
func alreadyBegun(ctx context.Context, c *ops.Call, cl ops.Cluster, key, hash string) bool {
	st, err := c.Store()
	if err != nil {
		return false
	}
	if key == "" {
		open, err := st.Unanswered(ctx, cl.Name(), c.Who.User, hash, c.Now().Add(-ops.Resumable))
		return err == nil && len(open) > 0
	}
	sub, err := st.Submission(ctx, c.Who.User+"/"+cl.Name()+"/"+key)
	return err == nil && sub.State != store.Rejected
}

// RunSubmit runs the operation submit for the same caller, who has confirmed it.
func RunSubmit(ctx context.Context, c *ops.Call, in SubmitIn) (SubmitOut, error) {
	out, err := Submit().Run(ctx, c, &in)
	made, _ := out.(SubmitOut)
	return made, err
}
