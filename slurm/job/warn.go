package job

import (
	"path"
	"slices"
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/lang"
)

// warn adds warnings about choices that work but that an expert would avoid.
func (r *rendering) warn() {
	add := func(cond bool, warning lang.Text) {
		if cond {
			r.warnings = append(r.warnings, warning)
		}
	}
	sig := r.ExitSignal()
	add(slices.Contains(r.Preset, privileged), phrase("docker-privileged gives the container the whole node; most sites forbid it, and training does not need it", "docker-privileged 让容器获得整个节点的权限；多数站点禁止，训练也不需要"))
	add(r.Signal != "" && slices.Contains([]string{"TERM", "INT", "HUP", "QUIT"}, sig), phrase("signal: torch's launcher ends the ranks itself on SIG%s, after 30 seconds whether they have saved or not; USR1 leaves them the time", "signal：torch 启动器收到 SIG%s 后会自行结束各 rank，30 秒后无论是否已保存；USR1 则给它们留出时间", sig))
	add(r.Signalled() && r.Container.Runtime == Docker, phrase("docker passes a signal on to the container's first process only, so the ranks may not save; scancel still ends the job", "docker 只把信号传给容器的第一个进程，各 rank 可能不会保存；scancel 仍能结束作业"))
	add(r.Signal != "" && !strings.Contains(r.Signal, "@"), phrase("signal: without @seconds Slurm sends it 60 seconds before the end, which is short for a checkpoint", "signal：没有 @秒数 时 Slurm 在结束前 60 秒发送，保存检查点可能来不及"))
	add(r.Container.Runtime == Enroot && !strings.HasSuffix(r.Container.Image, ".sqsh") && strings.ContainsAny(r.Container.Image, ":/"), phrase("enroot starts a .sqsh file: make it once with enroot import --output FILE.sqsh docker://IMAGE", "enroot 启动的是 .sqsh 文件：先执行一次 enroot import --output FILE.sqsh docker://IMAGE"))
	add(r.contained() && path.IsAbs(r.Venv) && r.venvOnHost() == "" && r.inShared(r.Venv),
		phrase("venv: %s lies on a shared file system that is not mounted into the container: add a mount, or name the image's own, such as /opt/venv", "venv：%s 位于没有挂载进容器的共享文件系统上：请添加挂载，或使用镜像自带的环境，例如 /opt/venv", r.Venv))
	add(slices.Contains(r.Preset, perNodeLogs) && slices.Contains(r.Preset, joinedLog), phrase("joined-log gets nothing where per-node-logs takes the output", "per-node-logs 占用了输出，joined-log 得不到内容"))
	add(slices.Contains(r.Preset, gpuUse) && !*r.Monitor, phrase("gpu-use writes beside the traces, and monitor: false leaves both out", "gpu-use 写在诊断文件旁，monitor: false 会把两者都去掉"))
	add(*r.GPUsPerNode > 0 && r.CPUsPerTask == nil && !(r.Exclusive != nil && *r.Exclusive),
		phrase("cpus_per_task is not given: on many clusters the ranks of a node then share one CPU", "没有给出 cpus_per_task：在许多集群上，同一节点的各 rank 会共用一个 CPU"))
	saves := slices.ContainsFunc(r.Args, func(a string) bool { return strings.HasPrefix(a, "--exit-duration-in-mins") })
	add(r.Time != "" && !r.Signalled() && !saves && r.Pretrains(),
		phrase("nothing makes the job save before its time limit: set signal: USR1@300, or give --exit-duration-in-mins", "作业到达时间上限前不会保存：请设置 signal: USR1@300，或给出 --exit-duration-in-mins"))
	for _, dir := range []string{"/tmp", "/var/tmp", "/dev/shm"} {
		_, logs := relativeTo(dir, path.Clean(r.LogDir))
		add(logs && *r.Nodes > 1, phrase("log_dir: %s is local to each node on most clusters", "log_dir：在多数集群上 %s 是各节点本地的目录", dir))
		_, local := relativeTo(dir, path.Clean(r.Worktree))
		add(local && *r.Nodes > 1, phrase("worktree: %s is local to each node on most clusters", "worktree：在多数集群上 %s 是各节点本地的目录", dir))
	}
}

// inShared reports whether a path probably lies on the host and not in an image: on a
// shared file system of the site, or in a home folder.
func (r *rendering) inShared(p string) bool {
	return slices.ContainsFunc(append([]string{"/home", "/lustre", "/mnt", path.Dir(path.Clean(r.Worktree))}, r.Site.Shared...), func(dir string) bool {
		_, in := relativeTo(path.Clean(dir), path.Clean(p))
		return in
	})
}
