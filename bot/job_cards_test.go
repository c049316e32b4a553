package bot_test

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/slack-go/slack"
	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/bot"
	"github.com/megatron-ops/megatron-ops/bot/card"
	"github.com/megatron-ops/megatron-ops/bot/slacktest"
	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/ops/joblogs"
	"github.com/megatron-ops/megatron-ops/internal/ops/launch"
	"github.com/megatron-ops/megatron-ops/internal/view"
	"github.com/megatron-ops/megatron-ops/slurm"
	"github.com/megatron-ops/megatron-ops/slurm/metrics"
)

// cards returns the messages that are a job's card: those in the channel itself, not in a
// thread.
func cards(st slacktest.State, id string) (list []*slacktest.Message) {
	for _, m := range st.Messages {
		if m.Only == "" && m.Thread == "" && strings.Contains(m.Text, id) {
			list = append(list, m)
		}
	}
	return list
}

// idOf returns the job's id in a card's headline: "🟡 gpt (4711): waiting".
func idOf(headline string) string {
	_, rest, _ := strings.Cut(headline, "(")
	id, _, _ := strings.Cut(rest, ")")
	return id
}

// submitted submits the job of the specification and waits for its card.
func submitted(t *testing.T, s *stage) *slacktest.Message {
	t.Helper()
	s.Slash("submit --yes " + spec)
	var c *slacktest.Message
	s.Wait("the job's card", func(st slacktest.State) bool {
		if list := cards(st, "4711"); len(list) == 1 {
			c = list[0]
			return true
		}
		return false
	})
	return c
}

// A card links to the job's page where pages are served.
func TestACardLeadsToTheJobsPage(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		require.NotContains(t, slacktest.JSON(submitted(t, play(t))), "/web/jobs/")
		c := submitted(t, play(t, func(c *bot.Config) { c.Service.PageURL = "https://ops.example.org" }))
		require.Contains(t, slacktest.JSON(c), "https://ops.example.org/web/jobs/yard/4711|page")
	})
}

func TestAJobHasOneCardThatIsEditedInPlace(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := play(t)
		c := submitted(t, s)
		require.Contains(t, text(c), "waiting")
		s.Wait("the script in the thread", func(st slacktest.State) bool {
			return len(st.Files) == 1 && st.Files[0].Done && st.Files[0].Thread == c.TS && strings.Contains(string(st.Files[0].Data), "#SBATCH")
		})

		loss, speed, limit := 2.345, 412.5, int64(3600)
		job := slurm.Job{
			ID: "4711", Cluster: "yard", Name: "gpt", User: "ada", Partition: "gpu", State: slurm.Running,
			Nodes: []string{"n1", "n2"}, GPUs: 16, ElapsedS: 600, TimeLimitS: &limit,
		}
		for i := range 20 { // numbers come often
			require.NoError(t, s.bot.Tell(t.Context(), card.News{
				Job: job, Iteration: 100 + i, Iterations: 1000, Loss: (*card.Number)(&loss), TFLOPs: &speed, ETA: time.Hour, Checkpoint: 100,
			}))
		}
		st := s.Wait("the running card", func(st slacktest.State) bool {
			list := cards(st, "4711")
			return len(list) == 1 && strings.Contains(text(list[0]), "running")
		})
		c = cards(st, "4711")[0]
		require.LessOrEqual(t, c.Edits, 2, "edits that bring numbers only are collapsed")
		require.Contains(t, text(c), "412 TFLOP/s/GPU")
		require.Contains(t, text(c), " of 1,000 (1")
		buttonOf(t, c, "Cancel")
		buttonOf(t, c, "Diagnose")

		exit := "1:0"
		job.State, job.ExitCode = slurm.Failed, &exit
		require.NoError(t, s.bot.Tell(t.Context(), card.News{
			Job: job, Class: "cuda_oom", Exclude: []string{"n2"},
			Cause: &view.Doc{Title: "Rank 9 on n2 ran out of GPU memory", Tone: view.Bad, Sections: []view.Section{
				{Text: "torch.OutOfMemoryError in the backward pass."},
				{Heading: "Evidence", Code: strings.Repeat("OutOfMemoryError: tried to allocate\n", 200), Lang: "log", Fold: true},
			}},
		}))
		st = s.Wait("the failed card and its thread", func(st slacktest.State) bool {
			list := cards(st, "4711")
			return len(list) == 1 && strings.Contains(text(list[0]), "failed") &&
				slices.ContainsFunc(st.Messages, func(m *slacktest.Message) bool {
					return m.Thread == list[0].TS && strings.Contains(text(m), "backward pass")
				}) && len(st.Files) == 2 && st.Files[0].Done && st.Files[1].Done
		})
		c = cards(st, "4711")[0]
		require.Contains(t, text(c), "Rank 9 on n2 ran out of GPU memory")
		for _, f := range st.Files {
			require.Equal(t, c.TS, f.Thread, "scripts and evidence are files in the thread")
		}
		for _, m := range st.Messages {
			require.False(t, m.Broadcast, "a reply is never shown in the channel too")
		}
	})
}

