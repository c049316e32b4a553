package checkpoint

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/pickle"
)

func TestEveryFormatIsRead(t *testing.T) {
	for _, tt := range []struct {
		dir       string
		iteration int
		want      string
	}{
		{"dist", 0, "torch_dist 100 latest=true TP 2 PP 2 DP 4 world=16 layers=4 optimizer=true/dp_reshardable tensors=4 parameters=245824 complete=true others=[50]"},
		{"dist", 50, "torch_dist 50 latest=false TP 2 PP 2 DP 4 world=16 layers=4 optimizer=true/dp_reshardable tensors=4 parameters=245824 complete=true others=[100]"},
		{"dist/iter_0000050", 0, "torch_dist 50 latest=false TP 2 PP 2 DP 4 world=16 layers=4 optimizer=true/dp_reshardable tensors=4 parameters=245824 complete=true others=[]"},
		{"reshardable", 0, "torch_dist 30 latest=true TP 2 PP 2 DP 4 world=16 layers=4 optimizer=true/fully_reshardable tensors=4 parameters=245824 complete=true others=[]"},
		{"torch", 0, "torch 20 latest=true TP 2 PP 2 DP 4 world=16 layers=4 optimizer=true/ tensors=0 parameters=0 complete=true others=[]"},
		{"experts", 0, "torch 20 latest=true TP 1 PP 1 EP 2 DP 4 world=16 layers=4 optimizer=true/ tensors=0 parameters=0 complete=true others=[]"},
		// Written by Megatron-LM and PyTorch themselves: see saved/save.py.
		{"saved/core_v0.12.0", 0, "torch_dist 7 latest=true TP 2 PP 1 DP 1 world=2 layers=2 optimizer=true/fully_sharded_model_space tensors=3 parameters=392 complete=true others=[]"},
		{"saved/core_v0.15.0", 0, "torch_dist 7 latest=true TP 2 PP 1 DP 1 world=2 layers=2 optimizer=true/fully_reshardable tensors=3 parameters=392 complete=true others=[]"},
		{"saved/core_v0.18.0", 0, "torch_dist 7 latest=true TP 2 PP 1 DP 1 world=2 layers=2 optimizer=true/fully_reshardable tensors=3 parameters=392 complete=true others=[]"},
		{"saved/core_v0.19.0", 0, "torch_dist 7 latest=true TP 2 PP 1 DP 1 world=2 layers=2 optimizer=true/fully_reshardable tensors=3 parameters=392 complete=true others=[]"},
		{"fsdp", 0, "fsdp_dtensor 10 latest=true TP 1 PP 1 DP 16 world=16 layers=4 optimizer=true/ tensors=4 parameters=245824 complete=true others=[]"},
		{"dcp", 0, "torch_dcp 10 latest=true TP 1 PP 1 DP 16 world=16 layers=4 optimizer=true/ tensors=4 parameters=245824 complete=true others=[]"},
	} {
		c, err := Read(nil, filepath.Join("testdata", tt.dir), tt.iteration)
		require.NoError(t, err, tt.dir)
		require.Equal(t, tt.want, fmt.Sprintf("%s %d latest=%v %s world=%d layers=%v optimizer=%v/%s tensors=%d parameters=%d complete=%v others=%v",
			c.Format, *c.Iteration, c.Latest, c.Saved.Words(), c.Saved.World, c.Model["num_layers"], *c.Optimizer, c.OptimizerSharding, c.Tensors, c.Parameters, c.Complete, c.Others), tt.dir)
	}
}

