package megatron

import "slices"

func (c *Config) adamsMoments() float64 {
	return dtypeBytes(c.ExpAvgDtype) + dtypeBytes(c.ExpAvgSqDtype)
}

// oneMoment names the optimizers that keep one number for each weight of a matrix.
var oneMoment = []string{"sgd", "lion", "muon"}

// bytesPerParam returns the bytes of a weight, of its gradient and of its
// optimizer state. The state is the fp32 copy of a shorter weight, and the two moments
// of Adam or the one of SGD, Lion and Muon.
func (c *Config) bytesPerParam() (param, grad, state float64) {
	state = c.adamsMoments()
	if slices.Contains(oneMoment, c.Optimizer) {
		state = 4
	}
	param, grad = 4, 4
	if !c.FP32() {
		param = c.weightBytes()
		if !c.AccumulateAllreduceGradsInFp32 || c.MainGradsDtype == "bf16" {
			grad = 2
		}
		state += dtypeBytes(c.MainParamsDtype)
	}
	if c.OptimizerCpuOffload {
		state *= 1 - c.OptimizerOffloadFraction
	}
	return param, grad, state
}

// FP32 reports whether weights and activations are kept in fp32: neither --bf16 nor
// --fp16 is given.
func (c *Config) FP32() bool { return c.ParamsDtype == "torch.float32" }

// weightBytes returns the bytes of a weight that is not trained in fp32. Where
// matrix products run in 8 or 4 bits, Megatron keeps a copy of the bf16 weight in
// that type from one microbatch to the next. Weights that are themselves stored in
// 8 bits have a transposed copy instead; on Blackwell, recipes with one scale per
// tensor need none.
func (c *Config) weightBytes() float64 {
	switch {
	case c.Fp8ParamGather && c.Fp8.OK && c.Arch >= 10 && c.Fp8Recipe != "mxfp8" && c.Fp8Recipe != "blockwise":
		return 1
	case c.Fp8.OK && !c.Fp8ParamGather:
		return 3
	case c.Fp4.OK && !c.Fp4ParamGather:
		return 2.5
	}
	return 2
}

func dtypeBytes(name string) float64 {
	switch name {
	case "bf16", "fp16":
		return 2
	case "fp8":
		return 1
	}
	return 4
}
