package slurmtest

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// up starts the daemons in the order of their dependencies.
func (c *Cluster) up(ctx context.Context) error {
	for _, step := range []func(context.Context) error{
		c.prepare, c.startMunge, c.startDatabase, c.startAccounting, c.startController, c.startNodes, c.startREST, c.awaitNodes,
	} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// prepare creates directories, keys, device files, configuration and users.
func (c *Cluster) prepare(ctx context.Context) (err error) {
	if c.port, err = freePorts(); err != nil {
		return err
	}
	c.REST = fmt.Sprintf("http://127.0.0.1:%d", c.port+2)
	for _, dir := range []string{"etc", "pids", "log", "spool", "state", "dev", "db", "run", "work", "munge"} {
		if err := os.MkdirAll(c.path(dir), 0o755); err != nil {
			return err
		}
	}
	for _, name := range []string{"alice", "bob"} {
		if _, err := user.Lookup(name); err == nil {
			continue
		}
		if out, err := exec.CommandContext(ctx, "useradd", "-m", "-s", "/bin/bash", name).CombinedOutput(); err != nil {
			return fmt.Errorf("add user %s: %w: %s", name, err, out)
		}
	}
	host, err := os.Hostname()
	if err != nil {
		return err
	}
	host, _, _ = strings.Cut(host, ".")
	key := func(n int) string {
		b := make([]byte, n)
		_, _ = rand.Read(b)
		return string(b)
	}
	for _, f := range []struct {
		name, text, owner string
		mode              os.FileMode
	}{
		{"munge.key", key(1024), "root", 0o400},
		{"jwt.key", key(32), "slurm", 0o600},
		{"slurm.conf", c.slurmConf(host), "root", 0o644},
		{"slurmdbd.conf", c.dbdConf(), "slurm", 0o600},
		{"gres.conf", fmt.Sprintf("NodeName=gpu[1-4] Name=gpu File=%s\n", c.path("dev", "nvidia[0-7]")), "root", 0o644},
		{"hosts", hosts(), "root", 0o644},
		{"cgroup.conf", cgroupConf(Release(ctx)), "root", 0o644},
	} {
		path := c.path("etc", f.name)
		if err := os.WriteFile(path, []byte(f.text), f.mode); err != nil {
			return err
		}
		if err := chown(path, f.owner); err != nil {
			return err
		}
	}
	for i := range 8 {
		// Any character device can stand for a GPU; this one is another /dev/null.
		if err := syscall.Mknod(c.path("dev", fmt.Sprintf("nvidia%d", i)), syscall.S_IFCHR|0o666, 1<<8|3); err != nil {
			return fmt.Errorf("make a device file: %w", err)
		}
	}
	if err := os.Chmod(c.path("munge"), 0o700); err != nil {
		return err
	}
	for dir, owner := range map[string]string{"state": "slurm", "log": "slurm", "db": "mysql"} {
		if err := chown(c.path(dir), owner); err != nil {
			return err
		}
	}
	for _, dir := range []string{"work", "run"} {
		if err := os.Chmod(c.path(dir), 0o777|os.ModeSticky); err != nil {
			return err
		}
	}
	return nil
}

func chown(path, name string) error {
	cred, err := credential(name)
	if err != nil {
		return err
	}
	return os.Chown(path, int(cred.Uid), int(cred.Gid))
}

func credential(name string) (*syscall.Credential, error) {
	u, err := user.Lookup(name)
	if err != nil {
		return nil, err
	}
	uid, err1 := strconv.ParseUint(u.Uid, 10, 32)
	gid, err2 := strconv.ParseUint(u.Gid, 10, 32)
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, errors.Join(err1, err2)
}

func (c *Cluster) startMunge(ctx context.Context) error {
	err := c.daemon("munged", "root", nil, "munged", "--foreground", "--force",
		"--key-file="+c.path("etc", "munge.key"), "--socket="+c.socket(), "--pid-file="+c.path("munge", "pid"),
		"--log-file="+c.path("munge", "log"), "--seed-file="+c.path("munge", "seed"))
	if err != nil {
		return err
	}
	return c.await(ctx, "munged", 10*time.Second, func() bool { return accepts("unix", c.socket()) })
}

func (c *Cluster) startDatabase(ctx context.Context) error {
	if err := c.databaseFiles(ctx); err != nil {
		return err
	}
	sock := c.path("run", "mysql.sock")
	// The data is not kept after the run, so it need not reach the disk.
	err := c.daemon("mariadbd", "mysql", nil, "mariadbd", "--no-defaults", "--datadir="+c.path("db"), "--socket="+sock,
		fmt.Sprintf("--port=%d", c.port+3), "--bind-address=127.0.0.1", "--pid-file="+c.path("db", "pid"),
		"--skip-name-resolve", "--skip-log-bin", "--performance-schema=OFF", "--innodb-buffer-pool-size=64M",
		"--innodb-flush-log-at-trx-commit=0", "--skip-innodb-doublewrite", "--debug-no-sync", "--innodb-lock-wait-timeout=900")
	if err != nil {
		return err
	}
	sql := func(text string) error {
		return exec.CommandContext(ctx, "mariadb", "--no-defaults", "--socket="+sock, "-uroot", "-e", text).Run()
	}
	if err := c.await(ctx, "mariadbd", 30*time.Second, func() bool { return sql("select 1") == nil }); err != nil {
		return err
	}
	return sql("create database slurm_acct; create user slurm@'127.0.0.1' identified by 'slurm'; grant all on slurm_acct.* to slurm@'127.0.0.1'")
}

// databaseFiles unpacks an empty database. Creating one takes a second or more, so the
// first one of each version of MariaDB is kept for later runs.
func (c *Cluster) databaseFiles(ctx context.Context) error {
	version, err := exec.CommandContext(ctx, "mariadbd", "--version").Output()
	if err != nil {
		return err
	}
	kept := filepath.Join("/var/tmp", fmt.Sprintf("slurmtest-mariadb-%x.tar", sha256.Sum256(version))[:40]+".tar")
	// On Linux a file has a Stat_t.
	if info, err := os.Lstat(kept); err == nil && info.Mode().IsRegular() && info.Sys().(*syscall.Stat_t).Uid == 0 {
		return exec.CommandContext(ctx, "tar", "-C", c.path("db"), "-xf", kept).Run()
	}
	out, err := exec.CommandContext(ctx, "mariadb-install-db", "--no-defaults", "--user=mysql", "--datadir="+c.path("db"),
		"--auth-root-authentication-method=normal", "--skip-test-db").CombinedOutput()
	if err != nil {
		return fmt.Errorf("mariadb-install-db: %w: %s", err, out)
	}
	fresh := c.path("db.tar")
	if err := exec.CommandContext(ctx, "tar", "-C", c.path("db"), "-cf", fresh, ".").Run(); err != nil {
		return err
	}
	return exec.CommandContext(ctx, "mv", "-n", fresh, kept).Run()
}

func (c *Cluster) startAccounting(ctx context.Context) error {
	if err := c.daemon("slurmdbd", "slurm", nil, "slurmdbd", "-D"); err != nil {
		return err
	}
	err := c.await(ctx, "slurmdbd", 30*time.Second, func() bool {
		_, err := c.Run(ctx, "sacctmgr", "-n", "list", "cluster")
		return err == nil
	})
	if err != nil {
		return err
	}
	if _, err := c.Run(ctx, "sacctmgr", "-i", "-Q", "add", "cluster", "mega"); err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, "sacctmgr", "-i", "-Q")
	cmd.Env, cmd.Stdin = c.Environ(), strings.NewReader(accounts)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("sacctmgr: %w: %s", err, out)
	}
	users, err := c.Run(ctx, "sacctmgr", "-n", "-P", "list", "assoc", "user=alice,bob", "format=user,account")
	if err == nil && len(strings.Fields(users)) != 3 {
		err = fmt.Errorf("sacctmgr made other users than it was told to: %q", users)
	}
	return err
}

