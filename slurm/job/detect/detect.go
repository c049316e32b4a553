// Package detect derives a site's profile from the output of commands on its
// login node.
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

// A Probe is one command whose output describes the site; Site reads the output.
type Probe struct {
	Name string
	Argv []string
	// Tells says which facts stay unknown if the command fails.
	Tells lang.Text
}

// Probes returns the commands to run on a login node as the given user. If a
// command fails or is missing, Site leaves out the facts that it would give.
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

// A Finding is the value that Site derived for one field, and the reason for it.
type Finding struct {
	Field string
	Value string // empty if no output gives a value
	Why   lang.Text
	// Choices are all acceptable values, if they are known.
	Choices []string
	// Asks reports that a person should choose: several values are acceptable, or
	// no output gives a value.
	Asks bool
}

// Site derives a profile from the probes' output, which is keyed by Probe.Name. It
// returns a finding with the reason for each field. A field that no output
// describes stays empty. answers holds a person's answers, keyed by field: an answer
// overrides the detected value, and later fields are derived from it.
func Site(output, answers map[string]string) (job.Site, []Finding) {
	d := detection{answers: answers}
	groups := readNodes(output["nodes"])
	d.hasSlurm = len(groups) > 0
	d.partitions(groups, defaultPartition(output["partitions"]))
	d.accounts(output["account"], output["accounts"])
	d.request(output["config"])
	d.runtime(output["srun"], output["programs"])
	d.shared(output["mounts"])
	return d.site, d.findings
}

