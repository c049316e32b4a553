package preflight

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/ops/opstest"
	"github.com/megatron-ops/megatron-ops/knowledge/rules"
	"github.com/megatron-ops/megatron-ops/slurm"
	"github.com/megatron-ops/megatron-ops/slurm/job"
)

// The files that a job will open are checked: each fault by its rule, in the order of
// the flags.
func TestWhatAJobWillOpenIsLookedAt(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "runs [1]")
	for name, text := range map[string]string{
		"good.bin": "x", "good.idx": "MMIDIDX\x00\x00more", "empty.bin": "", "empty.idx": "x", "alone.bin": "x", "other.bin": "x", "other.idx": "MMIDIDX", "vocab": "v",
		"fresh/keep": "", "legacy/latest_checkpointed_iteration.txt": "7\n", "legacy/iter_0000007/mp_rank_00/x": "", "legacy/iter_0000007/readme": "",
		"dist/latest_checkpointed_iteration.txt": "7", "dist/iter_0000007/metadata.json": "{}", "fsdp/latest_checkpointed_iteration.txt": "7", "fsdp/iter_0000007/.metadata": "",
		"release/latest_checkpointed_iteration.txt": "release", "release/release/mp_rank_00/x": "", "odd/latest_checkpointed_iteration.txt": "seven",
		"gone/latest_checkpointed_iteration.txt": "9", "gone/iter_0000007/metadata.json": "{}", "gone/iter_0000008/x": "", "cut/latest_checkpointed_iteration.txt": "7",
		"cut/iter_0000007/x": "", "file/latest_checkpointed_iteration.txt": "7", "file/iter_0000007": "",
	} {
		opstest.Write(t, filepath.Join(dir, name), text)
	}
	for _, tt := range []struct{ args, want, fix string }{
		{"--data-path good", "", ""},
		{"--data-path 0.5 good 1 good", "", ""},
		{"--data-path good good", "", ""},
		{"--data-path 0.5 good x good", "data-blend", "WEIGHT PREFIX"},
		{"--data-path 0.5 good -1 good", "data-blend", ""},
		{"--data-path 0 good 1", "data-blend", "add the prefix"},
		{"--data-path none", "data-missing", "both files must be there"},
		{"--data-path alone", "data-missing", ""},
		{"--data-path empty", "data-empty", ""},
		{"--data-path other", "data-not-indexed", ""},
		{"--train-data-path none --valid-data-path empty --test-data-path other", "data-missing data-empty data-not-indexed", ""},
		{"--vocab-file none --merge-file none --tokenizer-model ./none", "tokenizer-missing tokenizer-missing tokenizer-missing", ""},
		{"--vocab-file vocab --tokenizer-model org/model", "", ""},
		{"--load none", "load-missing", "exit-on-missing-checkpoint"},
		{"--load none --save none", "", ""},
		{"--load fresh", "load-no-checkpoint", ""},
		{"--load legacy --ckpt-format torch", "", ""},
		{"--load legacy", "load-format", "--ckpt-format torch,"},
		{"--load legacy --auto-detect-ckpt-format", "", ""},
		{"--load dist", "", ""},
		{"--load dist --ckpt-format torch", "load-format", "--ckpt-format torch_dist,"},
		{"--load fsdp --ckpt-format torch", "", ""},
		{"--load release --ckpt-format torch", "", ""},
		{"--load odd", "load-tracker", ""},
		{"--load gone", "load-incomplete", "iter_0000007"},
		{"--load cut", "load-incomplete", "leave --load out"},
		{"--load file", "load-incomplete", ""},
	} {
		var argv []string
		for w := range strings.FieldsSeq(tt.args) {
			if base := strings.TrimPrefix(w, "./"); !strings.HasPrefix(w, "--") && (slices.Contains([]string{"none", "vocab", "alone"}, base) || exists(dir, base)) {
				w = filepath.Join(dir, base)
			}
			argv = append(argv, w)
		}
		s := job.Spec{Worktree: dir, Args: argv}.WithDefaults()
		f := fileCheck{spec: s, args: argsOf(s), lang: lang.EN}
		f.data()
		f.tokenizer()
		f.load()
		require.Equal(t, tt.want, strings.Join(ids(f.ps), " "), tt.args)
		if tt.fix != "" {
			require.Contains(t, f.ps[0].Fix, tt.fix, tt.args)
		}
		hidden := fileCheck{spec: s, args: argsOf(s), lang: lang.EN, may: func(string) error { return errors.New("not yours") }}
		hidden.data()
		hidden.tokenizer()
		hidden.load()
		for _, id := range ids(hidden.ps) {
			require.Equal(t, "data-blend", id, "nothing is said of files that may not be looked at: %s", tt.args)
		}
		require.NotEmpty(t, hidden.unseen, tt.args)
	}
}

