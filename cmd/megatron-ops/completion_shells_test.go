package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// offering answers as the program does, and records its arguments in a file.
const offering = `#!/bin/sh
case "$1 $2" in
"completion zsh"|"completion bash"|"completion fish") cat "$0.$2";;
"__complete status") printf '4711\tgpt: 7b RUNNING\n12_[1-3]\todd $(touch pwned)\nlast\tthe job submitted last\n' | grep "^$3";;
"__complete submit") printf -- '--partition\tSlurm partition, or several\n' | grep -e "^$3";;
"__complete sta") printf 'status\tone job\n';;
esac
`

// After a Tab, the three shells themselves offer what the program answers.
func TestShellsCompleteWhatTheProgramOffers(t *testing.T) {
	dir := t.TempDir()
	program := filepath.Join(dir, "megatron-ops")
	require.NoError(t, os.WriteFile(program, []byte(offering), 0o755))
	for shell, script := range completionScripts {
		require.NoError(t, os.WriteFile(program+"."+shell, []byte(script), 0o644))
	}
	for shell, script := range map[string]string{
		"bash": `source <(megatron-ops completion bash)
tab() { COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMPREPLY=(); _megatron_ops; printf '%s|' "${COMPREPLY[@]}"; echo; }
tab megatron-ops status ''; tab megatron-ops status 47; tab megatron-ops submit --p; tab megatron-ops sta`,
		"fish": `megatron-ops completion fish | source
for w in "status " "status 47" "submit --p" sta; for c in (complete -C "megatron-ops $w"); string split -f1 \t -- $c; end | sort -r | string join "|"; end; true`,
		"zsh": `zmodload zsh/zpty; zpty z zsh -f -i
zpty -w z 'autoload -Uz compinit; compinit -u -D; source <(megatron-ops completion zsh); stty columns 200; print rea''dy'
zpty -r z said '*ready*'
tab() { zpty -w -n z "$1"$'\t\t'; zpty -r z said "*$2*"; print -r -- "$3"; zpty -w -n z $'\C-u\n'; }
tab 'megatron-ops status ' 'the job submitted last' '4711|12_[1-3]|last|'
tab 'megatron-ops status 47' 'status 4711' '4711|'
tab 'megatron-ops submit --p' 'submit --partition' '--partition|'
tab 'megatron-ops sta' 'megatron-ops status' 'status|'; zpty -d z`,
	} {
		t.Run(shell, func(t *testing.T) {
			if _, err := exec.LookPath(shell); err != nil {
				if os.Getenv("CI") == "true" {
					t.Fatal("CI=true promises " + shell + ": .ci/setup")
				}
				t.Skip("no " + shell)
			}
			ctx, stop := context.WithTimeout(t.Context(), 2*time.Minute)
			defer stop()
			cmd := exec.CommandContext(ctx, shell, map[string][]string{"bash": {"--norc", "-c"}, "fish": {"--no-config", "-c"}, "zsh": {"-f", "-c"}}[shell]...)
			cmd.Args = append(cmd.Args, script)
			cmd.Dir, cmd.Env = dir, []string{"PATH=" + dir + ":/usr/bin:/bin", "HOME=" + dir, "TERM=xterm", "LC_ALL=C.UTF-8"}
			out, err := cmd.Output()
			require.NoError(t, err)
			want := "4711|12_[1-3]|last|\n4711|\n--partition|\nstatus|\n"
			if shell == "fish" {
				want = "last|4711|12_[1-3]\n4711\n--partition\nstatus\n"
			}
			require.Equal(t, want, string(out))
			require.NoFileExists(t, filepath.Join(dir, "pwned"))
		})
	}
}
