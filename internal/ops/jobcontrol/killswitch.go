package jobcontrol

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/megatron-ops/megatron-ops/internal/account"
	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/ops/joblogs"
	"github.com/megatron-ops/megatron-ops/internal/store"
	"github.com/megatron-ops/megatron-ops/internal/view"
	"github.com/megatron-ops/megatron-ops/slurm"
	"github.com/megatron-ops/megatron-ops/slurm/job"
)

// KillSwitchIn says which switch to turn on or off.
type KillSwitchIn struct {
	Turn string `json:"turn" arg:"" enum:"on,off" help:"on or off" zh:"on 或 off"`
	Job  string `json:"job" arg:"" name:"job" jobs:"" help:"a job that has a kill_switch, or the switch's path" zh:"设置了 kill_switch 的作业号，或该文件的路径"`
	ops.OnCluster
}

// KillSwitchOut is the switch after the operation.
type KillSwitchOut struct {
	Path  string      `json:"path"`
	On    bool        `json:"on"`
	JobID slurm.JobID `json:"job_id,omitempty"`
	Owner string      `json:"owner,omitempty"`
	// Changed is false where the switch was already in the requested state.
	Changed bool `json:"changed"`
}

// A killSwitch is the path of a switch, and its job, owner and team where these are
// known.
type killSwitch struct {
	path, owner, team string
	job               slurm.JobID
}

// KillSwitch returns the operation killswitch.
func KillSwitch() ops.Op {
	return ops.Define(ops.Op{
		Name: "killswitch", Effect: ops.Write, Toolset: ops.JobsSet, Idempotent: true,
		Summary: lang.Text{EN: "turn a kill switch on, so that its running jobs save and end, or off again", ZH: "通过 kill switch 让作业保存并结束，或移除该开关"},
		Help:    lang.Text{EN: "Use to stop a series of jobs with a checkpoint. Turn it off before the next start.", ZH: "用于保存检查点后停止一串作业。下次启动前要关闭。"},
		Example: "killswitch on 4711",
	}, killswitch)
}

func killswitch(ctx context.Context, c *ops.Call, in KillSwitchIn) (KillSwitchOut, error) {
	out, err := turnSwitch(ctx, c, in)
	if err == nil && out.Changed && out.Owner != "" && out.Owner != c.Who.User {
		notifyOwner(ctx, c, in, out)
	}
	return out, err
}

// notifyOwner tells a job's owner who turned the job's switch. A failure to notify is
// not an error of the operation, because the audit trail records it too.
func notifyOwner(ctx context.Context, c *ops.Call, in KillSwitchIn, out KillSwitchOut) {
	cluster := cmp.Or(in.Cluster, c.Default)
	title := lang.Text{EN: "%s has thrown the kill switch: the job saves and ends", ZH: "%s 打开了停止开关：作业将保存并结束"}
	if !out.On {
		title = lang.Text{EN: "%s has taken the kill switch back: the job may start again", ZH: "%s 关闭了停止开关：作业可以再次启动"}
	}
	_ = c.Notify(context.WithoutCancel(ctx), ops.Notice{
		Key:     fmt.Sprintf("killswitch/%s/%s/%v/%d", cluster, out.JobID, out.On, c.Now().Unix()),
		Cluster: cluster, Job: out.JobID, Owner: out.Owner, By: c.Who.ID, Alarm: out.On,
		Title: title.With(c.Who.User), Text: lang.Same(out.Path),
	})
}

