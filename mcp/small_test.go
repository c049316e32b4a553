package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	sdk "github.com/mark3labs/mcp-go/mcp"
	sdkserver "github.com/mark3labs/mcp-go/server"
	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/ops/jobcontrol"
	"github.com/megatron-ops/megatron-ops/internal/ops/launch"
	"github.com/megatron-ops/megatron-ops/internal/ops/operations"
	"github.com/megatron-ops/megatron-ops/knowledge/rules"
	"github.com/megatron-ops/megatron-ops/mcp/shorten"
	"github.com/megatron-ops/megatron-ops/slurm"
)

// An error lists at most twenty of its faults, and no secret that Slurm or a job wrote into it.
func TestAnErrorIsBounded(t *testing.T) {
	e := &ops.Error{Message: lang.Same("no http://ada:hunter22@git"), Fix: lang.Same("not by http://ada:hunter22@git")}
	said := refusal(e)
	require.NotContains(t, said.Content[0].(sdk.TextContent).Text+string(said.StructuredContent.(json.RawMessage)), "hunter22")
	for range 25 {
		e.More = append(e.More, &ops.Error{Message: lang.Same("more")})
	}
	require.Len(t, cleanError(e).More, 20)
	require.Equal(t, 20, strings.Count(refusal(e).Content[0].(sdk.TextContent).Text, "more"), "in both forms")
}

// What was left out of the answer of a call that changes something is not had by calling
// it again.
func TestNobodySubmitsAgainToReadOn(t *testing.T) {
	o, ok := operations.Lookup("submit")
	require.True(t, ok)
	problem := rules.Problem{Message: strings.Repeat("x", 1000)}
	res, err := answer(o, launch.SubmitOut{Problems: slices.Repeat([]rules.Problem{problem}, 20)}, shorten.Limit{Bytes: defaultBudget}, "", "")
	require.NoError(t, err)
	said := string(res.StructuredContent.(json.RawMessage))
	require.Contains(t, said, "of 20 shown; plan shows all problems")
	require.NotContains(t, said, "cursor")
}

// A token confirms the call of one caller, once, for ten minutes.
func TestWhatATokenConfirms(t *testing.T) {
	o, ok := operations.Lookup("cancel")
	require.True(t, ok)
	in, mine := &jobcontrol.CancelIn{Job: "4711"}, ops.Caller{Surface: ops.MCPHTTP, ID: "agent", User: "alice"}
	now := time.Unix(1_800_000_000, 0)
	all := newTokens()
	all.now = func() time.Time { return now }
	token := all.issue(mine, digest(o, mine, in), "a1")
	for _, other := range []ops.Caller{{Surface: ops.MCP, ID: "agent", User: "alice"}, {Surface: ops.MCPHTTP, ID: "other", User: "alice"}, {Surface: ops.MCPHTTP, ID: "agent", User: "bob"}} {
		_, err := all.spend(token, digest(o, other, in))
		require.ErrorContains(t, err, "does not belong to this call", other)
	}
	start := now
	now = start.Add(tokenLife + time.Second)
	_, err := all.spend(token, digest(o, mine, in))
	require.ErrorContains(t, err, "older than 10 minutes")
	now = start.Add(tokenLife)
	agreed, err := all.spend(token, digest(o, mine, in))
	require.NoError(t, err)
	require.Equal(t, "a1", agreed)
	_, err = all.spend(token, digest(o, mine, in))
	require.ErrorContains(t, err, "used already")
	now = now.Add(2 * tokenLife)
	_ = all.issue(mine, digest(o, mine, in), "")
	require.Len(t, all.all, 1, "what nobody can bring any more is forgotten")

	jobs := strings.Repeat("+4711,4712", 50)
	token = all.issue(mine, digest(o, mine, in), jobs)
	require.Less(t, len(token), 100, "an agent repeats it")
	_, err = all.spend(token+"x", digest(o, mine, in))
	require.ErrorContains(t, err, "this server keeps no such confirmation")
	agreed, err = all.spend(token, digest(o, mine, in))
	require.NoError(t, err)
	require.Equal(t, jobs, agreed)

	first := all.issue(mine, digest(o, mine, in), "first")
	another := all.issue(ops.Caller{User: "bob"}, digest(o, mine, in), "another")
	for range mostTokens {
		token = all.issue(mine, digest(o, mine, in), "last")
	}
	require.Len(t, all.all, mostTokens+1, "one person's agents fill no memory")
	_, err = all.spend(first, digest(o, mine, in))
	require.ErrorContains(t, err, "more than 256 others were given out", "the call is the right one")
	for _, kept := range []string{token, another} {
		_, err = all.spend(kept, digest(o, mine, in))
		require.NoError(t, err)
	}
	now = now.Add(3 * tokenLife)
	_ = all.issue(mine, digest(o, mine, in), "")
	require.Len(t, all.own, 1, "nor do people who ask no more")
}

