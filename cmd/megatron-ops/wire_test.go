package main

import (
	"bytes"
	"errors"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/internal/config"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/store"
	"github.com/megatron-ops/megatron-ops/slurm/job"
)

// This machine's Slurm under a name of the site's is one cluster, not two: as two, its
// jobs would be reported twice.
func TestThisMachinesSlurmIsOneCluster(t *testing.T) {
	t.Setenv("SLURM_CONF", "/etc/slurm/prod.conf")
	for name, c := range map[string]struct {
		clusters map[string]config.Cluster
		builtIn  bool
	}{
		"none is named":                      {nil, true},
		"it has a name":                      {map[string]config.Cluster{"prod": {Kind: "cli"}}, false},
		"it has a name and its slurm.conf":   {map[string]config.Cluster{"prod": {Kind: "cli", SlurmConf: "/etc/slurm/prod.conf"}}, false},
		"another of this machine has one":    {map[string]config.Cluster{"dev": {Kind: "cli", SlurmConf: "/etc/slurm/dev.conf"}}, true},
		"its commands are others":            {map[string]config.Cluster{"new": {Kind: "cli", SlurmBin: "/opt/slurm/bin"}}, true},
		"one elsewhere has one":              {map[string]config.Cluster{"far": {Kind: "ssh", Host: "login"}}, true},
		"the site gives slurm another sense": {map[string]config.Cluster{"slurm": {Kind: "cli"}}, true},
	} {
		all, err := clusters(config.Config{Clusters: c.clusters}, t.TempDir())
		require.NoError(t, err, name)
		_, is := all[slurmCluster]
		require.Equal(t, c.builtIn, is, name)
		for n := range c.clusters {
			require.Contains(t, all, n, name)
		}
	}
}

// The server acts for another person if the cluster's configuration allows it, and by
// no means of its own.
func TestWhoIsActedFor(t *testing.T) {
	cfg := config.Config{Clusters: map[string]config.Cluster{
		"closed": {Kind: "rest", URL: "http://127.0.0.1:1", TokenFile: "/t/%u"},
		"each":   {Kind: "rest", URL: "http://127.0.0.1:1", TokenFile: "/t/%u", ActAs: true},
		"one":    {Kind: "rest", URL: "http://127.0.0.1:1", TokenFile: "/t/token", ActAs: true},
		"here":   {Kind: "local", ActAs: true},
	}}
	all, err := clusters(cfg, t.TempDir())
	require.NoError(t, err)
	for name, refused := range map[string]string{
		localCluster: "clusters.local.act_as lets it", "closed": "clusters.closed.act_as lets it", "one": "clusters.one.token_file has no %u",
		"here": "embedded back end", "each": "",
	} {
		as, err := actAs(cfg)(all[name], "bob")
		if refused == "" {
			require.NoError(t, err, name)
			require.NotSame(t, all[name], as, name)
			continue
		}
		require.ErrorContains(t, err, refused, name)
	}
}

// The form starts with the cluster's profile, and with nothing for what the profile
// does not say.
func TestTheFormBeginsWithTheSite(t *testing.T) {
	of := siteValues(&ops.Service{Sites: sites(config.Config{
		Site:     job.Site{Partition: "gpu", Account: "ml"},
		Clusters: map[string]config.Cluster{"far": {Site: job.Site{GPU: "h100", GPUsPerNode: 8, Time: "1:00:00"}}},
	})})
	require.Equal(t, map[string]string{"partition": "gpu", "account": "ml"}, of("near"))
	require.Equal(t, map[string]string{"gpu": "h100", "gpus_per_node": "8", "time": "1:00:00"}, of("far"))
}

// A model is used if both a key and a name are given, and not more often than
// configured.
func TestAModelNeedsAKeyAndAName(t *testing.T) {
	for _, c := range []struct {
		key, name string
		is        bool
	}{{"", "", false}, {"k", "", false}, {"", "m", false}, {"k", "m", true}} {
		t.Setenv("OPENAI_API_KEY", c.key)
		t.Setenv("OPENAI_MODEL", c.name)
		t.Setenv("OPENAI_EMBED_MODEL", c.name)
		require.Equal(t, c.is, model(config.Knowledge{}) != nil)
		require.Equal(t, c.is, embedder(&ops.Service{}) != nil)
	}
	for given, most := range map[int]int{0: modelPerDay, 7: 7, -1: 0} {
		require.Equal(t, most, model(config.Knowledge{ModelPerDay: given}).PerDay)
	}
}

