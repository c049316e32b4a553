package slurm_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/slurm"
)

// As scontrol of 26.05 and of 22.05 prints them.
func TestReservationsAreRead(t *testing.T) {
	out := "ReservationName=maint StartTime=2026-11-21T05:55:41 EndTime=2026-11-21T06:55:41 Duration=01:00:00 Nodes=gpu2 NodeCnt=1 CoreCnt=64 " +
		"Features=(null) PartitionName=(null) Flags=MAINT,SPEC_NODES TRES=cpu=64 AllowedPartitions=(null) QOS=(null) Users=root Groups=(null) " +
		"Accounts=(null) Licenses=(null) State=INACTIVE BurstBuffer=(null) MaxStartDelay=(null) \n" +
		"ReservationName=team StartTime=1795240541 EndTime=1795244141 Nodes=gpu[1-4] Users=-mallory,-eve Groups=(null) Accounts=research,ops Watts=n/a\n"
	all := slurm.ParseReservations(out)
	require.Len(t, all, 2)
	require.Equal(t, []string{"root"}, all[0].Users)
	require.Empty(t, all[0].Accounts)
	require.Equal(t, "gpu[1-4]", all[1].Nodes)
	require.Equal(t, []string{"research", "ops"}, all[1].Accounts)
	require.Equal(t, int64(1795244141), all[1].End.Unix())
	require.Empty(t, slurm.ParseReservations("No reservations in the system\n"))

	r := slurm.ReservationFromJSON(map[string]any{
		"name": "maint", "users": "root", "accounts": "", "groups": "", "node_list": "gpu2",
		"end_time": map[string]any{"set": true, "infinite": false, "number": 1795244141.0},
	})
	require.Equal(t, time.Unix(1795244141, 0).Unix(), r.End.Unix())
	require.Equal(t, slurm.Reservation{Name: "maint", Nodes: "gpu2", Users: []string{"root"}, Accounts: []string{}, Groups: []string{}, End: r.End}, r)
}

func TestAReservationIsOpenToWhomItNames(t *testing.T) {
	for _, x := range []struct {
		users, accounts, groups []string
		open                    bool
	}{
		{nil, nil, nil, true},
		{[]string{"ada"}, nil, nil, true},
		{[]string{"root"}, nil, nil, false},
		{nil, []string{"research"}, nil, true},
		{nil, []string{"ops"}, nil, false},
		{[]string{"ada"}, []string{"ops"}, nil, false}, // both are asked for
		{[]string{"root", "ada"}, []string{"ops", "research"}, nil, true},
		{[]string{"-mallory"}, nil, nil, true},
		{[]string{"-mallory", "-ada"}, nil, nil, false},
		{nil, []string{"-research"}, nil, false},
		{nil, nil, []string{"wheel"}, false},
		{nil, nil, []string{"wheel", "ml"}, true},
	} {
		r := slurm.Reservation{Users: x.users, Accounts: x.accounts, Groups: x.groups}
		in := func(g string) bool { return slices.Contains([]string{"ml"}, g) }
		require.Equal(t, x.open, r.Open("ada", []string{"research", "guest"}, in), "%+v", r)
	}
}
