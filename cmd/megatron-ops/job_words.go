package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/lazy"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/slurm"
	"github.com/megatron-ops/megatron-ops/slurm/cluster"
	"github.com/megatron-ops/megatron-ops/slurm/hostlist"
)

// People name jobs by several ids, by a range of an array's tasks, by name, by the
// words last and failed, or by - for ids on standard input.

// perJob returns words once for each job that they name, with the job's id in place of
// the name.
func (sh *shell) perJob(ctx context.Context, call *ops.Call, op ops.Op, words []string) ([][]string, error) {
	params := op.Params()
	if hasUnknownFlag(params, words) { // reading the flags reports this; an unknown flag's value must not be taken for a job
		return [][]string{words}, nil
	}
	f := jobFinder{call: call, cluster: sh.cluster, change: op.Effect != ops.Read, warn: sh.err}
	at, args := argPositions(params, words), slices.DeleteFunc(slices.Clone(params), func(p ops.Param) bool { return !p.Arg })
	for i, w := range words { // flags with a job as value, such as --from last
		if i > 0 && slices.ContainsFunc(params, func(p ops.Param) bool { return p.Job && !p.Arg && words[i-1] == "--"+p.Name }) {
			ids, err := f.find(ctx, w)
			if err != nil {
				return nil, err
			}
			words = slices.Clone(words)
			words[i] = ids[0]
		}
	}
	if len(args) == 0 || len(at) == 0 {
		return [][]string{words}, nil
	}
	if one := args[0]; len(args) == 1 && one.Job && !one.Several {
		var ids []string
		for _, i := range at {
			found, err := f.find(ctx, words[i])
			if err != nil {
				return nil, err
			}
			ids = append(ids, found...)
		}
		var each [][]string
		for _, id := range unique(ids) {
			own := slices.Clone(words)
			own[at[0]] = id
			for n := len(at) - 1; n > 0; n-- {
				own = slices.Delete(own, at[n], at[n]+1)
			}
			each = append(each, own)
		}
		return each, nil
	}
	words = slices.Clone(words)
	for n, i := range slices.Backward(at) { // several jobs: a range becomes several words
		p := args[min(n, len(args)-1)]
		if !p.Job && (!p.JobOrPath || !isNoPath(call.Dir, words[i])) {
			continue
		}
		ids, err := f.find(ctx, words[i])
		switch {
		case err != nil && p.Job:
			return nil, err
		case err != nil && f.asked && !f.looked:
			e := ops.AsError(err)
			return nil, &ops.Error{Code: e.Code, Field: "job", Message: lang.Text{
				EN: "there is no file or folder %s, and whether a job has that name is not known: %s",
				ZH: "没有文件或目录 %s，也无法得知是否有同名作业：%s",
			}.With(words[i], e.Message), Fix: e.Fix}
		case err != nil && ops.AsError(err).Code == ops.NotFound:
			e := ops.AsError(err)
			return nil, ops.NotFoundError("job", lang.Text{EN: "there is no file or folder %s; %s", ZH: "没有文件或目录 %s；%s"}.With(words[i], e.Message),
				lang.Text{EN: "the path of a file or folder, or %s", ZH: "文件或目录的路径，或%s"}.With(e.Fix))
		case err != nil: // a path, which the operation misses
		case len(ids) > 1 && !p.Several:
			return nil, ops.InputError("job", lang.Text{EN: "%q names %d jobs, and %s takes one here", ZH: "%q 指定了 %d 个作业，而 %s 此处只接受一个"}.With(words[i], len(ids), op.Name), lang.Text{EN: "name one", ZH: "请只写一个"})
		default:
			words = slices.Replace(words, i, i+1, ids...)
		}
	}
	return [][]string{words}, nil
}

func unique(ids []string) []string {
	var out []string
	for _, id := range ids {
		if !slices.Contains(out, id) {
			out = append(out, id)
		}
	}
	return out
}

// isNoPath reports whether a word that may be a path names no file.
func isNoPath(dir, word string) bool {
	if word == "-" || strings.ContainsRune(word, filepath.Separator) {
		return false
	}
	_, err := os.Stat(filepath.Join(dir, word))
	return err != nil
}

// hasUnknownFlag reports whether words contain a long flag that params lack.
func hasUnknownFlag(params []ops.Param, words []string) bool {
	for _, w := range words {
		if w == "--" {
			return false
		}
		name, long := strings.CutPrefix(w, "--")
		name, _, _ = strings.Cut(name, "=")
		known := func(p ops.Param) bool {
			return !p.Arg && (p.Name == name || p.Type == "switch" && "no-"+p.Name == name)
		}
		if long && !slices.ContainsFunc(params, known) {
			return true
		}
	}
	return false
}

