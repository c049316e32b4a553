package bot_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/bot"
	"github.com/megatron-ops/megatron-ops/bot/slacktest"
	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/slurm"
	"github.com/megatron-ops/megatron-ops/slurm/job"
)

// approving is a stage where every submission needs an operator, U5 or U6.
func approving(t *testing.T, change ...func(*bot.Config)) *stage {
	return play(t, append([]func(*bot.Config){func(c *bot.Config) {
		c.Policy.Operators = []string{"U5", "U6"}
		c.Policy.Approve = func(_ *ops.Call, op string, _ any) (why lang.Text) {
			if op == "submit" {
				why = lang.Same("more than 8 GPUs")
			}
			return why
		}
	}}, change...)...)
}

// The small specification in the message asks for one node; the flags beside it ask for 4 × 8
// GPUs, seven days and a thousand tasks. The approval shows what counts.
func TestTheApproverSeesWhatWouldBeSubmitted(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := approving(t)
		s.Slash("submit --yes --nodes 4 --gpus-per-node 8 --time 7-00:00:00 --array 0-999 --account llm --env NCCL_DEBUG=INFO " + spec)
		s.said("This needs an operator's approval", `submit "gpt": 4 nodes × 8 GPUs`, "more than 8 GPUs") // which of several it is
		q := s.said("Approval needed", "more than 8 GPUs")
		require.Contains(t, q.Text, `Approval needed: ada: submit "gpt": 4 nodes × 8 GPUs`, "a notification says who asks for what")
		shown := text(q)
		require.Contains(t, shown, "--bf16 (or --fp16) should be given")
		require.NotContains(t, shown, "--bf16: --bf16", "a warning that begins with its field does not name it twice")
		for _, part := range []string{
			`"gpt": 4 nodes × 8 GPUs × 7-00:00:00`, "array 0-999", "5376000 GPU hours", "llm", "NCCL_DEBUG=INFO",
			"--tensor-model-parallel-size 4", "SHA-256 of the script", "no run of this name has completed yet", "The request ends",
		} {
			require.Contains(t, shown, part)
		}
		action, value := buttonOf(t, q, "Approve")
		s.Press(q, action, value, "U5")
		st := s.Wait("the decision below the request", func(st slacktest.State) bool {
			for _, m := range st.Messages {
				if m.TS == q.TS && strings.Contains(text(m), "Decided at") {
					return true
				}
			}
			return false
		})
		for _, m := range st.Messages {
			if m.TS == q.TS {
				drawn := text(m) + slacktest.JSON(m.Blocks)
				for _, part := range []string{"Approved: submit", "4711", "4 nodes × 8 GPUs", `"user_id":"U5"`, `"user_id":"U1"`} {
					require.Contains(t, drawn, part, "the message keeps what was asked, who decided and the job")
				}
				require.NotContains(t, drawn, `"type":"button"`)
			}
		}
		require.Equal(t, 1, s.yard.count())
	})
}

// A request that does not fit a message reaches the operators in the message's thread, and can
// be decided.
func TestALongRequestIsShownWhole(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := approving(t)
		var env strings.Builder
		for i := range 600 {
			fmt.Fprintf(&env, " --env V%d=%s", i, strings.Repeat("x", 60))
		}
		s.Slash("submit --yes" + env.String() + " " + spec)
		q := s.said("Approval needed")
		s.Wait("the last of it", func(st slacktest.State) bool {
			return slices.ContainsFunc(st.Files, func(f *slacktest.Stored) bool {
				return f.Thread == q.TS && strings.Contains(string(f.Data), "V599=xxx")
			})
		})
		action, value := buttonOf(t, q, "Approve")
		s.Press(q, action, value, "U5")
		s.said("Approved: submit")
		require.Equal(t, 1, s.yard.count())
	})
}

// Between the request and the approval the site's profile changes, and with it the script:
// nothing is submitted.
func TestOnlyTheApprovedScriptIsSubmitted(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var later atomic.Bool
		s := approving(t, func(c *bot.Config) {
			c.Service.Sites = func(string) (site job.Site) {
				if later.Load() {
					site.Path = []string{"/tmp/attack/bin"}
				}
				return site
			}
		})
		s.Slash("submit --yes " + spec)
		q := s.said("Approval needed")
		later.Store(true)
		action, value := buttonOf(t, q, "Approve")
		s.Press(q, action, value, "U5")
		s.said("the script is not the one that was agreed to")
		require.Zero(t, s.yard.count())
	})
}

