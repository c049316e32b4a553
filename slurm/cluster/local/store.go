package local

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/slurm"
	"github.com/megatron-ops/megatron-ops/slurm/cluster"
)

// On disk, DIR/jobs/ID holds one submission: script; submission.json (the request,
// never changed); ID.json for the job or ID_N.json for each array element (its state,
// written by its supervisor or runner); and ID.control.json (the orders since then,
// written by clients). DIR/nodes/NAME contains the id of the job that holds the node.
// Every file is replaced as a whole, so a reader never sees half a file.

// A submission is the part of a job that never changes after sbatch.
type submission struct {
	Request request
	Dir     string
	Env     []string
	User    string
	Token   string
	At      time.Time
	// Machine is the number of nodes that the machine stands for.
	Machine int
}

// A record is the state of one job or array element.
type record struct {
	Job slurm.Job
	// Earlier lists the runs that requeue orders ended.
	Earlier []slurm.Run `json:",omitempty"`
	// Port is the job's MASTER_PORT.
	Port int
}

// A control holds the orders of clients to a submitted job.
type control struct {
	Cancel    bool           `json:",omitempty"`
	Hold      *bool          `json:",omitempty"`
	Requeue   int            `json:",omitempty"` // the number of restarts that are ordered
	TimeLimit *time.Duration `json:",omitempty"`
	Nodes     int            `json:",omitempty"`
	// Signals holds the signals to send, oldest first, in the form of sbatch's --signal.
	Signals []string `json:",omitempty"`
}

// A store is the directory with the state of a local cluster.
type store struct{ dir string }

func (s store) jobDir(id slurm.JobID) string { return filepath.Join(s.dir, "jobs", string(id.Array())) }

func (s store) recordPath(id slurm.JobID) string {
	return filepath.Join(s.jobDir(id), string(id)+".json")
}

func (s store) controlPath(id slurm.JobID) string {
	return filepath.Join(s.jobDir(id), string(id)+".control.json")
}

// lock holds the store's lock while f runs; job numbers and nodes are given out under
// it. It does not create the directory, so a store that was removed stays removed.
func (s store) lock(f func() error) error { return withLock(filepath.Join(s.dir, "lock"), f) }

func withLock(path string, f func() error) error {
	l, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return err
	}
	defer l.Close()
	if err := cluster.Flock(l, syscall.LOCK_EX); err != nil {
		return lang.Text{EN: "lock %s: %s", ZH: "锁 %s：%s"}.Err(path, err)
	}
	return f()
}

