package cluster

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/lazy"
	"github.com/megatron-ops/megatron-ops/slurm"
)

// tokenForm is the form of a submission's token, which is used as a file name.
var tokenForm = lazy.New(`^[a-z0-9]{8,64}$`)

// lockPatience bounds the wait for another submission with the same token. The other
// one's sbatch ends after commandLimit at the latest.
const lockPatience = 2 * commandLimit

// A Lock is the exclusive right to hand over one submission.
type Lock struct {
	// File, given as a Submission's Lock, is inherited by the sbatch that the holder
	// starts. The lock is taken as long as that sbatch lives, even where its parent has
	// died. Whoever holds the lock therefore knows that no earlier attempt of this
	// machine can still reach the controller.
	File *os.File
	// owner is locked as well but not inherited: this lock tells whether the process
	// that took the Lock lives.
	owner *os.File
}

// TakeLock takes the lock on the submission with that token, in dir, a directory on
// this machine. It waits while another process holds the lock.
func TakeLock(ctx context.Context, dir, token string) (*Lock, error) {
	ctx, cancel := context.WithTimeout(ctx, lockPatience)
	defer cancel()
	l := &Lock{}
	for _, part := range []struct {
		file   **os.File
		suffix string
	}{{&l.owner, ownerSuffix}, {&l.File, ""}} {
		for *part.file == nil {
			f, err := tryLock(dir, token, part.suffix)
			if err != nil {
				l.Release(false)
				return nil, err
			}
			if *part.file = f; f != nil {
				break
			}
			select {
			case <-ctx.Done():
				l.Release(false)
				return nil, &slurm.Error{Op: "submit", Kind: slurm.Unknown, Msg: lang.Text{EN: "the same submission is under way", ZH: "同一提交正在进行"}, Fix: AskAgain}
			case <-time.After(10 * time.Millisecond):
			}
		}
	}
	return l, nil
}

// Release releases the lock. done says that the submission has its result, so its lock
// files are removed.
func (l *Lock) Release(done bool) {
	for _, f := range []*os.File{l.File, l.owner} {
		if f == nil {
			continue
		}
		if done {
			os.Remove(f.Name()) // a waiter that gets the lock reads the store first
		}
		f.Close()
	}
}

// Abandoned reports whether no process works on the submission with that token. The
// sbatch of a process that died may still run.
func Abandoned(dir, token string) bool {
	f, err := tryLock(dir, token, ownerSuffix)
	if f != nil {
		f.Close()
	}
	return err == nil && f != nil
}

const ownerSuffix = ".owner"

// tryLock opens and locks a file; it returns nil where another process holds the lock.
func tryLock(dir, token, suffix string) (*os.File, error) {
	if !tokenForm.MatchString(token) {
		return nil, lang.Text{EN: "submission token %q: want 8 to 64 of a-z and 0-9", ZH: "提交标识 %q：须为 8 到 64 个 a-z 与 0-9 的字符"}.Err(token)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(filepath.Join(dir, token+suffix), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err = Flock(f, syscall.LOCK_EX|syscall.LOCK_NB); err == nil {
		return f, nil
	}
	f.Close()
	switch {
	case errors.Is(err, syscall.EWOULDBLOCK):
		return nil, nil
	case slices.ContainsFunc([]error{syscall.ENOLCK, syscall.ENOTSUP, syscall.EOPNOTSUPP, syscall.ENOSYS}, func(e error) bool { return errors.Is(err, e) }):
		return nil, ErrNoLocks
	}
	return nil, lang.Text{EN: "lock %s: %s", ZH: "锁 %s：%s"}.Err(f.Name(), err)
}

// Flock is flock(2), called again where a signal interrupts it.
func Flock(f *os.File, how int) error {
	for {
		err := syscall.Flock(int(f.Fd()), how)
		if !errors.Is(err, syscall.EINTR) {
			return err
		}
	}
}

// ErrNoLocks is the error of a file system without locks.
var ErrNoLocks = lang.Text{EN: "the file system does not support file locks", ZH: "该文件系统不支持文件锁"}.Err()

// AskAgain is the advice for a submission whose outcome is not known yet.
var AskAgain = lang.Text{
	EN: "submit again with the same key: it is looked for first, and never submitted twice",
	ZH: "请用同一幂等键再次提交：系统会先查找，不会重复提交",
}
