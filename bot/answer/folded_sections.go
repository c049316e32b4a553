package answer

import (
	"encoding/json"

	"github.com/slack-go/slack"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/view"
)

// maxFolded is how many blocks Slack accepts in a container.
const maxFolded = 10

var textDetails = lang.Text{EN: "Details", ZH: "详情"}

// fold puts a section with Fold set into a container that is collapsed at first; ok is false
// where the section is not folded.
func fold(s view.Section, ps []piece, l lang.Lang) (folded piece, ok bool) {
	if !s.Fold || len(ps) == 0 {
		return piece{}, false
	}
	title := OneLine(s.Heading)
	if title != "" {
		ps = ps[1:] // the heading becomes the container's title
	} else {
		title = textDetails.In(l)
	}
	if len(ps) == 0 || len(ps) > maxFolded {
		return piece{}, false
	}
	c := slack.ContainerBlock{
		Type: slack.MBTContainer, Title: Label(Cut(capitalized(title), maxHeader)), IsCollapsible: true, DefaultCollapsed: true,
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

// Unfolded replaces containers by their titles and child blocks.
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
		out = append(out, Objects(b["child_blocks"])...)
	}
	flat, err := json.Marshal(out)
	if err != nil {
		return drawn
	}
	return flat
}
