package knowledge_test

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/knowledge"
)

// The language model of these tests is a server in a separate process, started from
// this test binary.
const fakeModelVariable = "MEGATRON_OPS_TEST_FAKE_MODEL"

func TestMain(m *testing.M) {
	if file := os.Getenv(fakeModelVariable); file != "" {
		serveFakeModel(file)
		return
	}
	os.Exit(m.Run())
}

// A request is the body of a request to the endpoint.
type request struct {
	Model    string `json:"model"`
	Stream   bool   `json:"stream"`
	Messages []struct {
		Role    string `json:"role"`
		Content string `json:"content"`
	} `json:"messages"`
	Tools []struct {
		Function struct {
			Name       string          `json:"name"`
			Parameters json.RawMessage `json:"parameters"`
		} `json:"function"`
	} `json:"tools"`
}

// serveFakeModel serves answers that the model's name determines, and appends every
// request to file.
func serveFakeModel(file string) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	fmt.Printf("http://%s\n", l.Addr())
	log, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		panic(err)
	}
	_ = http.Serve(l, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		_, _ = log.Write(append(bytes.ReplaceAll(body, []byte("\n"), []byte(" ")), '\n'))
		var q request
		if json.Unmarshal(body, &q) != nil || !q.Stream {
			http.Error(w, "want a streaming request", http.StatusBadRequest)
			return
		}
		verb, arg, _ := strings.Cut(q.Model, ":")
		send := func(delta any) {
			raw, _ := json.Marshal(map[string]any{"choices": []any{map[string]any{"index": 0, "delta": delta}}})
			fmt.Fprintf(w, "data: %s\n\n", raw)
			w.(http.Flusher).Flush()
		}
		say := func(text string) { // a dot may end a sentence or stand in a number: it comes by itself
			for _, piece := range regexp.MustCompile(`[^ .]*[ .]|[^ .]+`).FindAllString(text, -1) {
				send(map[string]string{"content": piece})
			}
		}
		last := q.Messages[len(q.Messages)-1]
		switch verb {
		case "status":
			code := map[string]int{"429": 429, "500": 500, "401": 401}[arg]
			http.Error(w, `{"error":{"message":"no"}}`, code)
			return
		case "html":
			fmt.Fprint(w, "<html>proxy says no</html>")
			return
		case "slow":
			<-r.Context().Done() // until the client gives up
		}
		w.Header().Set("Content-Type", "text/event-stream")
		switch verb {
		case "say":
			say(arg)
		case "malformed":
			fmt.Fprint(w, "data: {\"choices\":[{\"delta\":{\"content\":\"4\n\n")
		case "dies":
			say("DP is ")
			panic(http.ErrAbortHandler)
		case "endless":
			for range 3000 {
				say("and so on ")
			}
		case "tool", "tools": // tools: never stops calling
			if verb == "tool" && last.Role == "tool" {
				say("The tool " + cmp.Or(map[string]string{"search": "[1]"}[toolName(arg)], "["+toolName(arg)+"]") + " returned: " + last.Content)
				break
			}
			name, args, _ := strings.Cut(arg, " ")
			send(map[string]any{"tool_calls": []any{map[string]any{
				"index": 0, "id": "c1", "type": "function",
				"function": map[string]string{"name": name, "arguments": args[:len(args)/2]},
			}}})
			send(map[string]any{"tool_calls": []any{map[string]any{"index": 0, "function": map[string]string{"arguments": args[len(args)/2:]}}}})
		}
		fmt.Fprint(w, "data: [DONE]\n\n")
	}))
}

func toolName(arg string) string {
	name, _, _ := strings.Cut(arg, " ")
	return name
}

// fakeModel starts the server. It returns a model whose name determines its answers,
// and a function that returns the requests to the model.
func fakeModel(t *testing.T, name string) (*knowledge.Model, func() []string) {
	t.Helper()
	file := t.TempDir() + "/requests"
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run", "^$") //nolint:gosec // this test binary
	cmd.Env = append(os.Environ(), fakeModelVariable+"="+file)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	return &knowledge.Model{BaseURL: strings.TrimSpace(line), Key: "k", Name: name, Timeout: 3 * time.Second}, func() []string {
		raw, _ := os.ReadFile(file)
		return strings.Split(strings.TrimSpace(string(raw)), "\n")
	}
}
