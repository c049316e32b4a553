package ops

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"encoding/json"
	"errors"
	"os"
	"strings"
	"time"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/store"
	"github.com/megatron-ops/megatron-ops/slurm"
	"github.com/megatron-ops/megatron-ops/slurm/cluster"
	"github.com/megatron-ops/megatron-ops/slurm/job"
)

// A request to have a job becomes at most one job and, unless it is refused, exactly
// one: across crashes of this process, retries, double clicks and time-outs.
//
// Before anything is handed over, the store says so. The lock on the request is
// inherited by the sbatch that is started, so as long as that lives, nobody else
// on this machine begins. Who finds a request without an end asks the cluster
// for its token before handing anything over again.
type request struct {
	*Call
	cl  Cluster
	key string // the caller's
	sub store.Submission
	st  *store.Store
	log string
}

// settling is how long a request whose last attempt got no answer, or was made
// where its lock cannot be seen, is looked for before it is handed over again:
// by then slurmctld has let go of it (MessageTimeout is 10 s).
const settling = time.Minute

// lookAgain is how long after a first look that found nothing the second,
// deciding one comes: the controller may still be at work on a request whose
// sender was killed. No lock tells of a request to slurmrestd.
func lookAgain(kind string) time.Duration {
	if kind == "rest" {
		return 2 * time.Second
	}
	return 500 * time.Millisecond
}

// Resumable is how long an unanswered request waits to be asked again.
const Resumable = 24 * time.Hour

// tokenOf names one request for ever: the same person, cluster and key give the
// same token, 128 bits and more, in letters that Slurm keeps as they are.
func tokenOf(owner, cluster, key string) string {
	sum := sha256.Sum256([]byte("megatron-ops submission\x00" + owner + "\x00" + cluster + "\x00" + key))
	return strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(sum[:]))[:26]
}

// SubmitOnce makes one job of s on cl, and returns the key that it has; see request.
func (c *Call) SubmitOnce(ctx context.Context, cl Cluster, s job.Spec, sc job.Script, key string) (id slurm.JobID, used string, already bool, err error) {
	r, err := c.request(ctx, cl, s, sc, key)
	if err != nil {
		return "", key, false, err
	}
	id, already, err = r.submit(ctx)
	return id, r.key, already, err
}

// request is the request to have s on cl. Without a key it is a new one, unless an
// equal one of the same person was begun and its process died: whoever asked has
// had no answer, and asks again.
func (c *Call) request(ctx context.Context, cl Cluster, s job.Spec, sc job.Script, key string) (*request, error) {
	if c.Store == nil {
		return nil, &Error{Code: Failed, Message: lang.Text{EN: "there is no store to keep the submission in", ZH: "没有可用的数据库来保存此次提交"}}
	}
	st, err := c.Store()
	if err != nil {
		return nil, err
	}
	prefix := c.Who.User + "/" + cl.Name() + "/"
	if key == "" {
		key = rand.Text()
		begun, err := st.Unanswered(ctx, cl.Name(), c.Who.User, sc.Hash, c.Now().Add(-Resumable))
		if err != nil {
			return nil, err
		}
		for _, sub := range begun {
			if c.abandoned(sub) {
				key = strings.TrimPrefix(sub.Key, prefix)
				break
			}
		}
	}
	spec, err := json.Marshal(s)
	if err != nil {
		return nil, err
	}
	full := s.WithDefaults()
	return &request{Call: c, cl: cl, key: key, st: st, log: full.LogDir, sub: store.Submission{
		Key: prefix + key, Token: tokenOf(c.Who.User, cl.Name(), key),
		Cluster: cl.Name(), Owner: c.Who.User, AskedBy: string(c.Who.Surface) + ":" + c.Who.ID,
		Name: full.Name, Spec: spec, SpecHash: sc.Hash, Script: sc.Text, Dir: s.Worktree, CreatedAt: c.Now(), Place: c.place(),
	}}, nil
}

