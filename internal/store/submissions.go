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
	Message        string
	CreatedAt      time.Time
	UpdatedAt      time.Time
}

const submissionColumns = `key, token, cluster, owner, asked_by, name, spec, spec_hash, script, dir, state, job_id, message, created_at, updated_at`

// Begin stores sub as Submitting, before anything is done. When its key is
// taken, nothing is stored and the earlier submission comes back, with false.
func (s *Store) Begin(ctx context.Context, sub Submission) (Submission, bool, error) {
	res, err := s.exec(ctx, `INSERT INTO submissions (`+submissionColumns+`)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (key) DO NOTHING`,
		sub.Key, sub.Token, sub.Cluster, sub.Owner, sub.AskedBy, sub.Name, string(sub.Spec), sub.SpecHash,
		sub.Script, sub.Dir, Submitting, "", "", millis(sub.CreatedAt), millis(sub.CreatedAt))
	if err != nil {
		return Submission{}, false, err
	}
	if n, err := res.RowsAffected(); err != nil {
		return Submission{}, false, err
	} else if n == 1 {
		sub.State, sub.UpdatedAt = Submitting, sub.CreatedAt
		return sub, true, nil
	}
	earlier, err := s.Submission(ctx, sub.Key)
	return earlier, false, err
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
	var created, updated int64
	err := row.Scan(&sub.Key, &sub.Token, &sub.Cluster, &sub.Owner, &sub.AskedBy, &sub.Name, &spec, &sub.SpecHash,
		&sub.Script, &sub.Dir, &sub.State, &sub.JobID, &sub.Message, &created, &updated)
	if errors.Is(err, sql.ErrNoRows) {
		return Submission{}, ErrNotFound
	}
	sub.Spec, sub.CreatedAt, sub.UpdatedAt = []byte(spec), fromMillis(created), fromMillis(updated)
	return sub, err
}
