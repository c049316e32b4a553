package logline_test

import (
	"strings"
	"testing"

	"github.com/megatron-ops/megatron-ops/slurm/diagnose/logline"
	"github.com/stretchr/testify/require"
)

func TestLaunchersPrefixesAreCut(t *testing.T) {
	none := logline.NoTag
	with := func(label, local, rank int, host string) logline.Tag {
		return logline.Tag{Label: label, Local: local, Rank: rank, Host: host}
	}
	for line, want := range map[string]struct {
		tag  logline.Tag
		text string
	}{
		"12: [default3]:[rank99]: KeyError": {with(12, 3, 99, ""), "KeyError"},
		" 3: loading":                       {with(3, -1, -1, ""), "loading"},
		"123456: loading":                   {with(123456, -1, -1, ""), "loading"},
		"1234567: loading":                  {none, "1234567: loading"},
		"3:":                                {with(3, -1, -1, ""), ""},
		"3:loading":                         {none, "3:loading"},
		"3":                                 {none, "3"},
		"1: 2: loading":                     {with(1, -1, -1, ""), "2: loading"},
		"[gpu07:3]:loading":                 {with(-1, 3, -1, "gpu07"), "loading"},
		"[gpu07.site:3]:loading":            {with(-1, 3, -1, "gpu07.site"), "loading"},
		"[dgx-09]: loading":                 {with(-1, -1, -1, "dgx-09"), "loading"},
		"[role3|11]:loading":                {with(-1, -1, 11, ""), "loading"},
		"[role3|x]:loading":                 {none, "[role3|x]:loading"},
		"[1,11]<stdout>:loading":            {with(11, -1, -1, ""), "loading"},
		"[1,2]<stderr>:[default1]:loading":  {with(2, 1, -1, ""), "loading"},
		"[1,11]<stdnone>:loading":           {none, "[1,11]<stdnone>:loading"},
		"[rank3] loading":                   {none, "[rank3] loading"},
		"[3]: loading":                      {none, "[3]: loading"},
		"[a b3]: loading":                   {none, "[a b3]: loading"},
		"(head, rank=0, pid=4773) loading":  {with(-1, -1, 0, ""), "loading"},
		"(Worker pid=4773, ip=10.1.2.3) [rank5]: loading": {with(-1, -1, 5, ""), "loading"},
		"(Worker pid=4773)loading":                        {none, "(Worker pid=4773)loading"},
		"(see page 3) loading":                            {none, "(see page 3) loading"},
		"2026-06-10T08:59:16Z loading":                    {none, "loading"},
		"2026-06-10T08:59:16.125Z: 4: loading":            {with(4, -1, -1, ""), "loading"},
		// ts(1) and awk before the lines of srun --label and torchrun.
		"11-23 04:35:35 3: loading":                  {with(3, -1, -1, ""), "loading"},
		"Nov 23 04:35:35  3: loading":                {with(3, -1, -1, ""), "loading"},
		"[2026-06-10 08:59:16] [default3]:loading":   {with(-1, 3, -1, ""), "loading"},
		"2026-06-10 08:59:16.125 [1,7]<stderr>:load": {with(7, -1, -1, ""), "load"},
		"[08:59:16] 12: [rank5]: loading":            {with(12, -1, 5, ""), "loading"},
		"08:59:16 12: loading":                       {with(12, -1, -1, ""), "loading"},
		"2026-06-10 08:59:16 loading 3: x":           {none, "2026-06-10 08:59:16 loading 3: x"},
		"2026-06-10 08:59:16,125 [INFO] x":           {none, "2026-06-10 08:59:16,125 [INFO] x"},
		"epoch 12:30:45 3: x":                        {none, "epoch 12:30:45 3: x"},
		"08:59:16:3: x":                              {none, "08:59:16:3: x"},
		"08:59 3: x":                                 {none, "08:59 3: x"},
		"2026-06-10T08:59:16 Zoo":                    {none, "2026-06-10T08:59:16 Zoo"},
		"2026-06-10T08:59Z loading":                  {none, "2026-06-10T08:59Z loading"},
		"abcd-06-10T08:59:16Z loading":               {none, "abcd-06-10T08:59:16Z loading"},
		"2026_06-10T08:59:16Z loading":               {none, "2026_06-10T08:59:16Z loading"},
		"2026-06-10_08:59:16Z loading":               {none, "2026-06-10_08:59:16Z loading"},
	} {
		tag, text := logline.CutTag(line)
		require.Equal(t, want.tag, tag, line)
		require.Equal(t, want.text, text, line)
	}
}

