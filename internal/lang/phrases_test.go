package lang

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestPhrases(t *testing.T) {
	p := NewPhrases([]Text{
		{EN: "permission denied", ZH: "权限不足"},
		{EN: "%s is not known", ZH: "不认识 %s"},
		{EN: "cluster %s is not known", ZH: "没有集群 %s"},
		{EN: "%s has no account on %s", ZH: "%[2]s 上没有 %[1]s 的账户"},
		{EN: "%d nodes", ZH: "%d 个节点"},
		{EN: "this takes %s of %s for %s", ZH: "将占用 %[2]s 的 %[1]s，时长 %[3]s"},
		{EN: "it is 100% of %s", ZH: "是 %s 的 100%"},
		{EN: "no answer%s", ZH: "没有响应%s"},
	})
	for text, want := range map[string]string{
		"permission denied":                     "权限不足",
		`"x" is not known`:                      `不认识 "x"`,
		`cluster "x is not known" is not known`: `没有集群 "x is not known"`,
		"bob has no account on prod":            "prod 上没有 bob 的账户",
		"this takes 4 nodes of prod for 5 m":    "将占用 prod 的 4 个节点，时长 5 m",
		"it is 100% of x":                       "是 x 的 100%",
		"open /x: permission denied":            "open /x：权限不足",
		"submit: sbatch: permission denied":     "submit：sbatch：权限不足",
		"no answer":                             "没有响应",
		"no answer: permission denied":          "没有响应：权限不足",
		"too many nodes":                        "too many nodes",
		"Slurm's own words: left alone":         "Slurm's own words: left alone",
		"%s":                                    "%s",
		"":                                      "",
	} {
		require.Equal(t, want, p.Say(text, ZH), text)
		require.Equal(t, text, p.Say(text, EN))
	}
}
