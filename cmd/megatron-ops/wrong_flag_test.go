package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Errors are in the language that any flag names: a flag that every command has, or the
// word for running a job again, which two commands accept.
func TestAWrongFlagOrWordIsToldInTheLanguageThatAFlagNames(t *testing.T) {
	t.Setenv("MEGATRON_OPS_STATE_DIR", t.TempDir())
	t.Setenv("LC_ALL", "C")
	for line, says := range map[string]string{
		"list --output x.log --lang zh":    "不支持输出格式",
		"--lang zh list --output x.log":    "不支持输出格式",
		"list --output x.log":              "is not known",
		"list --output toml --lang xx":     "output",
		"list -o x.log --lang zh -- --all": "不支持输出格式",

		"retry 4711":          "`megatron-ops submit --from 4711` submits it as a new job, `megatron-ops requeue 4711` puts",
		"resubmit":            "`megatron-ops submit --from JOB`",
		"retry nightly --yes": "`megatron-ops submit --from nightly --yes` submits it as a new job, `megatron-ops requeue nightly --yes` puts",
		"--lang zh 重试 4711_3": "`megatron-ops requeue 4711_3` 以原作业号重新排队",
		"retry now please":    "see: megatron-ops help",

		// An unset variable in what changes something; a flag with one dash.
		"cancel --mine --yes --cluster=": "--cluster was given an empty value",
		"submit --cluster= --nodes 1":    "--cluster was given an empty value",
		"cancel 4711 --signal=":          "--signal was given an empty value",
		"update 4711 --time=":            "--time was given an empty value",
		"--lang zh hold 4711 --cluster=": "--cluster 的值为空",
		"serve -listen :8080":            "did you mean --listen?",

		// A flag that only one of them takes, or none.
		"retry 4711 --nodes 2":          `--nodes: there is no command "retry"; requeue has no flag --nodes: requeue takes --yes`,
		"retry nightly --nodes 2 --yes": "try: `megatron-ops submit --from nightly --nodes 2 --yes` submits it as a new job\n",
		"retry 4711 --nodez 2":          `--nodez: there is no command "retry"; submit has no flag --nodez`,
		"retry 4711 --nodes two":        `nodes: there is no command "retry"; "two" is not a number of 0 or more`,
		"--lang zh 重试 4711_3 --nodes 2": "没有命令 \"重试\"；requeue 没有选项 --nodes",
	} {
		var out, errs bytes.Buffer
		require.Equal(t, 2, run(t.Context(), strings.Fields(line), streams{in: strings.NewReader(""), out: &out, err: &errs}), line)
		require.Contains(t, errs.String(), says, line)
		require.Empty(t, out.String(), line)
	}
}

// Advice that is the same for several wrong fields is told once, behind the last of them.
func TestTheSameAdviceIsToldOnce(t *testing.T) {
	t.Setenv("MEGATRON_OPS_STATE_DIR", t.TempDir())
	var out, errs bytes.Buffer
	spec := strings.NewReader("first_wrong: 1\nsecond_wrong: 2\nnoodes: 3\n")
	require.Equal(t, 2, run(t.Context(), []string{"plan", "-f", "-"}, streams{in: spec, out: &out, err: &errs}))
	require.Equal(t, 1, strings.Count(errs.String(), "the fields are"), errs.String())
	require.Less(t, strings.Index(errs.String(), "second_wrong:"), strings.Index(errs.String(), "the fields are"))
	require.Contains(t, errs.String(), "did you mean nodes?")
}
