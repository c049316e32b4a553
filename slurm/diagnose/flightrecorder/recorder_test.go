package flightrecorder_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/megatron-ops/megatron-ops/slurm/diagnose"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/diagnosetest"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/logfile"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/outcome"
	"github.com/stretchr/testify/require"
)

func TestFlightRecorderNamesTheRank(t *testing.T) {
	r := &diagnosetest.Run{World: 4, PerNode: 4}
	r.Healthy(0, time.Minute)
	dir := t.TempDir()
	diagnosetest.Layouts["ranks"](t, r, dir)
	for rank := range 4 {
		if rank == 2 {
			diagnosetest.Dump(t, dir, rank, 811, 811)
		} else {
			diagnosetest.Dump(t, dir, rank, 813, 811)
		}
	}
	silent := int64(5400)
	got, err := diagnose.Path(context.Background(), dir, diagnose.Context{JobState: "RUNNING", SecondsSinceLastWrite: &silent})
	require.NoError(t, err)
	require.Equal(t, outcome.Hang, got.Class)
	require.Equal(t, 2, *got.RootRank)
	require.Equal(t, "all_reduce #812 of group 0 (3 ranks wait in it)", got.Collective)
	require.Contains(t, got.Summary, "never entered all_reduce #812")
}

func TestFlightRecorderOfADeadRank(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "slurm-1.out"), []byte("[rank0]:[E ProcessGroupNCCL.cpp:632] [Rank 0] Watchdog caught "+
		"collective operation timeout: WorkNCCL(SeqNum=812, OpType=ALLREDUCE, NumelIn=4, NumelOut=1, Timeout(ms)=1800000) ran for 1800091 milliseconds "+
		"before timing out.\n"), 0o644))
	for _, rank := range []int{0, 1, 3} {
		diagnosetest.Dump(t, dir, rank, 813, 811)
	}
	got, err := diagnose.Path(context.Background(), dir, diagnose.Context{JobState: "FAILED"})
	require.NoError(t, err)
	require.Equal(t, outcome.NCCLTimeout, got.Class)
	require.Equal(t, 2, *got.RootRank, "the member without a dump")
}

// TestAPickleIsNeverExecuted has the classic attack: a call of os.system.
func TestAPickleIsNeverExecuted(t *testing.T) {
	dir := t.TempDir()
	marker := filepath.Join(dir, "executed")
	for i, attack := range []string{
		"cos\nsystem\n(X" + string(binary.LittleEndian.AppendUint32(nil, uint32(6+len(marker)))) + "touch " + marker + "tR.",
		"\x80\x04\x8c\x02os\x8c\x06system\x93\x8c\x01x\x85R.",
		"ios\nsystem\n.", "(]\x81b.", "\x80\x02}q\x00(X\xff\xff\xff\xff", "\x95\x00", "X\xff\xff\xff\x7f", "e.", "u", "\x87.",
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, fmt.Sprintf("nccl_trace_rank_%d", i)), []byte(attack), 0o644))
	}
	_, err := diagnose.Path(context.Background(), dir, diagnose.Context{})
	none := new(logfile.UnreadableError)
	require.ErrorAs(t, err, &none, "nothing in the folder can be read")
	require.Len(t, none.Logs, 10)
	require.NoFileExists(t, marker)
}

// Without any log, the dumps of ranks 0, 2 and 3, under names of the user's choice and in both formats,
// show a collective that rank 1 never entered.
func TestDumpsAloneNameTheRanksBehind(t *testing.T) {
	for _, form := range []string{"nccl_trace_rank_%d", "fr/dump_%d", "mine-%d.json"} {
		dir := t.TempDir()
		for rank, enqueued := range []int{813, 811, 813, 813} {
			path := filepath.Join(dir, fmt.Sprintf(form, rank))
			require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
			if filepath.Ext(path) == ".json" {
				text := `{"version":"2.9","pg_config":{"0":{"name":"0","desc":"default_pg","ranks":"[0, 1, 2, 3]"}},"entries":[`
				for seq := 811; seq <= enqueued; seq++ {
					state := map[bool]string{true: "completed", false: "started"}[seq == 811]
					text += fmt.Sprintf(`%s{"process_group":["0","default_pg"],"collective_seq_id":%d,"is_p2p":false,"profiling_name":"nccl:all_reduce","state":%q}`,
						map[bool]string{true: ",", false: ""}[seq > 811], seq, state)
				}
				require.NoError(t, os.WriteFile(path, []byte(text+"]}"), 0o644))
				continue
			}
			diagnosetest.Dump(t, filepath.Dir(path), rank, enqueued, 811)
			if named := filepath.Join(filepath.Dir(path), fmt.Sprintf("nccl_trace_rank_%d", rank)); named != path {
				require.NoError(t, os.Rename(named, path))
			}
		}
		got, err := diagnose.Path(context.Background(), dir, diagnose.Context{})
		require.NoError(t, err, form)
		require.Equal(t, outcome.NCCLTimeout, got.Class, form)
		require.Equal(t, 1, *got.RootRank, form)
		require.Contains(t, got.Collective, "all_reduce #812", form)
		running, err := diagnose.Path(context.Background(), dir, diagnose.Context{JobState: "RUNNING"})
		require.NoError(t, err)
		require.Equal(t, outcome.Hang, running.Class, form)
	}
}
