package job_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/slurm/job"
)

// A folder that no mount covers is one of the image. It is no folder of the host.
func TestAFolderOfTheImageIsNoWorktree(t *testing.T) {
	const head = "#!/bin/bash\n#SBATCH --nodes=2 --gpus-per-node=8\n"
	const srun = "srun --container-image=/i.sqsh --container-mounts=/data:/data,/home/me/code:/code "
	spec, ns := job.Import("x", []byte(head+srun+`bash -c "cd /opt/NeMo; python -m torch.distributed.run --nproc-per-node=8 /opt/NeMo/examples/train.py"`+"\n"))
	require.Empty(t, spec.Worktree)
	require.Equal(t, "/opt/NeMo", spec.Container.Workdir)
	require.Equal(t, "examples/train.py", spec.Script)
	require.Contains(t, notes(ns), "the code lies in the image")

	spec, _ = job.Import("x", []byte(head+"cd /home/me/runs\n"+srun+`bash -c "cd /opt/NeMo; python -m torch.distributed.run --nproc-per-node=8 train.py"`+"\n"))
	require.Equal(t, "/home/me/runs", spec.Worktree)
	require.Equal(t, "/opt/NeMo", spec.Container.Workdir)

	spec, _ = job.Import("x", []byte(head+srun+`bash -c "cd /code/sub; python -m torch.distributed.run --nproc-per-node=8 train.py"`+"\n"))
	require.Equal(t, "/home/me/code/sub", spec.Worktree)
	require.Empty(t, spec.Container.Workdir)

	spec, _ = job.Import("x", []byte(head+"srun --container-image=/i.sqsh --container-mounts=$MOUNTS bash -c 'cd /w; python -m torch.distributed.run --nproc-per-node=8 train.py'\n"))
	require.Equal(t, "/w", spec.Worktree, "a mount that the file does not show may cover it")
}

// A folder that is relative to one that nobody knows is no worktree, and none of the container.
func TestARelativeFolderIsNoWorktree(t *testing.T) {
	for name, text := range map[string]string{
		"of sbatch":          "#SBATCH --chdir=sub\nsrun python -m torch.distributed.run --nproc-per-node=8 train.py\n",
		"in the container":   "srun --container-image=/i.sqsh bash -c \"cd sub; python -m torch.distributed.run --nproc-per-node=8 train.py\"\n",
		"of the batch shell": "cd sub\nsrun python -m torch.distributed.run --nproc-per-node=8 train.py\n",
	} {
		spec, ns := job.Import("x", []byte("#!/bin/bash\n#SBATCH --nodes=2 --gpus-per-node=8\n"+text))
		require.Empty(t, spec.Worktree, name)
		require.Empty(t, spec.Container.Workdir, name)
		require.Contains(t, notes(ns), "give worktree", name)
	}
}

// The shell that starts the training may have gone to another folder than the batch shell.
func TestTheWorktreeIsTheFolderInWhichTheTrainingStarts(t *testing.T) {
	spec, _ := job.Import("x", []byte("#!/bin/bash\n#SBATCH --nodes=1 --gpus-per-node=8\ncd /lustre/me/runs\nsrun bash -c \"cd /lustre/me/code; python -m torch.distributed.run --nproc_per_node=8 train.py\"\n"))
	require.Equal(t, "/lustre/me/code", spec.Worktree)
	require.Equal(t, "train.py", spec.Script)
}

// srun's --chdir is the folder of its step, and none in a container.
func TestTheFolderOfAStepIsTheWorktree(t *testing.T) {
	const torchrun = "python -m torch.distributed.run --nproc-per-node=8 train.py"
	for line, want := range map[string]string{
		"srun --chdir=/lustre/me/code " + torchrun:                             "/lustre/me/code",
		"cd /home/me; srun -D /lustre/me/code " + torchrun:                     "/lustre/me/code",
		"srun --chdir=/lustre/me/code bash -c 'cd /other; " + torchrun + "'":   "/other",
		"cd /home/me; srun --container-image=/i.sqsh --chdir=/tmp " + torchrun: "/home/me",
	} {
		s, ns := job.Import("x", []byte("#!/bin/bash\n#SBATCH --nodes=1 --gpus-per-node=8\n"+line+"\n"))
		require.Equal(t, want, s.Worktree, "%s: %s", line, notes(ns))
		require.Empty(t, s.SrunArgs, line)
	}
}