// A person may reach a checkpoint by links: to the folder of --save, or to one iteration.
func TestACheckpointIsReadThroughLinks(t *testing.T) {
	want, err := Read(nil, "testdata/dist", 0)
	require.NoError(t, err)
	require.NotZero(t, want.Files)
	data, err := filepath.Abs("testdata/dist")
	require.NoError(t, err)
	dir := t.TempDir()
	save, latest, some := filepath.Join(dir, "save"), filepath.Join(dir, "latest"), filepath.Join(dir, "some")
	require.NoError(t, os.Symlink(data, save))
	require.NoError(t, os.Symlink(filepath.Join(save, "iter_0000100"), latest))
	require.NoError(t, os.Mkdir(some, 0o700))
	require.NoError(t, os.Symlink(filepath.Join(data, "iter_0000100"), filepath.Join(some, "iter_0000100")))
	require.NoError(t, os.WriteFile(filepath.Join(some, tracker), []byte("100"), 0o600))
	for _, path := range []string{save, latest, some} {
		c, err := Read(nil, path, 0)
		require.NoError(t, err, path)
		require.True(t, c.Complete, path)
		require.Equal(t, want.Files, c.Files, path)
		require.Equal(t, want.Bytes, c.Bytes, path)
	}
}

func TestWhatIsNoCheckpointIsNone(t *testing.T) {
	dir := t.TempDir()
	for _, d := range []string{dir, filepath.Join(dir, "nowhere"), "testdata/make.py"} {
		_, err := Read(nil, d, 0)
		require.ErrorIs(t, err, ErrNone, d)
	}
	_, err := Read(nil, "testdata/dist", 60)
	require.ErrorIs(t, err, ErrNoSuch)
	require.NoError(t, os.WriteFile(filepath.Join(dir, tracker), []byte("70\n"), 0o600))
	_, err = Read(nil, dir, 0)
	require.ErrorContains(t, err, "names iter_0000070, which is not there")
	require.NoError(t, os.WriteFile(filepath.Join(dir, tracker), []byte("garbage"), 0o600))
	_, err = Read(nil, dir, 0)
	require.ErrorContains(t, err, "garbage")
	require.NoError(t, os.WriteFile(filepath.Join(dir, tracker), []byte("70\n"), 0o600))
	require.NoError(t, os.Mkdir(filepath.Join(dir, "iter_0000070"), 0o700))
	_, err = Read(nil, dir, 0)
	require.ErrorIs(t, err, ErrNone)
	require.ErrorContains(t, err, "iter_0000070 is there, without a checkpoint's files")
	if os.Geteuid() != 0 { // root may read everything
		require.NoError(t, os.Chmod(filepath.Join(dir, "iter_0000070"), 0))
		_, err = Read(nil, dir, 0)
		require.ErrorIs(t, err, fs.ErrPermission)
	}
}

