// Package consent describes completely what a call would do, for an approver or for the
// caller to agree to. Every surface asks with the same words. A digest identifies what
// was agreed to, so that nothing else is executed.
package consent

import (
	"cmp"
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
	"github.com/megatron-ops/megatron-ops/internal/ops/smoke"
	"github.com/megatron-ops/megatron-ops/internal/policy"
	"github.com/megatron-ops/megatron-ops/internal/redact"
	"github.com/megatron-ops/megatron-ops/internal/view"
	"github.com/megatron-ops/megatron-ops/knowledge/rules"
	"github.com/megatron-ops/megatron-ops/slurm"
	"github.com/megatron-ops/megatron-ops/slurm/job"
)

// A Request is one call as it is put to a person.
type Request struct {
	// Op is the operation's name.
	Op string
	// Headline says in one line what starts, ends or changes.
	Headline lang.Text
	// Beyond says why the call is beyond what needs nobody's approval here; empty for one within.
	Beyond string
	// Foreign reports that the call is about a job that is not the caller's.
	Foreign bool
	// Use is the most that the call can use; Takes is false for a call that uses
	// nothing of the cluster.
	Use   policy.Use
	Takes bool
	// Asked lists every argument and every field of the specification, in full, in words
	// and by its name, with the old value if a job has one.
	Asked []lang.Text
	// Warnings are the plan's warnings.
	Warnings []string
	// Changes are the differences from the same person's last completed run of this
	// name, the job Since. Both are empty if there is none.
	Changes []job.Change
	Since   slurm.JobID
	// Script is what would be submitted; empty for a call that submits none.
	Script string
	// Digest is the SHA-256 of the script in hex; empty without one.
	Digest string
	// Shown identifies what else is shown, as ops.Error.Shown does.
	Shown string
}

