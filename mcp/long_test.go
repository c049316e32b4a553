package mcp_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/mcp"
	"github.com/megatron-ops/megatron-ops/slurm"
)

// localSite is newSite as the embedded back end, which may be polled several times a
// second.
type localSite struct{ *site }

func (localSite) Kind() string { return "local" }

func (localSite) AskEvery() time.Duration { return 5 * time.Millisecond }

func converseLocally(t *testing.T) (*site, *conversation, callLog) {
	t.Helper()
	s := newSite()
	cfg, _ := config(t, s)
	calls := logCalls(&cfg)
	svc, err := cfg.Service()
	require.NoError(t, err)
	svc.Clusters["test"] = localSite{s}
	conv := converse(t, cfg)
	conv.send(hello)
	conv.read()
	conv.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	return s, conv, calls
}

func TestAWaitTellsItsProgress(t *testing.T) {
	s, conv, _ := converseLocally(t)
	conv.send(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"wait","arguments":{"job":"4711"},"_meta":{"progressToken":"p"}}}`)
	for _, state := range []slurm.State{slurm.Running, slurm.State("SUSPENDED")} {
		s.set("4711", func(j *slurm.Job) { j.State = state })
		m := conv.read()
		require.Equal(t, "notifications/progress", m["method"])
		require.Equal(t, "p", m["params"].(map[string]any)["progressToken"])
	}
	s.set("4711", func(j *slurm.Job) { j.State = slurm.Completed })
	last := conv.read()
	for last["method"] != nil {
		last = conv.read()
	}
	require.EqualValues(t, 2, last["id"])
	require.Equal(t, "COMPLETED", last["result"].(map[string]any)["structuredContent"].(map[string]any)["state"])
	conv.close()
}

func TestAWaitCanBeCancelled(t *testing.T) {
	_, conv, calls := converseLocally(t)
	conv.send(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"wait","arguments":{"job":"4711"},"_meta":{"progressToken":"p"}}}`)
	conv.read() // it waits
	conv.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2,"reason":"test"}}`)
	conv.send(`{"jsonrpc":"2.0","id":3,"method":"ping"}`)
	for m := conv.read(); fmt.Sprint(m["id"]) != "3"; m = conv.read() {
		require.NotEqualValues(t, 2, m["id"], "a cancelled call is not answered")
	}
	conv.close()              // nothing is left running
	calls.awaitEnd(t, "wait") // which is no error of the server
}

func TestAWaitCanBeATask(t *testing.T) {
	s, conv, _ := converseLocally(t)
	conv.send(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"wait","arguments":{"job":"4711"},"task":{"ttl":60000}}}`)
	created := conv.read()
	task := created["result"].(map[string]any)["task"].(map[string]any)
	require.Equal(t, "working", task["status"])
	s.set("4711", func(j *slurm.Job) { j.State = slurm.Failed })
	conv.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":3,"method":"tasks/result","params":{"taskId":%q}}`, task["taskId"]))
	last := conv.read()
	for fmt.Sprint(last["id"]) != "3" {
		last = conv.read()
	}
	raw, err := json.Marshal(last)
	require.NoError(t, err)
	require.Contains(t, string(raw), `"FAILED"`)
	conv.close()
}

func TestATaskCanBeCancelled(t *testing.T) {
	s, conv, calls := converseLocally(t)
	conv.send(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"wait","arguments":{"job":"4711"},"task":{}}}`)
	task := conv.read()["result"].(map[string]any)["task"].(map[string]any)
	require.Eventually(t, func() bool { return s.asked() > 2 }, 5*time.Second, 10*time.Millisecond, "it waits on, its request answered")
	conv.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":3,"method":"tasks/cancel","params":{"taskId":%q}}`, task["taskId"]))
	last := conv.read()
	for fmt.Sprint(last["id"]) != "3" {
		last = conv.read()
	}
	calls.awaitEnd(t, "wait")
	conv.close()
}