// argPositions returns the indexes of the words that are arguments rather than flags or
// their values.
func argPositions(params []ops.Param, words []string) (at []int) {
	for i := 0; i < len(words); i++ {
		w := words[i]
		if w == "--" {
			break
		}
		if !strings.HasPrefix(w, "-") || w == "-" {
			at = append(at, i)
			continue
		}
		name, _, inline := strings.Cut(strings.TrimLeft(w, "-"), "=")
		takes := slices.ContainsFunc(params, func(p ops.Param) bool {
			return !p.Arg && p.Type != "switch" && (p.Name == name || p.Short != 0 && string(p.Short) == name)
		})
		if takes && !inline {
			i++
		}
	}
	return at
}

// A jobFinder finds jobs by the words that people use for them.
type jobFinder struct {
	call    *ops.Call
	cluster string
	change  bool // the operation would change the job
	mine    []slurm.Job
	asked   bool // the cluster was asked for mine, and where looked is set too it answered
	looked  bool
	lacks   error // why mine lacks the jobs that have left the queue; nil where it has them
	warn    io.Writer
}

// jobList matches a range of an array's tasks, and ids with commas between them.
var jobList = lazy.New(`^(?:[0-9]+(?:[_+.][0-9]+|_\[[0-9,-]+\])?(?:,|$))+$`)

// find returns the ids that a word means, at least one.
func (f *jobFinder) find(ctx context.Context, word string) ([]string, error) {
	switch {
	case slurm.IsJobID(word), slurm.IsStepID(word):
		return []string{word}, nil
	case jobList.MatchString(word):
		if ids, err := hostlist.Expand(strings.TrimSuffix(word, ",")); err == nil {
			return ids, nil
		}
	case word == "-":
		return f.fromStdin()
	case ops.FileName.MatchString(word):
		return nil, notAJob(word)
	}
	if !f.looked {
		cl, err := f.call.Cluster(f.cluster)
		if err != nil {
			return nil, err
		}
		f.asked = true
		since := f.call.Now().AddDate(0, 0, -7)
		asking := ctx
		if !f.change {
			asking = cluster.WithPatience(ctx, ops.AccountsPatience)
		}
		f.mine, err = f.call.LookAll(asking, cl, slurm.Filter{User: f.call.Who.User, All: true, Since: since})
		_, queued := errors.AsType[*slurm.AccountsError](err)
		if err != nil {
			err = f.call.SlurmError(err, "")
		}
		if f.lacks = err; err != nil && !queued {
			return nil, err
		}
		if queued && !f.change {
			f.mine = append(f.mine, f.submitted(ctx, cl.Name(), since)...)
		}
		slices.SortStableFunc(f.mine, slurm.NewestFirst)
		f.looked = f.lacks == nil
	}
	if f.lacks == nil || word == "last" && !f.change { // the newest job may have left the queue
		if id := f.byKeyword(word); id != "" {
			return f.found(word, id), nil
		}
	}
	ids, err := f.byName(word)
	if m := namedTask.FindStringSubmatch(word); err != nil && m != nil && f.isArray(m[1]) {
		if ids, err = f.byName(m[1]); err == nil {
			return f.find(ctx, ids[0]+m[2])
		}
	}
	return ids, err
}

// submitted returns the person's jobs that the store knows to have been submitted since then, and
// that the queue does not show.
func (f *jobFinder) submitted(ctx context.Context, cluster string, since time.Time) (left []slurm.Job) {
	if f.call.Store == nil {
		return nil
	}
	st, err := f.call.Store()
	if err != nil {
		return nil
	}
	subs, _ := st.SubmittedSince(ctx, since) // without them the queue's jobs remain
	for _, s := range subs {
		shown := slices.ContainsFunc(f.mine, func(j slurm.Job) bool { return j.ID.Array() == s.JobID })
		if s.Cluster == cluster && s.Owner == f.call.Who.User && !shown {
			left = append(left, slurm.Job{ID: s.JobID, Name: s.Name, State: slurm.Ended, SubmittedAt: &s.CreatedAt})
		}
	}
	return left
}

// found returns the job that a word means. Without the accounts, a newer one may have left the queue.
func (f *jobFinder) found(word, id string) []string {
	if f.lacks != nil {
		fmt.Fprintln(f.warn, "megatron-ops:", lang.Text{
			EN: "%s; %s is taken for job %s, the newest in the queue and among those submitted from here",
			ZH: "%s；%s 视为作业 %s，即队列与本程序提交的作业中最新的一个",
		}.With(ops.AsError(f.lacks).Message, word, id).In(f.call.Lang))
	}
	return []string{id}
}

// notAJob is the error for a file's name in place of a job. It says which command reads
// files.
func notAJob(word string) error {
	what := lang.Text{EN: "there is no file %s, and its name is that of a path, not of a job", ZH: "没有文件 %s，而且它的写法是路径，不是作业"}
	if _, err := os.Stat(word); err == nil {
		what = lang.Text{EN: "%s is a file, but a job is needed here", ZH: "%s 是文件，而这里需要的是作业"}
	}
	return ops.InputError("job", what.With(word), lang.Text{
		EN: "a job id, a job's name, last or failed; `megatron-ops diagnose FILE` reads a log by its path",
		ZH: "作业号、作业名、last 或 failed；按路径读取日志请用 `megatron-ops diagnose 文件`",
	})
}

