package megatron

import (
	"cmp"
	"slices"
)

// A Shape is a model's dimensions, without the parallel layout. Parameters,
// activations and operations are counted from it.
type Shape struct {
	Layers, Hidden, Heads int
	// QueryDim is the width of all query heads together. KVDim is the mean of the
	// width of all key heads and the width of all value heads.
	QueryDim, KVDim int
	FFN, Vocab, Seq int
	Gated, Untied   bool
	// CoreDim is the width of core attention: the mean of the key width and the
	// value width of all heads together. Context is how many tokens a token attends
	// to, averaged over a causal sequence and over all layers.
	CoreDim int
	Context float64
	// NormSize is the number of weights of a norm over the hidden size: 1 for
	// RMSNorm, 2 with a bias.
	NormSize int
	// Experts is 0 for a dense model. MoELayers is how many of the Layers have
	// experts.
	Experts, TopK, ExpertFFN, SharedFFN, LatentMoE, MoELayers int
	SharedGate, RouterBias                                    bool
	// MTP is the number of multi-token-prediction depths. Their layers have experts
	// where the last layer has: LastMoE.
	MTP     int
	LastMoE bool
	// AttentionParams is the number of attention weights of a layer.
	AttentionParams float64
	// Parts counts the parts of all layers, MTPParts those of one depth of
	// multi-token prediction.
	Parts, MTPParts PartCounts
	// Mamba is the Mamba mixer of a hybrid model.
	Mamba   MambaShape
	Dropout bool
}

// PartCounts counts the parts that layers consist of. A layer of a transformer
// is an attention and a feed-forward part; a layer of a hybrid model is one part.
type PartCounts struct{ Attention, MLP, MoE, Mamba float64 }

// A MambaShape holds the widths of a Mamba mixer.
type MambaShape struct {
	// Inner is the width of all Heads together. B and C each have Groups × State
	// values.
	Inner, Heads, Groups, State int
}

// projected is the output width of the input projection.
func (m MambaShape) projected() float64 { return float64(2*m.Inner + 2*m.Groups*m.State + m.Heads) }

// convolved is the input width of the convolution.
func (m MambaShape) convolved() float64 { return float64(m.Inner + 2*m.Groups*m.State) }

// convWidth is the kernel size of a Mamba mixer's convolution, in tokens.
const convWidth = 4

// assumedVocab is the vocabulary size where neither --padded-vocab-size nor
// --vocab-size is given.
const assumedVocab = 51200

// Shape returns the shape of the model that c describes.
func (c *Config) Shape() Shape {
	s := Shape{
		Layers: c.Layers, Hidden: c.HiddenSize.Or(0), Heads: c.NumAttentionHeads.Or(0),
		FFN: c.FfnHiddenSize.Or(0), Seq: c.SeqLength.Or(0), Gated: c.Gated, Untied: c.UntieEmbeddingsAndOutputWeights,
		NormSize: 2, Experts: max(c.Experts, 0), TopK: c.MoeRouterTopk, ExpertFFN: c.MoeFfnHiddenSize.Or(0),
		SharedFFN: c.MoeSharedExpertIntermediateSize.Or(0), LatentMoE: c.MoeLatentSize.Or(0),
		SharedGate: c.MoeSharedExpertGate, RouterBias: c.AddBiasLinear, MTP: c.MtpNumLayers.Or(0),
		Dropout: c.HiddenDropout > 0 || c.AttentionDropout > 0,
	}
	if c.Normalization == "RMSNorm" {
		s.NormSize = 1
	}
	s.QueryDim, s.KVDim = c.KvChannels.Or(0)*s.Heads, c.KvChannels.Or(0)*c.NumQueryGroups
	s.CoreDim, s.Context = s.QueryDim, c.context()
	if c.MultiLatentAttention { // each head has its own keys and values
		s.QueryDim = s.Heads * (c.QkHeadDim + c.QkPosEmbHeadDim)
		s.KVDim = (s.QueryDim + s.Heads*c.VHeadDim) / 2
		s.CoreDim = s.KVDim
	}
	s.Vocab = c.vocab()
	if s.Experts > 0 {
		s.MoELayers, s.LastMoE = c.moeLayers()
	}
	s.AttentionParams = c.attentionParams(s)
	c.parts(&s)
	return s
}