// The processor time of a process that answers initialize and ends, and the memory that it
// uses by then. The log has the numbers, and the time on the clock, which a busy machine makes longer.
func TestTheBinaryStartsAtOnce(t *testing.T) {
	if testing.Short() {
		t.Skip("builds the binary; not with -short")
	}
	bin, err := built()
	require.NoError(t, err, bin)
	best, clock, rss := time.Hour, time.Hour, 0
	for range 10 {
		cmd := exec.Command(bin, "mcp")
		cmd.Env = append(os.Environ(), "MEGATRON_OPS_STATE_DIR="+t.TempDir())
		in, err := cmd.StdinPipe()
		require.NoError(t, err)
		out, err := cmd.StdoutPipe()
		require.NoError(t, err)
		start := time.Now()
		require.NoError(t, cmd.Start())
		fmt.Fprintln(in, hello)
		line, err := bufio.NewReader(out).ReadString('\n')
		clock = min(clock, time.Since(start))
		require.NoError(t, err)
		require.Contains(t, line, "megatron-ops")
		rss = max(rss, residentKB(t, cmd.Process.Pid))
		require.NoError(t, in.Close())
		require.NoError(t, cmd.Wait())
		best = min(best, cmd.ProcessState.UserTime()+cmd.ProcessState.SystemTime())
	}
	t.Logf("%v of processor time, and %v from exec to initialize, at best of 10; %d MB resident at most", best, clock.Round(time.Millisecond/10), rss>>10)
	require.Less(t, best, 250*time.Millisecond)
	require.Less(t, rss, 60<<10)
}

func residentKB(t *testing.T, pid int) int {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "status"))
	require.NoError(t, err)
	m := regexp.MustCompile(`VmHWM:\s+(\d+) kB`).FindSubmatch(raw)
	require.NotNil(t, m)
	kb, err := strconv.Atoi(string(m[1]))
	require.NoError(t, err)
	return kb
}

func TestAThousandSessionsAtOnce(t *testing.T) {
	s := newSite()
	cfg, _ := config(t, s)
	url := serve(t, cfg, mcp.HTTP{Tokens: map[string]ops.Caller{"t": alice}})
	start := time.Now()
	var wg sync.WaitGroup
	open := make(chan struct{}, 64) // sockets of this machine, not sessions
	sessions := 1000
	if testing.Short() {
		sessions = 200 // some three times what is open at a time
	}
	clients := make([]*client, sessions)
	each := func(f func(i int)) {
		for i := range clients {
			open <- struct{}{}
			wg.Go(func() {
				defer func() { <-open }() // also where f fails
				f(i)
			})
		}
		wg.Wait()
	}
	each(func(i int) { clients[i] = connect(t, url, map[string]string{"Authorization": "Bearer t"}) })
	each(func(i int) {
		r := clients[i].do("status", `{"job":"4711"}`)
		require.Equal(t, "RUNNING", r.Structured["state"])
	})
	ids := map[string]bool{}
	for _, c := range clients {
		ids[c.session] = true
	}
	require.Len(t, ids, sessions)
	t.Logf("%d sessions opened and used in %v", sessions, time.Since(start).Round(time.Millisecond))
}

func TestNoLeakOver100000Calls(t *testing.T) {
	if testing.Short() {
		t.Skip("takes half a minute; not with -short")
	}
	cfg, _ := config(t, newSite())
	cfg.CallsPerMinute = 1 << 30
	s, err := mcp.NewServer(cfg)
	require.NoError(t, err)
	handler, stop := s.HTTPHandler(mcp.HTTP{Tokens: map[string]ops.Caller{readerToken: {ID: "reader"}}})
	defer stop()
	post := func(session, body string) *httptest.ResponseRecorder {
		req := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "http://localhost/mcp", bytes.NewReader([]byte(body)))
		req.RemoteAddr = "127.0.0.1:1"
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Mcp-Session-Id", session)
		req.Header.Set("Authorization", "Bearer "+readerToken)
		rec := httptest.NewRecorder()
		handler.ServeHTTP(rec, req)
		return rec
	}
	session := post("", hello).Header().Get("Mcp-Session-Id")
	call := `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"status","arguments":{"job":"4711"}}}`
	calls := func(n int) {
		for range n {
			if body := post(session, call).Body.String(); !strings.Contains(body, "RUNNING") {
				t.Fatal(body)
			}
		}
	}
	heap := func() (bytes uint64, goroutines int) {
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc, runtime.NumGoroutine()
	}
	calls(5000)
	before, routines := heap()
	calls(95000)
	after, left := heap()
	t.Logf("heap %d KB before, %d KB after 95,000 more calls; goroutines %d and %d", before>>10, after>>10, routines, left)
	require.Less(t, after, before+2<<20)
	require.LessOrEqual(t, left, routines+5)
}
