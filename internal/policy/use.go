// Package policy computes what a request can use at most, and judges whether a site
// lets people use that without approval. One function judges every operation that
// starts, restarts or enlarges something.
package policy

import (
	"cmp"
	"context"
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/ops/fleet"
	"github.com/megatron-ops/megatron-ops/internal/ops/jobcontrol"
	"github.com/megatron-ops/megatron-ops/internal/ops/launch"
	"github.com/megatron-ops/megatron-ops/internal/ops/smoke"
	"github.com/megatron-ops/megatron-ops/slurm"
	"github.com/megatron-ops/megatron-ops/slurm/hostlist"
)

// A Use is the most that a request can use.
type Use struct {
	Partitions []string `json:"partitions,omitempty"`
	QOS        string   `json:"qos,omitempty"`     // several with commas
	Account    string   `json:"account,omitempty"` // likewise
	GPUs       int      `json:"gpus"`              // at one time
	Hours      float64  `json:"hours"`             // of one job; +Inf without a limit
	GPUHours   float64  `json:"gpu_hours"`         // +Inf for a job that starts itself again
	// Unknown names what could not be determined; assume the worst of it.
	Unknown []Unknown `json:"unknown,omitempty"`
}

// MarshalJSON writes "no limit" as null: JSON has no infinity.
func (u Use) MarshalJSON() ([]byte, error) {
	type plain Use
	finite := func(v float64) *float64 {
		if math.IsInf(v, 0) {
			return nil
		}
		return &v
	}
	return json.Marshal(struct {
		plain
		Hours    *float64 `json:"hours"`
		GPUHours *float64 `json:"gpu_hours"`
	}{plain(u), finite(u.Hours), finite(u.GPUHours)})
}

// An Unknown is a part of a use that cannot be determined.
type Unknown string

// The parts of a use.
const (
	TimeUnknown      Unknown = "time"
	GPUsUnknown      Unknown = "gpus"
	PartitionUnknown Unknown = "partition"
	TasksUnknown     Unknown = "tasks" // of an array
)

// queryTimeout bounds the cluster queries of one judgement.
const queryTimeout = 10 * time.Second

// unlimited reports whether s is one of Slurm's words for no time limit, or 0.
func unlimited(s string) bool {
	switch strings.ToUpper(strings.TrimSpace(s)) {
	case "UNLIMITED", "INFINITE", "-1":
		return true
	}
	d, ok := slurm.ParseDuration(s)
	return ok && d == 0 // sbatch(1): "A time limit of zero requests that no time limit be imposed."
}

// Of returns what a call with the input in can use at most. any is false for an operation
// that uses nothing of the cluster. Jobs are looked up with the rights that the call itself
// has: a site may hide people's jobs from one another, and from this server.
func Of(ctx context.Context, c *ops.Call, in any) (use Use, any bool, err error) {
	ctx, stop := context.WithTimeout(ctx, queryTimeout)
	defer stop()
	c = c.Writing()
	switch in := in.(type) {
	case *launch.SubmitIn:
		if in.DryRun {
			return use, false, nil
		}
		use, err = specUse(ctx, c, in.SpecIn)
	case *smoke.In:
		if in.DryRun {
			return use, false, nil
		}
		use, err = specUse(ctx, c, in.SpecIn)
		// No trial run is larger than the job, and each takes at most ten minutes.
		use.Hours, use.GPUHours = min(use.Hours, 1), min(use.GPUHours, float64(use.GPUs))
	case *jobcontrol.UpdateIn:
		use, err = updateUse(ctx, c, in)
	case *jobcontrol.RequeueIn: // hold and release give nobody more than was approved
		// Slurm restarts every element that it still knows, ended ones too.
		var parts []slurm.Job
		if parts, err = partsOf(ctx, c, in.Cluster, in.Job); err == nil {
			use = partsUse(parts)
		}
	case *fleet.RunIn:
		var j slurm.Job
		if _, j, err = c.Job(ctx, in.Cluster, in.Job); err == nil {
			use = partsUse([]slurm.Job{j})
			use.Hours = float64(max(in.Limit, 60)) / 3600
			use.GPUHours = float64(use.GPUs) * use.Hours
		}
	case *fleet.NodeCheckIn:
		use, err = nodeCheckUse(ctx, c.Service, in)
	default:
		return use, false, nil
	}
	return use, true, err
}

