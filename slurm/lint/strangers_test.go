package lint

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/knowledge/rules"
)

// of returns the findings of one rule.
func of(rule string, l lang.Lang, lines ...string) []Finding {
	var out []Finding
	for _, f := range CheckIn("", []byte(strings.Join(lines, "\n")+"\n"), l) {
		if f.Rule == rule {
			out = append(out, f)
		}
	}
	return out
}

func TestAProgramWithAParserOfItsOwnIsReportedOnceAsAWarning(t *testing.T) {
	flags := "--num_layers 2 --hidden_size 8 --num_attention_heads 2 --seq_length 8 --micro_batch_size 1 --global_batch_size 8 --train_iters 5 --min_lr 1e-5 --lr 1e-4"
	found := of("unknown-megatron-flag", lang.EN, "#!/bin/bash", "#SBATCH --nodes=1", "srun python /w/pretrain_gpt.py "+flags)
	require.Len(t, found, 1)
	require.Equal(t, rules.Warning, found[0].Severity)
	require.Contains(t, found[0].Message, "8 of the 9 flags, as --num_layers,")
	require.Contains(t, of("unknown-megatron-flag", lang.ZH, "#!/bin/bash", "#SBATCH --nodes=1", "srun python /w/pretrain_gpt.py "+flags)[0].Message, "8 个参数（共 9 个，例如 --num_layers）")

	few := of("unknown-megatron-flag", lang.EN, "#!/bin/bash", "#SBATCH --nodes=1", "srun python /w/pretrain_gpt.py --num_layers 2 --hiddensize 8 --lr 1e-4 --min-lr 1e-5 --bf16")
	require.Len(t, few, 1, "one finding a line")
	require.Equal(t, rules.Error, few[0].Severity)
}

// A role is a label of the log lines: a wrong one stops nothing. A wrong rank does.
func TestARoleFromTheBatchShellIsAWarning(t *testing.T) {
	head := []string{"#!/bin/bash", "#SBATCH --nodes=2 --ntasks-per-node=1", "cd /w"}
	role := of("early-rank-interpolation", lang.EN, append(head, "srun python -m torch.distributed.run --nnodes 2 --rdzv_backend c10d --rdzv_endpoint a:1 --role $(hostname): t.py")...)
	require.Len(t, role, 1)
	require.Equal(t, rules.Warning, role[0].Severity)
	require.NotContains(t, role[0].Message, "rank 0")
	rank := of("early-rank-interpolation", lang.EN, append(head, "srun python -m torch.distributed.run --nnodes 2 --master_addr a --node_rank $SLURM_NODEID t.py")...)
	require.Len(t, rank, 1)
	require.Equal(t, rules.Error, rank[0].Severity)
	require.Contains(t, rank[0].Fix, "srun bash -c '…'", "no shell in the task would expand a backslashed word")
}

// A backslash before the $ helps only if a shell in the task reads the word.
func TestTheFixForARankNeedsAShellInTheTask(t *testing.T) {
	const head = "#!/bin/bash\n#SBATCH --nodes=2 --ntasks-per-node=1 --time=9\ncd /w\n"
	const run = "uv run torchrun --nnodes 2 --master_addr a --node_rank=$SLURM_NODEID t.py"
	fixed, applied, left := Fix([]byte(head+"srun "+run+"\n"), lang.EN)
	require.Equal(t, head+"srun "+run+"\n", string(fixed))
	require.Empty(t, applied)
	require.Contains(t, left[len(left)-1].Rule, "early-rank-interpolation")

	fixed, applied, _ = Fix([]byte(head+`srun bash -c "`+run+"\"\n"), lang.EN)
	require.Contains(t, string(fixed), `--node_rank=\$SLURM_NODEID`)
	require.NotEmpty(t, applied)

	found := of("early-rank-interpolation", lang.ZH, "#!/bin/bash", "#SBATCH --nodes=2 --ntasks-per-node=1", "cd /w", "srun "+strings.ReplaceAll(run, "$", `\$`))
	require.Len(t, found, 1)
	require.Contains(t, found[0].Message, "程序得到的是变量名")
}

