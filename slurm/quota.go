package slurm

import (
	"path"
	"slices"
	"strconv"
	"strings"
)

// A Quota is the space that a person or a group may use on a file system.
type Quota struct {
	// Of is the kind of owner: "user" or "group".
	Of string `json:"of"`
	// Mount is the mount point of the file system.
	Mount string `json:"mount"`
	// Used and Limit are in bytes. Limit is the hard limit, or the soft one where there
	// is no hard one.
	Used  int64 `json:"used"`
	Limit int64 `json:"limit"`
}

// Left returns the number of bytes that may still be written.
func (q Quota) Left() int64 { return max(q.Limit-q.Used, 0) }

// Over reports whether dir lies on the file system of q.
func (q Quota) Over(dir string) bool {
	m := path.Clean(q.Mount)
	return m == "/" || dir == m || strings.HasPrefix(dir, m+"/")
}

// ParseQuotas reads the output of quota(1) with --no-wrap --raw-grace --show-mntpoint,
// or of lfs-quota(1) with -q. After the file system come the used blocks, the soft
// limit and the hard limit, in KiB; 0 means no limit. A "*" after the used blocks means
// that the limit is exceeded; brackets mean that a server did not answer.
func ParseQuotas(out, of string) []Quota {
	var all []Quota
	var head []string
	for line := range strings.Lines(out) {
		if strings.HasPrefix(line, "Disk quotas for ") {
			continue
		}
		f := slices.Concat(head, strings.Fields(line))
		head = nil
		name := 0
		for name < len(f) && !isBlocks(f[name]) {
			name++
		}
		switch {
		case name == 0 || name > 2:
			continue
		case name == len(f):
			if strings.Contains(f[0], "/") {
				head = f // a long name has a line of its own
			}
			continue
		}
		mount := f[name-1]
		if len(f) < name+3 || !strings.HasPrefix(mount, "/") {
			continue
		}
		q := Quota{Of: of, Mount: mount, Used: blocks(f[name])}
		for _, limit := range []string{f[name+2], f[name+1]} {
			if q.Limit = blocks(limit); q.Limit > 0 {
				all = append(all, q)
				break
			}
		}
	}
	return all
}

func isBlocks(word string) bool {
	_, err := strconv.ParseInt(strings.Trim(word, "[]*"), 10, 64)
	return err == nil
}

// blocks converts a count of KiB into bytes.
func blocks(word string) int64 {
	n, err := strconv.ParseInt(strings.Trim(word, "[]*"), 10, 64)
	if err != nil || n < 0 || n > 1<<52 {
		return 0
	}
	return n << 10
}