func exists(dir, name string) bool {
	for _, ext := range []string{"", ".bin"} {
		if _, err := os.Stat(filepath.Join(dir, name+ext)); err == nil {
			return true
		}
	}
	return false
}

// Two checkpoints must fit into the rest of a quota.
func TestWhatIsLeftOfAQuotaIsEnough(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := job.Spec{Worktree: dir, Args: strings.Fields("--save " + dir + "/new/ck --num-layers 2 --hidden-size 64 --num-attention-heads 4 --seq-length 64 --max-position-embeddings 64 --padded-vocab-size 128")}.WithDefaults()
	params, _ := argsOf(s).Shape().Params()
	require.NotZero(t, params)
	need := int64(params * 14)
	for left, want := range map[int64]int{2*need + 1: 0, 2*need - 1: 1} {
		f := fileCheck{spec: s, args: argsOf(s), lang: lang.EN, quotas: func(at string) []slurm.Quota {
			require.Equal(t, dir, at, "the nearest folder that is there")
			return []slurm.Quota{{Of: "group", Mount: "/lustre", Limit: 4 * need, Used: 4*need - left}}
		}}
		f.save()
		require.Len(t, f.ps, want, "%d bytes left, %d needed", left, need)
		if want > 0 {
			require.Contains(t, f.ps[0].Message, "your group's quota on /lustre")
		}
	}
	f := fileCheck{spec: s, args: argsOf(s), lang: lang.EN, quotas: func(string) []slurm.Quota {
		return []slurm.Quota{{Of: "user", Mount: "/lustre", Limit: 3 << 30, Used: 3 << 30}}
	}}
	f.save()
	require.Contains(t, f.ps[0].Message, "your quota on /lustre has 0 GiB left of 3, and one checkpoint takes about 0 GiB")
}

// Two checkpoints must also fit into the file system; for an unknown model nothing is
// reported.
func TestACheckpointMustFitOnTheFileSystem(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	shape := " --num-attention-heads 4 --seq-length 64 --max-position-embeddings 64 --padded-vocab-size 128"
	for args, want := range map[string][]string{
		" --num-layers 2 --hidden-size 64" + shape:          nil,
		" --num-layers 100000 --hidden-size 400000" + shape: {"save-space"},
		"": nil,
	} {
		s := job.Spec{Worktree: dir, Args: strings.Fields("--save " + dir + args)}.WithDefaults()
		f := fileCheck{spec: s, args: argsOf(s), lang: lang.EN, quotas: func(string) []slurm.Quota { return nil }}
		f.save()
		require.Equal(t, want, ids(f.ps), args)
		if want != nil {
			require.Regexp(t, `^\d+ GiB are free at .*, and one checkpoint takes about \d{9,} GiB$`, f.ps[0].Message)
		}
	}
}

// A waiting job may only be changed to something that its partition gives to some job.
func TestAChangeFitsThePartition(t *testing.T) {
	t.Parallel()
	waits := slurm.Job{State: slurm.Pending, Partition: "dev", NumNodes: 2}
	runs := waits
	runs.State = slurm.Running
	for _, tt := range []struct {
		cl    ops.Cluster
		job   slurm.Job
		to    slurm.Update
		field string
	}{
		{&twoPartitions{}, waits, slurm.Update{NumNodes: 4, TimeLimit: time.Hour}, ""},
		{&twoPartitions{}, waits, slurm.Update{NumNodes: 5}, "nodes"},
		{&twoPartitions{}, waits, slurm.Update{TimeLimit: time.Hour + time.Minute}, "time"},
		{&twoPartitions{}, waits, slurm.Update{Partition: "none"}, "partition"},
		{&twoPartitions{}, waits, slurm.Update{Partition: "one"}, "nodes"},
		{&twoPartitions{}, waits, slurm.Update{Partition: "one", NumNodes: 1}, ""},
		{&twoPartitions{}, runs, slurm.Update{NumNodes: 5}, ""},
		{&twoPartitions{Site: opstest.Site{OfKind: "local"}}, waits, slurm.Update{NumNodes: 5}, ""},
		{&twoPartitions{silent: true}, waits, slurm.Update{NumNodes: 5}, ""},
		{&opstest.Site{}, waits, slurm.Update{NumNodes: 5}, ""},
	} {
		err := FitsPartition(t.Context(), tt.cl, tt.job, tt.to)
		require.Equal(t, tt.field == "", err == nil, "%+v: %v", tt.to, err)
		if err != nil {
			require.Equal(t, tt.field, ops.AsError(err).Field)
			require.NotEqual(t, ops.AsError(err).Message.EN, ops.AsError(err).Message.ZH)
		}
	}
}

