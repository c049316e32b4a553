package help

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/bot/answer"
	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
)

// The tasks are offered with a button where they can be done, and say who one is.
func TestTheTasksAreThoseThatOneCanDo(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		who       ops.Caller
		says      string
		tries     int
		link, set bool
	}{
		"linked":     {ops.Caller{User: "ada"}, "You act as the cluster user", len(helpTasks), false, true},
		"not linked": {ops.Caller{}, "You are not linked to a cluster user yet", 2, true, false},
		"a viewer":   {ops.Caller{User: "ada", ReadOnly: true}, "You may look and ask here, and change nothing.", len(helpTasks), false, false},
	} {
		shown := string(answer.BlocksJSON(Tasks(&ops.Call{Who: c.who})))
		require.Contains(t, shown, c.says, name)
		require.Equal(t, c.tries, strings.Count(shown, "Try it"), name)
		require.Equal(t, c.link, strings.Contains(shown, "Link my account"), name)
		require.Equal(t, c.set, strings.Contains(shown, "Your settings"), name)
		require.Contains(t, shown, ". Type `/megatron`", name)
	}
	require.Contains(t, string(answer.BlocksJSON(Tasks(&ops.Call{Lang: lang.ZH, Who: ops.Caller{User: "ada"}}))), "。输入 `/megatron`")
}

// Every command is explained by its topic; without one, all are listed.
func TestHelpOnATopic(t *testing.T) {
	t.Parallel()
	c := &ops.Call{}
	for topic, title := range map[string]string{
		"": "What you can do now", "all": "What you can do now", "全部": "What you can do now",
		"submit": "/megatron submit", "cancel": "/megatron cancel", "mute": "/megatron mute", "取消": "/megatron cancel", "sumbit": `I do not know the command "sumbit"`,
	} {
		require.Equal(t, title, Doc(c, topic).Title, topic)
	}
	all := Doc(c, "")
	require.Len(t, all.Sections, 3)
	for i, line := range []string{"`status`", "`cancel`", "`subscribe`"} {
		require.Contains(t, strings.Join(all.Sections[i].Items, "\n"), line)
	}
	require.NotContains(t, strings.Join(all.Sections[0].Items, "\n"), "`cancel`")
	here := Doc(&ops.Call{Who: ops.Caller{Surface: ops.Chat}}, "")
	require.Len(t, here.Sections, 3, "at a terminal without what is about Slack")
	require.Contains(t, here.Sections[0].Text, "Type a command or a question")
	own := Doc(c, "subscribe").Sections
	require.Contains(t, own[1].Code, "/megatron subscribe 4711\n/megatron subscribe partition=prod")
	op := Doc(c, "status")
	require.Equal(t, "Example", op.Sections[len(op.Sections)-2].Heading)
	require.True(t, strings.HasPrefix(op.Sections[len(op.Sections)-2].Code, "/megatron "))
	require.NotContains(t, op.Sections[len(op.Sections)-2].Code, "megatron-ops")
	rows := op.Sections[len(op.Sections)-1].Table.Rows
	require.Equal(t, "JOB", rows[0][0])
	require.True(t, strings.HasPrefix(rows[len(rows)-1][0], "--"))
	for _, s := range op.Sections[:len(op.Sections)-2] {
		require.NotEmpty(t, s.Text)
	}
}

// An unknown word is answered with the nearest commands, followed by what was typed after it.
func TestAWordThatIsNoCommand(t *testing.T) {
	t.Parallel()
	near := Unknown("statsu", lang.EN, "4711")
	require.Equal(t, "Did you mean one of these?", near.Sections[0].Text)
	require.Equal(t, "status 4711", near.Next[0])
	require.Equal(t, "help", near.Next[len(near.Next)-1])
	far := Unknown("qqqqqqqqqqqq", lang.EN)
	require.Empty(t, far.Sections)
	require.Equal(t, []string{"help"}, far.Next)
}

// Who would run a job once more chooses between the two commands that do.
func TestAWordForOnceMore(t *testing.T) {
	t.Parallel()
	d, ok := OnceMore([]string{"Retry", "4711"}, lang.EN)
	require.True(t, ok)
	require.Equal(t, []string{"submit --from 4711", "requeue 4711"}, d.Next)
	require.Equal(t, "Run 4711 once more?", d.Title)
	require.Equal(t, "`submit --from 4711` submits it as a new job", d.Sections[0].Items[0])
	d, ok = OnceMore([]string{"retry", "4711", "--nodes", "2"}, lang.EN)
	require.True(t, ok)
	require.Equal(t, []string{"submit --from 4711 --nodes 2"}, d.Next)
	require.Equal(t, `--nodes: there is no command "retry"; requeue has no flag --nodes: requeue takes --yes`, d.Sections[0].Text)
	d, ok = OnceMore([]string{"retry", "4711", "--nodez", "2"}, lang.EN)
	require.True(t, ok)
	require.Empty(t, d.Next)
	require.Contains(t, d.Sections[0].Text, "did you mean --nodes?")
	for _, words := range [][]string{{"retry"}, {"retry", "it"}, {"retry", "4711", "now"}, {"status", "4711"}} {
		_, ok = OnceMore(words, lang.EN)
		require.False(t, ok, words)
	}
}

func TestHelpIsOfferedOnce(t *testing.T) {
	require.Equal(t, []string{"help"}, Unknown("hlep", lang.EN).Next)
	require.Contains(t, Unknown("statsu", lang.EN, "4711").Next, "status 4711")
}