// acquire takes the lock at path for as long as this process lives; ok is false where
// another process holds it. isHeld takes the lock for a moment to test it, so acquire
// retries before it gives up.
func acquire(path string) (held *os.File, ok bool, err error) {
	l, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, false, err
	}
	for range 50 {
		if err = cluster.Flock(l, syscall.LOCK_EX|syscall.LOCK_NB); !errors.Is(err, syscall.EWOULDBLOCK) {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	if err == nil {
		return l, true, nil
	}
	_ = l.Close()
	if errors.Is(err, syscall.EWOULDBLOCK) {
		err = nil
	}
	return nil, false, err
}

// isHeld reports whether a living process holds the lock at path. The kernel releases a
// lock when its process dies for any reason, so a reused process id cannot mislead.
func isHeld(path string) bool {
	l, err := os.Open(path)
	if err != nil {
		return false // nobody has ever taken the lock
	}
	defer l.Close()
	return errors.Is(cluster.Flock(l, syscall.LOCK_SH|syscall.LOCK_NB), syscall.EWOULDBLOCK)
}

// nextID reserves n job numbers and returns the first. The caller must hold the lock.
func (s store) nextID(n int) (int, error) {
	path := filepath.Join(s.dir, "next")
	last := 0
	if text, err := os.ReadFile(path); err == nil {
		if last, err = strconv.Atoi(strings.TrimSpace(string(text))); err != nil {
			return 0, lang.Text{EN: "%s: %s", ZH: "%s：%s"}.Err(path, err)
		}
	}
	return last + 1, writeFile(path, []byte(strconv.Itoa(last+n)+"\n"))
}

// ids lists the jobs and array elements of the store, oldest first.
func (s store) ids() ([]slurm.JobID, error) {
	jobs := filepath.Join(s.dir, "jobs")
	if _, err := os.ReadDir(jobs); err != nil && !errors.Is(err, fs.ErrNotExist) { // which Glob takes for an empty folder
		return nil, &slurm.Error{Op: "list", Kind: slurm.Broken, Msg: lang.Said(err), Fix: lang.Text{
			EN: "name a directory that you may read and write in MEGATRON_OPS_STATE_DIR",
			ZH: "请用 MEGATRON_OPS_STATE_DIR 指定一个可读写的目录",
		}}
	}
	files, err := filepath.Glob(filepath.Join(jobs, "*", "*.json"))
	if err != nil {
		return nil, err
	}
	var ids []slurm.JobID
	for _, f := range files {
		if name := strings.TrimSuffix(filepath.Base(f), ".json"); slurm.IsJobID(name) {
			ids = append(ids, slurm.JobID(name))
		}
	}
	slices.SortFunc(ids, compareIDs)
	return ids, nil
}

// compareIDs orders ids by job number and then by element number.
func compareIDs(a, b slurm.JobID) int { return slices.Compare(numbers(a), numbers(b)) }

// numbers returns the job number and, for an array element, the element number.
func numbers(id slurm.JobID) []int {
	var n []int
	for word := range strings.SplitSeq(string(id), "_") {
		v, _ := strconv.Atoi(word)
		n = append(n, v)
	}
	return n
}

// elements returns the id, or the ids of all elements, of one submission.
func (s store) elements(id slurm.JobID) ([]slurm.JobID, error) {
	entries, err := os.ReadDir(s.jobDir(id))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, unknownJob(id)
	}
	if err != nil {
		return nil, err
	}
	var ids []slurm.JobID
	for _, e := range entries {
		if name, ok := strings.CutSuffix(e.Name(), ".json"); ok && slurm.IsJobID(name) {
			if element := slurm.JobID(name); id == element || id == element.Array() {
				ids = append(ids, element)
			}
		}
	}
	if len(ids) == 0 {
		return nil, unknownJob(id)
	}
	slices.SortFunc(ids, compareIDs)
	return ids, nil
}

func (s store) record(id slurm.JobID) (record, error) {
	var r record
	err := readJSON(s.recordPath(id), &r)
	if errors.Is(err, fs.ErrNotExist) {
		return r, unknownJob(id)
	}
	return r, err
}

func (s store) setRecord(r record) error { return writeJSON(s.recordPath(r.Job.ID), r) }

func (s store) submission(id slurm.JobID) (submission, error) {
	var sub submission
	err := readJSON(filepath.Join(s.jobDir(id), "submission.json"), &sub)
	return sub, err
}

// control returns the orders given to id.
func (s store) control(id slurm.JobID) control {
	var c control
	_ = readJSON(s.controlPath(id), &c) // no file means no orders
	return c
}

func (s store) updateControl(id slurm.JobID, change func(*control)) error {
	return withLock(filepath.Join(s.jobDir(id), "control.lock"), func() error {
		c := s.control(id)
		change(&c)
		return writeJSON(s.controlPath(id), c)
	})
}

func readJSON(path string, v any) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, v); err != nil {
		return lang.Text{EN: "%s: %s", ZH: "%s：%s"}.Err(path, err)
	}
	return nil
}

func writeJSON(path string, v any) error {
	text, err := json.MarshalIndent(v, "", "\t")
	if err != nil {
		return err
	}
	return writeFile(path, append(text, '\n'))
}

func writeFile(path string, text []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".new-*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	_, err = f.Write(text)
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

func unknownJob(id slurm.JobID) *slurm.Error {
	return &slurm.Error{Op: "job " + string(id), Msg: lang.Text{EN: "not known on this machine", ZH: "本机没有该作业"}, Kind: slurm.NotFound}
}