func TestAHereDocumentThatIsQuotedLosesItsBackslashes(t *testing.T) {
	const head = "#!/bin/bash\n#SBATCH --nodes=2 --ntasks-per-node=1 --gpus-per-node=8 --time=9\ncd /w\nexport H=$(hostname)\n"
	const body = "CFG=a.yaml\npython -m torch.distributed.run --nnodes 2 --nproc_per_node 8 --node_rank %s --master_addr $H --master_port 29500 /w/t.py $CFG\nEOF\nsrun bash e.sh\n"
	fixed, _, left := Fix([]byte(head+"cat > e.sh <<EOF\n"+strings.ReplaceAll(body, "%s", `\$SLURM_NODEID`)), lang.EN)
	require.Equal(t, head+"cat > e.sh <<'EOF'\n"+strings.ReplaceAll(body, "%s", "$SLURM_NODEID"), string(fixed))
	require.Empty(t, left)
}

// A script does not show how old the copy is that it starts.
func TestAFlagOfEarlierReleasesIsAWarning(t *testing.T) {
	lines := []string{
		"#!/bin/bash", "#SBATCH --nodes=1 --gpus-per-node=8", "python -m torch.distributed.run --nproc_per_node 8 /w/pretrain_t5.py --num-layers 2 \\",
		"  --checkpoint-activations --data-impl mmap",
	}
	found := of("unknown-megatron-flag", lang.EN, lines...)
	require.Len(t, found, 1)
	require.Equal(t, rules.Warning, found[0].Severity)
	require.Equal(t, 4, found[0].Line)
	require.Contains(t, found[0].Message, "--data-impl: Megatron-LM had this flag up to release 23.06")
	require.NotContains(t, found[0].Fix, "misspelt")
	require.Contains(t, of("unknown-megatron-flag", lang.ZH, lines...)[0].Message, "到 23.06 版为止")
	layout := func() string { return of("illegal-layout", lang.EN, lines...)[0].Message }
	require.NotContains(t, layout(), "--checkpoint-activations", "the copy is older than the end of this flag")
	lines[3] = "  --checkpoint-activations"
	require.Contains(t, layout(), "--checkpoint-activations")
}

func TestAProgramThatAddsFlagsMayAddValues(t *testing.T) {
	const head, run = "#!/bin/bash\n#SBATCH --nodes=1\n", "srun python /w/pretrain_gpt.py --num-layers 2 --tokenizer-type FromFile"
	value := func(more string) Finding {
		found := of("megatron-flag-type", lang.EN, head+run+more)
		require.Len(t, found, 1)
		return found[0]
	}
	for name, more := range map[string]string{
		"none": "", "two": " --structured-logs --fim-order a", "flags of Megatron-LM": " --bf16 --hidden-size 8 --num-attention-heads 2",
		"two, and one of an earlier release": " --structured-logs --fim-order a --data-impl mmap",
	} {
		require.Equal(t, rules.Error, value(more).Severity, name)
	}
	require.Equal(t, rules.Warning, value(" --structured-logs --fim-order a --weighted-paths b").Severity)
	require.Contains(t, value(" --structured-logs --fim-order a --weighted-paths b").Message, "unless your copy adds it")
}

// A script that expects its values from whoever submits it is told once which.
func TestValuesFromOutsideAreOneWarning(t *testing.T) {
	lines := []string{"#!/bin/bash", "#SBATCH --nodes=1 --gpus-per-node=8", "cd /w", "srun python t.py --a $DATA --b $STEPS \\", "  --c $SIZE --d $SEED"}
	found := of("unset-variable", lang.EN, lines...)
	require.Len(t, found, 1)
	require.Equal(t, rules.Warning, found[0].Severity)
	require.Equal(t, 4, found[0].Line)
	require.Contains(t, found[0].Message, "$DATA, $STEPS, $SIZE, $SEED: nothing here sets these variables")
	require.Contains(t, of("unset-variable", lang.ZH, lines...)[0].Fix, "export")
	require.Equal(t, rules.Error, of("unset-variable", lang.EN, append(lines[:4:4], "  --c 1")...)[0].Severity, "two are forgotten")
}

