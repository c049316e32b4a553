package watch

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/within"
	"github.com/megatron-ops/megatron-ops/slurm"
)

// A Checkpoint is the last complete checkpoint in a directory.
type Checkpoint struct {
	Iteration string // as Megatron wrote it, such as "5000" or "release"
	At        time.Time
	// Every is the usual time between two checkpoints, estimated from the latest ones;
	// zero where it is not known yet.
	Every time.Duration
	// Step is the value of --ckpt-step that loads the checkpoint; 0 where the tracker
	// file names it.
	Step int
}

// tracker is the file in which Megatron-LM names its last complete checkpoint.
// Megatron-LM writes it after all ranks have saved (megatron/training/checkpointing.py,
// get_checkpoint_tracker_filename).
const tracker = "latest_checkpointed_iteration.txt"

// fewLast is the number of latest checkpoints from which Every is estimated.
const fewLast = 6

// LastCheckpoint reads the last complete checkpoint in dir; ok is false where there is
// none yet.
func LastCheckpoint(dir string) (c Checkpoint, ok bool, err error) {
	word, at, err := readTracker(filepath.Join(dir, tracker))
	if errors.Is(err, fs.ErrNotExist) {
		return c, false, nil
	}
	if err == nil {
		c, err = lastOf(word, at, iterations(dir))
	}
	return c, err == nil, err
}

// readTracker returns the content of a tracker file and the time of its last change. The
// file is a job's, and may be anything: it opens nothing that could block.
func readTracker(path string) (word string, at time.Time, err error) {
	file, err := (*within.Folders)(nil).Open(path)
	if err != nil {
		return "", at, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return "", at, err
	}
	text, err := io.ReadAll(io.LimitReader(file, 64))
	return strings.TrimSpace(string(text)), info.ModTime(), err
}

// lastOf returns the checkpoint that the tracker names, from all finished checkpoints,
// oldest first. Where the folder that the tracker names does not exist, it returns the
// newest finished checkpoint.
func lastOf(word string, at time.Time, all []saved) (Checkpoint, error) {
	n, err := strconv.Atoi(word)
	if err != nil && word != "release" {
		return Checkpoint{}, lang.Text{EN: "%s does not name an iteration", ZH: "%s 没有指明迭代"}.Err(tracker)
	}
	c := Checkpoint{Iteration: word, At: at}
	i := slices.IndexFunc(all, func(s saved) bool { return s.iteration == n })
	if word != "release" && i < 0 && len(all) > 0 {
		i = len(all) - 1
		c.Iteration, c.At, c.Step = strconv.Itoa(all[i].iteration), all[i].at, all[i].iteration
	}
	if i > 0 {
		c.Every = usualGap(all[max(0, i-fewLast+1) : i+1])
	}
	return c, nil
}

// Listing is a shell script that lists the checkpoint directory in its first argument
// for ReadListing, on a machine whose files are not visible here. It reads only the
// folder that the tracker names and the twelve newest ones.
const Listing = `cd -- "$1" || exit
t=` + tracker + `
w=
[ ! -f "$t" ] || { w=$(head -c 64 "$t" 2>/dev/null | head -n 1); echo "tracker $(stat -c %Y "$t") $w"; }
case $w in *[!0-9]*) ;; *) named=iter_$(printf %07d "$(expr "$w" + 0)")/ ;; esac
set -- iter_[0-9][0-9][0-9][0-9][0-9][0-9][0-9]/
while [ $# -gt 12 ]; do shift; done
for d in "$named" "$@"; do
  for f in "$d"metadata.json "$d".metadata "$d"mp_rank_*; do
    if [ -e "$f" ]; then echo "saved $(stat -c %Y "$d") $d"; break; fi
  done
done`

// ReadListing is LastCheckpoint for the output of Listing.
func ReadListing(text string) (c Checkpoint, ok bool, err error) {
	word, at := "", time.Time{}
	var all []saved
	for line := range strings.Lines(text) {
		f := strings.Fields(line)
		if len(f) != 3 {
			continue
		}
		seconds, _ := strconv.ParseInt(f[1], 10, 64) // as stat prints it
		n, err := strconv.Atoi(strings.TrimSuffix(strings.TrimPrefix(f[2], "iter_"), "/"))
		switch {
		case f[0] == "tracker":
			word, at = f[2], time.Unix(seconds, 0)
		case f[0] == "saved" && err == nil:
			all = append(all, saved{n, time.Unix(seconds, 0)})
		}
	}
	if word == "" {
		return c, false, nil
	}
	slices.SortFunc(all, func(a, b saved) int { return a.iteration - b.iteration })
	all = slices.CompactFunc(all, func(a, b saved) bool { return a.iteration == b.iteration })
	c, err = lastOf(word, at, all)
	return c, err == nil, err
}

// A saved is a finished checkpoint's iteration and the time of its folder's last
// change.
type saved struct {
	iteration int
	at        time.Time
}

// iterations lists the finished checkpoints in dir, oldest first. A checkpoint is
// finished where its folder has metadata, which the distributed formats write last, or
// the folders of the old format.
func iterations(dir string) []saved {
	in := os.DirFS(dir)
	found, _ := fs.Glob(in, "iter_"+strings.Repeat("[0-9]", 7))
	var all []saved
	for _, name := range found {
		info, err := fs.Stat(in, name)
		if err != nil || !finished(in, name) {
			continue
		}
		n, _ := strconv.Atoi(strings.TrimPrefix(name, "iter_"))
		all = append(all, saved{n, info.ModTime()})
	}
	return all // sorted by name, and so by number
}

func finished(in fs.FS, folder string) bool {
	return slices.ContainsFunc([]string{"metadata.json", ".metadata", "mp_rank_*"}, func(name string) bool {
		found, _ := fs.Glob(in, folder+"/"+name)
		return len(found) > 0
	})
}

// usualGap returns the median time between checkpoints, which a restart in between does
// not distort.
func usualGap(all []saved) time.Duration {
	var gaps []time.Duration
	for i := 1; i < len(all); i++ {
		if gap := all[i].at.Sub(all[i-1].at); gap > 0 {
			gaps = append(gaps, gap)
		}
	}
	if len(gaps) == 0 {
		return 0
	}
	slices.Sort(gaps)
	return gaps[(len(gaps)-1)/2]
}

// A Risk is the loss if a running job ended now.
type Risk struct {
	GPUHours float64       // GPU hours since the last checkpoint, or since the start
	Left     time.Duration // time until the time limit; negative: not known
	Next     time.Duration // time until the next checkpoint is due; negative: not known
	// TooLate reports that the job reaches its time limit before the next checkpoint.
	TooLate bool
}

// RiskOf returns the loss if j ended now, and whether its time limit comes before its
// next checkpoint. every is the usual time between two checkpoints; zero where it is
// not known.
func RiskOf(j slurm.Job, last Checkpoint, every time.Duration, now time.Time) Risk {
	r := Risk{Left: -1, Next: -1}
	if j.StartedAt == nil || j.State != slurm.Running {
		return r
	}
	since := *j.StartedAt
	if last.At.After(since) {
		since = last.At
	}
	r.GPUHours = max(now.Sub(since), 0).Hours() * float64(j.GPUs) // the cluster's clock may be ahead
	if every > 0 {
		r.Next = max(since.Add(every).Sub(now), 0)
	}
	if j.TimeLimitS != nil {
		r.Left = max(j.StartedAt.Add(time.Duration(*j.TimeLimitS)*time.Second).Sub(now), 0)
		r.TooLate = r.Next > r.Left
	}
	return r
}