// A nodeGroup is one line of sinfo: identical nodes of one partition.
type nodeGroup struct {
	partition     string
	up            bool
	nodes         int
	gpus          int
	gpuTypes      []string // types in the GRES, such as h100 in gpu:h100:8
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
			if m[1] != "" && !slices.Contains(g.gpuTypes, m[1]) {
				g.gpuTypes = append(g.gpuTypes, m[1])
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
	answers  map[string]string // a person's answers, by field
	hasSlurm bool              // sinfo lists nodes; without Slurm there is nothing to ask a person
	site     job.Site
	findings []Finding
}

func (d *detection) add(field, value string, en, zh string) {
	d.findings = append(d.findings, Finding{Field: field, Value: value, Why: lang.Text{EN: en, ZH: zh}})
}

// choose records a finding for a field that has several acceptable values, and
// returns its value: a person's answer if there is one, else the detected value.
func (d *detection) choose(field, detected string, choices []string, en, zh string) string {
	f := Finding{Field: field, Value: detected, Why: lang.Text{EN: en, ZH: zh}, Choices: choices, Asks: d.hasSlurm && (detected == "" || len(choices) > 1)}
	if answer, ok := d.answers[field]; ok {
		f.Value, f.Why, f.Asks = answer, lang.Text{EN: "as you say", ZH: "按你的选择"}, false
	}
	if f.Value != "" || f.Asks {
		d.findings = append(d.findings, f)
	}
	return f.Value
}

// partitions chooses the partitions for jobs with and without GPUs: the default
// partition if it is suitable, else the suitable partition with the most nodes.
func (d *detection) partitions(groups []nodeGroup, first string) {
	size := map[string]int{}
	for _, g := range groups {
		size[g.partition] += g.nodes
	}
	// fitting returns the groups that a job can use, best first.
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
	en, zh := fmt.Sprintf("nodes of the largest partition with GPUs: %d", size[names[0]]), fmt.Sprintf("有 GPU 的最大分区：%d 个节点", size[names[0]])
	if names[0] == first {
		en, zh = "Slurm's default partition, and it has GPUs", "Slurm 的默认分区，且有 GPU"
	}
	d.site.Partition = d.choose("partition", names[0], names, en, zh)
	fit = slices.DeleteFunc(fit, func(g nodeGroup) bool { return g.partition != d.site.Partition })
	if len(fit) == 0 {
		return
	}
	if kinds := distinct(fit, func(g nodeGroup) []string { return g.gpuTypes }); len(kinds) > 1 && len(fit[0].gpuTypes) > 0 {
		d.site.GRESType = d.choose("gres_type", fit[0].gpuTypes[0], kinds, "the partition has several kinds of GPU, so requests name one", "该分区有多种 GPU，申请时需指明类型")
		if of := slices.DeleteFunc(slices.Clone(fit), func(g nodeGroup) bool { return !slices.Contains(g.gpuTypes, d.site.GRESType) }); len(of) > 0 {
			fit = of
		}
	}
	counts := distinct(fit, func(g nodeGroup) []string { return []string{strconv.Itoa(g.gpus)} })
	count := d.choose("gpus_per_node", counts[0], counts, "sinfo's GRES of its nodes", "sinfo 显示的节点 GRES")
	g := fit[max(0, slices.IndexFunc(fit, func(g nodeGroup) bool { return strconv.Itoa(g.gpus) == count }))]
	d.site.GPUsPerNode, d.site.CPUsPerTask, d.site.CPUsPerNode, d.site.ThreadsPerCore = g.gpus, g.cpus, g.cpus, g.threads
	d.add("cpus_per_task", strconv.Itoa(g.cpus), "all CPUs of a node, for its one task", "节点的全部 CPU，供唯一的任务使用")
	d.add("cpus_per_node", strconv.Itoa(g.cpus), "sinfo; what a job asks for is held against it before it is submitted", "来自 sinfo；提交前据此核对作业申请的 CPU 数")
	d.add("threads_per_core", strconv.Itoa(g.threads), "sinfo; with 2, hint: nomultithread leaves one thread for each core", "来自 sinfo；为 2 时，hint: nomultithread 让每个核心只用一个线程")
	d.gpu(g, fit)
}

// distinct returns the words of all groups in order, without duplicates.
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

// gpuWord returns the GPU model of a group, and the GRES type or else the node
// feature that names it.
func (g nodeGroup) gpuWord() (model, word string, ok bool) {
	for _, word := range append(slices.Clone(g.gpuTypes), strings.Split(g.features, ",")...) {
		if gpu, ok := megatron.LookupGPU(word); ok {
			return gpu.Name, word, true
		}
	}
	return "", "", false
}

// gpu sets the GPU model. If the nodes of the partition have several models, a
// person chooses one; without a choice, each job has to name its own.
func (d *detection) gpu(g nodeGroup, all []nodeGroup) {
	kinds := distinct(all, func(g nodeGroup) []string {
		if model, _, ok := g.gpuWord(); ok {
			return []string{model}
		}
		return nil
	})
	if len(kinds) > 1 {
		list := strings.Join(kinds, ", ")
		d.site.GPU = d.choose("gpu", "", kinds, "the partition has nodes with "+list+": name the one that jobs ask for by constraint, or leave it to each job",
			"该分区的节点分别有 "+list+"：请填作业用 constraint 申请的那一种，或留给各作业自己填写")
		return
	}
	if model, word, ok := g.gpuWord(); ok {
		d.site.GPU = d.choose("gpu", model, nil, fmt.Sprintf("the nodes say %q", word), fmt.Sprintf("节点标明 %q", word))
		return
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

// request chooses the form in which jobs request GPUs: --gpus-per-node needs the
// select plugin cons_tres.
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

// runtime chooses the container runtime. The container option of srun wins, because
// the site has installed it on purpose, whereas a program may be present by chance.
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

// runtimes are the container runtimes that a profile may name.
var runtimes = []string{job.Pyxis, job.Enroot, job.Apptainer, job.Singularity, job.Docker}

// networked are findmnt's names of network file systems, which every node can mount.
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
	// The login node does not show which of its mounts the compute nodes have too.
	if value := d.choose("shared", strings.Join(all, ","), all, en, zh); value != "" {
		d.site.Shared = strings.Split(value, ",")
	}
}

// Refuses returns why a person's answer is not acceptable, or an empty text if it is.
func (f Finding) Refuses(answer string) lang.Text {
	switch {
	case f.Field == "shared":
		for dir := range strings.SplitSeq(answer, ",") {
			if !job.IsAbsolute(dir) {
				return lang.Text{EN: "%q is not an absolute path", ZH: "%q 不是绝对路径"}.With(dir)
			}
		}
	case f.Field == "gpu":
		if _, ok := megatron.LookupGPU(answer); !ok {
			return lang.Text{EN: "%q is not a known GPU: give one such as a100, h100, b200, gb200", ZH: "未知的 GPU %q：请填例如 a100、h100、b200、gb200"}.With(answer)
		}
	case !slices.Contains(f.Choices, answer):
		return lang.Text{EN: "%q is not one of %s", ZH: "%q 不在可选项中：%s"}.With(answer, strings.Join(f.Choices, ", "))
	}
	return lang.Text{}
}
