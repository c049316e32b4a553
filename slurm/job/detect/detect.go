// Package detect reads what a site offers from what its commands print.
package detect

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/lazy"
	"github.com/megatron-ops/megatron-ops/knowledge/megatron"
	"github.com/megatron-ops/megatron-ops/slurm/job"
)

// A Probe is one command whose output tells of a site; Site reads it.
type Probe struct {
	Name string
	Argv []string
	// Tells is what stays unknown where it does not answer.
	Tells lang.Text
}

// Probes are the commands to run on a login node, as their user. One that fails
// or is missing only leaves something out.
func Probes(user string) []Probe {
	return []Probe{
		{"nodes", []string{"sinfo", "--noheader", "--format=%R|%a|%D|%G|%c|%Z|%l|%f"}, lang.Text{EN: "the partitions and their GPUs", ZH: "分区及其 GPU"}},
		{"partitions", []string{"scontrol", "show", "partition", "--oneliner"}, lang.Text{EN: "the default partition", ZH: "默认分区"}},
		{"config", []string{"scontrol", "show", "config"}, lang.Text{EN: "how GPUs are asked for", ZH: "GPU 的申请方式"}},
		{
			"account",
			[]string{"sacctmgr", "--noheader", "--parsable2", "show", "user", user, "format=defaultaccount"},
			lang.Text{EN: "your default account", ZH: "你的默认账户"},
		},
		{
			"accounts",
			[]string{"sacctmgr", "--noheader", "--parsable2", "show", "associations", "user=" + user, "format=account"},
			lang.Text{EN: "your accounts", ZH: "你的账户"},
		},
		{"srun", []string{"srun", "--help"}, lang.Text{EN: "whether srun starts containers", ZH: "srun 能否启动容器"}},
		{"mounts", []string{"findmnt", "--noheadings", "--list", "--output=TARGET,FSTYPE"}, lang.Text{EN: "the shared folders", ZH: "共享目录"}},
		{"programs", []string{"which", "apptainer", "singularity", "enroot", "docker"}, lang.Text{EN: "what else starts containers", ZH: "其他容器运行时"}},
	}
}

// A Found is one thing that Site concluded, and from what.
type Found struct {
	Field string
	Value string // empty where nothing tells
	Why   lang.Text
	// Choices are all values that would do, where they are known.
	Choices []string
	// Asks reports that a person should say: several would do, or nothing tells.
	Asks bool
}

// Site turns what the probes printed, by their names, into a profile. It
// says for each field how it got there; what no output tells stays empty. What a
// person has said, by field, wins, and decides what else is looked at.
func Site(output, said map[string]string) (job.Site, []Found) {
	d := detection{said: said}
	groups := readNodes(output["nodes"])
	d.asks = len(groups) > 0
	d.partitions(groups, defaultPartition(output["partitions"]))
	d.accounts(output["account"], output["accounts"])
	d.request(output["config"])
	d.runtime(output["srun"], output["programs"])
	d.shared(output["mounts"])
	return d.site, d.found
}

// A nodeGroup is a line of sinfo: nodes of one partition that are alike.
type nodeGroup struct {
	partition     string
	up            bool
	nodes         int
	gpus          int
	kinds         []string // GPU types that the GRES names
	features      string
	cpus, threads int
}

var gresForm = lazy.New(`\bgpu:(?:([A-Za-z][A-Za-z0-9_.-]*):)?([0-9]+)`)

func readNodes(text string) []nodeGroup {
	var groups []nodeGroup
	for line := range strings.Lines(text) {
		f := strings.Split(strings.TrimSpace(line), "|")
		if len(f) < 8 {
			continue
		}
		g := nodeGroup{partition: f[0], up: f[1] == "up", features: f[7]}
		g.nodes, _ = strconv.Atoi(f[2])
		g.cpus, _ = strconv.Atoi(strings.TrimSuffix(f[4], "+"))
		g.threads, _ = strconv.Atoi(f[5])
		for _, m := range gresForm.FindAllStringSubmatch(f[3], -1) {
			n, _ := strconv.Atoi(m[2])
			g.gpus += n
			if m[1] != "" && !slices.Contains(g.kinds, m[1]) {
				g.kinds = append(g.kinds, m[1])
			}
		}
		groups = append(groups, g)
	}
	return groups
}

