package bot

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/bot/typed"
	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/ops/operations"
	"github.com/megatron-ops/megatron-ops/internal/view"
)

// A text that starts with a command's word is the command where the rest fits the command, has
// flags or is one word, and otherwise a question.
func TestWhatReadsAsACommand(t *testing.T) {
	for line, want := range map[string]bool{
		"status 4711": true, "status 4711 4712 4713": false, "status 4711 4712 --nodez": true, "list the constants for H100": false, "list": true,
		"list everything": true, "memory of my model": false, "settings lang zh": true, "settings are where in here": false, "help me please now": false,
	} {
		words := strings.Fields(line)
		require.Equal(t, want, readsAsCommand(words[0], words[1:], typed.Text{}), line)
	}
}

// These are the operations about one job, and whether they require the job.
func TestWhichOperationsAreAboutAJob(t *testing.T) {
	for name, want := range map[string]string{"status": "job", "logs": "job", "diagnose": "job-or-path", "list": "", "compare": "", "nodes": ""} {
		op, ok := operations.Lookup(name)
		require.True(t, ok, name)
		arg, _ := jobArgument(op)
		require.Equal(t, want, arg, name)
	}
}

// partly is what an operation found before it failed.
type partly struct{ Found string }

func (p partly) View(lang.Lang) view.Doc {
	return view.Doc{Sections: []view.Section{{Text: p.Found}}, Next: []string{"logs 1"}}
}

// A failure shows what was found before it; a refusal shows nothing else.
func TestAFailureShowsWhatWasFound(t *testing.T) {
	for _, c := range []struct {
		code   ops.Code
		result any
		want   bool
	}{
		{ops.Failed, partly{"three of four"}, true},
		{ops.NotAllowed, partly{"three of four"}, false},
		{ops.Failed, partly{}, false},
		{ops.Failed, nil, false},
	} {
		d := (&Bot{}).failed(&ops.Error{Code: c.code, Message: lang.Same("the node is gone")}, c.result, &ops.Call{})
		shown := view.Markdown(d)
		require.Contains(t, shown, "the node is gone")
		require.Equal(t, c.want, strings.Contains(shown, "three of four"))
		require.Equal(t, c.want, len(d.Next) == 1)
	}
}
