package knowledge

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/internal/lang"
)

// Who asks what a name means is told that, or nothing: what another name means is wrong.
func TestAQuestionAboutANameIsAnsweredWithIt(t *testing.T) {
	t.Parallel()
	for q, id := range map[string]string{
		"what is NCCL_SET_STACK_SIZE":                                "variable.NCCL_SET_STACK_SIZE",
		"what does MaxArraySize in slurm.conf mean":                  "conf.MaxArraySize",
		"slurm.conf 的 PrologFlags 是什么":                               "conf.PrologFlags",
		"what is TRESUsageInMaxNode in sacct":                        "sacct.TRESUsageInMaxNode",
		"what is PriorityLong in squeue --Format":                    "squeue.PriorityLong",
		"what is %M in squeue --format":                              "squeue-letter.%M",
		"job pending with reason MaxGRESRunMinsPerUser, what is it":  "reason.MaxGRESRunMinsPerUser",
		"what does sbatch --mem-update do":                           "option.--mem-update",
		"what does --adlr-autoresume-interval do":                    "flag.--adlr-autoresume-interval",
		"NCCL error: unhandled cuda error":                           "nccl-message.unhandled cuda error",
		"sbatch: error: Partition in DOWN state":                     "slurm-message.Partition in DOWN state",
		"torch.distributed.elastic.rendezvous RendezvousClosedError": "torch-message.RendezvousClosedError",
		"sacct: error: Query result exceeds size limit":              "slurm-message.Query result exceeds size limit",
		"scancel: error: JobID must not be an empty string":          "slurm-message.JobID includes unexpected non-numeric characters",
		"Slurm internal error, contact system administrator":         "slurm-message.Slurm internal error, contact system administrator",
		"Duplicate job step id":                                      "slurm-message.Job step already exists",
		"is OpenMPI needed on slurm":                                 "option.--mpi", // a product's name
		"怎么查自己还能用多少卡 配额是多少":                                          "sb.max-jobs",
	} {
		ans, err := New(Options{}).Ask(t.Context(), Question{Text: q})
		require.NoError(t, err)
		require.NotEmpty(t, ans.Passages, q)
		require.Equal(t, id, ans.Passages[0].id, q)
	}
	for _, q := range []string{"what is NCCL_NO_SUCH_SWITCH", "what does NoSuchSettingAtAll in slurm.conf mean", "what is NoSuchField in squeue --Format"} {
		ans, err := New(Options{}).Ask(t.Context(), Question{Text: q})
		require.NoError(t, err)
		require.True(t, ans.Refused, q)
	}
}

// A question that says more than a name, a pasted message and a product's name are left
// as they are.
func TestOnlyNames(t *testing.T) {
	t.Parallel()
	near := []Passage{{Title: "another"}}
	require.Empty(t, aboutNames("what is NCCL_ALGO", near))
	require.Empty(t, aboutNames("sacct 的 AveRSS", near))
	require.Equal(t, near, aboutNames("error: NCCL_ALGO is unknown", near))
	require.Equal(t, near, aboutNames("OpenLlama from hf to megatron", near))
	require.Equal(t, near, aboutNames("training with NCCL_ALGO became much slower between our two clusters after the update", near))
	asked, rest := namesIn("what is PriorityLong in squeue --Format")
	require.Equal(t, []string{"prioritylong"}, asked, "the option says where it is shown")
	require.NotContains(t, rest, "Format")
	four := append(append([]Passage{}, near...), Passage{Title: "b"}, Passage{Title: "c"}, Passage{Title: "NCCL_ALGO"})
	require.Equal(t, four[3:], aboutNames("what is NCCL_ALGO", four))
}

