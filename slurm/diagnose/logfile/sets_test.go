package logfile_test

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/megatron-ops/megatron-ops/slurm/diagnose/diagnosetest"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/logfile"
	"github.com/stretchr/testify/require"
)

// folder creates files with the given names and a line of text each.
func folder(t *testing.T, names ...string) string {
	t.Helper()
	dir := t.TempDir()
	beside(t, dir, names...)
	return dir
}

// beside creates such files in dir.
func beside(t *testing.T, dir string, names ...string) {
	t.Helper()
	for _, name := range names {
		path := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte("loading\n"), 0o644))
	}
}

// files returns the names of the logs under paths.
func files(t *testing.T, paths ...string) []string {
	t.Helper()
	src, err := logfile.Open(paths...)
	require.NoError(t, err)
	return src.Files()
}

// A job's logs are distinguished from other files in its folder.
func TestWhatLiesBesideLogsIsNotReadAsOne(t *testing.T) {
	dir := folder(t, "slurm-5.out", "logs/rank1.log", "logs/rank0.log", "notes", "config.yaml", "model.PT", "train.py", ".hidden",
		"events.out.tfevents.1", ".git/index.log", ".venv/pip.log", "venv/pip.log", "train.4711.o", "adam_sm80.o")
	require.NoError(t, os.WriteFile(filepath.Join(dir, "empty.log"), nil, 0o644))
	require.Equal(t, []string{"logs/rank0.log", "logs/rank1.log", "notes", "slurm-5.out", "train.4711.o", "venv/pip.log"}, files(t, dir))
	require.Equal(t, []string{"config.yaml"}, files(t, filepath.Join(dir, "config.yaml")), "a file that is named is read")
	require.Equal(t, []string{"rank0.log", "rank1.log", "slurm-5.out"}, files(t, filepath.Join(dir, "logs"), filepath.Join(dir, "*.out")))
}

// TestTheNewestJobOfAFolderIsRead has folders that several jobs wrote into.
func TestTheNewestJobOfAFolderIsRead(t *testing.T) {
	for name, c := range map[string]struct{ lie, read []string }{
		"Slurm's own names":          {[]string{"slurm-4711.out", "slurm-4712.out"}, []string{"slurm-4712.out"}},
		"the newer has more digits":  {[]string{"slurm-99.out", "slurm-100.out"}, []string{"slurm-100.out"}},
		"a job's both streams":       {[]string{"slurm-4711.err", "slurm-4712.err", "slurm-4712.out"}, []string{"slurm-4712.err", "slurm-4712.out"}},
		"numbers of anything":        {[]string{"104711.out", "104712.out"}, []string{"104711.out", "104712.out"}},
		"what an older job's number": {[]string{"logs/gpt-4711-3.log", "logs/4712/3.log", "logs/4711/3.log", "slurm-4711.out", "slurm-4712.out"}, []string{"logs/4712/3.log", "slurm-4712.out"}},
		"without a number":           {[]string{"rank_0.log", "slurm-4711.out", "slurm-4712.out"}, []string{"rank_0.log", "slurm-4712.out"}},
		"a short number is a rank's": {[]string{"rank-7.log", "slurm-7.out", "slurm-8.out"}, []string{"rank-7.log", "slurm-8.out"}},
		"tasks of one array":         {[]string{"slurm-4711_1.out", "slurm-4711_2.out"}, []string{"slurm-4711_1.out", "slurm-4711_2.out"}},
		"ranks":                      {[]string{"0.out", "1.out", "rank-10000.out", "rank-10001.out"}, []string{"0.out", "1.out", "rank-10000.out", "rank-10001.out"}},
	} {
		t.Run(name, func(t *testing.T) {
			src, err := logfile.Open(folder(t, c.lie...))
			require.NoError(t, err)
			require.Equal(t, c.read, src.Files())
			require.Len(t, src.OtherJobs, len(c.lie)-len(c.read), "what is not read is said")
		})
	}
	waits := folder(t, "slurm-4711.out", "slurm-4712.out")
	require.NoError(t, os.WriteFile(filepath.Join(waits, "slurm-4713.out"), nil, 0o644))
	require.Equal(t, []string{"slurm-4712.out"}, files(t, waits), "the newest has written nothing yet")
	require.NoError(t, os.WriteFile(filepath.Join(waits, "rank_0.log"), []byte("step 1\n"), 0o644))
	require.Equal(t, []string{"rank_0.log"}, files(t, waits), "or its ranks have, elsewhere")
	src, err := logfile.Open(folder(t, ".venv/slurm-4713.out", "slurm-4712.out"))
	require.NoError(t, err)
	require.Equal(t, []string{"slurm-4712.out"}, src.Files(), "no job writes there")
	require.Empty(t, src.OtherJobs)
	dir := folder(t, "slurm-4711.out", "slurm-4712.out")
	require.Equal(t, []string{"slurm-4711.out"}, files(t, filepath.Join(dir, "slurm-4711.out")), "a file that is named is read")
}

