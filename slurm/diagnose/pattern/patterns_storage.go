package pattern

import "github.com/megatron-ops/megatron-ops/slurm/diagnose/outcome"

// storagePatterns match the operating system's errors about memory, space and files, as Python,
// libtorch, NCCL and the shell print them. Numbers: errno(3).
var storagePatterns = []pattern{
	{
		outcome.HostOOM, Fact, oneOf("oom-kill|oom_kill|oom killed|oom-killer|oom_killed"),
		`detected \d+ oom.?kill|oom.?kill\w* event|oom.killed|oom-kill:constraint|invoked oom-killer|oom_kill\w*`,
	},
	{outcome.HostOOM, Fact, oneOf("out of memory: kill|memory cgroup out of memory|exceeded memory limit|exceeded job memory limit" +
		"|exceeded step memory limit|exceeded virtual memory limit|memory limit exceeded|exceeds memory limit"), ``},
	{outcome.HostOOM, Specific + 2, oneOf("is killed by signal: killed|defaultcpuallocator|can't allocate memory|cannot allocate memory|memoryerror" +
		"|bad_alloc|memory allocation of|errno 12]|unable to allocate|not enough memory: you tried|insufficient memory|virtual memory exhausted|fork: retry|std::bad_alloc" +
		"|enomem|killed by signal 9|failed to pin memory|cudahostalloc"), `killed by signal: killed|defaultcpuallocator|ca(n't|nnot) allocate memory` +
		`|\b(_?array)?memoryerror|bad_alloc|memory allocation of \d+ bytes failed|errno 12\]|unable to allocate .*(array|memory|i?b\b)|not enough memory|insufficient memory|memory exhausted` +
		`|enomem|failed to pin|cudahostalloc`},
	// Ray reports on its workers (src/ray/raylet/node_manager.cc). Its exception has the same name as
	// PyTorch's.
	{outcome.HostOOM, Specific + 3, oneOf("node running low on memory|killed due to memory pressure (oom)"), `killed due to (the node|memory pressure)`},
	// On Kubernetes Ray guesses this of every worker that left without an exit code
	// (python/ray/_raylet.pyx).
	{outcome.UnknownExit, Death + 1, oneOf("may have exceeded k8s pod memory limits"), ``},
	// Sites' own watchers of memory.
	{outcome.HostOOM, Fact - 1, oneOf("exceed"), `\b(job|process|step|task)\b.*\bexceed(ed|ing) (its|the|your|their) (\w+ )?memory (quota|limit|allocation|request)`},
	{outcome.HostOOM, Fact - 1, oneOf("memory+swap limit|memory limit at"), `hit (its )?memory`},
	{outcome.UnknownExit, Death + 1, oneOf("exited unexpectedly with exit code"), ``}, // a data loader's worker exited by itself
	{outcome.UnknownExit, Death + 1, oneOf("process pool was terminated abruptly"), ``},
	{outcome.HostOOM, Death, oneOf("exited unexpectedly|signal sigkill"), `dataloader worker.*exited unexpectedly|terminated with signal sigkill`},
	{outcome.HostOOM, Death + 4, oneOf(" killed"), `line \d+: +\d+ killed\b`},
	{outcome.HostOOM, Death + 4, oneOf("已杀死"), shellZH + `已杀死( |$)`},
	{outcome.HostOOM, Death, oneOf("killed"), `^killed$`}, // a shell reports on the process it waited for

	{
		outcome.ShmBusError, Specific + 6, oneOf("shm.h:|shmutils.cc:|</torch_|shared memory|/dev/shm|shm_open|torch_shm|shm"),
		`\bshm(utils)?\.(h|cc):\d+ nccl warn .*(no space|failed)|` +
			`insufficient shared memory|error while creating shared memory|/dev/shm.*(no space|not enough|failed|error|full|cannot|insufficient)|(no space` +
			`|failed|error|cannot|unable).*/dev/shm|unable to (open|mmap|resize|allocate) .*(shm|shared memory|torch_\d)|shared memory (manager` +
			`|object).*(fail|error|no space|unable)|shm_open.*fail|failed to (extend|open|mmap|create) .*(shm|shared)|not enough (space` +
			`|shared memory).*(shm)|(unable|failed|no space|cannot).*</torch_\d`,
	},
	{outcome.ShmBusError, Death + 6, oneOf("bus error|sigbus|signal 7"), `bus error|sigbus|signal:? 7\b`},

	{outcome.DiskFull, Specific + 5, oneOf("no space left on device|disk quota exceeded|quota exceeded|errno 28]|errno 122]|enospc|edquot|file write failed" +
		"|streamwriter failed writing|disk full|disk is full|no free space|not enough free disk|not enough disk|insufficient disk|out of disk" +
		"|out of inodes|no inodes|file system is full|filesystem is full|over quota|insufficient space"), ``},
	{outcome.DiskFull, Specific - 6, oneOf("unexpected pos "), ``}, // PyTorch's writer, as it is closed after a write that failed
	// NumPy and Torch report an incomplete write.
	{
		outcome.DiskFull, Specific + 5, oneOf(" requested and | blocks instead of "),
		`^oserror: \d+ requested and \d+ written|write error: wrote \d+ blocks instead of \d+`,
	},

	{outcome.Filesystem, Specific + 3, oneOf("stale file handle|input/output error|transport endpoint|remote i/o error|structure needs cleaning|errno 116]" +
		"|errno 5]|errno 107]|errno 108]|errno 121]|errno 117]|errno 30]|errno 112]|could not open stdout file|could not open stderr file" +
		"|read-only file system|lustreerror|lustre:|nfs: server|not responding, timed out|nfs4_|gpfs|mmfs|beegfs|ceph:|fuse|i/o error|host is down" +
		"|key has expired|errno 127]|errno 521]|too many levels of symbolic|eio|estale"), `stale file handle|input/output error|transport endpoint` +
		`|remote i/o error|structure needs cleaning|errno (116|5|107|108|121|117|30|112|127|521)\]|could not open std(out|err) file` +
		`|read-only file system|lustre(error)?:|nfs\w*: ?(server )?\S* ?not responding|nfs4_|(gpfs|mmfs|beegfs|ceph)\w*.*(error|fail|stale|panic` +
		`|unmount|down|lost)|i/o error|host is down|key has expired|too many levels of symbolic|\beio\b|\bestale\b`},
	{
		outcome.Filesystem, Specific + 2, oneOf("permission denied|permissionerror|errno 13]|errno 1]|operation not permitted|eacces|eperm"),
		`(oserror|permissionerror|ioerror|filesystem error|runtimeerror|blockingioerror|\[errno (13|1)\]|open|write|mkdir|create|cannot|can't|could not` +
			`|couldn't|touch|cp:|mv:|rm:|ls:|cat:|bash:|sh:|tee:|eacces|eperm).*(permission denied|operation not permitted|errno (13|1)\])|permissionerror` +
			`|: (permission denied|operation not permitted)($|[^,\w])`,
	},
	// What fails of a file, and is no mistake in its name or its use: busy, locked, a server's or a link's error.
	{outcome.Filesystem, Specific + 1, oneOf("[errno "), `error: \[errno (6|11|16|19|37|6[1-4]|67|7[01478]|10[0-5]|110|113|123|124|126|128|129)\] [^'"]*['"]/`},
	{
		outcome.Filesystem, Specific + 1, oneOf("timed out|failed|busy|no locks available|unable to lock file"),
		`mount\S*: .*(timed out|failed|busy)|no locks available|unable to lock file`,
	},
	{
		outcome.Filesystem, Specific + 1, oneOf("write access|write permission|not writable|not writeable|writable"),
		`^[\w.]*(error|exception)\b.*(write (access|permission)|not writ(e)?able|no writable)`,
	},
	// libtorch cannot write a file (caffe2/serialize/inline_container.cc).
	// HDF5 locks the files that it opens; h5py's mode "a" then tries to create the file that it cannot open.
	{outcome.Filesystem, Specific + 6, oneOf("unable to lock file|unable to create file"), `unable to lock file|unable to create file.*\bfile exists\b`},
	{
		outcome.Filesystem, Specific + 6, oneOf("cannot be opened|parent directory|no usable temporary directory"),
		`^runtimeerror: (file \S+ cannot be opened|parent directory \S+ does not exist)|no usable temporary directory found in`,
	},
	{outcome.Filesystem, Specific, oneOf("mount"), `mount(\.\w+)?: .*(fail|error|denied|timed out|wrong fs|unknown filesystem|does not exist|not mounted)` +
		`|(is )?not mounted|automount.*(fail|timed out)|failed to mount`},
}

// shellZH begins bash's message, in Chinese, about a program that a signal ended: the script, the line and the process, or
// nothing.
const shellZH = `(?:^|[:：] ?行 ?\d+[:：] *\d+ )`
