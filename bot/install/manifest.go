package install

import (
	"encoding/json"
	"strings"

	"github.com/megatron-ops/megatron-ops/bot/incoming"
	"github.com/megatron-ops/megatron-ops/bot/people"
	"github.com/megatron-ops/megatron-ops/internal/lang"
)

// A Scope is one scope of the bot token, and the reason why the app asks for it.
type Scope struct {
	Name string
	Why  string
	// For lists the methods and events that need the scope, and what else needs it, such as a
	// command or a file's URL.
	For  []string
	when func(people.Policy) bool // nil: always needed
}

// scopeTable holds every scope that the app may ask for. The app asks for no scope that the
// code does not use. The tests' Slack server refuses a call without its scope.
var scopeTable = []Scope{
	{Name: "app_mentions:read", Why: "to hear when somebody mentions the bot", For: []string{"app_mention"}},
	{Name: "assistant:write", Why: "to suggest questions", For: []string{"assistant.threads.setSuggestedPrompts"}},
	{Name: "channels:history", Why: "to find a message of our own again when Slack's answer was lost, instead of posting it twice", For: []string{"conversations.history", "conversations.replies"}},
	{Name: "chat:write", Why: "to post answers and job cards, to keep cards up to date, to show a model's answer while it is worded, and what is being worked on", For: []string{"assistant.threads.setStatus", "chat.postMessage", "chat.postEphemeral", "chat.update", "chat.startStream", "chat.appendStream", "chat.stopStream", "chat.delete"}},
	{Name: "commands", Why: "for /megatron and the shortcuts", For: []string{"/megatron"}},
	{Name: "files:read", Why: "to read a log or script that somebody gives the bot", For: []string{"url_private"}},
	{Name: "files:write", Why: "to attach scripts, logs and loss curves", For: []string{"files.getUploadURLExternal", "files.completeUploadExternal"}},
	{Name: "groups:history", Why: "as channels:history, in private channels that the bot was invited to", For: []string{"conversations.history", "conversations.replies"}},
	{Name: "im:history", Why: "to read what people write to the bot directly", For: []string{"message.im"}},
	{Name: "im:write", Why: "to send private files as a direct message", For: []string{"conversations.open"}},
	{Name: "links:read", Why: "to hear of links to jobs", For: []string{"link_shared"}, when: func(p people.Policy) bool { return p.LinkDomain != "" }},
	{Name: "links:write", Why: "to show a job below a link to it", For: []string{"chat.unfurl"}, when: func(p people.Policy) bool { return p.LinkDomain != "" }},
	{Name: "channels:read", Why: "to know who is in a channel that the policy or somebody's script names", For: []string{"conversations.members", "users.conversations"}},
	{Name: "groups:read", Why: "as channels:read, of private channels that the bot was invited to", For: []string{"conversations.members", "users.conversations"}},
	{Name: "usergroups:read", Why: "to know who is in a user group that the policy names", For: []string{"usergroups.users.list"}, when: func(p people.Policy) bool { return p.NamesGroup() }},
}

// scopesFor returns the scopes that the bot token needs under a policy.
func scopesFor(p people.Policy) (all []Scope) {
	for _, s := range scopeTable {
		if s.when == nil || s.when(p) {
			all = append(all, s)
		}
	}
	return all
}

// Scopes returns the names of those scopes.
func Scopes(p people.Policy) (names []string) {
	for _, s := range scopesFor(p) {
		names = append(names, s.Name)
	}
	return names
}

// The callback ids of the shortcuts.
const (
	CallDiagnose = "diagnose_message"
	CallLint     = "lint_message"
	CallSubmit   = "submit_job"
)

// ManifestOptions say how Slack reaches the app.
type ManifestOptions struct {
	// URL is this server's address as Slack reaches it, such as https://ops.example.com; it is
	// empty for Socket Mode.
	URL    string
	Policy people.Policy
	// Install is the address where workspaces install the app themselves; it is empty where
	// they do not.
	Install string
}

