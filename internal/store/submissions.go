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

// The states of a submission. Submitting is stored before the back end is
// asked: after a crash it means "perhaps".
const (
	Submitting SubmissionState = "submitting"
	Submitted  SubmissionState = "submitted"
	Rejected   SubmissionState = "rejected"
)

// A Submission is one request to run a specification.
type Submission struct {
	// Key is the caller's idempotency key; Token is what travels with the job.
	Key, Token string
	Cluster    string
	// Owner is the cluster user that the job runs as; AskedBy is who asked, on
	// which surface.
	Owner, AskedBy string
	Name           string
	Spec           []byte // JSON
	SpecHash       string
	Script, Dir    string
	State          SubmissionState
	JobID          slurm.JobID
	// Message is what went wrong last. Of one that is Submitting it says that the
	// controller did not answer, at UpdatedAt.
	Message   string
	CreatedAt time.Time
	UpdatedAt time.Time
	// Place names the machine and the directory of locks from which it was handed
	// over last, at AttemptedAt; an empty Place keeps no locks.
	Place       string
	AttemptedAt time.Time
}

const submissionColumns = `key, token, cluster, owner, asked_by, name, spec, spec_hash, script, dir, state, job_id, message, created_at, updated_at, place, attempted_at`

// Begin stores sub as Submitting and attempted now, before anything is done.
// When its key is taken, nothing is stored and the earlier submission comes back,
// with false.
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

// Adopt stores sub as Submitted: a job that is there already, and that another of
// ours has queued. Where its key is taken, nothing is stored.
func (s *Store) Adopt(ctx context.Context, sub Submission) error {
	sub.State = Submitted
	_, err := s.insert(ctx, sub)
	return err
}

func (s *Store) insert(ctx context.Context, sub Submission) (first bool, err error) {
	res, err := s.exec(ctx, `INSERT INTO submissions (`+submissionColumns+`)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (key) DO NOTHING`,
		sub.Key, sub.Token, sub.Cluster, sub.Owner, sub.AskedBy, sub.Name, string(sub.Spec), sub.SpecHash,
		sub.Script, sub.Dir, sub.State, string(sub.JobID), sub.Message, millis(sub.CreatedAt), millis(sub.CreatedAt), sub.Place, millis(sub.CreatedAt))
	if err != nil {
		return false, err
	}
	n, err := res.RowsAffected()
	return n == 1, err
}

// Attempt notes, before it is done, that sub is handed over once more, from
// place. It reports false where somebody else has got on with it since sub was
// read: of several that would try again one does.
func (s *Store) Attempt(ctx context.Context, sub Submission, place string, now time.Time) (bool, error) {
	res, err := s.exec(ctx, `UPDATE submissions SET state = ?, message = '', place = ?, attempted_at = ?, updated_at = ?
		WHERE key = ? AND state = ? AND attempted_at = ?`,
		Submitting, place, max(millis(now), millis(sub.AttemptedAt)+1), millis(now), sub.Key, sub.State, millis(sub.AttemptedAt))
	if err != nil {
		return false, err
	}
	n, err := res.RowsAffected()
	return n == 1, err
}

// Finish writes how the submission of that key ended.
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

// Submissions returns the newest submissions, at most limit, of owner where it
// is not empty and of that name where it is not empty.
func (s *Store) Submissions(ctx context.Context, owner, name string, limit int) ([]Submission, error) {
	return s.submissions(ctx, `SELECT `+submissionColumns+` FROM submissions
		WHERE (owner = ? OR ? = '') AND (name = ? OR ? = '') ORDER BY created_at DESC LIMIT ?`,
		owner, owner, name, name, limit)
}

// SubmittedSince returns what became a job since then, without its specification
// and its script: of each the key, the cluster, the job and when it was asked for.
func (s *Store) SubmittedSince(ctx context.Context, since time.Time) (subs []Submission, err error) {
	rows, err := s.query(ctx, `SELECT key, cluster, job_id, owner, asked_by, name, created_at FROM submissions
		WHERE state = ? AND updated_at >= ? ORDER BY updated_at`, Submitted, millis(since))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		sub := Submission{State: Submitted}
		var created int64
		if err := rows.Scan(&sub.Key, &sub.Cluster, &sub.JobID, &sub.Owner, &sub.AskedBy, &sub.Name, &created); err != nil {
			return nil, err
		}
		sub.CreatedAt = fromMillis(created)
		subs = append(subs, sub)
	}
	return subs, rows.Err()
}

// Unanswered returns the submissions of that owner's specification that were
// begun since and have no end yet, newest first.
func (s *Store) Unanswered(ctx context.Context, cluster, owner, specHash string, since time.Time) ([]Submission, error) {
	return s.submissions(ctx, `SELECT `+submissionColumns+` FROM submissions
		WHERE state = ? AND cluster = ? AND owner = ? AND spec_hash = ? AND created_at > ? ORDER BY created_at DESC`,
		Submitting, cluster, owner, specHash, millis(since))
}

// Unfinished returns what was begun and has no end yet, oldest first.
func (s *Store) Unfinished(ctx context.Context) ([]Submission, error) {
	return s.submissions(ctx, `SELECT `+submissionColumns+` FROM submissions WHERE state = ? ORDER BY created_at`, Submitting)
}

func (s *Store) submissions(ctx context.Context, query string, args ...any) ([]Submission, error) {
	rows, err := s.query(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var subs []Submission
	for rows.Next() {
		sub, err := scanSubmission(rows)
		if err != nil {
			return nil, err
		}
		subs = append(subs, sub)
	}
	return subs, rows.Err()
}

func scanSubmission(row interface{ Scan(...any) error }) (Submission, error) {
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