// The operators read why a call was held back, even if the limit allows it a moment later.
func TestTheReasonIsTheOneThatHeldTheCall(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var asked atomic.Int32
		s := approving(t, func(c *bot.Config) {
			c.Policy.Approve = func(*ops.Call, string, any) (why lang.Text) {
				if asked.Add(1) == 1 {
					why = lang.Same("more than 8 GPUs")
				}
				return why
			}
		})
		s.Slash("submit --yes " + spec)
		s.said("Approval needed", "more than 8 GPUs")
	})
}

// A job that grows while the request to change it waits is left as it is.
func TestAnApprovedChangeIsNoLargerThanShown(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := approving(t, func(c *bot.Config) {
			c.Policy.Approve = func(*ops.Call, string, any) lang.Text { return lang.Same("more than 8 GPUs") }
		})
		j := slurm.Job{ID: "4711", Name: "gpt", User: "ada", State: slurm.Pending, NumNodes: 2, GPUs: 16}
		approve := func(limit string, gpus int) *slacktest.Message {
			s.yard.put(j)
			s.Slash("update 4711 --cluster yard --time " + limit)
			q := s.said("Approval needed", "16 GPUs at once")
			grown := j
			grown.GPUs = gpus
			s.yard.put(grown)
			s.PressLabel(q, "Approve", "U5")
			return q
		}
		s.became(approve("1:00:00", 64), "Approved, but it failed: update", "this can use more now than the request showed: 64 GPUs at once")
		now, err := s.yard.Job(t.Context(), "4711")
		require.NoError(t, err)
		require.Nil(t, now.TimeLimitS, "nothing was done")
		approve("2:00:00", 8)
		s.said("changed: time limit 02:00:00")
	})
}

func TestADeclineTakesAReasonAndARequestEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		written := make(chan ops.AuditEntry, 20)
		s := approving(t, func(c *bot.Config) {
			c.Service.ApprovalLife = 48 * time.Hour
			c.Service.Audit = func(_ context.Context, e ops.AuditEntry) { written <- e }
		})
		s.Slash("submit --yes " + spec)
		s.said("I have asked the operators", "Without one, the request ends in 2 d")
		q := s.said("Approval needed", time.Now().UTC().Add(48*time.Hour).Format("2006-01-02"))
		action, value := buttonOf(t, q, "Decline")
		s.Decline(q, action, value, "U6", "wait for the maintenance")
		told := s.said("An operator has declined your request", `"gpt": 2 nodes`, "wait for the maintenance")
		require.Equal(t, "DU1", told.Channel)
		s.said("Declined: submit", "wait for the maintenance")
		require.Zero(t, s.yard.count())
		for e := range written { // the trail holds who declined
			if e.Op == "decline" {
				require.Equal(t, "T1/U6", e.Who.ID)
				require.Contains(t, fmt.Sprint(e.In), "wait for the maintenance")
				break
			}
		}
		yes, _ := buttonOf(t, q, "Approve")
		s.Press(q, yes, value, "U6") // nor can who decided take it back, and is told so
		s.said("This request was decided already, or it has expired")
		require.Zero(t, s.yard.count())
		require.Contains(t, s.at(q), "Declined: submit", "a late press does not wipe the decision off the channel")
	})
}

// An operator sees waiting requests on the home tab until they are decided; others do not see
// them.
func TestRequestsThatWaitStandAtAnOperatorsHome(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := approving(t)
		n := 0
		home := func(user string, has bool) {
			t.Helper()
			n++
			s.Event(map[string]any{"type": "app_home_opened", "user": user, "channel": "D" + user, "tab": "home", "event_ts": fmt.Sprintf("%d.1", n)})
			s.Wait("home of "+user, func(st slacktest.State) bool {
				return st.Homes[user] != nil && strings.Contains(slacktest.JSON(st.Homes[user]), "ada asks for `submit`, until ") == has
			})
		}
		s.Slash("submit --yes " + spec)
		q := s.said("Approval needed")
		home("U1", false)
		home("U5", true)
		action, value := buttonOf(t, q, "Approve")
		s.Press(q, action, value, "U5")
		s.said("Approved: submit")
		home("U5", false)
	})
}