func (c *Cluster) startController(ctx context.Context) error {
	if err := c.StartController(ctx); err != nil {
		return err
	}
	// The database has the TRES gres/gpu only once the controller has registered.
	err := c.await(ctx, "the TRES gres/gpu", 20*time.Second, func() bool {
		out, err := c.Run(ctx, "sacctmgr", "-n", "list", "tres")
		return err == nil && strings.Contains(out, "gpu")
	})
	if err == nil {
		_, err = c.Run(ctx, "sacctmgr", "-i", "-Q", "modify", "qos", "short", "set", "maxtresperuser=gres/gpu=8")
	}
	return err
}

// StartController starts slurmctld, for the first time or after StopController; it
// reloads its jobs. It uses the nodes' hosts file, because newer releases try for ten
// seconds to resolve a node's name and answer no request meanwhile.
func (c *Cluster) StartController(ctx context.Context) error {
	err := c.daemon("slurmctld", "root", nil, "unshare", "--mount", "--propagation", "private", "sh", "-c",
		`mount --bind "$1" /etc/hosts && exec setpriv --reuid=slurm --regid=slurm --init-groups slurmctld -D`, "sh", c.path("etc", "hosts"))
	if err != nil {
		return err
	}
	return c.await(ctx, "slurmctld", 30*time.Second, func() bool {
		out, err := c.Run(ctx, "scontrol", "ping")
		return err == nil && strings.Contains(out, "UP")
	})
}

