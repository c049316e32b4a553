package ops

import "github.com/megatron-ops/megatron-ops/internal/lang"

// saidByArguments is what is said of words, flags and arguments before an
// operation begins, and of single values.
var saidByArguments = []lang.Text{
	{EN: "for example: %s", ZH: "例如：%s"},
	{EN: "did you mean %s?", ZH: "是否想写 %s？"},
	{EN: "see: megatron-ops help %s", ZH: "用法见：megatron-ops help %s"},
	{EN: "see: megatron-ops help", ZH: "用法见：megatron-ops help"},
	{EN: "leave them out", ZH: "请去掉"},

	// Words.
	{EN: "%s takes no arguments after --", ZH: "%s 在 -- 之后不接受参数"},
	{EN: "%s has no flag %s", ZH: "%s 没有选项 %s"},
	{
		EN: "what begins with a dash and is no flag goes after --, as: megatron-ops %s",
		ZH: "以短横线开头而又不是选项的内容请写在 -- 之后，例如：megatron-ops %s",
	},
	{EN: "%s does not know what to do with %s", ZH: "%s 不知道如何处理 %s"},
	{EN: "%s needs a %s", ZH: "%s 需要给出 %s"},
	{EN: "--%s needs a value", ZH: "--%s 需要一个值"},
	{EN: "%s is not among its choices", ZH: "%s 不在可选值之列"},
	{EN: `"%s" is not %s`, ZH: `"%s" 不是%s`},
	{EN: "a number of 0 or more", ZH: "大于等于 0 的数"},
	{EN: "yes or no", ZH: "yes 或 no"},
	{EN: "a duration", ZH: "时长"},
	{EN: "a float", ZH: "小数"},
	{EN: "missing flags: %s", ZH: "缺少选项：%s"},
	{EN: "%s can't be used together", ZH: "%s 不能同时使用"},
	{EN: "%s must be one of %s but got %s", ZH: "%[1]s 只能是 %[2]s 之一，而给出的是 %[3]s"},
	{
		EN: "it is a flag of Megatron's: give it after --, as megatron-ops %s … -- %s, or in the specification's args: [%s]",
		ZH: "这是 Megatron 的参数：请写在 -- 之后，即 megatron-ops %s … -- %s，或写入规格的 args: [%s]",
	},
	{
		EN: "it is a flag of Megatron's (%s is not its name there): give it after --, as megatron-ops %s … -- %s, or in the specification's args: [%s]",
		ZH: "这是 Megatron 的参数（在那里不叫 %s）：请写在 -- 之后，即 megatron-ops %s … -- %s，或写入规格的 args: [%s]",
	},
	{EN: "give args as a list, one element each", ZH: "请把 args 写成列表，每项一个"},

	// Arguments of tools.
	{EN: "arguments are %s, not an object", ZH: "参数是%s，而不是对象"},
	{EN: "arguments are not valid JSON: %s", ZH: "参数不是有效的 JSON：%s"},
	{EN: `send an object such as {"name": "value"}`, ZH: `请发送对象，例如 {"name": "value"}`},
	{EN: "send one JSON object", ZH: "请发送一个 JSON 对象"},
	{EN: "send flatter arguments", ZH: "请减少参数的嵌套层数"},
	{EN: "something comes after the object", ZH: "对象之后还有多余的内容"},
	{EN: "nests deeper than %s levels", ZH: "嵌套超过 %s 层"},
	{EN: "give it once", ZH: "请只给出一次"},
	{EN: "is not an argument here", ZH: "不是这里的参数"},
	{EN: "cannot be given here", ZH: "不能在这里给出"},
	{EN: "see the schema of this argument", ZH: "请查看该参数的 schema"},
	{EN: "is %s, not %s", ZH: "是%s，而不是%s"},
	{EN: "is %s, which is not one of the words known here", ZH: "是 %s，不在可选值之列"},
	{EN: "use one of %s", ZH: "请使用其中之一：%s"},
	{EN: "known here: %s", ZH: "这里可用的参数：%s"},
	{EN: "this operation takes no arguments", ZH: "该操作不接受参数"},
	{EN: "put it into spec: %s", ZH: "请放入 spec：%s"},
	{EN: "give %s: %s", ZH: "请给出 %s：%s"},
	{EN: "give %s, such as %s (%s)", ZH: "请给出%s，例如 %s（%s）"},
	{EN: "give %s, such as %s", ZH: "请给出%s，例如 %s"},
	{EN: "the string %s", ZH: "字符串 %s"},
	{EN: "the number %s", ZH: "数字 %s"},
	{EN: "a string", ZH: "字符串"},
	{EN: "a number", ZH: "数字"},
	{EN: "a whole number", ZH: "整数"},
	{EN: "a whole number from 0 on", ZH: "大于等于 0 的整数"},
	{EN: "a boolean", ZH: "布尔值"},
	{EN: "a list", ZH: "列表"},
	{EN: "an object", ZH: "对象"},
	{EN: `%s; text of a YAML file goes into yaml`, ZH: `%s；YAML 文件的文本请放入 yaml`},

	// Single values.
	{EN: "%s is negative", ZH: "%s 是负数"},
	{EN: "%s is less than 1", ZH: "%s 小于 1"},
	{EN: "%s is not between 0 and %s", ZH: "%s 不在 0 到 %s 之间"},
	{EN: "a number of 1 or more", ZH: "大于等于 1 的数"},
	{EN: "a number, 0 for none", ZH: "数字，0 表示不用"},
	{EN: "a number such as 20", ZH: "数字，例如 20"},
	{EN: "a number of days, such as 7", ZH: "天数，例如 7"},
	{EN: "a number of hours, such as 24", ZH: "小时数，例如 24"},
	{EN: "a number of lines, such as 50", ZH: "行数，例如 50"},
	{EN: "minutes, such as 30", ZH: "分钟数，例如 30"},
	{EN: "seconds, such as 60", ZH: "秒数，例如 60"},
	{EN: "seconds, such as 600", ZH: "秒数，例如 600"},
}
