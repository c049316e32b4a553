package script

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestLaunchReadsArraysVariablesAndDefaults(t *testing.T) {
	l, err := Launch([]byte(`#!/bin/bash
#SBATCH --nodes=4 --ntasks-per-node=1 --gres=gpu:h100:8
export CUDA_DEVICE_MAX_CONNECTIONS=1
TP=${TP:-4}
MODEL=(
  --num-layers 32 # deep
  --hidden-size 4096
)
EXTRA="--bf16 \
  --seq-length $((4 * 1024))"
if [ -z "$PP" ]; then PP=2; fi
export HEAD=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n1)
srun bash -c "torchrun --nnodes $SLURM_NNODES --nproc_per_node 8 --node_rank \$SLURM_NODEID --master_addr $HEAD \
  pretrain_gpt.py ${MODEL[*]} $EXTRA --tensor-model-parallel-size $TP --pipeline-model-parallel-size $PP $(cat more.txt)"
`))
	require.NoError(t, err)
	require.Equal(t, "pretrain_gpt.py", l.Program)
	require.Equal(t, "gpt", l.Entry)
	require.Equal(t, Torchrun, l.Launcher)
	require.Equal(t, 4, l.Nodes)
	require.Equal(t, 8, l.GPUsPerNode)
	require.Equal(t, "h100", l.GPU)
	require.Equal(t, []string{
		"--num-layers", "32", "--hidden-size", "4096", "--bf16", "--seq-length", "4096",
		"--tensor-model-parallel-size", "4", "--pipeline-model-parallel-size", "2",
	}, l.Argv)
	require.Equal(t, []string{"$(cat more.txt)"}, l.Hidden)
	require.Equal(t, "1", l.Env["CUDA_DEVICE_MAX_CONNECTIONS"])
}

func TestLaunchPrefersMegatronToItsHelpers(t *testing.T) {
	l, err := Launch([]byte("python tools/preprocess_data.py --a 1 --b 2 --c 3\npython -m torch.distributed.run --nproc_per_node 2 /opt/m/pretrain_t5.py --num-layers 2\npython plot.py\n"))
	require.NoError(t, err)
	require.Equal(t, "t5", l.Entry)
	require.Equal(t, 1, l.Nodes)
	require.Equal(t, 2, l.GPUsPerNode)
	require.Equal(t, []string{"--num-layers", "2"}, l.Argv)
}

func TestLaunchSaysWhereThereIsNone(t *testing.T) {
	_, err := Launch([]byte("echo hello\n"))
	require.ErrorIs(t, err, ErrNoLaunch)
}

func TestDirectivesAreReadAsSbatchReadsThem(t *testing.T) {
	for _, c := range []struct {
		line    string
		ignored Reason
		fault   bool
	}{
		{"#SBATCH --nodes=2", "", false},
		{"#SBATCH --nodes 2 # two", "", false},
		{"#SBATCH --nodes=2#two", "", false},
		{"#SBATCH -N2 -t 60", "", false},
		{"#SBATCH --time=1-00:00:00 --tasks-per-node=1", "", false},
		{"#SBATCH --job-name=\"my run\"", "", false},
		{"#SBATCH --nodelis=a", "", false},
		{"#SBATCH --nodes = 2", "", true},
		{"#SBATCH -N=2", "", true},
		{"#SBATCH --node=2", "", true},
		{"#SBATCH --time=12h", "", true},
		{"#SBATCH --mem=10 GB", "", true},
		{"#SBATCH --requeue=1", "", true},
		{"#SBATCH --comment=it's", "", true},
		{"#SBATCH —nodes=2", "", true},
		{"#SBATCH --pty", "", true},
		{"#SBATCH nodes=2", "", true},
		{"#SBATCH --nodes=4-2", "", true},
		{" #SBATCH --nodes=2", Indent, false},
		{"#sbatch --nodes=2", Spelled, false},
		{"#SBACTH --nodes=2", Spelled, false},
	} {
		s := Read("", []byte("#!/bin/bash\n"+c.line+"\nhostname\n"))
		require.Len(t, s.Jobs[0].Directives, 1, c.line)
		d := s.Jobs[0].Directives[0]
		require.Equal(t, c.ignored, d.Ignored, c.line)
		require.Equal(t, c.fault, d.Fault != "", "%s: %s", c.line, d.Fault)
	}
	for _, prose := range []string{"##SBATCH --nodes=2", "# SBATCH --nodes=2", "# the #SBATCH lines are above", "echo '#SBATCH --x'"} {
		require.Empty(t, Read("", []byte("#!/bin/bash\n"+prose+"\n")).Jobs[0].Directives, prose)
	}
}

func TestWhoExpandsAVariable(t *testing.T) {
	s := Read("", []byte(`A=$SLURM_PROCID
srun bash -c "one $SLURM_PROCID"
srun bash -c 'two $SLURM_PROCID'
srun bash -c "three \$SLURM_PROCID"
srun bash <<EOF
four $SLURM_PROCID
EOF
srun bash <<'EOF'
five $SLURM_PROCID
EOF
cat > f.sh <<'EOF'
six $SLURM_PROCID
EOF
srun bash ./f.sh
`))
	inTask := map[string]bool{}
	for _, c := range s.Jobs[0].Commands {
		if len(c.Args) == 2 && c.Args[1].Value.Only() != nil {
			inTask[c.Name()] = c.Args[1].Value.Only().Shell.Step != nil
		}
	}
	require.Equal(t, map[string]bool{"one": false, "two": true, "three": true, "four": false, "five": true, "six": true}, inTask)
}
