package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"syscall"
	"time"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/slurm"
)

// An Intake hands submissions over at most once each, and, unless they are
// refused, exactly once: across crashes of this process, retries, double clicks
// and time-outs. A submission is known by its token.
//
// Before anything is handed over a note says so on disk. The lock on the note is
// inherited by the sbatch that is started, so as long as that lives, nobody else
// begins. Who finds a note without a job id asks the cluster for the token
// before it hands anything over again.
type Intake struct {
	// Dir is where notes are kept, on a disk of this machine.
	Dir string
	// Gap is how long after a first look that found nothing the second, deciding
	// one comes; zero: half a second. The controller may still be at work on a
	// request whose sender was killed.
	Gap time.Duration
}

// a note is what is known of a submission's fate.
type note struct {
	Attempted time.Time   `json:"attempted,omitzero"`
	ID        slurm.JobID `json:"id,omitempty"`
}

// submitter is what an intake asks of a back end.
type submitter interface {
	Submit(ctx context.Context, s slurm.Submission) (slurm.JobID, error)
	Find(ctx context.Context, token string, since time.Time) (slurm.JobID, bool, error)
}

var tokenForm = regexp.MustCompile(`^[a-z0-9]{8,64}$`)

// Submit hands s over to c, or returns the job that was made of it before;
// already tells which. An error of the kind Unknown or Unreachable settles
// nothing: calling again with the same token is safe, and settles it.
func (in Intake) Submit(ctx context.Context, c submitter, s slurm.Submission) (id slurm.JobID, already bool, err error) {
	if !tokenForm.MatchString(s.Token) {
		return "", false, fmt.Errorf("submission token %q: want 8 to 64 of a-z and 0-9", s.Token)
	}
	if err := os.MkdirAll(in.Dir, 0o700); err != nil {
		return "", false, err
	}
	f, err := os.OpenFile(filepath.Join(in.Dir, s.Token), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return "", false, err
	}
	defer f.Close()
	if err := lockWithin(ctx, f); err != nil {
		return "", false, &slurm.Error{Op: "submit", Kind: slurm.Unknown, Msg: "the same submission is under way: " + err.Error(), Fix: askAgain}
	}
	n := readNote(f)
	if n.ID != "" {
		return n.ID, true, nil
	}
	if !n.Attempted.IsZero() {
		id, found, err := in.look(ctx, c, s.Token, n.Attempted)
		if err != nil {
			return "", false, err
		}
		if found {
			return id, true, writeNote(f, note{n.Attempted, id})
		}
	}
	if n.Attempted.IsZero() {
		n.Attempted = time.Now()
		if err := writeNote(f, n); err != nil {
			return "", false, fmt.Errorf("nothing was submitted, as the intent cannot be written down: %w", err)
		}
	}
	s.Lock = f
	id, err = c.Submit(ctx, s)
	if err == nil {
		// The job is there whatever the disk says; the next call would look for it.
		_ = writeNote(f, note{n.Attempted, id})
		return id, false, nil
	}
	if isSettled(err) {
		// Kept, not removed: others may wait for the lock on this very file.
		return "", false, errors.Join(err, writeNote(f, note{}))
	}
	if id, found, lookErr := in.look(ctx, c, s.Token, n.Attempted); lookErr == nil && found {
		return id, false, writeNote(f, note{n.Attempted, id})
	}
	e, _ := errors.AsType[*slurm.Error](err)
	return "", false, &slurm.Error{Op: e.Op, Kind: slurm.Unknown, Msg: e.Msg, Fix: askAgain}
}

var askAgain = lang.Text{
	EN: "submit again with the same key: it is looked for first, and never submitted twice",
	ZH: "请用同一幂等键再次提交：系统会先查找，不会重复提交",
}

// isSettled reports whether err means that there is no job.
func isSettled(err error) bool {
	e, ok := errors.AsType[*slurm.Error](err)
	return !ok || e.Kind == slurm.Rejected || e.Kind == slurm.Denied || e.Kind == slurm.Broken || e.Kind == slurm.NotFound
}

// look looks for the token twice.
func (in Intake) look(ctx context.Context, c submitter, token string, since time.Time) (slurm.JobID, bool, error) {
	gap := in.Gap
	if gap == 0 {
		gap = 500 * time.Millisecond
	}
	id, found, err := c.Find(ctx, token, since)
	if err != nil || found {
		return id, found, err
	}
	select {
	case <-ctx.Done():
		return "", false, ctx.Err()
	case <-time.After(gap):
	}
	return c.Find(ctx, token, since)
}

// lockWithin waits for the lock on f.
func lockWithin(ctx context.Context, f *os.File) error {
	for {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil || !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, syscall.EINTR) {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// readNote reads a note; an empty or half-written one says that nothing was
// begun, as writing it comes before.
func readNote(f *os.File) note {
	var n note
	text := make([]byte, 4096)
	size, _ := f.ReadAt(text, 0) // it always ends in io.EOF
	if json.Unmarshal(text[:size], &n) != nil {
		return note{}
	}
	return n
}

// writeNote writes a note and waits until it is on the disk.
func writeNote(f *os.File, n note) error {
	text, err := json.Marshal(n)
	if err != nil {
		return err
	}
	// Padding in place of truncation: the file is never seen empty in between.
	text = fmt.Appendf(nil, "%-254s\n", text)
	if _, err := f.WriteAt(text, 0); err != nil {
		return err
	}
	return f.Sync()
}
