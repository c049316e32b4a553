package ops

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/store"
	"github.com/megatron-ops/megatron-ops/slurm"
)

// OnCluster is the part of an input that says where.
type OnCluster struct {
	Cluster string `json:"cluster,omitempty" kong:"-" help:"which cluster; the default one where it is left out" zh:"哪个集群；省略时为默认集群"`
}

// On names the cluster, as the flag that every command takes does.
func (o *OnCluster) On(cluster string) { o.Cluster = cluster }

// cluster is the back end that name means, the default one for "".
func (c *Call) cluster(name string) (Cluster, error) {
	if name == "" {
		if c.Unchosen && c.effect != Read && c.effect != "" {
			return nil, badInput("cluster", "module load slurm, or run it on a login node; --cluster "+c.Default+" runs it on this machine",
				"sbatch is not on the PATH, and no cluster is named or configured")
		}
		name = c.Default
	}
	cl, ok := c.Clusters[name]
	if !ok {
		return nil, badInput("cluster", "clusters here: "+strings.Join(slices.Sorted(maps.Keys(c.Clusters)), ", "),
			"cluster %q is not configured", name)
	}
	return c.actingAs(cl)
}

// actingAs is cl as the person who asks, where that is not who runs this
// process and something is to be changed.
func (c *Call) actingAs(cl Cluster) (Cluster, error) {
	proxy := c.Who.Surface == Slack || c.Who.Surface == MCPHTTP || c.Who.Surface == Watcher
	if !proxy || c.effect == Read || c.effect == "" || c.Who.User == "" || c.Who.User == c.Self {
		return cl, nil
	}
	if c.As == nil {
		return nil, &Error{
			Code: NotAllowed, Field: "cluster",
			Message: fmt.Sprintf("this server runs as %s on %s and cannot act as %s", c.Self, cl.Name(), c.Who.User),
			Fix:     "an operator sets clusters." + cl.Name() + ".act_as; in your own shell it works at once",
		}
	}
	as, err := c.As(cl, c.Who.User)
	if err != nil {
		return nil, &Error{Code: NotAllowed, Field: "cluster", Message: err.Error(), Fix: "in your own shell it works at once"}
	}
	return as, nil
}

// job asks the cluster for one job, in our words where it is not known.
func (c *Call) job(ctx context.Context, on string, id slurm.JobID) (Cluster, slurm.Job, error) {
	if !slurm.IsJobID(string(id)) {
		return nil, slurm.Job{}, badInput("job", "a job id such as 4711, or 4711_3 for one task of an array", "%q is not a job id", id)
	}
	cl, err := c.cluster(on)
	if err != nil {
		return nil, slurm.Job{}, err
	}
	j, err := c.look(ctx, cl, id)
	if err != nil {
		return nil, slurm.Job{}, c.slurmError(err, id)
	}
	return cl, j, nil
}

// look is one job as a reader may see it: who only reads is answered together
// with all others that read.
func (c *Call) look(ctx context.Context, cl Cluster, id slurm.JobID) (j slurm.Job, err error) {
	if v := c.Views[cl.Name()]; v != nil && c.effect == Read {
		j, err = v.Job(ctx, id)
	} else {
		j, err = cl.Job(ctx, id)
	}
	j.Cluster = cl.Name()
	return j, err
}

// lookAll is the jobs that pass f, as look is one. While the cluster does not
// answer they come as they were last seen, each with that time.
func (c *Call) lookAll(ctx context.Context, cl Cluster, f slurm.Filter) ([]slurm.Job, error) {
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

// slurmError gives what a back end said its code, and the fix that Slurm's own
// words ask for.
func (c *Call) slurmError(err error, id slurm.JobID) error {
	if errors.Is(err, slurm.ErrNotFound) {
		return notFound("job", "`megatron-ops list --all` shows the jobs that are known", "job %s: not known to Slurm", id)
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

// submission is what the store knows of a job, if it was submitted through us.
func (c *Call) submission(ctx context.Context, cluster string, id slurm.JobID) (store.Submission, bool) {
	if c.Store == nil {
		return store.Submission{}, false
	}
	st, err := c.Store()
	if err != nil {
		return store.Submission{}, false
	}
	if !slurm.IsStepID(string(id)) {
		id = id.Array()
	}
	sub, err := st.ByJob(ctx, cluster, id)
	return sub, err == nil
}

// plural is "1 node", "2 nodes".
func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
