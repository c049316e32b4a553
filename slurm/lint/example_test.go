package lint_test

import (
	"fmt"

	"github.com/megatron-ops/megatron-ops/slurm/lint"
)

func ExampleCheck() {
	script := []byte("#!/bin/bash\n" +
		"#SBATCH --nodes=2 --ntasks-per-node=1 --gpus-per-node=8 --time=4:00:00\n" +
		"cd /lustre/me/mlm\n" +
		"head=$(hostname)\n" +
		"srun bash -c \"uv run torchrun --nnodes 2 --nproc_per_node 8 --node_rank $SLURM_NODEID --master_addr $head --master_port 29500 train.py\"\n")
	for _, f := range lint.Check("train.slurm", script) {
		fmt.Printf("%d: %s [%s]\n", f.Line, f.Severity, f.Rule)
	}
	// Output: 5: error [early-rank-interpolation]
}
