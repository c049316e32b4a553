package job_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/slurm/job"
)

func byHand() map[string]job.Spec {
	plain := twoNodes("--tensor-model-parallel-size", "2", "--title", "it's $HOME")
	plain.Env = map[string]string{"T_X": "a b"}
	docker := plain
	docker.Container = job.Container{Runtime: job.Docker, Image: "megatron:dev", Mounts: job.Mounts{"/shared:/workspace"}, Env: map[string]string{"T_IN": "$x"}}
	singularity := plain
	singularity.Container = job.Container{Runtime: job.Singularity, Image: "/shared/a.sif"}
	elastic := plain
	elastic.Rdzv = job.Rdzv{Backend: "c10d"}
	elastic.Launcher = job.Python
	custom := plain
	custom.Launcher, custom.LauncherArgv = job.Custom, []string{"mylauncher", "{node_rank}", "{master_addr}"}
	single := plain
	single.Nodes = new(1)
	return map[string]job.Spec{"plain": plain, "docker": docker, "singularity": singularity, "c10d": elastic, "custom": custom, "single": single}
}

func TestCommandsToTypeOnEachNode(t *testing.T) {
	t.Parallel()
	for name, spec := range byHand() {
		t.Run(name, func(t *testing.T) {
			nodes := []string{"gpu1", "gpu2"}[:*spec.Nodes]
			commands, err := job.ForShell(spec, job.Options{}, nodes)
			require.NoError(t, err)
			require.Len(t, commands, *spec.Nodes)
			text := strings.Join(commands, "\n\n") + "\n"
			compareGolden(t, filepath.Join("testdata/shell", name+".txt"), text)
			requireClean(t, "#!/bin/bash\n# shellcheck disable=SC2016\n"+text)

			for node, command := range commands {
				calls := typeIn(t, strings.ReplaceAll(command, "/shared/tree", t.TempDir()))
				last := calls[len(calls)-1]
				require.Equal(t, []string{"pretrain_gpt.py", "--tensor-model-parallel-size", "2", "--title", "it's $HOME"}, last.Argv[len(last.Argv)-5:])
				require.Equal(t, "a b", last.Env["T_X"])
				require.Equal(t, spec.Container.Env["T_IN"], last.Env["T_IN"])
				if name == "plain" {
					require.Contains(t, last.Argv, []string{"--node-rank=0", "--node-rank=1"}[node])
					require.Contains(t, last.Argv, "--master-addr=gpu1")
					require.Equal(t, "1", last.Env["CUDA_DEVICE_MAX_CONNECTIONS"])
				}
			}
		})
	}
}

// typeIn runs a command that a person would type, with stand-ins and without Slurm.
func typeIn(t *testing.T, command string) []call {
	t.Helper()
	log := filepath.Join(t.TempDir(), "calls")
	cmd := exec.Command("/bin/bash", "-c", command)
	cmd.Env = []string{"PATH=" + standInBin + ":/usr/bin:/bin", "STANDIN_LOG=" + log}
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s\n%s", command, out)
	return readCalls(t, log)
}

func TestCommandsToTypeSayWhatIsMissing(t *testing.T) {
	spec := byHand()["plain"]
	_, err := job.ForShell(spec, job.Options{}, []string{"gpu1"})
	require.ErrorContains(t, err, "does not match the number of nodes named: 1")
	spec.Container = job.Container{Runtime: job.Pyxis, Image: "/a.sqsh"}
	_, err = job.ForShell(spec, job.Options{}, nil)
	require.ErrorContains(t, err, "use enroot")
	spec.Name = "a b"
	_, err = job.ForShell(spec, job.Options{}, nil)
	require.ErrorContains(t, err, "name: ")
}

func TestASessionIsAskedForLikeTheJob(t *testing.T) {
	spec := twoNodes()
	spec.Partition, spec.Time, spec.CPUsPerTask, spec.GPURequest = "dev", "6:00:00", new(96), "gres"
	spec.Begin = "16:00 12/24/30"
	got, err := job.ForSession(spec, job.Options{})
	require.NoError(t, err)
	require.Equal(t, job.Interactive{
		Allocate: "salloc --no-shell --job-name=gpt --partition=dev --nodes=2 --ntasks-per-node=1 --gres=gpu:8 --cpus-per-task=96 --time=6:00:00 --begin='16:00 12/24/30'",
		Shell:    "srun --pty --job-name=gpt --partition=dev --nodes=1 --ntasks-per-node=1 --gres=gpu:8 --cpus-per-task=96 --time=6:00:00 bash",
		Join:     "srun --jobid=JOBID --overlap --pty -w NODE bash",
		Side:     "srun --jobid=JOBID --overlap --gres=gpu:0 --nodes=2 --ntasks-per-node=1 nvidia-smi",
		Release:  "scancel JOBID",
	}, got)
}

func TestHostfile(t *testing.T) {
	require.Equal(t, "gpu1 slots=8\ngpu2 slots=8\n", job.Hostfile([]string{"gpu1", "gpu2"}, 8))
}

func TestAStepInAnAllocationThatOneHolds(t *testing.T) {
	t.Parallel()
	script, err := job.IntoStep(twoNodes(), job.Options{Version: "v0.0.0"}, "4711")
	require.NoError(t, err)
	require.NotContains(t, script.Text, "#SBATCH")
	require.Contains(t, script.Text, "export SLURM_JOB_ID=4711 ")
	compareGolden(t, "testdata/shell/into.sh", script.Text)
	requireClean(t, script.Text)

	// The step of the training is found by its name, which no other step has.
	checked := twoNodes()
	checked.NodeCheck = new(true)
	script, err = job.IntoStep(checked, job.Options{}, "4711")
	require.NoError(t, err)
	require.Equal(t, 1, strings.Count(script.Text, `--job-name="$SLURM_JOB_NAME"`))
	require.Contains(t, script.Text, "NODE_CHECK=")
}

func TestALauncherFindsItsHostfile(t *testing.T) {
	t.Parallel()
	s := bareLaunch()
	s.Launcher, s.LauncherArgv = job.Custom, []string{"mylauncher", "--hostfile={hostfile}"}
	r := execute(t, s, job.Options{})
	require.Zero(t, r.code, r.output)
	for _, c := range r.of("mylauncher") {
		file := strings.TrimPrefix(c.Argv[0], "--hostfile=")
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		require.Equal(t, job.Hostfile([]string{"node0", "node1"}, 8), string(text))
	}
}