// A script that submits itself makes the folder of its logs before it does.
func TestAFolderMadeBeforeTheSubmissionIsThere(t *testing.T) {
	head := []string{"#!/bin/bash", "#SBATCH --nodes=1 --output=logs/%j.out"}
	require.Empty(t, of("log-dir-missing", lang.EN, append(head, "if [ -z $SLURM_JOB_ID ]; then", "mkdir -p logs", `sbatch "$0"`, "exit", "fi", "srun python /w/t.py")...))
	require.Len(t, of("log-dir-missing", lang.EN, append(head, "D=`pwd`", "mkdir -p $D/logs", "srun python /w/t.py")...), 1)
	require.Len(t, of("log-dir-missing", lang.EN, append(head, "mkdir -p $PWD/logs", "srun python /w/t.py")...), 1)
	require.Empty(t, of("log-dir-missing", lang.EN, append(head, "cd $W", "mkdir -p $PWD/logs", "srun python /w/t.py")...))
	require.Len(t, of("log-dir-missing", lang.EN, append(head, "mkdir -p logs", "srun python /w/t.py", `sbatch "$0"`)...), 1)
	require.Len(t, of("log-dir-missing", lang.EN, append(head, "if [ -z $X ]; then", `sbatch "$0"`, "mkdir -p logs", "fi", "srun python /w/t.py")...), 1)
}

// A module may set the image of a container.
func TestAModuleMaySetTheImage(t *testing.T) {
	run := "srun singularity exec $SIF \\\n  python /w/t.py --seed $SEED"
	found := of("unset-variable", lang.EN, "#!/bin/bash", "#SBATCH --nodes=1", "ml PyTorch/2.2", run)
	require.Len(t, found, 1)
	require.Equal(t, "$SEED", strings.SplitN(found[0].Message, ":", 2)[0])
	require.Len(t, of("unset-variable", lang.EN, "#!/bin/bash", "#SBATCH --nodes=1", run), 2)
}

// The name of a variable in a comment does not say that the job is for debugging.
func TestADebuggingJobSaysSo(t *testing.T) {
	head := []string{"#!/bin/bash", "#SBATCH --nodes=1 --time=100:00:00", "export CUDA_LAUNCH_BLOCKING=1", "srun torchrun /w/t.py"}
	require.Len(t, of("debug-left-on", lang.EN, append(head, "#export NCCL_DEBUG=INFO")...), 1)
	require.Empty(t, of("debug-left-on", lang.EN, append(head, "# for debugging")...))
}

// sh looks for a script in the working directory, whatever its name is.
func TestAScriptOfAShellIsInTheFolder(t *testing.T) {
	require.Len(t, of("no-worktree-cd", lang.EN, "#!/bin/bash", "#SBATCH --nodes=2", "srun sh worker.sh"), 1)
	require.Empty(t, of("no-worktree-cd", lang.EN, "#!/bin/bash", "#SBATCH --nodes=2", "srun worker.sh"), "the PATH has it")
}

// In a container of pyxis or docker, a relative path is sought where the image starts, and a cd of the
// script changes nothing.
func TestTheImageDecidesWhereARelativeProgramIs(t *testing.T) {
	for _, run := range []string{"srun --container-image=i python train.py", "srun docker run i python train.py"} {
		found := of("no-worktree-cd", lang.EN, "#!/bin/bash", "#SBATCH --nodes=1 --gpus-per-node=1", "cd /w", run)
		require.Len(t, found, 1, run)
		require.Contains(t, found[0].Message, "where the image starts", run)
		require.Contains(t, found[0].Fix, "--container-workdir", run)
	}
	for _, run := range []string{"srun --container-image=i --container-workdir=/w python train.py", "srun singularity exec i.sif python train.py"} {
		require.Empty(t, of("no-worktree-cd", lang.EN, "#!/bin/bash", "#SBATCH --nodes=1 --gpus-per-node=1", "cd /w", run), run)
	}
}

// A container with GPUs needs GPUs, whatever the program in it is.
func TestAContainerWithGPUsNeedsThem(t *testing.T) {
	for run, n := range map[string]int{
		"srun docker run --gpus all i /w/moe.sh": 1, "srun singularity exec --nv i.sif /w/moe.sh": 1,
		"srun docker run --gpus 0 i /w/moe.sh": 0, "srun singularity exec --nv=false i.sif /w/moe.sh": 0,
		"srun docker run i /w/moe.sh": 0, "srun singularity exec i.sif /w/moe.sh": 0,
	} {
		require.Len(t, of("no-gpu-request", lang.EN, "#!/bin/bash", "#SBATCH --nodes=2", run), n, run)
	}
}

