package diagnose

import (
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/lazy"
	"github.com/megatron-ops/megatron-ops/slurm"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/logfile"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/logline"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/outcome"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/pattern"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/report"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/scan"
)

// report builds the report from the verdict.
func (j *job) report() report.Report {
	v := j.judgeAll()
	r := report.Report{
		Class:        v.class,
		Attempts:     j.attempts,
		Runs:         j.runs,
		Why:          v.why,
		ExcludeNodes: []string{},
		Advice:       []string{},
		Evidence:     []report.Evidence{},
		Clocks:       j.clocks,
		RanksRead:    j.ranksRead(),
		Unreadable:   j.unreadable,
		LeftOut:      j.src.Documents(),
		OtherJobs:    j.src.OtherJobs,
		OtherLogs:    j.src.OtherLogs,
	}
	if j.src.NoLogs && len(j.src.OtherLogs) > 0 {
		r.NoLog = lang.Text{EN: "what was found with the job's number is of other jobs", ZH: "带有该作业号的日志都属于其他作业"}
	}
	r.Layout, r.Stacks, r.OnlyRanks = j.layout(), j.stacks(), j.onlyRanks()
	if n, ok := j.lastIteration(); ok {
		r.LastIter = &n
	}
	if v.since > 0 && v.class == outcome.Hang {
		s := int64(v.since.Seconds())
		r.SinceS = &s
	}
	if v.class == outcome.Running || v.class == outcome.Hang && v.quiet() {
		j.liveness(&r)
	}
	if v.class == outcome.UnknownExit || v.event == nil && slurm.NotLaunched(j.given.ExitCode) {
		r.ExitCode, r.State = j.given.ExitCode, j.given.JobState
	}
	if v.class == outcome.SlurmPreempted {
		r.State = string(j.putBack(v))
	}
	if e := v.event; e != nil {
		j.addRoot(&r, v, e)
	}
	j.missedCollective(&r, v)
	if v.class == outcome.SlurmNodeFail && r.RootNode == nil && len(j.given.FailedNodes) > 0 {
		r.RootNode = &j.given.FailedNodes[0]
	}
	r.DownstreamRanks = j.downstream(v)
	if r.DownstreamRanks > 1 && v.raisedByOne() {
		if r.Laggard = "unprefixed"; v.event.Tag.Local >= 0 {
			r.Laggard = "local"
		}
	}
	j.nodesToExclude(&r, v)
	r.Retry = worthRetrying(r, v)
	j.addEvidence(&r, v)
	r.PassedOver = j.passedOver(v)
	j.addDetails(&r, v)
	if report.AsksFor[v.class] != nil && v.class != outcome.Container {
		r.Already = j.alreadyHas(r)
	}
	r.Finish()
	return r
}

// missedCollective adds what flight recorder dumps show: a collective, and the ranks that never entered
// it.
func (j *job) missedCollective(r *report.Report, v verdict) {
	m := j.missed
	if m == nil || v.class != outcome.Hang && (v.laggard == nil || v.laggard.why != "recorder") {
		return
	}
	r.Laggard, r.RootRank = "recorder", &m.Rank
	if len(m.Ranks) > 1 {
		r.MissedBy = m.Ranks
	}
	if node := j.nodeByRank(m.Rank, j.nodesOfRanks()); node != "" && r.RootNode == nil {
		r.RootNode = &node
	}
	r.Missed = &report.Missed{Op: logline.Show(m.Op), Seq: m.Seq, Group: logline.Show(m.Group), Waiting: m.Waiting}
}

// addDetails adds what the launch rules, the memory estimate and other nodes' logs say about the cause.
func (j *job) addDetails(r *report.Report, v verdict) {
	if v.class == outcome.CUDAOOM {
		r.Fit = j.fit(r.Memory)
	}
	for _, rule := range j.brokenRules(v) {
		r.Rules = append(r.Rules, rule.ID)
	}
	switch v.class {
	case outcome.Hang:
		r.Behind = j.whoIsBehind()
	case outcome.ImportError:
		r.ImportKind = j.importKind(r, v.event)
		r.ImportRoot = logline.Show(r.ImportRoot)
	}
	switch v.class {
	case outcome.NCCLConnection, outcome.NCCLIB, outcome.NCCLTimeout, outcome.Rendezvous:
		if address, node := j.peerOf(v.eventOrEmpty().Text); address != "" {
			r.Peer = logline.Show(address)
			if node != "" {
				r.Peer = logline.Show(node + " (" + address + ")")
			}
		}
		r.Differs = j.differingMarkers()
	}
}

// raisedByOne reports whether one process raised the cause, and nothing tells its rank.
func (v verdict) raisedByOne() bool {
	e := v.event
	return e != nil && e.Rank < 0 && e.Stack != nil && !e.Agent && len(v.others) == 0 && v.laggard == nil && !v.noneAtFault
}

