package lang

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCapital(t *testing.T) {
	for given, want := range map[string]string{
		"":              "",
		"it starts":     "It starts",
		"éclair":        "Éclair",
		"It starts":     "It starts",
		"8 GPUs":        "8 GPUs",
		"两个节点":          "两个节点",
		"\xff is bytes": "\xff is bytes",
	} {
		require.Equal(t, want, Capital(given))
	}
}

func TestWithSetsValuesInBothLanguages(t *testing.T) {
	node := Text{EN: "node %s", ZH: "节点 %s"}.With("gpu7")
	require.Equal(t, Text{EN: "node gpu7 of job 12 failed", ZH: "作业 12 的节点 gpu7 失败"},
		Text{EN: "%s of job %d failed", ZH: "作业 %[2]d 的%[1]s 失败"}.With(node, 12))
	require.Equal(t, Text{EN: "sbatch", ZH: "sbatch"}, Same("sbatch"))
}

func TestALanguageIsReadFromItsName(t *testing.T) {
	for word, want := range map[string]Lang{
		"en": EN, "EN": EN, "En_GB": EN, "en_US.UTF-8": EN, "zh": ZH, "ZH": ZH, "Zh": ZH, "zh_CN.UTF-8": ZH, "zh-Hant": ZH, "cn": ZH, "CN": ZH,
		"": "", "z": "", "C": "", "de": "", "fr_FR.UTF-8": "", "中文": "",
	} {
		l, ok := Parse(word)
		require.Equal(t, want != "", ok, word)
		if ok {
			require.Equal(t, want, l, word)
		} else {
			require.Equal(t, EN, l, "%s: who speaks another language reads English", word)
		}
	}
}

func TestKanaIsNoChinese(t *testing.T) {
	for text, want := range map[string]Lang{"为什么失败": ZH, "job 3 为什么失败": ZH, "ジョブ 3 はなぜ失敗した？": EN, "why": EN, "왜": EN, "": EN} {
		require.Equal(t, want, Of(text), text)
	}
}
