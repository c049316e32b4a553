package bot

import (
	"encoding/json"
	"net/url"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/bot/incoming"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/ops/operations"
	"github.com/megatron-ops/megatron-ops/internal/store"
	"github.com/megatron-ops/megatron-ops/slurm"
)

// A file is fetched with the bot's token from where Slack keeps files, and from nowhere else.
func TestFilesComeFromSlackAlone(t *testing.T) {
	stand, err := url.Parse("http://127.0.0.1:8080/api/")
	require.NoError(t, err)
	for _, c := range []struct {
		address string
		api     *url.URL
		want    bool
	}{
		{"https://files.slack.com/files-pri/T1-F1/a.log", nil, true},
		{"https://files.slack-gov.com/files-pri/T1-F1/a.log", nil, true},
		{"http://files.slack.com/files-pri/T1-F1/a.log", nil, false},
		{"https://files.slack.com.evil.example/a.log", nil, false},
		{"https://me@files.slack.com/a.log", nil, false},
		{"https://evil.example/a.log", nil, false},
		{"http://127.0.0.1:8080/a.log", nil, false},
		{"http://127.0.0.1:8080/a.log", stand, true},
		{"https://127.0.0.1:8080/a.log", stand, false},
		{"http://127.0.0.1:8081/a.log", stand, false},
	} {
		u, err := url.Parse(c.address)
		require.NoError(t, err)
		require.Equal(t, c.want, (&Bot{api: c.api}).fileHost(u), c.address)
	}
}

// A policy of channels applies to operations that change something there; people of other
// workspaces may only ask.
func TestWhatAPlaceAllows(t *testing.T) {
	op := func(name string) ops.Op {
		o, ok := operations.Lookup(name)
		require.True(t, ok, name)
		return o
	}
	for name, c := range map[string]struct {
		open []string
		a    incoming.Ask
		op   string
		want bool
	}{
		"everywhere":               {nil, incoming.Ask{Channel: "C2"}, "cancel", true},
		"its channel":              {[]string{"C1"}, incoming.Ask{Channel: "C1"}, "cancel", true},
		"another channel":          {[]string{"C1"}, incoming.Ask{Channel: "C2"}, "cancel", false},
		"reading there":            {[]string{"C1"}, incoming.Ask{Channel: "C2"}, "list", true},
		"directly":                 {[]string{"C1"}, incoming.Ask{Channel: "D1", Direct: true}, "cancel", true},
		"a page":                   {[]string{"C1"}, incoming.Ask{}, "cancel", true},
		"a question of a stranger": {nil, incoming.Ask{Foreign: true}, "ask", true},
		"a stranger":               {nil, incoming.Ask{Foreign: true}, "list", false},
	} {
		b := &Bot{cfg: Config{Policy: Policy{Channels: c.open}}}
		require.Equal(t, c.want, b.mayHere(c.a, op(c.op)) == nil, name)
	}
}

// A job's specification is shown to its owner, and to operators who are users of the cluster.
func TestWhoMayBeginWithAJobsSpecification(t *testing.T) {
	st, err := store.Open(t.Context(), filepath.Join(t.TempDir(), "state.db"))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, st.Close()) })
	sub := store.Submission{Key: "k", Token: "t", Cluster: "yard", Owner: "ada", Name: "gpt", Spec: json.RawMessage(`{"nodes":2}`), CreatedAt: noon}
	_, _, err = st.Begin(t.Context(), sub)
	require.NoError(t, err)
	require.NoError(t, st.Finish(t.Context(), sub.Key, store.Submitted, "4711", "", noon))
	for _, c := range []struct {
		who  ops.Caller
		job  slurm.JobID
		want ops.Code
	}{
		{ops.Caller{User: "ada"}, "4711", ""},
		{ops.Caller{User: "olga", Operator: true}, "4711", ""},
		{ops.Caller{User: "grace"}, "4711", ops.NotAllowed},
		{ops.Caller{Operator: true}, "4711", ops.NotAllowed},
		{ops.Caller{User: "ada"}, "4712", ops.NotFound},
	} {
		call := &ops.Call{Service: &ops.Service{Now: func() time.Time { return noon }, Store: func() (*store.Store, error) { return st, nil }}, Who: c.who}
		spec, refused := (&Bot{}).specOfJob(t.Context(), call, "yard", c.job)
		if c.want != "" {
			require.Equal(t, c.want, refused.Code, c.who)
			continue
		}
		require.Nil(t, refused, c.who)
		require.EqualValues(t, 2, spec["nodes"])
	}
}
