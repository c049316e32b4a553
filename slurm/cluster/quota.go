package cluster

import (
	"context"
	"errors"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"github.com/megatron-ops/megatron-ops/internal/account"
	"github.com/megatron-ops/megatron-ops/slurm"
)

// quotaLimit bounds the time that a file server may take to report quotas.
const quotaLimit = 5 * time.Second

// lustre is the magic number of Lustre file systems, from Lustre's header.
const lustre = 0x0bd00bd0

// Quotas returns the quotas that apply in dir to the user of this process: by lfs quota
// on Lustre, else by quota. The result is empty where the command does not exist, and
// for root, whom no quota binds.
func Quotas(ctx context.Context, dir string) ([]slurm.Quota, error) {
	me, err := account.Current(ctx)
	if err != nil || me.UID == 0 {
		return nil, err
	}
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return nil, err
	}
	return quotas(ctx, localRunner{}, os.Environ(), me, dir, int64(st.Type) == lustre) //nolint:unconvert // int32 on some architectures
}

func quotas(ctx context.Context, r runner, env []string, me account.User, dir string, onLustre bool) ([]slurm.Quota, error) {
	ask := map[string][]string{
		"user":  {"quota", "--no-wrap", "--raw-grace", "--show-mntpoint", "--quiet-refuse", "--user"},
		"group": {"quota", "--no-wrap", "--raw-grace", "--show-mntpoint", "--quiet-refuse", "--group"},
	}
	if onLustre {
		ask = map[string][]string{
			"user":  {"lfs", "quota", "-q", "-u", strconv.Itoa(me.UID), dir},
			"group": {"lfs", "quota", "-q", "-g", strconv.Itoa(me.GID), dir},
		}
	}
	var all []slurm.Quota
	for of, argv := range ask {
		// quota exits with 1 where a limit is exceeded; its output is valid all the
		// same.
		got, err := r.run(ctx, command{argv: argv, env: env, limit: quotaLimit})
		if e, ok := errors.AsType[*slurm.Error](err); ok && (e.Kind == slurm.Missing || e.Kind == slurm.Broken) {
			return nil, nil // this machine has no such command
		}
		if err != nil {
			return nil, withOp("quotas of "+dir, err)
		}
		for _, q := range slurm.ParseQuotas(got.stdout, of) {
			if q.Over(dir) {
				all = append(all, q)
			}
		}
	}
	return all, nil
}
