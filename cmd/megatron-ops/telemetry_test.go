package main

import (
	"bytes"
	"compress/gzip"
	"encoding/hex"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	logspb "go.opentelemetry.io/proto/otlp/collector/logs/v1"
	tracepb "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	"google.golang.org/protobuf/proto"

	"github.com/megatron-ops/megatron-ops/bot/slacktest"
)

// A span is a span as a collector receives it.
type span struct {
	name, trace, id, parent, service string
	attributes                       map[string]string
	failed                           bool
}

// A collector accepts what OpenTelemetry's exporters send, and keeps every byte.
type collector struct {
	*httptest.Server
	t     *testing.T
	mu    sync.Mutex
	spans []span
	logs  []string
	bytes bytes.Buffer
}

func startCollector(t *testing.T) *collector {
	t.Helper()
	c := &collector{t: t}
	c.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body := io.Reader(r.Body)
		if r.Header.Get("Content-Encoding") == "gzip" {
			var err error
			if body, err = gzip.NewReader(body); err != nil {
				http.Error(w, err.Error(), http.StatusBadRequest)
				return
			}
		}
		raw, err := io.ReadAll(body)
		if err == nil {
			err = c.take(r.URL.Path, raw)
		}
		if err != nil || r.Header.Get("Content-Type") != "application/x-protobuf" {
			t.Errorf("%s: %v", r.URL.Path, err)
		}
		w.Header().Set("Content-Type", "application/x-protobuf")
	}))
	t.Cleanup(c.Close)
	return c
}

func (c *collector) take(path string, raw []byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.bytes.Write(raw)
	if path == "/v1/logs" {
		var m logspb.ExportLogsServiceRequest
		if err := proto.Unmarshal(raw, &m); err != nil {
			return err
		}
		for _, r := range m.GetResourceLogs() {
			for _, s := range r.GetScopeLogs() {
				for _, l := range s.GetLogRecords() {
					c.logs = append(c.logs, l.GetBody().GetStringValue())
				}
			}
		}
		return nil
	}
	var m tracepb.ExportTraceServiceRequest
	if err := proto.Unmarshal(raw, &m); err != nil {
		return err
	}
	text := func(all []*commonpb.KeyValue) map[string]string {
		m := map[string]string{}
		for _, a := range all {
			m[a.GetKey()] = a.GetValue().GetStringValue()
		}
		return m
	}
	for _, r := range m.GetResourceSpans() {
		for _, scope := range r.GetScopeSpans() {
			for _, s := range scope.GetSpans() {
				c.spans = append(c.spans, span{
					name: s.GetName(), trace: hex.EncodeToString(s.GetTraceId()), id: hex.EncodeToString(s.GetSpanId()), parent: hex.EncodeToString(s.GetParentSpanId()),
					service: text(r.GetResource().GetAttributes())["service.name"], attributes: text(s.GetAttributes()), failed: s.GetStatus().GetCode() == 2,
				})
			}
		}
	}
	return nil
}

// span waits for a span of that name that has these attributes.
func (c *collector) span(name string, attributes map[string]string) (found span) {
	c.t.Helper()
	require.Eventually(c.t, func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		for _, found = range c.spans {
			ok := found.name == name
			for k, v := range attributes {
				ok = ok && found.attributes[k] == v
			}
			if ok {
				return true
			}
		}
		return false
	}, 30*time.Second, 10*time.Millisecond, "%s %v", name, attributes)
	return found
}

const (
	callerTrace = "4bf92f3577b34da6a3ce929d0e0e4736"
	callerSpan  = "00f067aa0ba902b7"
	traceparent = "00-" + callerTrace + "-" + callerSpan + "-01"
)

// A submission by the shell is one trace: the command, its operation and each request
// to Slurm. It contains nothing of what was submitted.
func TestTracesTellWhatWasDoneAndNothingOfItsContent(t *testing.T) {
	t.Parallel()
	c := startCollector(t)
	slurm := t.TempDir()
	for name, script := range map[string]string{
		"squeue": "exit 0", "sacct": "exit 0", "sinfo": "exit 0", "sacctmgr": "exit 0", "scontrol": "exit 1", "sbatch": "cat >/dev/null; echo 4711",
	} {
		require.NoError(t, os.WriteFile(filepath.Join(slurm, name), []byte("#!/bin/sh\n"+script+"\n"), 0o755))
	}
	s := newServer(t, "", "PATH="+slurm+":"+os.Getenv("PATH"), "OTEL_EXPORTER_OTLP_ENDPOINT="+c.URL, "OTEL_SERVICE_NAME=our-ops", "TRACEPARENT="+traceparent,
		"OTEL_EXPORTER_OTLP_HEADERS=x-key=collectors-key")
	tree := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(tree, "train.sh"), []byte("echo text-of-the-script\n"), 0o600))
	out, err := s.command("submit", "--cluster", "slurm", "--yes", "--force", "--name", "name-of-the-job", "--nodes", "1", "--gpus-per-node", "0", "--time", "5", "--worktree", tree,
		"--launcher", "custom", "--launcher-argv", "bash", "--script", "train.sh", "--env", "OUR_SETTING=value-of-a-variable", "--", "argument-of-the-job").CombinedOutput()
	require.NoError(t, err, string(out))

	shell := c.span("shell submit", nil)
	require.Equal(t, callerTrace, shell.trace)
	require.Equal(t, callerSpan, shell.parent)
	require.Equal(t, "our-ops", shell.service)
	op := c.span("operation submit", map[string]string{
		"megatron_ops.operation": "submit", "megatron_ops.surface": "shell", "megatron_ops.code": "ok", "slurm.cluster": "slurm", "slurm.job_id": "4711",
	})
	require.Equal(t, shell.id, op.parent)
	sbatch := c.span("slurm sbatch", map[string]string{"slurm.cluster": "slurm", "megatron_ops.code": "ok"})
	require.Equal(t, callerTrace, sbatch.trace)

	out, err = s.command("status", "--cluster", "slurm", "word of a person").CombinedOutput()
	require.Error(t, err, string(out))
	require.True(t, c.span("shell status", nil).failed)
	for _, secret := range []string{"value-of-a-variable", "OUR_SETTING", "name-of-the-job", "argument-of-the-job", "text-of-the-script", "word of a person", tree, "collectors-key"} {
		require.NotContains(t, c.bytes.String(), secret)
	}
}

