package script

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestEscapesAreUndoneAsBashDoes(t *testing.T) {
	texts := []string{
		`a\nb`, `\t\r\a\b\e\E\f\v\\\'\"\?`, `\x41\x4`, `\x`, `\xg`, `\101\60\7`, `\u4e2d\u00e9\U0001f642`, `\u`, `\q`, `100%s`, `$HOME`, `\xc3\xa9`,
	}
	out, err := exec.Command("bash", "-c", `LC_ALL=C.UTF-8; printf '%s\0' $'`+strings.Join(texts, "' $'")+"'").Output()
	require.NoError(t, err)
	want := strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00")
	require.Len(t, want, len(texts))
	for i, text := range texts {
		job := Read("x", []byte("#!/bin/bash\nsrun python a.py --title $'"+text+"' 'a\\nb'\n")).Jobs[0]
		require.Len(t, job.Starts, 1)
		require.Equal(t, want[i], job.Starts[0].ProgramArgs[1].Text(), text)
		require.Equal(t, `a\nb`, job.Starts[0].ProgramArgs[2].Text())
	}
}

func TestADirectivesBackslashesAreRead(t *testing.T) {
	for line, want := range map[string]string{
		`--comment="said \"go\", it's 100% # done"`: `said "go", it's 100% # done`,
		`--comment=a\ b`:     `a b`,
		`--comment='a\b "c'`: `a\b "c`,
		`--comment="a\\b"`:   `a\b`,
	} {
		job := Read("x", []byte("#!/bin/bash\n#SBATCH "+line+"\nsrun true\n")).Jobs[0]
		o, ok := job.Options.Get("comment")
		require.True(t, ok)
		require.Equal(t, want, o.Text(), line)
	}
}