// callsFor counts the mentions of a user in new messages.
func callsFor(st slacktest.State, user string) (n int) {
	for _, c := range st.Calls {
		if c.Method == "chat.postMessage" && strings.Contains(slacktest.JSON(c.Args["blocks"]), `"user_id":"`+user+`"`) {
			n++
		}
	}
	return n
}

func TestTheHomeTabShowsJobsAndSettings(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := play(t)
		s.yard.put(slurm.Job{ID: "4000", Name: "run", User: "ada", State: slurm.Running, Nodes: []string{"n1"}})
		s.Event(map[string]any{"type": "app_home_opened", "user": "U1", "channel": "D1", "tab": "home", "event_ts": "1.1"})
		st := s.Wait("the home tab", func(st slacktest.State) bool { return st.Homes["U1"] != nil })
		home := slacktest.JSON(st.Homes["U1"])
		require.Contains(t, home, "My jobs")
		require.Contains(t, home, "4000")
		s.Interact(map[string]any{
			"view": map[string]any{"id": "V1", "type": "home"}, "container": map[string]any{"type": "view"},
			"actions": []any{map[string]any{"action_id": "set_lang", "block_id": "b", "type": "static_select", "selected_option": map[string]any{"value": "zh"}}},
		})
		s.Wait("the home tab in Chinese", func(st slacktest.State) bool {
			return strings.Contains(slacktest.JSON(st.Homes["U1"]), "我的作业")
		})
	})
}

func TestOperatorsApproveAndRequestersDoNot(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := play(t, func(c *bot.Config) {
			c.Policy.Operators = []string{"S1"}
			c.Policy.Approve = func(_ *ops.Call, op string, _ any) (why lang.Text) {
				if op == "submit" {
					why = lang.Text{EN: "more than 8 GPUs", ZH: "超过 8 张 GPU"}
				}
				return why
			}
		})
		s.Members(map[string][]string{"S1": {"U5"}})
		s.Slash("submit --yes " + spec)
		q := s.said("Approval needed", "more than 8 GPUs")
		s.said("I have asked the operators")
		action, value := buttonOf(t, q, "Approve")
		s.Press(q, action, value, "U1")
		s.said("somebody else than the requester")
		s.Press(q, action, value, "U2")
		s.said("only operators may approve")
		require.Zero(t, s.yard.count())
		for range 2 {
			s.Press(q, action, value, "U5")
		}
		s.said("gpt submitted to yard as job 4711")
		require.Equal(t, 1, s.yard.count())
	})
}

func TestAFailedJobIsSubmittedAgainWithChanges(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := play(t)
		submitted(t, s)
		require.NoError(t, s.bot.Tell(t.Context(), card.News{
			Job:   slurm.Job{ID: "4711", Cluster: "yard", Name: "gpt", User: "ada", State: slurm.NodeFail},
			Class: "node_failure", Exclude: []string{"n2"}, Cause: &view.Doc{Title: "n2 does not answer"},
		}))
		c := s.said("n2 does not answer", "node failed")
		action, value := buttonOf(t, c, "Retry without the bad node")
		s.Press(c, action, value, "U2")
		s.said("job 4711 belongs to ada")
		s.Press(c, action, value, "U1")
		q := s.said("Please confirm", "#SBATCH --exclude=n2")
		yes, id := buttonOf(t, q, "Yes, do it")
		s.Press(q, yes, id, "U1")
		s.said("gpt submitted to yard as job 4712")

		action, value = buttonOf(t, c, "Change and resubmit")
		s.Press(c, action, value, "U1")
		st := s.Wait("the form", func(st slacktest.State) bool { return len(st.Views) == 1 })
		var form map[string]any
		for _, v := range st.Views {
			form = v
		}
		drawn := slacktest.JSON(form)
		require.Contains(t, drawn, `"initial_value":"/lustre/m"`)
		require.Contains(t, drawn, "--tensor-model-parallel-size 4")
		values := map[string]string{
			"name": "gpt", "worktree": "/lustre/m", "nodes": "2", "gpu": "h100", "time": "2:00:00",
			"args": "--num-layers 24 --hidden-size 1024 --num-attention-heads 16 --seq-length 2048 --max-position-embeddings 2048 --micro-batch-size 1 --global-batch-size 64 --train-iters 100 --lr 1e-4 --tensor-model-parallel-size 4",
		}
		a := answerOf(t, s.Interact(map[string]any{"type": "view_submission", "view": map[string]any{
			"id": form["id"], "callback_id": form["callback_id"], "private_metadata": form["private_metadata"], "state": map[string]any{"values": stateOf(values)},
		}}))
		require.Equal(t, "update", a["response_action"], "%v", a)
		shownView(s, form["id"], "Submit this?", "2 nodes × 8 GPUs × 02:00:00 = 32 GPU hours")
	})
}