// A twoPartitions is a cluster of two partitions.
type twoPartitions struct {
	opstest.Site
	silent bool
}

func (h *twoPartitions) Partitions(context.Context) ([]slurm.Partition, error) {
	if h.silent {
		return nil, errors.New("no answer")
	}
	hour := int64(3600)
	return []slurm.Partition{{Name: "dev", Up: true, TimeLimitS: &hour, MaxNodes: 4, Total: 8}, {Name: "one", Up: true, Total: 1}}, nil
}

func (*twoPartitions) Nodes(context.Context) ([]slurm.Node, error) { return nil, nil }

// A job's environment is checked where the caller may read it.
func TestTheEnvironmentOfAJob(t *testing.T) {
	dir := t.TempDir()
	opstest.Write(t, filepath.Join(dir, "tree", ".venv", "pyvenv.cfg"), "")
	t.Setenv("PATH", dir)
	opstest.Write(t, filepath.Join(dir, "uv"), "#!/bin/sh\n")
	require.NoError(t, os.Chmod(filepath.Join(dir, "uv"), 0o755))
	two := 2
	for name, tt := range map[string]struct {
		spec  job.Spec
		apart bool
		may   error
		path  string
		want  string
	}{
		"a venv that is not whole":   {spec: job.Spec{}, want: "environment-synced"},
		"one by an absolute path":    {spec: job.Spec{Venv: filepath.Join(dir, "tree", ".venv")}, want: "environment-synced"},
		"one that is not there":      {spec: job.Spec{Venv: "none"}},
		"another launcher":           {spec: job.Spec{Launcher: job.Python}},
		"nodes that are apart":       {spec: job.Spec{Launcher: job.Python}, apart: true, want: "worktree-shared"},
		"no uv":                      {spec: job.Spec{Venv: "none"}, path: "/none", want: "uv-missing"},
		"in a container":             {spec: job.Spec{Container: job.Container{Runtime: job.Docker, Image: "a"}}},
		"a folder that is not shown": {spec: job.Spec{}, apart: true, may: errors.New("not yours")},
	} {
		tt.spec.Worktree, tt.spec.Nodes = filepath.Join(dir, "tree"), &two
		if tt.path != "" {
			t.Setenv("PATH", tt.path)
		}
		f := fileCheck{spec: tt.spec.WithDefaults(), lang: lang.EN, apart: tt.apart, may: func(string) error { return tt.may }}
		f.environment()
		t.Setenv("PATH", dir)
		want := tt.want
		if want == "worktree-shared" && (nodeLocal(tt.spec.Worktree) || f.seenByAllNodes(tt.spec.Worktree)) {
			want = "" // the tests' own folder is reported differently
		}
		require.Equal(t, want, strings.Join(ids(f.ps), " "), name)
	}
}

func TestFoldersThatEveryNodeSees(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, tt := range []struct {
		apart  bool
		shared []string
		want   bool
	}{
		{false, nil, true}, {true, nil, false}, {true, []string{dir}, true}, {true, []string{filepath.Dir(dir) + "/"}, true}, {true, []string{dir + "x", dir[:len(dir)-1]}, false},
	} {
		f := fileCheck{apart: tt.apart, shared: tt.shared}
		require.Equal(t, tt.want, f.seenByAllNodes(dir), tt)
	}
}