func TestWhatIsMissingOrCutShortIsNamed(t *testing.T) {
	cut := func(name string, to int64) func(string) error {
		return func(dir string) error { return os.Truncate(filepath.Join(dir, name), to) }
	}
	gone := func(name string) func(string) error {
		return func(dir string) error { return os.RemoveAll(filepath.Join(dir, name)) }
	}
	for _, tt := range []struct {
		dir  string
		harm func(string) error
		want Fault
	}{
		{"dist/iter_0000100", cut("__1_0.distcp", 20), Fault{File: "__1_0.distcp", Want: 112, Have: 20}},
		{"dist/iter_0000100", gone("__0_0.distcp"), Fault{File: "__0_0.distcp", Want: 96, Missing: true}},
		{"dist/iter_0000100", cut("common.pt", 500), Fault{File: "common.pt", Unreadable: true}},
		{"dist/iter_0000100", gone("common.pt"), Fault{File: "common.pt", Missing: true}},
		{"dist/iter_0000100", gone(".metadata"), Fault{File: ".metadata", Missing: true}},
		{"dist/iter_0000100", cut(".metadata", 200), Fault{File: ".metadata", Unreadable: true}},
		{"dist/iter_0000100", gone("metadata.json"), Fault{File: "metadata.json", Missing: true}}, // it is written last
		{"dist/iter_0000100", cut("metadata.json", 9), Fault{File: "metadata.json", Unreadable: true}},
		{"saved/core_v0.19.0/iter_0000007", gone("metadata.json"), Fault{File: "metadata.json", Missing: true}},
		{"saved/core_v0.19.0/iter_0000007", gone("__1_0.distcp"), Fault{File: "__1_0.distcp", Want: 5684, Missing: true}},
		{"saved/core_v0.19.0/iter_0000007", cut("__0_0.distcp", 8000), Fault{File: "__0_0.distcp", Want: 8432, Have: 8000}},
		{"saved/core_v0.18.0/iter_0000007", gone("common.pt"), Fault{File: "common.pt", Missing: true}},
		{"saved/core_v0.15.0/iter_0000007", gone("__0_1.distcp"), Fault{File: "__0_1.distcp", Want: 2872, Missing: true}},
		{"torch/iter_0000020", gone("mp_rank_01_001"), Fault{File: "mp_rank_01_001", Missing: true}},
		{"torch/iter_0000020", gone("mp_rank_00_001"), Fault{File: "mp_rank_00_001", Missing: true}},
		{"torch/iter_0000020", cut("mp_rank_01_000/model_optim_rng.pt", 0), Fault{File: "mp_rank_01_000/model_optim_rng.pt", Empty: true}},
		{"torch/iter_0000020", cut("mp_rank_01_000/model_optim_rng.pt", 900), Fault{File: "mp_rank_01_000/model_optim_rng.pt", Have: 900, Unreadable: true}},
		{"torch/iter_0000020", gone("mp_rank_01_000/model_optim_rng.pt"), Fault{File: "mp_rank_01_000/model_optim_rng.pt", Missing: true}},
		{"experts/iter_0000020", gone("mp_rank_00_001"), Fault{File: "mp_rank_00_001", Missing: true}},
		{"fsdp/iter_0000010", cut(".metadata", 200), Fault{File: ".metadata", Unreadable: true}},
		{"fsdp/iter_0000010", gone("__1_0.distcp"), Fault{File: "__1_0.distcp", Want: 112, Missing: true}},
	} {
		dir := filepath.Join(t.TempDir(), "runs [1]", filepath.Base(tt.dir))
		require.NoError(t, os.CopyFS(dir, os.DirFS(filepath.Join("testdata", tt.dir))))
		require.NoError(t, tt.harm(dir))
		c, err := Read(nil, dir, 0)
		require.NoError(t, err)
		require.False(t, c.Complete, tt.want.File)
		require.Equal(t, []Fault{tt.want}, c.Faults, tt.dir)
		require.Equal(t, strings.HasPrefix(tt.dir, "fsdp"), c.Format == FSDPDTensor, "what it is, is known all the same")
	}
}

// A release has no iteration's folder, so its content counts.
func TestAReleaseTellsItsOwnIteration(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.CopyFS(filepath.Join(dir, "release"), os.DirFS("testdata/torch/iter_0000020")))
	require.NoError(t, os.WriteFile(filepath.Join(dir, tracker), []byte("release"), 0o600))
	c, err := Read(nil, dir, 0)
	require.NoError(t, err)
	require.True(t, c.Latest)
	require.Equal(t, 20, *c.Iteration)
	// A folder's name counts more than its content.
	require.NoError(t, os.Rename(filepath.Join(dir, "release"), filepath.Join(dir, "iter_0000021")))
	c, err = Read(nil, filepath.Join(dir, "iter_0000021"), 0)
	require.NoError(t, err)
	require.Equal(t, 21, *c.Iteration)
}

// A file of the index that lies outside of the folder, or a negative offset, is
// ignored.
func TestAnIndexLeadsNowhereElse(t *testing.T) {
	piece := func(file string, from, length int64) any {
		return &pickle.Dict{Keys: []any{"relative_path", "offset", "length"}, Values: []any{file, from, length}}
	}
	for _, tt := range []struct {
		part any
		want []part
	}{
		{piece("__0_0.distcp", 0, 8), []part{{"w", "__0_0.distcp", 0, 8}}},
		{piece("__0_0.distcp", 8, 0), []part{{"w", "__0_0.distcp", 8, 0}}},
		{piece("../secret", 0, 8), nil},
		{piece("/etc/passwd", 0, 8), nil},
		{piece("__0_0.distcp", -1, 8), nil},
		{piece("__0_0.distcp", 0, -1), nil},
	} {
		name := &pickle.Dict{Keys: []any{"fqn"}, Values: []any{"w"}}
		data := &pickle.Dict{Keys: []any{name}, Values: []any{tt.part}}
		require.Equal(t, tt.want, partsOf(&pickle.Dict{Keys: []any{"storage_data"}, Values: []any{data}}), tt.part)
	}
}

