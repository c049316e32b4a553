package knowledge

import (
	"github.com/megatron-ops/megatron-ops/internal/lazy"
	"github.com/megatron-ops/megatron-ops/knowledge/index"
)

// Words of everyday life that a trade uses in a sense of its own: a stock image
// is no share, what a flag buys has no price, and who resumes a node is a
// question of rights. They decline only where the question as a whole sounds like
// one about something else.
const (
	figure   reason = "figure of speech"
	somebody reason = "somebody"
)

// literal is what such a word comes to there.
var literal = map[reason]reason{figure: foreign, somebody: person}

// senseRules find them, but for what shows the sense of the trade beside them.
var senseRules = []scopeRule{
	{figure, lazy.New(`\b(?:stocks?|weather|forecasts?|rain|raining|cook|cooking|bake|cake|story|song|react|headache|recipe for|flights?|invest|investing|car|rap|hurts|doctor|novel|translate|tax|game|laptop|macbook|lunch|vacation|keyboard|zero[- ]?[123])\b|笔记本|故事|历史事件`), lazy.New(`colleague|teammate|co-?worker|owner|sudo|flight[ -]recorder|同事|队友`)},
	{somebody, lazy.New(`\bbuy(?:s|ing)?\b|\b(?:price|cost)s?\b.{0,30}\b(?:of|for|to)\b|\bwhat (?:price|does .{0,30} cost)|\b(?:expensive|cheap|cheapest|affordable)\b|找谁|问谁|谁负责|谁来审批|谁审批|谁批|是谁$|\bwho (?:is|are) (?:our|the|your|my) |\bwho (?:owns?|broke|approved|administers|operates|manages?|leads?|maintains?|looks after|takes care of)\b|\bwho (?:do|should|can|could) (?:i|we) ask\b|便宜|性价比|划算`), nil},
	{foreign, lazy.New(`\bcredit (?:scores?|ratings?|reports?)\b`), lazy.New(`gpus?|cards?\b|cluster|slurm|share|jobs?\b|queue|priority`)},
}

// meansHere reports whether a question that holds such a word is one of the
// field all the same.
func (lib *library) meansHere(text string, hits []index.Hit) bool {
	sounds := lib.sounds(text, hits)
	return sounds < soundsHere || sounds <= soundsElse && (trade.MatchString(text) || lib.index.Field(index.Terms(text)))
}