func TestThePackagesOfAnExtra(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "pyproject.toml")
	opstest.Write(t, file, `[project]
dependencies = ["numpy"]
dev = ["not-this"]
[project.optional-dependencies]
mlm = ["flask-restful", "Sentence_Piece>=1"]  # "comment"
dev = [
    "nvidia-modelopt[torch]; sys_platform != 'darwin'",
    "transformer-engine[core]",
    'einops~=0.8', "wandb",
]
lts = ["tqdm"]
[tool.other]
dev = ["nor-this"]
`)
	for named, want := range map[string]string{"mlm": "flask-restful sentence-piece", "dev": "transformer-engine einops wandb", "lts": "tqdm", "none": "", "mlm lts": "flask-restful sentence-piece tqdm"} {
		require.Equal(t, want, strings.Join(extras(file, strings.Fields(named)...), " "), named)
	}
	require.Empty(t, extras(file+".none", "dev"))
}

// A request is checked against the largest node of its partitions and against each
// partition: what just fits, fits.
func TestWhatJustFitsFits(t *testing.T) {
	t.Parallel()
	hour := int64(3600)
	parts := []slurm.Partition{
		{Name: "dev", Up: true, Default: true, TimeLimitS: &hour, MaxNodes: 4, Total: 8}, {Name: "old", State: "down"}, {Name: "closed", State: "inactive"}, {Name: "big", Up: true, Total: 8},
	}
	all := []slurm.Node{{Partitions: []string{"dev"}, CPUs: 64, GPUs: 4}, {Partitions: []string{"big", "old"}, CPUs: 128, GPUs: 8}}
	num := func(n int) *int { return &n }
	for _, tt := range []struct {
		spec    job.Spec
		threads int
		want    string
	}{
		{job.Spec{Partition: "dev", Nodes: num(4), Time: "1:00:00", CPUsPerTask: num(64), GPUsPerNode: num(4)}, 2, ""},
		{job.Spec{Partition: "dev", Nodes: num(5), Time: "1:00:01", CPUsPerTask: num(65), GPUsPerNode: num(5)}, 2, "partition-time partition-nodes cpus-over-node gpus-over-node"},
		{job.Spec{Nodes: num(5), GPUsPerNode: num(8)}, 2, "partition-nodes"},
		{job.Spec{Partition: "big", Nodes: num(8), Time: "9-0", GPUsPerNode: num(8)}, 2, ""},
		{job.Spec{Partition: "big", Nodes: num(9), GPUsPerNode: num(8)}, 2, "partition-nodes"},
		{job.Spec{Partition: "dev,big", Nodes: num(1), CPUsPerTask: num(128), GPUsPerNode: num(8)}, 2, ""},
		{job.Spec{Partition: "big", Nodes: num(1), CPUsPerTask: num(64), Hint: "nomultithread"}, 2, ""},
		{job.Spec{Partition: "big", Nodes: num(1), CPUsPerTask: num(65), Hint: "nomultithread"}, 2, "cpus-over-node"},
		{job.Spec{Partition: "big", Nodes: num(1), CPUsPerTask: num(128), Hint: "nomultithread"}, 1, ""},
		{job.Spec{Partition: "big", Nodes: num(1), CPUsPerTask: num(128), Hint: "multithread"}, 2, ""},
		{job.Spec{Partition: "old"}, 0, "partition-down"},
		{job.Spec{Partition: "closed"}, 0, "partition-down"},
		{job.Spec{Partition: "none,big"}, 0, "partition-unknown"},
	} {
		r := request{spec: tt.spec.WithDefaults(), lang: lang.EN}
		r.partition(parts)
		r.nodes(all, tt.threads)
		require.Equal(t, tt.want, strings.Join(ids(r.ps), " "), "%+v", tt.spec)
		if tt.want == "partition-down" {
			require.Equal(t, tt.spec.Partition == "old", r.ps[0].Severity == rules.Warning, "a job waits at one that is down")
		}
	}
	r := request{spec: job.Spec{}.WithDefaults(), lang: lang.EN}
	r.partition(parts[1:])
	require.Empty(t, r.ps, "there is no default partition")
	for field, l := range map[string]slurm.Limit{
		"time": {Name: "GrpTRESMins", TRES: "cpu"}, "gpus_per_node": {TRES: "gres/gpu:h100"}, "cpus_per_task": {TRES: "cpu"}, "nodes": {TRES: "node"}, "qos": {Of: "QOS high"}, "account": {Of: "account a"},
	} {
		require.Equal(t, field, breachField(slurm.Breach{Limit: l}))
	}
	require.Equal(t, "qos", breachField(slurm.Breach{Limit: slurm.Limit{Of: "alice under QOS high"}}))
}