// A misspelt name is read as the one that is meant, and the answer says so first.
func TestAMisspeltNameIsReadAsTheOneMeant(t *testing.T) {
	t.Parallel()
	for q, want := range map[string][2]string{
		"what does NCCL_IB_TIMEOT do": {"I do not know `NCCL_IB_TIMEOT`; this is about `NCCL_IB_TIMEOUT`.", "variable.NCCL_IB_TIMEOUT"},
		"NCCL_IB_TIMEOT 是什么":          {"不知道 `NCCL_IB_TIMEOT`；以下是 `NCCL_IB_TIMEOUT` 的内容。", "variable.NCCL_IB_TIMEOUT"},
		"what does --gpus-per-tsk do": {"I do not know `--gpus-per-tsk`; this is about `--gpus-per-task`.", ""},
	} {
		ans, err := New(Options{}).Ask(t.Context(), Question{Text: q})
		require.NoError(t, err)
		first, _, _ := strings.Cut(ans.Answer, "\n")
		require.Equal(t, want[0], first)
		require.NotEmpty(t, ans.Passages, q)
		if want[1] != "" {
			require.Equal(t, want[1], ans.Passages[0].id, q)
		}
		require.Equal(t, want[0], ans.View(lang.EN).Sections[0].Text, "every surface shows it first")
	}
	for q, want := range map[string]string{
		"what is --mem-per-xpu":       "I do not know `--mem-per-xpu`. Did you mean `--mem-per-cpu` or `--mem-per-gpu`?",
		"--mem-per-xpu 是什么":           "不知道 `--mem-per-xpu`。是不是 `--mem-per-cpu` 或 `--mem-per-gpu`？",
		"what is NCCL_NO_SUCH_SWITCH": "I do not know `NCCL_NO_SUCH_SWITCH`: ",
	} {
		ans, err := New(Options{}).Ask(t.Context(), Question{Text: q})
		require.NoError(t, err)
		require.True(t, ans.Refused, q)
		require.True(t, strings.HasPrefix(ans.Answer, want), ans.Answer)
	}
	for q, want := range map[string]string{
		"set --num-layres 32, how does --num-layres interact with pp": "I do not know `--num-layres`; this is about `--num-layers`.\nPassages", // once
		"LLAMA_70B on 2 nodes with 8 gpus, how many ranks":            "16: WORLD_SIZE",                                                        // no name, and answered
		"write me a poem about NCCL_IB_TIMEOT":                        "I have nothing",                                                        // redirected
		"please cancel job 12 with --frce":                            "I won't",                                                               // redirected
	} {
		ans, err := New(Options{}).Ask(t.Context(), Question{Text: q})
		require.NoError(t, err)
		require.True(t, strings.HasPrefix(strings.ReplaceAll(ans.Answer, "\n\n", "\n"), want), ans.Answer)
	}
	same, err := New(Options{}).Ask(t.Context(), Question{Text: "error: unrecognized arguments: --nun-layers"})
	require.NoError(t, err)
	require.NotContains(t, same.Answer, "I do not know", "a pasted message is left as it is")
}

// A question that only names the variables of a message does not quote it.
func TestNamingAVariableIsNotQuotingAMessage(t *testing.T) {
	t.Parallel()
	for _, q := range []string{
		"setting PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True to avoid OOM",
		"设置 PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True 能避免 OOM 吗",
	} {
		ans, err := New(Options{}).Ask(t.Context(), Question{Text: q})
		require.NoError(t, err)
		require.NotEmpty(t, ans.Passages, q)
		require.NotContains(t, verdict(ans), "check.te-graph-register", q)
		require.Contains(t, ans.Passages[0].Text, "expandable_segments", q)
	}
}

// A full disk has many wordings in both languages. Cards about storage share none of their
// words, but the concept.
func TestAFullDiskIsAnswered(t *testing.T) {
	t.Parallel()
	for _, q := range []string{"磁盘满了怎么办", "disk is full while saving a checkpoint", "盘爆了"} {
		ans, err := New(Options{}).Ask(t.Context(), Question{Text: q})
		require.NoError(t, err)
		require.False(t, ans.Refused, q)
		require.Contains(t, verdict(ans), "err.disk", q)
	}
}
