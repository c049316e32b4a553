package job

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
)

// A Probe is one command whose output tells of a site; Detect reads it.
type Probe struct {
	Name string
	Argv []string
}

// Probes are the commands to run on a login node, as their user. One that fails
// or is missing only leaves something out.
func Probes(user string) []Probe {
	return []Probe{
		{"nodes", []string{"sinfo", "--noheader", "--format=%R|%a|%D|%G|%c|%Z|%l|%f"}},
		{"partitions", []string{"scontrol", "show", "partition", "--oneliner"}},
		{"config", []string{"scontrol", "show", "config"}},
		{"account", []string{"sacctmgr", "--noheader", "--parsable2", "show", "user", user, "format=defaultaccount"}},
		{"accounts", []string{"sacctmgr", "--noheader", "--parsable2", "show", "associations", "user=" + user, "format=account"}},
		{"srun", []string{"srun", "--help"}},
		{"mounts", []string{"findmnt", "--noheadings", "--list", "--output=TARGET,FSTYPE"}},
		{"programs", []string{"which", "apptainer", "singularity", "enroot", "docker"}},
	}
}

// A Found is one thing that Detect concluded, and from what.
type Found struct {
	Field string
	Value string
	Why   lang.Text
}

// Detect turns what the probes printed, by their names, into a profile. It
// says for each field how it got there; what no output tells stays empty.
func Detect(output map[string]string) (Site, []Found) {
	d := detection{}
	groups := readNodes(output["nodes"])
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
	timeLimit     string
}

var gresForm = lazy.New(`\bgpu:(?:([A-Za-z][A-Za-z0-9_.-]*):)?([0-9]+)`)

