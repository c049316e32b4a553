package logline

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// inside is a log of several writers, as a job leaves it.
var inside = []string{
	"srun: launching 2 tasks",
	"loading the data",
	"",
	"step 1 loss 2.5",
	"Traceback (most recent call last):",
	`  File "/w/train.py", line 3, in <module>`,
	"    main()",
	"KeyError: 'rope'",
	"srun: error: n2: task 1: Exited with exit code 1",
}

func TestAFrameIsTakenOff(t *testing.T) {
	for name, c := range map[string]struct {
		before []string // for one line after the other, repeatedly
		rest   string   // the fourth line without its frame
	}{
		"kubectl logs --timestamps":        {[]string{"2026-11-23T07:00:00.123456789Z "}, "2026-11-23T07:00:00.123Z step 1 loss 2.5"},
		"a container's file on its node":   {[]string{"2026-11-23T07:00:00.123456789+00:00 stdout F ", "2026-11-23T07:00:01.5+00:00 stderr F "}, "2026-11-23T07:00:01.500Z step 1 loss 2.5"},
		"ts":                               {[]string{"Nov 23 07:00:01 "}, "0000-11-23T07:00:01.000Z step 1 loss 2.5"},
		"ts with brackets":                 {[]string{"[2026-11-23 07:00:01] "}, "2026-11-23T07:00:01.000Z step 1 loss 2.5"},
		"the time alone, which no day has": {[]string{"07:00:01 "}, "step 1 loss 2.5"},
		"journald":                         {[]string{"Nov 23 07:00:01 login3 train[4711]: "}, "0000-11-23T07:00:01.000Z step 1 loss 2.5"},
		"journald, two processes":          {[]string{"Nov 23 07:00:01 login3 train[4711]: ", "Nov 23 07:00:01 login3 train[4712]: "}, "0000-11-23T07:00:01.000Z step 1 loss 2.5"},
		"kubectl logs --prefix":            {[]string{"[pod/llm-0/pytorch] "}, "step 1 loss 2.5"},
		"docker compose":                   {[]string{"trainer-1  | "}, "step 1 loss 2.5"},
		"docker compose with a time":       {[]string{"trainer-1  | 2026-11-23T07:00:00.5Z "}, "2026-11-23T07:00:00.500Z step 1 loss 2.5"},
		"a quotation":                      {[]string{"> "}, "step 1 loss 2.5"},
		"an indentation":                   {[]string{"        "}, "step 1 loss 2.5"},
		"grep -H of one file":              {[]string{"logs/rank_1.log:"}, "step 1 loss 2.5"},
	} {
		t.Run(name, func(t *testing.T) {
			var lines []string
			for i, l := range inside {
				lines = append(lines, c.before[i%len(c.before)]+l)
			}
			f := FrameOf(lines)
			require.True(t, f.Framed())
			rest, host := f.Cut(lines[3])
			require.Equal(t, c.rest, rest)
			require.Empty(t, host)
			rest, _ = f.Cut(lines[5])
			require.True(t, strings.HasSuffix(rest, inside[5]), rest)
			rest, _ = f.Cut(lines[2])
			require.Empty(t, rest, "an empty line stays one")
		})
	}
}

func TestAFrameNamesWhoSpeaks(t *testing.T) {
	for name, before := range map[string][2]string{
		"kubectl logs --prefix": {"[pod/llm-0/pytorch] ", "[pod/llm-1/pytorch] "},
		"docker compose":        {"llm-0  | ", "llm-1  | "},
		"syslog":                {"Nov 23 07:00:00 llm-0 torchrun[311]: ", "Nov 23 07:00:00 llm-1 torchrun[98]: "},
		"journalctl":            {"2026-11-23T07:00:00.1+00:00 llm-0 train.sh[311]: ", "2026-11-23T07:00:00.1+00:00 llm-1 python3[98]: "},
	} {
		var lines []string
		for i, l := range append(inside, inside...) {
			lines = append(lines, before[i%2]+l)
		}
		rest, host := FrameOf(lines).Cut(lines[3])
		require.True(t, strings.HasSuffix(rest, "step 1 loss 2.5"), name)
		require.NotContains(t, rest, "llm", name)
		require.Equal(t, "llm-1", host, name)
	}
}

