package preflight

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/within"
	"github.com/megatron-ops/megatron-ops/knowledge/megatron"
	"github.com/megatron-ops/megatron-ops/knowledge/rules"
	"github.com/megatron-ops/megatron-ops/slurm"
	"github.com/megatron-ops/megatron-ops/slurm/cluster"
	"github.com/megatron-ops/megatron-ops/slurm/job"
)

// A fileCheck looks at the files that a job will open, from this machine, as this
// person, with bounded reads. It translates paths inside of a container through the
// mounts. A path of the image itself cannot be seen and is not judged.
type fileCheck struct {
	spec job.Spec
	args *megatron.Config
	lang lang.Lang
	// shared are folders that every node sees, according to the site. apart reports
	// that the job's nodes are other machines than this one.
	shared []string
	apart  bool
	quotas func(dir string) []slurm.Quota
	may    func(path string) error // refuses what an agent may not look at; nil: nothing
	// unseen holds the paths that may refuses.
	unseen []string
	ps     []rules.Problem
}

// argsOf returns the job's arguments as Megatron would read them.
func argsOf(s job.Spec) *megatron.Config {
	args, _ := megatron.Parse(s.Run())
	return args.Effective()
}

// checkFiles returns the problems with the files of s.
func checkFiles(ctx context.Context, c *ops.Call, s job.Spec) []rules.Problem {
	f := fileCheck{
		spec: s, args: argsOf(s), lang: c.Lang, may: c.MayRead, shared: c.SiteOf(s).Shared, apart: *s.Nodes > 1 && !oneHost(c, s),
		quotas: func(dir string) []slurm.Quota {
			qs, _ := cluster.Quotas(ctx, dir) // on an error the quotas are unknown
			return qs
		},
	}
	f.noteRoot()
	f.environment()
	f.data()
	f.tokenizer()
	f.load()
	f.save()
	for _, dir := range []struct{ flag, path string }{
		{"--data-cache-path", f.args.DataCachePath.V}, {"--tensorboard-dir", f.args.TensorboardDir.V},
	} {
		if dir.path != "" && f.writable(dir.flag, dir.path) {
			f.sharedOutput(dir.flag, dir.path)
		}
	}
	if n := len(f.unseen); n > 0 {
		f.add("files-not-looked-at", rules.Note, "check_files", lang.Text{
			EN: "%s outside of the folders that this server may read was not looked at, such as %s", ZH: "有 %s不在本服务器可读的目录内，未做检查，例如 %s",
		}.With(ops.Counted(n, "path"), f.unseen[0]),
			lang.Text{EN: "megatron-ops plan --check-files in a shell looks at all of them", ZH: "在 shell 中运行 megatron-ops plan --check-files 可检查全部路径"})
	}
	return f.ps
}

func (f *fileCheck) add(rule string, sev rules.Severity, field string, said, fix lang.Text) {
	f.ps = append(f.ps, documentRule{id: rule, severity: sev, field: field, fix: fix}.problem(said, f.lang))
}

// hostPath returns the job's path p on this machine; ok is false for a path that only
// the image has.
func (f *fileCheck) hostPath(p string) (host string, ok bool) {
	host, ok = f.spec.OnHost(p)
	if ok && f.may != nil && f.may(host) != nil {
		if !slices.Contains(f.unseen, host) {
			f.unseen = append(f.unseen, host)
		}
		return host, false
	}
	return host, ok
}

// exists reports whether the job's path exists; seen is false where this machine cannot
// tell.
func (f *fileCheck) exists(p string) (st os.FileInfo, there, seen bool) {
	host, ok := f.hostPath(p)
	if !ok {
		return nil, false, false
	}
	st, err := os.Stat(host)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, false, false
	}
	return st, err == nil, true
}

// data checks the .bin and .idx of every dataset, and the weights of the blend.
func (f *fileCheck) data() {
	for _, blend := range []struct {
		flag  string
		words []string
	}{
		{"--data-path", f.args.DataPath},
		{"--train-data-path", f.args.TrainDataPath},
		{"--valid-data-path", f.args.ValidDataPath},
		{"--test-data-path", f.args.TestDataPath},
	} {
		prefixes := blend.words
		if len(blend.words) > 1 {
			if _, err := strconv.ParseFloat(blend.words[0], 64); err == nil {
				prefixes = f.blendPrefixes(blend.flag, blend.words)
			}
		}
		for _, p := range prefixes {
			f.dataset(blend.flag, p)
		}
	}
}

