package diagnose

import (
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/megatron-ops/megatron-ops/internal/lazy"
	"github.com/megatron-ops/megatron-ops/internal/redact"
)

// A Report is the answer to what broke. Its JSON is the contract's; unknown
// values are null. All text from logs is clean and free of secrets.
type Report struct {
	Class           string   `json:"class"`
	Retry           bool     `json:"retry"`
	RootFile        string   `json:"root_file"`
	RootLineNo      *int     `json:"root_line_no"`
	RootLine        string   `json:"root_line"`
	RootRank        *int     `json:"root_rank"`
	RootNode        *string  `json:"root_node"`
	ExcludeNodes    []string `json:"exclude_nodes"`
	DownstreamRanks int      `json:"downstream_ranks"`
	Summary         string   `json:"summary"`
	Advice          []string `json:"advice"`

	Who       string     `json:"who"`
	Phase     string     `json:"phase,omitempty"`
	Traceback *Frame     `json:"traceback,omitempty"`
	Memory    *Memory    `json:"memory,omitempty"`
	Layout    *Layout    `json:"layout,omitempty"`
	Attempts  int        `json:"attempts"`
	Runs      int        `json:"runs,omitempty"` // of one file, of which the last is judged
	SinceS    *int64     `json:"seconds_without_progress,omitempty"`
	LastIter  *int       `json:"last_iteration,omitempty"`
	Evidence  []Evidence `json:"evidence"`
	Notes     []string   `json:"notes,omitempty"`

	// Why names the step of the method that decided, and Laggard the rank
	// that a collective waited for.
	Why     string `json:"why,omitempty"`
	Laggard string `json:"laggard,omitempty"`
	// Collective is the one that the laggard never entered.
	Collective string `json:"collective,omitempty"`
	// MissedBy are all ranks that never entered it, where they are several.
	MissedBy []int `json:"missed_by,omitempty"`
	// Stacks are what py-spy dumps in the logs show, the smallest group first.
	// Fit is the change that would fit after an out-of-memory error, Rules the
	// rows of the rules table that explain a refusal, Peer the address and node
	// that could not be reached, and Differs the start markers that are not the
	// same on all nodes.
	Stacks  []StackGroup `json:"stacks,omitempty"`
	Fit     *Fit         `json:"fit,omitempty"`
	Rules   []string     `json:"rules,omitempty"`
	Peer    string       `json:"peer,omitempty"`
	Differs []string     `json:"differs,omitempty"`
	// ImportKind is why a module was not found, and ImportRoot the checkout that
	// shows it.
	ImportKind ImportKind `json:"import_kind,omitempty"`
	ImportRoot string     `json:"import_root,omitempty"`
	// Already is what remedies of the class ask for and the job has, or cannot have.
	Already []string `json:"already,omitempty"`
	// OnlyRanks are the ranks whose logs are here, where those of others are not.
	OnlyRanks []int `json:"only_ranks,omitempty"`
	// Behind is who a hanging job waits for, where the logs show it.
	Behind *Behind `json:"behind,omitempty"`

	// Unreadable is what could not be read.
	Unreadable []Unreadable `json:"unreadable,omitempty"`
	// StepS is the usual time of an iteration, AgeS the age of the newest line,
	// and MayHang whether that is longer than a few iterations, of a job that runs.
	StepS   *float64 `json:"seconds_per_iteration,omitempty"`
	AgeS    *int64   `json:"last_line_age_s,omitempty"`
	MayHang bool     `json:"may_hang,omitempty"`
	// ExitCode and State are Slurm's, where they are all that is known of an end.
	ExitCode string `json:"exit_code,omitempty"`
	State    string `json:"job_state,omitempty"`

	offered bool // see Offered
}

// Evidence is one line that the answer rests on.
type Evidence struct {
	File   string     `json:"file"`
	LineNo int        `json:"line_no"`
	Rank   *int       `json:"rank"`
	Node   string     `json:"node,omitempty"`
	Time   *time.Time `json:"time"`
	Text   string     `json:"text"`
	Why    string     `json:"why"` // cause, same cause, downstream, earlier attempt, last sign, start
}

