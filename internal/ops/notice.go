package ops

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"time"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/slurm"
)

// A Notice is a message for a job's people besides the job's states, such as an alarm
// or a kill switch that somebody threw. It waits in the store until a surface that
// shows notices takes it, and expires after a day.
type Notice struct {
	// Key identifies the notice: a notice with the same key is shown once.
	Key     string      `json:"key"`
	Cluster string      `json:"cluster"`
	Job     slurm.JobID `json:"job"`
	// Owner is the job's owner, who is told where nobody follows the job.
	Owner string `json:"owner,omitempty"`
	// By is who caused the notice, as a surface's ID. That person is not mentioned.
	By    string    `json:"by,omitempty"`
	Title lang.Text `json:"title"`
	Text  lang.Text `json:"text,omitzero"`
	// Alarm says that the person should be mentioned, even in their quiet hours and
	// where they prefer not to be mentioned.
	Alarm bool `json:"alarm,omitempty"`
	// Incident is the jobs that failed of the cause that the notice is about. A place that
	// shows two of them has a message about the incident, and so needs no notice.
	Incident []string `json:"incident,omitempty"`
	// Operators says that the notice is for the operators' channel, and not for a job's
	// people.
	Operators bool      `json:"operators,omitempty"`
	At        time.Time `json:"at"`
}

const docNotice = "notice" // a digest of the key → the Notice

// noticeLife is how long a notice waits to be shown.
const noticeLife = 24 * time.Hour

// Notify stores n for a job's people.
func (s *Service) Notify(ctx context.Context, n Notice) error {
	if n.At.IsZero() {
		n.At = s.Now()
	}
	return s.Docs().Put(ctx, docNotice, noticeKey(n.Key), n, s.Now().Add(noticeLife))
}

// Notices lists the notices that wait to be shown.
func (s *Service) Notices(ctx context.Context) ([]Notice, error) {
	return ListDocs[Notice](ctx, s.Docs(), docNotice, s.Now())
}

// ForgetNotice deletes a notice that was shown.
func (s *Service) ForgetNotice(ctx context.Context, n Notice) error {
	return s.Docs().Delete(ctx, docNotice, noticeKey(n.Key))
}

func noticeKey(key string) string {
	sum := sha256.Sum256([]byte(key))
	return hex.EncodeToString(sum[:16])
}
