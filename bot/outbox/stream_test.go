package outbox

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/bot/answer"
	"github.com/megatron-ops/megatron-ops/bot/slacktest"
	"github.com/megatron-ops/megatron-ops/internal/store"
)

var asked = StreamTarget{Key: "ask/1", Team: "T1", Channel: "C1", Thread: "1.2", User: "U1"}

// answers makes the answer to the request replace what was streamed for it.
func (s *stage) answers(texts ...string) {
	s.t.Helper()
	var owed []store.SlackMessage
	for i, text := range texts {
		owed = append(owed, s.Owe(fmt.Sprint("answer/", i), "lane", Message{Do: Post, Team: "T1", Channel: "C1", Thread: "1.2", Text: text}))
	}
	s.oweAll(s.InPlace(s.t.Context(), "T1", asked.Key, owed)...)
}

// However a growing message ends, the answer stands once, and nothing of the words
// beside it.
func TestTheAnswerTakesTheWordsPlace(t *testing.T) {
	fails := func(method string, times int, code string) slacktest.Fault {
		return slacktest.Fault{Method: method, Times: times, Error: code}
	}
	for name, c := range map[string]struct {
		fault  slacktest.Fault
		killed bool // between the words and the answer
		age    bool // Slack ends what grows by itself
		anew   bool // the answer is a message of its own, and no edit
		x      int
	}{
		"nothing goes wrong":                  {},
		"the process is killed meanwhile":     {killed: true},
		"its beginning had no answer":         {fault: slacktest.Fault{Method: "chat.startStream", Times: 1, Reset: "after"}, x: 1},
		"its beginning never reached Slack":   {fault: slacktest.Fault{Method: "chat.startStream", Times: 1, Reset: "before"}, x: 1, anew: true},
		"this channel takes none":             {fault: fails("chat.startStream", 9, "channel_type_not_supported"), anew: true},
		"a limit at its beginning":            {fault: slacktest.Fault{Method: "chat.startStream", Times: 1, Status: http.StatusTooManyRequests, RetryAfter: 9}, anew: true},
		"somebody stopped it":                 {fault: fails("chat.appendStream", 9, "stopped_by_user")},
		"a limit while it grows":              {fault: slacktest.Fault{Method: "chat.appendStream", Times: 1, Status: http.StatusTooManyRequests, RetryAfter: 2}},
		"its end broke":                       {fault: slacktest.Fault{Method: "chat.stopStream", Times: 1, Reset: "after"}},
		"its end was refused":                 {fault: fails("chat.stopStream", 1, "message_not_in_streaming_state")},
		"its replacement broke":               {fault: slacktest.Fault{Method: "chat.update", Times: 1, Reset: "after"}},
		"Slack is still ending it":            {fault: fails("chat.update", 1, "streaming_state_conflict")},
		"it cannot be edited":                 {fault: fails("chat.update", 9, "block_mismatch"), anew: true},
		"Slack ended it":                      {age: true},
		"somebody deleted it":                 {fault: fails("chat.update", 9, "message_not_found"), anew: true},
		"servers fail while it is taken away": {fault: fails("chat.update", 2, "block_mismatch"), anew: true},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, func(t *testing.T, s *stage) {
				s.fault(c.fault)
				say := s.Words(t.Context(), asked)
				say("It is four replicas.")
				s.after(time.Second)
				say(" Sixty-four GPUs")
				st := s.after(4 * time.Second)
				if !c.anew && c.x == 0 && !strings.Contains(name, "stopped") {
					require.Contains(t, slacktest.JSON(st.Messages), "Sixty-four GPUs")
				}
				if c.age {
					s.slack.Age(6 * time.Minute)
				}
				if c.killed {
					s.stop()
					s.start()
				}
				s.answers("DP = 4", "and more")
				st = s.after(time.Minute)
				require.ElementsMatch(t, []string{"C1 below 1.2: DP = 4", "C1 below 1.2: and more"}, stands(st))
				require.NotContains(t, slacktest.JSON(st.Messages), "replicas")
				require.Equal(t, c.anew, len(s.times(st, "chat.postMessage")) == 2)
				require.Len(t, s.times(st, "conversations.replies"), c.x)
				require.Empty(t, st.Early)
			})
		})
	}
}

