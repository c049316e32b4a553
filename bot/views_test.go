package bot

import (
	"encoding/json"
	"flag"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/slack-go/slack"
	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/bot/answer"
	"github.com/megatron-ops/megatron-ops/bot/card"
	"github.com/megatron-ops/megatron-ops/bot/form"
	"github.com/megatron-ops/megatron-ops/bot/help"
	"github.com/megatron-ops/megatron-ops/bot/incoming"
	"github.com/megatron-ops/megatron-ops/bot/jobnews"
	"github.com/megatron-ops/megatron-ops/bot/reply"
	"github.com/megatron-ops/megatron-ops/bot/slacktest"
	"github.com/megatron-ops/megatron-ops/bot/typed"
	"github.com/megatron-ops/megatron-ops/bot/wording"
	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/ops/joblogs"
	"github.com/megatron-ops/megatron-ops/internal/view"
	"github.com/megatron-ops/megatron-ops/knowledge/recipes"
	"github.com/megatron-ops/megatron-ops/knowledge/rules"
	"github.com/megatron-ops/megatron-ops/slurm"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/logfile"
	"github.com/megatron-ops/megatron-ops/slurm/metrics"
)

var update = flag.Bool("update", false, "write the golden files")

var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// A drawn view is what a person sees in one place.
type drawn struct {
	name string
	on   slacktest.Surface
	json []byte // blocks of a message, or a whole view
}

// mainViews draws the views that people see most, by the code that draws them in service.
func mainViews(t testing.TB, l lang.Lang) []drawn {
	t.Helper()
	person := &ops.Call{Service: &ops.Service{Default: "slurm", Now: func() time.Time { return noon }}, Who: ops.Caller{User: "ada"}, Lang: l}
	message := func(name string, bs []slack.Block) drawn { return drawn{name, slacktest.InMessage, raw(t, bs)} }
	asView := func(name string, on slacktest.Surface, v any) drawn {
		j, err := json.Marshal(v)
		require.NoError(t, err)
		return drawn{name, on, j}
	}
	_, running := card.Draw(sampleCard(slurm.Running, l), l, true)
	_, failed := card.Draw(sampleCard(slurm.Failed, l), l, true)
	_, done := card.Draw(sampleCard(slurm.Completed, l), l, true)
	_, waiting := card.Draw(sampleCard(slurm.Pending, l), l, true)
	diagnosis, err := diagnose.Run(t.Context(), logOf(t), diagnose.Context{JobState: "FAILED"})
	require.NoError(t, err)
	asked := ops.Approval{
		ID: "ID", Op: "submit", Who: ops.Caller{Surface: ops.MCPHTTP, ID: "nightly", User: "ada", Agent: "claude-code"},
		Why: lang.Text{EN: "it may use 1536 GPU hours, more than 512", ZH: "可能使用 1536 GPU 小时，超过 512"}.In(l),
		Shown: []view.Section{{
			Text: lang.Text{EN: "submit \"gpt-8b\": 8 nodes × 8 GPUs × 1-00:00:00 = 1536 GPU hours", ZH: "submit \"gpt-8b\"：8 个节点 × 8 张 GPU × 1-00:00:00 = 1536 GPU 小时"}.In(l),
			Code: "#!/bin/bash\n#SBATCH --nodes=8\n#SBATCH --time=1-00:00:00\n",
		}},
	}
	ask := view.Doc{
		Title: lang.Text{EN: "CUDA_DEVICE_MAX_CONNECTIONS=1", ZH: "CUDA_DEVICE_MAX_CONNECTIONS=1"}.In(l),
		Sections: []view.Section{
			{Text: lang.Text{EN: "Hopper with tensor parallel size above 1: communication must be queued before the kernels that hide it.", ZH: "Hopper 且张量并行大于 1：通信必须先于掩盖它的计算核函数入队。"}.In(l)},
			{Heading: lang.Text{EN: "Sources", ZH: "来源"}.In(l), Items: []string{"run-on-slurm https://docs.nvidia.com/megatron-core/"}},
		},
		Next: []string{"constants --tp 4"},
	}
	return []drawn{
		message("help", help.Tasks(person)),
		message("list", sampleList(l)),
		message("error", answer.Blocks(answer.Error(&ops.Error{Code: ops.BadInput, Field: "nodes", Message: lang.Text{EN: "-1 is negative", ZH: "-1 是负数"}, Fix: lang.Text{EN: "a number of 1 or more", ZH: "大于等于 1 的数"}}, l), l)),
		message("question", append(answer.Blocks(view.Doc{Title: textConfirm.In(l), Tone: view.Warn, Sections: []view.Section{{Text: "4711 gpt-8b"}}}, l), yesNo("ID", l, true))),
		message("answer", append(answer.Blocks(ask, l), feedback("ask", l))),
		{"card-waiting", slacktest.InMessage, waiting},
		{"card-running", slacktest.InMessage, running},
		{"card-failed", slacktest.InMessage, failed},
		message("diagnosis", append(answer.Blocks(wording.Diagnosis(joblogs.DiagnoseOut{Report: diagnosis}, l), l), feedback("diagnose", l))),
		{"card-done", slacktest.InMessage, done},
		message("approval", append(answer.Blocks(agentDoc(asked, l), l), requestRow(asked, l)...)),
		asView("form", slacktest.InModal, form.View(sampleForm(l), l)),
		asView("paste", slacktest.InModal, form.PasteView("{}", l)),
		asView("checking", slacktest.InModal, form.CheckingView("gpt-8b", "{}", l)),
		asView("confirm", slacktest.InModal, form.ConfirmView(sampleSummary(l), "ID", l)),
		asView("home", slacktest.InHome, slack.HomeTabViewRequest{Type: slack.VTHomeTab, Blocks: slack.Blocks{BlockSet: sampleHome(t, l)}}),
	}
}

