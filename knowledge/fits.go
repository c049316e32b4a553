package knowledge

import (
	"github.com/megatron-ops/megatron-ops/internal/lazy"
	"github.com/megatron-ops/megatron-ops/knowledge/index"
)

// Below these a question is declined: a card has to fit it at least so well,
// less well where the question uses the words of the field.
const (
	minScore = 0.42
	minCover = 0.40
	// A question that uses several words of the lexicon, if only everyday ones, is
	// hardly about something else.
	several         = 3
	minScoreSeveral = 0.32
	minScoreField   = 0.22
	minCoverField   = 0.16
	// A question with a word that nothing here holds may be about that; the more so
	// where the word is a name or known to name something else, or is not alone.
	minScoreStranger = 0.30
	minScoreNamed    = 0.45
	minScoreForeign  = 0.60
	minScoreAsked    = 0.80
	// How much a question sounds like those about something else, less how well the
	// card fits and less for the name of a tool of the field. Of the example
	// questions, held out of the index, one in a hundred lies above the upper bound;
	// of questions about something else three in four do, by this alone.
	soundShare = 8.0
	soundTrade = 3.0
	soundsElse = -2.5 // above, no card is an answer
	soundsHere = -5.0 // below, a card that fits less well is one too
	soundsSure = -7.0 // below, one word of something else does not decide
	soundsNear = 1.0  // above, no card is shown beside a refusal either

	weakScore      = 0.30 // below it an answer counts as a gap too
	relatedShare   = 0.75 // of the best score, for a second card to be shown as well
	denialLike     = 0.60 // how near a question has to be to a false premise, for a denial
	denialMore     = 0.20 // and how much nearer than to what else is known of the matter
	certain        = 0.85 // a best score above which no second card is shown
	maxWithRelated = 1500 // characters of an answer with a second card
)

// trade finds the names of the tools that questions here are about.
var trade = lazy.New(`(?i)\b(?:slurm\w*|sbatch|srun|salloc|squeue|scancel|sacct|sinfo|scontrol|sshare|sprio|megatron\w*|mcore|nccl\w*|torchrun|torch\.distributed\w*|pyxis|enroot|uv)\b`)

// fits reports whether the best card is close enough to be an answer.
func (lib *library) fits(text string, hits []index.Hit) bool {
	if len(hits) == 0 {
		return false
	}
	words := index.Terms(text)
	if index.OnlyNumbers(words) {
		return false
	}
	h := hits[0]
	sounds := lib.sounds(text, hits)
	switch {
	case sounds > soundsElse:
		return false
	case sounds > soundsHere && h.Score < minScoreAsked && index.Concepts(words) == 0 && !lib.index.Field(words):
		return false // not one word that is known to be of the field
	case sounds < soundsHere:
	case h.Score >= minScore && h.Cover >= minCover:
	case h.Score >= minScoreSeveral && h.Cover >= minCover && index.Concepts(words) >= several:
	case h.Score >= minScoreField && h.Cover >= minCoverField && (trade.MatchString(text) || lib.index.Field(words)):
	default:
		return false
	}
	return h.Score >= minScoreForeign || h.Score >= lib.bound(text, h.Doc)
}

// sounds tells how much a question is like those about something else.
func (lib *library) sounds(text string, hits []index.Hit) float64 {
	best := 0.0
	if len(hits) > 0 {
		best = hits[0].Score
	}
	sounds := lib.index.Elsewhere(text) - soundShare*best
	if trade.MatchString(text) {
		sounds -= soundTrade
	}
	return sounds
}

// asAsked reports whether a question of the field is all but one of the example
// questions.
func (lib *library) asAsked(text string, hits []index.Hit) bool {
	return len(hits) > 0 && hits[0].Score >= minScoreAsked && (trade.MatchString(text) || lib.index.Field(index.Terms(text)))
}

// surely reports whether a card fits a question of the field so well that one
// word which mostly speaks of something else ("forecast", "VPN", "who is") does
// not decide.
func (lib *library) surely(text string, hits []index.Hit) bool {
	if len(hits) == 0 || !lib.index.Field(index.Terms(text)) {
		return false
	}
	sounds := lib.sounds(text, hits)
	return sounds < soundsSure || hits[0].Score >= minScoreForeign && sounds < soundsHere
}

// bound is how well the card has to fit a question that holds words which
// nothing here holds. What a program printed is full of such names.
func (lib *library) bound(text string, doc int) float64 {
	printed := message.MatchString(text)
	n := 0
	for _, s := range lib.index.Strangers(text, doc) {
		switch {
		case s.Foreign:
			return minScoreForeign
		case printed:
		case s.Name:
			n += 2
		default:
			n++
		}
	}
	switch n {
	case 0:
		return 0
	case 1:
		return minScoreStranger
	}
	return minScoreNamed
}
