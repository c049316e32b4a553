package bot_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/bot"
	"github.com/megatron-ops/megatron-ops/bot/answer"
	"github.com/megatron-ops/megatron-ops/bot/people"
	"github.com/megatron-ops/megatron-ops/bot/slacktest"
	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/ops/jobcontrol"
	"github.com/megatron-ops/megatron-ops/internal/view"
	"github.com/megatron-ops/megatron-ops/slurm"
)

// postedEarlier plays until a request of U7, who is linked to ada, waits as an earlier version has
// stored it: as the held call OLD, in version 0.2.0 without what came later.
func postedEarlier(t *testing.T, first bool, change ...func(*bot.Config)) (s *stage, q *slacktest.Message) {
	t.Helper()
	s = approving(t, change...)
	docs := s.store.Slack()
	require.NoError(t, docs.Put(t.Context(), "link", "T1/U7", people.Link{User: "ada", How: "code"}, time.Time{}))
	s.Slash("submit --yes "+spec, as("U7"))
	q = s.said("Approval needed")
	s.became(q, `"user_id":"U7"`)
	settled(t, s.store)
	_, id := buttonOf(t, q, "Approve")
	s.stop()
	var waits struct {
		Request ops.Approval
		Cards   []map[string]any
	}
	ok, err := docs.Get(t.Context(), "waiting", id, time.Now(), &waits)
	require.NoError(t, err)
	require.True(t, ok)
	held := map[string]any{}
	require.NoError(t, json.Unmarshal(waits.Request.Own, &held))
	held["approve"], held["digest"], held["until"] = true, waits.Request.Digest, waits.Request.Until
	if first {
		held["asked"], held["message"] = waits.Cards[0]["doc"], waits.Cards[0]["key"]
	} else {
		held["as"], held["cards"] = "ada", waits.Cards
	}
	key, _, _ := strings.Cut(id, ".")
	require.NoError(t, errors.Join(docs.Delete(t.Context(), "waiting", id), docs.Delete(t.Context(), "approval", key)))
	require.NoError(t, docs.Put(t.Context(), "held", "OLD", held, waits.Request.Until))
	if !first {
		require.NoError(t, docs.Put(t.Context(), "waiting", "OLD", map[string]any{"held": held, "until": waits.Request.Until}, time.Time{}))
	}
	return s, q
}

func (s *stage) again(change ...func(*bot.Config)) {
	s.begin(change...)
	s.Target(slacktest.ServeInMemory(s.t, s.bot.Handler()))
}

// A request that an earlier version has settled stays settled, however late somebody presses a
// button in a window that was not drawn again. A press that it was killed over is carried out.
func TestARequestThatAnEarlierVersionSettledStaysSettled(t *testing.T) {
	t.Parallel()
	for _, first := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			s, q := postedEarlier(t, first)
			_, err := s.store.Slack().Claim(t.Context(), "claim", "OLD", "an earlier press", time.Now().Add(time.Hour))
			require.NoError(t, err)
			s.again()
			s.Press(q, answer.ActYes, "OLD", "U5")
			s.said("This request was decided already")
			settled(t, s.store)
			require.Zero(t, s.yard.count())
		})
	}
}

// A request of the version before acts as nobody else than it showed, and is decided by nobody who
// could be its requester.
func TestARequestOfTheVersionBeforeIsWorthWhatItShowed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, q := postedEarlier(t, false)
		require.NoError(t, s.store.Slack().Put(t.Context(), "link", "T1/U7", people.Link{User: "eve", How: "code"}, time.Time{}))
		s.again(func(c *bot.Config) { c.Policy.Links = map[string]string{"U5": "grace", "U6": "ada"} })
		s.Press(q, answer.ActYes, "OLD", "U6")
		s.said("somebody else than the requester")
		s.Press(q, answer.ActYes, "OLD", "U5")
		require.NotContains(t, s.became(q, "Approved, but it failed: submit", "acts as ada, and its requester is linked to eve now"), `"type":"button"`)
		require.Zero(t, s.yard.count())
	})
}

