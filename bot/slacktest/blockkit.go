package slacktest

import (
	"encoding/json"
	"fmt"
	"slices"
	"unicode/utf8"
)

// A Surface is where blocks are shown. Surfaces have different limits.
type Surface string

// The surfaces that CheckBlocks knows.
const (
	InMessage Surface = "message"
	InModal   Surface = "modal"
	InHome    Surface = "home"
)

// m is a JSON object.
type m = map[string]any

// CheckBlocks returns what Slack would refuse in blocks, by its published limits
// (docs.slack.dev/reference/block-kit). The result is empty for blocks that Slack accepts.
func CheckBlocks(raw []byte, on Surface) []string {
	var blocks []any
	if err := json.Unmarshal(raw, &blocks); err != nil {
		return []string{"blocks: not an array of JSON: " + err.Error()}
	}
	c := &checker{on: on, blockIDs: map[string]bool{}}
	c.blocks(blocks)
	return c.found
}

// CheckView returns what Slack would refuse in a modal or a home tab.
func CheckView(raw []byte) []string {
	var v m
	if err := json.Unmarshal(raw, &v); err != nil {
		return []string{"view: not a JSON object: " + err.Error()}
	}
	c := &checker{blockIDs: map[string]bool{}}
	switch v["type"] {
	case "modal":
		c.on = InModal
		c.text(v["title"], "view.title", 24, "plain_text", true)
		c.text(v["submit"], "view.submit", 24, "plain_text", false)
		c.text(v["close"], "view.close", 24, "plain_text", false)
	case "home":
		c.on = InHome
	default:
		return []string{fmt.Sprintf("view.type: %v is not modal or home", v["type"])}
	}
	c.length(v["private_metadata"], "view.private_metadata", 0, 3000)
	c.length(v["callback_id"], "view.callback_id", 0, 255)
	c.length(v["external_id"], "view.external_id", 0, 255)
	list, ok := v["blocks"].([]any)
	if !ok {
		c.say("view.blocks", "missing")
		return c.found
	}
	c.blocks(list)
	if c.on == InModal && c.inputs > 0 && v["submit"] == nil {
		c.say("view.submit", "needed with input blocks")
	}
	return c.found
}

// A checker collects the problems of blocks.
type checker struct {
	on       Surface
	found    []string
	blockIDs map[string]bool
	inputs   int
	tables   int
	charts   int
	cells    int
	markdown int
	total    int
}

func (c *checker) say(where, format string, args ...any) {
	c.found = append(c.found, where+": "+fmt.Sprintf(format, args...))
}

// blockSurfaces are the surfaces on which Slack accepts each type of block; nil means all.
var blockSurfaces = map[string][]Surface{
	"actions": nil, "context": nil, "divider": nil, "header": nil, "image": nil, "input": nil,
	"rich_text": nil, "section": nil, "video": nil, "alert": nil, "card": nil, "carousel": nil, "container": nil,
	"file": {InMessage}, "markdown": {InMessage}, "table": {InMessage}, "data_table": {InMessage},
	"context_actions": {InMessage}, "task_card": {InMessage}, "plan": {InMessage}, "data_visualization": {InMessage},
}

func (c *checker) blocks(list []any) {
	most := 100
	if c.on == InMessage {
		most = 50
	}
	if len(list) > most {
		c.say("blocks", "%d blocks, at most %d", len(list), most)
	}
	for i, x := range list {
		where := fmt.Sprintf("blocks[%d]", i)
		b, ok := x.(m)
		if !ok {
			c.say(where, "not an object")
			continue
		}
		c.block(b, where)
	}
	if c.cells > 10000 {
		c.say("blocks", "%d characters in table cells, at most 10000", c.cells)
	}
	if c.markdown > 12000 {
		c.say("blocks", "%d characters of markdown, at most 12000", c.markdown)
	}
	if c.on == InMessage && c.total > 13200 {
		c.say("msg_blocks_too_long", "%d characters over all blocks", c.total)
	}
}

// inContainer are the types of block that a container accepts.
var inContainer = []string{"actions", "context", "divider", "file", "header", "image", "input", "rich_text", "section", "table", "video"}