func (c *Cluster) startNodes(context.Context) error {
	for _, node := range Nodes {
		if err := c.StartNode(node); err != nil {
			return err
		}
	}
	return nil
}

// StartNode starts the slurmd of a node, with the node's own host name and hosts file.
func (c *Cluster) StartNode(node string) error { return c.startNode(node, "-D") }

// BootNode is StartNode for a node that reports a boot just now, which power saving
// waits for.
func (c *Cluster) BootNode(node string) error { return c.startNode(node, "-Db") }

func (c *Cluster) startNode(node, how string) error {
	return c.daemon("slurmd."+node, "root", nil, "unshare", "--mount", "--uts", "--propagation", "private", "sh", "-c",
		`hostname "$1" && mount --bind "$2" /etc/hosts && exec slurmd "$3" -N "$1"`, "sh", node, c.path("etc", "hosts"), how)
}

func (c *Cluster) startREST(ctx context.Context) error {
	env := []string{"SLURM_JWT=daemon", "SLURMRESTD_SECURITY=disable_unshare_files,disable_unshare_sysv"}
	address := strings.TrimPrefix(c.REST, "http://")
	if err := c.daemon("slurmrestd", "nobody", env, "slurmrestd", "-a", "rest_auth/jwt", address); err != nil {
		return err
	}
	return c.await(ctx, "slurmrestd", 10*time.Second, func() bool { return accepts("tcp", address) })
}

func (c *Cluster) awaitNodes(ctx context.Context) error {
	return c.await(ctx, "idle nodes", 60*time.Second, func() bool {
		out, err := c.Run(ctx, "sinfo", "-h", "-N", "-p", "prod", "-t", "idle", "-o", "%N")
		return err == nil && len(strings.Fields(out)) == len(Nodes)
	})
}

// accepts reports whether somebody accepts connections at address.
func accepts(network, address string) bool {
	conn, err := net.Dial(network, address)
	if err == nil {
		conn.Close()
	}
	return err == nil
}

// await polls until ok returns true.
func (c *Cluster) await(ctx context.Context, what string, limit time.Duration, ok func() bool) error {
	for deadline := time.Now().Add(limit); time.Now().Before(deadline); time.Sleep(30 * time.Millisecond) {
		if ok() {
			return nil
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	return fmt.Errorf("%s did not come up within %s", what, limit)
}
