package slurm

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestWhichJobsAFilterLetsThrough(t *testing.T) {
	at := time.Unix(1e9, 0)
	before, after := at.Add(-time.Hour), at.Add(time.Hour)
	jobs := []Job{
		{ID: "1", User: "alice", Partition: "prod", State: Running},
		{ID: "2_3", User: "alice", Partition: "dev", State: Pending},
		{ID: "4", User: "bob", Partition: "prod", State: Failed, EndedAt: &before},
		{ID: "5", User: "bob", Partition: "prod", State: Completed, EndedAt: &after},
		{ID: "6", User: "bob", Partition: "dev", State: Cancelled},
		{ID: "7", User: "bob", Partition: "dev", State: Completed, EndedAt: &at},
		{ID: "8", User: "carol", Partition: "dev,prod", State: Pending},
	}
	for _, c := range []struct {
		name   string
		filter Filter
		want   []JobID
	}{
		{"what waits or runs", Filter{}, []JobID{"1", "2_3", "8"}},
		{"all that are known", Filter{All: true}, []JobID{"1", "2_3", "4", "5", "6", "7", "8"}},
		{"one's own", Filter{User: "alice"}, []JobID{"1", "2_3"}},
		{"of a partition", Filter{Partition: "prod", All: true}, []JobID{"1", "4", "5", "8"}},
		{"of one of several partitions", Filter{Partition: "prod,none"}, []JobID{"1", "8"}},
		{"of no part of a partition's name", Filter{Partition: "pro"}, nil},
		{"of a state, ended or not", Filter{States: []State{Failed, Pending}}, []JobID{"2_3", "4", "8"}},
		{"ended since; whose end is not known is kept", Filter{Since: at}, []JobID{"1", "2_3", "5", "6", "7", "8"}},
		{"by number, an array by its own", Filter{IDs: []JobID{"1", "2", "4"}}, []JobID{"1", "2_3"}},
		{"by number, ended too", Filter{IDs: []JobID{"4"}, All: true}, []JobID{"4"}},
		{"all of it at once", Filter{User: "bob", Partition: "prod", States: []State{Completed}, IDs: []JobID{"5", "6"}}, []JobID{"5"}},
	} {
		var got []JobID
		for _, j := range jobs {
			if c.filter.Match(j) {
				got = append(got, j.ID)
			}
		}
		require.Equal(t, c.want, got, c.name)
	}
}

// The newest job is the one that was submitted last or, without times, the one with the highest
// number.
func TestWhichJobIsTheNewest(t *testing.T) {
	at := func(s int64) *time.Time { v := time.Unix(s, 0); return &v }
	for _, c := range []struct {
		newer, older Job
	}{
		{Job{ID: "1", SubmittedAt: at(20)}, Job{ID: "2", SubmittedAt: at(10)}},
		{Job{ID: "2", SubmittedAt: at(10)}, Job{ID: "1", SubmittedAt: at(10)}},
		{Job{ID: "2", SubmittedAt: at(10)}, Job{ID: "1"}},
		{Job{ID: "2"}, Job{ID: "1", SubmittedAt: at(10)}},
		{Job{ID: "10"}, Job{ID: "9"}},
		{Job{ID: "10"}, Job{ID: "9_1234"}},
		{Job{ID: "9_2"}, Job{ID: "9_1"}},
	} {
		require.Negative(t, NewestFirst(c.newer, c.older), fmt.Sprint(c))
		require.Positive(t, NewestFirst(c.older, c.newer), fmt.Sprint(c))
	}
}
