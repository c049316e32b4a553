package launch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/lazy"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/store"
	"github.com/megatron-ops/megatron-ops/knowledge/megatron"
	"github.com/megatron-ops/megatron-ops/knowledge/rules"
	"github.com/megatron-ops/megatron-ops/slurm"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/outcome"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/report"
	"github.com/megatron-ops/megatron-ops/slurm/hostlist"
	"github.com/megatron-ops/megatron-ops/slurm/job"
)

// A Remedy is a failed job's specification, changed as its diagnosis asks.
type Remedy struct {
	Spec job.Spec `json:"spec"`
	// Changes says what was changed, one each.
	Changes []lang.Text `json:"changes"`
}

// RemedyFor works out what would mend a failed job that was submitted here; ok is
// false where its specification is not known, or where no change that a machine
// could make would help; the error says that this cannot be known at this moment.
// What it offers passes the plan.
func RemedyFor(ctx context.Context, c *ops.Call, cluster string, id slurm.JobID, r report.Report) (mended Remedy, ok bool, err error) {
	sub, err := c.FindSubmission(ctx, cluster, id)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return Remedy{}, false, unreadNow(id, err)
	}
	var s job.Spec
	if err != nil || json.Unmarshal(sub.Spec, &s) != nil {
		return Remedy{}, false, nil
	}
	mended, ok = remedy(c, s, id, r)
	return mended, ok, nil
}

func remedy(c *ops.Call, s job.Spec, id slurm.JobID, r report.Report) (Remedy, bool) {
	mend := remedies[r.Class]
	if mend == nil {
		return Remedy{}, false
	}
	// The one that failed keeps its own.
	s.Args, s.Env = slices.Clone(s.Args), maps.Clone(s.Env)
	p := patient{spec: &s, call: c, job: id, report: r}
	mend(&p)
	if len(p.changes) == 0 {
		return Remedy{}, false
	}
	return p.judged()
}

// otherNodes is the specification without the nodes that broke, where nothing
// else is to be changed and another try is worth it.
func otherNodes(c *ops.Call, s job.Spec, r report.Report) (Remedy, bool) {
	if len(r.ExcludeNodes) == 0 || !r.Retry {
		return Remedy{}, false
	}
	p := patient{spec: &s, call: c, report: r}
	return p.judged()
}

// judged is the changed specification, kept off the nodes that broke, where anything
// was changed and the plan accepts it.
func (p *patient) judged() (Remedy, bool) {
	p.avoid(p.report.ExcludeNodes)
	if len(p.changes) == 0 || !p.passes() {
		return Remedy{}, false
	}
	return Remedy{Spec: *p.spec, Changes: p.changes}, true
}

// A patient is a failed job's specification while it is changed, with the diagnosis and
// the changes so far.
type patient struct {
	spec    *job.Spec
	call    *ops.Call
	job     slurm.JobID
	report  report.Report
	changes []lang.Text
}

// passes reports whether the plan accepts the specification as it is now.
func (p *patient) passes() bool {
	verdict, err := JudgeSpec(p.call, *p.spec)
	return err == nil && !rules.Blocking(verdict.Problems)
}

// megatrons reports whether the program is Megatron's own: any other may not
// know a flag that it was not given.
func (p *patient) megatrons() bool {
	full := p.spec.WithDefaults()
	return Trains(full) && megatron.KnownEntry(MegatronRun(full).Entry)
}

func (p *patient) say(en, zh string, args ...any) {
	p.changes = append(p.changes, lang.Text{EN: fmt.Sprintf(en, args...), ZH: fmt.Sprintf(zh, args...)})
}

// remedies are the changes by class of failure. A class that is not here needs
// a person, or other nodes only.
var remedies = map[string]func(*patient){
	outcome.CUDAOOM:        (*patient).lessGPUMemory,
	outcome.HostOOM:        (*patient).moreHostMemory,
	outcome.MaxConnections: (*patient).ownConnections,
	outcome.PortInUse:      (*patient).otherPort,
	outcome.ParallelConfig: (*patient).keepTheRules,
	outcome.BadArgs:        (*patient).keepTheRules,
	outcome.ShmBusError:    (*patient).fewerWorkers,
	outcome.SlurmTimeLimit: (*patient).goOn,
	outcome.SlurmPreempted: (*patient).goOn,
}