// Logs of --output=%x-%j.out: their contents show whether they belong to several jobs or to parts of
// one.
func TestTheNewestOfJobsThatScriptsNameIsRead(t *testing.T) {
	hour := func(h string) string {
		return "loading\n[2026-11-23 " + h + ":00:01] first\n" + strings.Repeat("step\n", 30000) + "[2026-11-23 " + h + ":50:00] last\n"
	}
	start := func(attempt, node string) string {
		return "0: start: attempt=" + attempt + " node=" + node + " host=gpu1 ranks=0-7 commit=- dirty=- argv=a env=b\n"
	}
	for name, c := range map[string]struct {
		lie  map[string]string
		read []string
	}{
		"one ended before the other began": {map[string]string{"gpt-4711.out": hour("09"), "gpt-4711.err": "x\n", "gpt-4712.out": hour("10")}, []string{"gpt-4712.out"}},
		"what an older one left elsewhere": {map[string]string{"gpt-4711.out": hour("09"), "gpt-4712.out": hour("10"), "gpt-4711/r1.log": "x\n", "gpt-4712/r1.log": "x\n"}, []string{"gpt-4712.out", "gpt-4712/r1.log"}},
		"a rank of that number":            {map[string]string{"gpt-4711.out": hour("09"), "gpt-4712.out": hour("10"), "rank-4711.log": "x\n"}, []string{"gpt-4712.out", "rank-4711.log"}},
		"a day behind the number":          {map[string]string{"gpt_4711_2026-11-23.log": hour("09"), "gpt_4712_2026-11-23.log": hour("10")}, []string{"gpt_4712_2026-11-23.log"}},
		"a batch system's own ending":      {map[string]string{"gpt.o4711": hour("09"), "gpt.o4712": hour("10")}, []string{"gpt.o4712"}},
		"both begin at the first node":     {map[string]string{"gpt-4711.out": start("0", "0"), "gpt-4712.out": start("0", "0")}, []string{"gpt-4712.out"}},
		"two attempts":                     {map[string]string{"gpt-4711.out": start("0", "0"), "gpt-4712.out": start("1", "0")}, []string{"gpt-4711.out", "gpt-4712.out"}},
		"two nodes":                        {map[string]string{"gpt-4711.out": start("0", "0"), "gpt-4712.out": start("0", "1")}, []string{"gpt-4711.out", "gpt-4712.out"}},
		"at the same time":                 {map[string]string{"gpt-4711.out": hour("09"), "gpt-4712.out": hour("09")}, []string{"gpt-4711.out", "gpt-4712.out"}},
		"the older number is newer":        {map[string]string{"gpt-4711.out": hour("10"), "gpt-4712.out": hour("09")}, []string{"gpt-4711.out", "gpt-4712.out"}},
		"no time":                          {map[string]string{"gpt-4711.out": "x\n", "gpt-4712.out": "x\n"}, []string{"gpt-4711.out", "gpt-4712.out"}},
		"a year in one alone":              {map[string]string{"gpt-4711.out": "E0101 09:00:00.1 x\n", "gpt-4712.out": hour("10")}, []string{"gpt-4711.out", "gpt-4712.out"}},
		"other names":                      {map[string]string{"gpt-4711.out": hour("09"), "llama-4712.out": hour("10")}, []string{"gpt-4711.out", "llama-4712.out"}},
		"ranks":                            {map[string]string{"gpt-rank-4711.out": hour("09"), "gpt-rank-4712.out": hour("10")}, []string{"gpt-rank-4711.out", "gpt-rank-4712.out"}},
		"processes of NCCL":                {map[string]string{"nccl.a.4711.log": hour("09"), "nccl.a.4712.log": hour("10")}, []string{"nccl.a.4711.log", "nccl.a.4712.log"}},
		"days":                             {map[string]string{"gpt-20261122.log": hour("09"), "gpt-20261123.log": hour("10")}, []string{"gpt-20261122.log", "gpt-20261123.log"}},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for file, text := range c.lie {
				require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, file)), 0o755))
				require.NoError(t, os.WriteFile(filepath.Join(dir, file), []byte(text), 0o644))
			}
			src, err := logfile.Open(dir)
			require.NoError(t, err)
			require.Equal(t, c.read, src.Files())
			require.Len(t, src.OtherJobs, len(c.lie)-len(c.read), "what is not read is said")
		})
	}
}

