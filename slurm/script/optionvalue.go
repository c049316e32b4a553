package script

import (
	"slices"
	"strconv"
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/lazy"
	"github.com/megatron-ops/megatron-ops/slurm"
)

// A valueForm is the form of an option's argument.
type valueForm struct {
	form  *lazy.Pattern
	takes lang.Text // the form in words
}

// valueForms are the options whose argument sbatch itself checks, with the forms that
// it accepts (measured with sbatch 22.05 and 24.11).
var valueForms = map[string]valueForm{
	"nodes": {
		lazy.New(`^\d+[kKmM]?(-\d+[kKmM]?)?$|^\d+(-\d+)?(:\d+)?(,\d+(-\d+)?(:\d+)?)+$`),
		lang.Text{EN: "a number or a range such as 2-4", ZH: "数字，或 2-4 这样的范围"},
	},
	"ntasks":            count,
	"ntasks-per-node":   count,
	"ntasks-per-socket": count,
	"ntasks-per-core":   count,
	"ntasks-per-gpu":    count,
	"cpus-per-task":     count,
	"cpus-per-gpu":      count,
	"mincpus":           count,
	"sockets-per-node":  count,
	"cores-per-socket":  count,
	"threads-per-core":  count,
	"core-spec":         {lazy.New(`^\d+$`), lang.Text{EN: "a number", ZH: "数字"}},
	"time":              duration,
	"time-min":          duration,
	"mem":               size,
	"mem-per-cpu":       size,
	"mem-per-gpu":       size,
	"tmp":               size,
	"gpus":              gpuCount,
	"gpus-per-node":     gpuCount,
	"gpus-per-task":     gpuCount,
	"gpus-per-socket":   gpuCount,
	"gres":              {lazy.New(`^[^=:]+(:[^=:]+){0,2}$`), lang.Text{EN: "gpu:N or gpu:TYPE:N", ZH: "gpu:N 或 gpu:型号:N"}},
	"signal": {
		lazy.New(`(?i)^([RB]+:)?(\d+|(SIG)?(HUP|INT|QUIT|KILL|TERM|USR1|USR2|URG|CONT|STOP|TSTP|TTIN|TTOU|XCPU|ALRM|PIPE))(@\d+)?$`),
		lang.Text{EN: "[B:]SIGNAL[@seconds], such as B:USR1@300", ZH: "[B:]信号[@秒数]，如 B:USR1@300"},
	},
	"open-mode": {lazy.New(`^[at]`), lang.Text{EN: "append or truncate", ZH: "append 或 truncate"}},
	"exclusive": {lazy.New(`^(user|mcs|topo)$`), lang.Text{EN: "no value, user or mcs", ZH: "不带取值、user 或 mcs"}},
	"array":     {lazy.New(`^[\d,:%\[\]-]+$`), lang.Text{EN: "indexes such as 0-9 or 1-10%1", ZH: "编号，如 0-9 或 1-10%1"}},
	"hint": {
		lazy.New(`^(compute_bound|memory_bound|multithread|nomultithread|help|,)+$`),
		lang.Text{EN: "compute_bound, memory_bound, multithread or nomultithread", ZH: "compute_bound、memory_bound、multithread 或 nomultithread"},
	},
	"switches": {lazy.New(`^\d+(@.*)?$`), lang.Text{EN: "a number", ZH: "数字"}},
	"distribution": {
		lazy.New(`^(?i)(\*|block|cyclic|arbitrary|plane|fcyclic|pack|nopack|none)`),
		lang.Text{EN: "block, cyclic, plane=N or arbitrary", ZH: "block、cyclic、plane=N 或 arbitrary"},
	},
}

var (
	count    = valueForm{lazy.New(`^0*[1-9]\d*$`), lang.Text{EN: "a whole number from 1 on", ZH: "不小于 1 的整数"}}
	duration = valueForm{
		lazy.New(`^(\d+(:\d+){0,2}|\d+-\d+(:\d+){0,2}|-1|(?i)infinite|unlimited)$`),
		lang.Text{EN: "minutes, MM:SS, HH:MM:SS or D-HH:MM:SS", ZH: "分钟数、MM:SS、HH:MM:SS 或 D-HH:MM:SS"},
	}
	size     = valueForm{lazy.New(`^\d+([kKmMgGtT][bB]?)?$`), lang.Text{EN: "a number with K, M, G or T", ZH: "数字，可带 K、M、G 或 T"}}
	gpuCount = valueForm{lazy.New(`^([^=:,]+:)?\d+(,[^=:,]+:\d+)*$`), lang.Text{EN: "N or TYPE:N", ZH: "N 或 型号:N"}}
)

var (
	textBadValue = lang.Text{EN: "--%s does not take %q: it takes %s", ZH: "--%s 不接受 %q：应为%s"}
	textMailType = lang.Text{EN: "one of %s", ZH: "以下之一：%s"}
	textBadRange = lang.Text{EN: "--nodes=%s: the most is less than the least", ZH: "--nodes=%s：上限小于下限"}
)

// badValue returns why sbatch rejects the value of an option, or an empty text.
func badValue(option, val string) lang.Text {
	f, ok := valueForms[option]
	switch {
	case option == "gres" && strings.Contains(val, ","):
		for v := range strings.SplitSeq(val, ",") {
			if bad := badValue(option, v); bad.EN != "" {
				return bad
			}
		}
		return lang.Text{}
	case option == "mail-type":
		first, _, _ := strings.Cut(val, ",")
		if !slices.Contains(slurm.MailTypes, strings.ToUpper(first)) {
			return textBadValue.With(option, val, textMailType.With(strings.Join(slurm.MailTypes[:6], ", ")))
		}
		return lang.Text{}
	case option == "exclusive" && val == "":
		return lang.Text{}
	case ok && !f.form.MatchString(val):
		return textBadValue.With(option, val, f.takes)
	case option == "nodes":
		lo, hi, isRange := strings.Cut(val, "-")
		a, errA := strconv.Atoi(lo)
		b, errB := strconv.Atoi(hi)
		if isRange && errA == nil && errB == nil && b < a {
			return textBadRange.With(val)
		}
	}
	return lang.Text{}
}
