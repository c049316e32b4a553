package megatron

// Operations is what one token costs: six operations for each weight that it
// meets, and what runs along the sequence.
type Operations struct {
	// Linear are the products with weights outside the experts and the output
	// layer, Experts those of the routed experts.
	Linear, Experts float64
	// Output is the output layer, once more for each depth of multi-token
	// prediction.
	Output float64
	// Sequence is attention and the scans of Mamba.
	Sequence float64
	// Miscounted is what Megatron's log counts of Mamba beside, less where below 0:
	// it takes all mixers to be twice as wide as the hidden size. Nothing computes it.
	Miscounted float64
}

// Total is all operations of a token, as Megatron's log counts them.
func (o Operations) Total() float64 {
	return o.Linear + o.Experts + o.Output + o.Sequence + o.Miscounted
}

// Operations counts the model's operations for one token, as
// megatron/training/training.py:num_floating_point_operations does: causal
// attention counts half.
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
	narrower := 0.0 // than the log takes a mixer to be
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

// Imbalance is the time of the fullest pipeline stage over the mean: the output
// layer, which takes as long as so many layers, is work that the stage of the
// loss has beside its own.
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
