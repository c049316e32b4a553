package job_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/slurm/job"
)

// imported returns the specification of a script's lines, and its notes.
func imported(lines ...string) (s job.Spec, notes string) {
	s, all := job.Import("run.sh", []byte("#!/bin/bash\n"+strings.Join(lines, "\n")+"\n"))
	for _, n := range all {
		notes += n.What + ": " + n.Why.EN + "\n"
	}
	return s, notes
}

// A rendered script starts a process for each GPU, on all nodes of the job. A script that
// starts fewer is imported with a note, whatever launches it.
func TestAPartOfTheJobIsNoted(t *testing.T) {
	const head = "#SBATCH --nodes=4 --gpus-per-node=4"
	for line, want := range map[string]string{
		"srun deepspeed --num_gpus 2 /w/train.py":                                 "--num_gpus=2: the specification starts one process for each GPU",
		"srun torchrun --nproc_per_node=2 /w/train.py":                            "--nproc_per_node=2: the specification starts one process for each GPU",
		"srun torchrun --nnodes=2 --nproc_per_node=4 /w/train.py":                 "--nnodes=2: the specification starts one group of all nodes",
		"srun --nodes=2 torchrun --nproc_per_node=4 /w/train.py":                  "srun --nodes=2: the specification takes all nodes and GPUs",
		"srun --gres=gpu:a100:2 torchrun --nproc_per_node=4 /w/train.py":          "srun --gres=gpu:a100:2: the specification takes all nodes and GPUs",
		"srun accelerate launch --num_machines 2 --num_processes 16 /w/train.py":  "--num_machines=2: the specification starts one group of all nodes",
		"srun --gres=gpu:4,nvme:1 torchrun --nproc_per_node=4 /w/train.py":        "",
		"srun --gres=nvme:1,gpu:2 torchrun --nproc_per_node=4 /w/train.py":        "srun --gres=nvme:1,gpu:2: the specification takes all nodes and GPUs",
		"srun --nodes=4 --gres=gpu:4 torchrun --nnodes 4 --nproc_per_node 4 t.py": "",
	} {
		_, notes := imported(head, line)
		if want == "" {
			require.NotContains(t, notes, "the specification ", line)
			continue
		}
		require.Contains(t, notes, want, line)
	}
	s, _ := imported("torchrun --nnodes=5 --nproc_per_node=2 /w/train.py")
	require.Equal(t, []int{5, 2}, []int{*s.Nodes, *s.GPUsPerNode}, "what only the launcher says")
}

// What starts is what started: a command of the PATH is no shell script, torchrun starts a
// program that is no Python file as it is, and a program that the file does not show is noted.
func TestTheSameProgramStarts(t *testing.T) {
	s, _ := imported("#SBATCH --nodes=2", "srun oumi distributed torchrun -m oumi train")
	require.Equal(t, []string{"env", "oumi", "distributed"}, append(s.LauncherArgv, s.Script, s.Args[0]))
	s, _ = imported("#SBATCH --nodes=2", "srun ./run.sh a")
	require.Equal(t, []string{"bash", "run.sh"}, append(s.LauncherArgv, s.Script))
	s, notes := imported("#SBATCH --nodes=1", "cd /w", "srun torchrun --no-python --nproc_per_node=4 ./worker.sh a")
	require.Equal(t, []string{"--no-python", "./worker.sh", "a"}, []string{s.LauncherArgv[len(s.LauncherArgv)-1], s.Script, s.Args[0]})
	require.NotContains(t, notes, "no-python")
	require.Empty(t, s.Validate())
	_, notes = imported("#SBATCH --nodes=1", "srun $(head -n 1 jobs.txt)")
	require.Contains(t, notes, "the file does not show the program")
	_, notes = imported("#SBATCH --nodes=1", "srun python -m torch.distributed.launch --use_env /w/t.py")
	require.NotContains(t, notes, "use-env", "torch.distributed.run always does")
}