func TestAContainerThatCannotBeRenderedIsNamed(t *testing.T) {
	spec, ns := job.Import("x", []byte("#!/bin/bash\n#SBATCH --nodes=1 --gpus-per-node=8\ncd /w\nsrun shifter --image=a/b:c python -m torch.distributed.run --nproc-per-node=8 train.py\n"))
	require.Empty(t, spec.Container)
	require.Contains(t, notes(ns), "shifter: no such container runtime can be rendered")
	require.Empty(t, spec.Validate())
}

func TestWordsInAngleBracketsAreNamed(t *testing.T) {
	_, ns := job.Import("x", []byte("#!/bin/bash\n#SBATCH --nodes=1\ncd /w\nsrun sh -c \"python -m torch.distributed.run --nproc-per-node=8 a.py --save <PATH TO SAVE> --load <PATH> --bf16\"\n"))
	text := notes(ns)
	require.Contains(t, text, "<…> --load: words in angle brackets are redirections to a shell")
	require.NotContains(t, text, "this input")
}

// Where input comes from and output goes to is lost, and said; what is thrown away is not missed.
func TestRedirectionsThatAreNotImportedAreNamed(t *testing.T) {
	for words, want := range map[string]string{
		"< in.txt": "this input is not imported", ">> log": "the output is not written there", "&> log": "the output is not written there",
		"> /dev/null": "", "<<< --x": "",
	} {
		_, ns := job.Import("x", []byte("#!/bin/bash\n#SBATCH --nodes=1 --gpus-per-node=8\ncd /w\nsrun python -m torch.distributed.run --nproc-per-node=8 train.py "+words+"\n"))
		if want == "" {
			require.Empty(t, notes(ns), words)
		} else {
			require.Contains(t, notes(ns), want, words)
		}
	}
}

// Without a working folder, that of the program is one of the host or none.
func TestTheFolderOfTheProgramIsTheLastResort(t *testing.T) {
	const python = "python -m torch.distributed.run --nproc-per-node=8 "
	for program, want := range map[string][3]string{
		python + "/w/code/train.py":                              {"/w/code", "train.py", "the program's folder is used"},
		"docker run -v /w:/c img " + python + "/c/code/train.py": {"/w/code", "train.py", "the program's folder is used"},
		"docker run -v /w:/c img " + python + "/opt/train.py":    {"", "/opt/train.py", "give worktree"},
		"docker run -v $X:/c -v /w:/w img " + python + "/c/t.py": {"/c", "t.py", "the program's folder is used"},
		python + "$CODE/sub/train.py":                            {"", "sub/train.py", "$CODE: the file does not show this folder"},
		python + "${CODE}train.py":                               {"", "${CODE}train.py", "give worktree"},
		"enroot start -m /w:/c img " + python + "/opt/train.py":  {"", "/opt/train.py", "give worktree"},
		python + "$CODE/$SUB/train.py":                           {"", "$CODE/$SUB/train.py", "give worktree"},
		"bash -c 'cd $CODE; " + python + "$CODE/sub/train.py'":   {"", "sub/train.py", "$CODE: the file does not show this folder"},
		"bash -c 'cd /w; " + python + "/w/../w/./train.py'":      {"/w", "train.py", ""},
		python + "train.py":                                      {"", "train.py", "the script does not show the folder of the code"},
	} {
		spec, ns := job.Import("x", []byte("#!/bin/bash\n#SBATCH --nodes=1 --gpus-per-node=8\nsrun "+program+"\n"))
		require.Equal(t, want[:2], []string{spec.Worktree, spec.Script}, program)
		require.Contains(t, notes(ns), want[2], program)
	}
}