// specUse returns the most that a specification can use: every component, every job of
// its chain, every task of its array and every retry, each up to the time limit.
func specUse(ctx context.Context, call *ops.Call, in launch.SpecIn) (Use, error) {
	svc := call.Service
	// Judge what would be submitted: the text, the fields beside it and the site's
	// profile combined.
	s, err := launch.Resolve(call, in)
	if err != nil {
		return Use{}, err
	}
	s = s.WithDefaults()
	var use Use
	parts, known := partitions(ctx, svc, s.Cluster)
	gpus := 0 // of one run
	for _, c := range s.Parts() {
		use.QOS, use.Account = joined(use.QOS, c.QOS), joined(use.Account, c.Account)
		names := partitionNames(c.Partition, parts)
		if len(names) == 0 && !slices.Contains(use.Unknown, PartitionUnknown) {
			use.Unknown = append(use.Unknown, PartitionUnknown)
		}
		for _, name := range names {
			if !slices.Contains(use.Partitions, name) {
				use.Partitions = append(use.Partitions, name)
			}
		}
		perNode := *c.GPUsPerNode
		if c.Exclusive != nil && *c.Exclusive { // the whole node is used, however little of it the job asks for
			perNode = max(perNode, gpusOfNode(svc, s.Cluster, parts, names))
			if perNode == 0 && !slices.Contains(use.Unknown, GPUsUnknown) {
				use.Unknown = append(use.Unknown, GPUsUnknown)
			}
		}
		gpus += *c.Nodes * perNode
	}
	use.Hours = hours(s.Time)
	if math.IsNaN(use.Hours) {
		use.Hours = partitionHours(parts, use.Partitions, known)
	}
	if math.IsNaN(use.Hours) {
		use.Hours, use.Unknown = math.Inf(1), append(use.Unknown, TimeUnknown)
	}
	if affectsGPUs(s.Sbatch) && !slices.Contains(use.Unknown, GPUsUnknown) {
		use.Unknown = append(use.Unknown, GPUsUnknown)
	}
	tasks, atOnce, known := Tasks(s.Array)
	if !known {
		use.Unknown = append(use.Unknown, TasksUnknown)
	}
	jobs := 1.0
	switch {
	case s.Every != "":
		jobs = math.Inf(1) // each run queues the next one
	case s.Chain != nil:
		jobs = float64(max(*s.Chain, 1))
	}
	use.GPUs = times(gpus, atOnce)
	use.GPUHours = gpuHours(float64(gpus)*float64(tasks)*float64(1+s.Retry.Limit()), jobs*use.Hours)
	return use, nil
}

// joined adds a name to a list with commas, unless it has it.
func joined(list, name string) string {
	switch {
	case list == "" || name == "":
		return list + name
	case slices.Contains(strings.Split(list, ","), name):
		return list
	}
	return list + "," + name
}

// partitionNames returns the partitions that a specification names, or the default one.
func partitionNames(list string, parts []slurm.Partition) (names []string) {
	for p := range strings.SplitSeq(list, ",") {
		if p = strings.TrimSpace(p); p != "" {
			names = append(names, p)
		}
	}
	if names == nil {
		for _, p := range parts {
			if p.Default {
				names = []string{p.Name}
			}
		}
	}
	return names
}

// mostGPUs is more GPUs than any cluster has.
const mostGPUs = 1 << 40

// times multiplies two counts, up to mostGPUs: a product that is too large for a number is
// not a small one.
func times(a, b int) int {
	if a > 0 && b > mostGPUs/a {
		return mostGPUs
	}
	return a * b
}

// gpuHours multiplies, and returns 0 for no GPUs even if hours is infinite.
func gpuHours(gpus, hours float64) float64 {
	if gpus == 0 {
		return 0
	}
	return gpus * hours
}

// hours reads a time limit: +Inf for none, NaN for one that is missing or not
// understood.
func hours(limit string) float64 {
	if strings.TrimSpace(limit) == "" {
		return math.NaN()
	}
	if unlimited(limit) {
		return math.Inf(1)
	}
	d, ok := slurm.ParseDuration(limit)
	if !ok {
		return math.NaN()
	}
	return d.Hours()
}