// container checks a container block.
func (c *checker) container(b m, where string) {
	title, _ := b["title"].(m)
	if n := utf8.RuneCountInString(str(title["text"])); title["type"] != "plain_text" || n < 1 || n > 150 {
		c.say(where+".title", "plain_text of 1 to 150 characters")
	}
	if b["default_collapsed"] == true && b["is_collapsible"] != true {
		c.say(where+".default_collapsed", "needs is_collapsible")
	}
	c.each(b, "child_blocks", where, 10, func(child m, at string) {
		if !slices.Contains(inContainer, str(child["type"])) {
			c.say(at, "%q is not for a container", str(child["type"]))
			return
		}
		c.block(child, at)
	})
}

// anyNumber is no limit for a list's length.
const anyNumber = 0

// each checks that a list has between one and most members, and calls do for each of them
// with its place.
func (c *checker) each(b m, list, where string, most int, do func(x m, at string)) {
	all, _ := b[list].([]any)
	switch {
	case most == anyNumber && len(all) == 0:
		c.say(where+"."+list, "empty")
	case most != anyNumber && (len(all) < 1 || len(all) > most):
		c.say(where+"."+list, "%d of them, 1 to %d", len(all), most)
	}
	for i, x := range all {
		member, _ := x.(m)
		do(member, fmt.Sprintf("%s.%s[%d]", where, list, i))
	}
}

func (c *checker) block(b m, where string) {
	typ, _ := b["type"].(string)
	surfaces, known := blockSurfaces[typ]
	if !known {
		c.say(where, "unknown type %q", typ)
		return
	}
	if surfaces != nil && !slices.Contains(surfaces, c.on) {
		c.say(where, "%s is not for a %s", typ, c.on)
	}
	if typ == "container" {
		c.container(b, where)
	}
	if id, ok := b["block_id"].(string); ok {
		if utf8.RuneCountInString(id) > 255 {
			c.say(where+".block_id", "over 255")
		}
		if c.blockIDs[id] {
			c.say(where+".block_id", "%q twice", id)
		}
		c.blockIDs[id] = true
	}
	switch typ {
	case "header":
		c.text(b["text"], where+".text", 150, "plain_text", true)
	case "section":
		c.section(b, where)
	case "context":
		c.context(b, where)
	case "actions":
		c.actions(b, where)
	case "image":
		c.image(b, where)
	case "input":
		c.input(b, where)
	case "markdown":
		c.markdownBlock(b, where)
	case "table":
		c.table(b, where)
	case "rich_text":
		c.richText(b, where)
	case "context_actions":
		c.contextActions(b, where)
	case "data_visualization":
		c.chart(b, where)
	case "task_card":
		c.taskCard(b, where)
	case "plan":
		c.plan(b, where)
	}
}

func (c *checker) section(b m, w string) {
	c.text(b["text"], w+".text", 3000, "", false)
	fields, has := b["fields"].([]any)
	if b["text"] == nil && !has {
		c.say(w, "needs text or fields")
	}
	if has && (len(fields) < 1 || len(fields) > 10) {
		c.say(w+".fields", "%d fields, 1 to 10", len(fields))
	}
	for i, f := range fields {
		c.text(f, fmt.Sprintf("%s.fields[%d]", w, i), 2000, "", true)
	}
	if a, ok := b["accessory"].(m); ok {
		c.element(a, w+".accessory", map[string]bool{})
	}
}

func (c *checker) context(b m, w string) {
	c.each(b, "elements", w, 10, func(x m, at string) {
		if x["type"] == "image" {
			c.image(x, at)
			return
		}
		c.text(x, at, 3000, "", true)
	})
}

func (c *checker) actions(b m, w string) {
	ids := map[string]bool{}
	c.each(b, "elements", w, 25, func(x m, at string) { c.element(x, at, ids) })
}

func (c *checker) contextActions(b m, w string) {
	c.each(b, "elements", w, 5, func(x m, at string) {
		switch x["type"] {
		case "feedback_buttons":
			for _, side := range []string{"positive_button", "negative_button"} {
				bt, _ := x[side].(m)
				c.text(bt["text"], at+"."+side+".text", 75, "plain_text", true)
				c.length(bt["value"], at+"."+side+".value", 1, 2000)
			}
		case "icon_button":
			c.text(x["text"], at+".text", 75, "plain_text", true)
		default:
			c.say(at, "%v is not for context_actions", x["type"])
		}
	})
}

