package ops

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/slurm"
	"github.com/megatron-ops/megatron-ops/slurm/job"
)

// OnCluster is the part of an input that names the cluster.
type OnCluster struct {
	Cluster string `json:"cluster,omitempty" kong:"-" help:"which cluster; the default one where it is left out" zh:"哪个集群；省略时为默认集群"`
}

// On sets the cluster, as the flag --cluster does that every command takes.
func (o *OnCluster) On(cluster string) { o.Cluster = cluster }

// CommandsOn returns commands that follow a call which named a cluster, each for that
// cluster: the same job id on the default one is another job.
func CommandsOn(cluster string, commands []string) []string {
	if cluster == "" {
		return commands
	}
	on := make([]string, len(commands))
	for i, c := range commands {
		if on[i] = c; !strings.Contains(c, " --cluster ") {
			own, program, found := strings.Cut(c, " -- ") // what stands behind -- is for Megatron
			if on[i] = own + " --cluster " + cluster; found {
				on[i] += " -- " + program
			}
		}
	}
	return on
}

// Elsewhere is what a command adds to be about a cluster: nothing for the default one.
func (s *Service) Elsewhere(cluster string) string {
	if cluster == "" || cluster == s.Default {
		return ""
	}
	return " --cluster " + cluster
}

// Several reports whether a call that names no cluster could mean more than one: this machine
// itself is no cluster that people mean unless they name it, or have no other.
func (s *Service) Several() bool {
	n := 0
	for name, cl := range s.Clusters {
		if cl.Kind() != "local" || name == s.Default {
			n++
		}
	}
	return n > 1
}

// WithoutSlurm is the hint for somebody who looks for Slurm's jobs on a machine without
// Slurm.
var WithoutSlurm = lang.Text{
	EN: "sbatch is not on the PATH, so only this machine's own jobs are looked at; for Slurm's: module load slurm",
	ZH: "PATH 中没有 sbatch，因此只查看本机自己的作业；要查看 Slurm 的作业，请执行 module load slurm",
}

// Cluster returns the back end of that name, and the default one for "". The back end
// acts with the rights of the person who asks.
func (c *Call) Cluster(name string) (Cluster, error) {
	if name == "" {
		if c.Unchosen && c.effect != Read && c.effect != "" {
			return nil, InputError("cluster",
				lang.Text{EN: "sbatch is not on the PATH, and no cluster is named or configured", ZH: "PATH 中没有 sbatch，也没有指定或配置集群"},
				lang.Text{EN: "module load slurm, or run it on a login node; --cluster %s runs it on this machine", ZH: "执行 module load slurm，或在登录节点上运行；--cluster %s 会在本机运行"}.With(c.Default))
		}
		name = c.Default
	}
	cl, ok := c.Clusters[name]
	if !ok {
		return nil, InputError("cluster",
			lang.Text{EN: "cluster %q is not configured", ZH: "没有配置集群 %q"}.With(name),
			lang.Text{EN: "clusters here: %s", ZH: "已配置的集群：%s"}.With(strings.Join(slices.Sorted(maps.Keys(c.Clusters)), ", ")))
	}
	return c.actingAs(cl)
}

// NoJobIDError returns the error about a word in the field job that is not a job id.
// fix says what would be one.
func NoJobIDError(word slurm.JobID, fix lang.Text) error {
	return InputError("job", lang.Text{EN: "%q is not a job id", ZH: "%q 不是作业号"}.With(word), fix)
}

// Job asks the cluster for one job. An unknown job is an *Error.
func (c *Call) Job(ctx context.Context, on string, id slurm.JobID) (Cluster, slurm.Job, error) {
	if !slurm.IsJobID(string(id)) {
		return nil, slurm.Job{}, NoJobIDError(id, lang.Text{EN: "a job id such as 4711, or 4711_3 for one task of an array; list shows them", ZH: "作业号，例如 4711；数组作业的单个任务写作 4711_3；list 会列出作业"})
	}
	cl, err := c.Cluster(on)
	if err != nil {
		return nil, slurm.Job{}, err
	}
	j, err := c.Look(ctx, cl, id)
	if err != nil {
		return nil, slurm.Job{}, c.SlurmError(err, id)
	}
	return cl, j, nil
}

// Look returns one job for reading. All readers share one question to the cluster;
// while the cluster does not answer, they get the job as it was last seen, with the
// time of that.
func (c *Call) Look(ctx context.Context, cl Cluster, id slurm.JobID) (slurm.Job, error) {
	j, err := c.look(ctx, cl, id)
	if _, silent := errors.AsType[*slurm.AccountsError](err); silent && c.effect == Read && errors.Is(err, slurm.ErrUnreachable) {
		if known, ok := c.jobLastSeen(ctx, cl, id); ok {
			j, err = known, nil
		}
	}
	j.Cluster = cl.Name()
	return j, err
}

