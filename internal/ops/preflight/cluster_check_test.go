package preflight_test

import (
	"cmp"
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops/jobcontrol"
	"github.com/megatron-ops/megatron-ops/internal/ops/launch"
	"github.com/megatron-ops/megatron-ops/internal/ops/opstest"
	"github.com/megatron-ops/megatron-ops/knowledge/rules"
	"github.com/megatron-ops/megatron-ops/slurm"
	"github.com/megatron-ops/megatron-ops/slurm/cluster"
)

// A testingSite is a site that says what Slurm would do with a job.
type testingSite struct {
	*opstest.Site
	refuses error
	asked   int
	state   string // the state of its nodes
}

func (s *testingSite) Test(context.Context, slurm.Submission) (slurm.Estimate, error) {
	s.asked++
	return slurm.Estimate{}, s.refuses
}

func (s *testingSite) Nodes(context.Context) ([]slurm.Node, error) {
	return []slurm.Node{{Name: "n1", State: s.state}}, nil
}

func (s *testingSite) Partitions(context.Context) ([]slurm.Partition, error) { return nil, nil }

// A pairSite has two nodes in a partition, one of them drained, and one node elsewhere.
type pairSite struct{ *testingSite }

func (pairSite) Nodes(context.Context) ([]slurm.Node, error) {
	return []slurm.Node{
		{Name: "n1", State: "idle", Partitions: []string{"prod"}},
		{Name: "n2", State: "drained", Partitions: []string{"prod"}},
		{Name: "n3", State: "idle", Partitions: []string{"dev"}},
	}, nil
}

// A job that excludes so many nodes that too few are left is told so; it would not wait
// for drained nodes either.
func TestAJobThatExcludesTooManyNodes(t *testing.T) {
	for exclude, refused := range map[string]bool{"n2": true, "n[1-2]": true, "n3": false, "": false} {
		refuses := slurm.FromStderr("test", "allocation failure: Requested node configuration is not available")
		s := pairSite{&testingSite{Site: &opstest.Site{}, refuses: refuses}}
		c := opstest.NewCall(t, s.Site)
		c.Clusters["test"] = s
		words := append([]string{"--yes", "--partition", "prod", "--exclude", exclude}, opstest.GoodJob...)
		out, err := opstest.Do(t, c, launch.Submit(), words...)
		require.NoError(t, err)
		require.Equal(t, refused, out.(launch.SubmitOut).JobID == nil, exclude)
		text := opstest.Text(t, out, lang.EN)
		if refused {
			require.Contains(t, text, "of 2 nodes, and the job asks for 2")
			require.Equal(t, exclude == "n2", strings.Contains(text, "or ask for at most 1"), exclude)
			require.NotContains(t, text, "at most 0")
			c.Lang = lang.ZH
			out, err = opstest.Do(t, c, launch.Submit(), words...)
			require.NoError(t, err)
			require.Contains(t, opstest.Text(t, out, lang.ZH), "2 个节点只剩")
		} else {
			require.NotContains(t, text, "it leaves")
		}
	}
}

