package lint

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/knowledge/rules"
)

// rulesBroken returns the rules that a job of 16 tasks breaks which runs program.
func rulesBroken(cd, program string) []string {
	const head = "#!/bin/bash\n#SBATCH --nodes=2 --ntasks-per-node=8 --gpus-per-node=h100:8 --time=60\n#SBATCH --output=%x-%j.out\nset -e\n"
	return broken(head + cd + "\nsrun " + program + "\n")
}

// NeMo and Megatron-Bridge have scripts of the same names with parsers of their own.
func TestOnlyMegatronLMIsJudgedByItsFlags(t *testing.T) {
	const wrong = " --recipe llama3 --tensor-model-parallel-size 3"
	judged := []string{"cdmc-missing", "rank-env-missing", "unknown-megatron-flag"}
	for _, c := range []struct {
		cd, program string
		want        []string
	}{
		{"cd /opt/Megatron-LM", "python pretrain_gpt.py" + wrong, judged},
		{"cd /opt/NeMo", "python /opt/Megatron-LM/pretrain_gpt.py" + wrong, judged},
		{"cd /w", "python /opt/Megatron-Bridge/3rdparty/Megatron-LM/pretrain_gpt.py" + wrong, judged},
		{"cd /data/nemotron", "python pretrain_gpt.py" + wrong, judged},
		{"cd /w", "python pretrain_gpt.py --data-path /d.a=b/c" + wrong, judged},
		{"cd /w", "python pretrain_gpt.py --wandb-exp-name model.tp=2" + wrong, judged},

		{"cd /opt/Megatron-Bridge", "python examples/models/llama/pretrain_gpt.py" + wrong, nil},
		{"cd /w", "python /opt/NeMo/examples/nlp/pretrain_gpt.py" + wrong, nil},
		{"cd /w", "python megatron_bridge/pretrain_gpt.py" + wrong, nil},
		{"cd /opt/NeMo", "python examples/nlp/language_modeling/megatron_gpt_pretraining.py --config-name=llama trainer.devices=8", nil},
		{"cd /opt/Megatron-Bridge", "python scripts/performance/run_script.py --model_recipe_name llama3_8b --tensor_model_parallel_size 2", nil},
		{"cd /opt/Megatron-Bridge", "python examples/models/qwen/pretrain_qwen3.py --recipe qwen3", nil},
		{"cd /w", "python -m nemo.collections.llm.pretrain_gpt --tensor-model-parallel-size 3", nil},
		{"cd /w", "python pretrain_gpt.py --config-path=/c --config-name=llama", []string{"rank-env-missing"}},
		{"cd /w", "python pretrain_gpt.py +model.tensor_model_parallel_size=3 --tensor-model-parallel-size 3", []string{"rank-env-missing"}},
		{"cd /w", "python pretrain_gpt.py --conf llama model.tp=$TP", []string{"rank-env-missing", "unset-variable"}},
	} {
		require.Equal(t, c.want, rulesBroken(c.cd, c.program), c.cd+" "+c.program)
	}
}

// How Slurm starts the tasks of NeMo and Megatron-Bridge is judged as for any other program.
func TestTheLaunchOfNeMoIsJudged(t *testing.T) {
	const run = "python -m torch.distributed.run --nproc-per-node=8 "
	launch := rulesBroken("cd /opt/Megatron-Bridge", run+"scripts/training/run_recipe.py --recipe llama32_1b")
	require.Equal(t, []string{"missing-rendezvous", "tasks-per-node"}, launch)
	require.Contains(t, rulesBroken("cd /opt/NeMo", run+"--nnodes=4 --master-addr=$H examples/pretrain_gpt.py"), "nnodes-mismatch")
}

// Hydra's settings do not say that a program reads SLURM_PROCID, so its missing rank is a warning.
func TestAProgramWithSettingsMayReadSlurmsRank(t *testing.T) {
	const head = "#!/bin/bash\n#SBATCH -N 2 --ntasks-per-node=8 --gpus-per-node=8\n"
	for args, want := range map[string]rules.Severity{"--config-name=a": rules.Warning, "--bf16": rules.Error} {
		found := Check("", []byte(head+"srun python /w/pretrain_gpt.py "+args+"\n"))
		at := slices.IndexFunc(found, func(f Finding) bool { return f.Rule == "rank-env-missing" })
		require.GreaterOrEqual(t, at, 0, args)
		require.Equal(t, want, found[at].Severity, args)
	}
}
