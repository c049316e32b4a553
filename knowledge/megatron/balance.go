package megatron

// Operations counts the floating-point operations that training spends on one
// token: six for each weight that the token uses, and those along the sequence.
type Operations struct {
	// Linear counts the products with weights outside the experts and the output
	// layer, Experts the products with the routed experts' weights.
	Linear, Experts float64
	// Output counts the output layer, once more for each depth of multi-token
	// prediction.
	Output float64
	// Sequence counts attention and Mamba's scans.
	Sequence float64
	// Miscounted is an error of Megatron's log, which assumes that every Mamba mixer
	// is twice as wide as the hidden size. The GPU does not compute these
	// operations. Miscounted is negative where the log counts too few.
	Miscounted float64
}

// Total returns the operations of a token as Megatron's log counts them.
func (o Operations) Total() float64 {
	return o.Linear + o.Experts + o.Output + o.Sequence + o.Miscounted
}

// Operations counts the model's operations for one token like
// megatron/training/training.py:num_floating_point_operations. Causal attention
// counts half.
func (s Shape) Operations() Operations {
	_, active := s.Params()
	output := float64(s.Hidden) * float64(s.Vocab)
	embeddings := output
	if s.Untied {
		embeddings *= 2
	}
	parts := s.AllParts()
	experts := 0.0
	if s.Experts > 0 {
		experts = parts.MoE * s.moePart().experts * float64(s.TopK) / float64(s.Experts)
	}
	narrower := 0.0 // how much narrower a mixer is than the log assumes
	if parts.Mamba > 0 {
		narrower = float64(2*s.Hidden - s.Mamba.Inner)
	}
	return Operations{
		Miscounted: parts.Mamba * narrower * float64(18*s.Hidden+21*s.Mamba.State),

		Linear:   6 * (active - embeddings - experts),
		Experts:  6 * experts,
		Output:   6 * output * float64(1+s.MTP),
		Sequence: 12*parts.Attention*float64(s.CoreDim)*s.Context + 21*parts.Mamba*float64(s.Mamba.Inner)*float64(s.Mamba.State),
	}
}

// Imbalance returns the time of the slowest pipeline stage divided by the mean
// time of a stage. The last stage computes the output layer in addition to its
// decoder layers; output is the layer's cost, in decoder layers.
func (c *Config) Imbalance(s *Shape, output float64) float64 {
	if c.PP <= 1 || s.Layers == 0 {
		return 1
	}
	most := 0.0
	for _, stage := range [...]int{0, min(1, c.PP-1), c.PP - 1} {
		load := float64(c.stageLayers(stage))
		if stage == c.PP-1 {
			load += output + float64(s.MTP)
		}
		most = max(most, load)
	}
	return max(most*float64(c.PP)/(float64(s.Layers+s.MTP)+output), 1)
}
