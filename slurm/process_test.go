package slurm

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Processes that a job may have left are distinguished from those of the system.
func TestProcessesThatAJobMayHaveLeft(t *testing.T) {
	for _, c := range []struct {
		name, line string
		want       []Process
	}{
		{"a person's", "1000 alice 77 Sl 3600 python train.py --lr 1", []Process{{"alice", 77, "Sl", 3600, "python train.py --lr 1"}}},
		{"the machine's", "999 munge 77 Sl 3600 munged", nil},
		{"nobody's", "65534 nobody 77 Sl 3600 dnsmasq", nil},
		{"one that hangs in the kernel", "0 root 78 D+ 61 nvidia-smi", []Process{{"root", 78, "D+", 61, "nvidia-smi"}}},
		{"one that waits for its disk", "0 root 78 D 60 updatedb", nil},
		{"the kernel's own", "0 root 79 D 3600 [nfsd]", nil},
		{"the listing", "1000 alice 80 R 0 ps -eo " + ProcessFormat, nil},
		{"the login that it takes", "1000 alice 81 S 0 sshd: alice@notty", nil},
		{"a login's manager", "1000 alice 82 Ss 9 /usr/lib/systemd/systemd --user", nil},
		{"its helper", "1000 alice 83 S 9 (sd-pam)", nil},
		{"what is no process", "UID USER PID STAT ELAPSED COMMAND", nil},
		{"one without a command", "1000 alice 84 S 9", nil},
	} {
		require.Equal(t, c.want, ParseProcesses(c.line+"\n"), c.name)
	}
}