// The cards' vectors are kept in the store, and computed anew if the store has none or
// fails.
func TestWhereTheCardsVectorsAreKept(t *testing.T) {
	t.Setenv("OPENAI_API_KEY", "k")
	t.Setenv("OPENAI_EMBED_MODEL", "m")
	st, err := store.Open(t.Context(), filepath.Join(t.TempDir(), "state.db"))
	require.NoError(t, err)
	var broken error
	e := embedder(&ops.Service{Store: func() (*store.Store, error) { return st, broken }})
	_, ok := e.Load(t.Context(), "cards")
	require.False(t, ok, "none are kept yet")
	require.NoError(t, e.Save(t.Context(), "cards", []byte("vectors")))
	kept, ok := e.Load(t.Context(), "cards")
	require.True(t, ok)
	require.Equal(t, "vectors", string(kept))
	broken = errors.New("disk full")
	_, ok = e.Load(t.Context(), "cards")
	require.False(t, ok)
	require.ErrorIs(t, e.Save(t.Context(), "cards", nil), broken)
	broken = nil
	require.NoError(t, st.Close())
	_, ok = e.Load(t.Context(), "cards")
	require.False(t, ok)
}

// The audit trail names the job that a change created, with its script, or else the job
// that it was about.
func TestWhichJobAnAuditEntryIsAbout(t *testing.T) {
	type made struct {
		JobID  *string `json:"job_id"`
		Script string  `json:"script"`
	}
	type named struct {
		Job string `json:"job"`
	}
	id, none := "7", ""
	for name, c := range map[string]struct {
		entry  ops.AuditEntry
		job    string
		script bool
	}{
		"submitted":           {ops.AuditEntry{In: named{}, Out: made{&id, "#!/bin/bash"}}, "7", true},
		"made without script": {ops.AuditEntry{In: named{"3"}, Out: made{&id, ""}}, "7", false},
		"a dry run":           {ops.AuditEntry{In: named{}, Out: made{nil, "#!/bin/bash"}}, "", false},
		"an empty id":         {ops.AuditEntry{In: named{"3"}, Out: made{&none, "#!/bin/bash"}}, "3", false},
		"cancelled":           {ops.AuditEntry{In: named{"3"}, Out: struct{}{}}, "3", false},
		"refused":             {ops.AuditEntry{In: named{"3"}, Err: errors.New("no")}, "3", false},
		"what has no job":     {ops.AuditEntry{In: struct{}{}, Out: []string{}}, "", false},
	} {
		id, script := aboutJob(c.entry)
		require.Equal(t, c.job, id, name)
		require.Equal(t, c.script, script != "", name)
	}
}

// Where the audit trail cannot be written, as on a full disk, the log keeps the entry.
func TestAnAuditEntryThatCannotBeStoredIsLogged(t *testing.T) {
	st, err := store.Open(t.Context(), filepath.Join(t.TempDir(), "state.db"))
	require.NoError(t, err)
	require.NoError(t, st.Close())
	var log bytes.Buffer
	svc := &ops.Service{Store: func() (*store.Store, error) { return st, nil }}
	auditor(svc, slog.New(slog.NewTextHandler(&log, nil)))(t.Context(), ops.AuditEntry{
		At: time.Now(), Who: ops.Caller{Surface: ops.MCP, ID: "alice", User: "alice", Agent: "planner"}, Op: "cancel", Agreed: "bob",
		In: map[string]string{"job": "4711", "note": "token ghp_abcdefghijklmnopqrstuvwxyz0123456789\nlevel=INFO msg=forged"},
	})
	for _, w := range []string{"could not be written", "who=alice", "agent=planner", "agreed=bob", "op=cancel", "job=4711", "result=done", " at=20"} {
		require.Contains(t, log.String(), w)
	}
	require.NotContains(t, log.String(), "ghp_abcdefghijkl", "secrets are masked")
	require.Equal(t, 1, strings.Count(log.String(), "\n"), "an input makes no line of its own")
}
