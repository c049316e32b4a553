package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
)

// terminal returns a terminal on which keys have been typed.
func terminal(t *testing.T, keys string) *os.File {
	near, _ := terminals(t, keys)
	return near
}

// terminals returns a terminal's two ends: what is written to near appears at far.
func terminals(t *testing.T, keys string) (near, far *os.File) {
	t.Helper()
	far, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	require.NoError(t, err)
	t.Cleanup(func() { _ = far.Close() })
	require.NoError(t, unix.IoctlSetPointerInt(int(far.Fd()), unix.TIOCSPTLCK, 0))
	n, err := unix.IoctlGetInt(int(far.Fd()), unix.TIOCGPTN)
	require.NoError(t, err)
	near, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	require.NoError(t, err)
	t.Cleanup(func() { _ = near.Close() })
	_, err = far.WriteString(keys)
	require.NoError(t, err)
	return near, far
}

// The notes of init are no wider than its terminal.
func TestANoteFitsTheTerminal(t *testing.T) {
	near, far := terminals(t, "")
	require.NoError(t, unix.IoctlSetWinsize(int(near.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Col: 40, Row: 24}))
	sh := &shell{streams: streams{in: near, out: near, err: near}, lang: lang.EN}
	sh.note("container.runtime: ", "nothing here starts containers: pyxis, enroot, apptainer, singularity, docker")
	var said strings.Builder
	for part := make([]byte, 4096); !strings.HasSuffix(said.String(), "docker\r\n"); {
		n, err := far.Read(part)
		require.NoError(t, err)
		said.Write(part[:n])
	}
	lines := strings.Split(strings.TrimSpace(said.String()), "\r\n")
	require.Greater(t, len(lines), 2)
	for _, l := range lines {
		require.LessOrEqual(t, len(l), 40, l)
	}
	require.Equal(t, "container.runtime: nothing here starts", lines[0])
	require.Equal(t, strings.Repeat(" ", len("container.runtime: ")), lines[1][:len("container.runtime: ")])
}

// A yes covers what was shown: if it has changed since, the person is asked again, and
// otherwise nothing is asked twice.
func TestWhatHasChangedSinceItWasShownIsAskedAboutAgain(t *testing.T) {
	for name, tt := range map[string]struct {
		keys  string
		shown []string // before each look
		asked []string // the digests in the order of the questions
		done  bool
	}{
		"it stays":           {"y\n", []string{"a", "a"}, []string{"a"}, true},
		"it changes once":    {"y\ny\n", []string{"a", "b", "b"}, []string{"a", "b"}, true},
		"no to the second":   {"y\nn\n", []string{"a", "b"}, []string{"a", "b"}, false},
		"no":                 {"n\n", []string{"a"}, []string{"a"}, false},
		"nothing is named":   {"y\n", []string{"", ""}, []string{""}, true},
		"it never says done": {"y\n", []string{"", "again"}, []string{""}, false},
	} {
		t.Run(name, func(t *testing.T) {
			var looks int
			done := false
			op := ops.Define(ops.Op{Name: "bring", Effect: ops.Read, Summary: lang.Same("x"), Help: lang.Same("x")},
				func(_ context.Context, c *ops.Call, _ struct{}) (string, error) {
					now := tt.shown[looks]
					looks++
					if c.Confirmed && c.Shown == now {
						done = true
						return "", nil
					}
					e := &ops.Error{Code: ops.NotAllowed, Confirm: true, Message: lang.Same("brings <" + now + ">"), Shown: now}
					if now == "again" {
						e.Shown = ""
					}
					return "", e
				})
			var said strings.Builder
			sh := &shell{streams: streams{in: terminal(t, tt.keys), out: &said, err: &said}, json: false, lang: lang.EN}
			call := &ops.Call{Service: &ops.Service{}, Who: ops.Caller{Surface: ops.Shell, User: "alice"}}
			err := sh.answers(t.Context(), call, op, []any{&struct{}{}}, false)
			if strings.HasSuffix(tt.keys, "n\n") {
				require.ErrorContains(t, err, "nothing was done")
			}
			require.Equal(t, tt.done, done, said.String())
			require.Equal(t, len(tt.asked), strings.Count(said.String(), "Go on? [y/N]"), said.String())
			for _, digest := range tt.asked {
				require.Contains(t, said.String(), "brings <"+digest+">. Go on?")
			}
		})
	}
}

// A terminal that understands no escape sequences gets none.
func TestADumbTerminalGetsPlainText(t *testing.T) {
	t.Setenv("NO_COLOR", "")
	for term, escapes := range map[string]bool{"dumb": false, "xterm": true} {
		t.Setenv("TERM", term)
		near, far := terminals(t, "")
		require.Equal(t, escapes, canDraw(near))
		go func() {
			_ = run(t.Context(), []string{"explain", "cuda_oom"}, streams{in: near, out: near, err: near})
			fmt.Fprint(near, "\nend")
		}()
		var said strings.Builder
		for part := make([]byte, 4096); !strings.HasSuffix(said.String(), "end"); {
			n, err := far.Read(part)
			require.NoError(t, err)
			said.Write(part[:n])
		}
		require.Equal(t, escapes, strings.Contains(said.String(), "\x1b"), term)
	}
}
