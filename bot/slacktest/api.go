package slacktest

import (
	"cmp"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// args reads a call's arguments from its query, its form or its JSON body.
func args(r *http.Request) m {
	a := m{}
	fromForm := func(v url.Values) {
		for k := range v {
			a[k] = v.Get(k)
			s := v.Get(k)
			if slices.Contains([]string{"blocks", "view", "attachments", "files", "metadata", "unfurls", "prompts", "manifest", "chunks"}, k) {
				var x any
				if json.Unmarshal([]byte(s), &x) == nil {
					a[k] = x
				}
			}
		}
	}
	fromForm(r.URL.Query())
	if strings.Contains(r.Header.Get("Content-Type"), "json") {
		_ = json.NewDecoder(r.Body).Decode(&a)
		return a
	}
	if strings.Contains(r.Header.Get("Content-Type"), "multipart") {
		if r.ParseMultipartForm(16<<20) == nil {
			fromForm(r.MultipartForm.Value)
		}
		return a
	}
	if r.ParseForm() == nil {
		fromForm(r.PostForm)
	}
	return a
}

// tokenOf returns the token of a call whose body has been read.
func tokenOf(r *http.Request) string {
	return cmp.Or(strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "), r.PostForm.Get("token"))
}

// serveAPI serves one method of the Web API.
func (s *Server) serveAPI(w http.ResponseWriter, r *http.Request) {
	method, a := r.PathValue("method"), args(r)
	token := tokenOf(r)
	delete(a, "token")
	s.mu.Lock()
	problems := check(method, a)
	call := Call{Method: method, Args: a, Problems: problems, At: time.Now(), Answer: "ok"}
	if until, ok := s.held[method+str(a["channel"])]; ok && call.At.Before(until.Add(-20*time.Millisecond)) {
		s.early = append(s.early, method)
	}
	f := s.fault(method)
	if f == nil {
		f = s.tooOften(method, call.At)
	}
	if f != nil {
		call.Answer = f.name()
		if f.Status == http.StatusTooManyRequests {
			s.held[method+str(a["channel"])] = time.Now().Add(time.Duration(max(1, f.RetryAfter)) * time.Second)
		}
		if f.Reset != "after" && (f.Status != 0 || f.Error != "" || f.Reset != "") {
			s.noteCall(call)
			s.mu.Unlock()
			f.fail(w, r)
			return
		}
	}
	answer := s.answer(method, a, token, r, problems)
	if e, bad := answer["error"]; bad {
		answer["ok"] = false
		call.Answer = str(e)
	} else {
		answer["ok"] = true
	}
	s.noteCall(call)
	s.mu.Unlock()
	if f != nil && f.fail(w, r) {
		return
	}
	if method == "auth.test" {
		w.Header().Set("X-OAuth-Scopes", s.cfg.BotScopes)
	}
	writeJSON(w, http.StatusOK, answer)
}

// check returns what Slack would refuse in the arguments.
func check(method string, a m) (problems []string) {
	if strings.HasPrefix(method, "chat.post") || method == "chat.update" {
		if str(a["channel"]) == "" {
			problems = append(problems, "channel_not_found: no channel")
		}
		if strings.TrimSpace(str(a["text"])) == "" { // Slack takes blocks alone, and notifies of them without a word
			problems = append(problems, "no_text: nothing to say in a notification")
		}
		if utf8.RuneCountInString(str(a["text"])) > 40000 {
			problems = append(problems, "msg_too_long: text over 40000")
		}
	}
	if a["blocks"] != nil {
		raw, _ := json.Marshal(a["blocks"])
		for _, p := range CheckBlocks(raw, InMessage) {
			problems = append(problems, "invalid_blocks: "+p)
		}
	}
	if a["view"] != nil {
		raw, _ := json.Marshal(a["view"])
		for _, p := range CheckView(raw) {
			problems = append(problems, "invalid_arguments: "+p)
		}
	}
	return problems
}

// methods are the methods of the Web API that the server has.
var methods = map[string]func(*Server, m, *http.Request) m{
	"auth.test": func(*Server, m, *http.Request) m {
		return m{"url": "https://test.slack.com/", "team": "test", "user": "megatron", "team_id": "T1", "user_id": "UBOT", "bot_id": "B1"}
	},
	"apps.connections.open":                 (*Server).openConnection,
	"apps.manifest.validate":                func(*Server, m, *http.Request) m { return m{} },
	"chat.postMessage":                      (*Server).postMessage,
	"chat.postEphemeral":                    (*Server).postEphemeral,
	"chat.update":                           (*Server).update,
	"chat.startStream":                      (*Server).startStream,
	"chat.appendStream":                     (*Server).appendStream,
	"chat.stopStream":                       (*Server).stopStream,
	"chat.unfurl":                           func(*Server, m, *http.Request) m { return m{} },
	"chat.delete":                           (*Server).deleteMessage,
	"conversations.history":                 (*Server).history,
	"conversations.replies":                 (*Server).history,
	"conversations.open":                    func(_ *Server, a m, _ *http.Request) m { return m{"channel": m{"id": "D" + str(a["users"])}} },
	"conversations.members":                 func(s *Server, a m, _ *http.Request) m { return m{"members": s.members[str(a["channel"])]} },
	"conversations.info":                    func(_ *Server, a m, _ *http.Request) m { return m{"channel": m{"id": a["channel"], "name": "general"}} },
	"usergroups.users.list":                 func(s *Server, a m, _ *http.Request) m { return m{"users": s.members[str(a["usergroup"])]} },
	"users.info":                            userInfo,
	"users.conversations":                   (*Server).conversationsOf,
	"views.open":                            (*Server).openView,
	"views.push":                            (*Server).openView,
	"views.update":                          (*Server).updateView,
	"views.publish":                         (*Server).publishView,
	"files.getUploadURLExternal":            (*Server).uploadURL,
	"files.completeUploadExternal":          (*Server).completeUpload,
	"files.info":                            (*Server).fileInfo,
	"assistant.threads.setStatus":           func(*Server, m, *http.Request) m { return m{} },
	"assistant.threads.setTitle":            func(*Server, m, *http.Request) m { return m{} },
	"assistant.threads.setSuggestedPrompts": func(*Server, m, *http.Request) m { return m{} },
	"reactions.add":                         func(*Server, m, *http.Request) m { return m{} },
	"oauth.v2.access":                       oauthAccess,
}

// methodScopes are the scopes of methods: any one of a method's scopes is enough. A method
// without a row needs none.
var methodScopes = map[string][]string{
	"chat.postMessage": {"chat:write"}, "chat.postEphemeral": {"chat:write"}, "chat.update": {"chat:write"}, "chat.delete": {"chat:write"},
	"chat.startStream": {"chat:write"}, "chat.appendStream": {"chat:write"}, "chat.stopStream": {"chat:write"},
	"chat.unfurl":           {"links:write"},
	"conversations.history": {"channels:history", "groups:history", "im:history"},
	"conversations.replies": {"channels:history", "groups:history", "im:history"},
	"conversations.open":    {"im:write"}, "conversations.members": {"channels:read", "groups:read"},
	"conversations.info": {"channels:read", "groups:read"}, "users.conversations": {"channels:read", "groups:read"},
	"usergroups.users.list": {"usergroups:read"}, "users.info": {"users:read"},
	"files.getUploadURLExternal": {"files:write"}, "files.completeUploadExternal": {"files:write"}, "files.info": {"files:read"},
	"assistant.threads.setStatus": {"chat:write", "assistant:write"}, "assistant.threads.setTitle": {"assistant:write"},
	"assistant.threads.setSuggestedPrompts": {"assistant:write"}, "reactions.add": {"reactions:write"},
}

// Needs returns the scopes of a method, of which any one is enough; ok is false for a method
// that the server does not have.
func Needs(method string) (scopes []string, ok bool) {
	_, ok = methods[method]
	return methodScopes[method], ok
}

func (s *Server) allowed(method string) bool {
	if s.cfg.BotScopes == "" || methodScopes[method] == nil {
		return true
	}
	have := strings.Split(s.cfg.BotScopes, ",")
	return slices.ContainsFunc(methodScopes[method], func(n string) bool { return slices.Contains(have, n) })
}

func (s *Server) answer(method string, a m, token string, r *http.Request, problems []string) m {
	if method == "oauth.v2.access" {
		return oauthAccess(s, a, r)
	}
	switch {
	case token == "":
		return m{"error": "not_authed"}
	case method == "apps.connections.open" && !strings.HasPrefix(token, "xapp-"),
		method != "apps.connections.open" && !strings.HasPrefix(token, "xox"):
		return m{"error": "invalid_auth"}
	}
	do := methods[method]
	if do == nil {
		return m{"error": "unknown_method"}
	}
	if !s.allowed(method) {
		return m{"error": "missing_scope", "needed": strings.Join(methodScopes[method], ","), "provided": s.cfg.BotScopes}
	}
	if len(problems) > 0 {
		code, _, _ := strings.Cut(problems[0], ":")
		if strings.Contains(problems[0], "msg_blocks_too_long") {
			code = "msg_blocks_too_long"
		}
		return m{"error": code, "response_metadata": m{"messages": problems}}
	}
	return do(s, a, r)
}

func (s *Server) postMessage(a m, r *http.Request) m {
	if refused := s.pictureRefused(a); refused != nil {
		return refused
	}
	msg := &Message{
		Token:   tokenOf(r),
		Channel: str(a["channel"]), TS: s.ts(), Thread: str(a["thread_ts"]), Text: str(a["text"]), Via: "chat.postMessage",
		Broadcast: str(a["reply_broadcast"]) == "true",
	}
	if strings.HasPrefix(msg.Channel, "U") {
		msg.Channel = "D" + msg.Channel
	}
	msg.Blocks, _ = a["blocks"].([]any)
	msg.Metadata, _ = a["metadata"].(m)
	s.addMessage(msg)
	return m{"channel": msg.Channel, "ts": msg.TS, "message": m{"text": msg.Text, "ts": msg.TS}}
}

func (s *Server) postEphemeral(a m, _ *http.Request) m {
	msg := &Message{Channel: str(a["channel"]), TS: s.ts(), Thread: str(a["thread_ts"]), Text: str(a["text"]), Only: str(a["user"]), Via: "chat.postEphemeral"}
	msg.Blocks, _ = a["blocks"].([]any)
	if msg.Only == "" {
		return m{"error": "user_not_in_channel"}
	}
	s.addMessage(msg)
	return m{"message_ts": msg.TS}
}

// at finds a message that is not ephemeral.
func (s *Server) at(channel, ts string) *Message {
	for _, msg := range s.messages {
		if msg.Channel == channel && msg.TS == ts && msg.Only == "" {
			return msg
		}
	}
	return nil
}

func (s *Server) update(a m, _ *http.Request) m {
	msg := s.at(str(a["channel"]), str(a["ts"]))
	if msg == nil {
		return m{"error": "message_not_found"}
	}
	if msg.streaming() {
		return m{"error": "streaming_state_conflict"}
	}
	if refused := s.pictureRefused(a); refused != nil {
		return refused
	}
	msg.Text = str(a["text"])
	if !s.cfg.Lean {
		msg.Blocks, _ = a["blocks"].([]any)
	}
	if with, ok := a["metadata"].(m); ok {
		msg.Metadata = with
	}
	msg.Edits++
	return m{"channel": msg.Channel, "ts": msg.TS, "text": msg.Text}
}

func (s *Server) deleteMessage(a m, _ *http.Request) m {
	msg := s.at(str(a["channel"]), str(a["ts"]))
	if msg == nil {
		return m{"error": "message_not_found"}
	}
	if msg.streaming() {
		return m{"error": "cant_delete_message"}
	}
	s.messages = slices.DeleteFunc(s.messages, func(x *Message) bool { return x == msg })
	return m{"channel": msg.Channel, "ts": msg.TS}
}

// history lists the messages of a channel or thread, newest first.
func (s *Server) history(a m, _ *http.Request) m {
	var list []m
	oldest, _ := strconv.ParseFloat(str(a["oldest"]), 64)
	for _, msg := range slices.Backward(s.messages) {
		if msg.Channel != str(a["channel"]) || msg.Only != "" || msg.Via == "response_url" {
			continue
		}
		if t := str(a["ts"]); t != "" && msg.Thread != t && msg.TS != t {
			continue
		}
		if at, _ := strconv.ParseFloat(msg.TS, 64); at < oldest {
			continue
		}
		x := m{"type": "message", "text": msg.Text, "ts": msg.TS, "thread_ts": msg.Thread, "blocks": msg.Blocks}
		if all := str(a["include_all_metadata"]); (all == "1" || all == "true") && msg.Metadata != nil {
			x["metadata"] = msg.Metadata
		}
		list = append(list, x)
	}
	for _, f := range s.files {
		at, _ := strconv.ParseFloat(f.TS, 64)
		if t := str(a["ts"]); f.Done && f.Channel == str(a["channel"]) && at >= oldest && (t == "" || f.Thread == t) {
			list = append(list, m{"type": "message", "text": "", "ts": f.TS, "thread_ts": f.Thread, "files": []any{m{"id": f.ID, "name": f.Name, "title": f.Title}}})
		}
	}
	return m{"messages": list, "has_more": false}
}

// openView opens a view. A trigger id is valid once, for three seconds.
func (s *Server) openView(a m, _ *http.Request) m {
	made, ok := s.triggers[str(a["trigger_id"])]
	if !ok {
		return m{"error": "invalid_trigger_id"}
	}
	delete(s.triggers, str(a["trigger_id"]))
	if time.Since(made) > 3*time.Second {
		return m{"error": "expired_trigger_id"}
	}
	v, ok := a["view"].(m)
	if !ok {
		return m{"error": "invalid_arguments"}
	}
	return m{"view": s.keepView(s.id("V"), v)}
}

func (s *Server) keepView(id string, v m) m {
	v["id"], v["hash"] = id, s.id("")
	s.views[id] = v
	return v
}

func (s *Server) updateView(a m, _ *http.Request) m {
	id := str(a["view_id"])
	if s.views[id] == nil {
		return m{"error": "not_found"}
	}
	v, ok := a["view"].(m)
	if !ok {
		return m{"error": "invalid_arguments"}
	}
	return m{"view": s.keepView(id, v)}
}

func (s *Server) publishView(a m, _ *http.Request) m {
	v, ok := a["view"].(m)
	if !ok || v["type"] != "home" {
		return m{"error": "invalid_arguments"}
	}
	s.homes[str(a["user_id"])] = v
	return m{"view": v}
}

func (s *Server) uploadURL(a m, r *http.Request) m {
	if n, _ := strconv.Atoi(str(a["length"])); n <= 0 || str(a["filename"]) == "" {
		return m{"error": "invalid_arguments"}
	}
	id := s.id("F")
	s.files[id] = &Stored{ID: id, Name: str(a["filename"])}
	return m{"file_id": id, "upload_url": addressOf(r) + "/upload/" + id}
}

func (s *Server) completeUpload(a m, _ *http.Request) m {
	list, _ := a["files"].([]any)
	var done []m
	for _, x := range list {
		f, _ := x.(m)
		st := s.files[str(f["id"])]
		if st == nil || st.Data == nil {
			return m{"error": "file_not_found"}
		}
		st.Title, st.Channel, st.Thread, st.Done = str(f["title"]), str(a["channel_id"]), str(a["thread_ts"]), true
		st.TS = s.ts()
		done = append(done, m{"id": st.ID, "title": st.Title})
	}
	return m{"files": done}
}

func (s *Server) fileInfo(a m, r *http.Request) m {
	st := s.files[str(a["file"])]
	if st == nil {
		return m{"error": "file_not_found"}
	}
	return m{"file": m{"id": st.ID, "name": st.Name, "size": len(st.Data), "url_private": addressOf(r) + "/files/" + st.ID}}
}

func oauthAccess(s *Server, a m, _ *http.Request) m {
	code := str(a["code"])
	if code == "" || code == "bad" {
		return m{"error": "invalid_code"}
	}
	return m{
		"access_token": "xoxb-of-" + code, "token_type": "bot", "scope": s.cfg.BotScopes, "bot_user_id": "UBOT", "app_id": "A1",
		"team": m{"id": "T-" + code, "name": "team " + code}, "authed_user": m{"id": "U1"},
	}
}

func (s *Server) serveUpload(w http.ResponseWriter, r *http.Request) {
	var data []byte
	if file, _, err := r.FormFile("file"); err == nil {
		data, _ = io.ReadAll(file)
	} else {
		data, _ = io.ReadAll(r.Body)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	st := s.files[r.PathValue("id")]
	if st == nil {
		http.NotFound(w, r)
		return
	}
	st.Data = data
	_, _ = io.WriteString(w, "OK - "+strconv.Itoa(len(data)))
}

// serveFile serves a file's content to requests with a bot token.
func (s *Server) serveFile(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	st := s.files[r.PathValue("id")]
	s.mu.Unlock()
	if st == nil || !strings.HasPrefix(r.Header.Get("Authorization"), "Bearer xoxb-") {
		http.NotFound(w, r)
		return
	}
	_, _ = w.Write(st.Data)
}

// serveResponse takes a message for a response_url, which accepts five messages within half an
// hour.
func (s *Server) serveResponse(w http.ResponseWriter, r *http.Request) {
	a := m{}
	_ = json.NewDecoder(r.Body).Decode(&a)
	s.mu.Lock()
	defer s.mu.Unlock()
	call := Call{Method: "response_url", Args: a, At: time.Now(), Answer: "ok"}
	defer func() { s.noteCall(call) }()
	f := s.fault("response_url")
	if f != nil && f.Reset != "after" {
		call.Answer = f.name()
		f.fail(w, r)
		return
	}
	u := s.responses[r.PathValue("id")]
	if u == nil || u.uses >= 5 || time.Since(u.made) > 30*time.Minute {
		call.Answer = "used_url"
		http.Error(w, "used_url", http.StatusNotFound)
		return
	}
	if a["blocks"] != nil {
		raw, _ := json.Marshal(a["blocks"])
		if call.Problems = CheckBlocks(raw, InMessage); len(call.Problems) > 0 {
			call.Answer = "invalid_blocks"
			http.Error(w, "invalid_blocks", http.StatusBadRequest)
			return
		}
	}
	u.uses++
	blocks, _ := a["blocks"].([]any)
	if a["replace_original"] == true && u.ts != "" {
		i := slices.IndexFunc(s.messages, func(x *Message) bool { return x.Channel == u.channel && x.TS == u.ts })
		if i >= 0 { // ephemeral messages too, which chat.update cannot edit
			msg := s.messages[i]
			msg.Text, msg.Blocks = str(a["text"]), blocks
			msg.Edits++
		}
	} else {
		msg := &Message{Channel: u.channel, TS: s.ts(), Thread: str(a["thread_ts"]), Text: str(a["text"]), Blocks: blocks, Via: "response_url"}
		if a["response_type"] != "in_channel" {
			msg.Only = u.user
		}
		s.addMessage(msg)
	}
	if f != nil {
		call.Answer = f.name()
		f.fail(w, r)
		return
	}
	_, _ = io.WriteString(w, "ok")
}
