package mcp_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
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
func connected(b *testing.B, handler http.Handler) *client {
	srv := httptest.NewServer(handler)
	b.Cleanup(srv.Close)
	c := &client{t: b, url: srv.URL + "/mcp", header: map[string]string{"Authorization": "Bearer t"}}
	res, _ := c.post(hello)
	c.session = res.Header.Get("Mcp-Session-Id")
	return c
}

// BenchmarkPlan sets calls of plan over HTTP on our server beside those on a
// bare handler of the library: turn by turn, so that both meet the same load,
// and compared by their medians.
func BenchmarkPlan(b *testing.B) {
	st, err := store.Open(b.Context(), b.TempDir()+"/state.db")
	require.NoError(b, err)
	defer st.Close()
	svc := &ops.Service{
		Clusters: map[string]ops.Cluster{"test": newSite()}, Default: "test",
		Store: func() (*store.Store, error) { return st, nil },
	}
	s, err := mcp.NewServer(mcp.Config{Service: func() (*ops.Service, error) { return svc, nil }, Caller: alice})
	require.NoError(b, err)
	handler, stop := s.HTTPHandler(mcp.HTTP{Tokens: map[string]ops.Caller{"t": alice}})
	defer stop()
	both := []*client{connected(b, sdkserver.NewStreamableHTTPServer(bare(b, svc))), connected(b, handler)}
	took := make([][]time.Duration, 2)
	for b.Loop() {
		for i, c := range both {
			start := time.Now()
			res, body := c.post(planCall)
			took[i] = append(took[i], time.Since(start))
			if res.StatusCode != http.StatusOK || strings.Contains(body, `"isError":true`) {
				b.Fatal(body)
			}
		}
	}
	median := func(d []time.Duration) float64 {
		slices.Sort(d)
		return float64(d[len(d)/2].Microseconds())
	}
	b.ReportMetric(median(took[0]), "bare-µs")
	b.ReportMetric(median(took[1]), "ours-µs")
	b.ReportMetric(100*median(took[0])/median(took[1]), "%-of-bare")
}
