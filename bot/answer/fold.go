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

// Unfolded takes drawn blocks out of their containers; folded is false where
// there is none.
func Unfolded(drawn json.RawMessage) (flat json.RawMessage, folded bool) {
	var list []json.RawMessage
	if json.Unmarshal(drawn, &list) != nil {
		return drawn, false
	}
	var out []json.RawMessage
	for _, b := range list {
		var c struct {
			Type     string            `json:"type"`
			Title    json.RawMessage   `json:"title"`
			Children []json.RawMessage `json:"child_blocks"`
		}
		if json.Unmarshal(b, &c) != nil || c.Type != "container" {
			out = append(out, b)
			continue
		}
		folded = true
		if head, err := json.Marshal(map[string]any{"type": "header", "text": c.Title}); err == nil {
			out = append(out, head)
		}
		out = append(out, c.Children...)
	}
	flat, err := json.Marshal(out[:min(len(out), MaxBlocks)])
	if err != nil {
		return drawn, false
	}
	return flat, folded
}