// A file whose name is also a glob pattern is found by its name.
func TestAFileIsFoundByItsOwnName(t *testing.T) {
	dir := folder(t, "run[1].log", "run1.log")
	require.Equal(t, []string{"run[1].log"}, files(t, filepath.Join(dir, "run[1].log")))
	require.Equal(t, []string{"run1.log"}, files(t, filepath.Join(dir, "run1[.]log")))
}

// Each log, and the flight recorder dump, is in exactly one of several parts.
func TestPartsAreTheWholeSet(t *testing.T) {
	dir := folder(t, "a.log", "b.log", "c.log", "d.log", "e/f.log", "e/g.log")
	diagnosetest.Dump(t, dir, 3, 813, 811)
	count, err := logfile.Count(dir)
	require.NoError(t, err)
	require.Equal(t, 7, count)
	for n := 1; n <= 8; n++ {
		var all []string
		dumps := 0
		for i := range n {
			part, err := logfile.OpenPart(i, n, dir)
			require.NoError(t, err)
			recorded, unread := part.Recordings()
			require.Empty(t, unread)
			held := len(part.Files()) + len(recorded)
			require.True(t, held == count/n || held == count/n+1, "part %d of %d holds %d", i, n, held)
			all = append(all, part.Files()...)
			dumps += len(recorded)
		}
		slices.Sort(all)
		require.Equal(t, []string{"a.log", "b.log", "c.log", "d.log", "e/f.log", "e/g.log"}, all)
		require.Equal(t, 1, dumps)
	}
}

// One log and one dump are enough to read.
func TestALogAndADumpAreASet(t *testing.T) {
	dir := folder(t, "a.log")
	diagnosetest.Dump(t, dir, 3, 813, 811)
	src, err := logfile.Open(dir)
	require.NoError(t, err)
	require.Equal(t, []string{"a.log"}, src.Files())
}

// Of two attempts the last one's dumps are read. A file that is only named like a dump is reported.
func TestDumpsOfTheLastAttemptAreRead(t *testing.T) {
	dir := folder(t, "attempt-2/flight-recorder-7")
	for attempt, ranks := range map[string][]int{"attempt-1": {0, 1}, "attempt-2": {4}} {
		for _, rank := range ranks {
			require.NoError(t, os.MkdirAll(filepath.Join(dir, attempt), 0o755))
			diagnosetest.Dump(t, filepath.Join(dir, attempt), rank, 813, 811)
		}
	}
	src, err := logfile.Open(dir)
	require.NoError(t, err)
	require.Empty(t, src.Files())
	recorded, unread := src.Recordings()
	require.Len(t, recorded, 1)
	require.Equal(t, 4, recorded[0].Rank)
	require.Len(t, unread, 1)
	require.Equal(t, "attempt-2/flight-recorder-7", unread[0].Path)
}