// A file that only submits another script is read for what that script starts.
func TestTheScriptInAHereDocumentIsImportedIfOnlyItStartsAProgram(t *testing.T) {
	spec, _ := job.Import("x", []byte("#!/bin/bash\nN=2\nsbatch <<EOF\n#!/bin/bash\n#SBATCH --nodes=$N --gpus-per-node=8\ncd /w\nsrun bash ./train.sh a\nEOF\n"))
	require.Equal(t, 2, *spec.Nodes)
	require.Equal(t, "train.sh", spec.Script)
}

// What a profiler's option takes is not the program.
func TestAProfilersOptionsAreNotTheProgram(t *testing.T) {
	spec, _ := job.Import("x", []byte("#!/bin/bash\n#SBATCH --nodes=1 --gpus-per-node=8\ncd /w\nsrun nsys profile -s none -o p --force-overwrite true --capture-range=cudaProfilerApi python3 train.py --lr 1\n"))
	require.Equal(t, "train.py", spec.Script)
	require.Equal(t, []string{"--lr", "1"}, spec.Args)
}

// A configuration decides whether accelerate shards the model: it must not get lost.
func TestAcceleratesOwnOptionsAreKept(t *testing.T) {
	const head = "#!/bin/bash\n#SBATCH --nodes=2 --gpus-per-node=4\ncd /w\nsource .venv/bin/activate\n"
	const run = "srun bash -c 'accelerate launch --num_machines 2 --machine_rank $SLURM_NODEID --main_process_ip a --main_process_port 6000 "
	spec, ns := job.Import("x", []byte(head+run+`--config_file z3.yaml --num_processes 8 --rdzv_conf "rdzv_backend=c10d,timeout=9" train.py'`+"\n"))
	require.Equal(t, job.Custom, spec.Launcher)
	require.Contains(t, spec.LauncherArgv, "--config_file=z3.yaml")
	require.Contains(t, spec.LauncherArgv, "--machine_rank={node_rank}")
	require.Contains(t, spec.LauncherArgv, "--rdzv_conf=rdzv_backend=c10d,timeout=9")
	require.Equal(t, []string{"/w/.venv/bin"}, spec.Path, "the launcher is that of the environment")
	require.Empty(t, spec.Validate())
	require.Empty(t, ns)

	spec, _ = job.Import("x", []byte(head+"export PATH=/w/.venv/bin:$PATH\n"+run+"--config_file z3.yaml --num_processes 8 train.py'\n"))
	require.Equal(t, []string{"/w/.venv/bin"}, spec.Path, "once")

	spec, _ = job.Import("x", []byte(head+run+"--multi_gpu --num_processes 8 train.py'\n"))
	require.Equal(t, job.Accelerate, spec.Launcher, "it renders several GPUs anyway")

	spec, ns = job.Import("x", []byte(head+run+`--num_processes $((SLURM_NNODES * 4 - 1)) --rdzv_conf "rdzv_backend=c10d,timeout=9" train.py'`+"\n"))
	require.Equal(t, job.Accelerate, spec.Launcher)
	require.Equal(t, map[string]string{"timeout": "9"}, spec.Rdzv.Conf)
	require.Contains(t, notes(ns), "--num_processes=7: the specification starts one process for each GPU")
	require.Contains(t, notes(ns), "--rdzv-conf rdzv_backend=c10d: the launch gives the rendezvous itself")
}

