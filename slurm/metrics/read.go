// Package metrics reads the numbers that a training run reports: Megatron's iteration lines and
// TensorBoard's event files. It starts no process, opens only regular files, and knows nothing of
// clusters.
package metrics

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/within"
	"github.com/megatron-ops/megatron-ops/knowledge/megatron"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/logfile"
	"github.com/megatron-ops/megatron-ops/slurm/loglike"
)

// An Iteration is a run's report of one optimizer step. A value that the run does not report is nil.
type Iteration struct {
	N            int        `json:"iteration"`
	Time         *time.Time `json:"time"`
	Samples      *int64     `json:"consumed_samples"`
	ElapsedMS    *float64   `json:"elapsed_ms"`
	TFLOPs       *float64   `json:"tflops_per_gpu"`
	TokensPerGPU *float64   `json:"tokens_per_s_per_gpu"`
	MFU          *float64   `json:"mfu"`
	LearningRate *float64   `json:"learning_rate"`
	GlobalBatch  *int       `json:"global_batch_size"`
	Loss         *float64   `json:"loss"`
	LossScale    *float64   `json:"loss_scale"`
	GradNorm     *float64   `json:"grad_norm"`
	Skipped      *int       `json:"skipped_iterations"`
	NaN          *int       `json:"nan_iterations"`

	// Other holds values that have no field here, by their names in the log, such as "mtp_1 loss".
	Other map[string]float64 `json:"other,omitempty"`
}

// Memory is Megatron's report of one rank's GPU memory, in MB of 1024² bytes.
type Memory struct {
	Rank         int     `json:"rank"`
	AllocatedMB  float64 `json:"allocated_mb"`
	MaxMB        float64 `json:"max_allocated_mb"`
	ReservedMB   float64 `json:"reserved_mb"`
	MaxReserveMB float64 `json:"max_reserved_mb"`
}

// A Run holds the numbers of one job, in the order of iterations. Where a restart repeated an
// iteration, its last report counts.
type Run struct {
	Name       string      `json:"name"`
	Iterations []Iteration `json:"iterations"`
	Of         int         `json:"train_iters"` // 0 where unknown
	WorldSize  int         `json:"world_size"`
	SeqLength  int         `json:"seq_length"`
	GPU        string      `json:"gpu,omitempty"`
	Memory     []Memory    `json:"memory,omitempty"`
	Validation []Point     `json:"validation,omitempty"`
	Restarts   int         `json:"restarts"`
	// Saved are the iterations after which a checkpoint was saved completely.
	Saved []int `json:"saved,omitempty"`
	// Tracked is the run's address at an experiment tracker, the newest that the log names.
	Tracked string `json:"tracked,omitempty"`
	// OtherJobs are files of the folder that belong to older jobs. Their numbers are not in the run.
	OtherJobs []string `json:"other_jobs,omitempty"`
	// Timers holds the newest reports of Megatron's timers by name, oldest first: the largest value
	// over all ranks, in milliseconds. Slowest holds the newest reports of straggler detection.
	Timers  map[string][]float64 `json:"timers,omitempty"`
	Slowest []Slowest            `json:"slowest,omitempty"`

	args map[string]string // Megatron's arguments, as the run printed them
	peak map[int]float64   // iteration → largest allocation of any rank, in MB
}

// A Point is one value at an iteration.
type Point struct {
	N int     `json:"iteration"`
	V float64 `json:"value"`
}

// Read reads the run at path: a log, an event file, or a directory of both. Of a directory that several
// jobs wrote into, Read takes the newest job's files, as diagnose does. gpu names the kind of GPU for
// MFU, and may be empty. Where in is not nil, Read opens files only below its folders, even where a
// link replaces a log.
func Read(ctx context.Context, in *within.Folders, path, gpu string) (Run, error) {
	r := newReader(filepath.Base(path), gpu)
	r.in = in
	info, err := in.Stat(path)
	if err != nil {
		return r.run, lang.Text{EN: "metrics %q: %s", ZH: "指标 %q：%s"}.Err(path, err)
	}
	if !info.IsDir() {
		err = r.file(ctx, path)
	} else {
		older := logfile.FindOlderJobs(in, path)
		err = walk(in, path, func(p string) error {
			name, _ := filepath.Rel(path, p) // p lies below path
			if older.Wrote(jobPart(name)) {
				r.run.OtherJobs = append(r.run.OtherJobs, filepath.ToSlash(name))
				return nil
			}
			if err := r.file(ctx, p); err != nil && ctx.Err() != nil {
				return err
			}
			return nil
		})
	}
	if err != nil {
		return r.run, lang.Text{EN: "metrics %q: %s", ZH: "指标 %q：%s"}.Err(path, err)
	}
	return r.finish(), nil
}

