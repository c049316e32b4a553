package ops

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/megatron-ops/megatron-ops/slurm"
	"github.com/megatron-ops/megatron-ops/slurm/job"
)

// OnCluster is the part of an input that says where.
type OnCluster struct {
	Cluster string `json:"cluster,omitempty" kong:"-" help:"which cluster; the default one where it is left out" zh:"哪个集群；省略时为默认集群"`
}

// On names the cluster, as the flag that every command takes does.
func (o *OnCluster) On(cluster string) { o.Cluster = cluster }

// Cluster is the back end that name means, the default one for "".
func (c *Call) Cluster(name string) (Cluster, error) {
	if name == "" {
		if c.Unchosen && c.effect != Read && c.effect != "" {
			return nil, InputError("cluster", "module load slurm, or run it on a login node; --cluster "+c.Default+" runs it on this machine",
				"sbatch is not on the PATH, and no cluster is named or configured")
		}
		name = c.Default
	}
	cl, ok := c.Clusters[name]
	if !ok {
		return nil, InputError("cluster", "clusters here: "+strings.Join(slices.Sorted(maps.Keys(c.Clusters)), ", "),
			"cluster %q is not configured", name)
	}
	return c.actingAs(cl)
}

// Job asks the cluster for one job, in our words where it is not known.
func (c *Call) Job(ctx context.Context, on string, id slurm.JobID) (Cluster, slurm.Job, error) {
	if !slurm.IsJobID(string(id)) {
		return nil, slurm.Job{}, InputError("job", "a job id such as 4711, or 4711_3 for one task of an array", "%q is not a job id", id)
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

// Look is one job as a reader may see it: who only reads is answered together
// with all others that read.
func (c *Call) Look(ctx context.Context, cl Cluster, id slurm.JobID) (j slurm.Job, err error) {
	if v := c.Views[cl.Name()]; v != nil && c.effect == Read {
		j, err = v.Job(ctx, id)
	} else {
		j, err = cl.Job(ctx, id)
	}
	j.Cluster = cl.Name()
	return j, err
}

// LookAll is the jobs that pass f, as look is one. While the cluster does not
// answer they come as they were last seen, each with that time.
func (c *Call) LookAll(ctx context.Context, cl Cluster, f slurm.Filter) ([]slurm.Job, error) {
	v := c.Views[cl.Name()]
	if v == nil || c.effect != Read {
		return cl.Jobs(ctx, f)
	}
	jobs, err := v.Jobs(ctx, f)
	if errors.Is(err, slurm.ErrUnreachable) && len(jobs) == 0 {
		if known, at := v.Known(f); !at.IsZero() {
			return known, nil
		}
	}
	return jobs, err
}

// SlurmError gives what a back end said its code, and the fix that Slurm's own
// words ask for.
func (c *Call) SlurmError(err error, id slurm.JobID) error {
	if errors.Is(err, slurm.ErrNotFound) {
		return NotFoundError("job", "`megatron-ops list --all` shows the jobs that are known", "job %s: not known to Slurm", id)
	}
	fix := slurm.FixOf(err)
	e := &Error{Code: Failed, Message: err.Error(), Fix: fix.EN}
	e.zh.fix = fix.ZH
	if s, ok := errors.AsType[*slurm.Error](err); ok {
		e.zh.op, e.zh.words = s.Op, s.Msg
		switch s.Kind {
		case slurm.Denied:
			e.Code = NotAllowed
		case slurm.NotFound:
			e.Code = NotFound
		}
	}
	return e
}

// Capable is cl as something that can do more than every cluster; what names it.
func Capable[T any](cl Cluster, what string) (T, error) {
	t, ok := cl.(T)
	if !ok {
		return t, InputError("cluster", "use a cluster that is reached by Slurm's commands (kind cli or ssh)", "cluster %s, of kind %s, does not tell of its %s", cl.Name(), cl.Kind(), what)
	}
	return t, nil
}

// A Surveyor is a cluster that tells of its nodes and partitions.
type Surveyor interface {
	Nodes(context.Context) ([]slurm.Node, error)
	Partitions(context.Context) ([]slurm.Partition, error)
}

// PollPause is how often a cluster is asked: politely where others use it too, and
// as often as it says where it is this process's own.
func PollPause(cl Cluster) time.Duration {
	if own, ok := cl.(interface{ AskEvery() time.Duration }); ok {
		return own.AskEvery()
	}
	return 15 * time.Second
}

// SiteOf is the profile of the cluster that s goes to.
func (c *Call) SiteOf(s job.Spec) job.Site {
	if c.Sites == nil {
		return job.Site{}
	}
	name := s.Cluster
	if name == "" {
		name = c.Default
	}
	return c.Sites(name)
}
