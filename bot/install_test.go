package bot_test

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/bot"
	"github.com/megatron-ops/megatron-ops/bot/install"
	"github.com/megatron-ops/megatron-ops/bot/slacktest"
	"github.com/megatron-ops/megatron-ops/slurm"
)

func TestWorkspacesInstallTheAppByThemselves(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		key := bytes.Repeat([]byte{7}, 32)
		s := play(t, func(c *bot.Config) {
			c.BotToken = ""
			c.Policy.Links = map[string]string{"T-one/U1": "ada"}
			c.OAuth = &install.OAuth{ClientID: "1.2", ClientSecret: "s", RedirectURL: "http://127.0.0.1/slack/oauth", Key: key}
		})
		jar, err := cookiejar.New(nil)
		require.NoError(t, err)
		browser := &http.Client{Jar: jar, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
		get := func(c *http.Client, path string) (status int, location string) {
			res, err := c.Get(s.url + path)
			require.NoError(t, err)
			defer res.Body.Close()
			return res.StatusCode, res.Header.Get("Location")
		}
		status := func(c *http.Client, path string) int { code, _ := get(c, path); return code }
		state := func() string {
			code, location := get(browser, "/slack/install")
			require.Equal(t, http.StatusFound, code)
			to, err := url.Parse(location)
			require.NoError(t, err)
			require.Equal(t, "slack.com", to.Host)
			require.Equal(t, strings.Join(install.Scopes(bot.Policy{}), ","), to.Query().Get("scope"))
			return to.Query().Get("state")
		}
		st := state()
		stranger := &http.Client{}
		require.Equal(t, http.StatusBadRequest, status(stranger, "/slack/oauth?code=one&state="+st), "another browser may not finish it")
		require.Equal(t, http.StatusBadRequest, status(browser, "/slack/oauth?code=one&state=guess"))
		st = state()
		require.Equal(t, http.StatusOK, status(browser, "/slack/oauth?code=one&state="+st))
		require.Equal(t, http.StatusBadRequest, status(browser, "/slack/oauth?code=one&state="+st), "a state works once")
		st = state()
		require.Equal(t, http.StatusBadGateway, status(browser, "/slack/oauth?code=bad&state="+st))

		var kept struct{ Token []byte }
		_, err = s.store.Slack().Get(t.Context(), "install", "team/T-one", time.Now(), &kept)
		require.NoError(t, err)
		require.NotContains(t, string(kept.Token), "xoxb", "the token is encrypted")

		s.Event(map[string]any{"type": "app_mention", "user": "U1", "channel": "C1", "ts": "1.000100", "text": "<@UBOT> help"})
		s.Slash("submit --yes "+spec, map[string]any{"team_id": "T-one"})
		s.said("gpt submitted to yard as job 4711")
		s.said("waiting") // the card, posted with that workspace's token

		_, err = install.ParseKey("short")
		require.ErrorContains(t, err, "32 bytes")
	})
}

func TestPeopleOfOtherWorkspacesMayOnlyAsk(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := play(t)
		s.Event(map[string]any{"type": "app_mention", "user": "U1", "user_team": "T9", "channel": "C1", "ts": "1.000100", "text": "<@UBOT> list --all"})
		s.said("you come from another workspace")
		for i, row := range []struct{ words, says string }{
			{"help", "What you can do now"},
			{"whoami", "You here"},
			{"settings", "you come from another workspace"},
		} {
			ts := fmt.Sprintf("1.00030%d", i)
			s.Event(map[string]any{"type": "app_mention", "user": "U1", "user_team": "T9", "channel": "C1", "ts": ts, "text": "<@UBOT> " + row.words})
			require.Contains(t, text(s.answered(ts, row.words)), row.says, row.words)
		}
		s.Event(map[string]any{"type": "app_mention", "user": "U1", "user_team": "T9", "channel": "C1", "ts": "1.000200", "text": "<@UBOT> What should CUDA_DEVICE_MAX_CONNECTIONS be on H100 with TP=4?"})
		s.said("CUDA_DEVICE_MAX_CONNECTIONS")
	})
}

func TestAThreadIsAConversation(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := play(t)
		say := func(ts, q string) {
			s.Event(map[string]any{"type": "message", "channel_type": "im", "user": "U1", "channel": "D1", "ts": ts, "thread_ts": "1.000100", "text": q})
		}
		say("1.000200", "What should CUDA_DEVICE_MAX_CONNECTIONS be on H100 with TP=4?")
		s.said("CUDA_DEVICE_MAX_CONNECTIONS")
		say("1.000300", "and on B200?")
		s.Wait("two answers in the thread", func(st slacktest.State) bool {
			n := 0
			for _, m := range st.Messages {
				if m.Thread == "1.000100" {
					n++
				}
			}
			return n == 2
		})
	})
}

