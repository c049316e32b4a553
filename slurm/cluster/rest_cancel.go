package cluster

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/slurm"
)

// Cancel ends a job, an array or an array element; see CLI.Cancel.
func (r *REST) Cancel(ctx context.Context, id slurm.JobID) error {
	op := "cancel " + string(id)
	if !slurm.IsJobID(string(id)) {
		return slurm.JobNotFound(id)
	}
	version, err := r.api(ctx)
	if err != nil {
		return withOp(op, err)
	}
	asked := id
	// 23.11 serves these two versions, and it ends the whole array where one element is
	// named.
	if id != id.Array() && (version == 39 || version == 40) {
		if asked, err = r.ownNumber(ctx, op, id); err != nil || asked == "" {
			return err
		}
	}
	_, err = r.call(ctx, op, http.MethodDelete, "job/"+string(asked), nil)
	switch {
	case err == nil && version >= 39 && version < 42:
		return r.confirmEnding(ctx, op, id)
	case err == nil || strings.Contains(err.Error(), "already completing or completed"):
		return nil
	case errors.Is(err, slurm.ErrNotFound):
		if j, err := r.Job(ctx, id); err == nil && j.State.Ended() {
			return nil
		}
		return slurm.JobNotFound(id)
	}
	return err
}

// ownNumber returns the job number that ends only this array element or component; ""
// where it has already ended. An element that waits in the array's single row has no
// number, and the last element to be split off has the number of the array, which would
// end all elements.
func (r *REST) ownNumber(ctx context.Context, op string, id slurm.JobID) (slurm.JobID, error) {
	rows, err := r.queue(ctx, op, "job/"+string(id.Array()))
	if err != nil {
		return "", err
	}
	var mine slurm.Job
	others := false
	for _, j := range rows {
		if j.ID == id {
			mine = j
		} else if !j.State.Ended() {
			others = true
		}
	}
	switch {
	case mine.ID == "":
		// The element may have ended, which is the goal of the request.
		j, err := r.Job(ctx, id)
		if err == nil && !j.State.Ended() {
			err = &slurm.Error{Op: op, Kind: slurm.Rejected, Msg: lang.Text{EN: "job %s is %s and has left the queue", ZH: "作业 %s 的状态为 %s，已离开队列"}.With(id, j.State)}
		}
		return "", err
	case mine.State.Ended():
		return "", nil
	case mine.RawID != "" && (mine.RawID != id.Array() || !others):
		return mine.RawID, nil
	}
	return "", &slurm.Error{
		Op: op, Kind: slurm.Rejected,
		Msg: lang.Text{
			EN: "%s has no number of its own yet, and this slurmrestd would end all of %s",
			ZH: "%s 还没有自己的作业号，而这个 slurmrestd 会终止整个 %s",
		}.With(id, id.Array()),
		Fix: lang.Text{
			EN: "wait until it starts, cancel the whole array %s, or use `scancel %s` on a login node",
			ZH: "请等它启动后再取消，或取消整个数组 %s，或在登录节点上执行 `scancel %s`",
		}.With(id.Array(), id),
	}
}

// How often, and at what interval, a cancelled job is checked.
const (
	leavingLooks = 6
	leavingPause = 250 * time.Millisecond
)

// confirmEnding checks that a cancelled job is really ending, because before v0.0.42
// slurmrestd answers a refusal like a success.
func (r *REST) confirmEnding(ctx context.Context, op string, id slurm.JobID) error {
	var j slurm.Job
	for look := range leavingLooks {
		if look > 0 {
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(leavingPause):
			}
		}
		var err error
		if j, err = r.Job(ctx, id); err != nil {
			return err
		}
		if j.State.Ended() || j.State == slurm.Completing {
			return nil
		}
	}
	if j.User != "" && j.User != r.user {
		return slurm.FromStderr(op, fmt.Sprintf("Access/permission denied: the job is %s's and goes on", j.User))
	}
	return &slurm.Error{
		Op: op, Kind: slurm.Rejected, Msg: lang.Text{
			EN: "slurmrestd accepted the request, but the job is still %s",
			ZH: "slurmrestd 接受了请求，但作业仍为 %s",
		}.With(j.State),
		Fix: lang.Text{
			EN: "check again with `status`; if the job does not end, cancel it with scancel on a login node",
			ZH: "请用 `status` 再次查看；若仍在继续，请在登录节点上用 scancel 取消",
		},
	}
}