// walk calls use with each file below a directory that may hold numbers, or with path itself if that is
// a file. It skips what it cannot list.
func walk(in *within.Folders, path string, use func(file string) error) error {
	return in.WalkDir(path, func(p string, d fs.DirEntry, err error) error {
		switch {
		case err == nil && d.IsDir():
			return loglike.Enter(d.Name())
		case err != nil || !d.Type().IsRegular() || !mayHold(d.Name()):
			return nil
		}
		return use(p)
	})
}

// jobPart is the part of a file's name that may carry a job's id. An event file's own name carries a
// time and a process id instead, so only its folders count.
func jobPart(name string) string {
	if isEvents(filepath.Base(name)) {
		return filepath.Dir(name)
	}
	return name
}

// ReadFrom reads iteration lines from a stream.
func ReadFrom(name string, in io.Reader, gpu string) (Run, error) {
	r := newReader(name, gpu)
	err := r.lines(context.Background(), in)
	return r.finish(), err
}

// packed are suffixes of files that diagnose unpacks and this package does not read: the text within a
// .tar would be taken for lines of the run.
var packed = []string{".gz", ".zst", ".zip", ".tar", ".tgz"}

// mayHold reports whether a file may hold numbers, by its name: an event file, or a log that is not
// packed.
func mayHold(name string) bool {
	low := strings.ToLower(name)
	return isEvents(name) || loglike.Name(name) && !slices.ContainsFunc(packed, func(end string) bool { return strings.HasSuffix(low, end) })
}

func isEvents(name string) bool { return strings.Contains(name, "tfevents") }

type reader struct {
	in        *within.Folders
	run       Run
	at        map[int]int // iteration → index
	memory    map[int]Memory
	last      int
	tailBytes int64 // bytes to read at the end of each file; 0: read whole files

	inTimers bool   // the line is within a list of timers
	timer    string // the timer whose values are being listed rank by rank
	byRank   map[int]float64
}

func newReader(name, gpu string) *reader {
	return &reader{run: Run{Name: name, GPU: gpu, args: map[string]string{}}, at: map[int]int{}, memory: map[int]Memory{}, byRank: map[int]float64{}}
}

func (r *reader) file(ctx context.Context, path string) error {
	f, err := r.in.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	if isEvents(filepath.Base(path)) {
		return r.events(ctx, f)
	}
	if !isText(f) {
		return nil
	}
	if r.tailBytes > 0 {
		return r.headAndTail(ctx, f)
	}
	return r.lines(ctx, f)
}

// isText reports whether a file may be a log, by its contents. This avoids reading a large binary file
// to its end.
func isText(f *os.File) bool {
	info, err := f.Stat()
	if err != nil {
		return false
	}
	var head, end [4096]byte
	n, _ := f.ReadAt(head[:], 0)
	m, _ := f.ReadAt(end[:], max(0, info.Size()-int64(len(end))))
	return loglike.Text(head[:n], end[:m]) == nil
}

var (
	elapsedWord    = []byte("elapsed time per iteration (ms):")
	memoryWord     = []byte("memory (MB) | allocated:")
	argumentDots   = []byte(" ....")
	validationWord = []byte("validation loss at iteration ")
	acrossWord     = []byte("across ranks (ms):")
	stragglerWord  = []byte("Etpt/Rnk: ")
	judgedWord     = []byte("ffected ranks: ")
	savedWord      = []byte("successfully saved checkpoint from iteration ")
)

