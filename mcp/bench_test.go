package mcp_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	sdk "github.com/mark3labs/mcp-go/mcp"
	sdkserver "github.com/mark3labs/mcp-go/server"
	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/ops/launch"
	"github.com/megatron-ops/megatron-ops/internal/ops/operations"
	"github.com/megatron-ops/megatron-ops/internal/store"
	"github.com/megatron-ops/megatron-ops/internal/view"
	"github.com/megatron-ops/megatron-ops/mcp"
)

var planCall = `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"plan","arguments":{"spec":` + goodSpec + `}}}`

// bare is a server as one would write it by hand with the library alone: a typed
// handler that calls the same operation and answers with its output, as structure and
// as the same text, plus more if ours says more.
func bare(b testing.TB, svc *ops.Service, more *string) *sdkserver.MCPServer {
	b.Helper()
	plan, ok := operations.Lookup("plan")
	require.True(b, ok)
	s := sdkserver.NewMCPServer("bare", "1", sdkserver.WithToolCapabilities(true))
	schema, err := plan.InputSchema().MarshalJSON()
	require.NoError(b, err)
	s.AddTool(sdk.NewToolWithRawSchema("plan", "plan", schema), func(ctx context.Context, req sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		var in launch.PlanIn
		if err := req.BindArguments(&in); err != nil {
			return nil, err
		}
		out, err := plan.Run(ctx, &ops.Call{Service: svc, Who: alice}, &in)
		if err != nil {
			return nil, err
		}
		return sdk.NewToolResultStructured(out, view.Markdown(out.(launch.PlanOut).View(lang.EN))+*more), nil
	})
	return s
}

// connected serves handler and returns a session that may write.
func connected(b testing.TB, handler http.Handler) *client {
	srv := httptest.NewServer(handler)
	b.Cleanup(srv.Close)
	c := &client{t: b, url: srv.URL + "/mcp", header: map[string]string{"Authorization": "Bearer t"}}
	res, _ := c.post(hello)
	c.session = res.Header.Get("Mcp-Session-Id")
	return c
}

// A comparison is two servers that run the same calls of plan over HTTP: a bare one of
// the library alone, and ours with everything that surrounds a call here. Both read the same arguments, apply the same rules, answer with the same
// values as structured content and as text, in as many bytes, and keep streams
// that can resume.
type comparison struct{ bare, ours *client }

func newComparison(b testing.TB) comparison {
	st, err := store.Open(b.Context(), b.TempDir()+"/state.db")
	require.NoError(b, err)
	b.Cleanup(func() { st.Close() })
	svc := &ops.Service{
		Clusters: map[string]ops.Cluster{"test": newSite()}, Default: "test",
		Store: func() (*store.Store, error) { return st, nil },
	}
	s, err := mcp.NewServer(mcp.Config{Service: func() (*ops.Service, error) { return svc, nil }, Caller: alice})
	require.NoError(b, err)
	handler, stop := s.HTTPHandler(mcp.HTTP{Tokens: map[string]ops.Caller{"t": alice}})
	b.Cleanup(stop)
	more := ""
	lib := sdkserver.NewStreamableHTTPServer(bare(b, svc, &more), sdkserver.WithEventStore(sdkserver.NewInMemoryEventStore()))
	r := comparison{connected(b, lib), connected(b, handler)}
	_, short := r.bare.post(planCall)
	_, long := r.ours.post(planCall)
	more = strings.Repeat(".", len(long)-len(short)) // for the token, which ours offers
	_, short = r.bare.post(planCall)
	require.Len(b, short, len(long))
	return r
}

// A measurement is the performance of one server over a number of calls.
type measurement struct {
	perSecond float64 // calls in a second of processor time, a client's share included
	bytes     float64 // allocated for a call, a client's share included
}

// measure lets c's server answer 100 calls. It counts processor time, which other load
// on the machine does not change, and starts with a clean heap, so that no server
// collects the other's garbage.
func measure(b testing.TB, c *client) measurement {
	const calls = 100
	runtime.GC()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	start := processorTime(b)
	for range calls {
		res, body := c.post(planCall)
		if res.StatusCode != http.StatusOK || strings.Contains(body, `"isError":true`) {
			b.Fatal(body)
		}
	}
	took := processorTime(b) - start
	runtime.ReadMemStats(&after)
	return measurement{calls / took.Seconds(), float64(after.TotalAlloc-before.TotalAlloc) / calls}
}

// processorTime is the processor time that this process has used so far.
func processorTime(b testing.TB) time.Duration {
	var u syscall.Rusage
	require.NoError(b, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// An outcome is the medians of a comparison: of each server's measurements, and of the
// ratio of ours to the bare one's in the same round.
type outcome struct {
	bare, ours measurement
	share      float64 // of the bare server's calls per second, in percent
}

// run measures both in turns, so that both meet the same load of the machine.
func (r comparison) run(b testing.TB, rounds int) outcome {
	var bare, ours, share []float64
	var memory [2][]float64
	for i := range rounds {
		var t [2]measurement
		first := i % 2
		for _, who := range []int{first, 1 - first} {
			t[who] = measure(b, []*client{r.bare, r.ours}[who])
			memory[who] = append(memory[who], t[who].bytes)
		}
		bare, ours = append(bare, t[0].perSecond), append(ours, t[1].perSecond)
		share = append(share, 100*t[1].perSecond/t[0].perSecond)
	}
	median := func(f []float64) float64 { slices.Sort(f); return f[len(f)/2] }
	return outcome{measurement{median(bare), median(memory[0])}, measurement{median(ours), median(memory[1])}, median(share)}
}

// BenchmarkPlan reports how many calls of plan per second ours answers compared with
// the bare server, and how much memory a call allocates.
func BenchmarkPlan(b *testing.B) {
	r := newComparison(b)
	r.run(b, 4)
	for b.Loop() {
		res := r.run(b, 161)
		b.ReportMetric(res.bare.perSecond, "bare-calls/s")
		b.ReportMetric(res.ours.perSecond, "ours-calls/s")
		b.ReportMetric(res.bare.bytes/1000, "bare-KB/call")
		b.ReportMetric(res.ours.bytes/1000, "ours-KB/call")
		b.ReportMetric(res.share, "%-of-bare")
	}
}
