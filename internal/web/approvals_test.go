package web_test

import (
	"html"
	"net/http"
	"net/url"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/ops/opstest"
	"github.com/megatron-ops/megatron-ops/internal/web"
	"github.com/megatron-ops/megatron-ops/slurm"
)

// A request that exceeds the limits waits for an operator, and is carried out once.
func TestWhatIsHeldWaitsForAnOperator(t *testing.T) {
	s := newSite(t, func(c *web.Config) {
		c.Held = func(_ *ops.Call, op string, _ any) lang.Text { return lang.Text{EN: op + " is held here"} }
	})
	b, operator := s.as("alice"), s.as("root")
	form := url.Values{"op": {"cancel"}, "cluster": {"test"}, "word": {"6"}}
	status, body := b.post("/web/do", form)
	require.Equal(t, http.StatusAccepted, status)
	require.Contains(t, body, "cancel is held here")
	require.Equal(t, slurm.Running, s.jobs.KnownJobs["6"].State)
	status, _ = b.get("/web/approvals")
	require.Equal(t, 403, status)

	_, body = operator.get("/web/approvals")
	require.Contains(t, body, "alice asks for cancel")
	id := regexp.MustCompile(`/web/approvals/([^"]+)"`).FindStringSubmatch(body)[1]
	status, _ = b.post("/web/approvals/"+id, url.Values{"decision": {"approve"}})
	require.Equal(t, 403, status, "nobody approves their own")
	_, body = operator.post("/web/approvals/"+id, url.Values{"decision": {"approve"}})
	require.Contains(t, body, "Nothing waits")
	status, body = b.post("/web/do", form)
	require.Equal(t, 200, status, body)
	require.Equal(t, slurm.Cancelled, s.jobs.KnownJobs["6"].State)
	require.Equal(t, "root", s.audit[len(s.audit)-1].Agreed)

	// What is not approved in so many words is declined, and why is said.
	form.Set("word", "5")
	status, _ = b.post("/web/do", form)
	require.Equal(t, http.StatusAccepted, status)
	_, body = operator.get("/web/approvals")
	id = regexp.MustCompile(`/web/approvals/([^"]+)"`).FindStringSubmatch(body)[1]
	_, _ = operator.post("/web/approvals/"+id, url.Values{"reason": {"too soon"}})
	status, body = b.post("/web/do", form)
	require.Equal(t, 403, status)
	require.Contains(t, body, "root has declined this cancel: too soon")

	// A person's agent waits for an operator here too.
	_, err := s.svc.Approved(t.Context(), ops.Approval{Who: ops.Caller{Surface: ops.MCP, ID: "alice", User: "alice"}, Op: "cancel", Digest: "digest"}, map[string]string{"job": "5"})
	require.NoError(t, err)
	_, body = operator.get("/web/approvals")
	id = regexp.MustCompile(`/web/approvals/([^"]+)"`).FindStringSubmatch(body)[1]
	status, _ = b.post("/web/approvals/"+id, url.Values{"decision": {"approve"}})
	require.Equal(t, 403, status)
	_, body = operator.get("/web/approvals")
	require.Contains(t, body, id)

	// An operator asks nobody.
	s = newSite(t, func(c *web.Config) {
		c.Operators = []string{"alice"}
		c.Held = func(_ *ops.Call, op string, _ any) lang.Text { return lang.Text{EN: op + " is held here"} }
	})
	status, body = s.as("alice").post("/web/do", url.Values{"op": {"cancel"}, "cluster": {"test"}, "word": {"6"}})
	require.Equal(t, 200, status, body)
}

// Exactly what an operator approved is carried out, whatever the form says was shown.
func TestWhatWasApprovedIsWhatIsSubmitted(t *testing.T) {
	s := newSite(t, func(c *web.Config) {
		c.Held = func(_ *ops.Call, op string, _ any) lang.Text { return lang.Text{EN: op + " is held here"} }
	})
	b, operator := s.as("alice"), s.as("root")
	form := url.Values{"op": {"submit"}, "cluster": {"test"}, "word": opstest.GoodJob, "digest": {"0123"}}
	status, body := b.post("/web/do", form)
	require.Equal(t, http.StatusAccepted, status, body)
	_, body = operator.get("/web/approvals")
	id := regexp.MustCompile(`/web/approvals/([^"]+)"`).FindStringSubmatch(body)[1]
	_, _ = operator.post("/web/approvals/"+id, url.Values{"decision": {"approve"}})
	status, body = b.post("/web/do", form)
	require.Equal(t, 200, status, body)
	require.Len(t, s.jobs.Submitted, 1)

	// Without an approver, exactly what the form showed is carried out, or nothing.
	s = newSite(t)
	status, body = s.as("alice").post("/web/do", form)
	require.Equal(t, 403, status, body)
	require.Contains(t, body, "is not the one that was agreed to")
	require.Empty(t, s.jobs.Submitted)
}

// A yes to cancelling all of one's jobs, and an approval of it, are for the jobs that were shown.
func TestAYesIsToTheJobsThatWereShown(t *testing.T) {
	digest := regexp.MustCompile(`name="digest" value="([^"]*)"`)
	later := slurm.Job{ID: "9", Name: "later", User: "alice", State: slurm.Running}
	form := url.Values{"op": {"cancel"}, "cluster": {"test"}, "word": {"--mine"}}

	s := newSite(t)
	b := s.as("alice")
	_, body := b.get("/web/confirm?" + form.Encode())
	shown := url.Values{"op": {"cancel"}, "cluster": {"test"}, "word": {"--mine"}, "digest": {html.UnescapeString(digest.FindStringSubmatch(body)[1])}}
	s.jobs.KnownJobs["9"] = later
	status, body := b.post("/web/do", shown)
	require.Equal(t, 200, status, body)
	require.Equal(t, slurm.Cancelled, s.jobs.KnownJobs["6"].State)
	require.Equal(t, slurm.Running, s.jobs.KnownJobs["9"].State)

	s = newSite(t, func(c *web.Config) {
		c.Held = func(_ *ops.Call, op string, _ any) lang.Text { return lang.Text{EN: op + " is held here"} }
	})
	b, operator := s.as("alice"), s.as("root")
	status, _ = b.post("/web/do", form)
	require.Equal(t, http.StatusAccepted, status)
	_, body = operator.get("/web/approvals")
	id := regexp.MustCompile(`/web/approvals/([^"]+)"`).FindStringSubmatch(body)[1]
	_, _ = operator.post("/web/approvals/"+id, url.Values{"decision": {"approve"}})
	s.jobs.KnownJobs["9"] = later
	status, body = b.post("/web/do", form)
	require.Equal(t, http.StatusAccepted, status, body)
	require.Equal(t, slurm.Running, s.jobs.KnownJobs["6"].State, "more than was approved is another request")
	delete(s.jobs.KnownJobs, "9")
	ended := s.jobs.KnownJobs["5"]
	ended.State = slurm.Completed
	s.jobs.KnownJobs["5"] = ended
	status, body = b.post("/web/do", form)
	require.Equal(t, http.StatusOK, status, body)
	require.Equal(t, slurm.Cancelled, s.jobs.KnownJobs["6"].State, "a job that ended meanwhile takes nothing from the approval")
}
