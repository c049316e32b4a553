// Package consent says, completely, what a call would do: what an approver or
// the caller themselves is asked to agree to. Every door asks with the same
// words, and what was agreed to is named by a digest, so that nothing else is
// carried out.
package consent

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/ops/launch"
	"github.com/megatron-ops/megatron-ops/internal/policy"
	"github.com/megatron-ops/megatron-ops/internal/redact"
	"github.com/megatron-ops/megatron-ops/internal/view"
	"github.com/megatron-ops/megatron-ops/knowledge/rules"
	"github.com/megatron-ops/megatron-ops/slurm"
	"github.com/megatron-ops/megatron-ops/slurm/job"
)

// A Request is one call as somebody is asked about it.
type Request struct {
	// Op is the operation's name.
	Op string
	// Headline says in one line what starts, ends or changes.
	Headline lang.Text
	// Foreign reports that the call is about a job that is not the caller's.
	Foreign bool
	// Use is the most that it can come to; Takes is false for a call that takes
	// nothing from the cluster.
	Use   policy.Use
	Takes bool
	// Asked is every argument and every field of the specification, in full, one a
	// line, with the old value where a job has one.
	Asked []string
	// Warnings are what the plan says against it.
	Warnings []string
	// Changes are what differs from the same person's last run of this name that
	// completed, Since; both are empty where there is none.
	Changes []job.Change
	Since   slurm.JobID
	// Script is what would be submitted; empty for a call that submits none.
	Script string
	// Digest is the SHA-256 of the script in hex; empty without one.
	Digest string
	// Shown names what else is shown, as ops.Error.Shown does.
	Shown string
}

// Of says what the call would do. Nothing is done. stop is the operation's own
// answer where the call would come to nothing, such as a plan with errors.
func Of(ctx context.Context, call *ops.Call, o ops.Op, in any) (r Request, stop any, err error) {
	r.Op, r.Headline = o.Name, lang.Same(o.Name)
	now := jobNow(ctx, call, in)
	if dry := withBool(in, "dry_run", true); dry != nil {
		out, err := o.Run(ctx, Preview(call), dry)
		if err != nil {
			return r, nil, err
		}
		if f, ok := out.(ops.Finder); ok && f.Found() && !isTrue(in, "force") {
			return r, out, nil
		}
		r.planned(out)
	}
	if unasked := withBool(in, "yes", false); unasked != nil {
		out, err := o.Run(ctx, Preview(call), unasked)
		e := ops.AsError(err)
		switch {
		case err == nil:
			return r, out, nil
		case !e.Confirm:
			return r, out, err
		}
		r.Headline, r.Shown = lang.Text{EN: "%s: %s", ZH: "%s：%s"}.With(o.Name, e.Message), e.Shown
	}
	if now != nil {
		r.Foreign = now.User != "" && now.User != call.Who.User
		state := lang.Text{
			EN: "%[1]s job %[2]s %[3]s of %[4]s: %[5]s, %[6]s, %[7]s%[8]s",
			ZH: "%[1]s：%[4]s 的作业 %[2]s %[3]s，状态 %[5]s，%[6]s、%[7]s%[8]s",
		}.With(o.Name, now.ID, strconv.Quote(now.Name), exact(now.User), now.State,
			ops.Counted(max(now.NumNodes, len(now.Nodes)), "node"), ops.Counted(now.GPUs, "GPU"), ran(*now))
		if r.Headline.EN == o.Name {
			r.Headline = state
		} else {
			r.Asked = append(r.Asked, state.EN)
		}
	}
	if isTrue(in, "sync") { // what is brought before the job is submitted
		r.Asked = append(r.Asked, r.Headline.EN)
	}
	if spec, ok := SpecOf(in); ok {
		if full, err := launch.Resolve(call, spec); err == nil {
			full = full.WithDefaults()
			r.Headline = lang.Text{EN: "%s %s", ZH: "%s %s"}.With(o.Name, size(full))
			r.Asked = append(r.Asked, written("", reflect.ValueOf(full))...)
			r.compare(ctx, call, full)
		}
	}
	r.Asked = append(r.Asked, changes(in, now)...)
	if use, takes, err := policy.Of(ctx, call.Service, in); err == nil {
		r.Use, r.Takes = use, takes
	}
	return r, nil, nil
}