// Both kinds of archives yield their logs and dumps, under harmless names, and report a damaged member.
func TestArchivesHoldLogsAndOtherThings(t *testing.T) {
	dir := t.TempDir()
	diagnosetest.Dump(t, dir, 3, 813, 811)
	dumps, err := filepath.Glob(filepath.Join(dir, "*"))
	require.NoError(t, err)
	dump, err := os.ReadFile(dumps[0])
	require.NoError(t, err)
	var inner bytes.Buffer
	g := gzip.NewWriter(&inner)
	_, err = g.Write([]byte("loading\n"))
	require.NoError(t, err)
	require.NoError(t, g.Close())
	var zipped, tarred bytes.Buffer
	z, a := zip.NewWriter(&zipped), tar.NewWriter(&tarred)
	for _, m := range []struct{ name, text string }{
		{"job/b.log", "loading\n"},
		{"../../a.log", "loading\n"},
		{"job/c.log.gz", inner.String()},
		{"job/damaged.log.gz", "no gzip"},
		{"job/config.json", "{}"},
		{"job/.hidden", "loading\n"},
		{"job/empty.log", ""},
		{"job/" + filepath.Base(dumps[0]), string(dump)},
		{"job/flight-recorder-9", "no dump"},
	} {
		w, err := z.Create(m.name)
		require.NoError(t, err)
		_, err = w.Write([]byte(m.text))
		require.NoError(t, err)
		require.NoError(t, a.WriteHeader(&tar.Header{Name: m.name, Typeflag: tar.TypeReg, Mode: 0o644, Size: int64(len(m.text))}))
		_, err = a.Write([]byte(m.text))
		require.NoError(t, err)
	}
	require.NoError(t, a.WriteHeader(&tar.Header{Name: "job/link.log", Typeflag: tar.TypeSymlink, Linkname: "/etc/passwd"}))
	require.NoError(t, a.WriteHeader(&tar.Header{Name: "job/linked-recorder/flight-recorder-8", Typeflag: tar.TypeSymlink, Linkname: "/etc/passwd"}))
	require.NoError(t, z.Close())
	require.NoError(t, a.Close())
	for name, b := range map[string][]byte{"logs.zip": zipped.Bytes(), "logs.TAR": tarred.Bytes()} {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, b, 0o644))
		src, err := logfile.Open(path)
		require.NoError(t, err, name)
		require.Equal(t, []string{"a.log", "job/b.log", "job/c.log.gz"}, src.Files(), name)
		require.Equal(t, int64(8), src.Logs[2].Size, "as it is unpacked")
		recorded, _ := src.Recordings()
		require.Len(t, recorded, 1, name)
		require.Equal(t, 3, recorded[0].Rank)
		require.Len(t, src.Unreadable, 2, "%s: %v", name, src.Unreadable)
		require.Equal(t, "job/damaged.log.gz", src.Unreadable[0].Path)
		require.Equal(t, "job/flight-recorder-9", src.Unreadable[1].Path)
		count, err := logfile.Count(path)
		require.NoError(t, err)
		require.Equal(t, 1, count, "an archive counts as one")
	}
	cut := filepath.Join(dir, "cut.tar")
	require.NoError(t, os.WriteFile(cut, tarred.Bytes()[:1<<10+100], 0o644))
	src, err := logfile.Open(cut)
	require.NoError(t, err)
	require.Equal(t, []string{"job/b.log"}, src.Files(), "what stands before the cut")
	require.Len(t, src.Unreadable, 1)
}
