package job

import (
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/shellword"
)

// quote returns a value as one word of bash. Every value in a rendered script is
// quoted by quote, and every value of a directive by directive.
func quote(value string) string { return shellword.Bash(value) }

// directive returns one #SBATCH line. It quotes the value only if necessary, with the
// double quotes and backslashes that every version of sbatch reads in the same way.
// The fields' grammars have already rejected values that cannot be quoted.
func directive(option, value string) string {
	if strings.Trim(value, shellword.Plain+",[]&|*()?!^") != "" || value == "" {
		value = `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(value) + `"`
	}
	return "#SBATCH --" + option + "=" + value
}
