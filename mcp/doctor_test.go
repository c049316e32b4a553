package mcp_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/mcp"
	"github.com/megatron-ops/megatron-ops/mcp/clients"
)

// onlyIn looks programs up in one folder.
func onlyIn(dir string) func(string) (string, error) {
	return func(name string) (string, error) {
		path := filepath.Join(dir, name)
		if _, err := os.Stat(path); err != nil {
			return "", exec.ErrNotFound
		}
		return path, nil
	}
}

// The doctor reports what a client can use over HTTP: the tools, or that its token is
// not known.
func TestTheDoctorSeesWhatAClientSees(t *testing.T) {
	cfg, _ := config(t, newSite())
	url := serve(t, cfg, mcp.HTTP{Tokens: map[string]ops.Caller{"secret": alice}})
	none := onlyIn(t.TempDir())
	found := clients.Examine(t.Context(), clients.Start{URL: url, Token: "secret"}, none)
	require.Len(t, found, 3)
	require.NoError(t, found[0].Wrong)
	require.NoError(t, found[1].Wrong)
	require.Regexp(t, `megatron-ops \S+, protocol \d{4}-\d\d-\d\d, after \d+ ms; 4\d tools, about \d{4} tokens`, found[0].Note.In(lang.EN))
	require.Contains(t, found[0].Note.In(lang.ZH), "个工具")
	require.Contains(t, found[2].Note.In(lang.EN), "none of claude, codex, gemini")

	found = clients.Examine(t.Context(), clients.Start{URL: url, Token: "wrong"}, none)
	require.Error(t, found[0].Wrong)
	require.Contains(t, found[0].Fix.In(lang.EN), "mcp config --url")
}

// The doctor reports a cluster that does not answer, and what would help.
func TestTheDoctorTellsACluster(t *testing.T) {
	cfg, _ := config(t, newSite())
	cfg.Service = func() (*ops.Service, error) {
		return nil, &ops.Error{Code: ops.Failed, Message: lang.Same("no slurm.conf was found"), Fix: lang.Same("set SLURM_CONF")}
	}
	url := serve(t, cfg, mcp.HTTP{Tokens: map[string]ops.Caller{"secret": alice}})
	found := clients.Examine(t.Context(), clients.Start{URL: url, Token: "secret"}, onlyIn(t.TempDir()))
	require.NoError(t, found[0].Wrong)
	require.ErrorContains(t, found[1].Wrong, "no slurm.conf was found")
	require.Equal(t, "set SLURM_CONF", found[1].Fix.In(lang.EN))

	found = clients.Examine(t.Context(), clients.Start{Binary: filepath.Join(t.TempDir(), "nosuch")}, onlyIn(t.TempDir()))
	require.Error(t, found[0].Wrong)
	require.Error(t, found[1].Wrong)
}