func (c *checker) image(b m, w string) {
	c.length(b["alt_text"], w+".alt_text", 1, 2000)
	if b["image_url"] == nil && b["slack_file"] == nil {
		c.say(w, "needs image_url or slack_file")
	}
	c.slackFile(b, w)
	c.length(b["image_url"], w+".image_url", 0, 3000)
	c.text(b["title"], w+".title", 2000, "plain_text", false)
}

func (c *checker) input(b m, w string) {
	c.inputs++
	c.text(b["label"], w+".label", 2000, "plain_text", true)
	c.text(b["hint"], w+".hint", 2000, "plain_text", false)
	e, ok := b["element"].(m)
	if !ok {
		c.say(w+".element", "missing")
		return
	}
	if e["type"] == "button" || e["type"] == "overflow" {
		c.say(w+".element", "%v is not for input blocks", e["type"])
	}
	c.element(e, w+".element", map[string]bool{})
}

func (c *checker) markdownBlock(b m, w string) {
	s, _ := b["text"].(string)
	if s == "" {
		c.say(w+".text", "empty")
	}
	c.markdown += utf8.RuneCountInString(s)
	c.total += utf8.RuneCountInString(s)
}

func (c *checker) table(b m, w string) {
	if c.tables++; c.tables > 1 {
		c.say(w, "invalid_attachments: only one table a message")
	}
	rows, _ := b["rows"].([]any)
	if len(rows) < 1 || len(rows) > 100 {
		c.say(w+".rows", "%d rows, 1 to 100", len(rows))
	}
	for i, r := range rows {
		cells, _ := r.([]any)
		if len(cells) < 1 || len(cells) > 20 {
			c.say(fmt.Sprintf("%s.rows[%d]", w, i), "%d cells, 1 to 20", len(cells))
		}
		for j, x := range cells {
			cell, _ := x.(m)
			at := fmt.Sprintf("%s.rows[%d][%d]", w, i, j)
			switch cell["type"] {
			case "raw_text":
				s, _ := cell["text"].(string)
				if s == "" {
					c.say(at, "empty text")
				}
				c.cells += utf8.RuneCountInString(s)
				c.total += utf8.RuneCountInString(s)
			case "rich_text":
				c.richText(cell, at)
			default:
				c.say(at, "cell type %v", cell["type"])
			}
		}
	}
	if cs, ok := b["column_settings"].([]any); ok && len(cs) > 20 {
		c.say(w+".column_settings", "over 20")
	}
}

// richText checks a rich_text block.
func (c *checker) richText(b m, w string) {
	c.each(b, "elements", w, anyNumber, func(x m, at string) {
		switch x["type"] {
		case "rich_text_section", "rich_text_preformatted", "rich_text_quote":
			c.richElements(x, at)
		case "rich_text_list":
			if x["style"] != "bullet" && x["style"] != "ordered" {
				c.say(at+".style", "%v is not bullet or ordered", x["style"])
			}
			c.each(x, "elements", at, anyNumber, func(item m, at string) {
				if item["type"] != "rich_text_section" {
					c.say(at, "a list holds sections")
					return
				}
				c.richElements(item, at)
			})
		default:
			c.say(at, "unknown rich text %v", x["type"])
		}
	})
}

var richTypes = map[string]bool{
	"text": true, "link": true, "emoji": true, "user": true, "channel": true, "usergroup": true,
	"date": true, "broadcast": true, "color": true, "team": true,
}

func (c *checker) richElements(x m, w string) {
	c.each(x, "elements", w, anyNumber, func(y m, at string) {
		typ, _ := y["type"].(string)
		if !richTypes[typ] {
			c.say(at, "unknown element %q", typ)
		}
		if typ == "text" {
			s, _ := y["text"].(string)
			if s == "" {
				c.say(at+".text", "empty")
			}
			c.total += utf8.RuneCountInString(s)
		}
		if typ == "link" {
			u, _ := y["url"].(string)
			if u == "" || utf8.RuneCountInString(u) > 3000 {
				c.say(at+".url", "1 to 3000 characters")
			}
			c.total += utf8.RuneCountInString(u)
		}
	})
}