// An answer that goes elsewhere leaves no half message behind; one without text stays as it is.
func TestWordsWithoutAnAnswerAreTakenAway(t *testing.T) {
	for name, fault := range map[string]slacktest.Fault{
		"at once":                 {},
		"when Slack answers":      {Method: "chat.delete", Times: 2, Status: 500},
		"somebody else was first": {Method: "chat.delete", Times: 1, Error: "message_not_found"},
	} {
		play(t, func(t *testing.T, s *stage) {
			s.answers("no words before it")
			s.Words(t.Context(), asked)("It is four")
			s.after(time.Second)
			s.fault(fault)
			s.oweAll(s.InPlace(t.Context(), "T1", asked.Key, []store.SlackMessage{
				s.Owe("private", "lane", Message{Do: Ephemeral, Channel: "C1", User: "U1", Text: "for you"}),
				s.Owe("channel", "lane", Message{Do: Post, Channel: "C2", Thread: "1.2", Text: "there"}),
				s.Owe("thread", "lane", Message{Do: Post, Channel: "C1", Thread: "9.9", Text: "below"}),
			})...)
			st := s.after(time.Minute)
			left := slices.DeleteFunc(stands(st), func(line string) bool { return fault.Error != "" && line == "C1 below 1.2: " })
			require.Equal(t, []string{"C1 below 1.2: no words before it", "C1 for U1: for you", "C2 below 1.2: there", "C1 below 9.9: below"}, left, name)
			require.Empty(t, s.givenUp(), name)
		})
	}
}

// Where a channel takes no growing message it is asked again after an hour, and after a
// limit as soon as that has passed.
func TestAChannelThatTakesNoneIsNotAskedAtOnce(t *testing.T) {
	for name, c := range map[string]struct {
		fault slacktest.Fault
		hold  time.Duration
	}{
		"refused": {slacktest.Fault{Method: "chat.startStream", Times: 1, Error: "missing_scope"}, time.Hour},
		"limited": {slacktest.Fault{Method: "chat.startStream", Times: 1, Status: http.StatusTooManyRequests, RetryAfter: 40}, 40 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, func(t *testing.T, s *stage) {
				s.fault(c.fault)
				for i, at := range []time.Duration{0, c.hold - 2*time.Second, c.hold + 2*time.Second} {
					s.skew.Store(int64(at))
					talk := asked
					talk.Key = fmt.Sprint(i)
					s.Words(t.Context(), talk)("It is four")
					st := s.after(time.Second)
					require.Len(t, s.times(st, "chat.startStream"), []int{1, 1, 2}[i])
					s.InPlace(t.Context(), "T1", talk.Key, nil)
				}
			})
		})
	}
}

// Words come about three times a second, and once a second when there are many; a
// message of fifty blocks grows no more.
func TestAMessageGrowsAtAPace(t *testing.T) {
	play(t, func(t *testing.T, s *stage) {
		say := s.Words(t.Context(), asked)
		for range 700 {
			say("word ")
			time.Sleep(100 * time.Millisecond)
		}
		st := s.after(time.Minute)
		at := s.times(st, "chat.startStream", "chat.appendStream")
		require.Len(t, at, maxStreamed)
		for i := range at[1:] {
			gap := at[i+1] - at[i]
			if i <= manyBlocks {
				require.InDelta(t, 300*time.Millisecond, gap, float64(100*time.Millisecond), "%d", i)
			} else {
				require.InDelta(t, time.Second, gap, float64(100*time.Millisecond), "%d", i)
			}
		}
		require.Len(t, st.Messages[0].Blocks, maxStreamed)
		for _, c := range st.Calls {
			require.Equal(t, "ok", c.Answer)
		}
		s.answers("DP = 4")
		require.Equal(t, []string{"C1 below 1.2: DP = 4"}, stands(s.after(time.Minute)))
	})
}

// A long operation shows its steps and how far each is, and then the answer in their place.
func TestStepsAreTickedOff(t *testing.T) {
	for name, lost := range map[string]bool{"begun": false, "begun without an answer": true} {
		play(t, func(t *testing.T, s *stage) {
			if lost {
				s.fault(slacktest.Fault{Method: "chat.startStream", Times: 1, Reset: "after"})
			}
			at := s.Steps(t.Context(), asked, "A look at job 1", []string{"reads the log", "looks at the nodes", "judges"})
			tasks := func() (lines []string) {
				plan := s.after(2 * time.Second).Messages[0].Blocks[0].(map[string]any)
				require.Equal(t, "A look at job 1", plan["title"], name)
				for _, x := range plan["tasks"].([]any) {
					task := x.(map[string]any)
					line := fmt.Sprint(task["title"], ": ", task["status"])
					if out := slacktest.JSON(task["output"]); strings.Contains(out, "GB") {
						line += ", with words"
					}
					lines = append(lines, line)
				}
				return lines
			}
			at(0, "not said before a step is done: 0 GB")
			require.Equal(t, []string{"reads the log: in_progress", "looks at the nodes: pending", "judges: pending"}, tasks(), name)
			if !lost {
				at(1, "2 GB")
				require.Equal(t, []string{"reads the log: complete, with words", "looks at the nodes: in_progress", "judges: pending"}, tasks())
				calls := len(s.after(time.Second).Calls)
				at(1, "2 GB")
				require.Len(t, s.after(2*time.Second).Calls, calls, "nothing is new")
				at(3, "3 GB")
				require.Equal(t, []string{"reads the log: complete, with words", "looks at the nodes: complete", "judges: complete, with words"}, tasks())
				at(4, "beyond the last: 9 GB")
				require.Len(t, s.after(2*time.Second).Calls, calls+1)
			}
			s.answers("it ran out of memory")
			require.Equal(t, []string{"C1 below 1.2: it ran out of memory"}, stands(s.after(time.Minute)), name)
		})
	}
}

