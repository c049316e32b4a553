package answer

import (
	"encoding/json"

	"github.com/slack-go/slack"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/view"
)

// maxFolded is how many blocks Slack takes in a container.
const maxFolded = 10

var textDetails = lang.Text{EN: "Details", ZH: "详情"}

// fold puts a section that most readers need not see at once into a container
// that is closed at first; ok is false where it stays open.
func fold(s view.Section, ps []piece, l lang.Lang) (folded piece, ok bool) {
	if !s.Fold || len(ps) == 0 {
		return piece{}, false
	}
	title := OneLine(s.Heading)
	if title != "" {
		ps = ps[1:] // the heading is the container's
	} else {
		title = textDetails.In(l)
	}
	if len(ps) == 0 || len(ps) > maxFolded {
		return piece{}, false
	}
	c := slack.ContainerBlock{
		Type: slack.MBTContainer, Title: Label(Cut(sentence(title), maxHeader)), IsCollapsible: true, DefaultCollapsed: true,
		Width: slack.ContainerWidthFull,
	}
	for _, p := range ps {
		c.ChildBlocks.BlockSet = append(c.ChildBlocks.BlockSet, p.Block)
		folded.size += p.size
		folded.table = folded.table || p.table
	}
	folded.Block = c
	folded.size += len(title)
	return folded, true
}

// Unfolded takes drawn blocks out of their containers.
func Unfolded(drawn json.RawMessage) json.RawMessage {
	var list, out []map[string]any
	if json.Unmarshal(drawn, &list) != nil {
		return drawn
	}
	for _, b := range list {
		if b["type"] != "container" {
			out = append(out, b)
			continue
		}
		out = append(out, map[string]any{"type": "header", "text": b["title"]})
		out = append(out, objects(b["child_blocks"])...)
	}
	flat, err := json.Marshal(out)
	if err != nil {
		return drawn
	}
	return flat
}