func TestWhereOthersReadAlongAnswersStayPrivate(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := play(t)
		s.yard.put(jobNamed("4000", "run"))
		s.Deliver(slacktest.Delivery{Kind: "events_api", Payload: map[string]any{
			"team_id": "T1", "is_ext_shared_channel": true,
			"event": map[string]any{"type": "app_mention", "user": "U1", "channel": "C1", "ts": "1.000100", "text": "<@UBOT> status 4000 --share"},
		}})
		require.Equal(t, "U1", s.said("run · running · 4000").Only)
	})
}

func TestAnAlarmIsSaidOnceInTheThread(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := play(t)
		c := submitted(t, s)
		job := slurm.Job{ID: "4711", Cluster: "yard", Name: "gpt", User: "ada", State: slurm.Running, Nodes: []string{"n1", "n2"}}
		require.NoError(t, s.bot.Tell(t.Context(), card.News{Job: job}))
		alarm := joblogs.Alarm{
			ID: "straggler", Job: "4711", Node: "n2",
			What: lang.Text{EN: "Rank 9 is a straggler.", ZH: "rank 9 明显偏慢。"}, Fix: lang.Text{EN: "Look at <!channel> that GPU.", ZH: "检查该 GPU。"},
		}
		for range 3 {
			require.NoError(t, s.bot.Notify(t.Context(), alarm.Notice(job)))
		}
		about := func(st slacktest.State) (n int) {
			for _, m := range st.Messages {
				if strings.Contains(text(m), "Rank 9 is a straggler. Node: n2.") {
					require.Equal(t, c.TS, m.Thread)
					n++
				}
			}
			return n
		}
		s.Wait("the alarm", func(st slacktest.State) bool { return about(st) > 0 })
		require.NoError(t, s.bot.Notify(t.Context(), alarm.Notice(job)))
		s.Wait("still one", func(st slacktest.State) bool { return about(st) == 1 })
	})
}

func TestTheCardTellsWhoAskedAndWhoApproved(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := play(t, func(c *bot.Config) {
			c.Policy.Operators = []string{"U5"}
			c.Policy.Approve = func(_ *ops.Call, _ string, in any) (why lang.Text) {
				if submit, ok := in.(*launch.SubmitIn); ok && !submit.DryRun {
					why = lang.Text{EN: "partition gpu is for approved jobs", ZH: "分区 gpu 只接受已审批的作业"}
				}
				return why
			}
		})
		s.Slash("submit")
		form := openedForm(s, 1)
		a := sendForm(t, s, form, "submit", form["private_metadata"], goodForm)
		require.Equal(t, "update", a["response_action"], "%v", a)
		confirm := shownView(s, form["id"], "partition gpu is for approved jobs") // said before it goes
		sendForm(t, s, form, confirm["callback_id"], confirm["private_metadata"], nil)
		q := s.said("Approval needed", "partition gpu is for approved jobs")
		require.Zero(t, s.yard.count())
		action, value := buttonOf(t, q, "Approve")
		s.Press(q, action, value, "U5")
		var drawn string
		st := s.Wait("the card with the names", func(st slacktest.State) bool {
			for _, m := range cards(st, "gpt (4711): waiting") {
				drawn = slacktest.JSON(m.Blocks)
				return m.Edits > 0
			}
			return false
		})
		for _, part := range []string{"<@U1>", "approved by <@U5>", "gpu (yard)"} {
			require.Contains(t, drawn, part)
		}
		require.Zero(t, callsFor(st, "U1"), "an edit calls nobody")
		require.Equal(t, 1, s.yard.count())
	})
}