// Words that a branch adds leave the others readable.
func TestWordsAddedInABranchHideNoFault(t *testing.T) {
	lines := []string{
		"#!/bin/bash", "#SBATCH --nodes=2 --ntasks-per-node=8", `CMD="torchrun --nproc_per_node=8 --node_rank=\$SLURM_NODEID"`,
		`CMD="$CMD --master_addr=\$(scontrol show hostname \$SLURM_NODELIST | head -n1) /w/t.py"`, `if [ -n "$MORE" ]; then CMD="$CMD $MORE"; fi`,
		`SRUN="srun --container-image=a"`, `if [ -n "$M" ]; then SRUN="$SRUN --container-mounts=$M"; fi`, `$SRUN bash -c "$CMD"`,
	}
	require.Len(t, of("tasks-per-node", lang.EN, lines...), 1)
	require.Equal(t, 4, of("scontrol-in-container", lang.EN, lines...)[0].Line)
	require.Empty(t, of("early-rank-interpolation", lang.EN, lines...))
}

// No shell reads the value of an exported variable again, so that a backslash there helps nobody.
func TestARankInTheEnvironmentHasNoFixByBackslash(t *testing.T) {
	const head = "#!/bin/bash\n#SBATCH --nodes=2 --ntasks-per-node=8 --time=9\ncd /w\n"
	const script = head + "export RANK=$SLURM_PROCID\nsrun python train.py\n"
	fixed, _, left := Fix([]byte(script), lang.EN)
	require.NotContains(t, string(fixed), `\$SLURM_PROCID`)
	require.True(t, slices.ContainsFunc(left, func(f Finding) bool { return f.Rule == "early-rank-interpolation" && f.Line == 4 }))
	require.Contains(t, of("early-rank-interpolation", lang.EN, strings.Split(head+`export RANK=\$SLURM_PROCID`+"\nsrun python train.py", "\n")...)[0].Message, "no shell expands this")
	require.Empty(t, of("early-rank-interpolation", lang.EN, strings.Split(head+`srun bash -c "RANK=\$SLURM_PROCID python train.py"`, "\n")...))
}

// A script that looks at the status itself goes on after a failure, and ends with the status.
func TestTheFixForALostStatusKeepsWhatTheScriptDoes(t *testing.T) {
	const run = "#!/bin/bash\n#SBATCH --nodes=1 --time=9 --gpus-per-node=8\nsrun uv run torchrun /w/train.py\n"
	fix := func(more string) string {
		fixed, _, _ := Fix([]byte(run+more), lang.EN)
		return string(fixed)
	}
	require.Equal(t, run+"rc=$?\n[ $rc = 0 ] && echo done > s\necho END\nexit \"$rc\"\n", fix("rc=$?\n[ $rc = 0 ] && echo done > s\necho END\n"))
	require.Contains(t, fix("echo END $?\n"), "set -e\n")
	for _, more := range []string{"if [ $? -ne 0 ]; then touch FAILED; fi\necho END\n", "x=1; rc=${PIPESTATUS[0]}\necho $rc\n", "check\nrc=$?\necho $rc\n"} {
		require.NotContains(t, fix(more), "set -e\n", more)
		require.NotContains(t, fix(more), "exit ", "the status of another command is none of the training's")
	}
	both := "a=$?\necho $a\ncheck\nb=$?\necho $b\n"
	require.Equal(t, run+both, fix(both), "which of the two counts, a person decides")
}

// A status that is saved after another command is that command's.
func TestTheStatusOfALaterCommandIsNotTheTrainings(t *testing.T) {
	head := []string{"#!/bin/bash", "#SBATCH --nodes=1 --time=9 --gpus-per-node=8", "srun python /w/t.py"}
	require.Len(t, of("exit-status-lost", lang.EN, append(head, "cp a b", "rc=$?", "exit $rc")...), 1)
	require.Empty(t, of("exit-status-lost", lang.EN, append(head, "rc=$?", "cp a b", "exit $rc")...))
	require.Empty(t, of("exit-status-lost", lang.EN, append(head[:2:2], "srun python /w/t.py &", "P=$!", "wait $P", "rc=$?", "cp a b", "exit $rc")...))
}

