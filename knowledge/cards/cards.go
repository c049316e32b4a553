// Package cards reads what the product knows from short cards: one fact or
// procedure each, in English and Chinese, with the ways in which people ask for
// it and the page that states it. The cards lie under data/, one file a topic;
// package library carries them in the program.
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
	// Skill is the folder under skills/ that tells the whole story.
	Skill string `json:"skill,omitempty"`
	// URL is the page, with its anchor, that states the fact; it may be empty.
	URL string `json:"url,omitempty"`
	// Asks are ways of asking, in both languages.
	Asks []string  `json:"asks"`
	Text lang.Text `json:"text"`
}

// Load reads the cards (*.md) and the tables of terms (*.tsv) of fsys.
func Load(fsys fs.FS) ([]Card, error) {
	var list []Card
	err := fs.WalkDir(fsys, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		read := map[string]func(string) ([]Card, error){".md": Parse, ".tsv": parseTerms}[path.Ext(name)]
		if read == nil {
			return nil
		}
		text, err := fs.ReadFile(fsys, name)
		if err != nil {
			return err
		}
		more, err := read(string(text))
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		for _, c := range more {
			if c.Text.ZH == "" {
				return fmt.Errorf("%s: card %s: there is no zh", name, c.ID)
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
			return nil, fmt.Errorf("card %s: there are two of that id", c.ID)
		}
		seen[c.ID] = true
	}
	return list, nil
}

// Parse reads a file of cards:
//
//	## slurm.begin | Start a job later | 推迟启动作业
//	skill: slurm-user-guide
//	url: https://…            (the page and anchor that state it; left out where none does)
//	ask: a way of asking | another one
//	ask: 中文问法
//	en: the answer,
//	over several lines
//	zh: 答案
//
// The built-in cards have both languages; one that a site adds may do without zh.
func Parse(text string) ([]Card, error) {
	var (
		list []Card
		c    *Card
		into *string // the text that a plain line continues
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
			return nil, fmt.Errorf("line %d: %q stands before the first card", i+1, line)
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
			return nil, fmt.Errorf("card %s: there must be asks and en", c.ID)
		}
	}
	return list, nil
}

// parseTerms reads a table of terms, one card a row. A line "#: key = value"
// sets what the rows below share: kind, skill, url, and the asks, in which {}
// stands for the term; in the url {name} is the term without dashes before it,
// {anchor} the term as headings of web pages are linked to. A row is: term,
// English, Chinese, more asks, and a url of its own, between tabs; the last two
// may be left out. What rows share may be set anew further down; a url without a
// value is none.
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
			Skill: set["skill"], URL: url,
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