// Of describes what the call would do, without doing it. If the call would do nothing,
// stop is the operation's own answer, such as a plan with errors.
func Of(ctx context.Context, call *ops.Call, o ops.Op, in any) (r Request, stop any, err error) {
	r.Op, r.Headline = o.Name, lang.Same(o.Name)
	now, unknown := currentJob(ctx, call, in)
	if dry := withBool(in, "dry_run", true); dry != nil {
		out, err := o.Run(ctx, Preview(call), dry)
		if err != nil {
			return r, nil, err
		}
		if f, ok := out.(ops.Finder); ok && f.Found() && !IsSet(in, "force") {
			return r, out, nil
		}
		r.addPlan(out, call.Lang)
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
	if unknown != nil {
		return r, nil, unknown
	}
	if now != nil {
		r.Foreign = now.User != "" && now.User != call.Who.User
		state := lang.Text{
			EN: "%[1]s job %[2]s %[3]s of %[4]s: %[5]s, %[6]s, %[7]s%[8]s",
			ZH: "%[1]s：%[4]s 的作业 %[2]s %[3]s，状态 %[5]s，%[6]s、%[7]s%[8]s",
		}.With(o.Name, now.ID, strconv.Quote(now.Name), printable(now.User), now.State,
			ops.Counted(max(now.NumNodes, len(now.Nodes)), "node"), ops.Counted(now.GPUs, "GPU"), runTime(*now))
		if r.Headline.EN == o.Name {
			r.Headline = state
		} else {
			r.Asked = append(r.Asked, state)
		}
	}
	if IsSet(in, "sync") { // describe what is copied before the job is submitted
		r.Asked = append(r.Asked, r.Headline)
	}
	if use, takes, err := policy.Of(ctx, call, in); err == nil {
		r.Use, r.Takes = use, takes
	}
	if of, ok := in.(launch.Specified); ok {
		if full, err := launch.Resolve(call, *of.Specification()); err == nil {
			full = full.WithDefaults()
			if _, trial := in.(*smoke.In); !trial { // its own words say how much smaller its jobs are
				r.Headline = lang.Text{EN: "%s %s", ZH: "%s %s"}.With(o.Name, sizeText(full, r.Use))
			}
			for _, a := range fields("", reflect.ValueOf(full)) {
				r.Asked = append(r.Asked, a.said())
			}
			r.compareWithLast(ctx, call, full)
		}
	}
	r.Asked = append(r.Asked, arguments(in, now)...)
	return r, nil, nil
}

// Most returns the most that the call can use, to be kept with the request; nil where the
// script binds it. A job that a call changes may grow while the request waits.
func (r Request) Most() *ops.Size {
	if !r.Takes || r.Script != "" {
		return nil
	}
	return &ops.Size{GPUs: r.Use.GPUs, Hours: min(r.Use.Hours, math.MaxFloat64), GPUHours: min(r.Use.GPUHours, math.MaxFloat64)}
}

// Approval returns the request that somebody else decides about; why says why they must.
func (r Request) Approval(who ops.Caller, why string) ops.Approval {
	r.Beyond = "" // why says it
	return ops.Approval{Op: r.Op, Who: who, Why: why, Shown: r.Sections(lang.EN), Digest: r.Agreement(), Most: r.Most()}
}

// Approved reports whether an operator has approved the call, and asks for that where none has.
// The call is then confirmed for what they have seen.
func (r Request) Approved(ctx context.Context, call *ops.Call, in any, why string) (bool, error) {
	by, err := call.Approved(ctx, r.Approval(call.Who, why), in)
	if by == "" {
		return false, err
	}
	Agree(call, r.Agreement())
	call.AgreedBy = by
	return true, nil
}

// Agreement names everything that the request shows: the script's digest, and whatever else a
// yes binds.
func (r Request) Agreement() string {
	if r.Shown == "" {
		return r.Digest
	}
	return r.Digest + "+" + r.Shown
}

// Agree marks the call as confirmed for what an agreement names.
func Agree(call *ops.Call, agreement string) {
	call.Confirmed = true
	call.Agreed, call.Shown, _ = strings.Cut(agreement, "+")
}

// StillWithin refuses a call that can use more by now than was shown.
func StillWithin(ctx context.Context, call *ops.Call, in any, shown *ops.Size) error {
	if shown == nil {
		return nil
	}
	use, takes, err := policy.Of(ctx, call, in)
	if err != nil {
		return err
	}
	if !takes || (Request{Use: use, Takes: true}).Most().Within(shown) {
		return nil
	}
	return &ops.Error{
		Code: ops.NotAllowed, Message: lang.Text{
			EN: "this can use more now than the request showed: %s; nothing was done", ZH: "现在可能使用的资源超过了申请中显示的数量：%s；没有执行任何操作",
		}.With(mostUse(use)),
		Fix: lang.Text{EN: "ask again: the larger size has to be approved, too", ZH: "请重新申请：增大后的规模需要重新批准"},
	}
}

// runTime says how long a job has run, to be appended to a sentence. It is empty for a
// job that has not run.
func runTime(j slurm.Job) lang.Text {
	age := lang.Span(time.Duration(j.ElapsedS) * time.Second)
	switch {
	case j.State == slurm.Pending, j.State.Ended() && j.ElapsedS == 0:
		return lang.Text{}
	case j.State.Ended():
		return lang.Text{EN: ", ran for %s", ZH: "，运行了 %s"}.With(age)
	}
	return lang.Text{EN: ", running for %s", ZH: "，已运行 %s"}.With(age)
}

// Preview returns a copy of call for the time in which a person is asked: nothing is
// decided yet, so nothing is audited, nor recorded as begun.
func Preview(call *ops.Call) *ops.Call {
	p, svc := *call, *call.Service
	svc.Audit = nil
	p.Service = &svc
	p.Progress, p.Confirmed, p.Agreed, p.Shown, p.Key = nil, false, "", "", ""
	return &p
}

// addPlan adds the script and the warnings of a dry run.
func (r *Request) addPlan(out any, l lang.Lang) {
	if plan, ok := out.(launch.SubmitOut); ok {
		r.Script, r.Digest = plan.Script, Digest(plan.Script)
		for _, p := range plan.Problems {
			if p.Severity != rules.Note {
				w := p.Message
				if !strings.HasPrefix(w, p.Field) {
					w = l.Named(p.Field, w)
				}
				r.Warnings = append(r.Warnings, w)
			}
		}
	}
}

// Digest identifies a script.
func Digest(script string) string {
	sum := sha256.Sum256([]byte(script))
	return hex.EncodeToString(sum[:])
}

// compareWithLast finds the differences from the person's last completed run of this
// name.
func (r *Request) compareWithLast(ctx context.Context, call *ops.Call, full job.Spec) {
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

// currentJob returns the job that a call is about, nil if it names none, and an error if
// the cluster does not know it.
func currentJob(ctx context.Context, call *ops.Call, in any) (*slurm.Job, error) {
	id := ops.TextNamed(in, "job")
	if !slurm.IsJobID(id) {
		return nil, nil
	}
	_, j, err := call.Job(ctx, ops.TextNamed(in, "cluster"), slurm.JobID(id))
	if err != nil {
		return nil, err
	}
	return &j, nil
}

// heading is the headline, after a mark for a call that is beyond the limits.
func (r Request) heading() lang.Text {
	if r.Beyond == "" {
		return r.Headline
	}
	return lang.Text{EN: "BEYOND WHAT NEEDS NO APPROVAL HERE (%s): %s", ZH: "超出无需审批的限额（%s）：%s"}.With(r.Beyond, r.Headline)
}

// Text returns the request in English: the headline, every argument in full, the plan's
// warnings and the changes. Keys and passwords are masked.
func (r Request) Text() string {
	lines := append([]string{r.heading().EN + "?"}, r.asked(lang.EN)...)
	for _, w := range r.Warnings {
		lines = append(lines, "warning: "+w)
	}
	for _, c := range r.Changes {
		lines = append(lines, "since job "+string(r.Since)+": "+changeText(c).EN)
	}
	return redact.Lines(strings.Join(lines, "\n"))
}

// ShownScript returns the script as a person may see it.
func (r Request) ShownScript() string { return redact.Lines(redact.Clean(r.Script)) }

// ChangesIn returns Changes in a language, with keys and passwords masked.
func (r Request) ChangesIn(l lang.Lang) (lines []string) {
	for _, c := range r.Changes {
		lines = append(lines, changeText(c).In(l))
	}
	return masked(lines)
}

func masked(lines []string) (shown []string) {
	for _, line := range lines {
		shown = append(shown, redact.Text(line))
	}
	return shown
}

// asked returns Asked in a language.
func (r Request) asked(l lang.Lang) (lines []string) {
	for _, a := range r.Asked {
		lines = append(lines, a.In(l))
	}
	return lines
}

func changeText(c job.Change) lang.Text {
	mask := func(value string) string { // by the name, which is not beside the second value, nor in every language
		name := c.Field + ": "
		return cmp.Or(printable(strings.TrimPrefix(redact.Text(name+value), name)), "–")
	}
	return argument{field: printable(c.Field), value: mask(c.Old) + " → " + mask(c.New), means: specMeanings()[c.Field]}.said()
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
	textNoEnd    = lang.Text{EN: "%s WITHOUT A TIME LIMIT", ZH: "%s，没有时间限制"}
	textAgain    = lang.Text{EN: "%s at once, %s each job, AGAIN WITHOUT END", ZH: "同时 %s，每个作业 %s，无限次重复"}
	textHours    = lang.Text{EN: "%s at once, %s each job: %s", ZH: "同时 %s，每个作业 %s：共 %s"}
	textNotTold  = lang.Text{EN: "; unknown: %s", ZH: "；无法判断：%s"}
	textSame     = lang.Text{EN: "nothing", ZH: "没有变化"}
)

// unknownParts say in words what of a call's size could not be determined.
var unknownParts = map[policy.Unknown]lang.Text{
	policy.TimeUnknown:      {EN: "the time limit", ZH: "时间上限"},
	policy.GPUsUnknown:      {EN: "the GPUs", ZH: "GPU 数"},
	policy.PartitionUnknown: {EN: "the partition", ZH: "分区"},
	policy.TasksUnknown:     {EN: "the array's tasks", ZH: "作业数组的任务数"},
}

// facts are what an approver reads first.
func (r Request) facts(l lang.Lang) []view.Fact {
	var fs []view.Fact
	add := func(name lang.Text, value string) {
		if value != "" {
			fs = append(fs, view.Fact{Name: name.In(l), Value: redact.Text(value)})
		}
	}
	if r.Takes {
		add(textMost, mostUse(r.Use).In(l))
		add(textPlace, printable(strings.Join(r.Use.Partitions, ",")))
		add(textAccount, printable(r.Use.Account))
		add(textQOS, printable(r.Use.QOS))
	}
	if r.Script != "" && r.Since == "" {
		add(textHistory, textFirst.In(l))
	}
	add(textDigest, r.Digest)
	return fs
}

func mostUse(u policy.Use) lang.Text {
	gpus, hours := ops.Counted(u.GPUs, "GPU"), ops.CountedHours(u.Hours, false)
	said := textHours.With(gpus, hours, ops.CountedHours(u.GPUHours, true))
	switch {
	case math.IsInf(u.Hours, 0):
		said = textNoEnd.With(gpus)
	case math.IsInf(u.GPUHours, 0):
		said = textAgain.With(gpus, hours)
	}
	return lang.Text{EN: "%s%s", ZH: "%s%s"}.With(said, unknown(u))
}

// unknown names what could not be determined, to be appended to a sentence. It is empty if
// all could.
func unknown(u policy.Use) lang.Text {
	var en, zh []string
	for _, x := range u.Unknown {
		en, zh = append(en, unknownParts[x].EN), append(zh, unknownParts[x].ZH)
	}
	if len(en) == 0 {
		return lang.Text{}
	}
	return textNotTold.With(lang.Text{EN: strings.Join(en, ", "), ZH: strings.Join(zh, "、")})
}

// Sections show the whole request, the decisive part first and the script last.
func (r Request) Sections(l lang.Lang) []view.Section {
	ss := []view.Section{{Text: redact.Text(r.heading().In(l)), Facts: r.facts(l)}}
	if len(r.Warnings) > 0 {
		ss = append(ss, view.Section{Heading: textWarnings.In(l), Items: masked(r.Warnings)})
	}
	if r.Since != "" {
		items := r.ChangesIn(l)
		if len(items) == 0 {
			items = []string{textSame.In(l)}
		}
		ss = append(ss, view.Section{Heading: fmt.Sprintf(textSince.In(l), r.Since), Items: items})
	}
	ss = append(ss, view.Section{Heading: textAsked.In(l), Code: redact.Lines(strings.Join(r.asked(l), "\n"))})
	if r.Script != "" {
		ss = append(ss, view.Section{Heading: textScript.In(l), Code: r.ShownScript(), Lang: "bash", Fold: true})
	}
	return ss
}