// A person's request is one of those that operators see and decide on the page, too: it is carried
// out once, whoever else presses a button, and also by a server that starts later.
func TestAPersonsRequestIsDecidedOnThePage(t *testing.T) {
	for name, off := range map[string]bool{"while it runs": false, "while it is off": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := approving(t)
				page := ops.Caller{Surface: "web", ID: "grace", User: "grace", Operator: true}
				decide := func(yes bool, reason string) *slacktest.Message {
					t.Helper()
					s.Slash("submit --yes " + spec)
					q := s.said("Approval needed")
					s.became(q, `"user_id":"U1"`)
					waiting, err := s.service.Approvals(t.Context())
					require.NoError(t, err)
					require.Len(t, waiting, 1)
					_, err = s.service.Decide(t.Context(), waiting[0].ID, ops.Caller{Surface: "web", ID: "ada", User: "ada", Operator: true}, "ada", true, "")
					require.ErrorContains(t, err, "somebody else than the requester")
					if off {
						s.stop()
					}
					_, err = s.service.Decide(t.Context(), waiting[0].ID, page, "grace", yes, reason)
					require.NoError(t, err)
					if off {
						s.begin()
						s.Target(slacktest.ServeInMemory(t, s.bot.Handler()))
					}
					return q
				}
				q := decide(false, "wait")
				drawn := s.became(q, "Declined: submit", "wait", "grace")
				require.NotContains(t, drawn, `"type":"button"`)
				require.Equal(t, "DU1", s.said("An operator has declined your request", "wait").Channel)

				q = decide(true, "")
				yes, value := buttonOf(t, q, "Approve")
				s.became(q, "Approved: submit", "4711", "grace")
				s.Press(q, yes, value, "U6")
				s.said("This request was decided already")
				settled(t, s.store)
				require.Equal(t, 1, s.yard.count())
			})
		})
	}
}

// Whoever asks for more by the same call asks once: the request that still waits is withdrawn.
func TestALargerRequestReplacesTheOneThatWaits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := approving(t, func(c *bot.Config) {
			c.Policy.Approve = func(*ops.Call, string, any) lang.Text { return lang.Same("more than 8 GPUs") }
		})
		j := slurm.Job{ID: "4711", Name: "gpt", User: "ada", State: slurm.Pending, NumNodes: 2, GPUs: 16}
		s.yard.put(j)
		s.Slash("update 4711 --cluster yard --time 1:00:00")
		smaller := s.said("Approval needed", "16 GPUs at once")
		j.GPUs = 64
		s.yard.put(j)
		s.Slash("update 4711 --cluster yard --time 1:00:00")
		larger := s.said("Approval needed", "64 GPUs at once")
		require.NotContains(t, s.became(smaller, "Replaced: the same call asks for more now: update", "16 GPUs at once"), `"type":"button"`)
		s.PressLabel(larger, "Approve", "U5")
		s.said("changed: time limit 01:00:00")
	})
}

// A server that is killed while it carries out an approved request leaves it to the next one, which
// does it once.
func TestAnApprovalIsCarriedOutAfterAServerWasKilled(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := approving(t)
		s.Slash("submit --yes " + spec)
		q := s.said("Approval needed")
		s.became(q, `"user_id":"U1"`)
		yes, id := buttonOf(t, q, "Approve")
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
		require.NoError(t, s.service.Consume(t.Context(), r))
		s.begin()
		s.Target(slacktest.ServeInMemory(t, s.bot.Handler()))
		s.Press(q, yes, id, "U5") // which Slack delivers again
		s.became(q, "Approved: submit", "4711", `"user_id":"U5"`)
		s.Press(q, yes, id, "U6")
		s.said("This request was decided already")
		settled(t, s.store)
		require.Equal(t, 1, s.yard.count())
	})
}
