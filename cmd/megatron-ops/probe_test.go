package main

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/slurm/job/detect"
)

// Slurm's commands hang if the controller does not answer: init waits for all of them
// at once, and says what it could not detect.
func TestProbesThatHangAreWaitedForOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		why := lang.Text{EN: "no answer", ZH: "没有回答"}
		printed, silent := runProbes(t.Context(), detect.Probes("alice"), func(ctx context.Context, argv []string) (string, lang.Text) {
			if argv[0] == "findmnt" {
				return "/lustre lustre", lang.Text{}
			}
			time.Sleep(probeTimeout)
			return "", why
		})
		require.Equal(t, probeTimeout, time.Since(began))
		require.Equal(t, "/lustre lustre", printed["mounts"])
		require.Len(t, silent, 1, "one reason is said once")
		require.Equal(t, "sinfo, scontrol, sacctmgr, srun, which", programs(silent[0].probes))
		says := silent[0].message()
		require.Contains(t, says.EN, "no answer; not known: the partitions and their GPUs, the default partition")
		require.Contains(t, says.ZH, "没有回答；无法得知：分区及其 GPU、默认分区")
		require.NotContains(t, says.EN, "shared folders")
	})
}

// An error message of Slurm is passed on; a probe without a message is no error.
func TestAProbeThatFailsSaysWhy(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	for name, text := range map[string]string{
		"sinfo": "echo 'sinfo: error: Unable to contact slurm controller (connect failure)' >&2; exit 1",
		"which": "exit 1",
		"srun":  "echo '--container-image'; echo 'a warning' >&2; exit 1",
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+text+"\n"), 0o755))
	}
	_, why := runProbe(t.Context(), []string{"sinfo"})
	require.Contains(t, why.EN, "Unable to contact slurm controller")
	_, why = runProbe(t.Context(), []string{"which", "docker"})
	require.Empty(t, why)
	text, why := runProbe(t.Context(), []string{"srun", "--help"})
	require.Equal(t, "--container-image\n", text)
	require.Empty(t, why)
}