// place names where the locks lie, for others that share the store.
func (s *Service) place() string {
	host, err := os.Hostname()
	if err != nil || s.Locks == "" {
		return ""
	}
	return host + ":" + s.Locks
}

// abandoned reports whether nobody is at work on sub any more.
func (s *Service) abandoned(sub store.Submission) bool {
	if sub.Place == "" || sub.Place != s.place() {
		return s.Now().After(sub.AttemptedAt.Add(settling))
	}
	return cluster.Abandoned(s.Locks, sub.Token)
}

// Recall looks for the jobs of submissions whose process died before it had the
// answer, so that they are known and followed even where nobody asks again. It
// hands nothing over: that is for whoever asked.
func (s *Service) Recall(ctx context.Context) error {
	st, err := s.Store()
	if err != nil {
		return err
	}
	begun, err := st.Unfinished(ctx)
	if err != nil {
		return err
	}
	var failed []error
	for _, sub := range begun {
		cl, known := s.Clusters[sub.Cluster]
		if !known || !s.abandoned(sub) {
			continue
		}
		if sub.Owner != s.Self && s.As != nil {
			if cl, err = s.As(cl, sub.Owner); err != nil {
				continue // not ours to ask for
			}
		}
		id, found, err := cl.Find(ctx, sub.Token, sub.CreatedAt)
		if err == nil && found {
			err = st.Finish(ctx, sub.Key, store.Submitted, id, "", s.Now())
		}
		failed = append(failed, err)
	}
	return errors.Join(failed...)
}

// submit returns the job of r; already says that there had been one.
func (r *request) submit(ctx context.Context) (id slurm.JobID, already bool, err error) {
	var lock *cluster.Lock
	if r.Locks != "" {
		lock, err = cluster.TakeLock(ctx, r.Locks, r.sub.Token)
		if errors.Is(err, cluster.ErrNoLocks) {
			r.sub.Place, err = "", nil
		}
		if err != nil {
			return "", false, r.SlurmError(err, "")
		}
	}
	defer func() {
		end := func() error { return r.end(ctx, id, lock) }
		if id == "" || r.AtEnd == nil {
			err = errors.Join(err, end())
			return
		}
		r.AtEnd(end)
	}()
	sub, first, err := r.st.Begin(ctx, r.sub)
	if err != nil {
		return "", false, lang.Text{EN: "nothing was submitted: the intent could not be stored: %s", ZH: "没有提交：无法保存提交意图：%s"}.Err(err)
	}
	for !first {
		if sub.SpecHash != r.sub.SpecHash {
			return "", false, InputError("idempotency_key",
				lang.Text{EN: "this key belongs to another specification, of %s", ZH: "该幂等键属于另一份规格（%s）"}.With(sub.CreatedAt.Format("2006-01-02 15:04")),
				lang.Text{EN: "use a new key for a changed job", ZH: "修改后的作业请使用新的幂等键"})
		}
		if sub.State == store.Submitted {
			return sub.JobID, true, nil
		}
		if sub.State == store.Submitting {
			// Begun before, by a process that died: perhaps it is there.
			id, err := r.settle(ctx, sub)
			if err != nil || id != "" {
				return id, true, err
			}
		}
		// Of others that came to the same end, in this second, one goes on.
		if first, err = r.st.Attempt(ctx, sub, r.sub.Place, r.Now()); err != nil {
			return "", false, err
		}
		if !first {
			if sub, err = r.st.Submission(ctx, sub.Key); err != nil {
				return "", false, err
			}
		}
	}
	r.Step(2, 3, lang.Text{EN: "handing it to %s", ZH: "正在提交到 %s"}.With(r.cl.Name()).In(r.Lang))
	id, err = r.handOver(ctx, sub, lock)
	return id, false, err
}