func turnSwitch(ctx context.Context, c *ops.Call, in KillSwitchIn) (KillSwitchOut, error) {
	on := in.Turn == "on"
	cl, err := c.Cluster(in.Cluster)
	if err != nil {
		return KillSwitchOut{}, err
	}
	k, err := findSwitch(ctx, c, cl, in.Job)
	if err != nil {
		return KillSwitchOut{}, err
	}
	if k, err = liveSwitch(ctx, c, cl, k, on); err != nil {
		return KillSwitchOut{}, err
	}
	out := KillSwitchOut{Path: k.path, On: on, JobID: k.job, Owner: k.owner}
	// In a person's own process, the file system decides what the person may do. A
	// server must not lend its own rights to somebody who asks through it: it touches
	// the file as the job's owner, and only for operators, the members of the job's
	// team, and people who could touch the file themselves.
	if c.OwnHands() && (cl.Kind() == "local" || cl.Kind() == "cli") {
		if on {
			out.Changed, err = createEmpty(k.path)
		} else {
			out.Changed, err = removeEmpty(k.path)
		}
		return out, err
	}
	if !c.OwnHands() && k.owner != c.Who.User {
		if cl, err = c.AsOwner(cl, k.owner); err != nil {
			return out, err
		}
		if !c.Who.Operator && !isMember(ctx, c.Who.User, k.team) && !mayWrite(ctx, c, cl, k, on) {
			return out, &ops.Error{
				Code: ops.NotAllowed, Field: "job", Message: lang.Text{EN: "the switch belongs to %s, and you act as %s", ZH: "该停止开关属于 %s，而您的身份是 %s"}.With(k.owner, c.Who.User),
				Fix: lang.Text{EN: "ask its owner; or be in the job's team, a group of that name on this machine, or in a group that may write the folder of %s while the job runs", ZH: "请联系其所有者；或加入该作业的团队（本机上的同名用户组），或在作业运行期间属于可写 %s 所在目录的用户组"}.With(k.path),
			}
		}
	}
	out.Changed = true
	return out, touchOnNode(ctx, c, cl, k, on)
}

// touchOnNode creates or removes the file on a node of the running job, where the path
// means what it means to the job.
func touchOnNode(ctx context.Context, c *ops.Call, cl ops.Cluster, k killSwitch, on bool) error {
	byHand := "touch -- "
	argv := []string{"touch", "--", k.path}
	if !on {
		byHand = "rm -- "
		argv = []string{"find", k.path, "-maxdepth", "0", "-type", "f", "-empty", "-delete"}
	}
	_, state, err := execOnFirstNode(ctx, c, cl, k.job, argv)
	if err == nil && state != slurm.Running {
		return &ops.Error{
			Code:    ops.Failed,
			Field:   "job",
			Message: lang.Text{EN: "job %s is %s: there is no node of it to reach %s from", ZH: "作业 %s 处于 %s：没有节点可用来访问 %s"}.With(k.job, state, k.path),
			Fix:     lang.Text{EN: "in a shell: %s%s", ZH: "请在 shell 中执行：%s%s"}.With(byHand, k.path),
		}
	}
	return err
}

// execOnFirstNode runs a command on the first node of a job, and returns its output and
// the job's state. It runs nothing where the job does not run.
func execOnFirstNode(ctx context.Context, c *ops.Call, cl ops.Cluster, id slurm.JobID, argv []string) (said string, state slurm.State, err error) {
	j, err := cl.Job(ctx, id)
	if err != nil {
		return "", "", c.SlurmError(err, id)
	}
	if j.State != slurm.Running || len(j.Nodes) == 0 {
		return "", j.State, nil
	}
	out, err := cl.Exec(ctx, slurm.Exec{Job: id, Nodes: j.Nodes[:1], Argv: argv})
	if err != nil {
		return "", j.State, c.SlurmError(err, id)
	}
	for _, o := range out {
		if o.Node != "" { // srun's own messages belong to no node
			said += o.Text
		}
	}
	return said, j.State, nil
}

