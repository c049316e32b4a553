package rules

import (
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/knowledge/megatron"
)

// unknownFlag returns the message and the fix for a flag that the release does not
// have: in which release the flag came or went, and what to use in its place.
func unknownFlag(e megatron.ParseError, release megatron.Release) (message, fix lang.Text) {
	which := t("Megatron", "Megatron")
	if release != megatron.Release(0).OrNewest() {
		which = t("Megatron "+release.String(), "Megatron "+release.String())
	}
	message = lang.Text{EN: "%s has no flag %s", ZH: "%s 没有参数 %s"}.With(which, e.Flag)
	if e.Known.Name != "" {
		return t("this entry script has no flag %s: only those for GPT and hybrid models add the flags of ModelOpt", "该入口脚本没有参数 %s：只有 GPT 与混合模型的脚本会加入 ModelOpt 的参数").With(e.Flag),
			t("leave it out", "去掉该参数")
	}
	spans := megatron.FlagHistory(e.Flag)
	if len(spans) == 0 {
		fix = t("remove it", "去掉它")
		if len(e.Nearest) > 0 {
			fix = t("use "+strings.Join(e.Nearest, " or "), "改用 "+strings.Join(e.Nearest, " 或 "))
		}
		if _, ok := megatron.Renamed(e.Flag); !ok {
			fix = lang.Text{
				EN: "%s; if your copy of Megatron-LM adds it, name it in extra_flags",
				ZH: "%s；如果是您的 Megatron-LM 自行添加的参数，请写进 extra_flags",
			}.With(fix)
		}
		return message, fix
	}
	first, last := spans[0].Since, spans[len(spans)-1].Until
	if first > release {
		message = lang.Text{EN: "%s has no flag %s: it came with %s", ZH: "%s 没有参数 %s：该参数自 %s 起才有"}.With(which, e.Flag, first.String())
		return message, lang.Text{EN: "leave it out, or use Megatron %s or later", ZH: "去掉该参数，或使用 Megatron %s 及以后的版本"}.With(first.String())
	}
	message = lang.Text{EN: "%s has no flag %s: %s was the last release with it", ZH: "%s 没有参数 %s：%s 是最后一个支持它的版本"}.With(which, e.Flag, last.String())
	if to, ok := megatron.Renamed(e.Flag); ok {
		if _, has := megatron.LookupFlagIn(release, to); has {
			return message, t("use "+to, "改用 "+to)
		}
	}
	return message, t("leave it out", "去掉该参数")
}
