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

// A request asks for one job. It becomes at most one job and, unless it is refused,
// exactly one: across crashes of this process, retries, double clicks and time-outs.
//
// Before the script is handed to the cluster, the store records the request. The sbatch
// that is started inherits the lock on the request, so nobody else on this machine can
// begin while that sbatch lives. Whoever finds a request without a result asks the
// cluster for its token before handing the script over again.
type request struct {
	*Call
	cl  Cluster
	key string // the idempotency key
	sub store.Submission
	st  *store.Store
	log string
}

// settling is how long a request is looked for before it is handed over again, where
// its last attempt got no answer or was made where its lock cannot be seen. By then
// slurmctld has dropped the attempt (MessageTimeout is 10 s).
const settling = time.Minute

// lookAgain returns the pause between a first look that found nothing and the second,
// deciding one: the controller may still be working on a request whose sender was
// killed. A request to slurmrestd has no lock, so its pause is longer.
func lookAgain(kind string) time.Duration {
	if kind == "rest" {
		return 2 * time.Second
	}
	return 500 * time.Millisecond
}

// Resumable is how long a repeated call without a key may continue an unanswered
// request.
const Resumable = 24 * time.Hour

// tokenOf returns the token of a request. The same person, cluster and key always give
// the same token: 128 bits or more, in letters that Slurm keeps unchanged.
func tokenOf(owner, cluster, key string) string {
	sum := sha256.Sum256([]byte("megatron-ops submission\x00" + owner + "\x00" + cluster + "\x00" + key))
	return strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(sum[:]))[:26]
}

// SubmitOnce makes one job of s on cl and returns the request's key; see request.
// already reports that the job existed before this call.
func (c *Call) SubmitOnce(ctx context.Context, cl Cluster, s job.Spec, sc job.Script, key string) (id slurm.JobID, used string, already bool, err error) {
	r, err := c.request(ctx, cl, s, sc, key)
	if err != nil {
		return "", key, false, err
	}
	id, already, err = r.submit(ctx)
	return id, r.key, already, err
}

// request returns the request to run s on cl. Without a key the request is new, unless
// the same person began an equal one whose process died: the person got no answer then,
// and asks again.
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

// place identifies the directory of the locks on this machine, for other processes that
// share the store.
func (s *Service) place() string {
	host, err := os.Hostname()
	if err != nil || s.Locks == "" {
		return ""
	}
	return host + ":" + s.Locks
}

// abandoned reports whether nobody works on sub any more.
func (s *Service) abandoned(sub store.Submission) bool {
	if sub.Place == "" || sub.Place != s.place() {
		return s.Now().After(sub.AttemptedAt.Add(settling))
	}
	return cluster.Abandoned(s.Locks, sub.Token)
}

// Recall looks for the jobs of submissions whose process died before it had the answer,
// so that these jobs are known and followed even where nobody asks again. It submits
// nothing: only the person who asked may repeat the request.
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
				continue // this process may not ask as that owner
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

// submit returns the job of r. already reports that the job existed before.
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
			// A process that died began it: the job may exist.
			id, err := r.settle(ctx, sub)
			if err != nil || id != "" {
				return id, true, err
			}
		}
		// Several callers may arrive here at once; one of them goes on.
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

// end records which job the request has become, if any, and releases its lock. Where a
// surface can tell when its answer was sent, this happens after the answer: a person
// whose process was killed before the answer asks again, and must get this very job.
func (r *request) end(ctx context.Context, id slurm.JobID, lock *cluster.Lock) (err error) {
	if id != "" {
		// The job exists even if this write fails; the next call would then look for
		// it.
		err = r.st.Finish(context.WithoutCancel(ctx), r.sub.Key, store.Submitted, id, "", r.Now())
	}
	if lock != nil {
		lock.Release(id != "" && err == nil)
	}
	return err
}

// handOver gives sub's script to the cluster and records the result.
func (r *request) handOver(ctx context.Context, sub store.Submission, lock *cluster.Lock) (slurm.JobID, error) {
	s := slurm.Submission{Script: sub.Script, Dir: sub.Dir, Name: sub.Name, Token: sub.Token, At: sub.CreatedAt, LogDir: r.log}
	if lock != nil {
		s.Lock = lock.File
	}
	id, err := r.cl.Submit(ctx, s)
	cutOff := ctx.Err() != nil
	ctx = context.WithoutCancel(ctx) // the script was handed over: that the caller has gone changes nothing
	if errors.Is(err, slurm.ErrUnknown) {
		// The cluster may have accepted the job all the same.
		if found, ok, lookErr := r.cl.Find(ctx, sub.Token, sub.CreatedAt); lookErr == nil && ok {
			id, err = found, nil
		}
	}
	switch {
	case err == nil:
		return id, nil
	case errors.Is(err, slurm.ErrRejected), errors.Is(err, slurm.ErrDenied), errors.Is(err, slurm.ErrMissing):
		// A refusal is final. After any other error the job may exist, so the request
		// stays open and is looked for later.
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

// unanswered records that the controller did not answer, and returns what to do.
func (r *request) unanswered(ctx context.Context, sub store.Submission, err error) error {
	return errors.Join(r.open(err), r.st.Finish(context.WithoutCancel(ctx), sub.Key, store.Submitting, "", err.Error(), r.Now()))
}

// open returns the error for a request whose result is not known.
func (r *request) open(err error) error {
	e := &Error{Code: Failed, Message: lang.Text{EN: "it is not known yet whether the job was submitted: %s", ZH: "尚不确定作业是否已提交：%s"}.With(lang.Said(err)), Fix: cluster.AskAgain}
	if s, ok := errors.AsType[*slurm.Error](err); ok && (s.Kind == slurm.Denied || s.Kind == slurm.Missing) {
		e.Fix = s.Fix
	}
	return e
}

// settle finds out whether sub, an earlier attempt, has become a job. Neither an id nor
// an error means that it has not, and will not.
func (r *request) settle(ctx context.Context, sub store.Submission) (slurm.JobID, error) {
	again := sub.AttemptedAt.Add(settling)
	if sub.Place != "" && sub.Place == r.sub.Place {
		again = time.Time{} // the lock is free, so no sbatch of the attempt lives
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
