package jobcontrol

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/view"
	"github.com/megatron-ops/megatron-ops/slurm"
)

func TestAListHasTheColumnsThatAreAsked(t *testing.T) {
	limit, exit := int64(7200), "1:0"
	jobs := []slurm.Job{
		{ID: "12", Name: "gpt", User: "alice", Account: "research", Partition: "dev", State: slurm.Running, Nodes: []string{"gpu1", "gpu2", "gpu4"}, GPUs: 16, ElapsedS: 3600, TimeLimitS: &limit},
		{ID: "11", Name: "gpt", User: "alice", Partition: "dev", State: slurm.Failed, Reason: "NonZeroExitCode", ExitCode: &exit},
		{ID: "10", Name: "gpt", User: "alice", Partition: "dev", State: slurm.Pending, Reason: "Priority", NumNodes: 2},
	}
	draw := func(o ListOut, width int) string {
		var b strings.Builder
		require.NoError(t, view.Text(&b, o.View(lang.EN), view.Style{Width: width}))
		return b.String()
	}
	require.Equal(t, `  job  account   left      GPUs  exit  node list
  12   research  01:00:00  16          gpu[1-2,4]
  11                             1:0
  10
`, draw(ListOut{Jobs: jobs, columns: []string{"job", "account", "left", "gpus", "exit", "nodelist"}}, 0))
	require.Equal(t, `  job  name  state    elapsed   where / why
  12   gpt   RUNNING  01:00:00  gpu[1-2,4]
  11   gpt   FAILED   00:00
  10   gpt   PENDING  00:00     Priority
`, draw(ListOut{Jobs: jobs}, 46), "a narrow terminal goes without the user, the partition and the number of nodes")
	require.Equal(t, draw(ListOut{Jobs: jobs}, 46), draw(ListOut{Jobs: jobs, columns: []string{"job", "name", "state", "elapsed", "where"}}, 0))
	require.Contains(t, draw(ListOut{Jobs: jobs}, 200), "partition")
	require.Equal(t, "did you mean partition?", strings.Split(ops.AsError(checkColumns([]string{"partitoin"})).In(lang.EN).Fix, " the columns")[0])
}