// A command is shown as a tool call only if the tool has all of its arguments.
func TestWhichArgumentsAToolTakes(t *testing.T) {
	o, ok := operations.Lookup("cancel")
	require.True(t, ok)
	for arguments, want := range map[string]bool{`{"job":"4711"}`: true, `{}`: true, `{"job":"4711","nosuch":1}`: false, `[]`: false} {
		require.Equal(t, want, takes(o, hint{Arguments: json.RawMessage(arguments)}), arguments)
	}
}

// An answer waits a moment if its call's notifications went to another stream of the
// session, and only then.
func TestAnAnswerComesAfterItsNotifications(t *testing.T) {
	for name, c := range map[string]struct {
		told, elsewhere bool
		want            time.Duration
	}{
		"by the answer's own stream": {told: true},
		"by another stream":          {told: true, elsewhere: true, want: otherStreamDelay},
		"those of another call":      {elsewhere: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d, own, other := newDelivery(), &messageWriter{}, &messageWriter{}
				by := func(is bool) *messageWriter {
					if is {
						return own
					}
					return other
				}
				answering := func(w *messageWriter) context.Context {
					return context.WithValue(context.WithValue(t.Context(), deliveryKey{}, d), writerKey{}, w)
				}
				Notified(answering(by(c.told)))
				d.wrote(1, by(!c.elsewhere))
				start := time.Now()
				awaitNotifications(answering(own))
				require.Equal(t, c.want, time.Since(start))
			})
		})
	}
}

// Of the errors that end a session's request, only a session that the caller does not
// have is "not found": a client would take any other 404 for the end of its session.
func TestOnlyAnUnknownSessionIsNotFound(t *testing.T) {
	known := newSessions()
	given := func() string {
		return known.ResolveSessionIdManager(httptest.NewRequest(http.MethodPost, "/", nil)).Generate()
	}
	mine := given()
	require.Equal(t, http.StatusOK, deleted(known, mine, false))
	require.Equal(t, http.StatusNotFound, deleted(known, mine, false), "it has ended")
	require.Equal(t, http.StatusNotFound, deleted(known, "", false), "none is named")
	require.Equal(t, http.StatusInternalServerError, deleted(known, given(), true), "a fault of ours")
}

// Nobody uses another caller's session, nor the same person by a token with other rights.
func TestASessionIsItsCallers(t *testing.T) {
	known := newSessions()
	by := func(who ops.Caller) sdkserver.SessionIdManager {
		r := httptest.NewRequest(http.MethodPost, "/", nil)
		return known.ResolveSessionIdManager(r.WithContext(withGrant(r.Context(), Grant{Caller: who})))
	}
	mine := ops.Caller{ID: "agent", User: "alice"}
	id := by(mine).Generate()
	_, err := by(mine).Validate(id)
	require.NoError(t, err)
	for _, other := range []ops.Caller{{ID: "other", User: "alice"}, {ID: "agent", User: "bob"}, {ID: "agent", User: "alice", ReadOnly: true}} {
		_, err = by(other).Validate(id)
		require.ErrorIs(t, err, errNoSession, other)
	}
}

// deleted returns the status of a request that ends a session, as the library answers
// it.
func deleted(known *sessions, session string, fails bool) int {
	answer := httptest.NewRecorder()
	rewriteAnswers(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, err := known.ResolveSessionIdManager(r).Terminate(session); err != nil || fails {
			w.WriteHeader(http.StatusInternalServerError)
			return
		}
		w.WriteHeader(http.StatusOK)
	})).ServeHTTP(answer, httptest.NewRequest(http.MethodDelete, "/", nil))
	return answer.Code
}

// What an operation had found when it failed is reported with the failure; a refused
// operation has found nothing.
func TestWhatAFailureHadFound(t *testing.T) {
	o, ok := operations.Lookup("list")
	require.True(t, ok)
	found := jobcontrol.ListOut{Jobs: []slurm.Job{{ID: "4711", Name: "gpt"}}}
	for name, c := range map[string]struct {
		out  any
		code ops.Code
		part bool
	}{
		"on its way":     {found, ops.Failed, true},
		"with nothing":   {jobcontrol.ListOut{}, ops.Failed, false},
		"without a word": {nil, ops.Failed, false},
		"refused":        {found, ops.NotAllowed, false},
	} {
		res, err := (&Server{}).failed(o, c.out, &ops.Error{Code: c.code, Message: lang.Same("the accounts are away")}, "")
		require.NoError(t, err, name)
		text, err := json.Marshal(res)
		require.NoError(t, err)
		require.Contains(t, string(text), "the accounts are away", name)
		require.Equal(t, c.part, bytes.Contains(text, []byte("4711")), name)
	}
	_, err := (&Server{}).failed(o, found, context.Canceled, "")
	require.ErrorIs(t, err, context.Canceled, "who hung up is told nothing")
}
