package joblogs

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/view"
	"github.com/megatron-ops/megatron-ops/slurm"
	"github.com/megatron-ops/megatron-ops/slurm/metrics"
)

// maxSampling is the longest time for which one call samples GPUs.
const maxSampling = 2 * time.Hour

// sampleGPUs asks the GPUs of a running job's nodes for their memory several times,
// with a step beside the job's own that takes no GPU. Where the nodes hide GPUs from a
// step without any, it asks again with a step that shares the job's GPUs.
func sampleGPUs(ctx context.Context, c *ops.Call, cl ops.Cluster, j slurm.Job, in MetricsIn) ([]metrics.GPUUse, error) {
	times := cmp.Or(in.Samples, 5)
	span := time.Duration(times*in.Sample) * time.Second
	if in.Sample < 0 || times < 0 || span > maxSampling {
		return nil, ops.InputError("sample",
			lang.Text{EN: "%d samples each %d s cannot be taken", ZH: "无法采样 %d 次、每次间隔 %d 秒"}.With(times, in.Sample),
			lang.Text{EN: "an interval such as 10, and --samples such as 30: two hours at the most", ZH: "间隔例如 10，--samples 例如 30：合计最长两小时"})
	}
	if !c.AtShell() {
		return nil, ops.InputError("sample",
			lang.Text{EN: "GPUs are sampled from the shell only", ZH: "只能在 shell 中对 GPU 采样"},
			lang.Text{EN: "use the shell", ZH: "请在 shell 中使用"})
	}
	if err := c.MayChange(j); err != nil {
		return nil, err
	}
	if j.State != slurm.Running {
		return nil, &ops.Error{Code: ops.Failed, Field: "job", Message: lang.Text{EN: "job %s is %s: only a running job uses GPUs", ZH: "作业 %s 处于 %s：只有运行中的作业在使用 GPU"}.With(j.ID, j.State.Word())}
	}
	argv := append([]string{"bash", "-c", `n=$1 pause=$2; shift 2; for ((i = 0; i < n; i++)); do ((i == 0)) || sleep "$pause"; "$@" || exit; done`, "sample", strconv.Itoa(times), strconv.Itoa(in.Sample)}, metrics.GPUQuery...)
	var said []slurm.NodeOutput
	var err error
	for _, beside := range []bool{false, true} {
		said, err = cl.Exec(ctx, slurm.Exec{Job: j.ID, Argv: argv, GPUs: beside, Limit: span + time.Minute})
		var all []metrics.GPUUse
		for _, n := range said {
			all = append(all, metrics.ReadGPUs(n.Node, n.Text)...)
		}
		if len(all) > 0 {
			return all, nil
		}
	}
	if err != nil {
		return nil, c.SlurmError(err, j.ID)
	}
	words := ""
	for _, n := range said {
		words += n.Text
	}
	return nil, &ops.Error{Code: ops.Failed, Field: "sample", Message: lang.Text{EN: "the nodes' GPUs did not answer: %s", ZH: "节点上的 GPU 没有响应：%s"}.With(lastLine(words)), Fix: lang.Text{EN: "`run %s -- nvidia-smi` shows what the nodes say", ZH: "`run %s -- nvidia-smi` 可查看节点的输出"}.With(j.ID)}
}

// gpuSection shows the memory that each GPU used.
func gpuSection(all []metrics.GPUUse, l lang.Lang) view.Section {
	t := &view.Table{Header: view.Columns(l, "node|GPU|peak GiB|of|over time|busy", "节点|GPU|峰值 GiB|共|变化|利用率")}
	for _, u := range all {
		t.Rows = append(t.Rows, []string{
			u.Node, strconv.Itoa(u.GPU), fmt.Sprintf("%.1f", u.PeakMB/1024), fmt.Sprintf("%.1f", u.TotalMB/1024),
			u.Trend(24), fmt.Sprintf("%.0f %%", u.BusyPct),
		})
	}
	return view.Section{Heading: lang.Text{EN: "GPU memory", ZH: "GPU 显存"}.In(l), Table: t}
}