func TestANodeBeforeALineIsCut(t *testing.T) {
	for line, want := range map[string]struct {
		rest, host string
		sure, ok   bool
	}{
		"node07: loading":                              {"loading", "node07", false, true},
		"node07.site: [rank3]: loading":                {"[rank3]: loading", "node07.site", true, true},
		"[dgx-09] loading":                             {"loading", "dgx-09", false, true},
		"n1: loading":                                  {"loading", "n1", false, true},
		"10.1.2.3: Traceback (most recent call last):": {"Traceback (most recent call last):", "10.1.2.3", true, true},
		"localhost: loading":                           {"loading", "localhost", false, true},
		"fe80::1: loading":                             {"loading", "fe80::1", false, true},
		"KeyError: loading":                            {"KeyError: loading", "", false, false},
		"3rd: loading":                                 {"3rd: loading", "", false, false},
		"a node7: loading":                             {"a node7: loading", "", false, false},
		"[rank3] loading":                              {"[rank3] loading", "", false, false},
		"n: loading":                                   {"n: loading", "", false, false},
		"loading":                                      {"loading", "", false, false},
		"node" + strings.Repeat("7", 59) + ": too late": {"node" + strings.Repeat("7", 59) + ": too late", "", false, false},
	} {
		rest, host, sure, ok := logline.CutHost(line)
		require.Equal(t, want.ok, ok, line)
		require.Equal(t, []any{want.rest, want.host, want.sure}, []any{rest, host, sure}, line)
	}
}

func TestTheTimeOfSlurmstepdIsCut(t *testing.T) {
	for line, want := range map[string]string{
		"[2026-11-21T00:45:02.072] error: pyxis: x":     "error: pyxis: x",
		"[2026-11-21T00:45:02] error: x":                "error: x",
		"[2026-11-21T00:45:02.072] fatal: x":            "fatal: x",
		"[2026-11-21T00:45:02.072] warning: x":          "",
		"[2026-11-21 00:45:02.072] error: x":            "",
		"[2026/11/21T00:45:02.072] error: x":            "",
		"[2026-13-21T00:45:02.072] error: x":            "",
		"[2026-11-21T00:45:02.072":                      "",
		" 2026-11-21T00:45:02.072] error: x and so on.": "",
	} {
		rest, ok := logline.CutDaemonTime(line)
		require.Equal(t, want != "", ok, line)
		if ok {
			require.Equal(t, want, rest)
		}
	}
}

func TestALineIsShownCleanAndBounded(t *testing.T) {
	require.Equal(t, "a b", logline.Show("a\nb \t"))
	require.Equal(t, strings.Repeat("x ", 599)+"xx", logline.Show(strings.Repeat("x ", 599)+"xx"))
	long := logline.Show(strings.Repeat("显 ", 400))
	require.True(t, strings.HasSuffix(long, "…"))
	require.LessOrEqual(t, len(long), 1203)
	require.NotContains(t, long, "\ufffd")
	require.Equal(t, "rank # of # at # in #", logline.Template("rank 3 of 1,024 at 0x7fab in /w/x.py"))
}

func TestNumbersAndWords(t *testing.T) {
	for s, want := range map[string]int{"0": 0, "123456789": 123456789, "1234567890": -1, "": -1, "1x": -1, "-1": -1, "/1": -1, ":": -1, "90": 90} {
		n, ok := logline.Number(s)
		require.Equal(t, want >= 0, ok, s)
		if ok {
			require.Equal(t, want, n)
		}
	}
	for s, want := range map[string]bool{"azAZ09_-": true, "": false, "a.b": false, "a b": false, "{": false, "`": false, "[": false, "@": false, ":": false, "/": false} {
		require.Equal(t, want, logline.IsWord(s), s)
	}
	for c, want := range map[byte]bool{'0': true, '9': true, '/': false, ':': false} {
		require.Equal(t, want, logline.Digit(c), string(c))
	}
}
