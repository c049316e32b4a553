package fleet

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/ops/opstest"
	"github.com/megatron-ops/megatron-ops/slurm/slurmtest"
)

func judged(names, said string) NodeCheckOut {
	var o NodeCheckOut
	all := strings.Split(names, ",")
	for _, n := range all {
		said += "\nnodecheck {\"node\":\"" + n + "\",\"check\":\"end\",\"ok\":true}\n"
	}
	o.judge(all, readChecks(said), lang.EN)
	o.finish(all)
	return o
}

func pairs(values map[string]string) string {
	var b strings.Builder
	for p, v := range values {
		a, c, _ := strings.Cut(p, "-")
		b.WriteString(`nodecheck {"node":"` + a + `","check":"allreduce","ok":true,"pair":["` + a + `","` + c + `"],"value":` + v + `,"unit":"GB/s"}` + "\n")
	}
	return b.String()
}

func TestTheOddNodeIsFound(t *testing.T) {
	for name, test := range map[string]struct {
		said, odd, finding string
	}{
		"all hold": {pairs(map[string]string{"a-b": "190", "c-d": "188", "b-c": "195", "d-a": "191"}), "", ""},
		"one is slow with both its neighbours": {
			pairs(map[string]string{"a-b": "190", "c-d": "21", "b-c": "20", "d-a": "191"}), "c", "all-reduce with its neighbours: 21 GB/s, where its peers have 191",
		},
		"noise around our lines, and words that are not ours": {
			"srun: job 7 queued\n\x1b[31mnodecheck {broken\nnodecheck {\"node\":\"z\",\"check\":\"cuda\",\"ok\":false}\n" +
				`slurmd: nodecheck {"node":"b","check":"ecc","ok":false,"gpu":3,"error":"2 uncorrected ECC errors"}` + "\n", "b", "ECC errors (GPU 3): 2 uncorrected",
		},
		"nobody reaches one": {
			`nodecheck {"node":"a","check":"connect","ok":false,"unreached":["d"]}
nodecheck {"node":"b","check":"connect","ok":false,"unreached":["d"]}
nodecheck {"node":"c","check":"connect","ok":false,"unreached":["d"]}
nodecheck {"node":"d","check":"connect","ok":true,"unreached":[]}`, "d", "not reached by a, b, c",
		},
		"one reaches nobody": {
			`nodecheck {"node":"d","check":"connect","ok":false,"unreached":["a","b","c"]}`, "d", "reaches no other node",
		},
		"a slow GPU": {
			`nodecheck {"node":"a","check":"compute","ok":true,"gpu":0,"value":640,"unit":"TFLOP/s"}
nodecheck {"node":"b","check":"compute","ok":true,"gpu":0,"value":655,"unit":"TFLOP/s"}
nodecheck {"node":"b","check":"compute","ok":true,"gpu":1,"value":310,"unit":"TFLOP/s"}
nodecheck {"node":"c","check":"compute","ok":true,"gpu":0,"value":650,"unit":"TFLOP/s"}`, "b", "matrix product: 310 TFLOP/s, where its peers have 640",
		},
		"an Xid": {`nodecheck {"node":"c","check":"xid","ok":false,"error":"NVRM: Xid (PCI:0000:4e:00): 79, GPU has fallen off the bus."}`, "c", "Xid (PCI"},
		"torch is missing on one only": {
			`nodecheck {"node":"a","check":"cuda","ok":true,"value":8,"given":8}
nodecheck {"node":"b","check":"cuda","ok":true,"skipped":"no-torch","error":"/v/bin/python"}`, "b", "torch cannot be imported",
		},
	} {
		t.Run(name, func(t *testing.T) {
			o := judged("a,b,c,d", test.said)
			require.Equal(t, test.odd, o.Exclude)
			if test.odd == "" {
				return
			}
			require.True(t, o.Found())
			for _, n := range o.Nodes {
				if n.Node == test.odd {
					require.Contains(t, strings.Join(n.Findings, "\n"), test.finding)
				}
			}
			require.Contains(t, opstest.Text(t, o, lang.ZH), "--exclude "+test.odd)
		})
	}
	silent := NodeCheckOut{}
	silent.judge([]string{"a", "b"}, readChecks(`nodecheck {"node":"a","check":"end","ok":true}`), lang.EN)
	silent.finish([]string{"a", "b"})
	require.Equal(t, "b", silent.Exclude, "a node that says nothing to the end is odd")
}

