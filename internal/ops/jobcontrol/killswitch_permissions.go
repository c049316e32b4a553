package jobcontrol

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/ops"
)

// writable says, on a node, who a person is there and what a path's folder and
// the folders above it let people do; the file too, where it is there. ls marks
// with its eleventh letter a mode that is not the whole truth.
const writable = `folder=$(realpath -e -- "$(dirname -- "$1")") || exit
echo "who $(id -u -- "$2") $(id -G -- "$2")"
tell() { echo "$1 $(stat -c "%u %g %f" -- "$2") $(LC_ALL=C ls -ld -- "$2" | cut -c 11)"; }
file=$folder/$(basename -- "$1")
if [ -e "$file" ] || [ -L "$file" ]; then tell file "$file"; fi
tell folder "$folder"
while [ "$folder" != / ]; do folder=$(dirname -- "$folder"); tell above "$folder"; done`

// mayWrite reports whether the one who asks could make the switch's file, or
// remove it, in a shell: as the job's owner sees its folders from a node of the
// job. What cannot be read there lets nobody.
func mayWrite(ctx context.Context, c *ops.Call, cl ops.Cluster, k killSwitch, on bool) bool {
	said, _, err := besideJob(ctx, c, cl, k.job, []string{"sh", "-c", writable, "sh", k.path, c.Who.User})
	return err == nil && lets(said, on)
}

// lets reads what writable said.
func lets(said string, makes bool) bool {
	var me person
	var file, folder *entry
	top := false
	for line := range strings.Lines(said) {
		kind, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		if kind == "who" {
			if !me.read(rest) {
				return false
			}
			continue
		}
		var e entry
		if !e.read(rest) {
			return false
		}
		switch kind {
		case "file":
			file = &e
		case "folder":
			folder = &e
		case "above":
			top = true
			if e.listed || !e.lets(me, 0o1) {
				return false
			}
		default:
			return false
		}
	}
	if me.groups == nil || folder == nil || !top || folder.listed || !folder.lets(me, 0o3) {
		return false
	}
	// In a sticky folder only its owner and the file's may remove the file.
	const sticky = 0o1000
	return makes || file == nil || folder.mode&sticky == 0 || file.uid == me.uid || folder.uid == me.uid
}

// A person is who asks, as a node knows them.
type person struct {
	uid    int
	groups []int
}

func (p *person) read(text string) bool {
	for i, word := range strings.Fields(text) {
		var n int
		if _, err := fmt.Sscanf(word, "%d", &n); err != nil || n < 0 || fmt.Sprint(n) != word {
			return false
		}
		if i == 0 {
			p.uid = n
		} else {
			p.groups = append(p.groups, n)
		}
	}
	return len(p.groups) > 0
}

// An entry is a folder or a file: whose it is, and what its mode lets people do.
type entry struct {
	uid, gid, mode int
	listed         bool // it has an access list besides, which is not read
}

func (e *entry) read(text string) bool {
	words := strings.Fields(text)
	if len(words) < 3 {
		return false
	}
	n, err := fmt.Sscanf(strings.Join(words[:3], " "), "%d %d %x", &e.uid, &e.gid, &e.mode)
	e.listed = slices.Contains(words[3:], "+")
	return err == nil && n == 3
}

// lets reports whether the mode lets somebody do all of what: the first class
// that a person is of decides, as the kernel has it.
func (e entry) lets(p person, what int) bool {
	switch {
	case e.uid == p.uid:
		what <<= 6
	case slices.Contains(p.groups, e.gid):
		what <<= 3
	}
	return e.mode&what == what
}