// In a direct message Slack wants nobody named.
func TestWordsInADirectMessage(t *testing.T) {
	play(t, func(t *testing.T, s *stage) {
		s.Words(t.Context(), StreamTarget{Key: "k", Channel: "D1", Thread: "1.2", User: "U1", Direct: true})("It is four")
		require.Contains(t, slacktest.JSON(s.after(time.Second).Messages), "It is four")
		s.InPlace(t.Context(), "", "k", nil)
	})
}

const chart = `[{"type":"data_visualization","title":"Loss","chart":{"type":"line","series":[{"name":"loss","data":[{"label":"1","value":2},{"label":"2","value":1}]}],` +
	`"axis_config":{"categories":["1","2"]}}}]`

// A workspace that refuses a chart gets its text and its picture, and is sent no other chart
// within the hour.
func TestAWorkspaceWithoutChartsHasPictures(t *testing.T) {
	play(t, func(t *testing.T, s *stage) {
		chart := func(key string) {
			o := Message{Do: Post, Team: "T1", Channel: "C1", Text: "loss", Blocks: []byte(chart)}
			s.oweAll(s.WithPicture(s.Owe(key, key, o), Message{Do: Upload, Team: "T1", Channel: "C1", File: &answer.File{Name: key + ".png", Title: "Loss"}, Bytes: []byte("PNG")}))
		}
		drawn := func(st slacktest.State) int { return strings.Count(slacktest.JSON(st.Messages), "data_visualization") }
		chart("zero")
		st := s.after(10 * time.Second)
		require.Equal(t, []string{"C1: loss"}, stands(st))
		require.Equal(t, 1, drawn(st))
		s.fault(slacktest.Fault{Method: "chat.postMessage", Times: 1, Error: "invalid_blocks"})
		chart("one")
		st = s.after(10 * time.Second)
		require.Equal(t, []string{"C1: loss", "C1: loss", "C1: one.png PNG"}, stands(st))
		require.True(t, s.Plain("T1"))
		require.False(t, s.Plain("T2"))
		chart("two")
		st = s.after(10 * time.Second)
		require.Equal(t, []string{"C1: loss", "C1: loss", "C1: loss", "C1: one.png PNG", "C1: two.png PNG"}, stands(st))
		require.Equal(t, 1, drawn(st), "it was not asked again")
		require.Len(t, s.times(st, "chat.postMessage"), 4)
		s.skew.Store(int64(time.Hour))
		require.False(t, s.Plain("T1"))
		chart("three")
		require.Equal(t, 2, drawn(s.after(10*time.Second)))
	})
}

// A message with a picture waits while Slack processes the file, which is uploaded once; where
// no message may show it, it becomes a file.
func TestAPictureInAMessage(t *testing.T) {
	play(t, func(t *testing.T, s *stage) {
		curve := Message{Do: Post, Channel: "C1", Text: "curve", Bytes: []byte("PNG"), File: &answer.File{Name: "loss.png", Title: "Loss"}}
		s.owe("curve", "lane", curve)
		curve.Do, curve.Ref, curve.Text, curve.Channel = Update, "curve", "curve, later", ""
		s.owe("later", "lane", curve)
		st := s.after(10 * time.Second)
		require.Equal(t, "C1: curve, later", stands(st)[0])
		require.Len(t, st.Files, 2)
		at := s.times(st, "chat.postMessage")
		require.Len(t, at, 2, "Slack had not looked at it the first time")
		require.GreaterOrEqual(t, at[1]-at[0], 2*time.Second)
		require.Empty(t, s.times(st, "conversations.history"), "and has surely not shown it")
		require.Contains(t, slacktest.JSON(st.Messages), st.Files[1].ID)

		s.fault(slacktest.Fault{Method: "slack_file"})
		curve.Text = "never"
		s.owe("never", "lane", curve)
		st = s.after(time.Minute)
		require.Len(t, s.times(st, "chat.update"), 2+pictureTries)
		require.True(t, slices.Contains(stands(st), "C1: loss.png PNG"), stands(st))
	})
}