// A request to the server continues the caller's trace, given by HTTP headers.
func TestTracesGoThroughTheDoorsOfTheServer(t *testing.T) {
	t.Parallel()
	c := startCollector(t)
	slack := slacktest.Start(t, slacktest.Config{SigningSecret: signingSecret})
	s := newServer(t, "slack: {read: everyone}\n", "SLACK_BOT_TOKEN=xoxb-1", "SLACK_SIGNING_SECRET="+signingSecret, "SLACK_API_URL="+slack.APIURL,
		"OTEL_EXPORTER_OTLP_ENDPOINT="+c.URL, "OTEL_BSP_SCHEDULE_DELAY=50", "OTEL_BLRP_SCHEDULE_DELAY=50")
	s.start("")
	slack.Target(s.url)
	token, err := os.ReadFile(filepath.Join(s.home, "state", "mcp.token"))
	require.NoError(t, err)
	agent := &session{s: s, token: strings.TrimSpace(string(token)), more: map[string]string{"traceparent": traceparent}}
	require.Equal(t, http.StatusOK, agent.send(initialize))
	require.Equal(t, http.StatusOK, agent.send(`{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"ask","arguments":{"question":"what is a rank-of-mine?"}}}`))
	tool := c.span("tools/call ask", map[string]string{"megatron_ops.code": "ok"})
	require.Equal(t, callerTrace, tool.trace)
	op := c.span("operation ask", map[string]string{"megatron_ops.surface": "mcp-http"})
	require.Equal(t, tool.id, op.parent)
	post := c.span("POST /mcp", map[string]string{"http.route": "/mcp"})
	require.Equal(t, callerSpan, post.parent)
	require.Equal(t, "megatron-ops", post.service)

	// A trace that the message itself names takes precedence, as on standard input.
	other := strings.Replace(traceparent, callerTrace, "0af7651916cd43dd8448eb211c80319c", 1)
	require.Equal(t, http.StatusOK, agent.send(`{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"constants","arguments":{},"_meta":{"traceparent":"`+other+`"}}}`))
	require.Equal(t, "0af7651916cd43dd8448eb211c80319c", c.span("tools/call constants", nil).trace)

	require.Equal(t, http.StatusOK, slack.Slash("list").Status)
	require.Equal(t, c.span("slack command", nil).id, c.span("operation list", map[string]string{"megatron_ops.surface": "slack"}).parent)
	c.span("POST /slack/", nil)
	s.get("/web/login?ticket=a-one-time-ticket")
	c.span("GET /web/", nil)
	require.NoError(t, s.cmd.Process.Signal(syscall.SIGTERM))
	<-s.said
	require.NoError(t, s.cmd.Wait())
	require.Contains(t, c.logs, "this server leads", "log lines too")
	for _, secret := range []string{"rank-of-mine", "a-one-time-ticket", agent.token, signingSecret, "xoxb-1"} {
		require.NotContains(t, c.bytes.String(), secret)
	}
}

// Whatever unsupported values the variables have, a command runs, and ends soon.
func TestTelemetryNeverStandsInTheWay(t *testing.T) {
	t.Parallel()
	c := startCollector(t)
	for name, env := range map[string][]string{
		"switched off":     {"OTEL_EXPORTER_OTLP_ENDPOINT=" + c.URL, "OTEL_SDK_DISABLED=true"},
		"no exporter":      {"OTEL_EXPORTER_OTLP_ENDPOINT=" + c.URL, "OTEL_TRACES_EXPORTER=none", "OTEL_LOGS_EXPORTER=none"},
		"nobody collects":  {"OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:1"},
		"no address":       {"OTEL_EXPORTER_OTLP_ENDPOINT=::"},
		"another exporter": {"OTEL_TRACES_EXPORTER=zipkin"},
		"gRPC":             {"OTEL_EXPORTER_OTLP_ENDPOINT=" + c.URL, "OTEL_EXPORTER_OTLP_PROTOCOL=grpc"},
	} {
		cmd := newServer(t, "", env...).command("constants", "-o", "json")
		var errs strings.Builder
		cmd.Stderr = &errs
		out, err := cmd.Output()
		require.NoError(t, err, "%s: %s", name, errs.String())
		require.Contains(t, string(out), "{", name)
		switch name {
		case "another exporter", "gRPC", "no address":
			require.Contains(t, errs.String(), "OTEL_", name)
		default:
			require.Empty(t, errs.String(), name)
		}
	}
	require.Empty(t, c.bytes.Bytes())
}
