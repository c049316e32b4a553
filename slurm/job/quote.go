package job

import (
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/shellword"
)

// quote writes one value as one word of bash. Every value in a rendered script
// passes through here.
func quote(value string) string { return shellword.Bash(value) }

// directive writes one #SBATCH line. The value is quoted only where it must
// be, with the double quotes and backslashes that sbatch reads alike in every
// version; a grammar has already refused what no quoting saves.
func directive(option, value string) string {
	if strings.Trim(value, shellword.Plain+",[]&|*()?!^") != "" || value == "" {
		value = `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(value) + `"`
	}
	return "#SBATCH --" + option + "=" + value
}
