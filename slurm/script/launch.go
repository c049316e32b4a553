package script

import (
	"errors"
	"strings"
)

// A Launched is the training that a script starts, for a planner: what the
// program gets, on how many nodes and GPUs, in which environment. Defaults such
// as ${TP:-2} count as given.
type Launched struct {
	// Program is the path or module that runs; Entry says which of Megatron's
	// pretrain scripts it is (gpt, hybrid, t5, bert), or is its name.
	Program, Entry string
	Module         bool
	Launcher       Launcher
	Line           int
	// Argv are the program's arguments; Hidden are those that the file does not
	// show, as they are written.
	Argv   []string
	Hidden []string
	// Nodes, GPUsPerNode and Tasks are 0 where the file does not say.
	Nodes, GPUsPerNode, TasksPerNode int
	// GPU is a word that names the kind of GPU, or "".
	GPU string
	// Env is what the program finds in its environment, as far as it is shown.
	Env     map[string]string
	Options Options
}

// entryNames are Megatron's own programs.
var entryNames = map[string]string{
	"pretrain_gpt.py": "gpt", "pretrain_hybrid.py": "hybrid", "pretrain_mamba.py": "hybrid", "pretrain_bert.py": "bert", "pretrain_t5.py": "t5",
}

// ErrNoLaunch is what Launch returns for a script that starts no training.
var ErrNoLaunch = errors.New("the script starts no training: no torchrun, python, accelerate or deepspeed command is in it")

// Launch reads the one training that a script starts: Megatron's own program
// where there is one, else the launch with the most arguments.
func Launch(src []byte) (*Launched, error) {
	s := Read("", src)
	var best *Start
	var job *Job
	score := func(x *Start) int {
		n := len(x.ProgramArgs)
		if _, ok := entryNames[x.programName()]; ok {
			n += 10000
		}
		if x.Launcher.Forks() {
			n += 1000
		}
		if x.Launcher == Wrapper || x.Trap || x.Subst {
			n -= 100000
		}
		return n
	}
	for _, j := range s.Jobs {
		for _, x := range j.Starts {
			if best == nil || score(x) > score(best) {
				best, job = x, j
			}
		}
	}
	if best == nil || best.Launcher == Wrapper {
		return nil, ErrNoLaunch
	}
	return job.launched(best), nil
}

func (s *Start) programName() string {
	t := s.Program.Text()
	return t[strings.LastIndexByte(t, '/')+1:]
}

func (j *Job) launched(s *Start) *Launched {
	l := &Launched{
		Program: j.resolved(s.Program.Value), Module: s.Module, Launcher: s.Launcher, Line: s.Line,
		Env: map[string]string{}, Options: j.Options,
	}
	l.Entry = entryNames[s.programName()]
	if l.Entry == "" {
		l.Entry = s.programName()
	}
	for _, a := range s.ProgramArgs {
		words, ok := j.words(a.Value)
		if !ok {
			l.Hidden = append(l.Hidden, a.Text())
			continue
		}
		l.Argv = append(l.Argv, words...)
	}
	for _, n := range s.Env.Names() {
		v, _ := s.Env.Env(n)
		if t, ok := j.known(v, 0); ok {
			l.Env[n] = t
		}
	}
	if n, _, ok := j.Nodes(); ok {
		l.Nodes = n
	}
	if o, has := s.Flag("nnodes", "num-machines", "num-nodes"); has {
		if n, ok := j.number(o.Value); ok {
			l.Nodes = n
		}
	}
	if n, _, ok := j.GPUs(); ok {
		l.GPUsPerNode = n
	}
	if o, has := s.Flag("nproc-per-node", "num-gpus"); has {
		if n, ok := j.number(o.Value); ok {
			l.GPUsPerNode = n
		}
	}
	if s.Step == nil && l.Nodes == 0 && !j.Batch() {
		l.Nodes = 1
	}
	l.TasksPerNode, _ = j.TasksPerNode(j.Options)
	l.GPU = j.gpuWord()
	return l
}

// gpuWord is the type in a request for GPUs, else the constraint, else the
// partition.
func (j *Job) gpuWord() string {
	for _, n := range []string{"gpus-per-node", "gres", "gpus", "gpus-per-task"} {
		if o, has := j.Options.Get(n); has {
			for p := range strings.SplitSeq(strings.TrimPrefix(o.Text(), "gpu:"), ":") {
				if p != "" && (p[0] < '0' || p[0] > '9') && p != "gpu" {
					return p
				}
			}
		}
	}
	for _, n := range []string{"constraint", "partition"} {
		if o, has := j.Options.Get(n); has {
			return o.Text()
		}
	}
	return ""
}

// known is v as text, with the defaults of expansions and what Slurm sets
// filled in.
func (j *Job) known(v Value, depth int) (string, bool) {
	var b strings.Builder
	for _, p := range v {
		if p.Ref == nil {
			b.WriteString(p.Text)
			continue
		}
		if s, ok := j.text(Value{p}); ok {
			b.WriteString(s)
			continue
		}
		s, ok := "", false
		if depth < 8 {
			s, ok = j.guess(p.Ref, depth)
		}
		if !ok {
			return "", false
		}
		b.WriteString(s)
	}
	return b.String(), true
}

// guess is the value that a reference has unless the environment says
// otherwise.
func (j *Job) guess(r *Ref, depth int) (string, bool) {
	if r.Default != nil {
		return j.known(r.Default, depth+1)
	}
	if r.Kind == Sum {
		span, ok := r.Expr.Span(func(v Value) (Span, bool) {
			if s, ok := j.span(v); ok {
				return s, true
			}
			s, ok := j.known(v, depth+1)
			if !ok {
				return Span{}, false
			}
			return (&Expr{Leaf: textValue(s, 0)}).Span(j.span)
		})
		if ok && span.Lo == span.Hi {
			return textOf(span.Lo), true
		}
		return "", false
	}
	for _, a := range r.Alt {
		if len(a) == 0 {
			continue
		}
		if s, ok := j.known(a, depth+1); ok && s != "" {
			return s, true
		}
	}
	return "", false
}

func (j *Job) number(v Value) (int, bool) {
	s, ok := j.known(v, 0)
	if !ok {
		return 0, false
	}
	span, ok := (&Expr{Leaf: textValue(s, 0)}).Span(j.span)
	return int(span.Lo), ok
}

func (j *Job) resolved(v Value) string {
	if s, ok := j.known(v, 0); ok {
		return s
	}
	return v.String()
}

// words are the words that v becomes; an unquoted default is split.
func (j *Job) words(v Value) ([]string, bool) {
	s, ok := j.known(v, 0)
	if !ok {
		return nil, false
	}
	if r := v.Only(); r != nil && !v[0].Quoted {
		return strings.Fields(s), true
	}
	return []string{s}, true
}
