// Package cards reads the product's knowledge from short cards. Each card has one fact or
// procedure in English and Chinese, example questions, and the page that states it. The
// cards are under data/, one file for each topic. Package library embeds them.
package cards

import (
	"fmt"
	"io/fs"
	"path"
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/lang"
)

// A Card answers one question.
type Card struct {
	// ID is stable and readable, such as "slurm.begin".
	ID    string    `json:"id"`
	Title lang.Text `json:"title"`
	// Skill is the folder under skills/ that covers the card's subject in full.
	Skill string `json:"skill,omitempty"`
	// URL is the page, with its anchor, that states the fact; it may be empty.
	URL string `json:"url,omitempty"`
	// Asks are example questions in both languages.
	Asks []string  `json:"asks"`
	Text lang.Text `json:"text"`
	// Table is the kind of the table that the card is a row of; empty for any other card.
	Table string `json:"-"`
}

// Load reads the cards (*.md) and the tables of terms (*.tsv) of fsys.
func Load(fsys fs.FS) ([]Card, error) {
	var list []Card
	err := fs.WalkDir(fsys, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		parse := map[string]func(string) ([]Card, error){".md": Parse, ".tsv": parseTerms}[path.Ext(name)]
		if parse == nil {
			return nil
		}
		text, err := fs.ReadFile(fsys, name)
		if err != nil {
			return err
		}
		more, err := parse(string(text))
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		for _, c := range more {
			if c.Text.ZH == "" {
				return fmt.Errorf("%s: card %s: zh is missing", name, c.ID)
			}
		}
		list = append(list, more...)
		return nil
	})
	if err != nil {
		return nil, err
	}
	seen := map[string]bool{}
	for _, c := range list {
		if seen[c.ID] {
			return nil, fmt.Errorf("card %s: the id occurs twice", c.ID)
		}
		seen[c.ID] = true
	}
	return list, nil
}

// Parse parses a file of cards:
//
//	## slurm.begin | Start a job later | 推迟启动作业
//	skill: slurm-user-guide
//	url: https://…            (optional: the page and anchor that state the fact)
//	ask: an example question | another one
//	ask: 中文问法
//	en: the answer,
//	over several lines
//	zh: 答案
//
// The built-in cards have both languages. In a card that a site adds, zh is optional.
func Parse(text string) ([]Card, error) {
	var (
		list []Card
		c    *Card
		into *string // the text that a line without a key continues
	)
	for i, line := range strings.Split(text, "\n") {
		if head, ok := strings.CutPrefix(line, "## "); ok {
			part := strings.Split(head, " | ")
			if len(part) != 3 {
				return nil, fmt.Errorf("line %d: a card begins with: ## id | title | 标题", i+1)
			}
			list = append(list, Card{ID: part[0], Title: lang.Text{EN: part[1], ZH: part[2]}})
			c, into = &list[len(list)-1], nil
			continue
		}
		key, value, _ := strings.Cut(line, ":")
		value = strings.TrimSpace(value)
		switch {
		case c == nil && strings.TrimSpace(line) == "":
		case c == nil:
			return nil, fmt.Errorf("line %d: %q is before the first card", i+1, line)
		case key == "skill" && into == nil:
			c.Skill = value
		case key == "url" && into == nil:
			c.URL = value
		case key == "ask" && into == nil:
			for ask := range strings.SplitSeq(value, " | ") {
				c.Asks = append(c.Asks, strings.TrimSpace(ask))
			}
		case key == "en" && c.Text.EN == "":
			into = &c.Text.EN
			*into = value
		case key == "zh" && c.Text.ZH == "":
			into = &c.Text.ZH
			*into = value
		case into != nil:
			*into += "\n" + line
		case strings.TrimSpace(line) != "":
			return nil, fmt.Errorf("line %d: %q belongs to no field of card %s", i+1, line, c.ID)
		}
	}
	for i := range list {
		c := &list[i]
		c.Text.EN, c.Text.ZH = strings.TrimSpace(c.Text.EN), strings.TrimSpace(c.Text.ZH)
		if c.Text.EN == "" || len(c.Asks) == 0 {
			return nil, fmt.Errorf("card %s: ask or en is missing", c.ID)
		}
	}
	return list, nil
}

// parseTerms parses a table of terms. Each row becomes a card. A row has the columns
// term, English, Chinese, more asks, and its own url, separated by tabs; the last two are
// optional. A line "#: key = value" sets a value that the following rows share: kind,
// skill, url, or asks. In asks, {} stands for the term. In url, {name} stands for the term
// without its leading dashes, and {anchor} for the term in the form of a web page's
// anchor. A later line replaces an earlier value; an empty url means none.
func parseTerms(text string) ([]Card, error) {
	var list []Card
	set := map[string]string{}
	for i, line := range strings.Split(text, "\n") {
		if kv, ok := strings.CutPrefix(line, "#: "); ok {
			key, value, _ := strings.Cut(kv, " = ")
			set[key] = value
			continue
		}
		if line == "" || line[0] == '#' {
			continue
		}
		col := strings.Split(line, "\t")
		if len(col) < 3 {
			return nil, fmt.Errorf("line %d: %d columns, want term, English, Chinese", i+1, len(col))
		}
		col = append(col, "", "")
		term := col[0]
		url := strings.NewReplacer("{name}", strings.TrimLeft(term, "-"), "{anchor}", strings.ReplaceAll(strings.ToLower(term), "_", "-")).Replace(set["url"])
		if col[4] != "" {
			url = col[4]
		}
		c := Card{
			ID:    set["kind"] + "." + term,
			Title: lang.Text{EN: term, ZH: term},
			Skill: set["skill"], URL: url, Table: set["kind"],
			Text: lang.Text{EN: "`" + term + "`: " + col[1], ZH: "`" + term + "`:" + col[2]},
		}
		for ask := range strings.SplitSeq(set["asks"]+" | "+col[3], " | ") {
			if ask != "" {
				c.Asks = append(c.Asks, strings.ReplaceAll(ask, "{}", term))
			}
		}
		list = append(list, c)
	}
	return list, nil
}
