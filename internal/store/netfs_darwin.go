package store

import "golang.org/x/sys/unix"

// OnNetworkFS reports whether dir is on a file system that several hosts mount: one
// without macOS's MNT_LOCAL flag (statfs(2)).
func OnNetworkFS(dir string) bool {
	var st unix.Statfs_t
	return unix.Statfs(dir, &st) == nil && st.Flags&unix.MNT_LOCAL == 0
}