// Only one of the forms of a command runs.
func TestTheFormsOfOneCommandDoNotRunTogether(t *testing.T) {
	require.Empty(t, of("step-without-overlap", lang.EN, "#!/bin/bash", "#SBATCH --nodes=2 --gpus-per-node=8", `S="srun"`,
		`if [ -n "$M" ]; then S="$S --mem=0"; fi`, "$S bash -c 'torchrun /w/t.py' &", "wait"))
}

// The job's options are those of the first component of a heterogeneous job.
func TestTheOtherComponentsHaveNodesOfTheirOwn(t *testing.T) {
	lines := []string{
		"#!/bin/bash", "#SBATCH --nodes=1 --gpus-per-node=1", "#SBATCH hetjob", "#SBATCH --nodes=2 --gpus-per-node=8",
		"srun --het-group=1 torchrun --nnodes=2 --nproc_per_node=8 --rdzv_backend=c10d --rdzv_endpoint=$H:29400 /w/train.py",
	}
	require.Empty(t, of("nnodes-mismatch", lang.EN, lines...))
	require.Empty(t, of("nproc-mismatch", lang.EN, lines...))
	lines[4] = strings.Replace(lines[4], "group=1", "group=0", 1)
	require.Len(t, of("nnodes-mismatch", lang.EN, lines...), 1)
	require.Len(t, of("nproc-mismatch", lang.EN, lines...), 1)
}

// The text that read takes from a here-document is the text of the tasks' shell.
func TestACommandReadFromAHereDocumentIsChecked(t *testing.T) {
	lines := []string{
		"#!/bin/bash", "#SBATCH --nodes=2 --ntasks-per-node=1 --gpus-per-node=8", "read -r -d '' CMD <<EOF", "cd /w",
		"torchrun --nnodes=2 --nproc_per_node=8 --node_rank=$SLURM_NODEID --master_addr=$H --master_port=29500 train.py", "EOF", `srun bash -c "$CMD"`,
	}
	require.Equal(t, 5, of("early-rank-interpolation", lang.EN, lines...)[0].Line)
	lines[4] = strings.Replace(lines[4], "$SLURM", `\$SLURM`, 1)
	require.Empty(t, of("early-rank-interpolation", lang.EN, lines...))
}

// A template is filled before it is submitted.
func TestAPlaceOfATemplateIsNoWrongValue(t *testing.T) {
	for _, nodes := range []string{"{{ nodes }}", "{{nodes}}"} {
		lines := []string{"#!/bin/bash", "#SBATCH --nodes=" + nodes, "#SBATCH --time={{ time }}", "srun torchrun --nnodes=" + nodes + " /w/t.py --name {{ name }}"}
		require.Empty(t, of("bad-directive", lang.EN, lines...))
		require.Empty(t, of("nnodes-mismatch", lang.EN, lines...))
	}
	require.Len(t, of("bad-directive", lang.EN, "#!/bin/bash", "#SBATCH --nodes={nodes}", "srun torchrun /w/t.py"), 1)
}

