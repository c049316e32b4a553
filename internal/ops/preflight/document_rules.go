package preflight

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/knowledge/megatron"
	"github.com/megatron-ops/megatron-ops/knowledge/rules"
	"github.com/megatron-ops/megatron-ops/slurm/job"
	"github.com/megatron-ops/megatron-ops/slurm/lint"
)

// launchRules are the documents' rules about the launch that a specification can break.
// The rendered script follows them unless the words of a custom launcher or of srun do
// not.
var launchRules = []documentRule{
	{id: "one-task-per-node", field: "srun_args", check: func(_ *ops.Call, s job.Spec) lang.Text {
		if !startsWorkers(s) {
			return lang.Text{}
		}
		if n, ok := wholeNumber(s.SrunArgs, "--ntasks-per-node"); ok && n != 1 {
			return phrase("--ntasks-per-node=%d starts the launcher %d times on each node", "--ntasks-per-node=%d 会在每个节点上启动 %d 次启动器", n, n)
		}
		if n, ok := wholeNumber(s.SrunArgs, "--ntasks"); ok && n != *s.Nodes {
			return phrase("--ntasks=%d, and the job has %s", "--ntasks=%d，而作业有 %s", n, ops.Counted(*s.Nodes, "node"))
		}
		return lang.Text{}
	}},
	{id: "no-bare-torchrun", field: "launcher_argv", check: func(_ *ops.Call, s job.Spec) lang.Text {
		if inContainer(s) || len(s.LauncherArgv) == 0 || s.LauncherArgv[0] != "torchrun" {
			return lang.Text{}
		}
		return lang.Text{EN: "torchrun is looked up on the PATH of each node", ZH: "torchrun 会在各节点的 PATH 中查找"}
	}},
	{id: "nnodes-match-allocation", field: "launcher_argv", check: func(_ *ops.Call, s job.Spec) lang.Text {
		for _, words := range [][]string{s.LauncherArgv, s.SrunArgs} {
			if n, ok := wholeNumber(words, "--nnodes", "--num_machines", "--num-machines", "--nodes"); ok && n != *s.Nodes {
				return phrase("written for %s, and the job has %d", "写的是 %s，而作业有 %d 个", ops.Counted(n, "node"), *s.Nodes)
			}
		}
		return lang.Text{}
	}},
	{id: "nproc-match-gpus", field: "launcher_argv", check: func(_ *ops.Call, s job.Spec) lang.Text {
		if n, ok := wholeNumber(s.LauncherArgv, "--nproc-per-node", "--nproc_per_node", "--num_gpus"); ok && n != *s.GPUsPerNode {
			return phrase("%s on a node, and %s", "每节点 %s，而有 %s", ops.Counted(n, "process"), ops.Counted(*s.GPUsPerNode, "GPU"))
		}
		return lang.Text{}
	}},
	{id: "gpu-kind-known", field: "gpu", check: func(_ *ops.Call, s job.Spec) lang.Text {
		if _, known := megatron.LookupGPU(s.GPU); s.GPU == "" || known {
			return lang.Text{}
		}
		if like := megatron.NearestGPUs(s.GPU); len(like) > 0 {
			return phrase("%q is no kind that is known here; nearest: %s", "不认识型号 %q；相近的有：%s", s.GPU, strings.Join(like, ", "))
		}
		return phrase("%q is no kind that is known here", "不认识型号 %q", s.GPU)
	}},
	{id: "world-size-counts-gpus", field: "launcher_argv", check: func(_ *ops.Call, s job.Spec) lang.Text {
		for _, words := range [][]string{s.LauncherArgv, s.Args} {
			if v, _ := megatron.ValueOf(words, "--world-size", "--world_size", "--num_processes", "--num-processes"); strings.Contains(v, "SLURM_NTASKS") || strings.Contains(v, "SLURM_NNODES") {
				return phrase("%s counts tasks or nodes, and the job has %s", "%s 数的是任务或节点，而作业有 %s", v, ops.Counted(s.WorldSize(), "rank"))
			}
		}
		return lang.Text{}
	}},
	{id: "rank-evaluated-on-node", field: "launcher_argv", fix: lang.Text{EN: "write {node_rank}: it is filled in on each node", ZH: "写 {node_rank}：它会在各节点上替换"}, check: func(_ *ops.Call, s job.Spec) lang.Text {
		v, _ := megatron.ValueOf(s.LauncherArgv, "--node-rank", "--node_rank", "--machine_rank", "--machine-rank")
		if v == "" || *s.Nodes == 1 || strings.Contains(v, "{") && !strings.Contains(v, "$") {
			return lang.Text{}
		}
		return phrase("the node rank is written as %s, the same for all %d nodes", "节点序号写成 %s，%d 个节点都一样", v, *s.Nodes)
	}},
	{id: "outputs-shared", field: "args", severity: rules.Warning, check: func(c *ops.Call, s job.Spec) lang.Text {
		if *s.Nodes < 2 || oneHost(c, s) {
			return lang.Text{}
		}
		flags := []string{"--save", "--tensorboard-dir", "--wandb-save-dir", "--non-persistent-global-ckpt-dir"}
		for _, f := range flags {
			if p := megatron.LastOf(s.Args, f); nodeLocal(p) {
				return phrase("%s %s looks local to one node", "%s %s 像是单个节点的本地路径", f, p)
			}
		}
		return lang.Text{}
	}},
	{id: "container-sees-venv", field: "container.mounts", check: func(c *ops.Call, s job.Spec) lang.Text {
		if !inContainer(s) || s.Launcher != job.UV || !SharesFiles(c, s) {
			return lang.Text{}
		}
		if filepath.IsAbs(s.Venv) {
			if _, seen := s.OnHost(s.Venv); seen || !seesPath(c, s.Venv) {
				return lang.Text{}
			}
			return phrase("%s is on the host, and no mount shows it in the container at that path", "%s 在主机上，容器内没有挂载到同一路径", s.Venv)
		}
		venv := filepath.Join(s.Worktree, s.Venv)
		if in, ok := s.InContainer(venv); ok {
			if host, _ := s.OnHost(in); host != venv {
				return phrase("%s lies under another mount in the container, which shows %s", "%s 在容器内被另一个挂载遮住，看到的是 %s", venv, host)
			}
		}
		if seesPath(c, s.Worktree) && !seesPath(c, venv) {
			return phrase("there is no %s for the container to see", "没有 %s 可供容器使用", venv)
		}
		return lang.Text{}
	}},
	{id: "container-image-matches", field: "container.image", check: func(c *ops.Call, s job.Spec) lang.Text {
		got, ok := pytorchImage(s.Container.Image)
		if !inContainer(s) || !ok || !SharesFiles(c, s) || !seesPath(c, s.Worktree) {
			return lang.Text{}
		}
		var want []string
		for _, variant := range []string{"dev", "lts"} {
			if b, err := readHead(filepath.Join(s.Worktree, "docker", ".ngc_version."+variant), 256); err == nil {
				if tag, ok := pytorchImage(strings.TrimSpace(string(b))); ok {
					want = append(want, tag)
				}
			}
		}
		if len(want) == 0 || slices.Contains(want, got) {
			return lang.Text{}
		}
		return phrase("the image is PyTorch %s, and the worktree was tested with %s", "镜像为 PyTorch %s，而工作树以 %s 测试", got, strings.Join(want, ", "))
	}},
	{id: "cpus-fit-node", field: "cpus_per_task", check: func(c *ops.Call, s job.Spec) lang.Text {
		site := c.SiteOf(s)
		have, unit := site.CPUsPerNode, lang.Text{EN: "CPUs", ZH: "CPU"}
		if s.Hint == "nomultithread" && site.ThreadsPerCore > 1 {
			have, unit = have/site.ThreadsPerCore, lang.Text{EN: "cores", ZH: "物理核"}
		}
		if s.CPUsPerTask == nil || have == 0 || *s.CPUsPerTask <= have {
			return lang.Text{}
		}
		return lang.Text{EN: "%d CPUs per task, and a node has %d %s", ZH: "每个任务 %d 个 CPU，而单节点只有 %d 个%s"}.With(*s.CPUsPerTask, have, unit)
	}},
	{id: "own-script-agrees", field: "args", check: func(_ *ops.Call, s job.Spec) lang.Text {
		if n, ok := wholeNumber(s.Args, "--world-size", "--world_size"); ok && n != s.WorldSize() {
			return phrase("--world-size %d, and the job has %s", "--world-size 为 %d，而作业有 %s", n, ops.Counted(s.WorldSize(), "rank"))
		}
		url, _ := megatron.ValueOf(s.Args, "--init-method", "--init_method", "--dist-url")
		if !strings.HasPrefix(url, "tcp://") || *s.Nodes == 1 || strings.Contains(url, "$") {
			return lang.Text{}
		}
		return phrase("%s names one host and port, and Slurm chooses the first node: use env://, MASTER_ADDR and MASTER_PORT are set", "%s 写死了主机与端口，而首节点由 Slurm 决定：改用 env://，MASTER_ADDR 与 MASTER_PORT 已设置", url)
	}},
}

