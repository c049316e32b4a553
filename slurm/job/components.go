package job

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/tree"
)

// componentFields are the fields that each component of a heterogeneous job can set
// for itself.
var componentFields = strings.Fields("nodes gpus_per_node partition account qos reservation constraint gpu cpus_per_task mem mem_per_gpu exclusive hint segment switches nodelist exclude")

// Parts returns one specification per component of a heterogeneous job: the job's
// fields, overridden by those of the component. For any other job it returns the job
// alone. A word that Validate rejects because it cannot be decoded has no effect.
func (s Spec) Parts() []Spec {
	if len(s.Components) == 0 {
		return []Spec{s}
	}
	parts := make([]Spec, len(s.Components))
	for i := range s.Components {
		parts[i], _ = s.part(i)
	}
	return parts
}

// part returns component i, counted from 0, and the faults in its fields.
func (s Spec) part(i int) (Spec, FieldErrors) {
	own := s.Components[i]
	at := fmt.Sprintf("components.%d", i+1)
	one := s
	one.Components, one.Nodes = nil, nil
	n := tree.Node{Kind: tree.Map}
	var d decoder
	for word := range strings.FieldsSeq(own) {
		key, value, given := strings.Cut(word, "=")
		key = strings.ReplaceAll(key, "-", "_")
		if !given || value == "" || !slices.Contains(componentFields, key) {
			d.errs = append(d.errs, &FieldError{
				Field: at, Value: word, Msg: phrase("is not a field that a component can set", "不是组成部分可以单独设置的内容"),
				Fix: phrase("name=value, with one of %s", "写成 name=value，字段为 %s 之一", strings.Join(componentFields, ", ")),
			})
			continue
		}
		v := tree.Node{Kind: tree.Text, Text: value}
		if _, err := strconv.Atoi(value); err == nil {
			v.Kind = tree.Int
		}
		n.Keys, n.List = append(n.Keys, key), append(n.List, v)
	}
	d.read(at, n, &one, false)
	if one.Nodes == nil {
		one.Nodes = new(1)
	}
	return one, d.errs
}

// components validates each component, and that together they form one job.
func (v *validator) components(s Spec) {
	if len(s.Components) == 0 {
		return
	}
	if len(s.Components) == 1 {
		v.add("components", "", phrase("has only one component, so the job is not heterogeneous", "只有一个组成部分，不是异构作业"), phrase("give two or more, or leave it out", "请给出两个或更多，或去掉它"))
	}
	total := 0
	var gpus *int
	for i := range s.Components {
		at := fmt.Sprintf("components.%d", i+1)
		part, errs := s.part(i)
		v.errs = append(v.errs, errs...)
		total += *part.Nodes
		own := validator{}
		for _, r := range fieldChecks(part) {
			if slices.Contains(componentFields, r.field) {
				own.field(r)
			}
		}
		own.sizes(part)
		for _, e := range own.errs {
			if !slices.ContainsFunc(
				v.errs,
				func(have *FieldError) bool { return have.Field == e.Field && have.Value == e.Value },
			) { // report a fault that the component inherits from the job only once
				e.Field = at + "." + e.Field
				v.errs = append(v.errs, e)
			}
		}
		if part.Mem != "" && part.MemPerGPU != "" && (s.Mem == "" || s.MemPerGPU == "") {
			v.add(at+".mem_per_gpu", "", notTogether("mem"), phrase("keep one of them", "只保留其中一个"))
		}
		if i == 0 {
			gpus = part.GPUsPerNode
		}
		if n := part.GPUsPerNode; (n == nil) != (gpus == nil) || n != nil && *n != *gpus {
			v.add(at+".gpus_per_node", "", phrase("differs from the other components'", "与其他部分不同"), phrase("give all components the same number: every node starts the same number of ranks", "所有部分相同：每个节点启动同样多的 rank"))
		}
	}
	if s.Nodes != nil && *s.Nodes != total {
		v.add("nodes", strconv.Itoa(*s.Nodes), phrase("differs from the total of the components: %d", "与各组成部分的合计 %d 不同", total), phrase("leave it out, or give the total", "请去掉，或写合计数"))
	}
	for _, f := range []struct {
		field string
		set   bool
		fix   lang.Text
	}{
		{"array", s.Array != "" || len(s.Sweep) > 0, phrase("leave it out: Slurm has no array of heterogeneous jobs", "请去掉：Slurm 不支持异构作业的数组")},
		{"nodelist", s.Nodelist != "", phrase("give it in a component", "请写在某个组成部分中")},
	} {
		if f.set {
			v.add(f.field, "", notTogether("components"), f.fix)
		}
	}
}

// componentNumbers returns the numbers of the components, as srun's --het-group and Slurm's
// variables count them.
func (r *rendering) componentNumbers() []string {
	numbers := make([]string, len(r.Components))
	for i := range numbers {
		numbers[i] = strconv.Itoa(i)
	}
	return numbers
}

// everyNode returns srun's options for one task on every node of the job.
func (r *rendering) everyNode() string {
	if len(r.Components) > 0 {
		return "--het-group=" + strings.Join(r.componentNumbers(), ",") + " --ntasks-per-node=1"
	}
	return `--ntasks="$NNODES" --ntasks-per-node=1`
}

// groupVariables returns references to one Slurm variable of every component, joined
// by sep.
func (r *rendering) groupVariables(variable, sep string) string {
	words := r.componentNumbers()
	for i, n := range words {
		words[i] = "$" + variable + "_HET_GROUP_" + n
	}
	return strings.Join(words, sep)
}

// nodesOfAll returns the shell expression for the number of nodes of the job.
func (r *rendering) nodesOfAll() string {
	if len(r.Components) > 0 {
		return "$((" + strings.ReplaceAll(r.groupVariables("SLURM_JOB_NUM_NODES", " + "), "$", "") + "))"
	}
	return "$SLURM_NNODES"
}

// nodelistOfAll returns the shell expression for the hostlist of the job.
func (r *rendering) nodelistOfAll() string {
	if len(r.Components) > 0 {
		return r.groupVariables("SLURM_JOB_NODELIST", ",")
	}
	return "$SLURM_JOB_NODELIST"
}

// unsetFirstComponent unsets the variables that describe only the first component in
// the batch shell of a heterogeneous job. With these variables, srun would start no
// more tasks than the first component has, and from Slurm 25.11 on it refuses CPUs
// that are "set by two different environment variables".
func (r *rendering) unsetFirstComponent() string {
	if len(r.Components) == 0 {
		return ""
	}
	return "# srun takes what each component has from the variables of that component.\nunset SLURM_NTASKS SLURM_NPROCS SLURM_TRES_PER_TASK SLURM_CPUS_PER_TASK\n"
}