// set gives flags their values; words are as on a command line.
func (p *patient) set(words []string) {
	var names []string
	for _, w := range words {
		if strings.HasPrefix(w, "--") {
			names = append(names, w)
		}
	}
	p.spec.Args = append(megatron.WithoutFlags(p.spec.Args, names), words...)
}

// lessGPUMemory takes the change that the memory estimate says would fit; where
// there is none, and much was reserved and not used, it lets segments grow, and
// else halves the micro batch: gradient accumulation makes up for it.
func (p *patient) lessGPUMemory() {
	const alloc = "PYTORCH_CUDA_ALLOC_CONF"
	m := p.report.Memory
	switch {
	case p.report.Fit != nil:
		p.set(p.report.Fit.Flags)
		line := strings.Join(p.report.Fit.Flags, " ")
		p.say("%s: about %.0f of %.0f GiB a GPU, by the memory estimate", "%s：按显存估算每卡约 %.0f / %.0f GiB", line, p.report.Fit.EstimateGiB, p.report.Fit.TotalGiB)
	case m != nil && m.ReservedGiB > m.TriedGiB && m.TriedGiB > 0 && p.spec.Env[alloc] == "":
		p.env(alloc, "expandable_segments:True")
		p.say("%s=expandable_segments:True: %.1f GiB were reserved and not used", "%s=expandable_segments:True：有 %.1f GiB 已保留但未使用", alloc, m.ReservedGiB)
	default:
		p.smallerBatch()
	}
}

// smallerBatch takes the largest micro batch of at most half that divides the
// global one.
func (p *patient) smallerBatch() {
	n := megatron.NumberOf(p.spec.Args, "--micro-batch-size", 1)
	had := p.spec.Args
	for m := n / 2; m > 0; m-- {
		p.set([]string{"--micro-batch-size", strconv.Itoa(m)})
		if p.passes() {
			p.say("--micro-batch-size %d instead of %d", "--micro-batch-size 由 %[2]d 改为 %[1]d", m, n)
			return
		}
		p.spec.Args = had
	}
}

func (p *patient) env(name, value string) {
	if p.spec.Env == nil {
		p.spec.Env = map[string]string{}
	}
	p.spec.Env[name] = value
}

var memorySize = lazy.New(`^([0-9]+)([KMGT]?)B?$`)

// moreHostMemory doubles what was asked for, or takes the whole node where
// nothing was.
func (p *patient) moreHostMemory() {
	asked := &p.spec.Mem
	name := "mem"
	if p.spec.MemPerGPU != "" { // Slurm takes one of the two
		asked, name = &p.spec.MemPerGPU, "mem_per_gpu"
	}
	had := strings.ToUpper(*asked)
	at := memorySize.FindStringSubmatch(had)
	switch {
	case had == "":
		yes := true
		p.spec.Exclusive, p.spec.Mem = &yes, "0"
		p.say("exclusive, mem: 0: all of each node's memory", "exclusive、mem: 0：使用节点的全部内存")
	case at != nil && at[1] != "0":
		n, err := strconv.Atoi(at[1])
		if err != nil || n > 1<<40 {
			return
		}
		*asked = strconv.Itoa(2*n) + at[2]
		p.say("%s: %s instead of %s", "%s 由 %[3]s 改为 %[2]s", name, *asked, had)
	}
}

// ownConnections leaves the variable to the script, which knows what the
// configuration needs.
func (p *patient) ownConnections() {
	had, own := p.spec.Env[connections]
	if !own {
		return
	}
	delete(p.spec.Env, connections)
	p.say("%s=%s is taken out: the script sets what this layout needs", "去掉 %s=%s：由脚本按并行配置设置", connections, had)
}

