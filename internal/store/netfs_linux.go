package store

import (
	"slices"

	"golang.org/x/sys/unix"
)

// networkFS are the magic numbers of file systems that several hosts mount (statfs(2),
// and Lustre's and GPFS's own headers).
var networkFS = []int64{
	0x6969,     // NFS
	0xff534d42, // CIFS
	0xfe534d42, // SMB2
	0x0bd00bd0, // Lustre
	0x47504653, // GPFS
	0x00c36400, // Ceph
	0x19830326, // BeeGFS (FhGFS)
	0x65735546, // FUSE: often sshfs or a parallel file system
	0x01021997, // 9p
}

// OnNetworkFS reports whether dir is on a file system that several hosts mount, where
// SQLite cannot keep its write-ahead log.
func OnNetworkFS(dir string) bool {
	var st unix.Statfs_t
	if unix.Statfs(dir, &st) != nil {
		return false
	}
	return slices.Contains(networkFS, int64(st.Type)) //nolint:unconvert // int32 on some architectures
}