// Layout is what the run printed of its own shape.
type Layout struct {
	WorldSize      int `json:"world_size,omitempty"`
	TP             int `json:"tp,omitempty"`
	PP             int `json:"pp,omitempty"`
	CP             int `json:"cp,omitempty"`
	DP             int `json:"dp,omitempty"`
	EP             int `json:"ep,omitempty"`
	MicroBatchSize int `json:"micro_batch_size,omitempty"`
	SeqLength      int `json:"seq_length,omitempty"`
}

// Found reports whether something is wrong with the job.
func (r Report) Found() bool { return r.Class != Success && r.Class != Running }

// quietClass reports whether a class has no line that is its cause.
func quietClass(class string) bool { return class == Success || class == Running || class == Hang }

// maxShown bounds a line that is shown.
const maxShown = 1200

func show(raw string) string {
	s := redact.Text(redact.Clean(raw))
	s = strings.TrimRight(strings.ReplaceAll(s, "\n", " "), " \t")
	if len(s) > maxShown {
		s = strings.ToValidUTF8(s[:maxShown], "") + "…"
	}
	return s
}

// report turns the verdict into the answer.
func (j *job) report() Report {
	v := j.judgeAll()
	r := Report{
		Class:        v.class,
		Attempts:     j.attempts,
		Runs:         j.runs,
		Why:          v.why,
		ExcludeNodes: []string{},
		Advice:       []string{},
		Evidence:     []Evidence{},
		Notes:        j.notes(),
		Unreadable:   j.unreadable,
	}
	r.Layout, r.Stacks, r.OnlyRanks = j.layout(), j.stacks(), j.onlyRanks()
	if n, ok := j.lastIteration(); ok {
		r.LastIter = &n
	}
	if v.since > 0 && v.class == Hang {
		s := int64(v.since.Seconds())
		r.SinceS = &s
	}
	if v.class == Running || v.class == Hang {
		j.liveness(&r)
	}
	if v.class == UnknownExit {
		r.ExitCode, r.State = j.given.ExitCode, j.given.JobState
	}
	if e := v.event; e != nil {
		j.root(&r, v, e)
	}
	j.missedCollective(&r, v)
	if v.class == SlurmNodeFail && r.RootNode == nil && len(j.given.FailedNodes) > 0 {
		r.RootNode = &j.given.FailedNodes[0]
	}
	r.DownstreamRanks = j.downstream(v)
	j.placesToAvoid(&r, v)
	r.Retry = retryWorth(r, v)
	j.addEvidence(&r, v)
	j.join(&r, v)
	if asksFor[v.class] != nil && v.class != Container {
		r.Already = j.alreadyHas(r)
	}
	r.finish()
	return r
}

// missedCollective fills what flight recorder dumps tell: the ranks that never
// entered a collective, and which.
func (j *job) missedCollective(r *Report, v verdict) {
	m := j.missed
	if m == nil || v.class != Hang && (v.laggard == nil || v.laggard.why != "recorder") {
		return
	}
	r.Laggard, r.RootRank = "recorder", &m.rank
	if len(m.ranks) > 1 {
		r.MissedBy = m.ranks
	}
	if node := j.nodeByRank(m.rank, j.nodesOfRanks()); node != "" && r.RootNode == nil {
		r.RootNode = &node
	}
	r.Collective = fmt.Sprintf("%s #%d of group %s (%d ranks wait in it)", show(m.op), m.seq, show(m.group), m.waiting)
}

// join adds what the rules table, the memory estimate and the other nodes'
// logs say of the cause.
func (j *job) join(r *Report, v verdict) {
	if v.class == CUDAOOM {
		r.Fit = j.fit(r.Memory)
	}
	for _, rule := range j.brokenRules(v) {
		r.Rules = append(r.Rules, rule.ID)
	}
	switch v.class {
	case Hang:
		r.Behind = j.whoIsBehind()
	case ImportError:
		r.ImportKind = j.importKind(r, v.event)
		r.ImportRoot = show(r.ImportRoot)
	}
	switch v.class {
	case NCCLConnection, NCCLIB, NCCLTimeout, Rendezvous:
		if address, node := j.peerOf(v.event0().text); address != "" {
			r.Peer = show(address)
			if node != "" {
				r.Peer = show(node + " (" + address + ")")
			}
		}
		r.Differs = j.differing()
	}
}

