package joblogs

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/megatron-ops/megatron-ops/internal/account"
	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/slurm"
	"github.com/megatron-ops/megatron-ops/slurm/cluster"
)

// CancelledBy returns who cancelled a job: a user's name, or a number such as "uid 1001"
// where this machine does not know the cluster's users. root is also Slurm itself. Only the accounts tell; it
// returns "" where they do not, and for a job that was not cancelled.
func CancelledBy(ctx context.Context, cl ops.Cluster, j slurm.Job) string {
	who := j.CancelledBy()
	if who == "" && j.State == slurm.Cancelled {
		who = InAccounts(ctx, cl, j.ID).CancelledBy()
	}
	number, numeric := strings.CutPrefix(who, "uid ")
	if number == "0" { // everywhere
		return "root"
	}
	if uid, err := strconv.Atoi(number); numeric && err == nil && cl.Kind() == "cli" { // else the cluster's users may be others
		if u, err := account.ByID(ctx, uid); err == nil {
			return u.Name
		}
	}
	return who
}

// accountsLimit is how long an answer waits for what only the accounts add to it.
const accountsLimit = 5 * time.Second

// InAccounts returns what the accounts tell of a job whose state is known without them; the
// zero job where they do not answer soon.
func InAccounts(ctx context.Context, cl ops.Cluster, id slurm.JobID) slurm.Job {
	past, _ := cl.Past(cluster.WithPatience(ctx, accountsLimit), slurm.Filter{IDs: []slurm.JobID{id}})
	known, _ := slurm.Fold(id, past)
	return known
}

// unaccounted says that the job's end is not known, after an answer from its files.
func unaccounted(l lang.Lang) string {
	return lang.Text{EN: "The job %s.", ZH: "作业%s。"}.With(slurm.Ended.Explain().Says).In(l)
}
