package bot_test

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/bot"
	"github.com/megatron-ops/megatron-ops/bot/install"
	"github.com/megatron-ops/megatron-ops/bot/slacktest"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/store"
	"github.com/megatron-ops/megatron-ops/knowledge"
	"github.com/megatron-ops/megatron-ops/slurm"
)

const secret = "8f742231b10e8888abcd99yyyzzz85a5"

// A stage is the bot with a Slack of its own.
type stage struct {
	*slacktest.Slack
	t     testing.TB
	yard  *yard
	store *store.Store
	bot   *bot.Bot
	url   string
	// service is the service whose operations the bot calls.
	service *ops.Service
	// stop ends the bot, and begin starts it again with a changed configuration.
	stop  func()
	begin func(change ...func(*bot.Config))
}

// play starts a Slack and the bot. The person U1 is the cluster user ada.
func play(t testing.TB, change ...func(*bot.Config)) *stage {
	t.Helper()
	s := &stage{t: t, yard: &yard{jobs: map[slurm.JobID]slurm.Job{}}}
	st, err := store.Open(context.Background(), filepath.Join(t.TempDir(), "state.db"))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, st.Close()) })
	s.store = st
	cfg := bot.Config{
		SigningSecret: secret, BotToken: "xoxb-test", Store: st.Slack(),
		Service: &ops.Service{
			As:       func(cl ops.Cluster, _ string) (ops.Cluster, error) { return cl, nil },
			Clusters: map[string]ops.Cluster{"yard": s.yard}, Default: "yard", Now: time.Now,
			Store:    func() (*store.Store, error) { return st, nil },
			Answerer: sync.OnceValue(func() *knowledge.Answerer { return knowledge.New(knowledge.Options{}) }),
		},
		Policy: bot.Policy{Links: map[string]string{"U1": "ada", "U5": "grace", "U6": "olga"}, PerMinute: 1000},
		Log:    slog.New(slog.NewTextHandler(t.Output(), nil)),
	}
	for _, f := range change {
		f(&cfg)
	}
	// Slack gives the token the scopes of the manifest, and no others.
	slack := slacktest.Config{SigningSecret: secret, BotScopes: strings.Join(install.Scopes(cfg.Policy), ",")}
	if cfg.AppToken != "" { // Socket Mode needs a network
		s.Slack = slacktest.Start(t, slack)
	} else {
		s.Slack = slacktest.StartInMemory(t, slack)
	}
	cfg.APIURL = cmp.Or(cfg.APIURL, s.APIURL)
	s.begin = func(change ...func(*bot.Config)) {
		for _, f := range change {
			f(&cfg)
		}
		s.bot, s.stop = started(t, cfg)
	}
	s.begin()
	s.service = cfg.Service
	s.url = slacktest.ServeInMemory(t, s.bot.Handler())
	s.Target(s.url)
	return s
}

// running runs a bot and its watchers until the test ends.
func running(t testing.TB, cfg bot.Config) *bot.Bot {
	t.Helper()
	b, _ := started(t, cfg)
	return b
}

// started runs a bot and its watchers until stop is called or the test ends.
func started(t testing.TB, cfg bot.Config) (b *bot.Bot, stop func()) {
	t.Helper()
	b, err := bot.New(cfg)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	for _, w := range cfg.Watchers {
		all.Go(func() { w.Run(ctx) })
	}
	all.Go(func() { _ = b.Run(ctx) })
	stop = func() { cancel(); all.Wait() }
	t.Cleanup(stop)
	return b, stop
}

// text returns all texts of a message.
func text(msg *slacktest.Message) string {
	var b strings.Builder
	b.WriteString(msg.Text + "\n")
	var walk func(any)
	walk = func(v any) {
		switch v := v.(type) {
		case []any:
			for _, x := range v {
				walk(x)
			}
		case map[string]any:
			for k, x := range v {
				if s, ok := x.(string); ok && (k == "text" || k == "url") {
					b.WriteString(s + "\n")
					continue
				}
				walk(x)
			}
		}
	}
	walk(msg.Blocks)
	return b.String()
}

