package script

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// pretrains reports whether a program is one of Megatron's, by its name.
func pretrains(program string) bool { return strings.Contains(program, "pretrain_") }

// training returns the training of a script and its arguments, with the values of
// variables that Slurm sets.
func training(t *testing.T, src string) (st *Start, argv []string) {
	t.Helper()
	j := Settle("", []byte(src)).Jobs[0]
	st = j.Training(pretrains)
	require.NotNil(t, st)
	for _, a := range st.ProgramArgs {
		s, _ := j.Filled(a.Value)
		argv = append(argv, s)
	}
	return st, argv
}

func TestSettleReadsArraysVariablesAndDefaults(t *testing.T) {
	st, argv := training(t, `#!/bin/bash
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
: ${MBS:=1}
export HEAD=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n1)
srun bash -c "torchrun --nnodes $SLURM_NNODES --nproc_per_node 8 --node_rank \$SLURM_NODEID --master_addr $HEAD \
  pretrain_gpt.py ${MODEL[*]} $EXTRA --tensor-model-parallel-size $TP --pipeline-model-parallel-size $PP \
  --micro-batch-size $MBS --global-batch-size $((MBS * 8 * SLURM_NNODES)) ${WANDB:+--wandb-project $WANDB} $(cat more.txt)"
`)
	require.Equal(t, "pretrain_gpt.py", st.Program.Text())
	require.Equal(t, Torchrun, st.Launcher)
	require.Equal(t, []string{
		"--num-layers", "32", "--hidden-size", "4096", "--bf16", "--seq-length", "4096",
		"--tensor-model-parallel-size", "4", "--pipeline-model-parallel-size", "2",
		"--micro-batch-size", "1", "--global-batch-size", "32", "$(cat more.txt)",
	}, argv)
	v, _ := st.Env.Env("CUDA_DEVICE_MAX_CONNECTIONS")
	require.Equal(t, "1", v.String())
}

// A list of words that a branch extends is read without the extension, even if the list
// includes the program.
func TestSettleTakesOneOfWhatBranchesLeave(t *testing.T) {
	st, argv := training(t, `
ARGS="--num-layers 12 --save $OUT/ckpt"
if [ -n "$WANDB_API_KEY" ]; then ARGS="$ARGS --wandb-project x"; fi
if [ "$SIZE" = big ]; then MODEL="--hidden-size 8192"; else MODEL="--hidden-size 1024"; fi
case $PREC in fp8) EXTRA=(--fp8-format hybrid);; *) EXTRA=(--bf16);; esac
CMD="python3 $ROOT/pretrain_gpt.py $ARGS $MODEL ${EXTRA[@]}"
if [ "$PROFILE" = 1 ]; then CMD="nsys profile $CMD --profile"; fi
srun -l bash -c "RANK=\$SLURM_PROCID numactl --membind=0-3 $CMD"
`)
	require.Equal(t, "$ROOT/pretrain_gpt.py", st.Program.Text())
	require.Equal(t, []string{"--num-layers", "12", "--save", "$OUT/ckpt", "--hidden-size", "8192", "--fp8-format", "hybrid"}, argv)
}

// Of two arrays, of which a branch makes one, the one with words is read.
func TestSettlePrefersAnArrayWithWords(t *testing.T) {
	for name, branch := range map[string]string{
		"the branch fills it":   "A=(); if [ -n \"$MORE\" ]; then A=(--lr 1); fi",
		"the branch empties it": "A=(--lr 1); if [ -n \"$LESS\" ]; then A=(); fi",
		"the branch sets it":    "if [ -n \"$MORE\" ]; then A=(--lr 1); fi",
	} {
		_, argv := training(t, branch+"\npython pretrain_gpt.py \"${A[@]}\"\n")
		require.Equal(t, []string{"--lr", "1"}, argv, name)
	}
}

func TestSettleKnowsWhereTheShellStands(t *testing.T) {
	for src, want := range map[string]string{
		"torchrun `pwd`/pretrain_gpt.py":                                         "./pretrain_gpt.py",
		"cd /lustre/me; cd Megatron-LM; torchrun $(pwd)/p.py":                    "/lustre/me/Megatron-LM/p.py",
		"cd -P -- /opt/m; torchrun $(pwd)/p.py":                                  "/opt/m/p.py",
		"cd -L /opt/m; cd; torchrun $(pwd)/p.py":                                 "~/p.py",
		"cd $REPO\ntorchrun $PWD/tools/../p.py":                                  "$REPO/tools/../p.py",
		"cd ${REPO:-/opt/m}; cd examples; CMD=\"`pwd`/p.py --x\"; torchrun $CMD": "/opt/m/examples/p.py",
	} {
		st, _ := training(t, strings.ReplaceAll(src, `\n`, "\n"))
		require.Equal(t, want, st.Program.Text(), src)
	}
}

func TestTheTrainingIsMegatronsNotItsHelpers(t *testing.T) {
	st, argv := training(t, "python tools/preprocess_data.py --a 1 --b 2 --c 3\npython -m torch.distributed.run --nproc_per_node 2 /opt/m/pretrain_t5.py --num-layers 2\npython plot.py\n")
	require.Equal(t, "/opt/m/pretrain_t5.py", st.Program.Text())
	require.Equal(t, []string{"--num-layers", "2"}, argv)
	require.Nil(t, Settle("", []byte("echo hello\n")).Jobs[0].Training(pretrains))
	for why, c := range map[string]struct{ src, program string }{
		"the last of its kind":                      {"python a.py\npython b.py\n", "b.py"},
		"by a launcher rather than by Python":       {"torchrun a.py\npython b.py\n", "a.py"},
		"of Megatron rather than by a launcher":     {"python pretrain_gpt.py\ntorchrun b.py\n", "pretrain_gpt.py"},
		"in Python rather than of unknown text":     {"python a.py\nsrun ./report --all\n", "a.py"},
		"of unknown text where there is no other":   {"srun ./train\n", "./train"},
		"not what the end of the script runs":       {"python a.py\ntrap 'python pretrain_gpt.py' EXIT\n", "a.py"},
		"not what a variable's value is taken from": {"python a.py\nN=$(python pretrain_gpt.py)\n", "a.py"},
	} {
		st, _ := training(t, c.src)
		require.Equal(t, c.program, st.Program.Text(), why)
	}
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
		require.Equal(t, c.fault, d.Fault.EN != "", "%s: %s", c.line, d.Fault.EN)
	}
	for _, prose := range []string{"##SBATCH --nodes=2", "#XSBATCH --nodes=2", "#xSBATCH -N 2", "# SBATCH --nodes=2", "# the #SBATCH lines are above", "echo '#SBATCH --x'"} {
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
