package lang

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestFullWidth(t *testing.T) {
	for given, want := range map[string]string{
		"不行:注意力头数 36 不能被 TP=8 整除(必须为 0),会报错退出。": "不行：注意力头数 36 不能被 TP=8 整除（必须为 0），会报错退出。",
		"TP 可取 1, 2, 3, 4。":                    "TP 可取 1, 2, 3, 4。",
		"非 FSDP 时为 1;Blackwell 不需要;FSDP 不能为 1": "非 FSDP 时为 1；Blackwell 不需要；FSDP 不能为 1",
		"提交(`sbatch -a 1-10, x`),再看 `a:b`:好":   "提交（`sbatch -a 1-10, x`），再看 `a:b`：好",
		"端口 29500: 说明, 其余":                     "端口 29500：说明，其余",
		"见 https://example.org/a?b=1,2;c 和文档":  "见 https://example.org/a?b=1,2;c 和文档",
		"```\n变量:1,2\n```\n结果:好":               "```\n变量:1,2\n```\n结果：好",
		"Use 1 (never 8), then: go":            "Use 1 (never 8), then: go",
		"见[说明](a.md),再看 `docker://x`,好":        "见[说明](a.md)，再看 `docker://x`，好",
		"格式(tcp://主机:端口),各处一致":                 "格式（tcp://主机:端口），各处一致",
		"步骤 1)和 2)":                            "步骤 1)和 2)",
		"用 `a`, b 或 c":                         "用 `a`, b 或 c",
		"16:30 开始":                             "16:30 开始",
		"运行 `说明:值, 再看 (甲) 和 （乙） 丙` 即可":         "运行 `说明:值, 再看 (甲) 和 （乙） 丙` 即可",
		"用 `a`, `b` 和 `c`":                     "用 `a`，`b` 和 `c`",
		"地址, 见 https://example.org/a?b=1,2":    "地址，见 https://example.org/a?b=1,2",
		"见 https://example.org/a, 和文档":         "见 https://example.org/a，和文档",
		"TP (a)好":                              "TP（a）好",
		"好(a) TP":                              "好（a）TP",
		"好,b":                                  "好，b",
		"说“好”, b":                              "说“好”，b",
		"「好」, b":                               "「好」，b",
		"好! a? 1, 2":                           "好！a? 1, 2",
		"先看 (甲) 再看 (乙)":                        "先看（甲）再看（乙）",
		" (甲) 在前, 丙: ":                         " （甲）在前，丙： ",
		"调用 torch.cuda.empty_cache(),会变慢":      "调用 torch.cuda.empty_cache()，会变慢", // a call without arguments
	} {
		require.Equal(t, want, FullWidth(given))
		require.Equal(t, want, FullWidth(want), "done twice, it changes nothing")
	}
}