// said waits for a message that contains all of the words, and returns it.
func (s *stage) said(words ...string) *slacktest.Message {
	s.t.Helper()
	var found *slacktest.Message
	s.Wait(fmt.Sprintf("a message with %q", words), func(st slacktest.State) bool {
		for _, m := range st.Messages {
			all := true
			for _, w := range words {
				all = all && strings.Contains(text(m), w)
			}
			if all {
				found = m
				return true
			}
		}
		return false
	})
	return found
}

// at returns the text of a message as it is now.
func (s *stage) at(m *slacktest.Message) string {
	for _, now := range s.Slack.State().Messages {
		if now.Channel == m.Channel && now.TS == m.TS {
			return text(now)
		}
	}
	return ""
}

// settled waits until the bot has handled all requests and sent all messages.
func settled(t testing.TB, st *store.Store) {
	t.Helper()
	require.Eventually(t, func() bool {
		asked, err := st.Slack().Unfinished(t.Context(), 1)
		if err != nil || len(asked) > 0 {
			return false
		}
		due, err := st.Slack().Due(t.Context(), time.Now().Add(time.Hour), 1)
		return err == nil && len(due) == 0
	}, time.Minute, 20*time.Millisecond, "something is still asked or owed")
}

// buttonOf returns the action id and value of the message's button with that label.
func buttonOf(t testing.TB, msg *slacktest.Message, label string) (action, value string) {
	t.Helper()
	if c, ok := slacktest.Find(msg.Blocks, label); ok {
		return c.Action, c.Value
	}
	t.Fatalf("no button %q in %s", label, text(msg))
	return "", ""
}

const spec = "```name: gpt\nnodes: 2\ngpu: h100\ntime: \"1:00:00\"\nworktree: /lustre/m\nargs: [--num-layers, \"24\", --hidden-size, \"1024\", --num-attention-heads, \"16\", --seq-length, \"2048\", --max-position-embeddings, \"2048\", --micro-batch-size, \"2\", --global-batch-size, \"64\", --train-iters, \"100\", --lr, \"1e-4\", --tensor-model-parallel-size, \"4\"]\n```"

func TestTheBotSpeaksTheLanguageOfWhoAsks(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := play(t)
		s.Slash("帮助")
		s.said("现在可以做什么", "启动训练")
		s.yard.put(slurm.Job{ID: "4000", Name: "run", User: "ada", State: slurm.Running})
		s.Slash("状态4000")
		s.said("run · 运行中 · 4000")
		s.Slash("显存 不够 怎么办？") // begins with a command's word, and is a question
		s.said("显存", "来源")
	})
}

func TestSubmitAsksThenSubmitsOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := play(t)
		require.Equal(t, http.StatusOK, s.Slash("submit "+spec).Status)
		q := s.said("Please confirm", "2 nodes")
		require.Zero(t, s.yard.count())
		action, value := buttonOf(t, q, "Yes, do it")
		for range 3 { // an eager finger
			s.Press(q, action, value, "U1")
		}
		s.said("gpt submitted to yard as job 4711")
		settled(t, s.store)
		require.Equal(t, 1, s.yard.count())
		require.Contains(t, s.at(q), "gpt submitted to yard as job 4711", "the answer takes the question's place; the later presses do not deny it")
		require.Zero(t, posted(s.State(), "Confirmed"))
	})
}

// What is to be read by everybody does not take the place of a question that one person sees.
func TestASharedAnswerLeavesTheQuestion(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := play(t)
		s.yard.put(slurm.Job{ID: "4000", Name: "run", User: "ada", State: slurm.Running})
		s.Slash("cancel 4000 --share")
		q := s.said("Please confirm")
		require.Equal(t, "U1", q.Only)
		s.PressLabel(q, "Yes, do it", "U1")
		require.Empty(t, s.said("cancelled").Only)
		settled(t, s.store)
		require.Contains(t, s.at(q), "Confirmed")
	})
}