// What stands behind a colon is another program with srun's options, and no argument.
func TestTheOtherProgramsOfAStepAreNoArguments(t *testing.T) {
	s, notes := imported("#SBATCH --nodes=3", "srun -N1 python /w/head.py --port 1 : -N2 python /w/worker.py")
	require.Equal(t, []string{"--port", "1"}, s.Args)
	require.Contains(t, notes, "only the first one is imported")
	s, _ = imported("python /w/head.py a : b")
	require.Equal(t, []string{"a", ":", "b"}, s.Args)
}

// Slurm takes 64GB for 64G.
func TestAUnitOfMemoryMayEndInB(t *testing.T) {
	s, notes := imported("#SBATCH --nodes=1 --mem=64GB", "srun python /w/t.py")
	require.Equal(t, "64G", s.Mem)
	require.NotContains(t, notes, "mem")
}

// Options in comments are none, and the notes say so.
func TestOptionsInCommentsAreNoted(t *testing.T) {
	_, notes := imported("# SBATCH --nodes=2", "# SBATCH --gpus-per-node=4", "srun python /w/t.py")
	require.Contains(t, notes, "# SBATCH --nodes=2: a comment and no directive")
	_, notes = imported("#SBATCH --nodes=2", "# SBATCH --exclusive", "# SBATCH --mem=0", "srun python /w/t.py")
	require.NotContains(t, notes, "a comment and no directive")
}

// The specification's values are not expanded, so a home folder has to be written out.
func TestAHomeFolderIsNoted(t *testing.T) {
	s, notes := imported("#SBATCH --nodes=1", "export HF_HOME=~/hf", "srun python /w/t.py --data ~/data")
	require.Contains(t, notes, "~/data: the file does not show this value")
	require.Contains(t, notes, "HF_HOME=~/hf: the file does not show this value")
	require.NotContains(t, s.Env, "HF_HOME")
}

// Where a site gives whole nodes and nothing asks for GPUs, each task of a rank has one.
func TestTasksTellTheGPUsThatNothingAsksFor(t *testing.T) {
	const rank = `srun bash -c "RANK=\$SLURM_PROCID python /w/pretrain_gpt.py"`
	s, notes := imported("#SBATCH --nodes=8 --ntasks-per-node=4", rank)
	require.Equal(t, 4, *s.GPUsPerNode)
	require.Contains(t, notes, "gpus_per_node: 4: no GPUs are asked for")
	s, notes = imported("#SBATCH --nodes=8 --ntasks-per-node=4 --gres=gpu:2", rank)
	require.Equal(t, 2, *s.GPUsPerNode)
	require.NotContains(t, notes, "no GPUs are asked for")
	s, _ = imported("#SBATCH --nodes=8 --ntasks-per-node=1", rank)
	require.Nil(t, s.GPUsPerNode)
	s, _ = imported("#SBATCH --nodes=2 --ntasks-per-node=4", "export RANK=$SLURM_PROCID", "srun python /w/train.py")
	require.Equal(t, 4, *s.GPUsPerNode, "a rank of a process group")
	s, notes = imported("#SBATCH --nodes=2 --ntasks-per-node=4", "srun --gpus-per-task=1 python /w/pretrain_gpt.py")
	require.Equal(t, 4, *s.GPUsPerNode)
	require.Empty(t, s.SrunArgs, "the one task of a node needs all of them")
	require.NotContains(t, notes, "no GPUs are asked for")
	for _, lines := range [][]string{
		{"#SBATCH --nodes=4 --ntasks-per-node=8 --gpus=$N", "srun python /w/pretrain_gpt.py"},
		{"#SBATCH --nodes=1 --ntasks-per-node=4", "#SBATCH hetjob", "#SBATCH --nodes=2 --gpus-per-node=8", "srun --het-group=1 python /w/pretrain_gpt.py"},
	} {
		s, notes = imported(lines...)
		require.Nil(t, s.GPUsPerNode, lines)
		require.NotContains(t, notes, "no GPUs are asked for", lines)
	}
	for _, lines := range [][]string{
		{"#SBATCH --nodes=1 --ntasks-per-node=32", "srun python /w/tools/preprocess_data.py --workers 32"},
		{"#SBATCH --nodes=4 --ntasks-per-node=8 --partition=cpu", "srun python /w/pretrain_gpt.py"},
	} {
		s, notes = imported(lines...)
		require.Zero(t, *s.GPUsPerNode, lines)
		require.Contains(t, notes, "gpus_per_node: 0: the file asks for no GPUs", lines)
	}
}