var defaultForm = lazy.New(`(?m)^PartitionName=(\S+).*\bDefault=YES\b`)

func defaultPartition(text string) string {
	if m := defaultForm.FindStringSubmatch(text); m != nil {
		return m[1]
	}
	return ""
}

type detection struct {
	said  map[string]string
	asks  bool // a Slurm answers, so that there is something to ask about
	site  job.Site
	found []Found
}

func (d *detection) say(field, value string, en, zh string) {
	d.found = append(d.found, Found{Field: field, Value: value, Why: lang.Text{EN: en, ZH: zh}})
}

// choose is the value of a field of which several values would do: what a person
// said, else what was detected.
func (d *detection) choose(field, detected string, choices []string, en, zh string) string {
	f := Found{Field: field, Value: detected, Why: lang.Text{EN: en, ZH: zh}, Choices: choices, Asks: d.asks && (detected == "" || len(choices) > 1)}
	if word, ok := d.said[field]; ok {
		f.Value, f.Why, f.Asks = word, lang.Text{EN: "as you say", ZH: "按你的选择"}, false
	}
	if f.Value != "" || f.Asks {
		d.found = append(d.found, f)
	}
	return f.Value
}

// partitions chooses where jobs with and without GPUs go: the default
// partition where it fits, else the one with the most nodes.
func (d *detection) partitions(groups []nodeGroup, first string) {
	size := map[string]int{}
	for _, g := range groups {
		size[g.partition] += g.nodes
	}
	// fitting are the groups that a job could go to, the best first.
	fitting := func(withGPUs bool) []nodeGroup {
		fit := slices.DeleteFunc(slices.Clone(groups), func(g nodeGroup) bool { return !g.up || (g.gpus > 0) != withGPUs })
		slices.SortStableFunc(fit, func(a, b nodeGroup) int {
			return cmp.Or(-cmp.Compare(b2i(a.partition == first), b2i(b.partition == first)),
				-cmp.Compare(size[a.partition], size[b.partition]), -cmp.Compare(a.nodes, b.nodes), cmp.Compare(a.partition, b.partition))
		})
		return fit
	}
	if fit := fitting(false); len(fit) > 0 {
		d.site.CPUPartition = d.choose("cpu_partition", fit[0].partition, distinct(fit, func(g nodeGroup) []string { return []string{g.partition} }),
			"the nodes of this partition have no GPU", "该分区的节点没有 GPU")
	}
	fit := fitting(true)
	if len(fit) == 0 {
		return
	}
	names := distinct(fit, func(g nodeGroup) []string { return []string{g.partition} })
	en, zh := fmt.Sprintf("the largest partition with GPUs: %d nodes", size[names[0]]), fmt.Sprintf("有 GPU 的最大分区：%d 个节点", size[names[0]])
	if names[0] == first {
		en, zh = "Slurm's default partition, and it has GPUs", "Slurm 的默认分区，且有 GPU"
	}
	d.site.Partition = d.choose("partition", names[0], names, en, zh)
	fit = slices.DeleteFunc(fit, func(g nodeGroup) bool { return g.partition != d.site.Partition })
	if len(fit) == 0 {
		return
	}
	if kinds := distinct(fit, func(g nodeGroup) []string { return g.kinds }); len(kinds) > 1 && len(fit[0].kinds) > 0 {
		d.site.GRESType = d.choose("gres_type", fit[0].kinds[0], kinds, "the partition has several kinds of GPU, so requests name one", "该分区有多种 GPU，申请时需指明类型")
		if of := slices.DeleteFunc(slices.Clone(fit), func(g nodeGroup) bool { return !slices.Contains(g.kinds, d.site.GRESType) }); len(of) > 0 {
			fit = of
		}
	}
	counts := distinct(fit, func(g nodeGroup) []string { return []string{strconv.Itoa(g.gpus)} })
	count := d.choose("gpus_per_node", counts[0], counts, "sinfo's GRES of its nodes", "sinfo 显示的节点 GRES")
	g := fit[max(0, slices.IndexFunc(fit, func(g nodeGroup) bool { return strconv.Itoa(g.gpus) == count }))]
	d.site.GPUsPerNode, d.site.CPUsPerTask, d.site.CPUsPerNode, d.site.ThreadsPerCore = g.gpus, g.cpus, g.cpus, g.threads
	d.say("cpus_per_task", strconv.Itoa(g.cpus), "all CPUs of a node, for its one task", "节点的全部 CPU，供唯一的任务使用")
	d.say("cpus_per_node", strconv.Itoa(g.cpus), "sinfo; what a job asks for is held against it before it is submitted", "来自 sinfo；提交前据此核对作业申请的 CPU 数")
	d.say("threads_per_core", strconv.Itoa(g.threads), "sinfo; with 2, hint: nomultithread leaves one thread for each core", "来自 sinfo；为 2 时，hint: nomultithread 让每个核心只用一个线程")
	d.kind(g, fit)
}

