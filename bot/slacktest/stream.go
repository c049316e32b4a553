package slacktest

import (
	"encoding/json"
	"net/http"
	"slices"
	"time"
	"unicode/utf8"
)

// streamLife is the time after which Slack ends a stream by itself (python-slack-sdk issue
// 1859: about five minutes).
const streamLife = 5 * time.Minute

// aMinute is how many calls of a method Slack accepts in a minute: Tier 2 and Tier 4.
var aMinute = map[string]int{"chat.startStream": 20, "chat.stopStream": 20, "chat.appendStream": 100}

// tooOften returns a 429 where a method's tier is exceeded. The caller holds the lock.
func (s *Server) tooOften(method string, now time.Time) *Fault {
	most, calls := aMinute[method], 0
	if most == 0 {
		return nil
	}
	for _, c := range slices.Backward(s.calls) {
		if now.Sub(c.At) >= time.Minute {
			break
		}
		if c.Method == method {
			calls++
		}
	}
	if calls < most {
		return nil
	}
	return &Fault{Status: http.StatusTooManyRequests, RetryAfter: 1}
}

// streaming reports whether the message can still be appended to.
func (msg *Message) streaming() bool {
	return msg.Streaming && time.Since(msg.Began) < streamLife
}

// startStream starts a streamed message in a thread. In a channel it requires the recipient,
// and in a direct message it refuses one.
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
	s.addMessage(msg)
	return m{"channel": msg.Channel, "ts": msg.TS}
}

func (s *Server) appendStream(a m, _ *http.Request) m {
	msg, code := s.activeStream(a)
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

// stopStream ends a stream. Its blocks are added below those that were streamed.
func (s *Server) stopStream(a m, _ *http.Request) m {
	msg, code := s.activeStream(a)
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

// activeStream returns the stream that a call names, or the error code where there is no such
// stream or it has ended.
func (s *Server) activeStream(a m) (msg *Message, code string) {
	msg = s.at(str(a["channel"]), str(a["ts"]))
	switch {
	case msg == nil:
		return nil, "message_not_found"
	case !msg.streaming():
		return nil, "message_not_in_streaming_state"
	}
	return msg, ""
}

// grow appends what a call brings, and returns the error code where Slack would refuse it. A
// stream consists either of text or of chunks.
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
	had := slices.Clone(msg.Blocks)
	for _, x := range list {
		chunk, _ := x.(m)
		switch bs, _ := chunk["blocks"].([]any); chunk["type"] {
		case "blocks":
			grown += len(bs)
			more = append(more, bs...)
		case "markdown_text":
			text += str(chunk["text"])
		case "task_update", "plan_update":
			var ok bool
			if had, ok = updatedPlan(had, chunk); !ok {
				return "invalid_chunks"
			}
		default:
			return "invalid_chunks"
		}
	}
	if utf8.RuneCountInString(msg.Text+text) > 12000 {
		return "msg_too_long"
	}
	all := slices.Concat(had, more)
	raw, _ := json.Marshal(all)
	if grown > 50 || len(all) > 0 && len(CheckBlocks(raw, InMessage)) > 0 {
		return "invalid_blocks"
	}
	msg.mode, msg.grown, msg.Blocks = mode, grown, all
	msg.Text += text
	return ""
}

// updatedPlan changes the plan in blocks as a chunk says. The plan is the first block, as in the
// display mode "plan".
func updatedPlan(blocks []any, chunk m) (_ []any, ok bool) {
	title := str(chunk["title"])
	if title == "" || len(title) > 256 {
		return blocks, false
	}
	plan := m{"type": "plan", "title": title, "tasks": []any{}}
	if len(blocks) > 0 {
		if had, _ := blocks[0].(m); had["type"] == "plan" {
			plan = m{"type": "plan", "title": had["title"], "tasks": slices.Clone(had["tasks"].([]any))}
			blocks = blocks[1:]
		}
	}
	tasks := plan["tasks"].([]any)
	if chunk["type"] == "plan_update" {
		plan["title"] = title
		return slices.Concat([]any{plan}, blocks), true
	}
	id := str(chunk["id"])
	status := str(chunk["status"])
	if id == "" || !slices.Contains(taskStates, status) {
		return blocks, false
	}
	task := m{"type": "task_card", "task_id": id, "title": title, "status": status}
	for _, part := range []string{"details", "output"} {
		if said := str(chunk[part]); said != "" {
			task[part] = m{"type": "rich_text", "elements": []any{m{"type": "rich_text_section", "elements": []any{m{"type": "text", "text": said}}}}}
		}
	}
	i := slices.IndexFunc(tasks, func(x any) bool { return x.(m)["task_id"] == id })
	if i < 0 {
		tasks = append(tasks, task)
	} else {
		tasks[i] = task
	}
	plan["tasks"] = tasks
	return slices.Concat([]any{plan}, blocks), true
}