// A save that broke off before its index is described by its files.
func TestASaveThatWasBrokenOffIsNotComplete(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "iter_0000007")
	require.NoError(t, os.CopyFS(dir, os.DirFS("testdata/saved/core_v0.19.0/iter_0000007")))
	for _, name := range []string{"metadata.json", ".metadata"} {
		require.NoError(t, os.Remove(filepath.Join(dir, name)))
	}
	c, err := Read(nil, dir, 0)
	require.NoError(t, err)
	require.Equal(t, []Fault{{File: ".metadata", Missing: true}}, c.Faults)
	require.Equal(t, TorchDist, c.Format)
	require.Equal(t, 2, c.Files)
}

// A zarr checkpoint of core 0.15 or older: one folder for each tensor, and one file for
// each chunk.
func TestAZarrCheckpointIsToldAsOne(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "runs [1]", "iter_0000007")
	write := func(name, text string) {
		path := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	}
	common, err := os.ReadFile("testdata/saved/core_v0.12.0/iter_0000007/common.pt")
	require.NoError(t, err)
	write("common.pt", string(common))
	write("metadata.json", `{"sharded_backend": "zarr", "sharded_backend_version": 1, "common_backend": "torch", "common_backend_version": 1}`)
	for name, chunks := range map[string][]string{
		"embedding.word_embeddings.weight": {"0.0", "1.0"}, "optimizer.state.exp_avg.embedding.word_embeddings.weight": {"0.0", "1.0"},
	} {
		write(name+"/.zarray", `{"shape": [30, 8], "chunks": [16, 8], "dtype": "<f4", "order": "C", "zarr_format": 2}`)
		for _, chunk := range chunks {
			write(name+"/"+chunk, "x")
		}
	}
	write("optimizer.state.step/.zarray", `{"shape": [], "chunks": [], "dtype": "<f4", "order": "C", "zarr_format": 2}`)
	write("optimizer.state.step/0", "x")
	c, err := Read(nil, dir, 0)
	require.NoError(t, err)
	require.Empty(t, c.Faults)
	require.Equal(t, Zarr, c.Format)
	require.Equal(t, "TP 2 PP 1 DP 1", c.Saved.Words())
	require.Equal(t, []any{true, 1, int64(240)}, []any{*c.Optimizer, c.Tensors, c.Parameters})
	v := c.LoadedBy(Run{Layout: Layout{TP: 2, PP: 1, EP: 1}, Format: TorchDist})
	require.False(t, v.Loads)
	require.Contains(t, v.Why[0].In(lang.EN), "zarr")
	require.Contains(t, v.How[0].In(lang.ZH), "--ckpt-convert-format torch_dist")
	require.NoError(t, os.Remove(filepath.Join(dir, "embedding.word_embeddings.weight", "1.0")))
	c, err = Read(nil, dir, 0)
	require.NoError(t, err)
	require.Equal(t, []Fault{{File: "embedding.word_embeddings.weight/1.0", Missing: true}}, c.Faults)
}

