package slacktest

import (
	"fmt"
	"slices"
)

// chart checks a data_visualization block. A message may have at most two
// (docs.slack.dev/reference/block-kit/blocks/data-visualization-block).
func (c *checker) chart(b m, w string) {
	if c.charts++; c.charts > 2 {
		c.say(w, "at most two charts a message")
	}
	c.length(b["title"], w+".title", 1, 50)
	chart, ok := b["chart"].(m)
	if !ok {
		c.say(w+".chart", "missing")
		return
	}
	switch chart["type"] {
	case "line", "bar", "area":
	case "pie":
		segments, _ := chart["segments"].([]any)
		if len(segments) < 1 || len(segments) > 6 {
			c.say(w+".segments", "%d segments, 1 to 6", len(segments))
		}
		return
	default:
		c.say(w+".chart.type", "%v is not line, bar, area or pie", chart["type"])
		return
	}
	axis, _ := chart["axis_config"].(m)
	categories, _ := axis["categories"].([]any)
	if len(categories) < 1 || len(categories) > 20 {
		c.say(w+".axis_config.categories", "%d categories, 1 to 20", len(categories))
	}
	for i, x := range categories {
		c.length(x, fmt.Sprintf("%s.axis_config.categories[%d]", w, i), 1, 20)
	}
	c.length(axis["x_label"], w+".axis_config.x_label", 0, 50)
	c.length(axis["y_label"], w+".axis_config.y_label", 0, 50)
	names := map[string]bool{}
	c.each(chart, "series", w, 6, func(one m, at string) {
		c.length(one["name"], at+".name", 1, 20)
		if names[str(one["name"])] {
			c.say(at+".name", "%q twice", str(one["name"]))
		}
		names[str(one["name"])] = true
		points, _ := one["data"].([]any)
		if len(points) != len(categories) {
			c.say(at+".data", "%d points for %d categories", len(points), len(categories))
		}
		seen := map[string]bool{}
		for j, y := range points {
			point, _ := y.(m)
			label := str(point["label"])
			if _, ok := point["value"].(float64); !ok {
				c.say(fmt.Sprintf("%s.data[%d].value", at, j), "not a number")
			}
			if seen[label] || !slices.Contains(categories, any(label)) {
				c.say(fmt.Sprintf("%s.data[%d].label", at, j), "%q is not a category, or twice", label)
			}
			seen[label] = true
		}
	})
}

var taskStates = []string{"pending", "in_progress", "complete", "error"}

// taskCard checks a task_card block, which is a step of an agent's work.
func (c *checker) taskCard(b m, w string) {
	c.length(b["task_id"], w+".task_id", 1, 255)
	c.length(b["title"], w+".title", 1, 256)
	if s, ok := b["status"].(string); ok && !slices.Contains(taskStates, s) {
		c.say(w+".status", "%q is none of %v", s, taskStates)
	}
	for _, part := range []string{"details", "output"} {
		if text, ok := b[part].(m); ok {
			c.richText(text, w+"."+part)
		}
	}
}

// plan checks a plan block, which is a list of task cards.
func (c *checker) plan(b m, w string) {
	c.length(b["title"], w+".title", 1, 256)
	c.each(b, "tasks", w, 50, c.taskCard)
}