// addRoot adds the line of the cause and its facts.
func (j *job) addRoot(r *report.Report, v verdict, e *scan.Event) {
	if !v.quiet() {
		name, no := j.src.Logs[e.File].Place(e.Off)
		r.RootFile, r.RootLineNo, r.RootLine = name, &no, logline.Show(e.Raw)
		noNode := v.noneAtFault || v.class != outcome.SlurmNodeFail && scan.IsEnd(v.class) && e.Agent // Slurm names the node that wrote it
		if e.Rank >= 0 && v.class != outcome.SlurmNodeFail && !v.noneAtFault && !v.ofMany {
			r.RootRank = &e.Rank
		}
		if e.Node != "" && !noNode {
			r.RootNode = &e.Node
		}
	}
	if v.laggard != nil {
		r.Laggard = v.laggard.why
	}
	r.Phase = e.Stack.Phase()
	if f, ok := e.Stack.Innermost(); ok {
		f.File, f.Function = logline.Show(f.File), logline.Show(f.Function)
		r.Traceback = &f
	}
	if v.class == outcome.CUDAOOM {
		r.Memory = report.MemoryOf(e.Text)
	}
}

func (j *job) layout() *report.Layout {
	l := report.Layout{
		WorldSize: j.world, TP: j.argument("tensor_model_parallel_size"), PP: j.argument("pipeline_model_parallel_size"), CP: j.argument("context_parallel_size"),
		DP: j.argument("data_parallel_size"), EP: j.argument("expert_model_parallel_size"), MicroBatchSize: j.argument("micro_batch_size"),
		SeqLength: j.argument("seq_length"),
	}
	if l == (report.Layout{}) {
		return nil
	}
	return &l
}

var iterationNumber = lazy.New(`iteration +(\d+)`)

func (j *job) lastIteration() (int, bool) {
	most, found := 0, false
	for _, f := range j.files {
		if n := len(f.Progress); n > 0 {
			if g := iterationNumber.FindStringSubmatch(f.Progress[n-1].Text); g != nil {
				k, _ := strconv.Atoi(g[1])
				most, found = max(most, k), true
			}
		}
	}
	return most, found
}

// ranksRead counts the ranks that have a log of their own. torchrun may be told to keep the logs of
// some ranks only.
func (j *job) ranksRead() int {
	ranks := map[string]struct{}{}
	for i, f := range j.src.Logs {
		if logfile.AttemptPath.MatchString(f.Name) {
			ranks[path.Dir(f.Name)] = struct{}{}
		} else if j.fileRank[i] >= 0 {
			ranks[strconv.Itoa(j.fileRank[i])] = struct{}{}
		}
	}
	return len(ranks)
}

// onlyRanks returns the ranks that have a log of their own, if the run must have had others without
// one. A CI artifact may keep the logs of some ranks only.
func (j *job) onlyRanks() []int {
	seen := map[int]struct{}{}
	for i, f := range j.src.Logs {
		rank := j.fileRank[i]
		if m := logfile.AttemptPath.FindStringSubmatch(f.Name); m != nil && rank < 0 {
			rank = j.rankOf(i, logline.NoTag)
		}
		if rank >= 0 {
			seen[rank] = struct{}{}
		}
	}
	ranks := slices.Sorted(maps.Keys(seen))
	if len(ranks) == 0 || len(ranks) > 32 || 2*len(ranks) > max(j.world, ranks[len(ranks)-1]+1) {
		return nil
	}
	return ranks
}

// downstream counts the ranks that only report consequences.
func (j *job) downstream(v verdict) int {
	if v.quiet() || v.event == nil {
		return 0
	}
	roots, hurt := map[int]bool{v.event.Rank: true}, map[int]bool{}
	for _, e := range v.others {
		roots[e.Rank] = true
	}
	for _, r := range j.alike(v) {
		roots[r] = true
	}
	for _, e := range j.events {
		if !e.Counts() || e.Weight >= pattern.Death {
			continue
		}
		if len(e.Tasks) > 0 && j.taskRank {
			for _, t := range e.Tasks {
				hurt[t] = true
			}
		} else if e.Rank >= 0 {
			hurt[e.Rank] = true
		}
	}
	n := 0
	for r := range hurt {
		if !roots[r] {
			n++
		}
	}
	return n
}

// alike returns the ranks that exited like the rank at fault, if as many processes wrote the cause into its file without
// their ranks.
func (j *job) alike(v verdict) (ranks []int) {
	wrote := 1
	for _, e := range v.others {
		if e.File == v.event.File && e.Rank < 0 {
			wrote++
		}
	}
	if wrote == 1 {
		return nil
	}
	exits := map[int]int{} // rank → its exit code
	for _, e := range j.files[v.event.File].Elastic {
		if e.Rank >= 0 {
			exits[e.Rank] = e.Exit
		}
	}
	exit := exits[v.event.Rank]
	if exit == 0 {
		return nil
	}
	for r, code := range exits {
		if code == exit {
			ranks = append(ranks, r)
		}
	}
	if len(ranks) != wrote {
		return nil
	}
	return ranks
}

