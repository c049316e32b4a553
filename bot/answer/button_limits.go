package answer

import (
	"slices"
	"unicode/utf8"

	"github.com/slack-go/slack"
)

// MaxOption is Slack's limit for the value of an option of a menu or a select.
const MaxOption = 150

// withinLimits keeps buttons and menus within Slack's limits, since Slack refuses a message for one
// button. Labels are cut. A value cannot be: half a command is another command. A button or an
// entry with a longer value is left out.
func withinLimits(bs []slack.Block) []slack.Block {
	kept := make([]slack.Block, 0, len(bs))
	for _, b := range bs {
		switch x := b.(type) {
		case *slack.ActionBlock:
			if x.Elements == nil {
				break
			}
			row := *x
			row.Elements = &slack.BlockElements{}
			for _, e := range x.Elements.ElementSet {
				if e = elementWithin(e); e != nil {
					row.Elements.ElementSet = append(row.Elements.ElementSet, e)
				}
			}
			if len(row.Elements.ElementSet) == 0 {
				continue
			}
			b = &row
		case *slack.SectionBlock:
			if x.Accessory == nil || x.Accessory.ButtonElement == nil && x.Accessory.OverflowElement == nil {
				break
			}
			line, beside := *x, slack.BlockElement(x.Accessory.OverflowElement)
			if x.Accessory.ButtonElement != nil {
				beside = x.Accessory.ButtonElement
			}
			line.Accessory = nil
			if beside = elementWithin(beside); beside != nil {
				line.Accessory = slack.NewAccessory(beside)
			}
			b = &line
		}
		kept = append(kept, b)
	}
	return kept
}

// elementWithin returns a button or menu as Slack takes it, or nil.
func elementWithin(e slack.BlockElement) slack.BlockElement {
	switch x := e.(type) {
	case *slack.ButtonBlockElement:
		if utf8.RuneCountInString(x.Value) > MaxValue || utf8.RuneCountInString(x.URL) > MaxText {
			return nil
		}
		if x.Text != nil {
			label, shown := *x.Text, *x
			label.Text = Cut(label.Text, maxButton)
			shown.Text = &label
			return &shown
		}
	case *slack.OverflowBlockElement:
		menu := *x
		menu.Options = slices.DeleteFunc(slices.Clone(x.Options), func(o *slack.OptionBlockObject) bool { return utf8.RuneCountInString(o.Value) > MaxOption })
		if len(menu.Options) == 0 {
			return nil
		}
		return &menu
	}
	return e
}