// A node's /tmp, and the folder in which the check is started, may hold files of anybody. Python
// would import them for its own modules, as whoever tests the node.
func TestNodeCheckImportsNothingOfOthers(t *testing.T) {
	python, err := exec.CommandContext(t.Context(), "python3", "-c", "import sys; print(sys.executable)").Output()
	if err != nil {
		t.Skip("there is no python3")
	}
	tmp, start := t.TempDir(), t.TempDir()
	for _, dir := range []string{tmp, start} {
		for _, name := range []string{"enum.py", "random.py", "socket.py"} {
			require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte("print('imported', __file__, flush=True)\nraise SystemExit(7)\n"), 0o600))
		}
	}
	require.NoError(t, os.Symlink(strings.TrimSpace(string(python)), filepath.Join(start, "relative")))
	// The second program starts a process as the check does for each GPU.
	again := "import multiprocessing, os, random\n\ndef child():\n    print('child', oct(os.stat('.').st_mode)[-3:], flush=True)\n\n" +
		"if __name__ == '__main__':\n    p = multiprocessing.get_context('spawn').Process(target=child)\n    p.start()\n    p.join()\n"
	for program, want := range map[string]string{nodeCheckProgram: `"check": "end", "ok": true`, again: "child 700"} {
		for _, python := range []string{"python3", "./relative"} {
			cmd := exec.CommandContext(t.Context(), "bash", "-c", nodeCheckShell, "nodecheck", python, program)
			cmd.Dir = start
			cmd.Env = append(os.Environ(), "TMPDIR="+tmp, "CHECK_NODES=a", "CHECK_GPUS=0", "SLURM_PROCID=0", "SLURM_JOB_ID=1", "PYTHONDONTWRITEBYTECODE=1")
			said, err := cmd.CombinedOutput()
			require.NoError(t, err, "%s", said)
			require.NotContains(t, string(said), "imported")
			require.Contains(t, string(said), want)
		}
	}
	left, err := os.ReadDir(tmp)
	require.NoError(t, err)
	require.Len(t, left, 3, "the check leaves nothing behind")
}

// TestNodeCheckOnSlurm checks four nodes for real, over gloo because there is no
// GPU; then with one whose Python dies, and one that is drained.
func TestNodeCheckOnSlurm(t *testing.T) {
	slurmtest.Torch(t)
	c, real := opstest.OnSlurm(t)
	var o NodeCheckOut
	for range 3 { // the four share this machine, so on a busy machine their links differ
		out, err := opstest.Do(t, c, NodeCheck(), "gpu[1-4]", "--gpus", "0", "--partition", "prod", "--python", "/usr/bin/python3", "--yes")
		require.NoError(t, err)
		if o = out.(NodeCheckOut); len(o.Odd) == 0 {
			break
		}
	}
	require.Empty(t, o.Odd, "%+v", o.Nodes)
	for _, n := range o.Nodes {
		require.InDelta(t, 3, n.Measured["connect"], 0, "peers")
		require.Positive(t, n.Measured["allreduce"])
	}
	says := opstest.Text(t, o, lang.EN)
	require.Contains(t, says, "nothing odd on 4 nodes")
	require.Contains(t, says, "CUDA, GPU memory, matrix product (gpu[1-4]): no GPU was asked for")
	require.Contains(t, opstest.Text(t, o, lang.ZH), "未能测试")

	shim := filepath.Join(real.Work, "python")
	require.NoError(t, os.WriteFile(shim, []byte("#!/bin/sh\n[ \"$SLURMD_NODENAME\" != gpu3 ] || exit 9\nexec /usr/bin/python3 \"$@\"\n"), 0o755))
	_, err := real.Run(t.Context(), "scontrol", "update", "NodeName=gpu4", "State=DRAIN", "Reason=Kill task failed")
	require.NoError(t, err)
	t.Cleanup(func() { _, _ = real.Run(context.Background(), "scontrol", "update", "NodeName=gpu4", "State=RESUME") })
	out, err := opstest.Do(t, c, NodeCheck(), "gpu[3-4]", "--gpus", "0", "--partition", "prod", "--python", shim, "--yes")
	require.NoError(t, err)
	o = out.(NodeCheckOut)
	require.Equal(t, "gpu[3-4]", o.Exclude)
	require.Contains(t, o.Nodes[0].Findings[0], "did not finish")
	require.Contains(t, o.Nodes[1].Findings[0], "Kill task failed")
	require.True(t, o.Found())
	_, err = real.Run(t.Context(), "scontrol", "update", "NodeName=gpu4", "State=RESUME")
	require.NoError(t, err)

	_, err = opstest.Do(t, c, NodeCheck(), "gpu9")
	require.Equal(t, ops.NotFound, ops.AsError(err).Code)
	_, err = opstest.Do(t, c, NodeCheck(), "gpu[1-2]")
	require.True(t, ops.AsError(err).Confirm, "it asks first")
}
