package pattern_test

import (
	"fmt"
	"testing"

	"github.com/megatron-ops/megatron-ops/slurm/diagnose"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/diagnosetest"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/outcome"
	"github.com/stretchr/testify/require"
)

// Messages of Apptainer and Singularity from the named reports (with other names of images and
// folders), and the advice for them.
func TestApptainerSaysWhatFailed(t *testing.T) {
	const fatal = "0: FATAL:   "
	for _, c := range []struct{ source, log, class, advice string }{
		{"google/deepvariant#831", fatal + `Unable to handle docker://org/img:1 uri: failed to get checksum for docker://org/img:1: pinging container ` +
			`registry registry-1.docker.io: Get "https://registry-1.docker.io/v2/": dial tcp: lookup registry-1.docker.io on 10.0.0.2:53: read udp ` +
			`10.0.0.3:58057->10.0.0.2:53: i/o timeout`, outcome.Container, "cannot reach the registry"},
		{"ay-lab/FitHiChIP#106", fatal + `Unable to handle docker://org/img uri: while building SIF from layers: conveyor failed to get: initializing ` +
			`source oci:/cache/blob:bb: reading blob sha256:23: Get "https://docker.com/registry-v2/docker/registry/v2/blobs": dial tcp ` +
			`199.59.149.244:443: i/o timeout`, outcome.Container, "cannot reach the registry"},
		{"nextflow-io/nextflow#5511", fatal + "While making image from oci registry: error fetching image to cache: failed to get checksum for " +
			"docker://org/img:latest: Error reading manifest latest in docker.io/org/img: errors:\n0: denied: requested access to the resource is denied\n" +
			"0: unauthorized: authentication required", outcome.Container, "not allowed to pull"},
		{"a-ludi/dentist#11", fatal + "Unable to handle docker://org/img:latest uri: failed to get checksum for docker://org/img:latest: Error reading " +
			"manifest latest in docker.io/org/img: manifest unknown: manifest unknown", outcome.Container, "The image does not exist"},
		{"areal-project/AReaL#328", fatal + "While checking container encryption: could not open image /images/x.sif: failed to retrieve path for " +
			"/images/x.sif: lstat /images/x.sif: no such file or directory", outcome.Container, "The image does not exist"},
		{
			"pkg/image of Apptainer 1.5.3", fatal + "while loading image /images/x.sif: image format not recognized", outcome.Container,
			"The image does not exist, or is not an image",
		},
		{
			"rpc/server of Apptainer 1.5.3", fatal +
				"container creation failed: mount hook function failure: mount /nosuch->/data error: while mounting /nosuch: mount source /nosuch doesn't exist",
			outcome.Container, "mount",
		},
		{"apptainer/apptainer#1895", fatal + "container creation failed: mount hook function failure: mount " +
			"/var/apptainer/mnt/session/storage->/storage error: while mounting /var/apptainer/mnt/session/storage: destination /storage doesn't exist in " +
			"container", outcome.Container, "mount"},
		{
			"process_linux.go of Apptainer 1.5.3", fatal + "failed to set working directory: chdir /nosuch: no such file or directory", outcome.Container,
			"working directory",
		},
		{"apptainer/apptainer#321", fatal + "container creation failed: mount /proc/self/fd/3->/var/apptainer/mnt/session/rootfs error: while mounting " +
			"image /proc/self/fd/3: failed to find loop device: could not attach image file to loop device: failed to attach loop device: could not open " +
			"/dev/loop0: no such device or address", outcome.Container, "The node itself"},
		{
			"apptainer/apptainer#2492", "0: INFO:    Converting SIF file to temporary sandbox...\n" + fatal + "while extracting /images/x.sif: root " +
				"filesystem extraction failed: extract command failed: ERROR  : Failed to create container process: Operation not permitted\n0: : exit status 1",
			outcome.Container, "The node itself",
		},
		{"molgenis/vip#745", fatal + "container creation failed: failed to resolve session directory /usr/local/var/apptainer/mnt/session: lstat " +
			"/usr/local/var/apptainer: no such file or directory", outcome.Container, "The node itself"},
		{"brockpalen/archivetar#54", fatal + `"torchrun": executable file not found in $PATH`, outcome.EnvLaunch, "interpreter"},
		{"sylabs/singularity#2249", "0: INFO:    Converting SIF file to temporary sandbox...\n" + fatal +
			"stat /data/envs/bin/python: no such file or directory", outcome.EnvLaunch, "interpreter"},
	} {
		r := diagnosetest.With(t, c.log+"\nsrun: error: gpu3: task 0: Exited with exit code 255\n", diagnose.Context{JobState: "FAILED"})
		require.Equal(t, c.class, r.Class, "%s: %s", c.source, r.RootLine)
		require.Contains(t, r.RootLine, "FATAL:   ", c.source)
		require.Contains(t, r.Advice[0], c.advice, c.source)
	}
	// Its other messages are not failures, and a program's exit is the program's own.
	const beside = "0: INFO:    squashfuse not found, will not be able to mount SIF or other squashfs files\n" +
		"0: WARNING: passwd file doesn't exist in container, not updating\n0: INFO:    Cleaning up image...\n"
	r := diagnosetest.With(t, beside+"srun: error: gpu3: task 0: Exited with exit code 3\n", diagnose.Context{JobState: "FAILED"})
	require.Equal(t, outcome.UnknownExit, r.Class, r.RootLine)
	r = diagnosetest.With(t, beside+"0: [after training is done] datetime: 2026-01-01 00:00:00\n", diagnose.Context{JobState: "COMPLETED"})
	require.Equal(t, outcome.Success, r.Class, r.RootLine)
}

