package slurm

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestQuotasAreReadFromBothCommands(t *testing.T) {
	for _, c := range []struct {
		name, out string
		want      []Quota
	}{
		{"quota(1)", "Disk quotas for user alice (uid 1001): \n     Filesystem  blocks   quota   limit   grace   files   quota   limit   grace\n          /home   10240   20000   30000       0       2       0       0       0\n", []Quota{{"user", "/home", 10240 << 10, 30000 << 10}}},
		{"with its device, over, soft limit only", "Disk quotas for user alice (uid 1001): \n nas:/vol/home /home 20480* 20000 0 1790000000 2 0 0 0\n", []Quota{{"user", "/home", 20480 << 10, 20000 << 10}}},
		{"no limit is none", " /scratch 10240 0 0 0 2 0 0 0\n", nil},
		{"lfs quota", "        /lustre 1048576       0 2097152       -    1000       0       0       -\n", []Quota{{"user", "/lustre", 1 << 30, 2 << 30}}},
		{"a server that did not answer", "        /lustre [1048576]       0 2097152       -    1000       0       0       -\n", []Quota{{"user", "/lustre", 1 << 30, 2 << 30}}},
		{"a long name on a line of its own", "/lustre/with/a/very/long/name\n                1048576       0 2097152       -    1000       0       0       -\n", []Quota{{"user", "/lustre/with/a/very/long/name", 1 << 30, 2 << 30}}},
		{"none", "Disk quotas for user alice (uid 1001): none\n", nil},
		{"no folder that it is mounted at, or cut short", " nas:/vol/home 20480 20000 30000 0 2 0 0 0\n /a 20480 20000\n /b 20480\n", nil},
		{"more than there can be, and less", " /a 10240 0 9007199254740993 0 2 0 0 0\n /b 10240 0 -5 0 2 0 0 0\n /c 1 0 4503599627370496 0 2 0 0 0\n", []Quota{{"user", "/c", 1 << 10, 1 << 62}}},
		{"words", "quota: error while getting quota\n1 2 3\n", nil},
	} {
		require.Equal(t, c.want, ParseQuotas(c.out, "user"), c.name)
	}
	q := Quota{Mount: "/home", Used: 5, Limit: 3}
	require.Zero(t, q.Left())
	require.True(t, q.Over("/home/alice") && !q.Over("/homes/alice"))
}