// partitionHours returns the longest that a job without a time limit can run in the
// given partitions, or NaN if that is unknown.
func partitionHours(parts []slurm.Partition, names []string, known bool) float64 {
	if !known || len(names) == 0 {
		return math.NaN()
	}
	longest := 0.0
	for _, name := range names {
		h := math.NaN()
		for _, p := range parts {
			if p.Name == name {
				h = math.Inf(1)
				if p.TimeLimitS != nil {
					h = float64(*p.TimeLimitS) / 3600
				}
			}
		}
		if math.IsNaN(h) {
			return h
		}
		longest = max(longest, h)
	}
	return longest
}

// partitions returns the cluster's partitions, if it reports them.
func partitions(ctx context.Context, svc *ops.Service, cluster string) ([]slurm.Partition, bool) {
	cl := clusterOf(svc, cluster)
	if cl == nil {
		return nil, false
	}
	all, err := cl.Partitions(ctx)
	return all, err == nil
}

func clusterOf(svc *ops.Service, name string) ops.Cluster {
	return svc.Clusters[cmp.Or(name, svc.Default)]
}

// gpusOfNode returns how many GPUs a whole node has, by the partitions or the site's
// profile.
func gpusOfNode(svc *ops.Service, cluster string, parts []slurm.Partition, names []string) (n int) {
	for _, p := range parts {
		if slices.Contains(names, p.Name) {
			n = max(n, p.GPUs)
		}
	}
	cluster = cmp.Or(cluster, svc.Default)
	if svc.Sites != nil {
		n = max(n, svc.Sites(cluster).GPUsPerNode)
	}
	return n
}

// wholeNodes are the options of sbatch that can take more of a node's GPUs: --core-spec and
// --thread-spec imply --exclusive.
var wholeNodes = []string{"gres", "exclusive", "core-spec", "thread-spec"}

// affectsGPUs reports whether further options of sbatch can take more of a node's GPUs, as one
// that Slurm's manual pages do not name may. The specification accepts no option that asks for
// GPUs, nodes, time or tasks beside its fields.
func affectsGPUs(options []string) bool {
	return slices.ContainsFunc(options, func(o string) bool {
		name, _, _ := strings.Cut(strings.TrimPrefix(o, "--"), "=")
		_, _, known := slurm.StepOption(name)
		return !known || slices.Contains(wholeNodes, name)
	})
}

// updateUse returns what the job can use after the change, with all its unfinished
// elements together. A job that the change submits anew counts as a submission does.
func updateUse(ctx context.Context, c *ops.Call, in *jobcontrol.UpdateIn) (Use, error) {
	parts, err := partsOf(ctx, c, in.Cluster, in.Job)
	if err != nil {
		return Use{}, err
	}
	if next, anew := jobcontrol.Resubmission(ctx, c, *in, parts[0]); anew {
		return specUse(ctx, c, next)
	}
	if going := slices.DeleteFunc(slices.Clone(parts), func(p slurm.Job) bool { return p.State.Ended() }); len(going) > 0 {
		parts = going
	}
	limit := hours(in.Time)
	for i := range parts {
		p := &parts[i]
		if in.Nodes > 0 && p.NumNodes > 0 {
			p.GPUs = (times(p.GPUs, in.Nodes) + p.NumNodes - 1) / p.NumNodes
		}
		if in.Partition != "" {
			p.Partition = in.Partition
		}
		if in.QOS != "" {
			p.QOS = in.QOS
		}
		if in.Time != "" {
			p.TimeLimitS = nil
			if !math.IsInf(limit, 1) && !math.IsNaN(limit) {
				seconds := int64(limit * 3600)
				p.TimeLimitS = &seconds
			}
		}
	}
	use := partsUse(parts)
	if in.Time != "" && math.IsNaN(limit) {
		use.Unknown = append(use.Unknown, TimeUnknown)
	}
	return use, nil
}

