package store

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/megatron-ops/megatron-ops/slurm"
)

// A SubmissionState says how far a submission has come.
type SubmissionState string

// The states of a submission. Submitting is stored before the back end is called: after
// a crash it means that the job may or may not exist.
const (
	Submitting SubmissionState = "submitting"
	Submitted  SubmissionState = "submitted"
	Rejected   SubmissionState = "rejected"
)

// A Submission is one request to run a specification.
type Submission struct {
	// Key is the caller's idempotency key; Token travels with the job.
	Key, Token string
	Cluster    string
	// Owner is the cluster user that the job runs as; AskedBy is the person who asked,
	// with the surface.
	Owner, AskedBy string
	Name           string
	Spec           []byte // JSON
	SpecHash       string
	Script, Dir    string
	State          SubmissionState
	JobID          slurm.JobID
	// Message is the last error. If State is Submitting, it says that the controller
	// did not answer, at UpdatedAt.
	Message   string
	CreatedAt time.Time
	UpdatedAt time.Time
	// Place names the machine and the lock directory from which the submission was last
	// handed over, at AttemptedAt. An empty Place has no locks.
	Place       string
	AttemptedAt time.Time
}

// Became reports whether j, which has the submission's job id, is the job that the
// submission became. Ids begin anew when a controller loses its state or has counted to
// its largest id; a job that was then submitted with the id is another one, unless it was
// put back into the queue, which gives it a new submit time.
func (sub Submission) Became(j slurm.Job) bool {
	if j.SubmittedAt == nil || j.Restarts > 0 || len(j.Requeues) > 0 || slurm.HasToken(j, sub.Token) {
		return true
	}
	return !j.SubmittedAt.After(sub.UpdatedAt.Add(reusedAfter))
}

// MayBeReused reports whether, by now, another job may have the submission's job id.
func (sub Submission) MayBeReused(now time.Time) bool {
	return now.After(sub.UpdatedAt.Add(reusedAfter))
}

// reusedAfter is how long after its submission was settled a job with its id is another
// job: more than clocks differ, of which one may stand still with its machine, or be in
// another time zone. A job's own specification matters more than a day in which an id comes
// twice.
const reusedAfter = 26 * time.Hour

const submissionColumns = `key, token, cluster, owner, asked_by, name, spec, spec_hash, script, dir, state, job_id, message, created_at, updated_at, place, attempted_at`

// Begin stores sub as Submitting and attempted now, before anything is done. If its key
// is taken, it stores nothing and returns the earlier submission with false.
func (s *Store) Begin(ctx context.Context, sub Submission) (Submission, bool, error) {
	sub.State, sub.JobID, sub.Message = Submitting, "", ""
	if first, err := s.insert(ctx, sub); err != nil {
		return Submission{}, false, err
	} else if first {
		sub.UpdatedAt, sub.AttemptedAt = sub.CreatedAt, sub.CreatedAt
		return sub, true, nil
	}
	earlier, err := s.Submission(ctx, sub.Key)
	return earlier, false, err
}

// Adopt stores sub as Submitted: a job that exists already because another of our jobs
// has queued it. If its key is taken, it stores nothing.
func (s *Store) Adopt(ctx context.Context, sub Submission) error {
	sub.State = Submitted
	_, err := s.insert(ctx, sub)
	return err
}

func (s *Store) insert(ctx context.Context, sub Submission) (first bool, err error) {
	return s.changed(ctx, `INSERT INTO submissions (`+submissionColumns+`)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (key) DO NOTHING`,
		sub.Key, sub.Token, sub.Cluster, sub.Owner, sub.AskedBy, sub.Name, string(sub.Spec), sub.SpecHash,
		sub.Script, sub.Dir, sub.State, string(sub.JobID), sub.Message, millis(sub.CreatedAt), millis(sub.CreatedAt), sub.Place, millis(sub.CreatedAt))
}

