package slurmtest

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
)

// slurmConf returns slurm.conf. The ports follow each other: slurmctld, slurmdbd,
// slurmrestd, MariaDB, and one for each slurmd.
func (c *Cluster) slurmConf(host string) string {
	o := c.options
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line("ClusterName=mega")
	line("SlurmctldHost=%s(127.0.0.1)", host)
	line("SlurmctldPort=%d", c.port)
	line("SlurmUser=slurm")
	line("AuthType=auth/munge")
	line("AuthInfo=socket=%s", c.socket())
	line("CredType=cred/munge")
	line("AuthAltTypes=auth/jwt")
	line("AuthAltParameters=jwt_key=%s", c.path("etc", "jwt.key"))
	line("StateSaveLocation=%s", c.path("state"))
	line("SlurmdSpoolDir=%s", c.path("spool", "%n"))
	line("SlurmctldPidFile=%s", c.path("run", "slurmctld.pid"))
	line("SlurmdPidFile=%s", c.path("run", "slurmd.%n.pid"))
	line("SlurmctldLogFile=%s", c.path("log", "slurmctld.log"))
	line("SlurmdLogFile=%s", c.path("log", "slurmd.%n.log"))
	// This allows several slurmd on one host, and nodes larger than the host.
	line("SlurmdParameters=config_overrides")
	line("ProctrackType=proctrack/linuxproc")
	line("TaskPlugin=task/none")
	line("MpiDefault=none")
	line("JobAcctGatherType=jobacct_gather/linux")
	line("SelectType=select/cons_tres")
	line("SelectTypeParameters=CR_Core_Memory")
	line("DefMemPerCPU=1000")
	line("GresTypes=gpu")
	// Schedule as soon as possible.
	line("SchedulerParameters=bf_interval=2,bf_continue,sched_min_interval=0,sched_interval=5,batch_sched_delay=0")
	line("PriorityType=priority/multifactor")
	line("PriorityWeightQOS=10000")
	line("PriorityWeightAge=1000")
	line("ReturnToService=2")
	line("KillWait=5")
	line("MinJobAge=%d", orElse(o.MinJobAge, 300))
	// On a busy machine a slurmd may be slow. That must not requeue a test's jobs
	// unless the test asks for it.
	line("SlurmdTimeout=%d", orElse(o.SlurmdTimeout, 120))
	line("MaxJobCount=20000")
	line("JobRequeue=1")
	line("AccountingStorageType=accounting_storage/slurmdbd")
	line("AccountingStorageHost=127.0.0.1")
	line("AccountingStoragePort=%d", c.port+1)
	// Without this sacctmgr tries the system's munge socket for minutes.
	line("AccountingStoragePass=socket=%s", c.socket())
	line("AccountingStorageTRES=gres/gpu")
	line("AccountingStoreFlags=job_comment,job_env,job_script")
	if o.Enforce {
		line("AccountingStorageEnforce=associations,limits,qos")
	}
	if o.Preempt {
		line("PreemptType=preempt/qos")
		line("PreemptMode=REQUEUE")
	}
	for i, node := range Nodes {
		feature := "a100"
		if i%2 == 1 {
			feature = "h100"
		}
		line("NodeName=%s NodeHostname=localhost NodeAddr=127.0.0.1 Port=%d CPUs=64 Sockets=2 CoresPerSocket=32 ThreadsPerCore=1 RealMemory=512000 Gres=gpu:8 Feature=%s,nvlink State=UNKNOWN", node, c.port+4+i, feature)
	}
	line("PartitionName=dev Nodes=gpu[1-4] Default=YES MaxTime=01:00:00 MaxNodes=2 DefaultTime=00:10:00 State=UP")
	line("PartitionName=prod Nodes=gpu[1-4] MaxTime=7-00:00:00 DefaultTime=01:00:00 State=UP")
	b.WriteString(o.Conf)
	return b.String()
}

// cgroupConf returns cgroup.conf. Since 24.05 Slurm looks for cgroups whatever
// ProctrackType says, and knows this setting; earlier releases do not.
func cgroupConf(release string) string {
	if release != "" && release < "24.05" {
		return ""
	}
	return "CgroupPlugin=disabled\n"
}

// Release returns the release of this machine's Slurm, such as "25.11".
func Release(ctx context.Context) string {
	takePrefix()
	out, _ := exec.CommandContext(ctx, "slurmctld", "-V").CombinedOutput()
	return releaseForm.FindString(string(out))
}

var releaseForm = regexp.MustCompile(`[0-9][0-9]\.[0-9][0-9]`)

func (c *Cluster) dbdConf() string {
	return fmt.Sprintf(`AuthType=auth/munge
AuthInfo=socket=%s
AuthAltTypes=auth/jwt
AuthAltParameters=jwt_key=%s
DbdHost=localhost
DbdAddr=127.0.0.1
DbdPort=%d
SlurmUser=slurm
LogFile=%s
PidFile=%s
StorageType=accounting_storage/mysql
StorageHost=127.0.0.1
StoragePort=%d
StorageUser=slurm
StoragePass=slurm
StorageLoc=slurm_acct
`, c.socket(), c.path("etc", "jwt.key"), c.port+1, c.path("log", "slurmdbd.log"), c.path("run", "slurmdbd.pid"), c.port+3)
}

// accounts is the input of sacctmgr: users, their accounts and their QOS.
const accounts = `add qos scavenge priority=0
modify qos normal set priority=10
add qos urgent priority=1000 preempt=normal,scavenge
add qos short priority=20 maxwall=00:30:00 flags=DenyOnLimit
add account research,infra cluster=mega description=x organization=x
add user alice account=research,infra defaultaccount=research qos=normal,urgent,scavenge,short defaultqos=normal
add user bob account=infra defaultaccount=infra qos=normal,scavenge defaultqos=normal
quit
`

func (c *Cluster) path(parts ...string) string {
	return filepath.Join(append([]string{c.Dir}, parts...)...)
}

func (c *Cluster) socket() string { return c.path("run", "munge.sock") }

func orElse(n, otherwise int) int {
	if n == 0 {
		return otherwise
	}
	return n
}

// hosts returns the hosts file of the nodes.
func hosts() string {
	own, _ := os.ReadFile("/etc/hosts")
	var b strings.Builder
	for i, node := range Nodes {
		fmt.Fprintf(&b, "127.0.1.%d %s\n", i+1, node)
	}
	return b.String() + string(own)
}
