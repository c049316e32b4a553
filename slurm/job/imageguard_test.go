package job_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/slurm/job"
)

// Output of enroot 4 (with curl 7.88) and skopeo 1.9.3 for Docker's registry 2.8.2.
const (
	enrootGone     = "[INFO] Querying registry for permission grant\n[ERROR] URL http://127.0.0.1:5055/v2/team/megatron/manifests/no returned error code: 404 Not Found\n"
	enrootDenied   = "[INFO] Authenticating with user: <anonymous>\n[ERROR] URL https://nvcr.io/v2/team/megatron/manifests/no returned error code: 401 Unauthorized\n"
	enrootOdd      = "[INFO] Querying registry for permission grant\n[ERROR] URL http://127.0.0.1:5055/v2/team/megatron/manifests/dev returned error code: 400 Bad Request\n"
	enrootSilent   = "[INFO] Querying registry for permission grant\ncurl: (7) Failed to connect to 127.0.0.1 port 1 after 0 ms: Couldn't connect to server\n"
	skopeoGone     = `time="2026-01-20T14:47:03Z" level=fatal msg="Error parsing image name \"docker://127.0.0.1:5055/team/megatron:no\": reading manifest no in 127.0.0.1:5055/team/megatron: manifest unknown: manifest unknown"` + "\n"
	skopeoDenied   = `time="2026-01-20T14:47:03Z" level=fatal msg="Error parsing image name \"docker://127.0.0.1:5056/team/megatron:dev\": reading manifest dev in 127.0.0.1:5056/team/megatron: unauthorized: authentication required"` + "\n"
	skopeoNoAnswer = `time="2026-01-20T14:47:03Z" level=fatal msg="Error parsing image name \"docker://127.0.0.1:1/x:y\": pinging container registry 127.0.0.1:1: Get \"http://127.0.0.1:1/v2/\": dial tcp 127.0.0.1:1: connect: connection refused"` + "\n"
)

// answering returns a PATH on which prog prints recorded output and exits with code if
// its first word is first. Otherwise prog starts containers like the stand-in.
func answering(t *testing.T, prog, first, says string, code string) string {
	t.Helper()
	bin := strings.TrimPrefix(pathWithout(t, prog), "PATH=")
	self, err := os.Executable()
	require.NoError(t, err)
	require.NoError(t, os.MkdirAll(filepath.Join(bin, "real"), 0o755))
	require.NoError(t, os.Symlink(self, filepath.Join(bin, "real", prog)))
	said := filepath.Join(bin, "said")
	require.NoError(t, os.WriteFile(said, []byte(says), 0o644))
	require.NoError(t, os.WriteFile(filepath.Join(bin, prog), []byte("#!/bin/bash\n[[ $1 == "+first+" ]] || exec "+bin+"/real/"+prog+" \"$@\"\n"+
		"echo \"$SLURM_NODEID $*\" >>\"$STANDIN_LOG.asked\"\n[[ "+code+" == 0 ]] && exec cat "+said+"\ncat "+said+" >&2\nexit "+code+"\n"), 0o755))
	return "PATH=" + bin
}

// The script asks the registry once. The job ends before any rank starts only if the
// registry itself answers that the image does not exist, or that access is denied.
func TestARegistrysImageIsAskedForOnce(t *testing.T) {
	t.Parallel()
	pyxis := job.Container{Runtime: job.Pyxis, Image: "127.0.0.1:5055#team/megatron:dev"}
	apptainer := job.Container{Runtime: job.Apptainer, Image: "docker://127.0.0.1:5055/team/megatron:dev"}
	enroot := job.Container{Runtime: job.Enroot, Image: "megatron"}
	const doubt = "guard: warning: node0: not known whether image docker://127.0.0.1:5055"
	for name, c := range map[string]struct {
		container job.Container
		path      string
		asks      string // node and arguments of each call of the tool
		stops     bool
		says      string
	}{
		"enroot finds it":        {pyxis, answering(t, "enroot", "digest", "sha256:44136fa3\n", "0"), "0 digest docker://127.0.0.1:5055#team/megatron:dev\n", false, ""},
		"enroot is told 404":     {pyxis, answering(t, "enroot", "digest", enrootGone, "1"), "", true, "returned error code: 404 Not Found"},
		"enroot is told 401":     {pyxis, answering(t, "enroot", "digest", enrootDenied, "1"), "", true, "returned error code: 401 Unauthorized"},
		"enroot is told 400":     {pyxis, answering(t, "enroot", "digest", enrootOdd, "1"), "", false, doubt},
		"no answer":              {pyxis, answering(t, "enroot", "digest", enrootSilent, "7"), "", false, doubt},
		"an enroot before 4":     {pyxis, answering(t, "enroot", "digest", "enroot: unknown command\n", "1"), "", false, doubt},
		"no enroot":              {pyxis, pathWithout(t, "enroot"), "", false, doubt},
		"skopeo finds it":        {apptainer, answering(t, "skopeo", "inspect", "{}\n", "0"), "0 inspect --raw docker://127.0.0.1:5055/team/megatron:dev\n", false, ""},
		"skopeo: no manifest":    {apptainer, answering(t, "skopeo", "inspect", skopeoGone, "1"), "", true, "manifest unknown"},
		"skopeo is refused":      {apptainer, answering(t, "skopeo", "inspect", skopeoDenied, "1"), "", false, doubt},
		"skopeo gets no answer":  {apptainer, answering(t, "skopeo", "inspect", skopeoNoAnswer, "1"), "", false, doubt},
		"no skopeo":              {apptainer, pathWithout(t), "", false, doubt},
		"a library's":            {job.Container{Runtime: job.Singularity, Image: "library://team/megatron:dev"}, pathWithout(t), "", false, "is not looked for before the launch"},
		"a container of enroot":  {enroot, answering(t, "enroot", "list", "pytorch\nmegatron\n", "0"), "0 list\n1 list\n", false, ""},
		"no container of enroot": {enroot, answering(t, "enroot", "list", "pytorch\nmegatron-old\n", "0"), "", true, "megatron is neither a file nor a container of enroot here"},
		"enroot lists nothing":   {enroot, answering(t, "enroot", "list", "", "1"), "", false, "guard: warning: node1: enroot does not list its containers"},
	} {
		t.Run(name, func(t *testing.T) {
			s := twoNodes()
			s.Launcher, s.Monitor, s.Container = job.Python, new(false), c.container
			r := execute(t, s, job.Options{}, c.path)
			if c.stops {
				require.Equal(t, 3, r.code, r.output)
				require.Contains(t, r.output, "guard: stop: node0: ")
				require.Empty(t, r.of("python"), "no rank was started")
			} else {
				require.Zero(t, r.code, r.output)
				require.NotContains(t, r.output, "guard: stop")
			}
			require.Contains(t, r.output, c.says)
			if c.says == "" {
				require.NotContains(t, r.output, "image")
			}
			if c.asks != "" {
				asked, err := os.ReadFile(filepath.Join(filepath.Dir(r.dir), "calls.asked"))
				require.NoError(t, err)
				require.Equal(t, c.asks, string(asked))
			}
		})
	}
}