// Without directives, srun's options ask for the job.
func TestWhatSrunAsksForIsTheJob(t *testing.T) {
	s, _ := imported("G=${G:-8}", "srun -p dev -J x --gres=gpu:$G --ntasks=16 --ntasks-per-node=$G --cpus-per-task=5 --time=60 --overlap python /w/t.py")
	require.Equal(t, []int{2, 8, 40}, []int{*s.Nodes, *s.GPUsPerNode, *s.CPUsPerTask})
	require.Equal(t, []string{"dev", "x", "60"}, []string{s.Partition, s.Name, s.Time})
	require.Equal(t, []string{"--overlap"}, s.SrunArgs)
	s, _ = imported("#SBATCH --nodes=2", "srun --partition=dev python /w/t.py")
	require.Empty(t, s.Partition, "a step of the job")
}

// Bash drops a backslash at the end of the file.
func TestABackslashAtTheEndIsNoArgument(t *testing.T) {
	s, _ := job.Import("run.sh", []byte("#!/bin/bash\n#SBATCH --nodes=1\nsrun python /w/t.py --a b \\"))
	require.Equal(t, []string{"--a", "b"}, s.Args)
}

// A script that starts its arguments is no program: the specification starts what it starts.
func TestTheProgramBehindAWrapperIsImported(t *testing.T) {
	s, notes := imported("#SBATCH --nodes=2 --ntasks-per-node=8", "srun ./bind.sh pretrain_gpt.py --bf16")
	require.Equal(t, []string{"python", "pretrain_gpt.py", "--bf16"}, append([]string{s.Launcher, s.Script}, s.Args...))
	require.Contains(t, notes, "bind.sh: this command before the program is not imported")
	require.Contains(t, notes, "pretrain_gpt.py: srun starts one process for each GPU")
	s, _ = imported("#SBATCH --nodes=2", `srun apptainer exec x.sif /host/adapt.sh bash -lc "cd /w; torchrun --nnodes 2 -m a.b c"`)
	require.Equal(t, []string{"a.b", "c"}, append([]string{s.Script}, s.Args...))
	s, _ = imported("#SBATCH --nodes=2", `srun bash -c "export A=1; $PROFILER torchrun --nproc_per_node 4 /w/t.py"`)
	require.Equal(t, "t.py", s.Script)
	for line, argv := range map[string]string{ // one task on each node: the script, or what it starts, starts the ranks
		"srun ./launch.sh train.py --x 1": "./launch.sh", "srun bash launch.sh train.py --x 1": "bash launch.sh",
		"srun numactl -N 0 ./bind.sh python train.py --x 1": "numactl -N 0 ./bind.sh python", "srun python train.py --x 1": "python",
		"srun bash -c 'env A=1 ./launch.sh train.py --x 1'": "./launch.sh",
	} {
		s, notes = imported("#SBATCH --nodes=2 --ntasks-per-node=1 --gpus-per-node=8", line)
		require.Equal(t, append(strings.Fields(argv), "train.py", "--x", "1"), append(append(s.LauncherArgv, s.Script), s.Args...), line)
		require.NotContains(t, notes, "not imported", line)
	}
	s, _ = imported("#SBATCH --nodes=2", "srun ./run.sh config.yaml")
	require.Equal(t, "run.sh", s.Script, "its argument is no program")
}