func TestWhatSlurmWouldRefuseIsNotSubmitted(t *testing.T) {
	for said, want := range map[string]struct {
		state, field string
		severity     rules.Severity
	}{
		"sbatch: error: allocation failure: Requested reservation is invalid":                {"idle", "reservation", rules.Error},
		"allocation failure: Invalid feature specification":                                  {"idle", "constraint", rules.Error},
		"allocation failure: Invalid node name specified":                                    {"idle", "nodelist", rules.Error},
		"allocation failure: Requested node configuration is not available":                  {"mixed", "nodes", rules.Error},
		"allocation failure: Requested node configuration is not available; as of this hour": {"drained", "nodes", rules.Warning},
		"Unable to contact slurm controller (connect failure)":                               {"idle", "", ""},
	} {
		s := &testingSite{Site: &opstest.Site{}, refuses: slurm.FromStderr("test", said), state: want.state}
		c := opstest.NewCall(t, s.Site)
		c.Clusters["test"] = s
		out, err := opstest.Do(t, c, launch.Submit(), append([]string{"--yes"}, opstest.GoodJob...)...)
		require.NoError(t, err)
		var told []rules.Problem
		for _, p := range out.(launch.SubmitOut).Problems {
			if p.Rule == "slurm-refuses" {
				told = append(told, p)
			}
		}
		require.Equal(t, want.severity != rules.Error, out.(launch.SubmitOut).JobID != nil, said)
		if want.field == "" {
			require.Empty(t, told, "no answer is no refusal")
			continue
		}
		require.Len(t, told, 1, said)
		require.Equal(t, want.field, told[0].Field, said)
		require.Equal(t, want.severity, told[0].Severity, said)
		require.NotContains(t, told[0].Message, "allocation failure")

		_, err = opstest.Do(t, c, launch.Submit(), append([]string{"--yes", "--force"}, opstest.GoodJob...)...)
		require.NoError(t, err)
		require.NotEmpty(t, s.Submitted, "who knows better may")
	}
}

// A repeated key gets its job, whatever the cluster would say now.
func TestAKeyThatHasItsJobIsNotJudgedAgain(t *testing.T) {
	s := &testingSite{Site: &opstest.Site{}, state: "idle"}
	c := opstest.NewCall(t, s.Site)
	c.Clusters["test"] = s
	words := append([]string{"--yes", "--idempotency-key", "k"}, opstest.GoodJob...)
	first, err := opstest.Do(t, c, launch.Submit(), words...)
	require.NoError(t, err)
	s.refuses = slurm.FromStderr("test", "QOSMaxSubmitJobPerUserLimit")
	again, err := opstest.Do(t, c, launch.Submit(), words...)
	require.NoError(t, err)
	require.Equal(t, first.(launch.SubmitOut).JobID, again.(launch.SubmitOut).JobID)
	require.Equal(t, 1, s.asked)
}

// sbatch accepted each of these jobs, or refused it after the person had confirmed it;
// none of them may reach the queue.
func TestWhatTheClusterWouldRefuseIsNotSubmittedOnSlurm(t *testing.T) {
	c, real := opstest.OnSlurm(t)
	tree := filepath.Join(real.Work, "checked")
	require.NoError(t, os.MkdirAll(tree, 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(tree, "train.py"), []byte("print()\n"), 0o644))
	given := []string{"submit", "--yes", "--name", "checked", "--nodes", "1", "--gpus-per-node", "1", "--time", "5", "--launcher", "python", "--partition", "dev", "--worktree", tree, "--script", "train.py"}
	own, _ := c.Clusters["real"].(*cluster.CLI)
	for _, who := range []string{"alice", "bob"} {
		cl, err := own.As(who)
		require.NoError(t, err)
		c.Clusters["real"] = cl
		c.Who.User, c.Who.ID = who, who
		for words, rule := range map[string]string{
			"--nodes 9":            "partition-nodes",
			"--time 2:00:00":       "partition-time",
			"--account nosuch":     "account-not-yours",
			"--qos nosuch":         "qos-not-yours",
			"--partition nosuch":   "partition-unknown",
			"--gpus-per-node 9":    "gpus-over-node",
			"--cpus-per-task 65":   "cpus-over-node",
			"--script nosuch.py":   "script-exists",
			"--worktree /no/such":  "worktree-exists",
			"--reservation nosuch": "slurm-refuses",
			"--mem 900G":           "slurm-refuses",
			"--constraint nosuch":  "slurm-refuses",
			"--nodelist gpu9":      "slurm-refuses",
		} {
			for _, dry := range [][]string{nil, {"--dry-run"}} {
				out, err := opstest.Do(t, c, launch.Submit(), append(append(given[1:len(given):len(given)], strings.Fields(words)...), dry...)...)
				require.NoError(t, err, words)
				require.Nil(t, out.(launch.SubmitOut).JobID, words)
				require.Contains(t, opstest.Ids(out.(launch.SubmitOut).Problems), rule, words)
				require.True(t, out.(launch.SubmitOut).Found(), words)
			}
		}
	}
	jobs, err := opstest.Do(t, c, jobcontrol.List(), "--user", "all")
	require.NoError(t, err)
	require.NotContains(t, opstest.Text(t, jobs, lang.EN), "checked", "nothing waits for ever")
	c.Who.User, c.Who.ID = "bob", "bob"
	out, err := opstest.Do(t, c, launch.Submit(), append(given[1:], "--account", "research")...)
	require.NoError(t, err)
	require.Contains(t, opstest.Ids(out.(launch.SubmitOut).Problems), "account-not-yours", "alice's account is not bob's")
}

