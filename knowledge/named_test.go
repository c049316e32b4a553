package knowledge

import (
	"testing"

	"github.com/stretchr/testify/require"
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