// A request of the version before is decided on the page, where the whole of it is shown, and expires
// when it said.
func TestARequestOfTheVersionBeforeIsOneOfAllRequests(t *testing.T) {
	t.Parallel()
	for _, decided := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			s, q := postedEarlier(t, false, briefly)
			s.again()
			if !decided {
				require.NotContains(t, s.became(q, "Expired: submit"), `"type":"button"`)
				require.Equal(t, "DU7", s.said("Nobody decided your request in time").Channel)
				return
			}
			var waiting []ops.Approval
			s.Wait("the request", func(slacktest.State) bool {
				waiting, _ = s.service.Approvals(t.Context())
				return len(waiting) == 1
			})
			require.Contains(t, slacktest.JSON(waiting[0].Shown), "SHA-256")
			_, err := s.service.Decide(t.Context(), waiting[0].ID, ops.Caller{Surface: "web", ID: "grace", User: "grace", Operator: true}, "grace", true, "")
			require.NoError(t, err)
			s.became(q, "Approved: submit", "4711")
			require.Equal(t, 1, posted(s.State(), "Approved: submit"))
		})
	}
}

// An approved call that gets no answer ends as one whose outcome is not known, is not tried again and
// again, and holds up no other request.
func TestAnApprovedCallThatHangsIsMadeOnce(t *testing.T) {
	t.Parallel()
	for _, page := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			s := approving(t, func(c *bot.Config) {
				c.Policy.Approve = func(*ops.Call, string, any) lang.Text { return lang.Same("more than 8 GPUs") }
			})
			s.yard.put(slurm.Job{ID: "4711", Name: "gpt", User: "ada", State: slurm.Pending, NumNodes: 2, GPUs: 16})
			s.Slash("update 4711 --cluster yard --time 1:00:00")
			q := s.said("Approval needed")
			s.became(q, `"user_id":"U1"`)
			release := s.yard.hold("update")
			defer release()
			yes, id := buttonOf(t, q, "Approve")
			if page {
				_, err := s.service.Decide(t.Context(), id, ops.Caller{Surface: "web", ID: "grace", User: "grace", Operator: true}, "grace", true, "")
				require.NoError(t, err)
			} else {
				s.Press(q, yes, id, "U5")
			}
			s.Wait("the update", func(slacktest.State) bool { return s.yard.updates.Load() == 1 })
			asked := time.Now()
			_, err := s.service.Approved(t.Context(), ops.Approval{Who: agent, Op: "cancel", Why: "a limit", Shown: []view.Section{{Text: "cancel 1"}}}, &jobcontrol.CancelIn{Job: "1"})
			require.NoError(t, err)
			s.said("An agent asks for your approval")
			require.Less(t, time.Since(asked), time.Minute)
			time.Sleep(25 * time.Minute)
			s.became(q, "Approved, but it is not known yet whether it ran: update", "no answer within 10 min", "megatron status 4711 --cluster yard")
			require.EqualValues(t, 1, s.yard.updates.Load())
		})
	}
}

// A server that is killed before it has consumed an approval leaves none: the next request of the
// same call is asked about.
func TestAnApprovalThatIsCarriedOutIsConsumed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := approving(t)
		s.Slash("submit --yes " + spec)
		q := s.said("Approval needed")
		s.became(q, `"user_id":"U1"`)
		_, id := buttonOf(t, q, "Approve")
		s.stop()
		r, err := s.service.Decide(t.Context(), id, ops.Caller{Surface: ops.Slack, ID: "T1/U5", User: "grace", Operator: true}, "T1/U5", true, "")
		require.NoError(t, err)
		var waits map[string]any
		docs := s.store.Slack()
		ok, err := docs.Get(t.Context(), "waiting", id, time.Now(), &waits)
		require.NoError(t, err)
		require.True(t, ok)
		waits["request"] = r
		require.NoError(t, docs.Put(t.Context(), "waiting", id, waits, time.Now().Add(time.Hour)))
		s.again()
		s.became(q, "Approved: submit", "4711")
		s.Slash("submit --yes " + spec)
		s.Wait("another request", func(st slacktest.State) bool { return posted(st, "Approval needed") == 1 })
	})
}

// A request of an earlier version whose command has changed since is told in the log once, and not at
// each look at the store.
func TestARequestThatCannotBeAdoptedIsToldOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, _ := postedEarlier(t, false)
		docs, held := s.store.Slack(), map[string]any{}
		ok, err := docs.Get(t.Context(), "held", "OLD", time.Now(), &held)
		require.NoError(t, err)
		require.True(t, ok)
		held["call"].(map[string]any)["words"] = []string{"--no-such-flag"}
		require.NoError(t, docs.Put(t.Context(), "held", "OLD", held, time.Now().Add(time.Hour)))
		var log bytes.Buffer
		s.again(func(c *bot.Config) { c.Log = slog.New(slog.NewTextHandler(&log, nil)) })
		time.Sleep(time.Minute)
		s.stop()
		require.Equal(t, 1, strings.Count(log.String(), "request of an earlier version"))
		require.Less(t, strings.Count(log.String(), "no-such-flag"), 3, "one line names it")
	})
}
