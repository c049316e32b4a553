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

// quotaLimit is how long a file server may take to tell of its quotas.
const quotaLimit = 5 * time.Second

// lustre is the magic number of Lustre's file systems, from its own header.
const lustre = 0x0bd00bd0

// Quotas tells what the user of this process may still write in dir: by
// lfs quota on Lustre, else by quota. A machine without the command tells of
// none, and neither does root, whom no quota binds.
func Quotas(ctx context.Context, dir string) ([]slurm.Quota, error) {
	me, err := account.Current(ctx)
	if err != nil || me.UID == 0 {
		return nil, err
	}
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return nil, err
	}
	return quotas(ctx, here{}, os.Environ(), me, dir, int64(st.Type) == lustre) //nolint:unconvert // int32 on some architectures
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
		// quota ends with 1 where a limit is passed; what it printed counts.
		got, err := r.run(ctx, command{argv: argv, env: env, limit: quotaLimit})
		if e, ok := errors.AsType[*slurm.Error](err); ok && (e.Kind == slurm.Missing || e.Kind == slurm.Broken) {
			return nil, nil // there is no such command here
		}
		if err != nil {
			return nil, named("quotas of "+dir, err)
		}
		for _, q := range slurm.ParseQuotas(got.stdout, of) {
			if q.Over(dir) {
				all = append(all, q)
			}
		}
	}
	return all, nil
}
