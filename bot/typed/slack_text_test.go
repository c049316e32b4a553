package typed

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestWhatSlackMakesOfTypingIsUndone(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		text  string
		words []string
	}{
		"plain":                   {"status 4711", []string{"status", "4711"}},
		"a long dash":             {"submit —name gpt", []string{"submit", "--name", "gpt"}},
		"a shorter dash":          {"submit –name gpt", []string{"submit", "--name", "gpt"}},
		"a dash alone":            {"submit — --num-layers 24", []string{"submit", "--", "--num-layers", "24"}},
		"a dash in a name":        {"submit --name a—b", []string{"submit", "--name", "a—b"}},
		"one dash and a letter":   {"list -o json", []string{"list", "-o", "json"}},
		"curly quotes":            {"submit --name “my run”", []string{"submit", "--name", "my run"}},
		"Chinese quotes":          {"提交 --name “实验 一”", []string{"提交", "--name", "实验 一"}},
		"an apostrophe":           {"ask why don’t my jobs start", []string{"ask", "why", "don't", "my", "jobs", "start"}},
		"quotes after =":          {`submit --name='a b' --time="1:00:00"`, []string{"submit", "--name=a b", "--time=1:00:00"}},
		"an open quote":           {`ask "what is this`, []string{"ask", "what is this"}},
		"entities":                {"submit --constraint a&amp;b --comment &lt;x&gt;", []string{"submit", "--constraint", "a&b", "--comment", "<x>"}},
		"a web link":              {"ask <http://docs.nvidia.com|docs.nvidia.com> says?", []string{"ask", "docs.nvidia.com", "says?"}},
		"a bare link":             {"ask <https://x.org/y>", []string{"ask", "https://x.org/y"}},
		"a mail link":             {"submit --mail-user <mailto:ada@x.org|ada@x.org>", []string{"submit", "--mail-user", "ada@x.org"}},
		"a broadcast":             {"status <!channel> 4711", []string{"status", "4711"}},
		"line breaks":             {"submit\n  --name gpt \\\n  --nodes 2", []string{"submit", "--name", "gpt", "--nodes", "2"}},
		"a code span":             {"`status 4711`", []string{"status", "4711"}},
		"a code block of words":   {"```status 4711```", []string{"status", "4711"}},
		"a block of joined lines": {"```submit \\\n --nodes 2```", []string{"submit", "--nodes", "2"}},
		"no-break spaces":         {"status\u00a04711\u3000x", []string{"status", "4711", "x"}},
		"full-width flags":        {"status －－cluster a", []string{"status", "--cluster", "a"}},
		"wide digits and letters": {"取消 ４７１１ －－ｃｌｕｓｔｅｒ ａ", []string{"取消", "4711", "--cluster", "a"}},
		"wide punctuation":        {"ask 为什么？", []string{"ask", "为什么？"}},
		"nothing":                 {"  ", nil},
		"an empty value":          {`submit --name ""`, []string{"submit", "--name", ""}},
	} {
		require.Equal(t, c.words, Read(c.text).Words, name)
	}
}

func TestAJobsNumberMayBeWide(t *testing.T) {
	t.Parallel()
	name, id, ok := AboutJob("作业４７１１怎么了？")
	require.True(t, ok)
	require.Equal(t, []string{"diagnose", "4711"}, []string{name, id})
	_, ids := JobNumbers("４７１１ 为什么失败了？")
	require.Equal(t, []string{"4711"}, ids)
}

func TestAWishToStartARunIsNoQuestion(t *testing.T) {
	t.Parallel()
	for text, wish := range map[string]bool{
		"train llama3-8b": true, "can you run llama3-8b on 2 nodes?": true, "I need to start llama3-8b": true, "我需要训练 llama3-8b": true, "能不能帮我跑一下 llama3-8b？": true,
		"train llama3-8b needs how much memory?": false, "launch of llama3-8b fails with an NCCL error": false, "how do I train llama3-8b?": false,
		"训练 llama3-8b 为什么慢": false, "启动 llama3-8b 需要多少显存？": false, "启动 llama3-8b 报错了": false,
	} {
		require.Equal(t, wish, WantsRun(text), text)
	}
}

func TestABlockOfSeveralLinesIsKeptWhole(t *testing.T) {
	t.Parallel()
	got := Read("submit ```yaml\nname: a &amp; b\nnodes: 2\n``` --yes")
	require.Equal(t, []string{"submit", "--yes"}, got.Words)
	require.Equal(t, []string{"name: a & b\nnodes: 2"}, got.Blocks)
}

func TestAQuestionIsTakenAsItWasTyped(t *testing.T) {
	t.Parallel()
	require.Equal(t, `what does "don't" mean -- here?`, Read(`ask what does "don't" mean -- here?`).Rest)
}

func TestCommandsHaveOtherNames(t *testing.T) {
	t.Parallel()
	for word, name := range map[string]string{
		"STATUS": "status", "squeue": "queue", "kill": "cancel", "提交": "submit", "诊断": "diagnose", "日志": "logs", "帮助": "help", "/status": "status", "help:": "help",
		"指标": "metrics", "分区": "partitions", "优先级": "priority", "显存": "memory", "对比": "compare", "试跑": "smoke", "检查脚本": "lint",
	} {
		got, ok := Resolve(word)
		require.True(t, ok, word)
		require.Equal(t, name, got, word)
	}
	_, ok := Resolve("frobnicate")
	require.False(t, ok)
	require.Equal(t, []string{"状态", "4711", "x"}, Unglue([]string{"状态4711", "x"}))
	require.Equal(t, []string{"你觉得4711怎样"}, Unglue([]string{"你觉得4711怎样"}))
}

func TestTyposFindTheirCommand(t *testing.T) {
	t.Parallel()
	for typo, name := range map[string]string{"stauts": "status", "sumbit": "submit", "diagnos": "diagnose", "cancle": "cancel", "lsit": "list", "hlep": "help"} {
		require.Contains(t, DidYouMean(typo), name, typo)
	}
	require.Empty(t, DidYouMean("photosynthesis"))
}

func TestFlagsOfTheProgramAreNotOurs(t *testing.T) {
	t.Parallel()
	rest, f := TakeFlags([]string{"submit", "--share", "--cluster", "a", "--yes", "--", "--share", "--yes", "-o", "x"})
	require.Equal(t, []string{"submit", "--", "--share", "--yes", "-o", "x"}, rest)
	require.True(t, f.Share && f.Yes)
	require.Equal(t, "a", f.Cluster)
}

// A value in a form is typed on the same keyboard as a sentence, and holds no sentence.
func TestAValuesWidePunctuationIsNarrow(t *testing.T) {
	t.Parallel()
	require.Equal(t, "1:00:00 ~ 实验。一!", NarrowValue("１：００：００ ～ 实验。一！"))
	require.Equal(t, "1：00", Narrow("１：００"))
}

func FuzzTypingNeverBreaksAnything(f *testing.F) {
	for _, s := range []string{"a “b c” —d", "```x\ny```", "<http://a|b> &lt;", `"'`, "`", "\\\n"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		for _, w := range Read(s).Words {
			require.NotContains(t, w, "\u200b")
		}
	})
}