// findSwitch returns the switch of a job, or the one at a path. A caller who asks
// through a server may name only a path that a submission has.
func findSwitch(ctx context.Context, c *ops.Call, cl ops.Cluster, word string) (killSwitch, error) {
	if slurm.IsJobID(word) {
		sub, ok := c.Submission(ctx, cl.Name(), slurm.JobID(word))
		if !ok {
			return killSwitch{}, ops.NotFoundError("job",
				lang.Text{EN: "job %s was not submitted through here, so its kill switch is not known", ZH: "作业 %s 不是通过这里提交的，因此不知道它的停止开关"}.With(word),
				lang.Text{EN: "give the switch's path", ZH: "请给出开关文件的路径"})
		}
		k, ok := switchOf(sub)
		if !ok {
			return k, ops.InputError("job",
				lang.Text{EN: "job %s has no kill switch", ZH: "作业 %s 没有停止开关"}.With(word),
				lang.Text{EN: "kill_switch: FILE in the specification, before it is submitted", ZH: "请在提交前于规格中设置 kill_switch: FILE"})
		}
		return k, nil
	}
	path := word
	if !filepath.IsAbs(path) && c.Dir != "" {
		path = filepath.Join(c.Dir, path)
	}
	if !filepath.IsAbs(path) {
		return killSwitch{}, ops.InputError("job",
			lang.Text{EN: "%q is neither", ZH: "%q 两者都不是"}.With(word),
			lang.Text{EN: "a job id, or an absolute path", ZH: "作业号或绝对路径"})
	}
	path = filepath.Clean(path)
	if c.MayRead != nil {
		if err := c.MayRead(path); err != nil {
			return killSwitch{}, joblogs.RefusedPath("job", err)
		}
	}
	if c.Store != nil {
		if st, err := c.Store(); err == nil {
			if k, ok := switchAt(ctx, st, cl, path); ok {
				return k, nil
			}
		}
	}
	if !c.OwnHands() || cl.Kind() != "local" && cl.Kind() != "cli" {
		return killSwitch{}, ops.NotFoundError("job",
			lang.Text{EN: "no job submitted through here has the kill switch %s", ZH: "通过这里提交的作业都没有停止开关 %s"}.With(path),
			lang.Text{EN: "give the job's id", ZH: "请给出作业号"})
	}
	return killSwitch{path: path}, nil
}

// liveSwitch refuses to turn on the switch of a job that has ended: no job would react,
// and the next job with that switch would end at once. It returns the switch of a later
// job of a chain where such a job has the same switch and has not ended.
func liveSwitch(ctx context.Context, c *ops.Call, cl ops.Cluster, k killSwitch, on bool) (killSwitch, error) {
	if !on || k.job == "" {
		return k, nil
	}
	j, err := cl.Job(ctx, k.job)
	if err != nil && !errors.Is(err, slurm.ErrNotFound) {
		return k, c.SlurmError(err, k.job)
	}
	if err == nil && !j.State.Ended() {
		return k, nil
	}
	if c.Store != nil {
		if st, err := c.Store(); err == nil {
			if later, ok := switchAt(ctx, st, cl, k.path); ok {
				if j, err := cl.Job(ctx, later.job); err == nil && !j.State.Ended() {
					return later, nil
				}
			}
		}
	}
	return k, &ops.Error{
		Code: ops.NotFound, Field: "job", Message: lang.Text{EN: "job %s is not there any more, so nobody would hear its switch", ZH: "作业 %s 已不存在，没有作业会响应它的开关"}.With(k.job),
		Fix: lang.Text{EN: "list shows what runs", ZH: "用 list 查看运行中的作业"},
	}
}

// switchAt returns the switch at a path, preferably of the newest job that runs. A
// waiting job, such as the next one of a chain, has no node to reach the file from.
func switchAt(ctx context.Context, st *store.Store, cl ops.Cluster, path string) (newest killSwitch, ok bool) {
	subs, _ := st.Submissions(ctx, "", "", 1000)
	asked := 0
	for _, sub := range subs {
		k, has := switchOf(sub)
		if !has || k.path != path || sub.Cluster != cl.Name() || ok && k.owner != newest.owner {
			continue
		}
		if !ok {
			newest, ok = k, true
		}
		if asked++; asked > 10 {
			break
		}
		if j, err := cl.Job(ctx, k.job); err == nil && j.State == slurm.Running && sub.Became(j) {
			return k, true
		}
	}
	return newest, ok
}

