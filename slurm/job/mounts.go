package job

import (
	"cmp"
	"path"
	"slices"
	"strings"
)

// Mounts maps folders of the host to folders inside a container and back. Each element
// is host:inside[:flags]; a single path is the same on both sides.
type Mounts []string

// A Mount is one parsed element of Mounts.
type Mount struct{ Host, Inside, Flags string }

// separate returns the mounts with exactly one per element. People also write several
// mounts in one string, separated by commas or blanks.
func (ms Mounts) separate() Mounts {
	var out Mounts
	for _, m := range ms {
		for {
			at := strings.IndexAny(m, ", \t\n")
			for at >= 0 && !strings.HasPrefix(strings.TrimLeft(m[at:], ", \t\n"), "/") {
				next := strings.IndexAny(m[at+1:], ", \t\n")
				if next < 0 {
					at = -1
					break
				}
				at += 1 + next
			}
			if at < 0 {
				break
			}
			out = append(out, m[:at])
			m = strings.TrimLeft(m[at:], ", \t\n")
		}
		out = append(out, strings.TrimSpace(m))
	}
	return out
}

// Split parses every mount.
func (ms Mounts) Split() []Mount {
	ms = ms.separate()
	out := make([]Mount, len(ms))
	for i, m := range ms {
		parts := strings.SplitN(m, ":", 3)
		out[i] = Mount{Host: parts[0], Inside: parts[0]}
		if len(parts) > 1 {
			out[i].Inside = parts[1]
		}
		if len(parts) > 2 {
			out[i].Flags = parts[2]
		}
	}
	return out
}

// ToContainer returns the path inside the container for a path of the host. The
// longest matching mount wins; ok is false if no mount covers the path.
func (ms Mounts) ToContainer(p string) (inside string, ok bool) {
	return translate(ms.Split(), p, func(m Mount) (string, string) { return m.Host, m.Inside })
}

// ToHost returns the path on the host for a path inside the container. The longest
// matching mount wins; ok is false for a path of the image itself.
func (ms Mounts) ToHost(p string) (host string, ok bool) {
	return translate(ms.Split(), p, func(m Mount) (string, string) { return m.Inside, m.Host })
}

func translate(ms []Mount, p string, sides func(Mount) (from, to string)) (string, bool) {
	slices.SortStableFunc(ms, func(a, b Mount) int {
		fa, _ := sides(a)
		fb, _ := sides(b)
		return cmp.Compare(len(fb), len(fa))
	})
	p = path.Clean(p)
	for _, m := range ms {
		from, to := sides(m)
		if rest, ok := relativeTo(path.Clean(from), p); ok {
			return path.Join(to, rest), true
		}
	}
	return "", false
}

// relativeTo returns p relative to dir; ok is false if p is not dir and not inside it.
func relativeTo(dir, p string) (rest string, ok bool) {
	if p == dir {
		return "", true
	}
	return strings.CutPrefix(p, strings.TrimSuffix(dir, "/")+"/")
}
