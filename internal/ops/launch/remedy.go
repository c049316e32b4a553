package launch

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/lazy"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/ops/preflight"
	"github.com/megatron-ops/megatron-ops/internal/store"
	"github.com/megatron-ops/megatron-ops/knowledge/megatron"
	"github.com/megatron-ops/megatron-ops/knowledge/rules"
	"github.com/megatron-ops/megatron-ops/slurm"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/outcome"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/report"
	"github.com/megatron-ops/megatron-ops/slurm/hostlist"
	"github.com/megatron-ops/megatron-ops/slurm/job"
)

// A Remedy is a failed job's specification with the changes that its diagnosis
// suggests.
type Remedy struct {
	Spec job.Spec `json:"spec"`
	// Changes describes each change.
	Changes []lang.Text `json:"changes"`
}

// RemedyFor returns a change that would repair a failed job that was submitted here,
// and that passes the plan. ok is false where the job's specification is unknown, or
// where no change that a machine could make would help. The error says that the
// specification cannot be read at the moment.
func RemedyFor(ctx context.Context, c *ops.Call, cluster string, id slurm.JobID, r report.Report) (mended Remedy, ok bool, err error) {
	sub, err := c.FindSubmission(ctx, cluster, id)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return Remedy{}, false, unreadableNow(id, err)
	}
	var s job.Spec
	if err != nil || json.Unmarshal(sub.Spec, &s) != nil {
		return Remedy{}, false, nil
	}
	if mended, ok = remedyOf(c, s, id, r); !ok {
		return mended, false, nil
	}
	err = mended.keepEnoughNodes(ctx, c, cluster, s)
	return mended, err == nil, err
}

// keepEnoughNodes takes the failed nodes back into a specification that would leave out so
// many that too few are left for the job, and says so among the changes; as an error where
// it was the only change. It needs a cluster that tells of its nodes.
func (r *Remedy) keepEnoughNodes(ctx context.Context, c *ops.Call, cluster string, before job.Spec) error {
	cl, err := c.Cluster(cluster)
	if err != nil || r.Spec.Exclude == before.Exclude {
		return nil //nolint:nilerr // the plan has accepted it, and nothing speaks against it
	}
	nodes, _ := cl.Nodes(ctx)
	s := r.Spec
	s.Cluster = cluster
	all, left, few := preflight.TooFewLeft(ctx, cl, nodes, c.SiteOf(s).Fill(s).WithDefaults())
	if !few {
		return nil
	}
	said := lang.Text{
		EN: "without %s too few nodes are left for the job: %d of %d",
		ZH: "排除 %s 后 %[3]d 个节点只剩 %[2]d 个，不够该作业使用",
	}.With(r.Spec.Exclude, left, all)
	r.Changes = slices.DeleteFunc(r.Changes, func(l lang.Text) bool { return l == excluded(r.Spec.Exclude) })
	if r.Spec.Exclude = before.Exclude; len(r.Changes) == 0 {
		return &ops.Error{Code: ops.Failed, Field: "exclude", Message: said, Fix: lang.Text{
			EN: "have the node repaired, or submit it with fewer nodes", ZH: "请先修复该节点，或减少作业的节点数后再提交",
		}}
	}
	r.Changes = append(r.Changes, said)
	return nil
}

// excluded says that a job is kept from nodes.
func excluded(nodes string) lang.Text {
	return lang.Text{EN: "exclude: %s", ZH: "exclude: %s"}.With(nodes)
}

func remedyOf(c *ops.Call, s job.Spec, id slurm.JobID, r report.Report) (Remedy, bool) {
	mend := remedies[r.Class]
	if mend == nil {
		return Remedy{}, false
	}
	// The specification of the failed job must not change.
	s.Args, s.Env = slices.Clone(s.Args), maps.Clone(s.Env)
	p := repair{spec: &s, call: c, job: id, report: r}
	mend(&p)
	if len(p.changes) == 0 {
		return Remedy{}, false
	}
	return p.accepted()
}

// withoutFailedNodes returns the specification without the nodes that failed, where nothing
// else should change and another try is worthwhile.
func withoutFailedNodes(c *ops.Call, s job.Spec, r report.Report) (Remedy, bool) {
	if len(r.ExcludeNodes) == 0 || !r.Retry {
		return Remedy{}, false
	}
	p := repair{spec: &s, call: c, report: r}
	return p.accepted()
}

// accepted returns the changed specification without the nodes that failed, where there
// is a change and the plan accepts it.
func (p *repair) accepted() (Remedy, bool) {
	p.excludeNodes(p.report.ExcludeNodes)
	if len(p.changes) == 0 || !p.planAccepts() {
		return Remedy{}, false
	}
	return Remedy{Spec: *p.spec, Changes: p.changes}, true
}

// A repair is a failed job's specification while it is changed, with the diagnosis and
// the changes so far.
type repair struct {
	spec    *job.Spec
	call    *ops.Call
	job     slurm.JobID
	report  report.Report
	changes []lang.Text
}