func TestNumbersOfLinesAreTakenOff(t *testing.T) {
	var catN, grepN []string
	for i, l := range inside {
		catN = append(catN, "     "+string(rune('1'+i))+"\t"+l)
		grepN = append(grepN, string(rune('1'+i))+":"+l)
	}
	for _, lines := range [][]string{catN, grepN, catN[:2]} {
		rest, _ := FrameOf(lines).Cut(lines[1])
		require.Equal(t, "loading the data", rest)
	}
}

func TestTheTimeWithinALogIsItsOwn(t *testing.T) {
	var lines []string
	for _, l := range inside {
		lines = append(lines, "2026-11-23T07:00:00Z "+strings.Replace(l, "step", "2026-11-23 09:00:00 step", 1))
	}
	rest, _ := FrameOf(lines).Cut(lines[3])
	require.Equal(t, "2026-11-23 09:00:00 step 1 loss 2.5", rest, "of two clocks the program's counts")
}

// What Slurm's daemons tell stays theirs in a journal, too.
func TestADaemonKeepsItsNameInAJournal(t *testing.T) {
	var lines []string
	for _, l := range inside {
		lines = append(lines, "Nov 23 07:00:01 gpu07 torchrun[311]: "+l)
	}
	rest, _ := FrameOf(lines).Cut("Nov 23 07:00:01 gpu07 slurmstepd[9]: error: Detected 1 oom_kill event in StepId=4.0")
	require.True(t, strings.HasSuffix(rest, "Z slurmstepd: error: Detected 1 oom_kill event in StepId=4.0"), rest)
}

// A prefix that a program writes before its own lines is not a frame.
func TestNoFrame(t *testing.T) {
	again := func(lines ...string) (all []string) {
		for range 6 {
			all = append(all, lines...)
		}
		return all
	}
	for name, lines := range map[string][]string{
		"a logger's time":            again("2026-11-23 07:00:00 INFO loading", "2026-11-23 07:00:01 WARNING slow"),
		"a logger's levels, aligned": again("2026-11-23 07:00:00    INFO loading", "2026-11-23 07:00:01 WARNING slow"),
		"a logger's name":            again("INFO:train: loading", "INFO:train: saving"),
		"glog":                       again("I1123 07:00:00.1 4711 a.cc:3] loading", "I1123 07:00:01.1 4711 a.cc:4] saving"),
		"how long it took":           again("load 07:00:01 of it", "save 07:00:02   of it", "wait 07:00:03 "),
		"a tracker's name":           again("wandb: Run history:", "wandb:   loss 2.5"),
		"Slurm's name":               again("slurmstepd: error: a", "slurmstepd: error: b"),
		"a plugin's, in Slurm's":     again("slurmstepd: error: pyxis: a", "slurmstepd: error: pyxis:     tar: b"),
		"srun's labels":              again("0: loading", "0: ", "1: loading"),
		"torchrun's labels":          again("[default0]:loading", "[default0]:", "[default0]:  File"),
		"PyTorch's rank":             again("[rank3]: Traceback (most recent call last):", "[rank3]:   File \"a.py\", line 3", "[rank3]: "),
		"pdsh's node":                again("node07: loading", "node07: ", "node07:   x"),
		"steps in a table":           {"1 2.5", "2 2.4", "3 2.3", "4 2.2", "5 2.1"},
		"steps that are counted":     {"1: 2.5", "2: 2.4", "3: 2.3", "4: 2.2", "5: 2.1"},
		"few lines":                  {"> a", "> ", ">   b"},
		"nothing":                    nil,
	} {
		t.Run(name, func(t *testing.T) {
			f := FrameOf(lines)
			require.False(t, f.Framed(), "%+v", f)
			for _, l := range lines {
				rest, host := f.Cut(l)
				require.Equal(t, l, rest)
				require.Empty(t, host)
			}
		})
	}
}