// ran is for how long a job runs or ran, behind other words; one that waits does not.
func ran(j slurm.Job) lang.Text {
	age := ops.Span(time.Duration(j.ElapsedS) * time.Second)
	switch {
	case j.State == slurm.Pending, j.State.Ended() && j.ElapsedS == 0:
		return lang.Text{}
	case j.State.Ended():
		return lang.Text{EN: ", ran for %s", ZH: "，运行了 %s"}.With(age)
	}
	return lang.Text{EN: ", running for %s", ZH: "，已运行 %s"}.With(age)
}

// Preview is call while a person is being asked: nothing has been decided, so
// nothing is written down.
func Preview(call *ops.Call) *ops.Call {
	p, svc := *call, *call.Service
	svc.Audit = nil
	p.Service = &svc
	p.Progress, p.Confirmed, p.Agreed, p.Shown = nil, false, "", ""
	return &p
}

// planned takes the script and the warnings of a dry run.
func (r *Request) planned(out any) {
	if plan, ok := out.(launch.SubmitOut); ok {
		r.Script, r.Digest = plan.Script, Digest(plan.Script)
		for _, p := range plan.Problems {
			if p.Severity != rules.Note {
				r.Warnings = append(r.Warnings, p.Field+": "+p.Message)
			}
		}
	}
}

// Digest names a script.
func Digest(script string) string {
	sum := sha256.Sum256([]byte(script))
	return hex.EncodeToString(sum[:])
}

// compare finds what differs from the person's last run of this name that
// completed.
func (r *Request) compare(ctx context.Context, call *ops.Call, full job.Spec) {
	if call.Who.User == "" {
		return
	}
	st, err := call.Store()
	if err != nil {
		return
	}
	all, _ := st.Submissions(ctx, call.Who.User, full.Name, 20)
	for _, s := range all { // newest first
		cl := call.Clusters[s.Cluster]
		if s.JobID == "" || cl == nil {
			continue
		}
		var old job.Spec
		if j, err := cl.Job(ctx, s.JobID); err != nil || j.State != slurm.Completed || json.Unmarshal(s.Spec, &old) != nil {
			continue
		}
		r.Since, r.Changes = s.JobID, job.Diff(old.WithDefaults(), full)
		return
	}
}

// jobNow is the job that a call is about, or nil where the operation itself
// will say what is wrong with it.
func jobNow(ctx context.Context, call *ops.Call, in any) *slurm.Job {
	id := text(in, "job")
	if !slurm.IsJobID(id) {
		return nil
	}
	cluster := call.Clusters[call.Default]
	if name := text(in, "cluster"); name != "" {
		cluster = call.Clusters[name]
	}
	if cluster == nil {
		return nil
	}
	j, err := cluster.Job(ctx, slurm.JobID(id))
	if err != nil {
		return nil
	}
	return &j
}

// Text is the request in English: the headline, every argument in full, what
// the plan warns of and what changed. A key or password is masked.
func (r Request) Text() string {
	lines := append([]string{r.Headline.EN + "?"}, r.Asked...)
	for _, w := range r.Warnings {
		lines = append(lines, "warning: "+w)
	}
	for _, c := range r.Changes {
		lines = append(lines, "since job "+string(r.Since)+": "+changed(c))
	}
	return redact.Text(strings.Join(lines, "\n"))
}

func changed(c job.Change) string {
	return c.Field + ": " + or(c.Old, "–") + " → " + or(c.New, "–")
}

func or(s, other string) string {
	if s == "" {
		return other
	}
	return exact(s)
}