// planAccepts reports whether the plan accepts the current specification.
func (p *repair) planAccepts() bool {
	verdict, err := JudgeSpec(p.call, *p.spec)
	return err == nil && !rules.Blocking(verdict.Problems)
}

// runsMegatron reports whether the program is Megatron's own. Another program may not
// know a flag that it was not given before.
func (p *repair) runsMegatron() bool {
	full := p.spec.WithDefaults()
	return Trains(full) && megatron.KnownEntry(MegatronRun(full).Entry)
}

func (p *repair) note(en, zh string, args ...any) {
	p.changes = append(p.changes, lang.Text{EN: en, ZH: zh}.With(args...))
}

// remedies maps classes of failure to their changes. Other classes need a person, or
// only other nodes.
var remedies = map[string]func(*repair){
	outcome.CUDAOOM:        (*repair).lessGPUMemory,
	outcome.HostOOM:        (*repair).moreHostMemory,
	outcome.MaxConnections: (*repair).unsetConnections,
	outcome.PortInUse:      (*repair).otherPort,
	outcome.ParallelConfig: (*repair).followRules,
	outcome.BadArgs:        (*repair).followRules,
	outcome.ShmBusError:    (*repair).fewerWorkers,
	outcome.SlurmTimeLimit: (*repair).loadSaved,
	outcome.SlurmPreempted: (*repair).loadSaved,
}

// set sets flags to values; words are written as on a command line.
func (p *repair) set(words []string) {
	var names []string
	for _, w := range words {
		if strings.HasPrefix(w, "--") {
			names = append(names, w)
		}
	}
	p.spec.Args = append(megatron.WithoutFlags(p.spec.Args, names), words...)
}

// lessGPUMemory makes the change after which the job fits, by the memory estimate.
// Without one, it allows segments to grow where much memory was reserved but unused;
// otherwise it halves the micro batch, for which gradient accumulation compensates.
func (p *repair) lessGPUMemory() {
	const alloc = "PYTORCH_CUDA_ALLOC_CONF"
	m := p.report.Memory
	switch {
	case p.report.Fit != nil:
		p.set(p.report.Fit.Flags)
		line := strings.Join(p.report.Fit.Flags, " ")
		p.note("%s: about %.0f of %.0f GiB per GPU, by the memory estimate and what this run used", "%s：按显存估算与本次实际用量，每卡约 %.0f / %.0f GiB", line, p.report.Fit.EstimateGiB, p.report.Fit.TotalGiB)
	case m != nil && m.ReservedGiB > m.TriedGiB && m.TriedGiB > 0 && p.spec.Env[alloc] == "":
		p.env(alloc, "expandable_segments:True")
		p.note("%s=expandable_segments:True: %.1f GiB were reserved and not used", "%s=expandable_segments:True：有 %.1f GiB 已保留但未使用", alloc, m.ReservedGiB)
	default:
		p.smallerBatch()
	}
}

// smallerBatch sets the largest micro batch of at most half the size that the plan
// accepts.
func (p *repair) smallerBatch() {
	n := megatron.NumberOf(p.spec.Args, "--micro-batch-size", 1)
	had := p.spec.Args
	for m := n / 2; m > 0; m-- {
		p.set([]string{"--micro-batch-size", strconv.Itoa(m)})
		if p.planAccepts() {
			p.note("--micro-batch-size %d instead of %d", "--micro-batch-size 由 %[2]d 改为 %[1]d", m, n)
			return
		}
		p.spec.Args = had
	}
}

func (p *repair) env(name, value string) {
	if p.spec.Env == nil {
		p.spec.Env = map[string]string{}
	}
	p.spec.Env[name] = value
}

var memorySize = lazy.New(`^([0-9]+)([KMGT]?)B?$`)

// moreHostMemory doubles the requested memory, or takes the whole node where none was
// requested.
func (p *repair) moreHostMemory() {
	asked := &p.spec.Mem
	name := "mem"
	if p.spec.MemPerGPU != "" { // Slurm accepts only one of the two
		asked, name = &p.spec.MemPerGPU, "mem_per_gpu"
	}
	had := strings.ToUpper(*asked)
	at := memorySize.FindStringSubmatch(had)
	switch {
	case had == "":
		yes := true
		p.spec.Exclusive, p.spec.Mem = &yes, "0"
		p.note("exclusive, mem: 0: all of each node's memory", "exclusive、mem: 0：使用节点的全部内存")
	case at != nil && at[1] != "0":
		n, err := strconv.Atoi(at[1])
		if err != nil || n > 1<<40 {
			return
		}
		*asked = strconv.Itoa(2*n) + at[2]
		p.note("%s: %s instead of %s", "%s 由 %[3]s 改为 %[2]s", name, *asked, had)
	}
}

// unsetConnections removes the variable, because the script sets the value that the
// layout needs.
func (p *repair) unsetConnections() {
	had, own := p.spec.Env[connections]
	if !own {
		return
	}
	delete(p.spec.Env, connections)
	p.note("%s=%s is taken out: the script sets what this layout needs", "去掉 %s=%s：由脚本按并行配置设置", connections, had)
}

