package mcp_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/internal/consent"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/knowledge"
	"github.com/megatron-ops/megatron-ops/mcp"
	"github.com/megatron-ops/megatron-ops/slurm"
)

// streamingModel returns a model that answers sentence by sentence, one for each
// sentence sent to next, and closes gone when its reader has gone.
func streamingModel(t *testing.T) (m *knowledge.Model, next chan string, gone chan struct{}) {
	t.Helper()
	next, gone = make(chan string), make(chan struct{})
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for {
			select {
			case s, more := <-next:
				if !more {
					fmt.Fprint(w, "data: [DONE]\n\n")
					return
				}
				fmt.Fprintf(w, "data: {\"choices\":[{\"delta\":{\"content\":%q}}]}\n\n", s)
				w.(http.Flusher).Flush()
			case <-r.Context().Done():
				close(gone)
				return
			}
		}
	}))
	t.Cleanup(srv.Close)
	return &knowledge.Model{BaseURL: srv.URL, Key: "k", Name: "m"}, next, gone
}

func askingModel(t *testing.T, m *knowledge.Model) *conversation {
	t.Helper()
	cfg, _ := config(t, newSite())
	svc, err := cfg.Service()
	require.NoError(t, err)
	a := knowledge.New(knowledge.Options{Model: m})
	svc.Answerer = func() *knowledge.Answerer { return a }
	conv := converse(t, cfg)
	conv.send(hello)
	conv.read()
	conv.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	conv.send(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"ask","arguments":{"question":"how do I set MASTER_ADDR on Slurm?"},` +
		`"_meta":{"progressToken":"p"}}}`)
	return conv
}

// The text of a model is reported while the model writes it, and the answer contains
// all of it.
func TestAStreamedAnswerIsToldAsProgress(t *testing.T) {
	m, next, _ := streamingModel(t)
	conv := askingModel(t, m)
	last := 0.0
	told := func(want string) {
		t.Helper()
		p := conv.read()["params"].(map[string]any)
		require.Equal(t, "p", p["progressToken"])
		require.Contains(t, p["message"], want)
		require.Greater(t, p["progress"].(float64), last)
		last = p["progress"].(float64)
	}
	next <- "Take the first host of the allocation. "
	next <- "It "
	told("Take the first host of the allocation.")
	next <- "comes from the node list [1]. "
	next <- "That is all."
	told("It comes from the node list [1].")
	close(next)
	told("That is all.")
	answer := conv.read()
	require.EqualValues(t, 2, answer["id"])
	res := answer["result"].(map[string]any)
	text := res["content"].([]any)[0].(map[string]any)["text"]
	require.Contains(t, text, "Take the first host of the allocation. It comes from the node list [1]. That is all.")
	require.Contains(t, res["structuredContent"].(map[string]any)["answer"], "That is all.")
	conv.close()
}

func TestAStreamedAnswerCanBeCancelled(t *testing.T) {
	m, next, gone := streamingModel(t)
	conv := askingModel(t, m)
	next <- "Take the first host of the allocation. "
	next <- "It "
	conv.read()
	conv.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2,"reason":"test"}}`)
	select {
	case <-gone:
	case <-time.After(10 * time.Second):
		require.Fail(t, "the model is still read")
	}
	conv.send(`{"jsonrpc":"2.0","id":3,"method":"ping"}`)
	for m := conv.read(); fmt.Sprint(m["id"]) != "3"; m = conv.read() {
		require.NotEqualValues(t, 2, m["id"], "a cancelled call is not answered")
	}
	conv.close()
}

// Waiting for a file reports the job's progress, ends with the file, and ends at once
// when it is cancelled.
func TestAWaitForAFileTellsItsProgressAndEnds(t *testing.T) {
	for _, cancel := range []bool{false, true} {
		waitForAFile(t, t.TempDir(), cancel)
	}
}

func waitForAFile(t *testing.T, dir string, cancel bool) {
	s, conv, _ := converseLocally(t)
	limit := int64(7200)
	s.set("4711", func(j *slurm.Job) { j.WorkDir, j.TimeLimitS, j.ElapsedS = dir, &limit, 60 })
	conv.send(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"wait","arguments":{"job":"4711","artifact":"done.json"},` +
		`"_meta":{"progressToken":"p"}}}`)
	last := -1.0
	for _, state := range []slurm.State{slurm.Running, slurm.State("SUSPENDED"), slurm.Running} {
		s.set("4711", func(j *slurm.Job) { j.State = state })
		m := conv.read()
		require.Equal(t, "notifications/progress", m["method"], m)
		p := m["params"].(map[string]any)
		require.Greater(t, p["progress"], last, "progress goes on")
		require.EqualValues(t, 7200, p["total"], "of the time limit")
		require.Equal(t, string(state), p["message"], "what is new is told, and nothing again and again")
		last = p["progress"].(float64)
	}
	if cancel {
		conv.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}`)
		conv.send(`{"jsonrpc":"2.0","id":3,"method":"ping"}`)
		for m := conv.read(); fmt.Sprint(m["id"]) != "3"; m = conv.read() {
			require.NotEqualValues(t, 2, m["id"], "a cancelled call is not answered")
		}
		conv.close()
		return
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, "done.json"), []byte("{}"), 0o600))
	m := conv.read()
	for m["method"] != nil {
		m = conv.read()
	}
	out := m["result"].(map[string]any)["structuredContent"].(map[string]any)
	require.Contains(t, out["artifact"], "done.json")
	require.InDelta(t, 1.5, out["seen_within_s"], 0.01)
	conv.close()
}

// slowNodes is a site whose node checks run until they are cancelled.
type slowNodes struct {
	*site
	began, ended chan struct{}
}

func (v slowNodes) Nodes(context.Context) ([]slurm.Node, error) {
	return []slurm.Node{{Name: "gpu01", State: "IDLE", GPUs: 8}}, nil
}

func (v slowNodes) Partitions(context.Context) ([]slurm.Partition, error) { return nil, nil }

func (v slowNodes) Visit(ctx context.Context, _ slurm.Visit) (string, error) {
	close(v.began)
	<-ctx.Done()
	close(v.ended)
	return "", ctx.Err()
}

// A test of nodes, which takes minutes, reports that it continues, and leaves the nodes
// when it is cancelled.
func TestATestOfNodesTellsThatItGoesOnAndCanBeCancelled(t *testing.T) {
	v := slowNodes{newSite(), make(chan struct{}), make(chan struct{})}
	cfg, _ := config(t, v.site)
	svc, err := cfg.Service()
	require.NoError(t, err)
	svc.Clusters["test"] = v
	cfg.Policy = func() mcp.Policy {
		return mcp.Policy{
			Approve: func(_ context.Context, call *ops.Call, _ any, _ consent.Request) (bool, error) {
				call.Confirmed = true
				return true, nil
			},
			ApproveAll: true,
		}
	}
	cfg.Caller.Operator = true
	conv := converse(t, cfg)
	conv.send(hello)
	conv.read()
	conv.send(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"nodecheck","arguments":{"nodes":"gpu01"},"_meta":{"progressToken":"p"}}}`)
	m := conv.read()
	require.Equal(t, "notifications/progress", m["method"], m)
	require.Contains(t, m["params"].(map[string]any)["message"], "nodes test themselves")
	<-v.began
	conv.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}`)
	select {
	case <-v.ended:
	case <-time.After(10 * time.Second):
		require.Fail(t, "the nodes are still held")
	}
	conv.close()
}
