package config

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/notify"
	"github.com/megatron-ops/megatron-ops/slurm/job"
)

// kinds names the kinds that a T may have.
func kinds[T any]() lang.Text {
	f, _ := reflect.TypeFor[T]().FieldByName("Kind")
	return lang.Text{EN: "one of %s", ZH: "可用值：%s"}.With(strings.ReplaceAll(f.Tag.Get("enum"), ",", ", "))
}

// checkMeaning adds the faults of values that have the right form and still cannot be
// meant: what only several of them show, and what the specification's fields refuse.
func (t *document) checkMeaning(c Config) {
	t.checkSite("site", c.Site)
	for _, name := range slices.Sorted(maps.Keys(c.Clusters)) {
		at := "clusters." + name
		if c.Clusters[name].Kind == "" {
			t.addFault(at+".kind", "", mustBeGiven, kinds[Cluster]())
		}
		t.checkSite(at+".site", c.Clusters[name].Site)
	}
	for _, name := range slices.Sorted(maps.Keys(c.Notify)) {
		if c.Notify[name].Kind == "" {
			t.addFault("notify."+name+".kind", "", mustBeGiven, kinds[notify.Target]())
		}
	}
	if _, ok := c.Slack.Approval.Life(); !ok {
		t.addFault("slack.approval.expires", c.Slack.Approval.Expires, lang.Text{EN: "is not a duration of a minute or more", ZH: "不是一分钟以上的时长"}, lang.Text{EN: "a duration such as 24h", ZH: "时长，例如 24h"})
	}
	seen := map[string]bool{}
	for i, token := range c.MCP.Tokens {
		at := fmt.Sprintf("mcp.tokens[%d]", i)
		if token.File == "" {
			t.addFault(at+".file", "", mustBeGiven, lang.Text{EN: "the token's file, with mode 600", ZH: "令牌文件，权限 600"})
		}
		switch {
		case token.ID == "":
			t.addFault(at+".id", "", mustBeGiven, lang.Text{EN: "a name of its own, which the audit log shows", ZH: "该令牌自己的名称，会显示在审计记录中"})
		case seen[token.ID]:
			t.addFault(at+".id", token.ID, lang.Text{EN: "is another token's id too", ZH: "与另一个令牌的 id 相同"}, lang.Text{EN: "give each token an id of its own", ZH: "请为每个令牌设置不同的 id"})
		}
		seen[token.ID] = true
	}
}

var mustBeGiven = lang.Text{EN: "must be given", ZH: "必须给出"}

func (t *document) checkSite(path string, s job.Site) {
	for _, e := range s.Validate() {
		t.addFault(path+"."+e.Field, e.Value, e.Msg, e.Fix)
	}
}