func (r *reader) lines(ctx context.Context, in io.Reader) error {
	r.last, r.inTimers = 0, false
	const most = 256 << 10
	b := bufio.NewReaderSize(brokenAtReturns{logfile.InUTF8(bufio.NewReaderSize(in, most))}, most)
	for ctx.Err() == nil {
		line, err := b.ReadSlice('\n')
		switch {
		case len(line) == 1: // between \r and \n
		case bytes.Contains(line, elapsedWord):
			r.iteration(string(line))
		case bytes.Contains(line, memoryWord):
			r.memoryLine(string(line))
		case bytes.Contains(line, validationWord):
			r.validation(string(line))
		case bytes.Contains(line, savedWord):
			r.saved(string(line))
		case bytes.Contains(line, trackedWord):
			r.run.Tracked = cmp.Or(trackedAt(line), r.run.Tracked)
		case r.inTimers, bytes.Contains(line, acrossWord), bytes.Contains(line, stragglerWord), bytes.Contains(line, judgedWord):
			r.speedLine(string(line))
		case bytes.Contains(line, argumentDots):
			r.argument(string(line))
		}
		for errors.Is(err, bufio.ErrBufferFull) {
			_, err = b.ReadSlice('\n')
		}
		if err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
	}
	return ctx.Err()
}

// A brokenAtReturns ends a line at each carriage return: behind a progress bar, the numbers of several
// iterations may stand between two newlines.
type brokenAtReturns struct{ io.Reader }

// Read reads from the wrapped reader.
func (b brokenAtReturns) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	for rest := p[:n]; ; {
		i := bytes.IndexByte(rest, '\r')
		if i < 0 {
			return n, err
		}
		rest[i] = '\n'
		rest = rest[i+1:]
	}
}

// iteration parses a line of training_log (megatron/training/training.py).
func (r *reader) iteration(line string) {
	before, after, ok := strings.Cut(line, "iteration ")
	if !ok {
		return
	}
	head, fields, _ := strings.Cut(after, "|")
	n, of, _ := strings.Cut(head, "/")
	number, err := strconv.Atoi(strings.TrimSpace(n))
	if err != nil || number < 0 {
		return
	}
	it := Iteration{N: number}
	if total, err := strconv.Atoi(strings.TrimSpace(of)); err == nil {
		r.run.Of = total
	}
	if at, ok := parseTimestamp(before); ok {
		it.Time = &at
	}
	for f := range strings.SplitSeq(fields, "|") {
		name, value, ok := strings.Cut(f, ":")
		v, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
		if !ok || err != nil {
			continue
		}
		it.set(strings.TrimSpace(name), v)
	}
	r.keep(it)
}

// set stores a value under its name in the log.
func (it *Iteration) set(name string, v float64) {
	switch name {
	case "consumed samples":
		it.Samples = new(int64(v))
	case "elapsed time per iteration (ms)":
		it.ElapsedMS = &v
	case "throughput per GPU (TFLOP/s/GPU)":
		it.TFLOPs = &v
	case "learning rate":
		it.LearningRate = &v
	case "global batch size":
		it.GlobalBatch = new(int(v))
	case "lm loss", "loss":
		it.Loss = &v
	case "loss scale":
		it.LossScale = &v
	case "grad norm":
		it.GradNorm = &v
	case "number of skipped iterations":
		it.Skipped = new(int(v))
	case "number of nan iterations":
		it.NaN = new(int(v))
	default:
		if it.Other == nil {
			it.Other = map[string]float64{}
		}
		it.Other[name] = v
	}
}

// keep adds an iteration, in place of an earlier report of the same one.
func (r *reader) keep(it Iteration) {
	if it.N < r.last {
		r.run.Restarts++
	}
	r.last = it.N
	if i, seen := r.at[it.N]; seen {
		r.run.Iterations[i] = it
		return
	}
	r.at[it.N] = len(r.run.Iterations)
	r.run.Iterations = append(r.run.Iterations, it)
}

// parseTimestamp parses the time in brackets before an iteration: "[2026-11-20 07:58:11.116419]".
func parseTimestamp(head string) (time.Time, bool) {
	i := strings.LastIndexByte(head, '[')
	if i < 0 {
		return time.Time{}, false
	}
	text, _, ok := strings.Cut(head[i+1:], "]")
	if !ok {
		return time.Time{}, false
	}
	at, err := time.Parse("2006-01-02 15:04:05", text)
	return at, err == nil
}

