package megatron

import (
	"cmp"
	"slices"
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/near"
)

// A GPU is a kind of accelerator with the numbers that planning needs.
type GPU struct {
	Name string
	// Arch is the CUDA compute capability's major number.
	Arch int
	// MemoryGiB is the memory of one GPU that PyTorch can use. It is less than on
	// the data sheet, because error correction and the driver take their shares.
	MemoryGiB float64
	// TFLOPS is the dense bf16 peak (fp16 before Ampere), in 10^12 operations a
	// second. FP8 and FP4 are the peaks of those types; 0 without support.
	TFLOPS, FP8, FP4 float64
	// HBMGBs is the memory bandwidth, in GB a second.
	HBMGBs float64
	// NVLinkGBs is the NVLink bandwidth of one GPU in both directions, in GB a
	// second; 0 without NVLink.
	NVLinkGBs float64
	// Domain is the number of GPUs in an NVLink domain that spans nodes; 0 where
	// NVLink ends at the node.
	Domain int
	// Source is the document with the numbers.
	Source string
}

var gpus = []GPU{
	{"v100", 7, 31.7, 125, 0, 0, 900, 300, 0, "NVIDIA V100 data sheet (SXM2 32 GB; fp16)"},
	{"t4", 7, 14.6, 65, 0, 0, 320, 0, 0, "NVIDIA T4 data sheet (fp16)"},
	{"a100", 8, 79.2, 312, 0, 0, 2039, 600, 0, "NVIDIA A100 data sheet (SXM 80 GB)"},
	{"a800", 8, 79.2, 312, 0, 0, 2039, 400, 0, "vendors' A800 data sheets (SXM 80 GB: an A100 with less NVLink)"},
	{"a100-40g", 8, 39.4, 312, 0, 0, 1555, 600, 0, "NVIDIA A100 data sheet (SXM 40 GB)"},
	{"a10", 8, 22.1, 125, 0, 0, 600, 0, 0, "NVIDIA A10 data sheet"},
	{"a40", 8, 44.4, 150, 0, 0, 696, 112, 0, "NVIDIA A40 data sheet"},
	{"l4", 8, 22.0, 121, 242, 0, 300, 0, 0, "NVIDIA L4 data sheet (dense)"},
	{"l40", 8, 44.4, 181, 362, 0, 864, 0, 0, "NVIDIA L40 data sheet"},
	{"l40s", 8, 44.4, 362, 733, 0, 864, 0, 0, "NVIDIA L40S data sheet (dense)"},
	{"rtx4090", 8, 23.6, 165, 330, 0, 1008, 0, 0, "NVIDIA Ada architecture whitepaper (fp32 accumulation)"},
	{"h100", 9, 79.1, 989, 1979, 0, 3350, 900, 0, "NVIDIA H100 data sheet (SXM, dense)"},
	{"h100-nvl", 9, 93.1, 835, 1671, 0, 3900, 600, 0, "NVIDIA H100 NVL data sheet (dense)"},
	{"h800", 9, 79.1, 989, 1979, 0, 3350, 400, 0, "DeepSeek-V3 technical report, arXiv:2412.19437"},
	{"h20", 9, 95.1, 148, 296, 0, 4000, 900, 0, "vendors' H20 data sheets"},
	{"h200", 9, 139.8, 989, 1979, 0, 4800, 900, 0, "NVIDIA H200 data sheet (SXM, dense)"},
	{"gh200", 9, 94.5, 989, 1979, 0, 4000, 900, 0, "NVIDIA GH200 data sheet (96 GB)"},
	{"b200", 10, 178.4, 2250, 4500, 9000, 8000, 1800, 0, "NVIDIA HGX B200 data sheet (dense)"},
	{"gb200", 10, 184.3, 2500, 5000, 10000, 8000, 1800, 72, "NVIDIA GB200 NVL72 data sheet (dense)"},
	{"b300", 10, 267.7, 2250, 4500, 13500, 8000, 1800, 0, "NVIDIA HGX B300 data sheet (dense)"},
	{"gb300", 10, 276.6, 2500, 5000, 15000, 8000, 1800, 72, "NVIDIA GB300 NVL72 data sheet (dense)"},
	{"rtxpro6000", 12, 94.9, 504, 1007, 2015, 1792, 0, 0, "NVIDIA RTX PRO 6000 Blackwell data sheet (dense)"},
}

// gpuSpelling removes vendor and brand names and unifies the separators.
var gpuSpelling = strings.NewReplacer("nvidia", "", "tesla", "", "geforce", "", "rtx ", "rtx", "rtx-", "rtx", "rtx pro ", "rtxpro", "rtx-pro-",
	"rtxpro", " ", "-", "_", "-")

// LookupGPU returns the GPU that a word such as "h100", "H100-SXM5-80GB",
// "nvidia_a100" or "NVIDIA GB200" names: the GPU with the longest name in the word.
func LookupGPU(word string) (GPU, bool) {
	w := gpuSpelling.Replace(strings.ToLower(word))
	best := GPU{}
	for _, g := range gpus {
		i := strings.Index(w, g.Name)
		if i < 0 || len(g.Name) <= len(best.Name) {
			continue
		}
		// l4 is not part of l40, nor a10 of a100.
		end := i + len(g.Name)
		if end < len(w) && w[end] >= '0' && w[end] <= '9' {
			continue
		}
		if i > 0 && w[i-1] >= 'a' && w[i-1] <= 'z' {
			continue
		}
		best = g
	}
	if best.Name == "a100" && strings.Contains(w, "40g") {
		return LookupGPU("a100-40g")
	}
	return best, best.Name != ""
}

// GPUs returns all known GPUs, least memory first.
func GPUs() []GPU {
	return slices.SortedStableFunc(slices.Values(gpus), func(a, b GPU) int { return cmp.Compare(a.MemoryGiB, b.MemoryGiB) })
}

// NearestGPUs returns the names most similar to an unknown word. They differ from
// it by at most one letter, or by two where the word has more than five.
func NearestGPUs(word string) []string {
	w := gpuSpelling.Replace(strings.ToLower(word))
	closest := 1
	if len(w) > 5 {
		closest = 2
	}
	var names []string
	for _, g := range gpus {
		switch d := near.Distance(w, g.Name); {
		case d < closest:
			closest, names = d, []string{g.Name}
		case d == closest:
			names = append(names, g.Name)
		}
	}
	return names
}

// GPUArch returns the major number of a GPU's compute capability.
func GPUArch(gpu string) (arch int, ok bool) {
	g, ok := LookupGPU(gpu)
	return g.Arch, ok
}