// jobLastSeen returns a job as the cluster showed it last.
func (c *Call) jobLastSeen(ctx context.Context, cl Cluster, id slurm.JobID) (slurm.Job, bool) {
	return slurm.Fold(id, c.lastSeen(ctx, cl, slurm.Filter{All: true, IDs: []slurm.JobID{id, id.Array()}}))
}

// look is Look that returns the error where only the accounts do not answer.
func (c *Call) look(ctx context.Context, cl Cluster, id slurm.JobID) (j slurm.Job, err error) {
	if c.effect != Read || cl.Kind() == "local" {
		j, err = cl.Job(ctx, id)
	} else {
		ask := cl.Job
		if v := c.Views[cl.Name()]; v != nil {
			ask = v.Job
		}
		known := func() (slurm.Job, bool) { return c.jobLastSeen(ctx, cl, id) }
		j, err = answerOrLastSeen(ctx, c, cl, func(ctx context.Context) (slurm.Job, error) { return ask(ctx, id) }, known)
	}
	j.Cluster = cl.Name()
	return j, err
}

// LookAll is Look for all jobs that match f.
func (c *Call) LookAll(ctx context.Context, cl Cluster, f slurm.Filter) ([]slurm.Job, error) {
	if c.effect != Read || cl.Kind() == "local" {
		return cl.Jobs(ctx, f)
	}
	ask := cl.Jobs
	if v := c.Views[cl.Name()]; v != nil {
		ask = v.Jobs
	}
	return answerOrLastSeen(ctx, c, cl, func(ctx context.Context) ([]slurm.Job, error) { return ask(ctx, f) }, func() ([]slurm.Job, bool) {
		known := c.lastSeen(ctx, cl, f)
		return known, known != nil
	})
}

// UnknownJob says that Slurm does not know the job of an id.
var UnknownJob = lang.Text{EN: "job %s: not known to Slurm", ZH: "Slurm 中没有作业 %s"}

// SlurmError turns an error of a back end into an *Error with its code, and with the
// fix that Slurm's own words ask for. id names the job that was asked about.
func (c *Call) SlurmError(err error, id slurm.JobID) error {
	if errors.Is(err, slurm.ErrNotFound) {
		said := UnknownJob.With(id)
		if s, ok := errors.AsType[*slurm.Error](err); ok && s.Msg != slurm.ErrNotFound.Msg { // the message of a cluster without Slurm
			said = lang.Text{EN: "job %s: %s", ZH: "作业 %s：%s"}.With(id, s.Msg)
		}
		if c.Unchosen {
			return NotFoundError("job", said, WithoutSlurm)
		}
		return NotFoundError("job", said, lang.Text{EN: "`megatron-ops list --all` shows the jobs that are known", ZH: "`megatron-ops list --all` 可列出已知的作业"})
	}
	if e, ok := errors.AsType[*Error](err); ok { // of a cluster that knows what the person can do
		return e
	}
	e := &Error{Code: Failed, Message: lang.Said(err), Fix: slurm.FixOf(err)}
	if s, ok := errors.AsType[*slurm.Error](err); ok {
		switch s.Kind {
		case slurm.Denied:
			e.Code = NotAllowed
		case slurm.NotFound:
			e.Code = NotFound
		}
	}
	return e
}

// Capable returns cl as a T, an interface that not every cluster implements. ability
// completes the error "cannot …".
func Capable[T any](cl Cluster, ability lang.Text) (T, error) {
	t, ok := cl.(T)
	if !ok {
		fix := slurm.ErrUnsupported.Fix
		if cl.Kind() == "local" {
			fix = lang.Text{
				EN: "it is this machine without Slurm, and its nodes are stand-ins: `nodes`, `logs`, `diagnose` and `smoke` work there; name a cluster of kind cli or ssh for the rest",
				ZH: "它就是没有 Slurm 的本机，节点只是替身：可用 `nodes`、`logs`、`diagnose`、`smoke`；其余操作请指定 cli 或 ssh 类型的集群",
			}
		}
		return t, InputError("cluster", lang.Text{EN: "cluster %s, of kind %s, cannot %s", ZH: "集群 %s（类型 %s）不能%s"}.With(cl.Name(), cl.Kind(), ability), fix)
	}
	return t, nil
}

// PollPause returns the pause between two questions to a cluster. A cluster that serves
// only this process chooses its own; any other cluster is asked rarely, because others
// use it too.
func PollPause(cl Cluster) time.Duration {
	if own, ok := cl.(interface{ AskEvery() time.Duration }); ok {
		return own.AskEvery()
	}
	return 15 * time.Second
}

// Pause waits for d, and reports whether it passed before ctx ended.
func Pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}

// SiteOf returns the profile of the cluster that s goes to.
func (c *Call) SiteOf(s job.Spec) job.Site {
	if c.Sites == nil {
		return job.Site{}
	}
	name := cmp.Or(s.Cluster, c.Default)
	return c.Sites(name)
}