// memoryLine parses a line of report_memory (megatron/training/utils).
func (r *reader) memoryLine(line string) {
	m := Memory{Rank: -1}
	if _, after, ok := strings.Cut(line, "[Rank "); ok {
		if n, _, ok := strings.Cut(after, "]"); ok {
			m.Rank, _ = strconv.Atoi(n)
		}
	}
	values := map[string]*float64{"allocated": &m.AllocatedMB, "max allocated": &m.MaxMB, "reserved": &m.ReservedMB, "max reserved": &m.MaxReserveMB}
	for _, f := range strings.Split(line, "|")[1:] {
		name, value, _ := strings.Cut(f, ":")
		v, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
		if to := values[strings.TrimSpace(name)]; to != nil && err == nil {
			*to = v
		}
	}
	r.memory[m.Rank] = m
	if _, rest, ok := strings.Cut(line, "(after "); ok {
		word, _, _ := strings.Cut(rest, " ")
		if n, err := strconv.Atoi(word); err == nil && m.MaxMB > 0 {
			if r.run.peak == nil {
				r.run.peak = map[int]float64{}
			}
			r.run.peak[n] = max(r.run.peak[n], m.MaxMB)
		}
	}
}

// validation parses "validation loss at iteration 1000 | lm loss value: 2.5E+00 | …".
func (r *reader) validation(line string) {
	_, rest, _ := strings.Cut(line, "validation loss at iteration ")
	n, _, _ := strings.Cut(rest, " ")
	number, err := strconv.Atoi(n)
	if err != nil {
		return
	}
	_, value, ok := strings.Cut(rest, "loss value: ")
	if !ok {
		return
	}
	v, err := strconv.ParseFloat(strings.TrimSpace(strings.SplitN(value, "|", 2)[0]), 64)
	if err == nil {
		r.run.Validation = append(r.run.Validation, Point{number, v})
	}
}

// saved parses "successfully saved checkpoint from iteration 50 to /ckpt [ t 1/2, p 1/1 ]"
// (megatron/training/checkpointing.py).
func (r *reader) saved(line string) {
	_, rest, _ := strings.Cut(line, string(savedWord))
	word, _, _ := strings.Cut(strings.TrimLeft(rest, " "), " ")
	if n, err := strconv.Atoi(word); err == nil && len(r.run.Saved) < 100_000 {
		r.run.Saved = append(r.run.Saved, n)
	}
}

// argument parses a line of the argument list that the run prints: " world_size ..... 64".
func (r *reader) argument(line string) {
	name, rest, _ := strings.Cut(line, " ....")
	said := strings.TrimSpace(strings.TrimLeft(rest, "."))
	words := strings.Fields(name)
	if len(words) == 0 {
		return
	}
	word := words[len(words)-1]
	if len(r.run.args) < 4096 {
		r.run.args[word] = said
	}
	value, err := strconv.Atoi(said)
	if err != nil {
		return
	}
	switch word {
	case "world_size":
		r.run.WorldSize = value
	case "seq_length":
		r.run.SeqLength = value
	case "train_iters":
		r.run.Of = max(r.run.Of, value)
	}
}

// finish orders the iterations and computes the values that follow from others.
func (r *reader) finish() Run {
	r.finishRankTimer()
	run := r.run
	slices.SortStableFunc(run.Iterations, func(a, b Iteration) int { return cmp.Compare(a.N, b.N) })
	run.Memory = slices.SortedFunc(maps.Values(r.memory), func(a, b Memory) int { return cmp.Compare(a.Rank, b.Rank) })
	kind, _ := megatron.LookupGPU(run.GPU)
	peak := kind.TFLOPS // dense BF16, or FP16 before Ampere; 0 for an unknown GPU
	for i := range run.Iterations {
		it := &run.Iterations[i]
		if it.GlobalBatch != nil && it.ElapsedMS != nil && *it.ElapsedMS > 0 && run.SeqLength > 0 && run.WorldSize > 0 {
			it.TokensPerGPU = new(float64(*it.GlobalBatch) * float64(run.SeqLength) / (*it.ElapsedMS / 1000) / float64(run.WorldSize))
		}
		if it.TFLOPs != nil && peak > 0 {
			it.MFU = new(*it.TFLOPs / peak)
		}
	}
	return run
}