// end writes down which job the request has become, if any, and lets go of it.
// That comes after the answer where a surface can tell when its answer is out: a
// person who was killed off before it asks again, and must get this very job.
func (r *request) end(ctx context.Context, id slurm.JobID, lock *cluster.Lock) (err error) {
	if id != "" {
		// The job is there whatever the disk says; the next call would look for it.
		err = r.st.Finish(context.WithoutCancel(ctx), r.sub.Key, store.Submitted, id, "", r.Now())
	}
	if lock != nil {
		lock.Release(id != "" && err == nil)
	}
	return err
}

// handOver gives sub's script to the cluster and writes down what came of it.
func (r *request) handOver(ctx context.Context, sub store.Submission, lock *cluster.Lock) (slurm.JobID, error) {
	s := slurm.Submission{Script: sub.Script, Dir: sub.Dir, Name: sub.Name, Token: sub.Token, At: sub.CreatedAt, LogDir: r.log}
	if lock != nil {
		s.Lock = lock.File
	}
	id, err := r.cl.Submit(ctx, s)
	cutOff := ctx.Err() != nil
	ctx = context.WithoutCancel(ctx) // it is done: that whoever asked has gone changes nothing
	if errors.Is(err, slurm.ErrUnknown) {
		// Perhaps it was taken all the same.
		if found, ok, lookErr := r.cl.Find(ctx, sub.Token, sub.CreatedAt); lookErr == nil && ok {
			id, err = found, nil
		}
	}
	switch {
	case err == nil:
		return id, nil
	case errors.Is(err, slurm.ErrRejected), errors.Is(err, slurm.ErrDenied), errors.Is(err, slurm.ErrMissing):
		// A refusal is final; anything else may have been accepted all the same, and
		// stays open to be looked for.
		err = errors.Join(r.SlurmError(err, ""), r.st.Finish(ctx, sub.Key, store.Rejected, "", err.Error(), r.Now()))
	case errors.Is(err, slurm.ErrUnknown) && !cutOff:
		return "", r.unanswered(ctx, sub, err)
	case errors.Is(err, slurm.ErrUnknown):
		err = r.open(err)
	default:
		err = r.SlurmError(err, "")
	}
	return "", err
}

// unanswered notes that the controller did not answer, and says what to do.
func (r *request) unanswered(ctx context.Context, sub store.Submission, err error) error {
	return errors.Join(r.open(err), r.st.Finish(context.WithoutCancel(ctx), sub.Key, store.Submitting, "", err.Error(), r.Now()))
}

// open is the error of a request whose end is not known.
func (r *request) open(err error) error {
	e := &Error{Code: Failed, Message: lang.Text{EN: "it is not known yet whether the job was submitted: %s", ZH: "尚不确定作业是否已提交：%s"}.With(lang.Said(err)), Fix: cluster.AskAgain}
	if s, ok := errors.AsType[*slurm.Error](err); ok && (s.Kind == slurm.Denied || s.Kind == slurm.Missing) {
		e.Fix = s.Fix
	}
	return e
}

// settle finds out whether sub, begun before, has become a job. No id and no
// error mean that it has not, and will not any more.
func (r *request) settle(ctx context.Context, sub store.Submission) (slurm.JobID, error) {
	again := sub.AttemptedAt.Add(settling)
	if sub.Place != "" && sub.Place == r.sub.Place {
		again = time.Time{} // the lock is free: no sbatch of it lives
	}
	if sub.Message != "" {
		again = sub.UpdatedAt.Add(settling)
	}
	gap := lookAgain(r.cl.Kind())
	for looks := 1; ; looks++ {
		id, found, err := r.cl.Find(ctx, sub.Token, sub.CreatedAt)
		switch {
		case err != nil:
			return "", r.unanswered(ctx, sub, err)
		case found:
			return id, nil
		case looks > 1 && !r.Now().Before(again):
			return "", nil
		}
		r.Step(1, 3, lang.Text{EN: "looking for an earlier attempt on %s", ZH: "正在 %s 上查找先前的提交"}.With(r.cl.Name()).In(r.Lang))
		select {
		case <-ctx.Done():
			return "", r.open(ctx.Err())
		case <-time.After(gap):
		}
		gap = min(2*gap, 5*time.Second)
	}
}
