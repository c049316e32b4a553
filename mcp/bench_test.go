package mcp_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	sdk "github.com/mark3labs/mcp-go/mcp"
	sdkserver "github.com/mark3labs/mcp-go/server"
	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/store"
	"github.com/megatron-ops/megatron-ops/mcp"
)

var planCall = `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"plan","arguments":{"spec":` + goodSpec + `}}}`

// bare is what one would write by hand with the library alone: a typed handler
// that calls the same operation and answers with its output.
func bare(b testing.TB, svc *ops.Service) *sdkserver.MCPServer {
	b.Helper()
	plan, ok := ops.Lookup("plan")
	require.True(b, ok)
	s := sdkserver.NewMCPServer("bare", "1", sdkserver.WithToolCapabilities(true))
	schema, err := plan.InputSchema().MarshalJSON()
	require.NoError(b, err)
	s.AddTool(sdk.NewToolWithRawSchema("plan", "plan", schema), func(ctx context.Context, req sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		in := plan.NewIn()
		if err := req.BindArguments(in); err != nil {
			return nil, err
		}
		out, err := plan.Run(ctx, &ops.Call{Service: svc, Who: alice}, in)
		if err != nil {
			return nil, err
		}
		raw, err := json.Marshal(out)
		if err != nil {
			return nil, err
		}
		return sdk.NewToolResultStructured(out, string(raw)), nil
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

// A race is two servers that carry out the same calls of plan over HTTP: a bare
// one of the library alone, and ours with all that stands around a call here.
// Both read the same arguments, apply the same rules, answer with the same
// values as structured content and as text, and keep streams that can resume.
type race struct{ bare, ours *client }

func newRace(b testing.TB) race {
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
	lib := sdkserver.NewStreamableHTTPServer(bare(b, svc), sdkserver.WithEventStore(sdkserver.NewInMemoryEventStore()))
	return race{connected(b, lib), connected(b, handler)}
}

// perSecond is how many calls c's server answers in a second of processor time,
// a client's share included. What else runs on the machine changes the seconds
// on the wall, not these.
func perSecond(b testing.TB, c *client) float64 {
	const calls = 200
	start := processorTime(b)
	for range calls {
		res, body := c.post(planCall)
		if res.StatusCode != http.StatusOK || strings.Contains(body, `"isError":true`) {
			b.Fatal(body)
		}
	}
	return calls / (processorTime(b) - start).Seconds()
}

// processorTime is what this process has used so far.
func processorTime(b testing.TB) time.Duration {
	var u syscall.Rusage
	require.NoError(b, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// run lets both answer in turns, so that both meet the same load of the machine,
// and returns the medians.
func (r race) run(b testing.TB, rounds int) (bare, ours float64) {
	both := [2][]float64{}
	for i := range rounds {
		first := i % 2 // who comes first finds the other's garbage
		for _, who := range []int{first, 1 - first} {
			both[who] = append(both[who], perSecond(b, []*client{r.bare, r.ours}[who]))
		}
	}
	median := func(f []float64) float64 { slices.Sort(f); return f[len(f)/2] }
	return median(both[0]), median(both[1])
}

func BenchmarkPlan(b *testing.B) {
	r := newRace(b)
	r.run(b, 2)
	for b.Loop() {
		bare, ours := r.run(b, 41)
		b.ReportMetric(bare, "bare-calls/s")
		b.ReportMetric(ours, "ours-calls/s")
		b.ReportMetric(100*ours/bare, "%-of-bare")
	}
}

// The bound leaves room for a busy machine; the figure is in the log.
func TestPlanKeepsUpWithABareHandler(t *testing.T) {
	if testing.Short() {
		t.Skip("takes some seconds; not with -short")
	}
	r := newRace(t)
	r.run(t, 2)
	bare, ours := r.run(t, 15)
	t.Logf("plan over HTTP: %.0f calls a second of processor time, a bare handler %.0f: %.0f %%", ours, bare, 100*ours/bare)
	require.Greater(t, ours, 0.75*bare)
}
