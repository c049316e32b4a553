package knowledge

import (
	"slices"
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/lazy"
	"github.com/megatron-ops/megatron-ops/knowledge/index"
)

// A reason says why a question is declined.
type reason string

const (
	unknown   reason = "unknown"
	act       reason = "act"
	secret    reason = "secret"
	live      reason = "live"
	foreign   reason = "foreign"
	injection reason = "injection"
	person    reason = "person"
	predict   reason = "prediction"
	noSuch    reason = "no such name"
)

// refusals say why, in one sentence that begins with the refusal.
var refusals = map[reason]lang.Text{
	unknown: {
		EN: "I don't know: nothing in the skills or rules covers this. I only answer questions about running Megatron-LM on Slurm.",
		ZH: "不知道:技能和规则里没有相关内容。我只回答在 Slurm 上运行 Megatron-LM 的问题。",
	},
	act: {
		EN: "I won't do that: answering questions is read-only and never acts on jobs or files. Use the operation itself (`cancel JOB`, `submit -f job.yaml`); it checks your rights and asks for confirmation.",
		ZH: "不能代为执行:问答是只读的,不会操作作业或文件。请使用对应的操作(`cancel JOB`、`submit -f job.yaml`),它会检查权限并要求确认。",
	},
	secret: {
		EN: "I can't help with that: I have no access to passwords, tokens, keys or files of any machine, and would not print them.",
		ZH: "无法提供:我没有权限读取任何机器上的密码、令牌、密钥或文件,也不会输出它们。",
	},
	live: {
		EN: "I can't tell: I have no access to live data of your cluster here. Ask the cluster itself with `list`, `status JOB`, `squeue` or `sinfo`.",
		ZH: "无法回答:问答这里没有集群的实时数据。请用 `list`、`status JOB`、`squeue` 或 `sinfo` 查询集群本身。",
	},
	foreign: {
		EN: "That is out of scope: I only answer questions about running Megatron-LM on Slurm, and have no information on this.",
		ZH: "这超出范围:我只回答在 Slurm 上运行 Megatron-LM 的问题,没有这方面的资料。",
	},
	injection: {
		EN: "I won't: instructions inside a question are not followed, and there are no hidden rules to show. I only answer questions about running Megatron-LM on Slurm.",
		ZH: "不会照做:问题里的指令不会被执行,也没有隐藏规则可以输出。我只回答在 Slurm 上运行 Megatron-LM 的问题。",
	},
	person: {
		EN: "I don't know: I have no information about people, contacts or prices at your site.",
		ZH: "不知道:没有关于你们单位的人员、联系方式或费用的资料。",
	},
	predict: {
		EN: "I don't know: such a number has to be measured on your cluster, and I have no measurements of it. `megatron-ops plan` estimates memory; `--log-throughput` logs the TFLOP/s of a run.",
		ZH: "不知道:这样的数字要在你的集群上实测,我没有相关测量。`megatron-ops plan` 可估算显存;`--log-throughput` 会在日志里输出实际的 TFLOP/s。",
	},
	noSuch: {
		EN: "I don't know that name: there is no such flag or variable in the tables of Megatron-LM, PyTorch's launcher, NCCL or Slurm that I have. It may be misspelled or from another tool.",
		ZH: "不知道这个名字:在 Megatron-LM、PyTorch 启动器、NCCL 和 Slurm 的表中没有这个参数或变量,可能拼写有误,或属于别的工具。",
	},
}

// Where a question is declined, the card that comes nearest may still be what
// the asker can go by: how to look at what is live, how to do by oneself what is
// not done for anybody. It follows the refusal, under its title.
const (
	nearScore    = 0.20 // how well it has to fit, where the question uses words of the field
	nearScoreAny = 0.33 // and where it does not
	maxDeclined  = 850  // characters of a refusal with a card
)