// A backslash that escapes a blank goes: the line is continued where the command goes on, and else
// keeps its comment, as in a list. What looks like a comment and is a part of a path stays.
func TestABackslashBeforeACommentIsMended(t *testing.T) {
	const head = "#!/bin/bash\n#SBATCH --nodes=1 --gpus-per-node=8 --time=60\nset -e\n"
	for broken, mended := range map[string]string{
		"python /w/t.py \\\n  --a 1 \\ # one\necho done\n":                          "python /w/t.py \\\n  --a 1 # one\necho done\n",
		"python /w/t.py \\\n  --a 1 \\  # one\n  --b 2\n":                           "python /w/t.py \\\n  --a 1 \\\n  --b 2\n",
		"python /w/t.py \\\n  --a 1 # one\n  --b 2\n":                               "python /w/t.py \\\n  --a 1 \\\n  --b 2\n",
		"python /w/t.py \\\n  --a /my\\ #dir \\ # one\n  --b 2\n":                   "python /w/t.py \\\n  --a /my\\ #dir \\\n  --b 2\n",
		"python /w/t.py \\\n  --a \"/my\\ #dir\" \\ # one\n  --b 2\n":               "python /w/t.py \\\n  --a \"/my\\ #dir\" \\\n  --b 2\n",
		"python /w/t.py \\\n  --a 1 \\ # it's\n  --b 2 \\ # it's\n  --c 3\n":        "python /w/t.py \\\n  --a 1 \\\n  --b 2 \\\n  --c 3\n",
		"python /w/t.py \\\n  --a 1 \\ # one\n  | tee log\n":                        "python /w/t.py \\\n  --a 1 \\\n  | tee log\n",
		"python /w/t.py \\\n  --a 1 \\ # one (or two)\n  --b 2\n":                   "python /w/t.py \\\n  --a 1 \\\n  --b 2\n",
		"A=(\n  --a 1 \\  # one\n  --b 2 \\ # two\n)\npython /w/t.py \"${A[@]}\"\n": "A=(\n  --a 1 # one\n  --b 2 # two\n)\npython /w/t.py \"${A[@]}\"\n",
		"python /w/t.py \\\n  --a \\ # one\n  0.5 d\n":                              "python /w/t.py \\\n  --a \\\n  0.5 d\n",
		"python /w/t.py --a 1 \\ # one\n  echo done\n":                              "python /w/t.py --a 1 \\ # one\n  echo done\n", // bash runs echo
		"python /w/t.py \\\n  --a 1 \\ # it's\n  --b 2 \\ # it's\n    echo done\n":  "python /w/t.py \\\n  --a 1 \\ # it's\n  --b 2 \\ # it's\n    echo done\n",
		"python /w/t.py --a 1\ntr -d \\ #\n":                                        "python /w/t.py --a 1\ntr -d \\ #\n",
	} {
		fixed, _, _ := Fix([]byte(head+broken), lang.EN)
		after, found := strings.CutPrefix(string(fixed), head)
		if !found { // pipefail is added too
			_, after, _ = strings.Cut(string(fixed), "set -e\n")
		}
		require.Equal(t, mended, after, broken)
	}
}

// The fix of torchrun in a variable keeps the launch: L=python -m … would start -m.
func TestTorchrunInAVariableIsMended(t *testing.T) {
	const head = "#!/bin/bash\n#SBATCH --nodes=1 --gpus-per-node=8 --time=60\nset -e\ncd /w\n"
	for was, now := range map[string]string{
		"L=torchrun\n$L --nproc_per_node 8 a.py\n":                                               "L=\"python -m torch.distributed.run\"\n$L --nproc_per_node 8 a.py\n",
		"L='torchrun --nproc_per_node 8'\n$L a.py\n":                                             "L='python -m torch.distributed.run --nproc_per_node 8'\n$L a.py\n",
		"L=torchrun\n\"$L\" --nproc_per_node 8 a.py\n":                                           "L=torchrun\n\"$L\" --nproc_per_node 8 a.py\n",
		"L=(torchrun --nproc_per_node 8)\n\"${L[@]}\" a.py\n":                                    "L=(python -m torch.distributed.run --nproc_per_node 8)\n\"${L[@]}\" a.py\n",
		"L=torchrun\n[ \"$L\" != torchrun ] || export X=1\n$L --nproc_per_node 8 a.py\n":         "L=torchrun\n[ \"$L\" != torchrun ] || export X=1\n$L --nproc_per_node 8 a.py\n",
		"L=torchrun\ncase $L in\n  torchrun*) export X=1 ;;\nesac\n$L --nproc_per_node 8 a.py\n": "L=torchrun\ncase $L in\n  torchrun*) export X=1 ;;\nesac\n$L --nproc_per_node 8 a.py\n",
		"f() { \"$1\" --nproc_per_node 8 a.py; }\nf torchrun\n":                                  "f() { \"$1\" --nproc_per_node 8 a.py; }\nf torchrun\n",
	} {
		fixed, _, _ := Fix([]byte(head+was), lang.EN)
		require.Equal(t, head+now, string(fixed))
	}
}
