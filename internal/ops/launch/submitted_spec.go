package launch

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/shellword"
	"github.com/megatron-ops/megatron-ops/internal/store"
	"github.com/megatron-ops/megatron-ops/knowledge/megatron"
	"github.com/megatron-ops/megatron-ops/slurm"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/report"
	"github.com/megatron-ops/megatron-ops/slurm/job"
)

// SubmittedSpec returns the specification that a job was submitted with here. The
// specification may contain what only its owner should see, so it is only for that
// person and for operators. A call without a caller is the program's own.
func SubmittedSpec(ctx context.Context, c *ops.Call, cluster string, id slurm.JobID) (job.Spec, error) {
	cl, err := c.Cluster(cluster)
	if err != nil {
		return job.Spec{}, err
	}
	sub, err := c.FindSubmission(ctx, cl.Name(), id)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return job.Spec{}, unreadableNow(id, err)
	}
	var s job.Spec
	if err != nil || json.Unmarshal(sub.Spec, &s) != nil {
		return s, ops.NotFoundError("from",
			lang.Text{EN: "the specification of job %s on %s is not known: it was not submitted from here", ZH: "不知道 %[2]s 上作业 %[1]s 的规格：它不是从这里提交的"}.With(id, cl.Name()),
			lang.Text{EN: "import reads a script that was submitted otherwise", ZH: "以其他方式提交的脚本可用 import 读取"})
	}
	if c.Who != (ops.Caller{}) && !c.Who.Operator && c.Who.User != sub.Owner {
		return job.Spec{}, &ops.Error{Code: ops.NotAllowed, Field: "from", Message: lang.Text{EN: "the specification of job %s is its owner's", ZH: "作业 %s 的规格只属于其所有者"}.With(id), Fix: lang.Text{EN: "name a job of your own", ZH: "请指定自己的作业"}}
	}
	return s, nil
}

// unreadableNow returns the error about a submission that may exist but cannot be read
// at the moment.
func unreadableNow(id slurm.JobID, err error) error {
	return &ops.Error{
		Code:    ops.Failed,
		Message: lang.Text{EN: "what job %s was submitted with cannot be read at this moment: %s", ZH: "暂时无法读取作业 %s 提交时的规格：%s"}.With(id, err),
		Fix:     lang.Text{EN: "ask again in a moment", ZH: "请稍后再试"},
	}
}

// earlierSpec returns the specification of the earlier job that in names, without what
// in leaves out, and without the flags for which in or its text gives other values.
func earlierSpec(c *ops.Call, in SpecIn, text []string) (job.Spec, error) {
	s, err := SubmittedSpec(context.Background(), c, in.Spec.Cluster, in.From)
	if err != nil {
		return s, err
	}
	s.Env = maps.Clone(s.Env)
	drop := slices.Concat(flagNamesOf(in.Spec.Args), flagNamesOf(text))
	has := slices.Concat(flagNamesOf(s.Args), slices.Sorted(maps.Keys(s.Env)))
	for _, name := range in.Without { // a flag may be given without its dashes
		flag := "--" + strings.TrimPrefix(name, "--")
		if !slices.Contains(has, name) && !slices.Contains(has, flag) {
			return s, notInSpec(in.From, name, has)
		}
		delete(s.Env, name)
		drop = append(drop, flag)
	}
	s.Args = megatron.WithoutFlags(s.Args, drop)
	return s, nil
}

// notInSpec returns the error about a name to leave out that the job's specification does
// not have. has are the names that it has.
func notInSpec(id slurm.JobID, name string, has []string) error {
	fix := lang.Text{EN: "these may be left out: %s", ZH: "可以去掉的有：%s"}.With(strings.Join(has, ", "))
	if len(has) == 0 {
		fix = lang.Text{EN: "leave without out: the job has neither", ZH: "请省略 without：该作业两者都没有"}
	}
	return ops.InputError("without", lang.Text{EN: "job %s has no flag and no environment variable %q", ZH: "作业 %s 没有名为 %q 的参数或环境变量"}.With(id, name), fix)
}

// flagNamesOf returns the flags among words, without their values.
func flagNamesOf(words []string) []string {
	var names []string
	for _, w := range words {
		if name, _, _ := strings.Cut(w, "="); strings.HasPrefix(name, "--") {
			names = append(names, name)
		}
	}
	return names
}