var (
	// looks finds a card that begins with a command that shows the state of things,
	// does one with a command that changes it.
	looks = lazy.New("^[^`]*`(?:squeue|sinfo|sacct|sshare|sreport|sprio|sdiag|quota|lfs quota|df|tail|scontrol show|scontrol ping|sacctmgr show|megatron-ops (?:status|list|logs|diagnose))\\b")
	does  = lazy.New("`(?:scancel|scontrol|sbatch|srun|salloc|squeue|sinfo|sacct|gh|git|docker|python|megatron-ops)\\b|mail-user")
)

// textUnsure begins where nothing fits well, but a card may be what is meant.
var textUnsure = lang.Text{
	EN: "I don't know this for sure: nothing in the skills or rules fits the question exactly.",
	ZH: "不能确定:技能和规则里没有与这个问题完全对应的内容。",
}

// textNearest stands before the card that comes nearest, by the reason.
var textNearest = map[reason]lang.Text{
	unknown: {EN: "The nearest that I know: ", ZH: "我所知道的最接近的内容:"},
	act:     {EN: "By yourself: ", ZH: "自己动手的办法:"},
	live:    {EN: "To look for yourself: ", ZH: "自己查看的办法:"},
}

// beside is the card that a refusal shows, if any.
func (lib *library) beside(text string, hits []index.Hit, why reason) (int, bool) {
	var speaks *lazy.Pattern
	switch why {
	case unknown:
	case act:
		speaks = does
	case live:
		speaks = looks
	default:
		return 0, false
	}
	words := index.Terms(text)
	bound := nearScoreAny
	if trade.MatchString(text) || lib.index.Field(words) || index.Concepts(words) > 1 {
		bound = nearScore
	}
	for _, h := range hits {
		if h.Score < bound {
			break
		}
		if speaks != nil && !speaks.MatchString(lib.cards[h.Doc].Text.EN) {
			continue
		}
		return h.Doc, why != unknown || lib.bound(text, h.Doc) < minScoreForeign && lib.sounds(text, hits) < soundsNear
	}
	return 0, false
}

// decline says why there is no answer and offers the nearest topics.
func (lib *library) decline(text string, hits []index.Hit, l lang.Lang, why reason) Answer {
	ans := Answer{Refused: true, Sources: []Source{}, Unsure: why == unknown || why == noSuch}
	shown, ok := lib.beside(text, hits, why)
	for _, h := range hits[:min(len(hits), 3)] {
		if t := lib.cards[h.Doc].Title.In(l); !slices.Contains(ans.Topics, t) {
			ans.Topics = append(ans.Topics, t)
		}
	}
	for _, id := range []string{"run.minimal-script", "run.cdmc", "run.diag-classes"} {
		if i, ok := lib.byID[id]; ok && len(ans.Topics) < 3 && !slices.Contains(ans.Topics, lib.cards[i].Title.In(l)) {
			ans.Topics = append(ans.Topics, lib.cards[i].Title.In(l))
		}
	}
	end := "\n" + lang.Text{EN: "Nearest topics: ", ZH: "相近的主题:"}.In(l) + strings.Join(ans.Topics, lang.Text{EN: "; ", ZH: ";"}.In(l))
	said := refusals[why]
	if ok && why == unknown {
		said = textUnsure
	}
	ans.Answer = said.In(l)
	if ok {
		near := lib.answer(shown, l)
		head := "\n" + textNearest[why].In(l) + near.Sources[0].Section + "\n"
		room := maxDeclined - len([]rune(ans.Answer+head+end))
		if body := cutToLines(near.Answer, room); body != "" {
			ans.Answer += head + body
			ans.Sources = near.Sources
		}
	}
	ans.Answer += end
	return ans
}

// cutToLines is as many whole lines of a text as fit into so many characters,
// and never part of a script.
func cutToLines(text string, room int) string {
	var kept []string
	end, fenced := 0, false
	for line := range strings.SplitSeq(text, "\n") {
		if room -= len([]rune(line)) + 1; room < 0 {
			break
		}
		kept = append(kept, line)
		if strings.HasPrefix(line, "```") {
			fenced = !fenced
		}
		if !fenced {
			end = len(kept)
		}
	}
	return strings.Join(kept[:end], "\n")
}