// root fills what the line of the cause tells.
func (j *job) root(r *Report, v verdict, e *event) {
	if !quietClass(v.class) {
		no := j.src.files[e.file].lineAt(e.off)
		r.RootFile, r.RootLineNo, r.RootLine = j.src.files[e.file].name, &no, show(e.raw)
		if e.rank >= 0 && v.class != SlurmNodeFail {
			r.RootRank = &e.rank
		}
		if e.node != "" {
			r.RootNode = &e.node
		}
	}
	if v.laggard != nil {
		r.Laggard = v.laggard.why
	}
	r.Phase = e.stack.phase()
	if f, ok := e.stack.innermost(); ok {
		f.File, f.Function = show(f.File), show(f.Function)
		r.Traceback = &f
	}
	if v.class == CUDAOOM {
		r.Memory = memoryOf(e.text)
	}
}

func (j *job) layout() *Layout {
	l := Layout{
		WorldSize: j.world, TP: j.argument("tensor_model_parallel_size"), PP: j.argument("pipeline_model_parallel_size"), CP: j.argument("context_parallel_size"),
		DP: j.argument("data_parallel_size"), EP: j.argument("expert_model_parallel_size"), MicroBatchSize: j.argument("micro_batch_size"),
		SeqLength: j.argument("seq_length"),
	}
	if l == (Layout{}) {
		return nil
	}
	return &l
}

var iterationNumber = lazy.New(`iteration +(\d+)`)

func (j *job) lastIteration() (int, bool) {
	most, found := 0, false
	for _, f := range j.files {
		if n := len(f.progress); n > 0 {
			if g := iterationNumber.FindStringSubmatch(f.progress[n-1].text); g != nil {
				k, _ := strconv.Atoi(g[1])
				most, found = max(most, k), true
			}
		}
	}
	return most, found
}

func (j *job) notes() []string {
	notes := slices.Clone(j.clocks)
	if n := j.ranksRead(); n > 0 && j.world > n {
		notes = append(notes, fmt.Sprintf("logs of %d of %d ranks are here", n, j.world))
	}
	for i := range notes {
		notes[i] = show(notes[i])
	}
	return notes
}

// ranksRead counts the ranks that have a log of their own, where logs are kept
// so. A torchrun that was told to filter keeps some ranks only.
func (j *job) ranksRead() int {
	ranks := map[string]bool{}
	for i, f := range j.src.files {
		if attemptPath.MatchString(f.name) {
			ranks[path.Dir(f.name)] = true
		} else if j.fileRank[i] >= 0 {
			ranks[strconv.Itoa(j.fileRank[i])] = true
		}
	}
	return len(ranks)
}

// onlyRanks are the ranks that have a log of their own, where others that the
// run must have had have none: a CI artifact keeps those of some ranks only.
func (j *job) onlyRanks() []int {
	seen := map[int]bool{}
	for i, f := range j.src.files {
		rank := j.fileRank[i]
		if m := attemptPath.FindStringSubmatch(f.name); m != nil && rank < 0 {
			rank = j.rankOf(i, noTag, nil)
		}
		if rank >= 0 {
			seen[rank] = true
		}
	}
	ranks := sorted(seen)
	if len(ranks) == 0 || len(ranks) > 32 || 2*len(ranks) > max(j.world, ranks[len(ranks)-1]+1) {
		return nil
	}
	return ranks
}