// context returns how many tokens a token attends to on average: half of the
// sequence, and fewer in layers with sliding-window attention
// (megatron/core/transformer/utils.py:531).
func (c *Config) context() float64 {
	seq := float64(c.SeqLength.Or(0))
	if len(c.WindowSize) == 0 || c.WindowSize[0] < 0 || float64(c.WindowSize[0]) >= seq-1 {
		return seq / 2
	}
	reach := float64(c.WindowSize[0] + 1)
	narrow := reach - reach*(reach-1)/(2*seq)
	layers, skip := max(c.Layers, 1), c.WindowAttnSkipFreq
	whole := 0
	switch {
	case !skip.OK:
	case skip.V.IsList:
		for _, windowed := range skip.V.List[:min(len(skip.V.List), layers)] {
			if windowed == 0 {
				whole++
			}
		}
	case skip.V.N > 0:
		whole = layers / skip.V.N
	}
	share := float64(whole) / float64(layers)
	return share*seq/2 + (1-share)*narrow
}

// mainParts returns Parts, or a transformer's parts where Parts is not set.
func (s Shape) mainParts() PartCounts {
	if s.Parts != (PartCounts{}) {
		return s.Parts
	}
	layers, moe := float64(s.Layers), float64(s.MoELayers)
	return PartCounts{Attention: layers, MLP: layers - moe, MoE: moe}
}

// AllParts counts the parts of all layers, including multi-token prediction.
func (s Shape) AllParts() PartCounts {
	p, n, d := s.mainParts(), s.MTPParts, float64(s.MTP)
	return PartCounts{Attention: p.Attention + d*n.Attention, MLP: p.MLP + d*n.MLP, MoE: p.MoE + d*n.MoE, Mamba: p.Mamba + d*n.Mamba}
}

// parts sets the part counts and the Mamba widths of s.
func (c *Config) parts(s *Shape) {
	pattern := ""
	if c.Hybrid != nil {
		pattern = c.Hybrid.Main
	} else if c.Entry == "hybrid" && c.Release < V017 {
		pattern = c.HybridOverridePattern.Or(AllocateHybrid(c.Layers, c.HybridAttentionRatio, c.HybridMlpRatio))
	}
	if pattern == "" {
		s.Parts = s.mainParts()
		s.MTPParts = PartCounts{Attention: 1, MLP: 1}
		if s.LastMoE {
			s.MTPParts = PartCounts{Attention: 1, MoE: 1}
		}
		return
	}
	s.Parts = countParts(pattern)
	s.MoELayers = int(s.Parts.MoE)
	if c.Hybrid != nil {
		s.MTPParts = countParts(c.Hybrid.MTP)
	}
	heads := c.MambaNumHeads.Or(2 * s.Hidden / max(c.MambaHeadDim, 1))
	s.Mamba = MambaShape{Inner: heads * c.MambaHeadDim, Heads: heads, Groups: c.MambaNumGroups, State: c.MambaStateDim}
}

func countParts(pattern string) PartCounts {
	var p PartCounts
	for _, letter := range pattern {
		switch letter {
		case 'M', 'G':
			p.Mamba++
		case '*', 'D', '+':
			p.Attention++
		case '-':
			p.MLP++
		case 'E':
			p.MoE++
		}
	}
	return p
}

// vocab returns the padded size of the vocabulary. megatron/core/tokenizers pads
// to a multiple of --make-vocab-size-divisible-by times TP.
func (c *Config) vocab() int {
	if c.PaddedVocabSize.OK {
		return c.PaddedVocabSize.V
	}
	n := c.VocabSize.Or(assumedVocab)
	unit := max(c.MakeVocabSizeDivisibleBy, 1) * max(c.TP, 1)
	return (n + unit - 1) / unit * unit
}

// moeLayers counts the expert layers and reports whether the last layer is one.
func (c *Config) moeLayers() (count int, last bool) {
	f := c.MoeLayerFreq
	if f.IsList {
		for _, v := range f.List {
			count += v
		}
		return count, len(f.List) > 0 && f.List[len(f.List)-1] == 1
	}
	n := max(f.N, 1)
	return (c.Layers + n - 1) / n, c.Layers > 0 && (c.Layers-1)%n == 0
}

