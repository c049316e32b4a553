package ops

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"time"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/slurm"
)

// A Notice is something that a job's people should hear of besides its states:
// an alarm, a kill switch that somebody threw. It waits in the store until
// whoever shows such takes it; where nobody does, it ends after a day.
type Notice struct {
	// Key names the notice for good: the same one told again is shown once.
	Key     string      `json:"key"`
	Cluster string      `json:"cluster"`
	Job     slurm.JobID `json:"job"`
	// Owner is whose job it is, to be told where nobody follows the job.
	Owner string `json:"owner,omitempty"`
	// By is who brought it about, as a surface's ID; they are not called for it.
	By    string    `json:"by,omitempty"`
	Title lang.Text `json:"title"`
	Text  lang.Text `json:"text,omitzero"`
	// Alarm says that the person should be called, quiet hours or not wanting to be
	// called aside.
	Alarm bool `json:"alarm,omitempty"`
	// Operators says that it is for them, in their channel, and not for a job's
	// people.
	Operators bool      `json:"operators,omitempty"`
	At        time.Time `json:"at"`
}

const docNotice = "notice" // a digest of the key → the Notice

// noticeLife is how long a notice waits to be shown.
const noticeLife = 24 * time.Hour

// Notify leaves n for a job's people.
func (s *Service) Notify(ctx context.Context, n Notice) error {
	docs, err := s.Docs()
	if err != nil {
		return err
	}
	if n.At.IsZero() {
		n.At = s.Now()
	}
	return docs.Put(ctx, docNotice, noticeKey(n.Key), n, s.Now().Add(noticeLife))
}

// Notices lists what waits to be shown.
func (s *Service) Notices(ctx context.Context) ([]Notice, error) {
	docs, err := s.Docs()
	if err != nil {
		return nil, err
	}
	keys, err := docs.Keys(ctx, docNotice, s.Now())
	var list []Notice
	for _, k := range keys {
		var n Notice
		if ok, err := docs.Get(ctx, docNotice, k, s.Now(), &n); err == nil && ok {
			list = append(list, n)
		}
	}
	return list, err
}

// Noticed forgets a notice that was shown.
func (s *Service) Noticed(ctx context.Context, n Notice) error {
	docs, err := s.Docs()
	if err != nil {
		return err
	}
	return docs.Delete(ctx, docNotice, noticeKey(n.Key))
}

func noticeKey(key string) string {
	sum := sha256.Sum256([]byte(key))
	return hex.EncodeToString(sum[:16])
}