// permission matches failures that every node would have: a missing right or folder.
var permission = lazy.New(`(?i)permission denied|operation not permitted|PermissionError|\[Errno (?:1|13)\]|File \S+ cannot be opened|` +
	`Parent directory \S+ does not exist`)

// serverFault matches temporary errors of a hub or registry.
var serverFault = lazy.New(`(?i)\b(?:429|5\d\d)\b (?:Client|Server)? ?Error|Too Many Requests|toomanyrequests|rate limit|\b50[0234]\b|` +
	`Bad Gateway|Service Unavailable|Internal Server Error|Gateway Time-?out|\b429\b|HTTP (?:error )?5\d\d`)

// worthRetrying returns the class's advice on a retry, unless the line of the cause tells more.
func worthRetrying(r report.Report, v verdict) bool {
	text := r.RootLine
	switch v.class {
	case outcome.NCCLTimeout:
		return !report.OtherCollective.MatchString(text)
	case outcome.Filesystem:
		return !permission.MatchString(text)
	case outcome.HFHub, outcome.Container:
		return serverFault.MatchString(text) || len(r.ExcludeNodes) > 0
	}
	return outcome.Of(v.class).Retry.Worth()
}

// addEvidence adds the lines that show how a verdict came about. It shows a rank's line once, also where
// srun wrote it into another file with the lines of all ranks.
func (j *job) addEvidence(r *report.Report, v verdict) {
	type line struct {
		rank, file int
		off        int64
		text       string
	}
	seen := map[line]bool{}
	add := func(e *scan.Event, why string) bool {
		if e == nil {
			return false
		}
		key := line{rank: -1, file: e.File, off: e.Off}
		if e.Rank >= 0 && len(j.files) > 1 {
			_, text := logline.CutTag(e.Raw)
			key = line{rank: e.Rank, text: strings.TrimSpace(text)}
		}
		if seen[key] {
			return false
		}
		seen[key] = true
		name, no := j.src.Logs[e.File].Place(e.Off)
		ev := report.Evidence{File: name, LineNo: no, Node: e.Node, Text: logline.Show(e.Raw), Why: why}
		if e.Rank >= 0 {
			rank := e.Rank
			ev.Rank = &rank
		}
		if w := e.When(); !w.IsZero() {
			ev.Time = &w
		}
		r.Evidence = append(r.Evidence, ev)
		return true
	}
	if v.quiet() {
		add(j.lastSign(), "last sign")
		return
	}
	if v.onlyLast {
		add(v.event, "last sign")
	} else {
		add(v.event, "cause")
	}
	same := 0
	for _, e := range v.others {
		if same < 3 && add(e, "same cause") {
			same++
		}
	}
	if v.class == outcome.UnknownExit || v.event != nil && v.event.Agent && v.event.Kind == "" {
		for _, e := range j.lastWords(v.event) {
			add(e, "last words")
		}
	}
	n := 0
	for _, e := range j.events {
		if n < 2 && e.Counts() && e != v.event && e.Class != v.class && e.Weight < pattern.Death && e.Rank != v.eventOrEmpty().Rank && add(e, "downstream") {
			n++
		}
	}
	earlier := slices.Clone(j.earlier)
	slices.SortStableFunc(earlier, func(a, b *scan.Event) int { return b.Weight - a.Weight })
	n = 0
	for _, e := range earlier {
		if n < 2 && e.Counts() && e.Weight >= pattern.Exited {
			add(e, "earlier attempt")
			n++
		}
	}
}

// lastWords returns the last lines, at most three, of the rank that died, or of all ranks if that rank
// is unknown.
func (j *job) lastWords(dead *scan.Event) (words []*scan.Event) {
	if dead == nil {
		return nil
	}
	for i, f := range j.files {
		if j.old[i] {
			continue
		}
		for t, m := range f.LastBy {
			if r := j.rankOf(i, t); dead.Rank >= 0 && r != dead.Rank || pattern.AgentLine(m.Text) || m.Off == dead.Off && i == dead.File {
				continue
			}
			e := eventOf(i, m)
			e.Tag, e.Rank, e.Node = t, j.rankOf(i, t), j.fileNode[i]
			words = append(words, e)
		}
	}
	slices.SortFunc(words, func(a, b *scan.Event) int {
		if c := b.Before.Compare(a.Before); c != 0 {
			return c
		}
		return int(b.Off - a.Off)
	})
	return words[:min(3, len(words))]
}

// eventOf returns a line of a file as an event without a rank and a node.
func eventOf(file int, m scan.Mark) *scan.Event {
	t, text := logline.CutTag(m.Text)
	return &scan.Event{File: file, Off: m.Off, Raw: m.Text, Text: text, Tag: t, Rank: -1, Before: m.At}
}

// eventOrEmpty returns the verdict's event, or an empty one without a rank.
func (v verdict) eventOrEmpty() *scan.Event {
	if v.event == nil {
		return &scan.Event{Rank: -1}
	}
	return v.event
}
