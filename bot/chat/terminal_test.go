package chat_test

import (
	"fmt"
	"io"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/bot"
	"github.com/megatron-ops/megatron-ops/bot/chat"
	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/store"
)

// A person at a terminal is prompted for each line, once, and again below news, which come two
// seconds after a job changed.
func TestAPersonIsPrompted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st, err := store.Open(t.Context(), filepath.Join(t.TempDir(), "state.db"))
		require.NoError(t, err)
		defer st.Close()
		b, err := bot.NewLocal(bot.Config{Store: st.Slack(), Service: &ops.Service{
			Clusters: map[string]ops.Cluster{"bench": newBench()}, Default: "bench", Now: time.Now, Store: func() (*store.Store, error) { return st, nil },
		}})
		require.NoError(t, err)
		in, typed := io.Pipe()
		var out lockedBuffer
		done := make(chan error, 1)
		go func() {
			done <- chat.Run(t.Context(), b.Local("ada", "/", lang.EN), chat.Terminal{In: in, Out: &out, Prompt: "> ", Lang: lang.EN})
		}()
		read := 0
		after := func(d time.Duration) string { // what is new on the screen
			time.Sleep(d)
			synctest.Wait()
			all := out.String()
			defer func() { read = len(all) }()
			return all[read:]
		}
		require.Equal(t, "This is the bot of Slack, at your terminal. Type help, a command or a question; a number presses a button; exit ends.\n> ", after(10*time.Second))
		fmt.Fprintln(typed, "9")
		require.Equal(t, "there is no choice 9 now\n> ", after(10*time.Second))
		fmt.Fprintln(typed, "")
		require.Equal(t, "> ", after(10*time.Second))
		fmt.Fprintln(typed, "```")
		require.Equal(t, "(a code block: end it with ```)\n", after(10*time.Second))
		fmt.Fprintln(typed, "help```")
		require.NotContains(t, after(10*time.Second), "a code block")
		fmt.Fprintln(typed, "submit --yes --name gpt --nodes 2 --gpu h100 --time 1:00:00 --worktree /lustre/m -- "+args)
		require.Contains(t, after(time.Millisecond), "waiting")
		require.Empty(t, after(1900*time.Millisecond))
		require.Regexp(t, `(?s)^\n\S.*running.*\n> $`, after(200*time.Millisecond))
		require.Empty(t, after(2*time.Second))
		require.NoError(t, typed.Close())
		require.NoError(t, <-done)
	})
}