// A custom launcher finds its own program, unless it passes on the one that it is
// given. The plan says about the program what the submission says.
func TestAProgramThatIsNotThereStopsTheJob(t *testing.T) {
	tree := t.TempDir()
	for launcher, stops := range map[string]bool{
		"--launcher python":                         true,
		"--launcher custom --launcher-argv python3": true,
		"--launcher custom --launcher-argv torchrun --launcher-argv=--nproc-per-node=8":                     true,
		"--launcher custom --launcher-argv python --launcher-argv=-m --launcher-argv torch.distributed.run": true,
		"--launcher custom --launcher-argv python --launcher-argv=-m --launcher-argv mine":                  false,
		"--launcher custom --launcher-argv my-launcher":                                                     false,
		"--launcher custom --launcher-argv bash":                                                            true,
	} {
		c := shell(t, tree)
		words := append([]string{"--yes", "--worktree", tree, "--script", "nosuch.py", "--nodes", "1", "--gpus-per-node", "1", "--time", "5", "--name", "x"}, strings.Fields(launcher)...)
		out, err := opstest.Do(t, c, launch.Submit(), words...)
		require.NoError(t, err, launcher)
		require.Contains(t, opstest.Ids(out.(launch.SubmitOut).Problems), "script-exists", launcher)
		require.Equal(t, stops, out.(launch.SubmitOut).JobID == nil, launcher)
		planned, err := opstest.Do(t, c, launch.Plan(), words[1:]...)
		require.NoError(t, err, launcher)
		require.Equal(t, stops, planned.(launch.PlanOut).Found(), launcher)
		missing := func(p rules.Problem) bool { return p.Rule == "script-exists" }
		told, first := out.(launch.SubmitOut).Problems, planned.(launch.PlanOut).Problems
		require.Equal(t, told[slices.IndexFunc(told, missing)], first[slices.IndexFunc(first, missing)], launcher)
		if stops {
			require.Contains(t, out.(launch.SubmitOut).Undone(), "script-exists", "the audit says so")
		} else {
			require.Empty(t, out.(launch.SubmitOut).Undone())
		}
	}
}

// A custom launcher's words may name the program; only that program must exist.
func TestTheProgramThatALauncherNamesIsLookedFor(t *testing.T) {
	tree := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(tree, "train.py"), nil, 0o600))
	for words, missing := range map[string]string{
		"python train.py": "", "python other.py": "other.py is not in the worktree", "bash run.sh": "run.sh is not in the worktree", "my-launcher": "", "python -m mine": "",
		"python": "pretrain_gpt.py is not in the worktree",
	} {
		args := []string{"--worktree", tree, "--nodes", "1", "--gpus-per-node", "0", "--time", "5", "--launcher", "custom"}
		for w := range strings.FieldsSeq(words) {
			args = append(args, "--launcher-argv="+w)
		}
		out, err := opstest.Do(t, shell(t, tree), launch.Plan(), args...)
		require.NoError(t, err, words)
		require.Equal(t, missing != "", out.(launch.PlanOut).Found(), words)
		require.Equal(t, words == "python other.py" || words == "bash run.sh", strings.Contains(opstest.Text(t, out, lang.EN), "name the program in launcher_argv"), words)
		require.Equal(t, missing != "", strings.Contains(opstest.Text(t, out, lang.EN), cmp.Or(missing, "is not in the worktree")), words)
	}
}
