package job

import (
	"cmp"
	"slices"
)

// A Site is a cluster's profile: values for fields that a specification leaves out,
// and facts about the nodes.
type Site struct {
	Account      string `json:"account,omitempty"`
	Partition    string `json:"partition,omitempty"`
	CPUPartition string `json:"cpu_partition,omitempty"` // for jobs without GPUs
	GPUsPerNode  int    `json:"gpus_per_node,omitempty"`
	GPU          string `json:"gpu,omitempty"`
	GPURequest   string `json:"gpu_request,omitempty"`
	GRESType     string `json:"gres_type,omitempty"` // GPU type in requests, such as h100 in gpu:h100:8
	CPUsPerTask  int    `json:"cpus_per_task,omitempty"`
	CPUsPerNode  int    `json:"cpus_per_node,omitempty"` // hardware threads, which Slurm counts as CPUs
	// ThreadsPerCore is the number of threads per core; 2 if hyper-threading is on.
	ThreadsPerCore int       `json:"threads_per_core,omitempty"`
	Time           string    `json:"time,omitempty"`
	Container      Container `json:"container,omitzero"`
	Shared         []string  `json:"shared,omitempty"` // file systems that every node sees
	// Path are folders of programs that scripts put in front of the PATH, for example
	// if Slurm or uv is installed in a folder of its own.
	Path []string `json:"path,omitempty"`
	// SecretsFile is a file of NAME=value lines with mode 600 that scripts read.
	SecretsFile string `json:"secrets_file,omitempty"`
	// Presets are the site's own presets: sets of variables, by name of the preset.
	Presets map[string]map[string]string `json:"presets,omitempty"`
	// Megatron is the release to assume for a job if its specification, worktree and
	// image do not tell the release.
	Megatron string `json:"megatron,omitempty"`
	// ExtraFlags are the flags of the site's fork of Megatron-LM.
	ExtraFlags []string `json:"extra_flags,omitempty"`
	// NVLinkDomain is the number of GPUs in one NVLink domain, for GPU models that are
	// sold with domains of several sizes.
	NVLinkDomain int `json:"nvlink_domain,omitempty"`
	// Driver is the version of NVIDIA's driver on the nodes, such as 580.65.06.
	Driver string `json:"driver,omitempty"`
}

// Validate checks the site's values by the grammars of the fields that they fill, and
// returns all faults.
func (site Site) Validate() []*FieldError {
	v := validator{}
	for _, r := range fieldChecks(Spec{
		Account: site.Account, Partition: site.Partition, GPU: site.GPU, GPURequest: site.GPURequest, Time: site.Time,
		Container: site.Container, Megatron: site.Megatron, ExtraFlags: site.ExtraFlags,
	}) {
		v.field(r)
	}
	v.field(fieldCheck{"cpu_partition", site.CPUPartition, wordsGrammar})
	for field, n := range map[string]int{
		"gpus_per_node": site.GPUsPerNode, "cpus_per_task": site.CPUsPerTask, "cpus_per_node": site.CPUsPerNode,
		"threads_per_core": site.ThreadsPerCore, "nvlink_domain": site.NVLinkDomain,
	} {
		v.number(field, &n, 0, 65_536)
	}
	slices.SortStableFunc(v.errs, func(a, b *FieldError) int { return cmp.Compare(a.Field, b.Field) })
	return v.errs
}

// Fill returns s with the site's values in the fields that s leaves out. It also sets
// the array of a sweep.
func (site Site) Fill(s Spec) Spec {
	known := func(n int) *int { // 0 is an unknown number
		if n == 0 {
			return nil
		}
		return &n
	}
	s.Account = cmp.Or(s.Account, site.Account)
	if s.GPUsPerNode != nil && *s.GPUsPerNode == 0 {
		s.Partition = cmp.Or(s.Partition, site.CPUPartition)
	}
	s.Partition = cmp.Or(s.Partition, site.Partition)
	s.GPUsPerNode = cmp.Or(s.GPUsPerNode, known(site.GPUsPerNode))
	s.GPU = cmp.Or(s.GPU, site.GPU)
	s.GPURequest = cmp.Or(s.GPURequest, site.GPURequest)
	if s.GPUsPerNode == nil || *s.GPUsPerNode > 0 {
		s.CPUsPerTask = cmp.Or(s.CPUsPerTask, known(site.CPUsPerTask))
	}
	s.Time = cmp.Or(s.Time, site.Time)
	if points := s.Points(); len(points) > 0 {
		s.Array = cmp.Or(s.Array, arrayOf(len(points)))
	}
	for _, f := range site.ExtraFlags {
		if !slices.Contains(s.ExtraFlags, f) {
			s.ExtraFlags = append(slices.Clip(s.ExtraFlags), f)
		}
	}
	if s.Container.Runtime == "" && s.Container.Image != "" {
		s.Container.Runtime = site.Container.Runtime
	}
	return s
}