// partsOf returns the elements of an array or the components of a heterogeneous job as
// the cluster reports them; one row may stand for several elements. Any other job is
// one row.
func partsOf(ctx context.Context, c *ops.Call, cluster string, id slurm.JobID) ([]slurm.Job, error) {
	cl, j, err := c.Job(ctx, cluster, id)
	if err != nil || id.Array() != id {
		return []slurm.Job{j}, err
	}
	parts, err := cl.Jobs(ctx, slurm.Filter{IDs: []slurm.JobID{id}})
	if err != nil {
		return nil, err
	}
	parts = slices.DeleteFunc(parts, func(p slurm.Job) bool { return p.ID.Array() != id })
	for i := range parts {
		parts[i].Cluster = j.Cluster
	}
	if len(parts) == 0 { // it has left the queue
		parts = []slurm.Job{j}
	}
	return parts, nil
}

// partsUse returns what the parts of one job can use together. It respects a limit on
// concurrent elements if the row reports one, which is rare; otherwise it counts all
// elements.
func partsUse(parts []slurm.Job) (use Use) {
	for _, p := range parts {
		use.QOS, use.Account = joined(use.QOS, p.QOS), joined(use.Account, p.Account)
		_, index, _ := strings.Cut(string(p.ID), "_")
		tasks, atOnce, known := Tasks(strings.Trim(index, "[]"))
		if !known && !slices.Contains(use.Unknown, TasksUnknown) {
			use.Unknown = append(use.Unknown, TasksUnknown)
		}
		for name := range strings.SplitSeq(p.Partition, ",") {
			if name != "" && !slices.Contains(use.Partitions, name) {
				use.Partitions = append(use.Partitions, name)
			}
		}
		limit := math.Inf(1)
		if p.TimeLimitS != nil && *p.TimeLimitS > 0 {
			limit = float64(*p.TimeLimitS) / 3600
		}
		use.Hours = max(use.Hours, limit)
		use.GPUs += times(p.GPUs, atOnce)
		use.GPUHours += gpuHours(float64(p.GPUs)*float64(tasks), limit)
	}
	return use
}

// nodeCheckHours is longer than a check of nodes may take.
const nodeCheckHours = 0.5

func nodeCheckUse(ctx context.Context, svc *ops.Service, in *fleet.NodeCheckIn) (Use, error) {
	nodes, err := hostlist.Expand(in.Nodes)
	if err != nil {
		return Use{}, err
	}
	use := Use{Hours: nodeCheckHours}
	parts, known := partitions(ctx, svc, in.Cluster)
	switch {
	case in.Partition != "":
		use.Partitions = []string{in.Partition}
	default:
		// Any partition that has the nodes may be used.
		if !known {
			use.Unknown = append(use.Unknown, PartitionUnknown)
		}
		for _, p := range parts {
			use.Partitions = append(use.Partitions, p.Name)
		}
	}
	perNode := gpusOfNode(svc, in.Cluster, parts, use.Partitions)
	if in.GPUs != nil {
		perNode = *in.GPUs
	} else if perNode == 0 {
		use.Unknown = append(use.Unknown, GPUsUnknown)
	}
	use.GPUs = times(len(nodes), perNode)
	use.GPUHours = float64(use.GPUs) * use.Hours
	return use, nil
}

// Tasks returns the number of an array's elements, and how many of them may run at
// once: "0-31:4,40%2" has nine, of which two. No array counts as one element. known is
// false if some elements cannot be counted: Slurm itself truncates a long list with
// "...".
func Tasks(array string) (all, atOnce int, known bool) {
	ranges, most, limited := strings.Cut(array, "%")
	if array == "" {
		return 1, 1, true
	}
	known = true
	for r := range strings.SplitSeq(ranges, ",") {
		span, by, stepped := strings.Cut(r, ":")
		first, last, ranged := strings.Cut(span, "-")
		if !ranged {
			last = first
		}
		from, err := strconv.Atoi(strings.TrimSpace(first))
		to, err2 := strconv.Atoi(strings.TrimSpace(last))
		step := 1
		var err3 error
		if stepped {
			step, err3 = strconv.Atoi(strings.TrimSpace(by))
		}
		if err != nil || err2 != nil || err3 != nil || to < from || step < 1 {
			all, known = all+1, false
			continue
		}
		all += (to-from)/step + 1
	}
	if n, err := strconv.Atoi(strings.TrimSpace(most)); limited && err == nil && n > 0 {
		return all, min(n, all), known
	}
	return all, all, known
}