// The words that start a module, or a launcher with options of its own.
func TestWordsOfALauncherThatOnlyLauncherArgvExpresses(t *testing.T) {
	const group = " --num_machines={nnodes} --num_processes={world_size} --machine_rank={node_rank} --main_process_ip={master_addr} --main_process_port={master_port}"
	for name, tt := range map[string]struct{ run, script, argv string }{
		"a module by accelerate":            {"accelerate launch --num_machines 2 --num_processes 8 -m pkg.train", "pkg.train", "accelerate launch" + group + " -m"},
		"a module by deepspeed":             {"deepspeed --num_gpus 4 --module pkg.train", "pkg.train", "deepspeed --num_gpus={gpus_per_node} -m"},
		"accelerate by uv":                  {"uv run accelerate launch --config_file z3.yaml --num_processes 8 train.py", "train.py", "uv run accelerate launch" + group + " --config_file=z3.yaml"},
		"a module in one process of a node": {"python -m pkg.train", "pkg.train", "python -m"},
	} {
		spec, _ := job.Import("x", []byte("#!/bin/bash\n#SBATCH --nodes=2 --ntasks-per-node=1 --gpus-per-node=4\ncd /w\nsrun "+tt.run+"\n"))
		require.Equal(t, tt.script, spec.Script, name)
		require.Equal(t, tt.argv, strings.Join(spec.LauncherArgv, " "), name)
	}
}

// What the options of such a launcher say beyond their words.
func TestNumbersAndSwitchesOfALauncherOfItsOwn(t *testing.T) {
	spec, ns := job.Import("x", []byte("#!/bin/bash\n#SBATCH --nodes=2 --ntasks-per-node=1 --gpus-per-node=4\ncd /w\n"+
		"srun accelerate launch --num_machines 2 --main_process_port 6000 --num_processes 7 --use_deepspeed --config_file $CFG -m pkg.train\n"))
	require.Equal(t, 6000, *spec.MasterPort)
	require.Contains(t, spec.LauncherArgv, "--use_deepspeed")
	require.Contains(t, notes(ns), "--num_processes=7: the specification starts one process for each GPU")
	require.Contains(t, notes(ns), "--config_file=$CFG: the file does not show this value")
	require.NotContains(t, strings.Join(spec.LauncherArgv, " "), "$CFG")
}

func TestAMountOfApptainerByItsKeysIsImported(t *testing.T) {
	spec, _ := job.Import("x", []byte("#!/bin/bash\n#SBATCH --nodes=1 --gpus-per-node=8\ncd /w\n"+
		"srun apptainer exec --nv --mount type=bind,src=/models,dst=/m --mount type=bind,source=/w /i.sif python -m torch.distributed.run --nproc-per-node=8 train.py\n"))
	require.Equal(t, job.Mounts{"/models:/m", "/w:/w"}, spec.Container.Mounts)
}

// The elements of an array are no value of the flag before them.
func TestAnArrayThatTheFileDoesNotShowIsLeftOut(t *testing.T) {
	spec, ns := job.Import("x", []byte("#!/bin/bash\n#SBATCH --nodes=1 --gpus-per-node=8\ncd /w\nsource params.sh\n"+
		"srun python -m torch.distributed.run --nproc-per-node=8 train.py --save-interval 1000 ${DATA[@]} \"${MORE[@]}\" --bf16\n"))
	require.Equal(t, []string{"--save-interval", "1000", "--bf16"}, spec.Args)
	require.Contains(t, notes(ns), "${DATA[@]}: the file does not show these words: they are left out")
	require.Contains(t, notes(ns), "${MORE[@]}: the file does not show these words: they are left out")
}

