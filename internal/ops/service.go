package ops

import (
	"context"
	"net/url"
	"strings"
	"time"

	"github.com/megatron-ops/megatron-ops/internal/store"
	"github.com/megatron-ops/megatron-ops/knowledge"
	"github.com/megatron-ops/megatron-ops/slurm"
	"github.com/megatron-ops/megatron-ops/slurm/job"
)

// A Cluster is what the operations ask of a back end. slurm/cluster provides
// them; the zero of every answer means "not known".
type Cluster interface {
	Name() string
	Kind() string
	Submit(context.Context, slurm.Submission) (slurm.JobID, error)
	// Job returns slurm.ErrNotFound for a job that the cluster does not know.
	Job(context.Context, slurm.JobID) (slurm.Job, error)
	Jobs(context.Context, slurm.Filter) ([]slurm.Job, error)
	Cancel(context.Context, slurm.JobID) error
	// Find looks for the job that was submitted with token, in the queue first and
	// then in the accounts.
	Find(ctx context.Context, token string, since time.Time) (slurm.JobID, bool, error)
}

// A View is a cluster for many readers: slurm/watch's Shared is one.
type View interface {
	Job(context.Context, slurm.JobID) (slurm.Job, error)
	Jobs(context.Context, slurm.Filter) ([]slurm.Job, error)
	// Known is what was last seen, and when; a zero time: nothing was.
	Known(slurm.Filter) ([]slurm.Job, time.Time)
	// Recall gives what somebody else saw at that time, for Known until there is better.
	Recall([]slurm.Job, time.Time)
	// Changed says that something was changed through this process.
	Changed()
}

// Reader is the cluster of that name for reading: its view, where it has one.
func (s *Service) Reader(name string) interface {
	Job(context.Context, slurm.JobID) (slurm.Job, error)
	Jobs(context.Context, slurm.Filter) ([]slurm.Job, error)
} {
	if v := s.Views[name]; v != nil {
		return v
	}
	return s.Clusters[name]
}

// An AuditEntry is one write, refused ones included.
type AuditEntry struct {
	At  time.Time
	Who Caller
	Op  string
	In  any
	Out any
	Err error
	// Agreed is who said yes: "self", an approver's name, or empty where nobody was
	// asked.
	Agreed string
}

// A Service is what the operations act on. cmd builds one; tests build theirs.
type Service struct {
	// Clusters by name; Default is the one that a call without a cluster means.
	Clusters map[string]Cluster
	Default  string
	// Unchosen reports that nobody named or configured Default: it is read, and a
	// change asks for a cluster by name.
	Unchosen bool
	Now      func() time.Time
	// Store opens the database once and returns it after; operations that need
	// none never open it. Nil where nothing is kept.
	Store func() (*store.Store, error)
	// Locks is a directory on this machine for the locks on submissions under way;
	// empty: none are kept, and a retry waits for the controller instead.
	Locks string
	// ApprovalLife is how long an approval is waited for; a day where it is zero.
	ApprovalLife time.Duration
	// Sites gives a cluster's profile; nil: none is known.
	Sites func(cluster string) job.Site
	// Answerer answers questions; it is made at the first one.
	Answerer func() *knowledge.Answerer
	// PageURL is the address of the page as browsers reach it; empty where none is
	// served to them.
	PageURL string
	// Version is the program's, for the header of scripts.
	Version string
	// Views answer reading by the clusters' names with few questions, where many
	// read at once; a cluster without one is asked each time.
	Views map[string]View
	// Self is the user that this process is on the cluster. Where somebody else
	// asks through Slack or HTTP, As gives the back end that acts as that person;
	// without it, nobody else can change anything: a job must never run as the bot.
	Self string
	As   func(cl Cluster, user string) (Cluster, error)
	// Audit writes an entry down; nil keeps none.
	Audit func(context.Context, AuditEntry)
}

// JobPath is a job's page below the page's address.
func JobPath(cluster string, id slurm.JobID) string {
	return "/web/jobs/" + url.PathEscape(cluster) + "/" + url.PathEscape(string(id))
}

// PipelinePath is a pipeline's page below the page's address.
func PipelinePath(owner, name string) string {
	return "/web/pipelines/" + url.PathEscape(owner) + "/" + url.PathEscape(name)
}

// JobPage is the address of a job's page; empty where browsers reach none.
func (s *Service) JobPage(cluster string, id slurm.JobID) string { return s.page(JobPath(cluster, id)) }

// ApprovalsPage is the address of the page on which operators decide; empty where
// browsers reach none.
func (s *Service) ApprovalsPage() string { return s.page("/web/approvals") }

// PipelinePage is the address of a pipeline's page; empty where browsers reach none.
func (s *Service) PipelinePage(owner, name string) string { return s.page(PipelinePath(owner, name)) }

func (s *Service) page(path string) string {
	if s.PageURL == "" {
		return ""
	}
	return strings.TrimSuffix(s.PageURL, "/") + path
}