var (
	textMost     = lang.Text{EN: "At most", ZH: "最多占用"}
	textAccount  = lang.Text{EN: "Account", ZH: "账户"}
	textPlace    = lang.Text{EN: "Partition", ZH: "分区"}
	textQOS      = lang.Text{EN: "QOS", ZH: "QOS"}
	textWarnings = lang.Text{EN: "The plan warns", ZH: "检查中的警告"}
	textSince    = lang.Text{EN: "Changed since job %s, the last good run", ZH: "与上次成功的作业 %s 相比的变化"}
	textFirst    = lang.Text{EN: "no run of this name has completed yet", ZH: "同名作业还没有成功运行过"}
	textHistory  = lang.Text{EN: "Last good run", ZH: "上次成功的运行"}
	textAsked    = lang.Text{EN: "Asked for, in full", ZH: "完整请求"}
	textScript   = lang.Text{EN: "The script", ZH: "脚本"}
	textDigest   = lang.Text{EN: "SHA-256 of the script", ZH: "脚本的 SHA-256"}
	textNoEnd    = lang.Text{EN: "%d GPUs WITHOUT A TIME LIMIT", ZH: "%d 张 GPU，没有时间限制"}
	textHours    = lang.Text{EN: "%d GPUs at once, %s hours each job: %s GPU hours", ZH: "同时 %d 张 GPU，每个作业 %s 小时：共 %s GPU 小时"}
	textNotTold  = lang.Text{EN: "; cannot be told: %s", ZH: "；无法判断：%s"}
	textSame     = lang.Text{EN: "nothing", ZH: "没有变化"}
)

// facts are what an approver reads first.
func (r Request) facts(l lang.Lang) []view.Fact {
	var fs []view.Fact
	add := func(name lang.Text, value string) {
		if value != "" {
			fs = append(fs, view.Fact{Name: name.In(l), Value: redact.Text(value)})
		}
	}
	if r.Takes {
		add(textMost, most(r.Use).In(l))
		add(textPlace, exact(strings.Join(r.Use.Partitions, ",")))
		add(textAccount, exact(r.Use.Account))
		add(textQOS, exact(r.Use.QOS))
	}
	if r.Script != "" && r.Since == "" {
		add(textHistory, textFirst.In(l))
	}
	add(textDigest, r.Digest)
	return fs
}

func most(u policy.Use) lang.Text {
	said := textHours.With(u.GPUs, ops.Hours(u.Hours), ops.Hours(u.GPUHours))
	if math.IsInf(u.Hours, 0) {
		said = textNoEnd.With(u.GPUs)
	}
	if len(u.Unknown) > 0 {
		var names []string
		for _, x := range u.Unknown {
			names = append(names, string(x))
		}
		more := textNotTold.With(strings.Join(names, ", "))
		said = lang.Text{EN: said.EN + more.EN, ZH: said.ZH + more.ZH}
	}
	return said
}

// Sections show all of it, the decisive part first and the script last.
func (r Request) Sections(l lang.Lang) []view.Section {
	ss := []view.Section{{Text: redact.Text(r.Headline.In(l)), Facts: r.facts(l)}}
	if len(r.Warnings) > 0 {
		ss = append(ss, view.Section{Heading: textWarnings.In(l), Items: r.Warnings})
	}
	if r.Since != "" {
		items := []string{textSame.In(l)}
		if len(r.Changes) > 0 {
			items = nil
		}
		for _, c := range r.Changes {
			items = append(items, redact.Text(changed(c)))
		}
		ss = append(ss, view.Section{Heading: fmt.Sprintf(textSince.In(l), r.Since), Items: items})
	}
	ss = append(ss, view.Section{Heading: textAsked.In(l), Code: redact.Text(strings.Join(r.Asked, "\n"))})
	if r.Script != "" {
		ss = append(ss, view.Section{Heading: textScript.In(l), Code: redact.Text(redact.Clean(r.Script)), Lang: "bash", Fold: true})
	}
	return ss
}