// phrase formats a text in both languages with the same values.
func phrase(en, zh string, args ...any) lang.Text {
	return lang.Text{EN: en, ZH: zh}.With(args...)
}

// startsWorkers reports whether the job's launcher itself starts a process for each
// GPU.
func startsWorkers(s job.Spec) bool {
	if s.Launcher != job.Custom {
		return true
	}
	words := strings.Join(s.LauncherArgv, " ")
	return slices.ContainsFunc([]string{"torchrun", "torch.distributed", "accelerate", "deepspeed"}, func(w string) bool { return strings.Contains(words, w) })
}

// wholeNumber returns the whole number of the last of the flags among words.
func wholeNumber(words []string, flags ...string) (int, bool) {
	v, _ := megatron.ValueOf(words, flags...)
	n, err := strconv.Atoi(v)
	return n, err == nil
}

// seesPath reports whether a path exists here and the caller may look at it.
func seesPath(c *ops.Call, p string) bool {
	return (c.MayRead == nil || c.MayRead(p) == nil) && pathExists(p)
}

func pathExists(p string) bool {
	_, err := os.Stat(p)
	return err == nil
}

// pytorchImage returns the tag of one of NVIDIA's PyTorch images, without a digest, also in the
// spelling of pyxis.
func pytorchImage(image string) (tag string, ok bool) {
	image = strings.ReplaceAll(strings.TrimPrefix(image, "docker://"), "#", "/")
	image, _, _ = strings.Cut(image, "@")
	return strings.CutPrefix(image, "nvcr.io/nvidia/pytorch:")
}