// object is an alias that keeps the manifest readable.
type object = map[string]any

// Manifest returns the app's manifest as JSON, to paste at api.slack.com/apps or to pass to
// apps.manifest.create.
func Manifest(o ManifestOptions) ([]byte, error) {
	url := strings.TrimSuffix(o.URL, "/")
	command := object{
		"command": "/megatron", "description": "Megatron-LM jobs on Slurm",
		"usage_hint": "help | submit | status JOB | diagnose JOB | ask …", "should_escape": false,
	}
	interactivity := object{"is_enabled": true}
	events := object{"bot_events": incoming.Events(o.Policy.LinkDomain != "")}
	settings := object{
		"interactivity": interactivity, "event_subscriptions": events,
		"org_deploy_enabled": false, "socket_mode_enabled": url == "", "token_rotation_enabled": false,
	}
	if url != "" {
		command["url"] = url + "/slack/commands"
		interactivity["request_url"] = url + "/slack/interactions"
		events["request_url"] = url + "/slack/events"
	}
	features := object{
		"app_home":       object{"home_tab_enabled": true, "messages_tab_enabled": true, "messages_tab_read_only_enabled": false},
		"bot_user":       object{"display_name": "megatron", "always_online": true},
		"slash_commands": []any{command},
		"shortcuts": []any{
			object{"name": "Diagnose this", "type": "message", "callback_id": CallDiagnose, "description": "Find the root cause in this error or log"},
			object{"name": "Lint this script", "type": "message", "callback_id": CallLint, "description": "Check this sbatch script or job"},
			object{"name": "Submit a Megatron job", "type": "global", "callback_id": CallSubmit, "description": "Plan, check and submit a training job"},
		},
		"agent_view": object{"agent_description": "Plans, submits, watches and diagnoses Megatron-LM jobs on Slurm.", "suggested_prompts": suggested()},
	}
	if d := o.Policy.LinkDomain; d != "" {
		features["unfurl_domains"] = []string{d}
	}
	oauth := object{"scopes": object{"bot": Scopes(o.Policy)}}
	if o.Install != "" {
		oauth["redirect_urls"] = []string{strings.TrimSuffix(o.Install, "/") + "/slack/oauth"}
	}
	return json.MarshalIndent(object{
		"_metadata":           object{"major_version": 1, "minor_version": 1},
		"display_information": object{"name": "megatron-ops", "description": "Plan, submit, watch and diagnose Megatron-LM jobs on Slurm", "background_color": "#1d2b1f"},
		"features":            features, "oauth_config": oauth, "settings": settings,
	}, "", "  ")
}

func suggested() []any {
	var list []any
	for _, p := range Prompts {
		list = append(list, object{"title": p.Title.EN, "message": p.Text.EN})
	}
	return list
}

// A Prompt is a question that is suggested where a conversation starts.
type Prompt struct{ Title, Text lang.Text }

// Prompts are the suggested questions.
var Prompts = []Prompt{
	{lang.Text{EN: "Why did my last job fail?", ZH: "我的上一个作业为什么失败？"}, lang.Text{EN: "diagnose my last job", ZH: "诊断我的上一个作业"}},
	{lang.Text{EN: "What is running?", ZH: "现在有哪些作业？"}, lang.Text{EN: "list", ZH: "列表"}},
	{
		lang.Text{EN: "CUDA_DEVICE_MAX_CONNECTIONS on H100", ZH: "H100 上的 CUDA_DEVICE_MAX_CONNECTIONS"},
		lang.Text{EN: "What should CUDA_DEVICE_MAX_CONNECTIONS be on H100 with TP=8?", ZH: "H100 上 TP=8 时 CUDA_DEVICE_MAX_CONNECTIONS 应设为多少？"},
	},
	{
		lang.Text{EN: "How do I submit a two-node run?", ZH: "怎样提交两节点训练？"},
		lang.Text{EN: "How do I submit a GPT pretraining run on two nodes?", ZH: "怎样在两个节点上提交 GPT 预训练？"},
	},
}
