package clients_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/mcp/clients"
)

var update = flag.Bool("update", false, "write what each client is told")

// A client's configuration passes on the variables that this program reads and that the
// environment has, except PATH.
func TestWhichVariablesAClientPassesOn(t *testing.T) {
	has := map[string]string{"PATH": "/bin", "SLURM_CONF": "/etc/slurm.conf", "HOME": "/home/ada"}
	require.Equal(t, map[string]string{"SLURM_CONF": "/etc/slurm.conf"}, clients.PassedOn(func(name string) string { return has[name] }))
}

// The configuration for each client, started by it with and without variables, and over
// HTTP.
func TestEveryClientsSnippet(t *testing.T) {
	var said strings.Builder
	for _, name := range clients.Names() {
		for _, start := range []clients.Start{
			{Binary: "/opt/a b/megatron-ops", Args: []string{"--read-only"}, Env: map[string]string{"SLURM_CONF": "/etc/slurm/it's.conf"}},
			{Binary: "/opt/megatron-ops"},
			{URL: "http://127.0.0.1:8080/mcp", Token: "secret"},
		} {
			setup, err := clients.Config(name, start)
			require.NoError(t, err)
			fmt.Fprintf(&said, "## %s: %s\n$ %s\n%s\n", setup.Title, setup.File, setup.Command, setup.Snippet)
			if strings.HasPrefix(setup.Snippet, "{") {
				require.True(t, json.Valid([]byte(setup.Snippet)), name)
			}
			var doc map[string]any
			if name == "goose" {
				require.NoError(t, yaml.Unmarshal([]byte(setup.Snippet), &doc))
			}
		}
	}
	if *update {
		require.NoError(t, os.WriteFile("testdata/config.golden", []byte(said.String()), 0o644))
	}
	want, err := os.ReadFile("testdata/config.golden")
	require.NoError(t, err)
	require.Equal(t, string(want), said.String())
	_, err = clients.Config("emacs", clients.Start{})
	require.ErrorContains(t, err, `"emacs" is not known`)
}
