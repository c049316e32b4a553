package diagnosetest

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// pickled writes a value as PyTorch's C++ pickler does: protocol 2, typed lists as calls of a named
// function.
func pickled(b *bytes.Buffer, v any) {
	switch x := v.(type) {
	case string:
		b.WriteByte('X')
		_ = binary.Write(b, binary.LittleEndian, uint32(len(x)))
		b.WriteString(x)
	case int:
		b.WriteByte(0x8a)
		b.WriteByte(8)
		_ = binary.Write(b, binary.LittleEndian, int64(x))
	case bool:
		b.WriteByte(map[bool]byte{true: 0x88, false: 0x89}[x])
	case []int:
		b.WriteString("ctorch.jit._pickle\nbuild_intlist\n(](")
		for _, n := range x {
			pickled(b, n)
		}
		b.WriteString("etR")
	case []any:
		b.WriteString("](")
		for _, e := range x {
			pickled(b, e)
		}
		b.WriteByte('e')
	case [2]string:
		pickled(b, x[0])
		pickled(b, x[1])
		b.WriteByte(0x86)
	case map[string]any:
		b.WriteString("}(")
		for k, e := range x {
			pickled(b, k)
			pickled(b, e)
		}
		b.WriteByte('u')
	}
}

// Dump writes a flight recorder dump of a rank that entered the collectives up to enqueued and
// completed those up to completed.
func Dump(t *testing.T, dir string, rank, enqueued, completed int) {
	t.Helper()
	entries := []any{}
	for seq := completed - 2; seq <= enqueued; seq++ {
		state := "completed"
		if seq > completed {
			state = "started"
		}
		entries = append(entries, map[string]any{
			"collective_seq_id": seq, "process_group": [2]string{"0", "default_pg"}, "profiling_name": "nccl:all_reduce",
			"state": state, "is_p2p": false, "input_sizes": []int{4, 2},
		})
	}
	var b bytes.Buffer
	b.WriteString("\x80\x02")
	pickled(&b, map[string]any{"version": "2.4", "pg_config": map[string]any{"0": map[string]any{"name": "0", "ranks": "[0, 1, 2, 3]"}}, "entries": entries})
	b.WriteByte('.')
	require.NoError(t, os.WriteFile(filepath.Join(dir, fmt.Sprintf("nccl_trace_rank_%d", rank)), b.Bytes(), 0o644))
}
