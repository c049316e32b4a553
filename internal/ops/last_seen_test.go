package ops

import (
	"context"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/internal/store"
	"github.com/megatron-ops/megatron-ops/slurm"
)

// slow is a cluster that answers late, and then may be unreachable.
type slow struct {
	Cluster
	takes time.Duration
	err   error
}

func (s slow) Name() string { return "far" }
func (s slow) Kind() string { return "cli" }
func (s slow) Job(ctx context.Context, id slurm.JobID) (slurm.Job, error) {
	if err := s.pause(ctx); err != nil {
		return slurm.Job{}, err
	}
	return slurm.Job{ID: id, Name: "asked"}, s.err
}

func (s slow) Jobs(ctx context.Context, _ slurm.Filter) ([]slurm.Job, error) {
	if err := s.pause(ctx); err != nil {
		return nil, err
	}
	if s.err != nil {
		return nil, s.err
	}
	return []slurm.Job{{ID: "1", Name: "asked"}}, nil
}

func (s slow) pause(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(s.takes):
		return nil
	}
}

// A reader waits no longer than a person would, where the store has what the cluster
// showed last. A writer waits, and so does a reader of something that nobody has seen.
func TestALastStateIsToldWhereTheClusterTakesLong(t *testing.T) {
	st, err := store.Open(t.Context(), filepath.Join(t.TempDir(), "state.db"))
	require.NoError(t, err)
	t.Cleanup(func() { st.Close() })
	seen := time.Now().Add(-time.Hour)
	server := &Service{
		Now: time.Now, Store: func() (*store.Store, error) { return st, nil },
		Views: map[string]View{"far": &countingView{at: seen}},
	}
	at, err := server.KeepLastSeen(t.Context(), "far", time.Time{})
	require.NoError(t, err)
	require.Equal(t, seen, at)
	_, err = server.KeepLastSeen(t.Context(), "unknown", time.Time{})
	require.NoError(t, err)
	gone := &slurm.Error{Kind: slurm.Unreachable}
	for name, c := range map[string]struct {
		effect Effect
		cl     slow
		id     slurm.JobID
		name   string
		takes  time.Duration
	}{
		"a cluster that answers":            {Read, slow{takes: time.Second}, "1", "asked", time.Second},
		"one that hangs":                    {Read, slow{takes: time.Minute}, "1", "known", patienceStore},
		"one that says that it is away":     {Read, slow{takes: time.Second, err: gone}, "1", "known", time.Second},
		"one that refuses":                  {Read, slow{takes: time.Second, err: &slurm.Error{Kind: slurm.Denied}}, "1", "", time.Second},
		"a job that nobody has seen":        {Read, slow{takes: 20 * time.Second, err: gone}, "2", "", 20 * time.Second},
		"a change asks the cluster however": {Write, slow{takes: 20 * time.Second, err: gone}, "1", "", 20 * time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			service := *server
			service.Views = nil
			service.Now = func() time.Time { return seen.Add(time.Hour) }
			call := &Call{Service: &service, effect: c.effect}
			began := time.Now()
			j, err := call.Look(context.Background(), c.cl, c.id)
			require.Equal(t, c.takes, time.Since(began), name)
			require.Equal(t, c.name == "", err != nil, "%s: %v", name, err)
			if c.name != "" {
				require.Equal(t, c.name, j.Name, name)
				require.Equal(t, c.name == "known", j.SeenAt != nil && j.SeenAt.Equal(seen), name)
			}
			jobs, err := call.LookAll(context.Background(), c.cl, slurm.Filter{IDs: []slurm.JobID{c.id}, Since: seen})
			if c.name != "" {
				require.NoError(t, err, name)
				require.Equal(t, c.name, jobs[0].Name, name)
			}
			time.Sleep(2 * time.Minute) // lets the open questions end
		})
	}
	require.False(t, at.IsZero())

	// A server that starts loads it from the store once.
	next := &countingView{}
	began := &Service{Now: time.Now, Store: server.Store, Views: map[string]View{"far": next, "new": &countingView{}}}
	recalled, err := began.RecallLastSeen(t.Context())
	require.NoError(t, err)
	require.Len(t, recalled, 1)
	require.True(t, seen.Equal(recalled["far"]))
	require.True(t, seen.Equal(next.at))
	require.Equal(t, slurm.JobID("1"), next.jobs[0].ID)
	kept, err := began.KeepLastSeen(t.Context(), "far", recalled["far"])
	require.NoError(t, err)
	require.Equal(t, recalled["far"], kept, "what others have seen is not written again")
	call := &Call{Service: server, effect: Write}
	require.Equal(t, Read, call.Reading().effect)
	require.Equal(t, Write, call.effect)
}