func TestTheMessagesTabOffersPromptsAndNamesNoThread(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := play(t)
		s.Event(map[string]any{"type": "app_home_opened", "user": "U1", "channel": "D1", "tab": "messages", "event_ts": "1.6"})
		s.Wait("the prompts", func(st slacktest.State) bool {
			return slices.ContainsFunc(st.Calls, func(c slacktest.Call) bool {
				return c.Method == "assistant.threads.setSuggestedPrompts" && c.Answer == "ok" && c.Args["thread_ts"] == nil &&
					c.Args["channel_id"] == "D1" && strings.Contains(slacktest.JSON(c.Args), "diagnose my last job")
			})
		})
	})
}

func TestWorkIsShownInTheThreadOfAMention(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := play(t)
		s.Event(map[string]any{"type": "app_mention", "user": "U1", "channel": "C1", "ts": "1.000100", "text": "<@UBOT> what is CUDA_DEVICE_MAX_CONNECTIONS for?"})
		s.Wait("the status", func(st slacktest.State) bool {
			return slices.ContainsFunc(st.Calls, func(c slacktest.Call) bool {
				return c.Method == "assistant.threads.setStatus" && c.Args["thread_ts"] == "1.000100" && strings.Contains(slacktest.JSON(c.Args), "looking it up")
			})
		})
	})
}

func TestAnAssistantThreadIsGreetedWithPrompts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := play(t)
		s.Event(map[string]any{"type": "assistant_thread_started", "assistant_thread": map[string]any{"user_id": "U1", "channel_id": "D1", "thread_ts": "1.5"}, "event_ts": "1.6"})
		s.Wait("the prompts", func(st slacktest.State) bool {
			return slices.ContainsFunc(st.Calls, func(c slacktest.Call) bool {
				return c.Method == "assistant.threads.setSuggestedPrompts" && c.Answer == "ok" && strings.Contains(slacktest.JSON(c.Args), "CUDA_DEVICE_MAX_CONNECTIONS")
			})
		})
	})
}

func TestLinksToJobsAreUnfurled(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := play(t, func(c *bot.Config) { c.Policy.LinkDomain = "ops.example.com" })
		s.yard.put(jobNamed("4000", "run"))
		other := &yard{jobs: map[slurm.JobID]slurm.Job{}}
		other.put(jobNamed("4001", "elsewhere"))
		s.service.Clusters["other"] = other
		s.Event(map[string]any{"type": "link_shared", "user": "U1", "channel": "C1", "message_ts": "1.7", "event_ts": "1.8", "links": []any{
			map[string]any{"url": "https://ops.example.com/jobs/4000", "domain": "ops.example.com"},
			map[string]any{"url": "https://ops.example.com/web/jobs/other/4001?of=all", "domain": "ops.example.com"},
			map[string]any{"url": "https://evil.example/jobs/4000", "domain": "evil.example"},
		}})
		s.Wait("the unfurl", func(st slacktest.State) bool {
			return slices.ContainsFunc(st.Calls, func(c slacktest.Call) bool {
				j := slacktest.JSON(c.Args)
				return c.Method == "chat.unfurl" && strings.Contains(j, "run · running · 4000") && strings.Contains(j, "elsewhere · running · 4001") && !strings.Contains(j, "evil")
			})
		})
	})
}

func TestSharingIsAskedFor(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := play(t)
		s.yard.put(jobNamed("4000", "run"))
		s.Slash("status 4000")
		require.Equal(t, "U1", s.said("run · running · 4000").Only)
		s.Slash("status 4000 --share", map[string]any{"channel_id": "C7"})
		s.Wait("the shared answer", func(st slacktest.State) bool {
			return slices.ContainsFunc(st.Messages, func(m *slacktest.Message) bool { return m.Only == "" && m.Channel == "C7" })
		})
	})
}

func TestChannelsMayBeClosedForChanges(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := play(t, func(c *bot.Config) { c.Policy.Channels = []string{"C5"} })
		s.Slash("submit --yes " + spec)
		s.said("may not be changed from this channel")
		s.Slash("submit --yes "+spec, map[string]any{"channel_id": "C5"})
		s.said("gpt submitted to yard as job 4711")
		require.Equal(t, 1, s.yard.count())
	})
}

func jobNamed(id slurm.JobID, name string) slurm.Job {
	return slurm.Job{ID: id, Name: name, User: "ada", State: slurm.Running, Nodes: []string{"n1"}}
}