func readNodes(text string) []nodeGroup {
	var groups []nodeGroup
	for line := range strings.Lines(text) {
		f := strings.Split(strings.TrimSpace(line), "|")
		if len(f) < 8 {
			continue
		}
		g := nodeGroup{partition: f[0], up: f[1] == "up", timeLimit: f[6], features: f[7]}
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
	site  Site
	found []Found
}

func (d *detection) say(field, value string, en, zh string) {
	d.found = append(d.found, Found{field, value, lang.Text{EN: en, ZH: zh}})
}

// partitions chooses where jobs with and without GPUs go: the default
// partition where it fits, else the one with the most nodes.
func (d *detection) partitions(groups []nodeGroup, first string) {
	size := map[string]int{}
	for _, g := range groups {
		size[g.partition] += g.nodes
	}
	pick := func(withGPUs bool) (nodeGroup, bool) {
		fit := slices.DeleteFunc(slices.Clone(groups), func(g nodeGroup) bool { return !g.up || (g.gpus > 0) != withGPUs })
		if len(fit) == 0 {
			return nodeGroup{}, false
		}
		best := slices.MaxFunc(fit, func(a, b nodeGroup) int {
			if c := cmp.Compare(b2i(a.partition == first), b2i(b.partition == first)); c != 0 {
				return c
			}
			return cmp.Or(cmp.Compare(size[a.partition], size[b.partition]), cmp.Compare(a.nodes, b.nodes), cmp.Compare(b.partition, a.partition))
		})
		return best, true
	}
	if g, ok := pick(false); ok {
		d.site.CPUPartition = g.partition
		d.say("cpu_partition", g.partition, "the nodes of this partition have no GPU", "该分区的节点没有 GPU")
	}
	g, ok := pick(true)
	if !ok {
		return
	}
	d.site.Partition = g.partition
	if g.partition == first {
		d.say("partition", g.partition, "Slurm's default partition, and it has GPUs", "Slurm 的默认分区，且有 GPU")
	} else {
		d.say("partition", g.partition, fmt.Sprintf("the largest partition with GPUs: %d nodes", size[g.partition]), fmt.Sprintf("有 GPU 的最大分区：%d 个节点", size[g.partition]))
	}
	d.site.GPUsPerNode, d.site.CPUsPerTask, d.site.CPUsPerNode, d.site.ThreadsPerCore = g.gpus, g.cpus, g.cpus, g.threads
	d.say("gpus_per_node", strconv.Itoa(g.gpus), "sinfo's GRES of its nodes", "sinfo 显示的节点 GRES")
	d.say("cpus_per_task", strconv.Itoa(g.cpus), "all CPUs of a node, for its one task", "节点的全部 CPU，供唯一的任务使用")
	d.say("cpus_per_node", strconv.Itoa(g.cpus), "sinfo; what a job asks for is held against it before it is submitted", "来自 sinfo；提交前据此核对作业申请的 CPU 数")
	d.say("threads_per_core", strconv.Itoa(g.threads), "sinfo; with 2, hint: nomultithread leaves one thread for each core", "来自 sinfo；为 2 时，hint: nomultithread 让每个核心只用一个线程")
	d.kind(g, groups)
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

// kind names the GPU by the GRES type, else by a feature of the nodes.
func (d *detection) kind(g nodeGroup, groups []nodeGroup) {
	for _, word := range append(slices.Clone(g.kinds), strings.Split(g.features, ",")...) {
		if gpu, ok := megatron.LookupGPU(word); ok {
			d.site.GPU = gpu.Name
			d.say("gpu", gpu.Name, fmt.Sprintf("the nodes say %q", word), fmt.Sprintf("节点标明 %q", word))
			break
		}
	}
	kinds := map[string]bool{}
	for _, other := range groups {
		if other.partition == g.partition {
			for _, k := range other.kinds {
				kinds[k] = true
			}
		}
	}
	if len(kinds) > 1 && len(g.kinds) > 0 {
		d.site.GRESType = g.kinds[0]
		d.say("gres_type", g.kinds[0], "the partition has several kinds of GPU, so requests name one", "该分区有多种 GPU，申请时需指明类型")
	}
}

func (d *detection) accounts(byDefault, all string) {
	list := slices.DeleteFunc(strings.Fields(all), func(a string) bool { return wordGrammar.check(a) != "" })
	slices.Sort(list)
	list = slices.Compact(list)
	first := strings.TrimSpace(byDefault)
	switch {
	case first != "" && wordGrammar.check(first) == "":
		d.site.Account = first
		d.say("account", first, "your default account", "你的默认账户")
	case len(list) > 0:
		d.site.Account = list[0]
		d.say("account", list[0], "one of your accounts: "+strings.Join(list, ", "), "你的账户之一："+strings.Join(list, ", "))
	}
}

// request is how this Slurm counts GPUs: --gpus-per-node needs cons_tres.
func (d *detection) request(config string) {
	m := regexp.MustCompile(`(?m)^SelectType\s*=\s*(\S+)`).FindStringSubmatch(config)
	if m == nil {
		return
	}
	d.site.GPURequest = "gpus-per-node"
	if m[1] != "select/cons_tres" {
		d.site.GPURequest = "gres"
	}
	d.say("gpu_request", d.site.GPURequest, "SelectType is "+m[1], "SelectType 为 "+m[1])
}

func (d *detection) runtime(srunHelp, programs string) {
	use := func(name, en, zh string) {
		d.site.Container.Runtime = name
		d.say("container.runtime", name, en, zh)
	}
	if strings.Contains(srunHelp, "--container-image") {
		use(Pyxis, "srun takes --container-image", "srun 支持 --container-image")
		return
	}
	for _, name := range []string{Apptainer, Singularity, Enroot, Docker} {
		for line := range strings.Lines(programs) {
			if strings.HasSuffix(strings.TrimSpace(line), "/"+name) {
				use(name, strings.TrimSpace(line)+" is on this machine", "本机有 "+strings.TrimSpace(line))
				return
			}
		}
	}
}

// networked are the file systems that every node can see.
var networked = strings.Fields("nfs nfs4 lustre gpfs beegfs ceph fuse.ceph wekafs panfs pvfs2 cifs smb3 glusterfs fuse.glusterfs vastfs quobyte afs")

func (d *detection) shared(mounts string) {
	for line := range strings.Lines(mounts) {
		f := strings.Fields(line)
		if len(f) == 2 && slices.Contains(networked, f[1]) && checkAbsolute(f[0]) == "" && !slices.Contains(d.site.Shared, f[0]) {
			d.site.Shared = append(d.site.Shared, f[0])
		}
	}
	if len(d.site.Shared) > 0 {
		d.say("shared", strings.Join(d.site.Shared, ","), "mounted over the network", "通过网络挂载")
	}
}
