package jobcontrol

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/ops"
)

// permissionScript prints who a person is on a node, and the owner, group and mode of a
// path's folder and of all folders above it, and of the file where it exists. The
// eleventh letter of ls is "+" where an access list changes what the mode says.
const permissionScript = `folder=$(realpath -e -- "$(dirname -- "$1")") || exit
echo "who $(id -u -- "$2") $(id -G -- "$2")"
tell() { echo "$1 $(stat -c "%u %g %f" -- "$2") $(LC_ALL=C ls -ld -- "$2" | cut -c 11)"; }
file=$folder/$(basename -- "$1")
if [ -e "$file" ] || [ -L "$file" ]; then tell file "$file"; fi
tell folder "$folder"
while [ "$folder" != / ]; do folder=$(dirname -- "$folder"); tell above "$folder"; done`

// mayWrite reports whether the caller could create the switch's file, or remove it, in
// a shell on a node of the job, as the job's owner sees the folders there. Where
// something cannot be read, the answer is no.
func mayWrite(ctx context.Context, c *ops.Call, cl ops.Cluster, k killSwitch, on bool) bool {
	said, _, err := execOnFirstNode(ctx, c, cl, k.job, []string{"sh", "-c", permissionScript, "sh", k.path, c.Who.User})
	return err == nil && allowsSwitch(said, on)
}

// allowsSwitch decides by the output of permissionScript whether the person may create
// (create) or remove the file.
func allowsSwitch(said string, create bool) bool {
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
			if e.listed || !e.allows(me, 0o1) {
				return false
			}
		default:
			return false
		}
	}
	if me.groups == nil || folder == nil || !top || folder.listed || !folder.allows(me, 0o3) {
		return false
	}
	// In a sticky folder only the owners of the folder and of the file may remove the
	// file.
	const sticky = 0o1000
	return create || file == nil || folder.mode&sticky == 0 || file.uid == me.uid || folder.uid == me.uid
}

// A person is the caller, as a node knows them.
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

// An entry is a folder or a file with its owner, group and mode.
type entry struct {
	uid, gid, mode int
	listed         bool // it also has an access control list, which is not read
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

// allows reports whether the mode gives a person all permissions in what. As in the
// kernel, the first class that the person belongs to decides.
func (e entry) allows(p person, what int) bool {
	switch {
	case e.uid == p.uid:
		what <<= 6
	case slices.Contains(p.groups, e.gid):
		what <<= 3
	}
	return e.mode&what == what
}