func switchOf(sub store.Submission) (killSwitch, bool) {
	var s job.Spec
	if json.Unmarshal(sub.Spec, &s) != nil || s.KillSwitch == "" {
		return killSwitch{}, false
	}
	path := s.KillSwitch
	if !filepath.IsAbs(path) {
		path = filepath.Join(sub.Dir, path)
	}
	return killSwitch{path: filepath.Clean(path), owner: sub.Owner, team: s.Team, job: sub.JobID}, true
}

// isMember reports whether the operating system lists the user in a group of the team's
// name. Users cannot edit this themselves.
func isMember(ctx context.Context, login, team string) bool {
	if login == "" || team == "" {
		return false
	}
	in, err := account.Member(ctx, login, team)
	return err == nil && in
}

// createEmpty creates an empty file, and leaves an existing one as it is.
func createEmpty(path string) (changed bool, err error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL|syscall.O_NOFOLLOW, 0o664) //nolint:gosec // others of the team must be able to read it
	switch {
	case errors.Is(err, fs.ErrExist):
		return false, nil
	case errors.Is(err, fs.ErrPermission):
		return false, &ops.Error{Code: ops.NotAllowed, Field: "job", Message: lang.Text{EN: "%s: you may not write there", ZH: "%s：您无权在此写入"}.With(path), Fix: lang.Text{EN: "ask its owner", ZH: "请联系其所有者"}}
	case err != nil:
		return false, &ops.Error{Code: ops.Failed, Field: "job", Message: lang.Said(err), Fix: lang.Text{EN: "the folder must exist", ZH: "目录须已存在"}}
	}
	return true, f.Close()
}

// removeEmpty removes the file. Only an empty file can be a switch, so a path given by
// mistake does not cost anybody a checkpoint.
func removeEmpty(path string) (changed bool, err error) {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	case err != nil:
		return false, &ops.Error{Code: ops.Failed, Field: "job", Message: lang.Said(err)}
	case !info.Mode().IsRegular() || info.Size() > 0:
		return false, ops.InputError("job",
			lang.Text{EN: "%s is not an empty file, so it is left alone", ZH: "%s 不是空文件，因此没有动它"}.With(path),
			lang.Text{EN: "remove it yourself: rm -- %s", ZH: "请自行删除：rm -- %s"}.With(path))
	}
	if err := os.Remove(path); errors.Is(err, fs.ErrPermission) {
		return false, &ops.Error{Code: ops.NotAllowed, Field: "job", Message: lang.Text{EN: "%s: you may not remove it", ZH: "%s：您无权删除"}.With(path), Fix: lang.Text{EN: "ask its owner", ZH: "请联系其所有者"}}
	} else if err != nil {
		return false, &ops.Error{Code: ops.Failed, Field: "job", Message: lang.Said(err)}
	}
	return true, nil
}

// View says what the switch does now, and when to remove it.
func (o KillSwitchOut) View(l lang.Lang) view.Doc {
	already := ""
	if !o.Changed {
		already = lang.Text{EN: " (it was so already)", ZH: "（此前已是如此）"}.In(l)
	}
	if !o.On {
		return view.Doc{Tone: view.Good, Title: fmt.Sprintf(lang.Text{EN: "%s is off%s: jobs start and run", ZH: "%s 已关闭%s：作业可以启动和运行"}.In(l), o.Path, already)}
	}
	back := o.Path
	if o.JobID != "" {
		back = string(o.JobID)
	}
	return view.Doc{
		Tone:  view.Warn,
		Title: fmt.Sprintf(lang.Text{EN: "%s is on%s", ZH: "%s 已打开%s"}.In(l), o.Path, already),
		Sections: []view.Section{{Text: lang.Text{
			EN: "Within about ten seconds every running job that has this switch saves a checkpoint and ends. While the file is there, none of them starts: each waiting job, array task or restart ends at once. Remove it before the next start. A job that hangs does not hear it: cancel ends that.",
			ZH: "所有设置了该开关的运行中作业会在约十秒内保存检查点并结束。文件存在期间它们都不会启动：排队的作业、数组任务和重启都会立即结束。下次启动前必须移除。卡住的作业不会响应，请用 cancel。",
		}.In(l)}},
		Next: []string{"killswitch off " + back},
	}
}
