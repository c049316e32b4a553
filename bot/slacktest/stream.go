package slacktest

import (
	"encoding/json"
	"net/http"
	"slices"
	"time"
	"unicode/utf8"
)

// streamLife is after which time Slack ends a stream by itself
// (python-slack-sdk issue 1859: about five minutes).
const streamLife = 5 * time.Minute

// aMinute is how many calls of a method Slack takes in one: Tier 2 and Tier 4.
var aMinute = map[string]int{"chat.startStream": 20, "chat.stopStream": 20, "chat.appendStream": 100}

// tooOften limits a method to its tier. The lock is held.
func (s *Server) tooOften(method string, now time.Time) *Fault {
	most, calls := aMinute[method], 0
	for _, c := range s.calls {
		if c.Method == method && now.Sub(c.At) < time.Minute {
			calls++
		}
	}
	if most == 0 || calls < most {
		return nil
	}
	return &Fault{Status: http.StatusTooManyRequests, RetryAfter: 1}
}

// streaming reports whether the message may still grow.
func (msg *Message) streaming() bool {
	return msg.Streaming && time.Since(msg.Began) < streamLife
}

// startStream begins a message in a thread. In a channel it wants to know for
// whom, and in a direct message it must not be told.
func (s *Server) startStream(a m, r *http.Request) m {
	msg := &Message{
		Token: tokenOf(r), Channel: str(a["channel"]), Thread: str(a["thread_ts"]), Via: "chat.startStream",
		Streaming: true, Began: time.Now(),
	}
	user, team := str(a["recipient_user_id"]), str(a["recipient_team_id"])
	switch {
	case msg.Channel == "":
		return m{"error": "channel_not_found"}
	case msg.Thread == "":
		return m{"error": "invalid_thread_ts"}
	case msg.Channel[0] == 'D' && user+team != "":
		return m{"error": "invalid_arguments"}
	case msg.Channel[0] != 'D' && user == "":
		return m{"error": "missing_recipient_user_id"}
	case msg.Channel[0] != 'D' && team == "":
		return m{"error": "missing_recipient_team_id"}
	}
	if code := msg.grow(a); code != "" {
		return m{"error": code}
	}
	msg.TS = s.ts()
	s.messages = append(s.messages, msg)
	return m{"channel": msg.Channel, "ts": msg.TS}
}

func (s *Server) appendStream(a m, _ *http.Request) m {
	msg, code := s.continued(a)
	if code == "" && a["chunks"] == nil && a["markdown_text"] == nil {
		code = "no_text"
	}
	if code == "" {
		code = msg.grow(a)
	}
	if code != "" {
		return m{"error": code}
	}
	return m{"channel": msg.Channel, "ts": msg.TS}
}

// stopStream ends a stream; blocks go below what has grown.
func (s *Server) stopStream(a m, _ *http.Request) m {
	msg, code := s.continued(a)
	if code == "" {
		code = msg.grow(a)
	}
	if code != "" {
		return m{"error": code}
	}
	below, _ := a["blocks"].([]any)
	msg.Blocks = append(msg.Blocks, below...)
	msg.Streaming = false
	return m{"channel": msg.Channel, "ts": msg.TS}
}

// continued is the stream that a call speaks of, or the error's name where there
// is none that goes on.
func (s *Server) continued(a m) (msg *Message, code string) {
	msg = s.at(str(a["channel"]), str(a["ts"]))
	switch {
	case msg == nil:
		return nil, "message_not_found"
	case !msg.streaming():
		return nil, "message_not_in_streaming_state"
	}
	return msg, ""
}

// grow adds what a call brings, and returns the error's name where Slack would
// refuse it. A stream stays what it began as, text or chunks.
func (msg *Message) grow(a m) string {
	text, isText := a["markdown_text"].(string)
	list, isChunks := a["chunks"].([]any)
	if !isText && !isChunks {
		return ""
	}
	mode := "text"
	if isChunks {
		mode = "chunks"
	}
	if isText && isChunks {
		return "cannot_provide_both_markdown_text_and_chunks"
	}
	if msg.mode != "" && msg.mode != mode {
		return "streaming_mode_mismatch"
	}
	grown, more := msg.grown, []any{}
	for _, x := range list {
		chunk, _ := x.(m)
		switch bs, _ := chunk["blocks"].([]any); chunk["type"] {
		case "blocks":
			grown += len(bs)
			more = append(more, bs...)
		case "markdown_text":
			text += str(chunk["text"])
		default:
			return "invalid_chunks"
		}
	}
	if utf8.RuneCountInString(msg.Text+text) > 12000 {
		return "msg_too_long"
	}
	all := slices.Concat(msg.Blocks, more)
	raw, _ := json.Marshal(all)
	if grown > 50 || len(more) > 0 && len(CheckBlocks(raw, InMessage)) > 0 {
		return "invalid_blocks"
	}
	msg.mode, msg.grown, msg.Blocks = mode, grown, all
	msg.Text += text
	return ""
}