// otherPort takes a port of the job's own.
func (p *patient) otherPort() {
	n, err := strconv.Atoi(string(p.job.Array()))
	if err != nil {
		return
	}
	port := 20000 + n%20000
	if p.spec.MasterPort != nil && *p.spec.MasterPort == port {
		port++
	}
	p.spec.MasterPort = &port
	p.say("master_port: %d", "master_port: %d", port)
}

// fewerWorkers halves the data loader's processes, which share memory.
func (p *patient) fewerWorkers() {
	n := 2 // the default of Megatron's own
	if had, given := megatron.ValueOf(p.spec.Args, "--num-workers"); given {
		n, _ = strconv.Atoi(had)
	} else if !p.megatrons() {
		return
	}
	if n < 2 {
		return
	}
	p.set([]string{"--num-workers", strconv.Itoa(n / 2)})
	p.say("--num-workers %d instead of %d", "--num-workers 由 %[2]d 改为 %[1]d", n/2, n)
}

// startsOver are the flags with which a run that loads what it saves begins anew
// all the same, or elsewhere.
var startsOver = []string{"--ckpt-step", "--finetune", "--no-load-optim", "--no-load-rng"}

// goOn lets a run that was cut off load what it has saved. One that loads from
// elsewhere needs a person: it may have saved nothing yet.
func (p *patient) goOn() {
	save, saves := megatron.ValueOf(p.spec.Args, "--save")
	load, loads := megatron.ValueOf(p.spec.Args, "--load")
	if !saves || save == "" || !p.megatrons() || loads && load != save {
		return // it would begin anew, and be cut off anew
	}
	p.spec.Args = megatron.WithoutFlags(p.spec.Args, startsOver)
	p.set([]string{"--load", save})
	p.say("goes on from the last checkpoint in %s", "从 %s 中最近的检查点继续", save)
}

// What a rule's remedy says in words that are settings at the same time.
var (
	flagSaid = lazy.New(`(--[a-z][a-z0-9-]+)(?:[ =]([0-9]+)\b)?`)
	sizeSaid = lazy.New(`\b(?:use|or) (TP|PP|CP|EP) ([0-9]+)\b`)
	dropSaid = lazy.New(`^drop (--[a-z][a-z0-9-]+)$`)
	sizeFlag = map[string]string{
		"TP": "--tensor-model-parallel-size", "PP": "--pipeline-model-parallel-size",
		"CP": "--context-parallel-size", "EP": "--expert-model-parallel-size",
	}
)

// keepTheRules takes what the plan offers for what Megatron refused, as far as
// it leaves the experiment as it is.
func (p *patient) keepTheRules() {
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
			p.say("without %s (rule %s)", "去掉 %s（规则 %s）", at[1], rule)
		} else {
			words := settings(fix)
			p.set(words)
			p.say("%s (rule %s)", "%s（规则 %s）", strings.Join(words, " "), rule)
		}
		if slices.Equal(before, p.spec.Args) {
			return
		}
	}
}

// settings are the flags with numbers that a remedy names first.
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

// avoid keeps the job off nodes, where it does not ask for them and is not kept
// off them already.
func (p *patient) avoid(nodes []string) {
	wanted, err := hostlist.Expand(p.spec.Nodelist)
	had, bad := hostlist.Expand(p.spec.Exclude)
	asked := func(n string) bool { return slices.Contains(wanted, n) }
	kept := func(n string) bool { return slices.Contains(had, n) }
	if fresh := slices.DeleteFunc(slices.Clone(nodes), kept); err != nil || bad != nil || len(fresh) == 0 || slices.ContainsFunc(nodes, asked) {
		return
	}
	all := append(slices.Clone(had), nodes...)
	slices.Sort(all)
	p.spec.Exclude = hostlist.Compress(slices.Compact(all))
	p.say("exclude: %s", "exclude: %s", p.spec.Exclude)
}
