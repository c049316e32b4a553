package logfile

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func textOf(f *File) string { return string(f.Kept.Head) + string(f.Kept.Tail) }

func TestAFileThatHoldsSeveralIsTakenApart(t *testing.T) {
	for name, c := range map[string]struct {
		log  string
		want map[string]string
	}{
		"tail of two files": {
			"==> logs/rank_0.log <==\nloading\nstep 1\n\n==> logs/rank_1.log <==\nloading\nKeyError: 'a'\n",
			map[string]string{"all.log/logs/rank_0.log": "loading\nstep 1\n", "all.log/logs/rank_1.log": "loading\nKeyError: 'a'\n"},
		},
		"tail -f, which comes back to one": {
			"==> a.out <==\none\n\n==> b.out <==\nfirst\n\n==> a.out <==\ntwo\n",
			map[string]string{"all.log/a.out": "one\ntwo\n", "all.log/b.out": "first\n"},
		},
		"a name that leads outside stays below the file's": {
			"==> ../../etc/x.log <==\none\n",
			map[string]string{"all.log/etc/x.log": "one\n"},
		},
		"grep -r of all lines": {
			"out/rank_0.log:loading\nout/rank_0.log:\nout/rank_0.log:  File \"a.py\"\nout/rank_1.log:loading\nout/rank_1.log:KeyError: 'a'\nout/rank_1.log:end\n",
			map[string]string{"all.log/out/rank_0.log": "loading\n\n  File \"a.py\"\n", "all.log/out/rank_1.log": "loading\nKeyError: 'a'\nend\n"},
		},
		"what a compiler says of places": {
			"src/a.c:12: warning: x\nsrc/a.c:13:   y\nsrc/b.c:1: error: z\nsrc/b.c:2: error: z\nsrc/b.c:3: error: z\n", nil,
		},
		"what shells and warnings say of places": {
			"/var/spool/job6/slurm_script: line 12: activate: No such file\n/w/torch/functional.py:3734: UserWarning: old\n", nil,
		},
		"a heading further below": {"loading\n==> a.log <==\none\n", nil},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "all.log")
			require.NoError(t, os.WriteFile(path, []byte(c.log), 0o644))
			onDisk, err := Open(path)
			require.NoError(t, err)
			piped, err := Read("all.log", strings.NewReader(c.log))
			require.NoError(t, err)
			for _, s := range []Source{onDisk.TakenApart(), piped.TakenApart()} {
				if c.want == nil {
					require.Equal(t, []string{"all.log"}, s.Files())
					continue
				}
				got := map[string]string{}
				for _, f := range s.Logs {
					got[f.Name] = textOf(f)
				}
				require.Equal(t, c.want, got)
			}
		})
	}
}

// A line of a part is reported with its place in the file that people have.
func TestTheLinesOfAPartStayWhereTheyAre(t *testing.T) {
	log := "==> a.out <==\none\n\n==> b.out <==\nfirst\n\n==> a.out <==\ntwo\nthree\n"
	s, err := Read("all.log", strings.NewReader(log))
	require.NoError(t, err)
	require.Equal(t, []string{"all.log"}, s.Files(), "a log is one until it is taken apart")
	lines := strings.Split(log, "\n")
	for _, f := range s.TakenApart().Logs {
		off := int64(0)
		for line := range strings.Lines(textOf(f)) {
			name, no := f.Place(off)
			require.Equal(t, "all.log", name)
			require.Equal(t, strings.TrimSuffix(line, "\n"), lines[no-1])
			off += int64(len(line))
		}
	}
	name, no := s.Logs[0].Place(int64(strings.Index(log, "three")))
	require.Equal(t, "all.log", name)
	require.Equal(t, "three", lines[no-1])
}