func TestSubscriptionsAreOfAJobAPersonOrAll(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := play(t)
		s.Slash("subscribe 5999 --cluster yard", map[string]any{"channel_id": "C6"})
		s.said("Not found", "5999")
		s.yard.put(slurm.Job{ID: "5000", Name: "run", User: "bob", State: slurm.Running, Nodes: []string{"n1"}})
		for channel, words := range map[string]string{"C6": "subscribe 5000 --cluster yard", "C7": "subscribe grace", "C8": "subscribe all"} {
			s.Slash(words, map[string]any{"channel_id": channel})
		}
		s.Wait("three subscriptions", func(st slacktest.State) bool { return posted(st, "Followed here") == 3 })
		for id, user := range map[slurm.JobID]string{"5000": "bob", "5001": "grace", "5002": "bob"} {
			require.NoError(t, s.bot.Tell(t.Context(), card.News{Job: slurm.Job{ID: id, Cluster: "yard", Name: "run", User: user, State: slurm.Running, Nodes: []string{"n1"}}}))
		}
		want := []string{"C6 5000", "C7 5001", "C8 5000", "C8 5001", "C8 5002"}
		where := func(st slacktest.State) (got []string) {
			for _, m := range cards(st, "run") {
				got = append(got, m.Channel+" "+idOf(m.Text))
			}
			slices.Sort(got)
			return got
		}
		s.Wait("a card in each place", func(st slacktest.State) bool { return slices.Equal(where(st), want) })
		s.Slash("unsubscribe all", map[string]any{"channel_id": "C8"})
		s.said("Not followed here any more")
		require.NoError(t, s.bot.Tell(t.Context(), card.News{Job: slurm.Job{ID: "5003", Cluster: "yard", Name: "run", User: "bob", State: slurm.Running}}))
		require.NoError(t, s.bot.Tell(t.Context(), card.News{Job: slurm.Job{ID: "5004", Cluster: "yard", Name: "run", User: "grace", State: slurm.Running}}))
		want = []string{"C6 5000", "C7 5001", "C7 5004", "C8 5000", "C8 5001", "C8 5002"}
		s.Wait("the next card", func(st slacktest.State) bool { return slices.Equal(where(st), want) })

		s.Slash("submit --yes " + spec)
		c := waitingCard(s, "4711", "waiting")
		action, value := buttonOf(t, c, "Mute")
		s.Press(c, action, value, "U1")
		s.said("Job 4711: you will not be notified about it")
		require.NoError(t, s.bot.Tell(t.Context(), card.News{Job: slurm.Job{ID: "4711", Cluster: "yard", Name: "gpt", User: "ada", State: slurm.Failed}}))
		s.Wait("the end", func(st slacktest.State) bool { return posted(st, "failed") >= 2 })
		require.Zero(t, callsFor(s.State(), "U1"), "who has muted a job is not called")
	})
}

// curve returns a loss curve with a value every ten iterations.
func curve(losses ...float64) (ps []metrics.Point) {
	for i, v := range losses {
		ps = append(ps, metrics.Point{N: 10 * (i + 1), V: v})
	}
	return ps
}

// A job that somebody requeues after its end goes on in its card: the card shows that it waits
// and runs, and its next end is reported in the thread like the first one.
func TestAJobThatIsRequeuedAfterItsEndGoesOnInItsCard(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := play(t, watched)
		c := submitted(t, s)
		exit := "1:0"
		is := s.jobIs
		now := func() *time.Time { return new(time.Now()) }
		ends := func(n int) {
			t.Helper()
			s.Wait("the end in the thread", func(st slacktest.State) bool {
				told := 0
				for _, m := range st.Messages {
					if m.Thread == c.TS && strings.Contains(text(m), "ended without saying why") {
						told++
					}
				}
				return told == n
			})
		}
		is(slurm.Running, func(j *slurm.Job) { j.StartedAt, j.Nodes = now(), []string{"n1"} })
		waitingCard(s, "4711", "running")
		is(slurm.Failed, func(j *slurm.Job) { j.EndedAt, j.ExitCode = now(), &exit })
		waitingCard(s, "4711", "failed")
		ends(1)

		time.Sleep(time.Minute)
		is(slurm.Pending, func(j *slurm.Job) { // as `scontrol requeue` leaves it, on a site without accounts
			j.SubmittedAt, j.StartedAt, j.EndedAt, j.ExitCode, j.Nodes, j.Reason = now(), nil, nil, nil, nil, "BeginTime"
		})
		require.NotContains(t, text(waitingCard(s, "4711", "waiting")), "failed")
		time.Sleep(time.Minute)
		is(slurm.Running, func(j *slurm.Job) { j.StartedAt, j.Nodes = now(), []string{"n2"} })
		waitingCard(s, "4711", "running on n2")
		is(slurm.Failed, func(j *slurm.Job) { j.EndedAt, j.ExitCode = now(), &exit })
		waitingCard(s, "4711", "failed")
		ends(2)
	})
}

