package answers

import (
	"cmp"
	"context"
	"encoding/hex"
	"fmt"
	"hash/fnv"
	"slices"
	"strings"
	"time"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/redact"
	"github.com/megatron-ops/megatron-ops/internal/view"
	"github.com/megatron-ops/megatron-ops/knowledge/cards"
)

// CardIn lists the site's own answers, or adds or removes one.
type CardIn struct {
	What     string   `json:"what,omitempty" arg:"" optional:"" enum:"list,add,remove" default:"list" help:"list the site's own answers, add one, or remove one" zh:"列出、添加或删除站点自己的答案"`
	Words    []string `json:"-" arg:"" optional:"" text:"" name:"question" help:"the question it answers; with remove its id" zh:"它回答的问题；remove 时为其编号"`
	Question string   `json:"question,omitempty" kong:"-" help:"the question it answers; with remove its id" zh:"它回答的问题；remove 时为其编号"`
	Answer   string   `json:"answer,omitempty" placeholder:"TEXT" help:"the answer" zh:"答案"`
	URL      string   `json:"url,omitempty" name:"url" placeholder:"URL" help:"the page that states it" zh:"依据的页面"`
	File     string   `json:"-" short:"f" placeholder:"FILE" help:"a file of cards instead, as CONTRIBUTING.md describes them" zh:"改用卡片文件，格式见 CONTRIBUTING.md"`
}

// CardOut holds the site's own answers after the operation.
type CardOut struct {
	Cards []SiteCard `json:"cards"`
}

// A SiteCard is an answer that an operator added.
type SiteCard struct {
	cards.Card
	At time.Time `json:"at"`
	By string    `json:"by"`
}

// docCard is the kind of document that holds a SiteCard under its id.
const docCard = "card"

// Card returns the operation card.
func Card() ops.Op {
	return ops.Define(ops.Op{
		Name: "card", Effect: ops.Write, Toolset: ops.AdminSet, Idempotent: true,
		Summary: lang.Text{EN: "the site's own answers: list, add or remove them (operators)", ZH: "站点自己的答案：列出、添加或删除（仅限运维人员）"},
		Help: lang.Text{
			EN: "Use after knowledge gaps: what is added is found by ask and search at once, before what is built in.",
			ZH: "配合 knowledge gaps 使用：添加后 ask 与 search 立即可用，并优先于内置内容。",
		},
		Example: `card add "how do I get access to the h200 partition?" --answer "Ask in #gpu-help; it takes a day."`,
	}, siteAnswers)
}

func siteAnswers(ctx context.Context, c *ops.Call, in CardIn) (CardOut, error) {
	out := CardOut{Cards: []SiteCard{}}
	if !c.Who.Operator && !c.OwnHands() {
		return out, &ops.Error{
			Code: ops.NotAllowed, Message: lang.Text{EN: "the site's answers are for operators to write", ZH: "站点的答案只能由运维人员编写"},
			Fix: lang.Text{EN: "ask an operator", ZH: "请联系管理员"},
		}
	}
	docs := c.Docs()
	question := strings.TrimSpace(strings.Join(append(in.Words, in.Question), " "))
	switch in.What {
	case "add":
		list, err := newCards(c, in, question)
		if err != nil {
			return out, err
		}
		for _, k := range list {
			if err := docs.Put(ctx, docCard, k.ID, SiteCard{Card: k, At: c.Now(), By: c.Who.ID}, time.Time{}); err != nil {
				return out, err
			}
		}
	case "remove":
		all, err := SiteCards(ctx, c.Service)
		if err != nil {
			return out, err
		}
		if !slices.ContainsFunc(all, func(k SiteCard) bool { return k.ID == question }) {
			return out, ops.NotFoundError("question",
				lang.Text{EN: "%q is no id of a card", ZH: "没有编号为 %q 的卡片"}.With(question),
				lang.Text{EN: "`megatron-ops card list` shows the ids", ZH: "用 `megatron-ops card list` 查看编号"})
		}
		if err := docs.Delete(ctx, docCard, question); err != nil {
			return out, err
		}
	}
	all, err := SiteCards(ctx, c.Service)
	out.Cards = append(out.Cards, all...)
	return out, err
}

// newCards returns the cards to add: those of a file, or one from the given words.
func newCards(c *ops.Call, in CardIn, question string) ([]cards.Card, error) {
	if in.File != "" {
		text, err := c.ReadFile("file", in.File)
		if err != nil {
			return nil, err
		}
		list, err := cards.Parse(redact.Clean(string(text)))
		if err != nil {
			return nil, ops.InputError("file",
				lang.Said(err),
				lang.Text{EN: "CONTRIBUTING.md, “Add an answer”, has an example", ZH: "格式示例见 CONTRIBUTING.md 的 “Add an answer”"})
		}
		return list, nil
	}
	question, answer := redact.Clean(question), redact.Clean(strings.TrimSpace(in.Answer))
	switch {
	case question == "":
		return nil, ops.InputError("question",
			lang.Text{EN: "there is no question", ZH: "没有给出问题"},
			lang.Text{
				EN: "for example: card add \"where is scratch?\" --answer \"/scratch/$USER\"",
				ZH: "例如：card add \"scratch 在哪？\" --answer \"/scratch/$USER\"",
			})
	case answer == "":
		return nil, ops.InputError("answer",
			lang.Text{EN: "there is no answer", ZH: "没有给出答案"},
			lang.Text{EN: "card add \"where is scratch?\" --answer \"/scratch/$USER\"", ZH: "card add \"scratch 在哪？\" --answer \"/scratch/$USER\""})
	}
	sum := fnv.New32a()
	sum.Write([]byte(question))
	return []cards.Card{{
		ID: "site." + hex.EncodeToString(sum.Sum(nil)), Title: lang.Same(question), Skill: "site", URL: strings.TrimSpace(in.URL),
		Asks: []string{question}, Text: lang.Same(answer),
	}}, nil
}

// SiteCards returns the answers that operators have added, ordered by id.
func SiteCards(ctx context.Context, s *ops.Service) ([]SiteCard, error) {
	docs := s.Docs()
	ids, err := docs.Keys(ctx, docCard, time.Time{})
	if err != nil {
		return nil, err
	}
	list := make([]SiteCard, 0, len(ids))
	for _, id := range ids {
		var k SiteCard
		if ok, err := docs.Get(ctx, docCard, id, time.Time{}, &k); err != nil {
			return nil, err
		} else if ok {
			list = append(list, k)
		}
	}
	return list, nil
}

// View shows one line for each card.
func (o CardOut) View(l lang.Lang) view.Doc {
	if len(o.Cards) == 0 {
		return view.Doc{Title: lang.Text{EN: "The site has no answers of its own.", ZH: "站点还没有自己的答案。"}.In(l)}
	}
	t := &view.Table{Header: view.Columns(l, "id|question|answer|by", "编号|问题|答案|添加者")}
	for _, k := range o.Cards {
		t.Rows = append(t.Rows, []string{k.ID, k.Title.In(l), brief(k.Text.In(l)), cmp.Or(k.By, "-")})
	}
	return view.Doc{
		Title:    fmt.Sprintf(lang.Text{EN: "The site's own answers: %d", ZH: "站点自己的答案：%d 条"}.In(l), len(o.Cards)),
		Sections: []view.Section{{Table: t}},
	}
}
