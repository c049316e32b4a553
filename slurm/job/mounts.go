package job

import (
	"cmp"
	"path"
	"slices"
	"strings"
)

// Mounts maps folders of the node to folders inside a container and back. Each
// element is host:inside[:flags]; a single path is the same on both sides.
type Mounts []string

// A Mount is one element of Mounts.
type Mount struct{ Host, Inside, Flags string }

// apart is one mount an element: people also write several in one string, with
// commas or blanks between them.
func (ms Mounts) apart() Mounts {
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

// Split reads every mount.
func (ms Mounts) Split() []Mount {
	ms = ms.apart()
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

// ToContainer returns where the node's path is seen inside. The longest mount
// wins; ok is false for a path that no mount covers.
func (ms Mounts) ToContainer(p string) (inside string, ok bool) {
	return translate(ms.Split(), p, func(m Mount) (string, string) { return m.Host, m.Inside })
}

// ToHost returns where the path inside lies on the node. The longest mount
// wins; ok is false for a path of the image itself.
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
		if rest, ok := below(path.Clean(from), p); ok {
			return path.Join(to, rest), true
		}
	}
	return "", false
}

// below returns what is left of p under dir; ok is false where p lies elsewhere.
func below(dir, p string) (rest string, ok bool) {
	if p == dir {
		return "", true
	}
	return strings.CutPrefix(p, strings.TrimSuffix(dir, "/")+"/")
}
