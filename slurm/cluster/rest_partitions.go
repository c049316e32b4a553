package cluster

import (
	"context"
	"net/http"
	"slices"

	"github.com/megatron-ops/megatron-ops/slurm"
)

// Partitions lists the cluster's partitions. It counts the nodes in use of each from
// the list of nodes.
func (r *REST) Partitions(ctx context.Context) ([]slurm.Partition, error) {
	a, err := r.call(ctx, "partitions", http.MethodGet, "partitions", nil)
	if err != nil {
		return nil, err
	}
	nodes, err := r.Nodes(ctx)
	var all []slurm.Partition
	for _, m := range a.Partitions {
		all = append(all, slurm.PartitionFromJSON(m, nodes))
	}
	if !slices.ContainsFunc(all, func(p slurm.Partition) bool { return p.Default }) {
		name := r.defaultPartition(ctx)
		for i := range all {
			all[i].Default = all[i].Name == name
		}
	}
	return all, err
}

// Reservations lists the reservations that the token's user may see.
func (r *REST) Reservations(ctx context.Context) ([]slurm.Reservation, error) {
	a, err := r.call(ctx, "reservations", http.MethodGet, "reservations", nil)
	var all []slurm.Reservation
	for _, m := range a.Reservations {
		all = append(all, slurm.ReservationFromJSON(m))
	}
	return all, err
}

// versionsWithDefault are the API versions that report which partition is the default.
var versionsWithDefault = []int{38, 45}

// defaultPartition returns the partition of jobs that name none, where the API version
// in use does not report it. It takes the configured one, else the answer of another
// API version that is served, else "".
func (r *REST) defaultPartition(ctx context.Context) string {
	if r.DefaultPartition != "" {
		return r.DefaultPartition
	}
	r.mu.Lock()
	served := slices.Clone(r.served)
	r.mu.Unlock()
	for _, version := range versionsWithDefault {
		if !slices.Contains(served, version) {
			continue
		}
		a, err := r.callVersion(ctx, version, "partitions", http.MethodGet, "partitions", nil)
		if err != nil {
			continue
		}
		for _, m := range a.Partitions {
			if p := slurm.PartitionFromJSON(m, nil); p.Default {
				return p.Name
			}
		}
	}
	return ""
}