// otherPort sets a port derived from the job's id.
func (p *repair) otherPort() {
	n, err := strconv.Atoi(string(p.job.Array()))
	if err != nil {
		return
	}
	port := 20000 + n%20000
	if p.spec.MasterPort != nil && *p.spec.MasterPort == port {
		port++
	}
	p.spec.MasterPort = &port
	p.note("master_port: %d", "master_port: %d", port)
}

// fewerWorkers halves the number of the data loader's processes, which use shared
// memory.
func (p *repair) fewerWorkers() {
	n := 2 // Megatron's own default
	if had, given := megatron.ValueOf(p.spec.Args, "--num-workers"); given {
		n, _ = strconv.Atoi(had)
	} else if !p.runsMegatron() {
		return
	}
	if n < 2 {
		return
	}
	p.set([]string{"--num-workers", strconv.Itoa(n / 2)})
	p.note("--num-workers %d instead of %d", "--num-workers 由 %[2]d 改为 %[1]d", n/2, n)
}

// startsOver holds the flags with which a run does not continue from the checkpoint
// that it loads.
var startsOver = []string{"--ckpt-step", "--finetune", "--no-load-optim", "--no-load-rng"}

// loadSaved makes a run that was cut off load what it has saved. A run that loads from
// elsewhere needs a person, because it may have saved nothing yet.
func (p *repair) loadSaved() {
	save, saves := megatron.ValueOf(p.spec.Args, "--save")
	load, loads := megatron.ValueOf(p.spec.Args, "--load")
	if !saves || save == "" || !p.runsMegatron() || loads && load != save {
		return // it would start from the beginning and be cut off again
	}
	p.spec.Args = megatron.WithoutFlags(p.spec.Args, startsOver)
	p.set([]string{"--load", save})
	p.note("goes on from the last checkpoint in %s", "从 %s 中最近的检查点继续", save)
}

// Patterns for remedies of rules whose words are settings too.
var (
	flagSaid = lazy.New(`(--[a-z][a-z0-9-]+)(?:[ =]([0-9]+)\b)?`)
	sizeSaid = lazy.New(`\b(?:use|or) (TP|PP|CP|EP) ([0-9]+)\b`)
	dropSaid = lazy.New(`^drop (--[a-z][a-z0-9-]+)$`)
	sizeFlag = map[string]string{
		"TP": "--tensor-model-parallel-size", "PP": "--pipeline-model-parallel-size",
		"CP": "--context-parallel-size", "EP": "--expert-model-parallel-size",
	}
)

// followRules applies the fixes that the plan offers for Megatron's errors, as long as
// they do not change the experiment.
func (p *repair) followRules() {
	for range 5 {
		english := *p.call
		english.Lang = lang.EN
		verdict, err := JudgeSpec(&english, *p.spec)
		if err != nil || !rules.Blocking(verdict.Problems) {
			return
		}
		i := slices.IndexFunc(verdict.Problems, func(x rules.Problem) bool {
			return x.Severity == rules.Error && x.Effect != rules.ChangesExperiment && (dropSaid.MatchString(x.Fix) || settings(x.Fix) != nil)
		})
		if i < 0 {
			return
		}
		rule, fix := verdict.Problems[i].Rule, verdict.Problems[i].Fix
		before := slices.Clone(p.spec.Args)
		if at := dropSaid.FindStringSubmatch(fix); at != nil {
			p.spec.Args = megatron.WithoutFlags(p.spec.Args, at[1:])
			p.note("without %s (rule %s)", "去掉 %s（规则 %s）", at[1], rule)
		} else {
			words := settings(fix)
			p.set(words)
			p.note("%s (rule %s)", "%s（规则 %s）", strings.Join(words, " "), rule)
		}
		if slices.Equal(before, p.spec.Args) {
			return
		}
	}
}

// settings returns the first flag with a number that a remedy names.
func settings(fix string) []string {
	if at := sizeSaid.FindStringSubmatch(fix); at != nil {
		return []string{sizeFlag[at[1]], at[2]}
	}
	at := flagSaid.FindStringSubmatch(fix)
	if at == nil {
		return nil
	}
	f, ok := megatron.LookupFlag(at[1])
	switch {
	case !ok:
		return nil
	case f.Action == megatron.SetTrue:
		return []string{f.Name}
	case at[2] == "":
		return nil
	}
	return []string{f.Name, at[2]}
}

// excludeNodes excludes nodes from the job, unless the job asks for them or excludes them
// already.
func (p *repair) excludeNodes(nodes []string) {
	wanted, err := hostlist.Expand(p.spec.Nodelist)
	had, bad := hostlist.Expand(p.spec.Exclude)
	asked := func(n string) bool { return slices.Contains(wanted, n) }
	kept := func(n string) bool { return slices.Contains(had, n) }
	if fresh := slices.DeleteFunc(slices.Clone(nodes), kept); err != nil || bad != nil || len(fresh) == 0 || slices.ContainsFunc(nodes, asked) {
		return
	}
	p.spec.Exclude = hostlist.Compress(slices.Concat(had, nodes))
	p.changes = append(p.changes, excluded(p.spec.Exclude))
}
