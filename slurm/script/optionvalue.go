package script

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/lazy"
)

// A valueForm is the form of an option's argument.
type valueForm struct {
	form  *lazy.Pattern
	takes string // the form in words
}

// valueForms are the options whose argument sbatch itself checks, with the forms that
// it accepts (measured with sbatch 22.05 and 24.11).
var valueForms = map[string]valueForm{
	"nodes":             {lazy.New(`^\d+[kKmM]?(-\d+[kKmM]?)?$|^\d+(-\d+)?(:\d+)?(,\d+(-\d+)?(:\d+)?)+$`), "a number or a range such as 2-4"},
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
	"core-spec":         {lazy.New(`^\d+$`), "a number"},
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
	"gres":              {lazy.New(`^[^=:]+(:[^=:]+){0,2}$`), "gpu:N or gpu:TYPE:N"},
	"signal":            {lazy.New(`(?i)^([RB]+:)?(\d+|(SIG)?(HUP|INT|QUIT|KILL|TERM|USR1|USR2|URG|CONT|STOP|TSTP|TTIN|TTOU|XCPU|ALRM|PIPE))(@\d+)?$`), "[B:]SIGNAL[@seconds], such as B:USR1@300"},
	"open-mode":         {lazy.New(`^[at]`), "append or truncate"},
	"exclusive":         {lazy.New(`^(user|mcs|topo)$`), "no value, user or mcs"},
	"array":             {lazy.New(`^[\d,:%\[\]-]+$`), "indexes such as 0-9 or 1-10%1"},
	"hint":              {lazy.New(`^(compute_bound|memory_bound|multithread|nomultithread|help|,)+$`), "compute_bound, memory_bound, multithread or nomultithread"},
	"switches":          {lazy.New(`^\d+(@.*)?$`), "a number"},
	"distribution":      {lazy.New(`^(?i)(\*|block|cyclic|arbitrary|plane|fcyclic|pack|nopack|none)`), "block, cyclic, plane=N or arbitrary"},
}

var (
	count    = valueForm{lazy.New(`^0*[1-9]\d*$`), "a whole number from 1 on"}
	duration = valueForm{lazy.New(`^(\d+(:\d+){0,2}|\d+-\d+(:\d+){0,2}|-1|(?i)infinite|unlimited)$`), "minutes, MM:SS, HH:MM:SS or D-HH:MM:SS"}
	size     = valueForm{lazy.New(`^\d+([kKmMgGtT][bB]?)?$`), "a number with K, M, G or T"}
	gpuCount = valueForm{lazy.New(`^([^=:,]+:)?\d+(,[^=:,]+:\d+)*$`), "N or TYPE:N"}
)

var mailTypes = []string{
	"NONE", "BEGIN", "END", "FAIL", "REQUEUE", "ALL", "INVALID_DEPEND", "STAGE_OUT",
	"TIME_LIMIT", "TIME_LIMIT_90", "TIME_LIMIT_80", "TIME_LIMIT_50", "ARRAY_TASKS",
}

// badValue returns why sbatch rejects the value of an option, or "".
func badValue(option, val string) string {
	f, ok := valueForms[option]
	switch {
	case option == "gres" && strings.Contains(val, ","):
		for v := range strings.SplitSeq(val, ",") {
			if bad := badValue(option, v); bad != "" {
				return bad
			}
		}
		return ""
	case option == "mail-type":
		first, _, _ := strings.Cut(val, ",")
		if !slices.Contains(mailTypes, strings.ToUpper(first)) {
			return fmt.Sprintf("--mail-type does not take %q", val)
		}
		return ""
	case option == "exclusive" && val == "":
		return ""
	case ok && !f.form.MatchString(val):
		return fmt.Sprintf("--%s does not take %q: it takes %s", option, val, f.takes)
	case option == "nodes":
		lo, hi, isRange := strings.Cut(val, "-")
		a, errA := strconv.Atoi(lo)
		b, errB := strconv.Atoi(hi)
		if isRange && errA == nil && errB == nil && b < a {
			return fmt.Sprintf("--nodes=%s: the most is less than the least", val)
		}
	}
	return ""
}
