package bot

import (
	"github.com/megatron-ops/megatron-ops/internal/lang"
)

// Texts of the bot itself. Operations have their own.
var (
	textRequester = lang.Text{EN: "Requester", ZH: "申请人"}
	textState     = lang.Text{EN: "State", ZH: "状态"}
	textConfirmed = lang.Text{EN: "✓ Confirmed", ZH: "✓ 已确认"}
	textConfirm   = lang.Text{EN: "Please confirm", ZH: "请确认"}
	textExpired   = lang.Text{EN: "This question was already answered, or it has expired. This press did nothing; ask again if it is still needed.", ZH: "该确认已处理过或已过期，本次点击未执行任何操作；如仍需要，请重新发起。"}
	textOldButton = lang.Text{EN: "This button is of another version of the bot and does nothing. Send the command instead.", ZH: "该按钮来自机器人的其他版本，已不起作用。请直接发送命令。"}
	textDecided   = lang.Text{EN: "This request was decided already, or it has expired: its message says what became of it. This press did nothing.", ZH: "该申请已有结果或已过期，结果见原消息。本次点击未执行任何操作。"}
	textNotYours  = lang.Text{EN: "Only the person who asked can answer this. Nothing was done.", ZH: "只有发起人可以确认，没有执行任何操作。"}
	textLeft      = lang.Text{EN: "Left as it was. Nothing was done.", ZH: "保持原样，没有执行任何操作。"}
	textForeign   = lang.Text{
		EN: "you come from another workspace, so only `help` and `ask` are open to you here",
		ZH: "您来自其他工作区，这里只能使用 `help` 和 `ask`",
	}
	textChannel    = lang.Text{EN: "jobs may not be changed from this channel", ZH: "不允许在本频道修改作业"}
	textChannelFix = lang.Text{EN: "use a direct message with the bot, or one of the channels that your operator has opened", ZH: "请在与机器人的私聊中操作，或使用管理员开放的频道"}
)
