package main

import (
	"context"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"

	"github.com/megatron-ops/megatron-ops/internal/config"
	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/lazy"
	"github.com/megatron-ops/megatron-ops/internal/ops"
)

// allowRoot is the variable that lets serve run as root, in a container of its own or
// in a test.
const allowRoot = "MEGATRON_OPS_ALLOW_ROOT"

// slurmUser matches SlurmUser in the output of `scontrol show config`.
var slurmUser = lazy.New(`(?m)^SlurmUser\s*=\s*\S+\((\d+)\)`)

// refuseAdministrator returns an error if serve runs as root or as the account of
// Slurm's controller. Both may change everybody's jobs, and a bug here must not be able
// to.
func refuseAdministrator(ctx context.Context, cfg config.Config) error {
	if os.Getenv(allowRoot) == "1" {
		return nil
	}
	fix := lang.Text{
		EN: "run it as an account of its own: docs/install.md; in a container of its own, %s=1",
		ZH: "请用专门的账号运行：见 docs/install.md；若在独立容器中，设置 %s=1",
	}.With(allowRoot)
	if os.Geteuid() == 0 {
		return &ops.Error{Code: ops.NotAllowed, Message: lang.Text{EN: "serve does not run as root", ZH: "serve 不以 root 运行"}, Fix: fix}
	}
	uid := strconv.Itoa(os.Geteuid())
	for name, user := range slurmUsers(ctx, cfg) {
		if user == uid {
			return &ops.Error{Code: ops.NotAllowed, Field: "clusters." + name, Message: lang.Text{EN: "serve does not run as SlurmUser (uid %s)", ZH: "serve 不以 SlurmUser（uid %s）运行"}.With(uid), Fix: fix}
		}
	}
	return nil
}

// slurmUsers returns, by cluster, the uid of the account that the controller runs as,
// for the clusters whose commands are on this machine. A cluster that does not answer
// is left out, so that it cannot prevent a start.
func slurmUsers(ctx context.Context, cfg config.Config) map[string]string {
	ctx, stop := context.WithTimeout(ctx, 5*time.Second)
	defer stop()
	clusters := map[string]config.Cluster{}
	if _, err := exec.LookPath("sbatch"); err == nil {
		clusters[slurmCluster] = config.Cluster{Kind: "cli"} // built in, so no configuration names it
	}
	maps.Copy(clusters, cfg.Clusters)
	users := map[string]string{}
	for name, c := range clusters {
		if c.Kind != "cli" {
			continue
		}
		cmd := exec.CommandContext(ctx, filepath.Join(commandsOf(c), "scontrol"), "show", "config")
		cmd.Env = environOf(c)()
		out, _ := cmd.Output()
		if m := slurmUser.FindStringSubmatch(string(out)); m != nil {
			users[name] = m[1]
		}
	}
	return users
}