// sampleForm is a form that was started from a recipe and has been checked.
func sampleForm(l lang.Lang) form.State {
	v := form.VerdictOf(l, nil, []rules.Problem{
		{Rule: "time", Severity: rules.Warning, Field: "time", Message: lang.Text{EN: "a reservation begins in 3 h 20 min: with 4 h it waits for its end", ZH: "3 小时 20 分钟后有预留开始：按 4 小时申请要等它结束"}.In(l), Fix: "time: 3:00:00"},
		{Rule: "tp", Severity: rules.Error, Field: "--tensor-model-parallel-size", Message: lang.Text{EN: "3 does not divide 32 attention heads", ZH: "3 不能整除 32 个注意力头"}.In(l), Fix: "--tensor-model-parallel-size 4"},
	})
	v.Summary = []string{"2 × 8 GPUs · 64 · <!date^1795197600^{time}|18:00>"}
	return form.State{
		Values:  map[string]string{"name": "llama3-8b", "worktree": "/lustre/ada/Megatron-LM", "partition": "gpu", "gpu": "h100", "nodes": "2", "time": "4:00:00", "preset": "debug-nccl", "args": "--num-layers 32 --tensor-model-parallel-size 3"},
		Choices: map[string][]string{"partition": {"dev", "gpu"}, "account": {"research"}, "qos": {"normal", "high"}, "gpu": gpuKinds, "preset": presetNames()},
		Runs:    []form.Choice{{Value: "run:slurm/4711", Label: "gpt-8b · 4711"}}, Recipes: recipes.Names(), Paste: true,
		Verdict: v, Meta: `{"channel":"C1"}`, Gen: 1,
	}
}

// sampleSummary is a submission that a person is to confirm.
func sampleSummary(l lang.Lang) form.Summary {
	return form.Summary{
		Name: "gpt-8b", Cluster: "slurm", Headline: lang.Text{EN: "submit \"gpt-8b\": 2 nodes × 8 GPUs × 04:00:00 = 64 GPU hours", ZH: "submit \"gpt-8b\"：2 个节点 × 8 张 GPU × 04:00:00 = 64 GPU 小时"}.In(l),
		Partition: "gpu", Account: "research", QOS: "normal", Start: noon.Add(95 * time.Minute), Memory: fmt.Sprintf(textMemoryOf.In(l), 61.0, 79.0, 55.0, 68.0),
		Warnings: []string{lang.Text{EN: "time: no time limit", ZH: "time：没有设置时间上限"}.In(l)},
		Since:    "4633", Changes: []string{"args.--context-parallel-size: 1 → 2", "time: 2:00:00 → 4:00:00"},
		Script: "#!/bin/bash\n#SBATCH --nodes=2\n", Digest: "cbea63f3a1d24e6b", Approval: lang.Text{EN: "more than 512 GPU hours", ZH: "超过 512 GPU 小时"}.In(l),
	}
}

// sampleList is the second page of a list of many jobs.
func sampleList(l lang.Lang) []slack.Block {
	var jobs []slurm.Job
	for i := range 24 {
		j := sampleCard([]slurm.State{slurm.Running, slurm.Pending, slurm.Failed, slurm.Completed}[i%4], l).News.Job
		j.ID = slurm.JobID(fmt.Sprint(4730 - i))
		jobs = append(jobs, j)
	}
	_, bs := (&Bot{news: &jobnews.Notifier{}}).listBlocks(jobs, typed.Call{Op: "list", Words: []string{"--all"}, Page: 2}, l)
	return reply.JoinRows(bs, shareRow(incoming.Ask{Channel: "C1", Text: "list --all --page 2"}, typed.Call{}, l))
}