// distinct are the words of each group, each once, in their order.
func distinct(groups []nodeGroup, words func(nodeGroup) []string) (all []string) {
	for _, g := range groups {
		for _, w := range words(g) {
			if !slices.Contains(all, w) {
				all = append(all, w)
			}
		}
	}
	return all
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

// kind names the GPU by the GRES type, else by a feature of the nodes.
// Where the partition's nodes have several kinds, a person says which; left open,
// each job does.
func (d *detection) kind(g nodeGroup, all []nodeGroup) {
	kinds := distinct(all, func(g nodeGroup) []string {
		for _, word := range append(slices.Clone(g.kinds), strings.Split(g.features, ",")...) {
			if gpu, ok := megatron.LookupGPU(word); ok {
				return []string{gpu.Name}
			}
		}
		return nil
	})
	if len(kinds) > 1 {
		list := strings.Join(kinds, ", ")
		d.site.GPU = d.choose("gpu", "", kinds, "the partition has nodes with "+list+": name the one that jobs ask for by constraint, or leave it to each job",
			"该分区的节点分别有 "+list+"：请填作业用 constraint 申请的那一种，或留给各作业自己填写")
		return
	}
	for _, word := range append(slices.Clone(g.kinds), strings.Split(g.features, ",")...) {
		if gpu, ok := megatron.LookupGPU(word); ok {
			d.site.GPU = d.choose("gpu", gpu.Name, nil, fmt.Sprintf("the nodes say %q", word), fmt.Sprintf("节点标明 %q", word))
			return
		}
	}
	d.site.GPU = d.choose("gpu", "", nil, "the nodes do not say which GPU they have; it decides the architecture, such as h100", "节点未标明 GPU 型号；它决定架构，例如 h100")
}

func (d *detection) accounts(byDefault, all string) {
	list := slices.DeleteFunc(strings.Fields(all), func(a string) bool { return !job.IsWord(a) })
	slices.Sort(list)
	list = slices.Compact(list)
	first, en, zh := strings.TrimSpace(byDefault), "your default account", "你的默认账户"
	if !job.IsWord(first) {
		if len(list) == 0 {
			return
		}
		first, en, zh = list[0], "one of your accounts: "+strings.Join(list, ", "), "你的账户之一："+strings.Join(list, ", ")
	}
	d.site.Account = d.choose("account", first, list, en, zh)
}

// request is how this Slurm counts GPUs: --gpus-per-node needs cons_tres.
func (d *detection) request(config string) {
	m := regexp.MustCompile(`(?m)^SelectType\s*=\s*(\S+)`).FindStringSubmatch(config)
	if m == nil {
		return
	}
	detected, forms := "gpus-per-node", []string{"gpus-per-node", "gres", "gpus"}
	if m[1] != "select/cons_tres" {
		detected, forms = "gres", []string{"gres"}
	}
	d.site.GPURequest = d.choose("gpu_request", detected, forms, "SelectType is "+m[1], "SelectType 为 "+m[1])
}

// runtime is what starts containers here. srun's own option wins: it is the
// site's, and a program may be there by chance.
func (d *detection) runtime(srunHelp, programs string) {
	var found []string
	detected, en, zh := "", "nothing here starts containers: "+strings.Join(runtimes, ", "), "未发现容器运行时："+strings.Join(runtimes, ", ")
	if strings.Contains(srunHelp, "--container-image") {
		detected, found, en, zh = job.Pyxis, []string{job.Pyxis}, "srun takes --container-image", "srun 支持 --container-image"
	}
	for _, name := range []string{job.Apptainer, job.Singularity, job.Enroot, job.Docker} {
		for line := range strings.Lines(programs) {
			if line = strings.TrimSpace(line); !strings.HasSuffix(line, "/"+name) {
				continue
			}
			found = append(found, name)
			if detected == "" {
				detected, en, zh = name, line+" is on this machine", "本机有 "+line
			}
		}
	}
	if detected == "" {
		found = runtimes
	}
	d.site.Container.Runtime = d.choose("container.runtime", detected, found, en, zh)
}

// runtimes are those that a profile may name.
var runtimes = []string{job.Pyxis, job.Enroot, job.Apptainer, job.Singularity, job.Docker}

// networked are the file systems that every node can see.
var networked = strings.Fields("nfs nfs4 lustre gpfs beegfs ceph fuse.ceph wekafs panfs pvfs2 cifs smb3 glusterfs fuse.glusterfs vastfs quobyte afs")

func (d *detection) shared(mounts string) {
	var all []string
	for line := range strings.Lines(mounts) {
		f := strings.Fields(line)
		if len(f) == 2 && slices.Contains(networked, f[1]) && job.IsAbsolute(f[0]) && !slices.Contains(all, f[0]) {
			all = append(all, f[0])
		}
	}
	en, zh := "mounted over the network", "通过网络挂载"
	if len(all) == 0 {
		en, zh = "nothing here is mounted over the network; folders that every node sees, with commas", "本机没有网络挂载；请填每个节点都能看到的目录，用逗号分隔"
	}
	// Which of several mounts the nodes have too, the login node cannot tell.
	if value := d.choose("shared", strings.Join(all, ","), all, en, zh); value != "" {
		d.site.Shared = strings.Split(value, ",")
	}
}

// Refuses says why a person's answer does not do; empty where it does.
func (f Found) Refuses(answer string) lang.Text {
	switch {
	case f.Field == "shared":
		for dir := range strings.SplitSeq(answer, ",") {
			if !job.IsAbsolute(dir) {
				return lang.Text{EN: fmt.Sprintf("%q is no absolute path", dir), ZH: fmt.Sprintf("%q 不是绝对路径", dir)}
			}
		}
	case f.Field == "gpu":
		if _, ok := megatron.LookupGPU(answer); !ok {
			return lang.Text{EN: fmt.Sprintf("%q is no GPU that is known, such as a100, h100, b200, gb200", answer), ZH: fmt.Sprintf("未知的 GPU %q，例如 a100、h100、b200、gb200", answer)}
		}
	case !slices.Contains(f.Choices, answer):
		return lang.Text{EN: fmt.Sprintf("%q is none of %s", answer, strings.Join(f.Choices, ", ")), ZH: fmt.Sprintf("%q 不在可选项中：%s", answer, strings.Join(f.Choices, ", "))}
	}
	return lang.Text{}
}