// downstream counts the ranks that only report consequences.
func (j *job) downstream(v verdict) int {
	if quietClass(v.class) || v.event == nil {
		return 0
	}
	roots, hurt := map[int]bool{v.event.rank: true}, map[int]bool{}
	for _, e := range v.others {
		roots[e.rank] = true
	}
	for _, e := range j.events {
		if !e.counts() || e.weight >= death {
			continue
		}
		if len(e.tasks) > 0 && j.taskRank {
			for _, t := range e.tasks {
				hurt[t] = true
			}
		} else if e.rank >= 0 {
			hurt[e.rank] = true
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

// permission is what every node would say: a right or a folder that is missing.
var permission = lazy.New(`(?i)permission denied|operation not permitted|PermissionError|\[Errno (?:1|13)\]|File \S+ cannot be opened|` +
	`Parent directory \S+ does not exist`)

// serverFault are answers of a hub or registry that another try may not get.
var serverFault = lazy.New(`(?i)\b(?:429|5\d\d)\b (?:Client|Server)? ?Error|Too Many Requests|toomanyrequests|rate limit|\b50[0234]\b|` +
	`Bad Gateway|Service Unavailable|Internal Server Error|Gateway Time-?out|\b429\b|HTTP (?:error )?5\d\d`)

// retryWorth is the class's advice, refined by what the line says.
func retryWorth(r Report, v verdict) bool {
	text := r.RootLine
	switch v.class {
	case Filesystem:
		return !permission.MatchString(text)
	case HFHub, Container:
		return serverFault.MatchString(text) || len(r.ExcludeNodes) > 0
	}
	return classOf(v.class).Retry.Worth()
}

// maxEvidence bounds the chain.
const maxEvidence = 12

func (j *job) addEvidence(r *Report, v verdict) {
	seen := map[*event]bool{}
	add := func(e *event, why string) {
		if e == nil || seen[e] || len(r.Evidence) >= maxEvidence {
			return
		}
		seen[e] = true
		ev := Evidence{File: j.src.files[e.file].name, LineNo: j.src.files[e.file].lineAt(e.off), Node: e.node, Text: show(e.raw), Why: why}
		if e.rank >= 0 {
			rank := e.rank
			ev.Rank = &rank
		}
		if w := e.when(); !w.IsZero() {
			ev.Time = &w
		}
		r.Evidence = append(r.Evidence, ev)
	}
	if quietClass(v.class) {
		add(j.lastSign(), "last sign")
		return
	}
	add(v.event, "cause")
	for i, e := range v.others {
		if i < 3 {
			add(e, "same cause")
		}
	}
	if v.class == UnknownExit || v.event != nil && v.event.agent && v.event.kind == "" {
		for _, e := range j.lastWords(v.event) {
			add(e, "last words")
		}
	}
	n := 0
	for _, e := range j.events {
		if n < 2 && e.counts() && e != v.event && e.class != v.class && e.weight < death && e.rank != v.event0().rank {
			add(e, "downstream")
			n++
		}
	}
	earlier := slices.Clone(j.earlier)
	slices.SortStableFunc(earlier, func(a, b *event) int { return b.weight - a.weight })
	n = 0
	for _, e := range earlier {
		if n < 2 && e.counts() && e.weight >= exited {
			add(e, "earlier attempt")
			n++
		}
	}
}

// lastWords are the last lines, at most three, of the rank that died, or of
// all where no rank is known.
func (j *job) lastWords(dead *event) (words []*event) {
	if dead == nil {
		return nil
	}
	for i, f := range j.files {
		for t, m := range f.lastBy {
			if r := j.rankOf(i, t, nil); dead.rank >= 0 && r != dead.rank || agentLine(m.text) || m.off == dead.off && i == dead.file {
				continue
			}
			_, text := untag(m.text)
			words = append(words, &event{file: i, off: m.off, raw: m.text, text: text, tag: t, rank: j.rankOf(i, t, nil), node: j.fileNode[i], before: m.at})
		}
	}
	slices.SortFunc(words, func(a, b *event) int {
		if c := b.before.Compare(a.before); c != 0 {
			return c
		}
		return int(b.off - a.off)
	})
	return words[:min(3, len(words))]
}

// event0 is the verdict's event, or an empty one.
func (v verdict) event0() *event {
	if v.event == nil {
		return &event{rank: -1}
	}
	return v.event
}