// Directives without GPUs leave them to the step.
func TestTheStepMayAskForTheGPUs(t *testing.T) {
	s, _ := imported("#SBATCH --nodes=16", "srun --gpus-per-node=8 --ntasks-per-node=8 python /w/t.py")
	require.Equal(t, 8, *s.GPUsPerNode)
	s, notes := imported("#SBATCH --nodes=16 --gpus-per-node=8", "srun --gpus-per-node=4 python /w/t.py")
	require.Equal(t, 8, *s.GPUsPerNode)
	require.Contains(t, notes, "takes all nodes and GPUs")
}

// A variable after a switch or after a flag's only value may be empty or several flags, and
// cannot be a value.
func TestAVariableThatIsNoValueIsLeftOut(t *testing.T) {
	s, notes := imported("#SBATCH --nodes=1", "srun python /w/pretrain_gpt.py --train-iters $N --bf16 $RESET --use-flash-attn ${DATA[@]} --lr 1 $X --mine 2 $Y")
	require.Equal(t, strings.Fields("--train-iters $N --bf16 --use-flash-attn --lr 1 --mine 2 $Y"), s.Args)
	require.Contains(t, notes, "$RESET: the file does not show these words: they are left out")
	require.Contains(t, notes, "$N: the file does not show this value")
}

// A place of a template is one word, and text in quotes stays as it is.
func TestATemplateIsReadAsIfItWereFilled(t *testing.T) {
	s, _ := imported("#SBATCH --nodes={{ nodes }} --job-name={{ name }}", "srun torchrun --nproc_per_node={{ gpus }} /w/t.py --config {{ config }} --x a{{y }}b",
		`echo $((1 + {{ n }}))`)
	require.Equal(t, []string{"t.py", "--config", "{{ config }}", "--x", "a{{y }}b"}, append([]string{s.Script}, s.Args...))
	require.Empty(t, s.Nodes)
	s, _ = imported("#SBATCH --nodes=1", `srun bash -c 'python /w/t.py {{ more }} --chat "{{ role }}: {{ content }}"'`)
	require.Equal(t, []string{"{{ more }}", "--chat", "{{ role }}: {{ content }}"}, s.Args)
}

// The parameters of the script have the numbers with which it is submitted.
func TestAShiftedParameterKeepsItsNumber(t *testing.T) {
	s, _ := imported("#SBATCH --nodes=1", "A=$1; shift", "B=$1; shift", "srun python /w/t.py --a $A --b $B --c $1")
	require.Equal(t, strings.Fields("--a $1 --b $2 --c $3"), s.Args)
}

// A program that runs beside the step is not the training.
func TestTheTrainingIsAStep(t *testing.T) {
	s, _ := imported("#SBATCH --nodes=2", "srun bash /w/launch.sh /w/train.py", "python /w/notify.py")
	require.Equal(t, "train.py", s.Script)
	s, _ = imported("#SBATCH --nodes=2", "srun bash /w/prepare.sh", "torchrun /w/train.py")
	require.Equal(t, "train.py", s.Script)
}

// What a test adds that holds with its default is there.
func TestATestThatHoldsAddsItsWords(t *testing.T) {
	s, _ := imported("#SBATCH --nodes=1", "A=(--a)", `[[ "${RESUME:-1}" == 1 ]] && A+=(--load /c)`, `[[ "${OTHER:-0}" == 1 ]] && A+=(--b)`, `srun python /w/t.py "${A[@]}"`)
	require.Equal(t, []string{"--a", "--load", "/c"}, s.Args)
}

// The notes on what branches set have one order, whatever Go's maps have.
func TestTheNotesOnBranchesHaveOneOrder(t *testing.T) {
	_, first := imported(branches...)
	require.Contains(t, first, "branches set several values")
	for range 20 {
		_, notes := imported(branches...)
		require.Equal(t, first, notes)
	}
}

var branches = []string{
	"#SBATCH --nodes=1 --gpus-per-node=8", "if [ $M = big ]; then", "A=11; B=12; C=13; D=14; E=15; F=16", "else", "A=21; B=22; C=23; D=24; E=25; F=26", "fi",
	"srun torchrun --nproc_per_node 8 /w/t.py --a $A --b $B --c $C --d $D --e $E --f $F",
}
