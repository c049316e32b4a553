package slacktest

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// text checks a text object.
func (c *checker) text(x any, w string, most int, only string, needed bool) {
	if x == nil {
		if needed {
			c.say(w, "missing")
		}
		return
	}
	t, ok := x.(m)
	if !ok {
		c.say(w, "not a text object")
		return
	}
	typ, _ := t["type"].(string)
	if typ != "plain_text" && typ != "mrkdwn" {
		c.say(w+".type", "%q is not plain_text or mrkdwn", typ)
	}
	if only != "" && typ != only {
		c.say(w+".type", "must be %s, is %s", only, typ)
	}
	if typ == "mrkdwn" && t["emoji"] != nil {
		c.say(w+".emoji", "only with plain_text")
	}
	s, _ := t["text"].(string)
	n := utf8.RuneCountInString(s)
	if n < 1 || n > most {
		c.say(w+".text", "%d characters, 1 to %d", n, most)
	}
	c.total += n
}

// length checks the length of a string, in characters.
func (c *checker) length(x any, w string, least, most int) {
	s, ok := x.(string)
	if !ok {
		if least > 0 {
			c.say(w, "missing")
		}
		return
	}
	if n := utf8.RuneCountInString(s); n < least || n > most {
		c.say(w, "%d characters, %d to %d", n, least, most)
	}
}

var elementTypes = map[string]bool{
	"button": true, "checkboxes": true, "datepicker": true, "datetimepicker": true, "email_text_input": true,
	"file_input": true, "image": true, "number_input": true, "overflow": true, "plain_text_input": true,
	"radio_buttons": true, "rich_text_input": true, "static_select": true, "external_select": true,
	"users_select": true, "conversations_select": true, "channels_select": true, "multi_static_select": true,
	"multi_users_select": true, "multi_conversations_select": true, "multi_channels_select": true,
	"multi_external_select": true, "timepicker": true, "url_text_input": true, "workflow_button": true,
}

// element checks an interactive element.
func (c *checker) element(e m, w string, ids map[string]bool) {
	typ, _ := e["type"].(string)
	if !elementTypes[typ] {
		c.say(w, "unknown element %q", typ)
		return
	}
	if id, ok := e["action_id"].(string); ok {
		if utf8.RuneCountInString(id) > 255 || id == "" {
			c.say(w+".action_id", "1 to 255 characters")
		}
		if ids[id] {
			c.say(w+".action_id", "%q twice", id)
		}
		ids[id] = true
	}
	c.text(e["placeholder"], w+".placeholder", 150, "plain_text", false)
	switch {
	case typ == "button":
		c.text(e["text"], w+".text", 75, "plain_text", true)
		c.length(e["value"], w+".value", 0, 2000)
		c.length(e["url"], w+".url", 0, 3000)
		if s, ok := e["style"].(string); ok && s != "primary" && s != "danger" {
			c.say(w+".style", "%q is not primary or danger", s)
		}
	case typ == "overflow":
		c.options(e, w, 5, 75)
	case typ == "checkboxes" || typ == "radio_buttons":
		c.options(e, w, 10, 75)
	case strings.HasSuffix(typ, "static_select"):
		c.options(e, w, 100, 75)
	case typ == "plain_text_input":
		c.length(e["initial_value"], w+".initial_value", 0, 3000)
		if n, ok := e["max_length"].(float64); ok && (n < 1 || n > 3000) {
			c.say(w+".max_length", "1 to 3000")
		}
	case typ == "number_input":
		if _, ok := e["is_decimal_allowed"].(bool); !ok {
			c.say(w+".is_decimal_allowed", "missing")
		}
	}
	if x, ok := e["confirm"].(m); ok {
		c.text(x["title"], w+".confirm.title", 100, "plain_text", true)
		c.text(x["text"], w+".confirm.text", 300, "", true)
		c.text(x["confirm"], w+".confirm.confirm", 30, "plain_text", true)
		c.text(x["deny"], w+".confirm.deny", 30, "plain_text", true)
	}
}

// options checks the options of a select, an overflow menu, checkboxes or radio buttons.
func (c *checker) options(e m, w string, most, textMost int) {
	list, _ := e["options"].([]any)
	if groups, ok := e["option_groups"].([]any); ok && len(list) == 0 {
		if len(groups) < 1 || len(groups) > 100 {
			c.say(w+".option_groups", "%d groups, 1 to 100", len(groups))
		}
		return
	}
	if len(list) < 1 || len(list) > most {
		c.say(w+".options", "%d options, 1 to %d", len(list), most)
	}
	values := map[string]bool{}
	for i, o := range list {
		x, _ := o.(m)
		at := fmt.Sprintf("%s.options[%d]", w, i)
		c.text(x["text"], at+".text", textMost, "", true)
		c.text(x["description"], at+".description", 75, "", false)
		c.length(x["value"], at+".value", 1, 150)
		v, _ := x["value"].(string)
		values[v] = true
	}
	var initial []any
	if one, ok := e["initial_option"].(m); ok {
		initial = append(initial, one)
	}
	if many, ok := e["initial_options"].([]any); ok {
		initial = append(initial, many...)
	}
	for _, o := range initial {
		x, _ := o.(m)
		if v, _ := x["value"].(string); !values[v] {
			c.say(w+".initial_option", "%q is not one of the options", v)
		}
	}
}