// Output of Apptainer 1.4.5 of Debian, run by an ordinary user with an image that holds only a shell.
// How it ended counts as srun reports it.
func TestApptainerThatRan(t *testing.T) {
	const beside = "0: INFO:    squashfuse not found, will not be able to mount SIF or other squashfs files\n" +
		"0: INFO:    fuse2fs not found, will not be able to mount EXT3 filesystems\n" +
		"0: INFO:    gocryptfs not found, will not be able to use gocryptfs\n" +
		"0: INFO:    Converting SIF file to temporary sandbox...\n"
	const cleanUp = "0: INFO:    Cleaning up image...\n"
	const fatal = "0: FATAL:   "
	for name, c := range map[string]struct {
		log           string
		code          int
		class, advice string
	}{
		"no image": {
			fatal + "While checking container encryption: could not open image /images/x.sif: failed to retrieve path for /images/x.sif: " +
				"lstat /images: no such file or directory\n", 255, outcome.Container, "The image does not exist",
		},
		"a file that is none": {
			fatal + "While checking container encryption: could not open image /images/x.sif: image format not recognized\n", 255,
			outcome.Container, "The image does not exist, or is not an image",
		},
		"an image of somebody's own": {
			fatal + "While checking container encryption: could not open image /images/x.sif: /images/x.sif is not readable by the current user, " +
				"check permissions\n", 255, outcome.Container, "cannot read the image",
		},
		"a registry that does not resolve": {
			fatal + "Unable to handle docker://registry.invalid/org/img:1 uri: failed to get checksum for docker://registry.invalid/org/img:1: pinging " +
				`container registry registry.invalid: Get "https://registry.invalid/v2/": dial tcp: lookup registry.invalid on 10.0.0.2:53: no such host` + "\n",
			255, outcome.Container, "cannot reach the registry",
		},
		"a registry that refuses": {
			fatal + "Unable to handle docker://127.0.0.1:1/org/img:1 uri: failed to get checksum for docker://127.0.0.1:1/org/img:1: pinging container " +
				`registry 127.0.0.1:1: Get "https://127.0.0.1:1/v2/": dial tcp 127.0.0.1:1: connect: connection refused` + "\n",
			255, outcome.Container, "cannot reach the registry",
		},
		"an oras registry that does not resolve": {
			fatal + "Unable to handle oras://registry.invalid/org/img:1 uri: failed to get checksum for oras://registry.invalid/org/img:1: " +
				`Get "https://registry.invalid/v2/": dial tcp: lookup registry.invalid on 10.0.0.2:53: no such host` + "\n",
			255, outcome.Container, "cannot reach the registry",
		},
		"no working directory": {
			beside + fatal + "failed to set working directory: chdir /nosuch: no such file or directory\n" + cleanUp, 255,
			outcome.Container, "working directory",
		},
		"no mount": {
			beside + fatal + "container creation failed: mount hook function failure: mount /nosuch->/data error: while mounting /nosuch: mount source " +
				"/nosuch doesn't exist\n" + cleanUp, 255, outcome.Container, "mount",
		},
		"no user namespaces": {
			beside + fatal + "while extracting x.sif: root filesystem extraction failed: extract command failed: INFO   : A system administrator may need " +
				"to enable user namespaces, install\n0: INFO   :   apptainer-suid, or compile with ./mconfig --with-suid\n0: ERROR  : Failed to create user " +
				"namespace: not allowed to create user namespace\n0: : exit status 1\n", 255, outcome.Container, "The node itself",
		},
		"no program":               {beside + fatal + `"torchrun": executable file not found in $PATH` + "\n" + cleanUp, 255, outcome.EnvLaunch, "interpreter"},
		"no interpreter":           {beside + fatal + "stat /data/envs/bin/python: no such file or directory\n" + cleanUp, 255, outcome.EnvLaunch, "interpreter"},
		"the program ended with 3": {beside + "0: in\n" + cleanUp, 3, outcome.UnknownExit, ""},
		"the program ended well":   {beside + "0: in\n" + cleanUp, 0, outcome.Success, ""},
	} {
		end, state := fmt.Sprintf("srun: error: gpu3: task 0: Exited with exit code %d\n", c.code), "FAILED"
		if c.code == 0 {
			end, state = "", "COMPLETED"
		}
		r := diagnosetest.With(t, c.log+end, diagnose.Context{JobState: state})
		require.Equal(t, c.class, r.Class, "%s: %s", name, r.RootLine)
		if c.advice != "" {
			require.Contains(t, r.Advice[0], c.advice, name)
		}
	}
}