// Attempt records, before it happens, that sub is handed over once more, from place. It
// returns false if somebody else has continued with it since sub was read: of several
// that retry, one succeeds.
func (s *Store) Attempt(ctx context.Context, sub Submission, place string, now time.Time) (bool, error) {
	return s.changed(ctx, `UPDATE submissions SET state = ?, message = '', place = ?, attempted_at = ?, updated_at = ?
		WHERE key = ? AND state = ? AND attempted_at = ?`,
		Submitting, place, max(millis(now), millis(sub.AttemptedAt)+1), millis(now), sub.Key, sub.State, millis(sub.AttemptedAt))
}

// Finish records how the submission of that key ended.
func (s *Store) Finish(ctx context.Context, key string, state SubmissionState, id slurm.JobID, message string, now time.Time) error {
	_, err := s.exec(ctx, `UPDATE submissions SET state = ?, job_id = ?, message = ?, updated_at = ? WHERE key = ?`,
		state, string(id), message, millis(now), key)
	return err
}

// Submission returns the submission of that key, or ErrNotFound.
func (s *Store) Submission(ctx context.Context, key string) (Submission, error) {
	return scanSubmission(s.row(ctx, `SELECT `+submissionColumns+` FROM submissions WHERE key = ?`, key))
}

// ByJob returns the submission that became that job, or ErrNotFound.
func (s *Store) ByJob(ctx context.Context, cluster string, id slurm.JobID) (Submission, error) {
	return scanSubmission(s.row(ctx, `SELECT `+submissionColumns+` FROM submissions
		WHERE cluster = ? AND job_id = ? ORDER BY created_at DESC LIMIT 1`, cluster, string(id)))
}

// Submissions returns the newest submissions, at most limit. It filters by owner and by
// name unless they are empty.
func (s *Store) Submissions(ctx context.Context, owner, name string, limit int) ([]Submission, error) {
	return collect(ctx, s, scanSubmission, `SELECT `+submissionColumns+` FROM submissions
		WHERE (owner = ? OR ? = '') AND (name = ? OR ? = '') ORDER BY created_at DESC LIMIT ?`,
		owner, owner, name, name, limit)
}

// SubmittedSince returns the submissions that became jobs since then, without
// specification and script.
func (s *Store) SubmittedSince(ctx context.Context, since time.Time) ([]Submission, error) {
	return collect(ctx, s, func(row scanner) (Submission, error) {
		sub := Submission{State: Submitted}
		var created int64
		err := row.Scan(&sub.Key, &sub.Cluster, &sub.JobID, &sub.Owner, &sub.AskedBy, &sub.Name, &created)
		sub.CreatedAt = fromMillis(created)
		return sub, err
	}, `SELECT key, cluster, job_id, owner, asked_by, name, created_at FROM submissions
		WHERE state = ? AND updated_at >= ? ORDER BY updated_at`, Submitted, millis(since))
}

// Unanswered returns the unfinished submissions of that owner's specification that were
// begun since then, newest first.
func (s *Store) Unanswered(ctx context.Context, cluster, owner, specHash string, since time.Time) ([]Submission, error) {
	return collect(ctx, s, scanSubmission, `SELECT `+submissionColumns+` FROM submissions
		WHERE state = ? AND cluster = ? AND owner = ? AND spec_hash = ? AND created_at > ? ORDER BY created_at DESC`,
		Submitting, cluster, owner, specHash, millis(since))
}

// Unfinished returns the unfinished submissions, oldest first.
func (s *Store) Unfinished(ctx context.Context) ([]Submission, error) {
	return collect(ctx, s, scanSubmission, `SELECT `+submissionColumns+` FROM submissions WHERE state = ? ORDER BY created_at`, Submitting)
}

func scanSubmission(row scanner) (Submission, error) {
	var sub Submission
	var spec string
	var created, updated, attempted int64
	err := row.Scan(&sub.Key, &sub.Token, &sub.Cluster, &sub.Owner, &sub.AskedBy, &sub.Name, &spec, &sub.SpecHash,
		&sub.Script, &sub.Dir, &sub.State, &sub.JobID, &sub.Message, &created, &updated, &sub.Place, &attempted)
	if errors.Is(err, sql.ErrNoRows) {
		return Submission{}, ErrNotFound
	}
	sub.Spec, sub.CreatedAt, sub.UpdatedAt, sub.AttemptedAt = []byte(spec), fromMillis(created), fromMillis(updated), fromMillis(attempted)
	return sub, err
}