// In a container the training starts in the folder of the innermost shell. The worktree is that folder's on the host
// if the mounts show it, and a relative program is never looked for in another folder.
func TestTheTrainingOfAContainerStartsInItsInnermostFolder(t *testing.T) {
	type imported struct{ Worktree, Workdir, Script string }
	const pyxis = "srun --container-image=/i.sqsh --container-mounts=/data:/data,/home/me/code:/code "
	const python = "python -m torch.distributed.run --nproc-per-node=8 "
	for name, tt := range map[string]struct {
		text string
		want imported
	}{
		"a mounted folder beside the batch shell's": {"cd /data/runs\n" + pyxis + `bash -c "cd /data/code; ` + python + `train.py"`, imported{"/data/code", "", "train.py"}},
		"a mount of another name":                   {"cd /data/runs\n" + pyxis + `bash -c "cd /code/sub; ` + python + `/code/sub/a/train.py"`, imported{"/home/me/code/sub", "", "a/train.py"}},
		"a mount that the file does not show": {
			"cd /data/runs\nsrun --container-image=/i.sqsh --container-mounts=$MOUNTS bash -c 'cd /w; " + python + "/w/train.py'", imported{"/data/runs", "/w", "train.py"},
		},
		"Apptainer's image":                       {"cd /data/runs\nsrun apptainer exec /i.sif bash -c 'cd /opt/code; " + python + "train.py'", imported{"/data/runs", "/opt/code", "train.py"}},
		"no folder of its own":                    {"cd /data/runs\n" + pyxis + python + "/data/runs/train.py", imported{"/data/runs", "", "train.py"}},
		"an option's, which a cd leaves":          {"srun docker run -w /workspace -v /data:/data img bash -c 'cd /data/code; " + python + "train.py'", imported{"/data/code", "/data/code", "train.py"}},
		"a program that is in the worktree":       {"cd /data/runs\n" + pyxis + `bash -c "cd /opt/NeMo; ` + python + `/data/runs/train.py"`, imported{"/data/runs", "/opt/NeMo", "/data/runs/train.py"}},
		"a host's folder that a mount's also is":  {"cd /code\n" + pyxis + python + "train.py", imported{"/code", "", "train.py"}},
		"a folder of the host, given by sbatch":   {"#SBATCH --chdir=/data/runs\n" + pyxis + python + "train.py", imported{"/data/runs", "", "train.py"}},
		"a folder of the image, and sbatch's too": {"#SBATCH --chdir=/data/runs\n" + pyxis + `bash -c "cd /opt/NeMo; ` + python + `train.py"`, imported{"/data/runs", "/opt/NeMo", "train.py"}},
	} {
		spec, _ := job.Import("x", []byte("#!/bin/bash\n#SBATCH --nodes=1 --gpus-per-node=8\n"+tt.text+"\n"))
		require.Equal(t, tt.want, imported{spec.Worktree, spec.Container.Workdir, spec.Script}, name)
	}
}

// A folder that is mounted read-only stays so.
func TestAMountKeepsItsFlags(t *testing.T) {
	for _, run := range []string{
		"srun --container-image=/i.sqsh --container-mounts=/w:/w,/data:/d:ro", "srun docker run -v /w:/w -v /data:/d:ro i",
		"srun docker run -v /w:/w --mount type=bind,src=/data,dst=/d,readonly i",
		`srun singularity exec -B "/w:/w, /data:/d:ro" i.sif`, "srun singularity exec -B \"/w:/w,\n  /data:/d:ro \" i.sif",
	} {
		s, _ := imported("#SBATCH --nodes=1 --gpus-per-node=8", "cd /w", run+" torchrun --nproc_per_node=8 /w/t.py")
		require.Equal(t, job.Mounts{"/w:/w", "/data:/d:ro"}, s.Container.Mounts, run)
	}
}

// What a step beside the training does is missing from the specification, and a function of the
// script is what its commands are.
func TestAStepBesideTheTrainingIsNoted(t *testing.T) {
	_, notes := imported("#SBATCH --nodes=2", "srun -N1 ray start --head &", "srun hostname", "srun bash <<E", "cd /w", "pip install torch", "E", "run() { srun $1 /w/t.py; }", "log() { echo $1; }", "log a", "run python")
	require.Contains(t, notes, "srun -N1 ray start --head: this command is not imported")
	require.Contains(t, notes, "srun bash: this command is not imported")
	_, inside := imported("#SBATCH --nodes=2", "for i in 1 2; do continue; done", `srun bash -c "cd /w; pip install x; torchrun --nproc_per_node=8 /w/t.py"`)
	require.Contains(t, inside, "pip install x: this command is not imported")
	require.NotContains(t, inside, "continue")
	require.NotContains(t, inside, "torchrun --nproc_per_node=8 /w/t.py: this command")
	require.NotContains(t, notes, "hostname")
	require.NotContains(t, notes, "log a")
	require.NotContains(t, notes, "run python")
}
