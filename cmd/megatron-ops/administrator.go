package main

import (
	"context"
	"os"
	"os/exec"
	"strconv"
	"time"

	"github.com/megatron-ops/megatron-ops/internal/config"
	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/lazy"
	"github.com/megatron-ops/megatron-ops/internal/ops"
)

// allowRoot lets serve run as root, in a container of its own or a test.
const allowRoot = "MEGATRON_OPS_ALLOW_ROOT"

// slurmUser finds SlurmUser in what `scontrol show config` says.
var slurmUser = lazy.New(`(?m)^SlurmUser\s*=\s*\S+\((\d+)\)`)

// notAdministrator refuses to serve as root, or as the account that Slurm's
// controller runs as: both may do anything to everybody's jobs, and a mistake
// here must not.
func notAdministrator(ctx context.Context, cfg config.Config) error {
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
	ctx, stop := context.WithTimeout(ctx, 5*time.Second)
	defer stop()
	for name, c := range cfg.Clusters {
		if c.Kind != "cli" {
			continue
		}
		cmd := exec.CommandContext(ctx, "scontrol", "show", "config")
		if c.SlurmConf != "" {
			cmd.Env = append(os.Environ(), "SLURM_CONF="+c.SlurmConf)
		}
		out, err := cmd.Output()
		if err != nil {
			continue // a controller that is away refuses nobody's start
		}
		if m := slurmUser.FindStringSubmatch(string(out)); m != nil && m[1] == strconv.Itoa(os.Geteuid()) {
			return &ops.Error{Code: ops.NotAllowed, Field: "clusters." + name, Message: lang.Text{EN: "serve does not run as SlurmUser (uid %s)", ZH: "serve 不以 SlurmUser（uid %s）运行"}.With(m[1]), Fix: fix}
		}
	}
	return nil
}
