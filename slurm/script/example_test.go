package script_test

import (
	"fmt"

	"github.com/megatron-ops/megatron-ops/slurm/script"
)

func ExampleLaunch() {
	l, err := script.Launch([]byte("#SBATCH --nodes=2 --gpus-per-node=8\n" +
		"ARGS=(--num-layers 32 --bf16)\n" +
		"srun torchrun --nnodes $SLURM_NNODES --nproc_per_node 8 pretrain_gpt.py \"${ARGS[@]}\"\n"))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(l.Entry, l.Nodes, l.GPUsPerNode, l.Argv)
	// Output: gpt 2 8 [--num-layers 32 --bf16]
}
