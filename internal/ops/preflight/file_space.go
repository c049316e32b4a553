package preflight

import (
	"cmp"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/store"
	"github.com/megatron-ops/megatron-ops/knowledge/rules"
)

// save checks that a checkpoint can be written and that two of them fit.
func (f *fileCheck) save() {
	dir := f.args.Save.V
	if dir == "" || !f.writable("--save", dir) {
		return
	}
	f.sharedOutput("--save", dir)
	host, _ := f.hostPath(dir)
	at := nearestExisting(host)
	var st unix.Statfs_t
	if unix.Statfs(at, &st) != nil {
		return
	}
	free := float64(st.Bavail) * float64(st.Bsize)
	// Weights in bf16 and the optimizer's fp32 copies: 14 bytes a parameter.
	params, _ := f.args.Shape().Params()
	need := params * 14
	if need > 0 && free < 2*need {
		f.add("save-space", rules.Warning, "--save",
			phrase("%.0[2]f GiB are free at %[1]s, and one checkpoint takes about %.0[3]f GiB", "%[1]s 剩余 %.0[2]f GiB，而一个检查点约需 %.0[3]f GiB", dir, free/(1<<30), need/(1<<30)),
			lang.Text{EN: "another file system, or keep fewer checkpoints", ZH: "换一个文件系统，或减少保留的检查点"})
	}
	for _, q := range f.quotas(at) {
		if left := float64(q.Left()); need > 0 && left < 2*need {
			whose := map[string]lang.Text{"user": {EN: "your", ZH: "你"}, "group": {EN: "your group's", ZH: "你所在组"}}[q.Of]
			f.add("save-quota", rules.Warning, "--save", lang.Text{
				EN: "%s quota on %s has %.0f GiB left of %.0f, and one checkpoint takes about %.0f GiB",
				ZH: "%s在 %s 的配额剩余 %.0f GiB（共 %.0f GiB），而一个检查点约需 %.0f GiB",
			}.With(whose, q.Mount, left/(1<<30), float64(q.Limit)/(1<<30), need/(1<<30)), lang.Text{EN: "free some, ask for more, or save to another file system", ZH: "清理空间、申请提高配额，或保存到其他文件系统"})
		}
	}
}

// sharedOutput checks that all nodes see a folder that every node writes to or reads
// again.
func (f *fileCheck) sharedOutput(flag, dir string) {
	host, ok := f.hostPath(dir)
	if !ok || nodeLocal(host) || f.seenByAllNodes(nearestExisting(host)) {
		return
	}
	f.add("outputs-shared", rules.Warning, flag, phrase("%s lies on a file system of this machine alone", "%s 位于仅本机可见的文件系统", host),
		lang.Text{EN: "a folder on NFS, Lustre or the like", ZH: "改用 NFS、Lustre 等共享存储上的目录"})
}

// seenByAllNodes reports whether all nodes see dir, as far as this machine can tell: by
// the kind of its file system, or because the site says so.
func (f *fileCheck) seenByAllNodes(dir string) bool {
	return !f.apart || store.OnNetworkFS(dir) || slices.ContainsFunc(f.shared, func(root string) bool {
		return dir == root || strings.HasPrefix(dir, strings.TrimSuffix(root, "/")+"/")
	})
}

// addUnmounted reports a path that exists on the host but that no mount shows in the
// container under the same name.
func (f *fileCheck) addUnmounted(flag, p, ext string) {
	if _, mounted := f.spec.OnHost(p); mounted || !path.IsAbs(p) || f.may != nil && f.may(p+ext) != nil || !pathExists(p+ext) {
		return // this machine does not have it either, so it may be in the image
	}
	said, fix := phrase("%s is on the host, and no mount shows it in the container", "%s 在主机上，而容器没有挂载它", p),
		phrase("add %s:%[1]s to container.mounts", "在 container.mounts 中加入 %s:%[1]s", filepath.Dir(p))
	if inside, ok := f.spec.InContainer(p); ok {
		said = phrase("%s is the host's name: the container sees it as %s", "%s 是主机上的路径：在容器内它是 %s", p, inside)
		fix = phrase("%s %s", "%s %s", flag, inside)
	}
	f.add("path-not-mounted", rules.Warning, flag, said, fix)
}

// nearestExisting returns p or the nearest folder above it that exists.
func nearestExisting(p string) string {
	for {
		if _, err := os.Stat(p); err == nil || p == "/" || p == "." {
			return cmp.Or(p, ".")
		}
		p = filepath.Dir(p)
	}
}

// writable reports whether the job can create files in dir, which need not exist yet.
func (f *fileCheck) writable(flag, dir string) bool {
	host, ok := f.hostPath(dir)
	if !ok {
		f.addUnmounted(flag, dir, "")
		return false
	}
	at := nearestExisting(host)
	if unix.Access(at, unix.W_OK) == nil {
		return true
	}
	f.add("not-writable", rules.Error, flag, lang.Text{EN: at + " cannot be written to by you", ZH: "你没有 " + at + " 的写权限"}, lang.Text{EN: "a folder of yours on shared storage", ZH: "改用共享存储上自己的目录"})
	return false
}
