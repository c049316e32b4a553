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

// A Cluster is a back end as the operations use it; slurm/cluster implements it. A zero
// value in an answer means "not known".
type Cluster interface {
	Name() string
	Kind() string
	Submit(context.Context, slurm.Submission) (slurm.JobID, error)
	// Job returns slurm.ErrNotFound for a job that the cluster does not know.
	Job(context.Context, slurm.JobID) (slurm.Job, error)
	Jobs(context.Context, slurm.Filter) ([]slurm.Job, error)
	// Past asks the accounts alone, which know what a job was given; the queue knows
	// what it asked for.
	Past(context.Context, slurm.Filter) ([]slurm.Job, error)
	Cancel(context.Context, slurm.JobID) error
	Hold(context.Context, slurm.JobID) error
	Release(context.Context, slurm.JobID) error
	Requeue(context.Context, slurm.JobID) error
	Update(context.Context, slurm.JobID, slurm.Update) error
	// Find looks for the job that was submitted with token, first in the queue and then
	// in the accounts.
	Find(ctx context.Context, token string, since time.Time) (slurm.JobID, bool, error)
	// Test estimates a submission's start without queueing it.
	Test(context.Context, slurm.Submission) (slurm.Estimate, error)
	Nodes(context.Context) ([]slurm.Node, error)
	Partitions(context.Context) ([]slurm.Partition, error)
	// Exec runs a command on the nodes of a running job.
	Exec(context.Context, slurm.Exec) ([]slurm.NodeOutput, error)
}

// A View is a cluster for many readers, such as slurm/watch's Shared.
type View interface {
	Job(context.Context, slurm.JobID) (slurm.Job, error)
	Jobs(context.Context, slurm.Filter) ([]slurm.Job, error)
	// Known returns the jobs that were last seen, and when; a zero time means that none
	// were.
	Known(slurm.Filter) ([]slurm.Job, time.Time)
	// Recall gives the view jobs that another process saw at that time. Known returns
	// them until the view has newer ones.
	Recall([]slurm.Job, time.Time)
	// Changed tells the view that this process has changed something.
	Changed()
}

// Reader returns the cluster of that name for reading: its view, where it has one.
func (s *Service) Reader(name string) interface {
	Job(context.Context, slurm.JobID) (slurm.Job, error)
	Jobs(context.Context, slurm.Filter) ([]slurm.Job, error)
} {
	if v := s.Views[name]; v != nil {
		return v
	}
	return s.Clusters[name]
}

// An AuditEntry is one write, including refused ones.
type AuditEntry struct {
	At  time.Time
	Who Caller
	Op  string
	In  any
	Out any
	Err error
	// Agreed is who agreed: "self", an approver's name, or empty where nobody was
	// asked.
	Agreed string
}

// A Service holds what the operations work with. cmd builds one; tests build theirs.
type Service struct {
	// Clusters holds the clusters by name. Default is the one for a call that names
	// none.
	Clusters map[string]Cluster
	Default  string
	// Unchosen reports that nobody named or configured Default: calls may read from it,
	// but a change must name a cluster.
	Unchosen bool
	Now      func() time.Time
	// Store opens the database at its first call and returns the same one afterwards,
	// so that operations without a need for it never open it. It is nil where nothing
	// is kept.
	Store func() (*store.Store, error)
	// Locks is a directory on this machine that holds the locks of submissions in
	// progress. It is empty where there are none; a retry then waits until the
	// controller has certainly given up on the earlier attempt.
	Locks string
	// ApprovalLife is how long an approval is waited for; zero means a day.
	ApprovalLife time.Duration
	// Sites returns a cluster's profile; nil means that no profile is known.
	Sites func(cluster string) job.Site
	// Answerer returns what answers questions; it is built at the first call.
	Answerer func() *knowledge.Answerer
	// PageURL is the web page's address as browsers reach it. It is empty where no page
	// is served to them.
	PageURL string
	// Version is the program's version, for the header of scripts.
	Version string
	// Views holds, by cluster name, the views that answer many readers with few
	// questions to the cluster. A cluster without a view is asked each time.
	Views map[string]View
	// Self is this process's user on the cluster. Where somebody else asks through
	// Slack or HTTP, As returns the back end that acts as that person. Without As,
	// nobody else can change anything: a job must never run as the bot.
	Self string
	As   func(cl Cluster, user string) (Cluster, error)
	// Audit stores an entry; nil keeps none.
	Audit func(context.Context, AuditEntry)
	// Failures holds the diagnoses that all who tell of a failure share; nil: each makes
	// its own.
	Failures *FailureReports
}

// ApprovalsPath is the path of the page on which operators decide, to append to the page's address.
const ApprovalsPath = "/web/approvals"

// JobPath returns the path of a job's page, to append to the page's address.
func JobPath(cluster string, id slurm.JobID) string {
	return "/web/jobs/" + url.PathEscape(cluster) + "/" + url.PathEscape(string(id))
}

// PipelinePath returns the path of a pipeline's page, to append to the page's address.
func PipelinePath(owner, name string) string {
	return "/web/pipelines/" + url.PathEscape(owner) + "/" + url.PathEscape(name)
}

// JobPage returns the address of a job's page, or "" where browsers reach none.
func (s *Service) JobPage(cluster string, id slurm.JobID) string { return s.page(JobPath(cluster, id)) }

// ApprovalsPage returns the address of the page on which operators decide, or "" where
// browsers reach none.
func (s *Service) ApprovalsPage() string { return s.page(ApprovalsPath) }

// PipelinePage returns the address of a pipeline's page, or "" where browsers reach
// none.
func (s *Service) PipelinePage(owner, name string) string { return s.page(PipelinePath(owner, name)) }

func (s *Service) page(path string) string {
	if s.PageURL == "" {
		return ""
	}
	return strings.TrimSuffix(s.PageURL, "/") + path
}