// namedTask matches a task of an array, or a range of tasks, by the array's name.
var namedTask = lazy.New(`^(.+)(_(?:[0-9]+|\[[0-9,-]+\]))$`)

func (f *jobFinder) isArray(name string) bool {
	return slices.ContainsFunc(f.mine, func(j slurm.Job) bool { return j.Name == name && (j.ID.Array() != j.ID || len(j.Tasks) > 0) })
}

// byKeyword returns the job that "last" or "failed" means, or "" if there is none.
func (f *jobFinder) byKeyword(word string) string {
	for _, j := range f.mine {
		switch word {
		case "last":
			return string(j.ID.Array())
		case "failed":
			if j.State.Ended() && j.State != slurm.Completed && j.State != slurm.Cancelled && j.State != slurm.Preempted {
				return string(j.ID)
			}
		}
	}
	return ""
}

// byName returns the newest job of that name. If several jobs of the name are pending
// or running, a change needs an id.
func (f *jobFinder) byName(word string) ([]string, error) {
	var active, ended []string
	for _, j := range f.mine {
		id := string(j.ID.Array())
		switch {
		case j.Name != word || slices.Contains(active, id) || slices.Contains(ended, id):
		case j.State.Ended():
			ended = append(ended, id)
		default:
			active = append(active, id)
		}
	}
	switch {
	case len(active) > 1 && f.change:
		several := lang.Text{EN: "%d jobs named %s wait or run: %s", ZH: "有 %d 个名为 %s 的作业在排队或运行：%s"}.With(len(active), word, strings.Join(active, ", "))
		if f.call.Several() {
			several = lang.Text{EN: "on %s, %s", ZH: "在 %s 上，%s"}.With(cmp.Or(f.cluster, f.call.Default), several)
		}
		return nil, ops.InputError("job", several,
			lang.Text{EN: "give the ids; you may give several", ZH: "请给出作业号，可以有多个"})
	case len(active) > 0: // whatever the accounts know
		return active[:1], nil
	case len(ended) > 0 && (f.lacks == nil || !f.change):
		return f.found(word, ended[0]), nil
	case f.lacks != nil:
		return nil, f.lacks
	}
	what := lang.Text{EN: "%q is not a job id, and none of your jobs of the last seven days has that name", ZH: "%q 不是作业号，最近七天也没有您的同名作业"}.With(word)
	switch word {
	case "last":
		what = lang.Text{EN: "you have no job from the last seven days", ZH: "最近七天没有您的作业"}
	case "failed":
		what = lang.Text{EN: "none of your jobs has failed in the last seven days", ZH: "最近七天没有您失败的作业"}
	}
	return nil, ops.NotFoundError("job", what, lang.Text{
		EN: "an id such as 4711 or 4711_3, a name, NAME_3 for a task of an array, last, or failed; `megatron-ops list --all` shows them",
		ZH: "作业号（如 4711、4711_3）、作业名、数组任务写作 名称_3、last 或 failed；`megatron-ops list --all` 可列出",
	})
}

// fromStdin returns the ids on standard input: words, or JSON with job_id in it, as
// list and submit print it.
func (f *jobFinder) fromStdin() ([]string, error) {
	text, err := io.ReadAll(io.LimitReader(f.call.Stdin, 16<<20))
	if err != nil {
		return nil, err
	}
	var ids []string
	if trimmed := strings.TrimSpace(string(text)); strings.HasPrefix(trimmed, "{") || strings.HasPrefix(trimmed, "[") {
		d := json.NewDecoder(strings.NewReader(trimmed))
		for {
			var doc any
			if err := d.Decode(&doc); err != nil {
				break
			}
			ids = append(ids, idsIn(doc)...)
		}
	} else {
		ids = strings.Fields(trimmed)
	}
	for _, id := range ids {
		if !slurm.IsJobID(id) && !slurm.IsStepID(id) {
			return nil, ops.InputError("job", lang.Text{EN: "%q on standard input is not a job id", ZH: "标准输入中的 %q 不是作业号"}.With(id), lang.Text{EN: "give ids separated by blanks, or the output of list -o json", ZH: "以空白分隔的作业号，或 list -o json 的输出"})
		}
	}
	if len(ids) == 0 {
		return nil, ops.InputError("job", lang.Text{EN: "standard input holds no job id", ZH: "标准输入中没有作业号"}, lang.Text{EN: "give ids separated by blanks, or the output of list -o json", ZH: "以空白分隔的作业号，或 list -o json 的输出"})
	}
	return ids, nil
}

// idsIn returns the job ids anywhere in a document, in the order of its arrays.
func idsIn(doc any) (ids []string) {
	switch v := doc.(type) {
	case []any:
		for _, e := range v {
			ids = append(ids, idsIn(e)...)
		}
	case map[string]any:
		if id, ok := v["job_id"].(string); ok {
			return []string{id}
		}
		if jobs, ok := v["jobs"]; ok {
			return idsIn(jobs)
		}
	}
	return ids
}