// lintRows maps a rule of lint to the documents' rule that it checks in a script, and
// the field that the rule is about.
var lintRows = map[string]struct{ row, field string }{
	"no-worktree-cd":           {"worktree-shared", "worktree"},
	"tasks-per-node":           {"one-task-per-node", "nodes"},
	"bare-torchrun":            {"no-bare-torchrun", "launcher"},
	"nnodes-mismatch":          {"nnodes-match-allocation", "nodes"},
	"nproc-mismatch":           {"nproc-match-gpus", "gpus_per_node"},
	"world-size-from-ntasks":   {"world-size-counts-gpus", "WORLD_SIZE"},
	"early-rank-interpolation": {"rank-evaluated-on-node", "SLURM_NODEID"},
	"uv-sync-in-job":           {"environment-synced", "venv"},
	"node-local-path":          {"outputs-shared", "log_dir"},
	"container-mount-missing":  {"container-sees-venv", "container.mounts"},
}

// Written judges a script by the documents' rules, line by line.
func Written(c *ops.Call, name string, text []byte) []rules.Problem {
	var ps []rules.Problem
	for _, f := range lint.CheckIn(name, text, c.Lang) {
		to, ok := lintRows[f.Rule]
		if !ok {
			continue
		}
		line := phrase("line %d: %s", "第 %d 行：%s", f.Line, f.Message)
		fix := lang.Text{EN: f.Fix, ZH: f.Fix}
		ps = append(ps, documentRule{id: to.row, field: to.field, severity: f.Severity, fix: fix}.problem(line, c.Lang))
	}
	return ps
}
