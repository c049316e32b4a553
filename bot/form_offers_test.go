package bot

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/ops/launch"
	"github.com/megatron-ops/megatron-ops/slurm"
)

// reserved is a cluster with reservations.
type reserved struct {
	ops.Cluster
	all []slurm.Reservation
	err error
}

func (r reserved) Reservations(context.Context) ([]slurm.Reservation, error) { return r.all, r.err }

// The form offers the reservations that a person may use and that have not ended.
func TestTheReservationsThatAFormOffers(t *testing.T) {
	over, ahead := noon.Add(-time.Hour), noon.Add(time.Hour)
	yard := reserved{all: []slurm.Reservation{
		{Name: "mine", Users: []string{"ada"}, End: &ahead},
		{Name: "over", Users: []string{"ada"}, End: &over},
		{Name: "endless", Users: []string{"ada"}},
		{Name: "theirs", Users: []string{"grace"}, End: &ahead},
		{Name: "my-account", Accounts: []string{"llm"}},
		{Name: "another-account", Accounts: []string{"vision"}},
		{Name: "a-group", Groups: []string{"nobody-is-in-this-group"}},
	}}
	b := &Bot{now: func() time.Time { return noon }, log: slog.New(slog.DiscardHandler)}
	offered := func(cl ops.Cluster, user string) []string {
		c := &ops.Call{Service: &ops.Service{Clusters: map[string]ops.Cluster{"yard": cl}}, Who: ops.Caller{User: user}}
		return b.reservations(t.Context(), c, "yard", []string{"llm"})
	}
	require.Equal(t, []string{"mine", "endless", "my-account"}, offered(yard, "ada"))
	require.Empty(t, offered(yard, ""), "nobody of the cluster")
	require.Empty(t, offered(finder{}, "ada"), "a cluster that has none")
	require.Empty(t, offered(reserved{err: errors.New("it is away")}, "ada"))
}

// The estimate of memory names a GPU's memory where its kind is known, and is left out where
// there is no estimate.
func TestMemoryInWords(t *testing.T) {
	const args = "args: [--num-layers, '8', --hidden-size, '1024', --num-attention-heads, '8', --seq-length, '2048', --max-position-embeddings, '2048', " +
		"--micro-batch-size, '1', --global-batch-size, '64', --train-iters, '10', --lr, '1e-4', --bf16]\n"
	c := &ops.Call{Service: &ops.Service{Now: time.Now}}
	for spec, want := range map[string]string{
		"nodes: 1\ngpus_per_node: 8\ngpu: h100\n" + args: `^about \d+ of 79 GiB a GPU \(\d+ to \d+\)$`,
		"nodes: 1\ngpus_per_node: 8\n" + args:            `^about \d+ GiB a GPU \(\d+ to \d+\)$`,
		"nodes: 1\ngpus_per_node: 8\n":                   `^$`,
	} {
		require.Regexp(t, want, memoryWords(t.Context(), c, launch.SubmitIn{SpecIn: launch.SpecIn{YAML: spec}}), spec)
	}
}
