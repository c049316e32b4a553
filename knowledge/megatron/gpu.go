package megatron

import (
	"strings"
)

// A GPU is a kind of accelerator and the numbers that planning needs.
type GPU struct {
	Name string
	// Arch is the CUDA compute capability's major number.
	Arch int
	// MemoryGiB is the memory of one GPU.
	MemoryGiB float64
	// TFLOPS is the dense bf16 peak (fp16 before Ampere), in 10^12 operations a second.
	TFLOPS float64
	// NVLinkGBs is the NVLink bandwidth of one GPU in both directions, in GB a
	// second; 0 without NVLink.
	NVLinkGBs float64
	// Source is where the numbers are from.
	Source string
}

var gpus = []GPU{
	{"v100", 7, 32, 125, 300, "NVIDIA V100 data sheet (SXM2 32 GB; fp16)"},
	{"t4", 7, 16, 65, 0, "NVIDIA T4 data sheet (fp16)"},
	{"a100", 8, 80, 312, 600, "NVIDIA A100 data sheet (SXM 80 GB)"},
	{"a100-40g", 8, 40, 312, 600, "NVIDIA A100 data sheet (SXM 40 GB)"},
	{"a10", 8, 24, 125, 0, "NVIDIA A10 data sheet"},
	{"a40", 8, 48, 150, 112, "NVIDIA A40 data sheet"},
	{"l4", 8, 24, 121, 0, "NVIDIA L4 data sheet (dense)"},
	{"l40", 8, 48, 181, 0, "NVIDIA L40 data sheet"},
	{"l40s", 8, 48, 362, 0, "NVIDIA L40S data sheet (dense)"},
	{"rtx4090", 8, 24, 165, 0, "NVIDIA Ada architecture whitepaper (fp32 accumulation)"},
	{"h100", 9, 80, 989, 900, "NVIDIA H100 data sheet (SXM, dense)"},
	{"h100-nvl", 9, 94, 835, 600, "NVIDIA H100 NVL data sheet (dense)"},
	{"h800", 9, 80, 989, 400, "DeepSeek-V3 technical report, arXiv:2412.19437"},
	{"h20", 9, 96, 148, 900, "vendors' H20 data sheets"},
	{"h200", 9, 141, 989, 900, "NVIDIA H200 data sheet (SXM, dense)"},
	{"gh200", 9, 96, 989, 900, "NVIDIA GH200 data sheet (96 GB)"},
	{"b200", 10, 180, 2250, 1800, "NVIDIA HGX B200 data sheet (dense)"},
	{"gb200", 10, 186, 2500, 1800, "NVIDIA GB200 NVL72 data sheet (dense)"},
	{"b300", 10, 279, 2250, 1800, "NVIDIA HGX B300 data sheet (dense)"},
	{"gb300", 10, 279, 2500, 1800, "NVIDIA GB300 NVL72 data sheet (dense)"},
	{"rtxpro6000", 12, 96, 504, 0, "NVIDIA RTX PRO 6000 Blackwell data sheet (dense)"},
}

// gpuSpelling drops makers' words and writes one separator.
var gpuSpelling = strings.NewReplacer("nvidia", "", "tesla", "", "geforce", "", "rtx ", "rtx", "rtx-", "rtx", "rtx pro ", "rtxpro", "rtx-pro-", "rtxpro", " ", "-", "_", "-")

// LookupGPU returns the kind that a word such as "h100", "H100-SXM5-80GB",
// "nvidia_a100" or "NVIDIA GB200" names: the longest name that is part of it.
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

// GPUArch returns the compute capability's major number of a kind of GPU.
func GPUArch(gpu string) (arch int, ok bool) {
	g, ok := LookupGPU(gpu)
	return g.Arch, ok
}