// The owner of a job reads who cancelled it, where that was somebody else.
func TestACancelledJobSaysWhoCancelledIt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := play(t, watched, func(c *bot.Config) { c.Policy.Operators = []string{"U6"} })
		c := submitted(t, s)
		s.Slash("cancel 4711 --yes", map[string]any{"user_id": "U6"})
		s.Wait("who cancelled it, in the thread", func(st slacktest.State) bool {
			for _, m := range st.Messages {
				if m.Thread == c.TS && strings.Contains(text(m), "gpt (4711): cancelled by olga") {
					return strings.Contains(slacktest.JSON(m.Blocks), `"user_id":"U1"`)
				}
			}
			return false
		})
		waitingCard(s, "4711", "cancelled by <@U6>")
	})
}

// Whoever presses Cancel where somebody was faster, here or in a shell, is not named as the one who
// cancelled the job, and its owner is told of the end.
func TestWhoCancelsTooLateIsNotNamed(t *testing.T) {
	t.Parallel()
	for name, first := range map[string]func(*stage){
		"in a shell": func(s *stage) { require.NoError(t, s.yard.Cancel(t.Context(), "4711")) },
		"here":       func(s *stage) { s.Slash("cancel 4711 --yes", map[string]any{"user_id": "U5"}) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := play(t, watched, func(c *bot.Config) { c.Policy.Operators = []string{"U5", "U6"} })
				c := submitted(t, s)
				first(s)
				s.Wait("the end", func(slacktest.State) bool {
					j, err := s.yard.Job(t.Context(), "4711")
					return err == nil && j.State.Ended()
				})
				s.Slash("cancel 4711 --yes", map[string]any{"user_id": "U6"})
				s.said("4711 had ended already")
				k := waitingCard(s, "4711", "cancelled")
				settled(t, s.store)
				require.NotContains(t, s.at(k), "U6")
				for _, m := range s.State().Messages {
					if m.Thread == c.TS {
						require.NotContains(t, text(m), "olga")
					}
				}
				require.Equal(t, name == "here", strings.Contains(s.at(k), "cancelled by <@U5>"))
			})
		})
	}
}

// jobIs changes job 4711 as the cluster shows it.
func (s *stage) jobIs(state slurm.State, change func(*slurm.Job)) {
	s.t.Helper()
	j, err := s.yard.Job(s.t.Context(), "4711")
	require.NoError(s.t, err)
	j.State = state
	change(&j)
	s.yard.put(j)
}

// The card of a job that somebody has deleted is posted anew in its channel, once, with its thread.
func TestADeletedCardIsPostedAnewOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := play(t, watched)
		c := submitted(t, s)
		is := s.jobIs
		api := slack.New("xoxb-test", slack.OptionAPIURL(s.APIURL))
		now, exit := time.Now(), "1:0"
		_, _, err := api.DeleteMessage(c.Channel, c.TS)
		require.NoError(t, err)
		is(slurm.Running, func(j *slurm.Job) { j.StartedAt, j.Nodes = &now, []string{"n1"} })
		anew := waitingCard(s, "4711", "running on n1")
		require.Equal(t, c.Channel, anew.Channel)
		is(slurm.Failed, func(j *slurm.Job) { j.EndedAt, j.ExitCode = &now, &exit })
		require.Equal(t, anew.TS, waitingCard(s, "4711", "failed").TS)
		s.Wait("the end in its thread", func(st slacktest.State) bool {
			return slices.ContainsFunc(st.Messages, func(m *slacktest.Message) bool {
				return m.Thread == anew.TS && strings.Contains(text(m), "ended without saying why")
			})
		})

		_, _, err = api.DeleteMessage(anew.Channel, anew.TS)
		require.NoError(t, err)
		s.Slash("requeue 4711 --yes")
		is(slurm.Running, func(j *slurm.Job) { j.StartedAt, j.EndedAt, j.Restarts = &now, nil, 1 })
		time.Sleep(time.Minute)
		settled(t, s.store)
		for _, m := range s.State().Messages {
			require.False(t, m.Thread == "" && m.Channel == c.Channel && strings.Contains(text(m), "gpt (4711)"), "deleted twice, it stays away")
		}
	})
}
