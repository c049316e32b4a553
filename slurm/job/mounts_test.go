package job_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/slurm/job"
)

// The mounts map paths of the host to paths in the container and back.
func TestMountsAreOneMappingBothWays(t *testing.T) {
	ms := job.Mounts{"/lustre", "/lustre/alice/code:/workspace", "/data:/mnt/data:ro", "/scratch/a:/lustre/alice/code/tmp"}
	for host, inside := range map[string]string{
		"/lustre/x":                  "/lustre/x",
		"/lustre/alice/code":         "/workspace",
		"/lustre/alice/code/train/a": "/workspace/train/a",
		"/lustre/alice/codes":        "/lustre/alice/codes",
		"/data/../data/b.bin":        "/mnt/data/b.bin",
		"/scratch/a/f":               "/lustre/alice/code/tmp/f",
	} {
		got, ok := ms.ToContainer(host)
		require.True(t, ok, host)
		require.Equal(t, inside, got, host)
	}
	for inside, host := range map[string]string{
		"/workspace/logs/x":        "/lustre/alice/code/logs/x",
		"/mnt/data/b.bin":          "/data/b.bin",
		"/lustre/y":                "/lustre/y",
		"/lustre/alice/code/tmp/f": "/scratch/a/f",
	} {
		got, ok := ms.ToHost(inside)
		require.True(t, ok, inside)
		require.Equal(t, host, got, inside)
	}
	_, ok := ms.ToHost("/opt/venv")
	require.False(t, ok, "a path of the image itself")
	_, ok = ms.ToContainer("/home/alice")
	require.False(t, ok, "what no mount covers is not seen")
	require.Equal(t, job.Mount{Host: "/data", Inside: "/mnt/data", Flags: "ro"}, ms.Split()[2])
}