// A SpecPatch is a change of a job's specification in the form that submit and plan
// accept: the job to start from, the fields that differ, and what is left out.
type SpecPatch struct {
	From    slurm.JobID `json:"from"`
	Spec    job.Spec    `json:"spec"`
	Without []string    `json:"without,omitempty"`
	// Changes describes the differences in words.
	Changes []string `json:"changes"`
}

// PatchOf returns the patch from before to after, or false where a patch cannot express
// it.
func PatchOf(id slurm.JobID, before, after job.Spec) (SpecPatch, bool) {
	p := SpecPatch{From: id}
	b, a, d := reflect.ValueOf(before), reflect.ValueOf(after), reflect.ValueOf(&p.Spec).Elem()
	for i := range a.NumField() {
		if reflect.DeepEqual(b.Field(i).Interface(), a.Field(i).Interface()) {
			continue
		}
		switch a.Type().Field(i).Name {
		case "Args":
			names := flagNamesOf(after.Args)
			for _, name := range flagNamesOf(before.Args) {
				if !slices.Contains(names, name) {
					p.Without = append(p.Without, name)
				}
			}
			for _, words := range flagGroups(after.Args) {
				if !slices.ContainsFunc(flagGroups(before.Args), func(had []string) bool { return slices.Equal(had, words) }) {
					p.Spec.Args = append(p.Spec.Args, words...)
				}
			}
		case "Env":
			for name, value := range after.Env {
				if had, ok := before.Env[name]; !ok || had != value {
					if p.Spec.Env == nil {
						p.Spec.Env = map[string]string{}
					}
					p.Spec.Env[name] = value
				}
			}
			for _, name := range slices.Sorted(maps.Keys(before.Env)) {
				if _, kept := after.Env[name]; !kept {
					p.Without = append(p.Without, name)
				}
			}
		default:
			if a.Field(i).IsZero() {
				return p, false
			}
			d.Field(i).Set(a.Field(i))
		}
	}
	return p, true
}

// flagGroups splits words into flags, each with its values.
func flagGroups(words []string) [][]string {
	var groups [][]string
	for _, w := range words {
		if strings.HasPrefix(w, "--") || len(groups) == 0 {
			groups = append(groups, nil)
		}
		last := len(groups) - 1
		groups[last] = append(groups[last], w)
	}
	return groups
}

// Command returns the patch as shell words, without the program's name.
func (p SpecPatch) Command() string {
	words := []string{"submit", "--from", string(p.From)}
	for _, name := range p.Without {
		words = append(words, "--without", strings.TrimPrefix(name, "--"))
	}
	plain := p.Spec
	plain.Args = nil
	if raw, err := json.Marshal(plain); err == nil && string(raw) != "{}" {
		words = append(words, "--yaml", shellword.POSIX(string(raw)))
	}
	if len(p.Spec.Args) > 0 {
		words = append(words, "--command-line", shellword.POSIX(shellword.Line(p.Spec.Args)))
	}
	return strings.Join(words, " ")
}

// CommandsInQueue are the commands that make the change while the job still waits in the queue
// and would start by itself: a second job beside it would run, too.
func (p SpecPatch) CommandsInQueue() []string {
	rest := p.Spec
	rest.Exclude = ""
	if p.Spec.Exclude != "" && len(p.Without) == 0 && reflect.ValueOf(rest).IsZero() {
		return []string{"update " + string(p.From) + " --exclude " + shellword.POSIX(p.Spec.Exclude)}
	}
	return []string{"cancel " + string(p.From), p.Command()}
}

// PatchFor returns a change that would repair a failed job's specification and that a
// plan has accepted; nil where there is none. The error says that this cannot be known
// at the moment.
func PatchFor(ctx context.Context, c *ops.Call, cluster string, id slurm.JobID, r report.Report) (*SpecPatch, error) {
	before, err := SubmittedSpec(ctx, c, cluster, id)
	switch {
	case err != nil && ops.AsError(err).Code == ops.Failed:
		return nil, err
	case err != nil:
		return nil, nil //nolint:nilerr // whose specification is not known or not theirs to see is offered none
	}
	mended, ok := remedyOf(c, before, id, r)
	if !ok {
		mended, ok = withoutFailedNodes(c, before, r)
	}
	if !ok {
		return nil, nil
	}
	if err := mended.keepEnoughNodes(ctx, c, cluster, before); err != nil {
		return nil, err
	}
	patch, ok := PatchOf(id, before, mended.Spec)
	if !ok {
		return nil, nil
	}
	for _, change := range mended.Changes {
		patch.Changes = append(patch.Changes, change.In(c.Lang))
	}
	return &patch, nil
}
