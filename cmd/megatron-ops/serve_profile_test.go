package main

import (
	"net/http"
	"os/exec"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestProfilesAreForThisMachineAlone(t *testing.T) {
	t.Parallel()
	for _, addr := range []string{"0.0.0.0:0", ":6060", "192.0.2.1:6060", "example.org:6060", "[::]:6060"} {
		out, err := newServer(t, "").command("serve", "--listen", "127.0.0.1:0", "--pprof", addr).CombinedOutput()
		var exit *exec.ExitError
		require.ErrorAs(t, err, &exit, addr)
		require.Equal(t, 2, exit.ExitCode(), "%s: %s", addr, out)
		require.Contains(t, string(out), "not a loopback address", addr)
	}
	s := newServer(t, "")
	s.run(s.command("serve", "--listen", "127.0.0.1:0", "--pprof", "127.0.0.1:0"))
	s.mu.Lock()
	at := regexp.MustCompile(`at=(http://127\S+)`).FindStringSubmatch(s.log.String())
	s.mu.Unlock()
	require.NotNil(t, at)
	get := func(host string) int {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, at[1]+"goroutine?debug=1", nil)
		require.NoError(t, err)
		req.Host = host
		res, err := http.DefaultClient.Do(req)
		require.NoError(t, err)
		defer res.Body.Close()
		return res.StatusCode
	}
	require.Equal(t, http.StatusOK, get(""))
	require.Equal(t, http.StatusForbidden, get("evil.example.org"))
	status, _ := s.get("/debug/pprof/")
	require.Equal(t, http.StatusNotFound, status, "nor at the server's own address")
}
