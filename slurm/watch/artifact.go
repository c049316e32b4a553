package watch

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/within"
	"github.com/megatron-ops/megatron-ops/slurm"
)

// An Artifact is the result file that a job is run for.
type Artifact struct {
	// Path is the file's name pattern, relative to the job's working directory. *, ?
	// and [ ] have their meaning in a shell, and the letters of sbatch's filename
	// patterns (%x %j %A %a %u) their meaning there.
	Path string
	// JSON, where not empty, is a condition on the file's content: a path of keys such
	// as "metrics.loss", or a path and a value such as "status=done".
	JSON string
	// Stable is how long the file's size and time must stay unchanged; zero means 10 s.
	Stable time.Duration
}

// An ArtifactState is the result of one check of an artifact.
type ArtifactState struct {
	Path string // the file; "" where none exists
	Size int64
	Time time.Time // time of the file's last change
	At   time.Time // time of this check, or of the first check that saw the file unchanged
	// Done reports that the file exists, no longer changes, and satisfies the
	// condition.
	Done bool
	// Settling reports that the file exists and may still be written to.
	Settling bool
	// Why says why Done is false.
	Why lang.Text
}

// statLimit bounds one check of a file system, so that a network file system that hangs
// does not block the watcher.
const statLimit = 5 * time.Second

// Look checks the artifact of j. before is the result of the previous check; the zero
// ArtifactState where there is none. Look returns an error where the file system does not
// answer.
func (a Artifact) Look(ctx context.Context, j slurm.Job, before ArtifactState) (ArtifactState, error) {
	type answer struct {
		s   ArtifactState
		err error
	}
	done := make(chan answer, 1)
	go func() {
		s, err := a.look(j, before, time.Now())
		done <- answer{s, err}
	}()
	ctx, cancel := context.WithTimeout(ctx, statLimit)
	defer cancel()
	select {
	case got := <-done:
		return got.s, got.err
	case <-ctx.Done():
		return before, lang.Text{EN: "artifact %s: the file system does not answer: %s", ZH: "产物 %s：文件系统没有响应：%s"}.Err(a.Path, ctx.Err())
	}
}

func (a Artifact) look(j slurm.Job, before ArtifactState, now time.Time) (ArtifactState, error) {
	pattern := slurm.ExpandPattern(a.Path, j)
	files, err := filepath.Glob(pattern)
	if err != nil {
		return ArtifactState{}, lang.Text{EN: "artifact %q: the pattern cannot be read: %s", ZH: "产物 %q：无法解析该通配模式：%s"}.Err(a.Path, err)
	}
	s := ArtifactState{At: now, Why: lang.Text{EN: "no file %s", ZH: "没有文件 %s"}.With(pattern)}
	for _, f := range files {
		info, err := os.Stat(f)
		if err != nil || !info.Mode().IsRegular() {
			continue
		}
		// A file from before the job is not the job's.
		if j.StartedAt != nil && info.ModTime().Before(j.StartedAt.Add(-time.Second)) {
			s.Why = lang.Text{EN: "%s is older than the job", ZH: "%s 早于该作业"}.With(f)
			continue
		}
		if s.Path == "" || info.ModTime().After(s.Time) {
			s.Path, s.Size, s.Time, s.Why = f, info.Size(), info.ModTime(), lang.Text{}
		}
	}
	if s.Path == "" {
		return s, nil
	}
	if s.Path == before.Path && s.Size == before.Size && s.Time.Equal(before.Time) {
		s.At = before.At
	}
	stable := cmp.Or(a.Stable, 10*time.Second)
	switch {
	case s.Size == 0:
		s.Why = lang.Text{EN: "%s is empty", ZH: "%s 是空文件"}.With(s.Path)
	case now.Sub(s.At) < stable:
		s.Settling, s.Why = true, lang.Text{EN: "%s may still be written to", ZH: "%s 可能仍在写入"}.With(s.Path)
	case a.JSON != "":
		if err := checkJSON(s.Path, a.JSON); err != nil {
			s.Why = lang.Said(err)
			return s, nil
		}
		s.Done = true
	default:
		s.Done = true
	}
	return s, nil
}

// maxJSON is the size in bytes of the largest file whose content is checked.
const maxJSON = 16 << 20

func checkJSON(path, condition string) error {
	file, err := (*within.Folders)(nil).Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return err
	}
	if info.Size() > maxJSON {
		return lang.Text{EN: "%s is too large to be checked as JSON: %d bytes, at most %d", ZH: "%s 太大，无法按 JSON 检查：%d 字节，上限 %d"}.Err(path, info.Size(), maxJSON)
	}
	text, err := io.ReadAll(io.LimitReader(file, maxJSON))
	if err != nil {
		return err
	}
	var v any
	if err := json.Unmarshal(text, &v); err != nil {
		return lang.Text{EN: "%s is not complete JSON: %s", ZH: "%s 不是完整的 JSON：%s"}.Err(path, err)
	}
	keys, want, hasValue := strings.Cut(condition, "=")
	for key := range strings.SplitSeq(keys, ".") {
		object, _ := v.(map[string]any)
		inner, ok := object[key]
		if !ok {
			return lang.Text{EN: "%s has no %s", ZH: "%s 中没有 %s"}.Err(path, keys)
		}
		v = inner
	}
	if hasValue && fmt.Sprint(v) != want {
		return lang.Text{EN: "%s has %s = %v, not %s", ZH: "%s 中 %s = %v，而不是 %s"}.Err(path, keys, v, want)
	}
	return nil
}

// FilePause is the time between two checks of an artifact. A check is one stat, which a
// network file system mostly answers from its cache.
const FilePause = 500 * time.Millisecond

// Await checks the artifact until it is done or ctx ends. It checks the file every
// FilePause, and calls job for the job's state only every pause, because that queries
// the cluster. When the job has ended, one more check decides. Await returns the last
// ArtifactState.
func (a Artifact) Await(ctx context.Context, job func() slurm.Job, pause time.Duration) (ArtifactState, error) {
	var s ArtifactState
	var err error
	var j slurm.Job
	var asked time.Time
	for {
		if now := time.Now(); asked.IsZero() || now.Sub(asked) >= pause {
			j, asked = job(), now
		}
		ended := j.State.Ended() || j.NeverStarts()
		if s, err = a.Look(ctx, j, s); err == nil && s.Done {
			return s, nil
		}
		if ended && s.Path == "" {
			return s, errors.Join(err, lang.Text{EN: "the job ended without its artifact: %s", ZH: "作业已结束，但没有产物：%s"}.Err(s.Why))
		}
		if ended && !s.Done && !s.Settling {
			return s, lang.Text{EN: "the job ended and its artifact does not meet its condition: %s", ZH: "作业已结束，但产物不符合要求：%s"}.Err(s.Why)
		}
		select {
		case <-ctx.Done():
			return s, ctx.Err()
		case <-time.After(min(pause, FilePause)):
		}
	}
}

// Saved returns the GPU hours of its time limit that j would not use if it were
// cancelled now; 0 where the time limit is not known.
func Saved(j slurm.Job) float64 {
	if j.TimeLimitS == nil || j.State.Ended() {
		return 0
	}
	left := *j.TimeLimitS - j.ElapsedS
	return max(float64(left), 0) / 3600 * float64(j.GPUs)
}