// blendPrefixes reads a blend that alternates weights and prefixes.
func (f *fileCheck) blendPrefixes(flag string, words []string) (prefixes []string) {
	for i, w := range words {
		if i%2 == 1 {
			prefixes = append(prefixes, w)
			continue
		}
		if n, err := strconv.ParseFloat(w, 64); err != nil || n < 0 {
			f.add("data-blend", rules.Error, flag, phrase("%q stands where a weight must: weights and prefixes alternate", "%q 处应为权重：权重与前缀交替出现", w),
				phrase("%s WEIGHT PREFIX WEIGHT PREFIX …", "%s 权重 前缀 权重 前缀 …", flag))
		}
	}
	if len(words)%2 == 1 {
		f.add("data-blend", rules.Error, flag, lang.Text{EN: "the blend ends with a weight without a prefix", ZH: "混合数据集以一个没有前缀的权重结尾"},
			lang.Text{EN: "add the prefix, or drop the weight", ZH: "补上前缀或去掉该权重"})
	}
	return prefixes
}

// indexMagic is how every .idx begins (megatron/core/datasets/indexed_dataset.py:54).
var indexMagic = []byte("MMIDIDX\x00\x00")

func (f *fileCheck) dataset(flag, prefix string) {
	for _, ext := range []string{".bin", ".idx"} {
		st, there, seen := f.exists(prefix + ext)
		switch {
		case !seen:
			f.addUnmounted(flag, prefix, ext)
			return
		case !there:
			f.add("data-missing", rules.Error, flag, lang.Text{EN: prefix + ext + " is not there", ZH: prefix + ext + " 不存在"},
				lang.Text{EN: "the prefix without .bin or .idx, as preprocess_data.py wrote it; both files must be there", ZH: "填写 preprocess_data.py 输出的前缀（不含 .bin/.idx），两个文件都要存在"})
			return
		case st.Size() == 0:
			f.add("data-empty", rules.Error, flag, lang.Text{EN: prefix + ext + " is empty", ZH: prefix + ext + " 是空文件"}, lang.Text{EN: "preprocess the data again", ZH: "重新预处理数据"})
			return
		}
	}
	host, _ := f.hostPath(prefix + ".idx")
	head, err := readHead(host, int64(len(indexMagic)))
	if err != nil {
		f.add("data-unreadable", rules.Error, flag, lang.Text{EN: prefix + ".idx cannot be read: " + err.Error(), ZH: prefix + ".idx 无法读取：" + err.Error()}, lang.Text{})
		return
	}
	if !bytes.Equal(head, indexMagic) {
		f.add("data-not-indexed", rules.Error, flag, lang.Text{EN: prefix + ".idx is no index of Megatron's: it does not begin with MMIDIDX", ZH: prefix + ".idx 不是 Megatron 的索引：文件头不是 MMIDIDX"},
			lang.Text{EN: "make it with tools/preprocess_data.py", ZH: "用 tools/preprocess_data.py 生成"})
	}
}

func (f *fileCheck) tokenizer() {
	for _, file := range []struct{ flag, path string }{
		{"--vocab-file", f.args.VocabFile.V}, {"--merge-file", f.args.MergeFile.V}, {"--tokenizer-model", f.args.TokenizerModel.V},
	} {
		flag, p := file.flag, file.path
		// --tokenizer-model may also be a name on a hub, such as "org/model".
		if p == "" || flag == "--tokenizer-model" && !path.IsAbs(p) && !strings.HasPrefix(p, ".") {
			continue
		}
		switch _, there, seen := f.exists(p); {
		case !seen:
			f.addUnmounted(flag, p, "")
		case !there:
			f.add("tokenizer-missing", rules.Error, flag, lang.Text{EN: p + " is not there", ZH: p + " 不存在"}, lang.Text{EN: "a path that every node sees", ZH: "改成所有节点可见的路径"})
		}
	}
}

// tracker is the file that names the last complete checkpoint of a folder
// (megatron/training/checkpointing.py, get_checkpoint_tracker_filename).
const tracker = "latest_checkpointed_iteration.txt"