func TestSomebodyElseCannotSayYes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := play(t)
		s.Slash("submit " + spec)
		q := s.said("Please confirm")
		action, value := buttonOf(t, q, "Yes, do it")
		s.Press(q, action, value, "U2")
		s.said("Only the person who asked")
		require.Zero(t, s.yard.count())
	})
}

func TestUnlinkedPeopleAskAndAreShownNoJobs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := play(t, func(c *bot.Config) { c.Policy.ReadIn = map[string]string{"C7": "everyone"} })
		s.yard.put(slurm.Job{ID: "4000", Name: "run", User: "ada", State: slurm.Running})
		for i, words := range []string{"status 4000", "logs 4000", "list --user all", "subscribe all", "submit --yes " + spec} {
			s.Slash(words, map[string]any{"user_id": "U7"})
			s.Wait(words, func(st slacktest.State) bool { return posted(st, "not linked to a cluster user") == i+1 })
		}
		require.Zero(t, s.yard.count())
		require.Zero(t, posted(s.State(), "run · running · 4000"))
		s.Slash("ask What should CUDA_DEVICE_MAX_CONNECTIONS be on H100 with TP=4?", map[string]any{"user_id": "U7"})
		s.said("CUDA_DEVICE_MAX_CONNECTIONS")
		s.Slash("status 4000", map[string]any{"user_id": "U7", "channel_id": "C7"})
		s.said("run · running · 4000") // where the operator has opened it
		s.Slash("cancel 4000 --yes", map[string]any{"user_id": "U7", "channel_id": "C7"})
		s.Wait("a refusal", func(st slacktest.State) bool { return posted(st, "not linked to a cluster user") == 6 })
	})
}

func TestStatusOfAnUnknownJobSaysSo(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := play(t)
		s.Slash("status 99")
		s.said("Not found", "job 99")
		s.Slash("98") // an id alone asks for its state
		s.said("Not found", "job 98")
	})
}

func TestATypoIsAnsweredWithWhatWasMeant(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := play(t)
		s.Slash("statsu 4711")
		msg := s.said("I do not know the command", "Did you mean")
		_, value := buttonOf(t, msg, "State 4711")
		require.Equal(t, "status 4711", value, "with what was typed after it")

		for asked, label := range map[string]string{"submit --nodez 2": "Options of submit", "submit --nodez 2 --lang zh": "submit 的选项"} {
			s.Slash(asked)
			_, value = buttonOf(t, s.said("--nodez", "--nodes", label), label)
			require.Equal(t, "help submit", value)
		}
	})
}

func TestAskAnswersTheConstantFirst(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := play(t)
		s.Slash("ask What should CUDA_DEVICE_MAX_CONNECTIONS be on H100 with TP=4?")
		s.said("CUDA_DEVICE_MAX_CONNECTIONS")
	})
}

func TestARepeatedDeliveryHasOneEffect(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := play(t)
		d := slacktest.Command("help")
		d.Times = 4
		require.Equal(t, http.StatusOK, s.Deliver(d).Status)
		s.Deliver(slacktest.Delivery{Kind: "events_api", Times: 3, Payload: map[string]any{
			"team_id": "T1", "event": map[string]any{"type": "app_mention", "user": "U1", "channel": "C1", "ts": "1700000000.000100", "text": "<@UBOT> status 99"},
		}})
		s.said("Not found", "job 99")
		s.said("What you can do now")
		settled(t, s.store)
		require.Len(t, s.State().Messages, 2)
	})
}

// answerOf returns the JSON body of a receipt.
func answerOf(t testing.TB, r slacktest.Receipt) (a map[string]any) {
	t.Helper()
	require.Equal(t, http.StatusOK, r.Status)
	require.NoError(t, json.Unmarshal([]byte(r.Body), &a), r.Body)
	return a
}