// logOf returns the log of a run whose rank 3 ran out of GPU memory.
func logOf(t testing.TB) logfile.Source {
	t.Helper()
	src, err := logfile.Read("gpt-4711.out", strings.NewReader(strings.Join([]string{
		" [2026-11-20 12:00:01] iteration       40/     100 | consumed samples:         2560 | elapsed time per iteration (ms): 1234.5 | lm loss: 2.345678E+00 |",
		"[rank3]: Traceback (most recent call last):",
		`[rank3]:   File "/w/megatron/core/tensor_parallel/layers.py", line 812, in forward`,
		"[rank3]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 3 has a total capacity of 79.11 GiB of which 1.00 GiB is free.",
		"srun: error: gpu-01: task 0: Exited with exit code 1", "",
	}, "\n")))
	require.NoError(t, err)
	return src
}

// sampleCurve returns a falling loss curve.
func sampleCurve() (ps []metrics.Point) {
	for i := range 16 {
		ps = append(ps, metrics.Point{N: 80 * i, V: 2.1 + 8.4/float64(1+i*i/3)})
	}
	return ps
}

func sampleCard(state slurm.State, l lang.Lang) card.Card {
	loss, speed, limit, exit := 2.3456, 412.5, int64(86400), "1:0"
	n := card.News{
		Job: slurm.Job{
			ID: "4711", Cluster: "slurm", Name: "gpt-8b", User: "ada", Partition: "gpu", State: state, Nodes: []string{"gpu-01", "gpu-02"},
			Account: "research", GPUs: 16, ElapsedS: 5025, TimeLimitS: &limit, StartedAt: &noon,
		},
		Iteration: 1200, Iterations: 5000, Loss: (*card.Number)(&loss), TFLOPs: &speed, SecondsEach: 1.92, ETA: 4 * time.Hour,
		Checkpoint: 1000, CheckpointAt: noon, LineAt: noon.Add(83 * time.Minute), Curve: sampleCurve(),
	}
	if state == slurm.Pending {
		start := noon.Add(95 * time.Minute)
		n = card.News{Job: slurm.Job{
			ID: "4711", Cluster: "slurm", Name: "gpt-8b", User: "ada", Partition: "gpu", State: state, Reason: "Priority", NumNodes: 2,
			Account: "research", GPUs: 16, TimeLimitS: &limit, EstStart: &start, SubmittedAt: &noon,
		}, Position: 3, InLine: 17}
	}
	if state == slurm.Failed {
		n.Fix = []string{lang.Text{EN: "--micro-batch-size 2: about 61 of 80 GiB a GPU, by the memory estimate", ZH: "--micro-batch-size 2：按显存估算每卡约 61 / 80 GiB"}.In(l)}
		n.Job.ExitCode = &exit
		n.Class, n.Exclude = "cuda_oom", []string{"gpu-02"}
		n.Why = lang.Text{EN: "GPU out of memory, rank 9 on gpu-02", ZH: "GPU 显存不足，gpu-02 上的 rank 9"}.In(l)
		n.Cause = &view.Doc{Title: n.Why, Tone: view.Bad}
	}
	return card.Card{Places: []card.Place{{Team: "T1", Channel: "C1"}}, Team: "T1", User: "U1", Approver: "U5", News: n}
}

func TestViewsAreWhatTheyWere(t *testing.T) {
	for _, l := range []lang.Lang{lang.EN, lang.ZH} {
		for _, v := range mainViews(t, l) {
			slacktest.SameView(t, filepath.Join("testdata", "views", v.name+"."+string(l)+".json"), v.json, *update)
		}
	}
}

func TestViewsKeepToSlacksLimits(t *testing.T) {
	for _, l := range []lang.Lang{lang.EN, lang.ZH} {
		for _, v := range mainViews(t, l) {
			if v.on == slacktest.InMessage {
				require.Empty(t, slacktest.CheckBlocks(v.json, v.on), "%s %s", v.name, l)
				continue
			}
			require.Empty(t, slacktest.CheckView(v.json), "%s %s", v.name, l)
		}
	}
}

// Slack's own types are checked against every view.
func TestViewsHaveSlacksTypes(t *testing.T) {
	var all []slacktest.Drawn
	for _, l := range []lang.Lang{lang.EN, lang.ZH} {
		for _, v := range mainViews(t, l) {
			all = append(all, slacktest.Drawn{Name: v.name, On: v.on, JSON: v.json})
		}
	}
	slacktest.CheckTypes(t, filepath.Join("..", "tools", "node", "node_modules"), all)
}

func raw(t testing.TB, bs []slack.Block) []byte {
	t.Helper()
	b, err := json.Marshal(slack.Blocks{BlockSet: bs})
	require.NoError(t, err)
	return b
}
