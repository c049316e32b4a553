package answer

import "github.com/megatron-ops/megatron-ops/internal/lang"

// Texts that several packages use.
var (
	Colon  = lang.Text{EN: ": ", ZH: "："}
	Named  = lang.Text{EN: "%s (%s)", ZH: "%s（%s）"}
	Yes    = lang.Text{EN: "Yes, do it", ZH: "确认执行"}
	No     = lang.Text{EN: "Leave it", ZH: "不执行"}
	Broken = lang.Text{EN: "something in megatron-ops broke while working on this; the server's log has the details", ZH: "megatron-ops 处理这个请求时内部出错，详情见服务器日志"}
	Script = lang.Text{EN: "The script", ZH: "脚本"}
)