// attentionParams counts the attention weights of a layer, as
// megatron/training/theoretical_memory_usage.py:54 does.
func (c *Config) attentionParams(s Shape) float64 {
	h, heads := float64(s.Hidden), float64(s.Heads)
	if !c.MultiLatentAttention {
		return 2 * h * float64(s.QueryDim+s.KVDim)
	}
	head, rope, value := float64(c.QkHeadDim), float64(c.QkPosEmbHeadDim), float64(c.VHeadDim)
	norm := float64(s.NormSize)
	query := h * heads * (head + rope)
	if c.QLoraRank.OK {
		query = float64(c.QLoraRank.V) * (h + heads*(head+rope) + norm)
	}
	kv := float64(c.KvLoraRank)*(h+heads*(head+value)+norm) + h*rope
	return query + kv + heads*value*h
}

// layerParams counts weights by how ranks share them.
type layerParams struct {
	split      float64 // sharded over TP
	replicated float64
	experts    float64 // sharded over ETP × EP
}

func (p layerParams) total() float64 { return p.split + p.replicated + p.experts }

// projections returns how many weight matrices a feed-forward part has: gate, up
// and down with a gated activation, else up and down.
func (s Shape) projections() float64 {
	if s.Gated {
		return 3
	}
	return 2
}

func (p *layerParams) add(q layerParams, count float64) {
	p.split += q.split * count
	p.replicated += q.replicated * count
	p.experts += q.experts * count
}

func (s Shape) sum(n PartCounts) layerParams {
	var p layerParams
	p.add(s.attentionPart(), n.Attention)
	p.add(s.mlpPart(), n.MLP)
	p.add(s.moePart(), n.MoE)
	p.add(s.mambaPart(), n.Mamba)
	return p
}

func (s Shape) norm() float64 { return float64(s.Hidden * s.NormSize) }

func (s Shape) attentionPart() layerParams {
	return layerParams{split: s.AttentionParams, replicated: s.norm()}
}

func (s Shape) mlpPart() layerParams {
	return layerParams{split: float64(s.Hidden) * float64(s.FFN) * s.projections(), replicated: s.norm()}
}

// mambaPart counts the two projections, the convolution, the norm before the
// output, and three numbers for each head.
func (s Shape) mambaPart() layerParams {
	m, h := s.Mamba, float64(s.Hidden)
	inner := float64(m.Inner)
	return layerParams{split: h*m.projected() + inner*h + m.convolved()*(convWidth+1) + inner + 3*float64(m.Heads), replicated: s.norm()}
}

func (s Shape) moePart() layerParams {
	h := float64(s.Hidden)
	p := layerParams{split: h * float64(s.SharedFFN) * s.projections(), replicated: s.norm() + h*float64(s.Experts)}
	if s.RouterBias {
		p.replicated += float64(s.Experts)
	}
	if s.SharedGate && s.SharedFFN > 0 {
		p.replicated += h
	}
	if s.LatentMoE > 0 {
		p.replicated += 2 * h * s.RoutedWidth()
	}
	p.experts = s.RoutedWidth() * float64(s.ExpertFFN) * s.projections() * float64(s.Experts)
	return p
}

// mtpExtra counts the weights of one depth of multi-token prediction outside its
// layer: the projection that joins hidden state and embedding, and three norms.
func (s Shape) mtpExtra() layerParams {
	return layerParams{split: 2 * float64(s.Hidden) * float64(s.Hidden), replicated: 3 * s.norm()}
}

// RoutedWidth is the width of a token as it travels to the experts and back.
func (s Shape) RoutedWidth() float64 { return float64(cmp.Or(s.LatentMoE, s.Hidden)) }

// Params returns the number of weights of the model and how many of them one
// token uses.
func (s Shape) Params() (all, active float64) {
	parts := s.AllParts()
	whole := s.sum(parts)
	whole.add(s.mtpExtra(), float64(s.MTP))
	idle := 0.0 // weights of the experts that one token does not use
	if s.Experts > 0 {
		idle = s.moePart().experts * parts.MoE * (1 - float64(s.TopK)/float64(s.Experts))
	}
	embedding := float64(s.Hidden) * float64(s.Vocab)
	if s.Untied {
		embedding *= 2
	}
	all = embedding + s.norm() + whole.total()
	return all, all - idle
}

func (c *Config) recomputes(module string) bool {
	return c.Recompute == "selective" && slices.Contains(c.RecomputeModules, module)
}