// Each row is a checkpoint, a run, and whether and how the run loads the checkpoint.
func TestWhoCanLoadIt(t *testing.T) {
	model := map[string]int{"num_layers": 4, "hidden_size": 64, "num_attention_heads": 8}
	same := Run{Layout: Layout{TP: 2, PP: 2, EP: 1, CP: 1, DP: 4}, Format: TorchDist, Distributed: true, Model: model}
	with := func(r Run, change func(*Run)) Run { change(&r); return r }
	for _, tt := range []struct {
		name, dir string
		run       Run
		loads     bool
		says      string
	}{
		{"the same layout", "dist", same, true, ""},
		{"another DP", "dist", with(same, func(r *Run) { r.DP = 8 }), true, "resharded while it is loaded: from TP 2 PP 2 DP 4 to TP 2 PP 2 DP 8"},
		{"another TP", "dist", with(same, func(r *Run) { r.TP = 4; r.DP = 2 }), false, "sharded as dp_reshardable"},
		{"another PP", "dist", with(same, func(r *Run) { r.PP = 1; r.DP = 8 }), false, "--dist-ckpt-optim-fully-reshardable"},
		{"another EP", "dist", with(same, func(r *Run) { r.EP = 2 }), false, "sharded as dp_reshardable"},
		{"another TP without the optimizer", "dist", with(same, func(r *Run) { r.TP = 4; r.NoOptimizer = true }), true, "random numbers"},
		{"another TP without a distributed optimizer", "dist", with(same, func(r *Run) { r.TP = 4; r.Distributed = false }), true, "resharded"},
		{"another TP, fully reshardable", "reshardable", with(same, func(r *Run) { r.TP = 4 }), true, "resharded"},
		{"a smaller model", "dist", with(same, func(r *Run) { r.Model = map[string]int{"num_layers": 2} }), false, "num_layers is 4 in it and 2 in the job"},
		{"another format", "dist", with(same, func(r *Run) { r.Format = Torch }), false, "--auto-detect-ckpt-format"},
		{"another format, found by itself", "dist", with(same, func(r *Run) { r.Format, r.AutoDetect = Torch, true }), true, ""},
		{"FSDP", "dist", with(same, func(r *Run) { r.FSDP, r.Format = true, FSDPDTensor }), false, "convert-torch-dist-to-fsdp-dtensor"},
		{"torch, the same", "torch", same, true, ""},
		{"torch, another TP", "torch", with(same, func(r *Run) { r.TP = 1 }), false, "tools/checkpoint/convert.py"},
		{"torch, another DP", "torch", with(same, func(r *Run) { r.DP = 8 }), true, ""},
		{"torch, other experts", "experts", with(same, func(r *Run) { r.TP, r.PP, r.EP = 1, 1, 4 }), false, "TP 1 PP 1 EP 4"},
		{"torch by FSDP", "torch", with(same, func(r *Run) { r.FSDP = true }), false, "--ckpt-convert-format torch_dist"},
		{"FSDP's by FSDP", "fsdp", with(same, func(r *Run) { r.TP, r.PP, r.DP, r.FSDP, r.Format = 1, 1, 8, true, FSDPDTensor }), true, "resharded"},
		{"FSDP's in the wrong format", "fsdp", with(same, func(r *Run) { r.TP, r.PP, r.FSDP = 1, 1, true }), false, "--ckpt-format fsdp_dtensor"},
		{"FSDP's without FSDP", "fsdp", same, false, "--use-megatron-fsdp"},
		{"Torch-FSDP2's by Torch-FSDP2", "dcp", with(same, func(r *Run) { r.TP, r.PP, r.DP, r.Format = 1, 1, 8, TorchDCP }), true, "resharded"},
		{"Torch-FSDP2's by Megatron-FSDP", "dcp", with(same, func(r *Run) { r.TP, r.PP, r.FSDP, r.Format = 1, 1, true, FSDPDTensor }), false, "--use-torch-fsdp2 --ckpt-format torch_dcp"},
		{"Torch-FSDP2's in the wrong format", "dcp", with(same, func(r *Run) { r.TP, r.PP = 1, 1 }), false, "the job reads torch_dist"},
		{"Torch-FSDP2 of another's", "dist", with(same, func(r *Run) { r.Format = TorchDCP }), false, "the job reads torch_dcp"},
	} {
		c, err := Read(nil, filepath.Join("testdata", tt.dir), 0)
		require.NoError(t, err)
		v := c.LoadedBy(tt.run)
		var said []string
		for _, text := range append(v.Why, v.How...) {
			require.NotEmpty(t, text.In(lang.ZH))
			said = append(said, text.In(lang.EN))
		}
		require.Equal(t, tt.loads, v.Loads, "%s: %v", tt.name, said)
		require.Contains(t, strings.Join(said, "\n"), tt.says, tt.name)
		if tt.says == "" {
			require.Empty(t, said, tt.name)
		}
	}
	c, err := Read(nil, "testdata/dist", 0)
	require.NoError(t, err)
	c.Complete = false
	require.Equal(t, "load an earlier iteration: --ckpt-step 50", c.LoadedBy(same).How[0].In(lang.EN))
}