func (f *fileCheck) load() {
	dir := f.args.Load.V
	if dir == "" {
		return
	}
	if _, there, seen := f.exists(dir); !seen {
		f.addUnmounted("--load", dir, "")
		return
	} else if !there {
		if dir == f.args.Save.V {
			return // the first job of a run that resumes from where it saves
		}
		f.add("load-missing", rules.Warning, "--load", lang.Text{EN: dir + " is not there: training starts from iteration 0", ZH: dir + " 不存在：训练将从第 0 次迭代开始"},
			lang.Text{EN: "check the path; --exit-on-missing-checkpoint makes that an error", ZH: "检查路径；--exit-on-missing-checkpoint 可将其变为错误"})
		return
	}
	host, ok := f.hostPath(path.Join(dir, tracker))
	if !ok {
		return
	}
	b, err := readHead(host, 64)
	if err != nil {
		f.add("load-no-checkpoint", rules.Warning, "--load", lang.Text{EN: dir + " has no " + tracker + ": training starts from iteration 0", ZH: dir + " 中没有 " + tracker + "：训练将从第 0 次迭代开始"}, lang.Text{})
		return
	}
	word := strings.TrimSpace(string(b))
	folder := "release"
	if n, err := strconv.Atoi(word); err == nil {
		folder = fmt.Sprintf("iter_%07d", n)
	} else if word != "release" {
		f.add("load-tracker", rules.Error, "--load", phrase("%s holds %q, not an iteration", "%s 的内容是 %q，不是迭代号", tracker, word),
			lang.Text{EN: "write the number of the last complete iteration into it", ZH: "写入最后一个完整检查点的迭代号"})
		return
	}
	other := func() lang.Text {
		newest := f.newest(dir)
		if newest == "" {
			return lang.Text{EN: "there is no complete iteration: leave --load out to start anew", ZH: "没有完整的迭代：去掉 --load 从头开始"}
		}
		return phrase("write the number of the newest complete one into %s: %s", "把最新的完整迭代写入 %s：%s", tracker, newest)
	}
	st, there, seen := f.exists(path.Join(dir, folder))
	switch {
	case !seen:
	case !there || !st.IsDir():
		f.add("load-incomplete", rules.Error, "--load", phrase("%s names iteration %s, and %s is not there", "%s 指向第 %s 次迭代，但 %s 不存在", tracker, word, folder), other())
	case !f.complete(path.Join(dir, folder)):
		f.add("load-incomplete", rules.Error, "--load", phrase("%s has neither metadata nor mp_rank folders: it was not written to its end", "%s 中既没有 metadata 也没有 mp_rank 目录：它没有写完", folder), other())
	default:
		f.format(path.Join(dir, folder))
	}
}

// complete reports whether a checkpoint was written to its end. The distributed formats
// write their metadata last; the old format has a folder for each rank.
func (f *fileCheck) complete(dir string) bool {
	host, _ := f.hostPath(dir)
	old, _ := fs.Glob(os.DirFS(host), "mp_rank_*")
	return len(old) > 0 || pathExists(filepath.Join(host, "metadata.json")) || pathExists(filepath.Join(host, ".metadata"))
}

// newest returns the folder of the newest complete iteration, or "".
func (f *fileCheck) newest(dir string) string {
	host, _ := f.hostPath(dir)
	found, _ := fs.Glob(os.DirFS(host), "iter_???????")
	for _, name := range slices.Backward(found) {
		if f.complete(path.Join(dir, name)) {
			return name
		}
	}
	return ""
}

// format compares a checkpoint's format with what the flags expect. The distributed
// formats have a metadata.json or .metadata, the old format has mp_rank folders.
func (f *fileCheck) format(dir string) {
	host, _ := f.hostPath(dir)
	old, _ := fs.Glob(os.DirFS(host), "mp_rank_*")
	_, err := os.Stat(filepath.Join(host, "metadata.json"))
	switch {
	case len(old) > 0 && f.args.CkptFormat != "torch" && !f.args.AutoDetectCkptFormat:
		f.add("load-format", rules.Warning, "--ckpt-format", lang.Text{EN: "the checkpoint has the old format (mp_rank folders), and --ckpt-format is " + f.args.CkptFormat, ZH: "检查点是旧格式（mp_rank 目录），而 --ckpt-format 为 " + f.args.CkptFormat},
			lang.Text{EN: "--ckpt-format torch, or --auto-detect-ckpt-format", ZH: "使用 --ckpt-format torch 或 --auto-detect-ckpt-format"})
	case err == nil && len(old) == 0 && f.args.CkptFormat == "torch":
		f.add("load-format", rules.Warning, "--ckpt-format", lang.Text{EN: "the checkpoint is a distributed one, and --ckpt-format is torch", ZH: "检查点是分布式格式，而 --ckpt-format 为 torch"},
			lang.Text{EN: "--ckpt-format torch_dist, or --auto-detect-ckpt-format", ZH: "使用 --ckpt-format torch_dist 或 --auto-detect-ckpt-format"})
	}
}

// readHead reads a file's first bytes.
func readHead(p string, most int64) ([]byte, error) { return (*within.Folders)(nil).ReadFile(p, most) }
