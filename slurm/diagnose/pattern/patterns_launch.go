package pattern

import "github.com/megatron-ops/megatron-ops/slurm/diagnose/outcome"

// launchPatterns match messages of what runs between Slurm and Python: shells, uv, conda, modules,
// container runtimes. Sources: bash, uv's crates/uv-python, NVIDIA's pyxis and enroot, docker,
// apptainer, libnvidia-container.
var launchPatterns = []pattern{
	{outcome.EnvLaunch, Specific + 5, oneOf("could not execve|execve()|no virtual environment found|command not found|bad interpreter|failed to spawn" +
		"|couldn't exec|cannot exec|exec format error|cannot execute|environmentnamenotfound|environmentlocationnotfound|environmentfilenotfound" +
		"|could not find conda environment|commandnotfounderror|conda activate|conda init|lmod has detected|unable to locate a modulefile|pyvenv.cfg" +
		"|can't open file|init_fs_encoding|could not find platform|no such file or directory: 'python|was unable to launch the specified application|was unable to find the specified executable|not a valid python|no interpreter found" +
		"|failed to discover|broken python|unbound variable|could not execvp|execvpe|failed to exec|failed to locate" +
		"|does not appear to be a python project|no `pyproject.toml`|project virtual environment|lockfile|no solution found|requires-python" +
		"|python interpreter|querying python|virtual environment"), `execve\(\)|no virtual environment|command not found|bad interpreter` +
		`|failed to spawn|^\w+ was unable to (launch|find) the specified|couldn't exec|cannot exec|exec format|environment(name|location|file)notfound|conda environment|commandnotfounderror` +
		`|conda (activate|init)'?.*(before|shell)|lmod has detected|modulefile|pyvenv\.cfg|can't open file|init_fs_encoding` +
		`|platform (in)?dependent libraries|no such file or directory: 'python|no interpreter found|python interpreter.*(not|fail|no such|broken)` +
		`|unbound variable|execvp|failed to (exec\b|discover|locate)|could not execve|pyproject\.toml|project virtual environment.*(cannot|not|invalid)` +
		`|lockfile.*(needs|not|out|unable|missing|parse)|unable to find lockfile|no solution found|requires-python|querying python` +
		`|virtual environment.*(not|broken|invalid|cannot|missing|no such|does)`},
	{outcome.EnvLaunch, Specific + 3, oneOf("no such file or directory"), `(^|[ /])(env|bash|sh|zsh|srun|slurm_script|uv|python[\d.]*|torchrun|activate` +
		`|line \d+|exec|nohup|numactl|sudo|time|stdbuf|slurmstepd\S*|source|\.)(: [^:]*)*: .*(/bin/|activate|python|torchrun|uv|venv|\.sh|accelerate` +
		`|entrypoint)\S*.{0,3}: no such file|filenotfounderror.*(bin/python|/activate|/torchrun|bin/uv|venv/bin)|(env|exec|nohup` +
		`|numactl|timeout|nice|setsid|taskset|xargs): .*no such file or directory|source: .*no such file|activate: no such file|\bexec \S+ failed: no such file|cd: .*: no such file` +
		`|: line \d+: \S+: no such file or directory$|no such file or directory: '[^']*/bin/(python|uv|torchrun|accelerate)`},
	// The system lets a shell start no further process. bash retries a few times before it gives up, so
	// any other cause outweighs such a retry.
	{
		outcome.EnvLaunch, Specific + 3, oneOf(": fork: resource temporarily|: fork failed: resource temporarily|: cannot fork"),
		`^\S+: ((line )?\d+: )?(fork( failed)?: resource temporarily unavailable|cannot fork)$`,
	},
	{outcome.EnvLaunch, Death, oneOf(": fork: retry: resource temporarily"), `^\S+: (line \d+: )?fork: retry: resource temporarily unavailable`},
	// DeepSpeed's launcher and Open MPI cannot start a process on another node
	// (deepspeed/launcher/runner.py, orte/mca/errmgr/base/help-errmgr-base.txt).
	{outcome.EnvLaunch, Specific + 3, oneOf("not reachable via ssh|'ssh -o passwordauthentication=no"), ``},
	{outcome.EnvLaunch, Specific - 1, oneOf("unable to reliably start one or more daemons"), ``},
	// OpenSSH, with which launchers reach other nodes (sshconnect.c, ssh.c).
	{
		outcome.EnvLaunch, Specific, oneOf("ssh: connect to host|ssh: could not resolve hostname|host key verification failed"),
		`^(?:\S+: )?(?:ssh: (?:connect to host \S+ port \d+|could not resolve hostname \S+): |host key verification failed\.$)`,
	},
	// Open MPI's -np is larger than Slurm's allocation, or than the process map allows
	// (help-orte-rmaps-base.txt, help-orte-rmaps-ppr.txt).
	{
		outcome.NodeCountMismatch, Specific + 5, oneOf("not enough slots available|requested more processes than the ppr"),
		`^there are not enough slots available in the system|^your job has requested more processes than the ppr`,
	},
	// bash in other languages. Source: the catalogues of bash and glibc.
	{
		outcome.EnvLaunch, Specific + 3, oneOf("未找到命令|找不到命令|没有那个文件或目录|沒有此一檔案或目錄|コマンドが見つかりません|そのようなファイルやディレクトリはありません" +
			"|kommando nicht gefunden|befehl nicht gefunden|datei oder verzeichnis nicht gefunden|commande introuvable|aucun fichier ou dossier de ce" +
			"|orden no encontrada|no se encontró la orden|no existe el archivo o el directorio|no existe el fichero o el directorio|non trovato" +
			"|file o directory non esistente|não encontrado|arquivo ou diretório inexistente|команда не найдена|нет такого файла или каталога"),
		`[:：] ?(?:第 ?|行 ?|line |zeile |ligne |línea |riga |linha |строка )\d+ ?行?[:：] ?[^:：]+[:：] ?\S`,
	},
	{outcome.EnvLaunch, Specific + 2, oneOf("no matching distribution found|version that satisfies the requirement|resolutionimpossible"), `error: .*`},
	{
		outcome.EnvLaunch, Specific + 2, oneOf(": not found|can't cd to|can't open"),
		`(^|\s)(sh|dash|bash|/bin/\w+|\S*slurm_script|\S*\.sh): (line )?\d+: .*: not found|: cd: can't cd to |: \.: can't open |^(exec|env): .*: not found|\bexec: (line \d+: )?\S+: not found` +
			`|(^|\s)(sh|ash|dash|/bin/(?:ba|da|a)?sh): \S+: not found$`,
	},
	{outcome.EnvLaunch, Specific + 2, oneOf("error: "), `^error: (failed to |no |unable to |the |project |python |invalid |could not |distribution |no ` + "`" +
		`).*(venv|virtual|python|lock|package|interpreter|project|download|wheel|cache|resolve|script|sync|build|fetch|workspace|pyproject)`},
	{
		outcome.EnvLaunch, Specific + 3, oneOf("permission denied"),
		`^\S*\b(bash|sh|dash|env|exec|slurm_script|line): .*(/bin/[\w.-]+|\.sh|\.py|python[\d.]*|torchrun): permission denied`,
	},
	{outcome.EnvLaunch, Specific + 8, oneOf("syntax error|unexpected eof while|is a directory"), `^\S+: (-c: )?line \d+: (\S+: is a directory$|syntax error|unexpected eof while looking)`},

	// The container runs, but its image lacks the program.
	{outcome.EnvLaunch, Specific + 8, oneOf("fatal:   "), `fatal: {3}("[^"]*": executable file not found in \$path|stat \S*/bin/\S+: no such file)`},

	{outcome.Container, Specific + 9, oneOf("pyxis:"), `pyxis: {3,}(?:\[ERROR\]|[^\s\[].*(?:no such|not found|fail|denied|unauthorized|toomanyrequests|http|error` +
		`|cannot|could not|couldn't|invalid|mismatch|unable|missing|no space|timed out|exists|unknown))`},
	{outcome.Container, Specific + 7, oneOf("pyxis:"), `error: pyxis: (\[error\]|couldn't|could not|failed|unable|importer|container (start|exited|was not` +
		`|image|name)|--container|error|seccomp|invalid|unknown|fork|a previous task|both --|mount (source|target)|cannot|no |enroot|.*(no such file` +
		`|denied|not found))`},
	{outcome.Container, Specific + 6, oneOf("pyxis:"), `pyxis: +(?:\[ERROR\]|[^\s\[].*(?:failed|error|couldn't|could not|unable to|no such file|denied|not found))`},
	{
		outcome.Container, Specific + 8, oneOf("could not process json|enroot|nvidia-container-cli|libnvidia-container|nvidia-container-runtime"),
		`(enroot\S*|nvidia-container-\w+|libnvidia-container|nvidia-container-runtime\S*):.*(error|fail|no such|not found|denied|unauthorized|cannot` +
			`|unable|invalid|could not|mismatch|timed out|http|missing|unsatisfied|no space|exists)|enroot-mount: failed|\[error\].*(import|squash|registry` +
			`|layer|image|container|download|enroot)|could not process json`,
	},
	// enroot without Slurm's plugin.
	{outcome.Container, Specific + 8, oneOf("[error] |failed to mount: "), `^failed to mount: \S+ at \S+|^\[error\] (command not found: \S+$|invalid argument: \S+$|no such file or directory: \S+$` +
		`|invalid image (format|reference): |failed to mount: |file already exists: |could not (acquire rootfs lock|(retrieve|parse) digest` +
		`|parse authentication realm)|url \S+ returned error code: \d|checksum validation failed|not enough space left in )`},
	{outcome.Container, Specific + 7, oneOf("docker:|error response from daemon|docker daemon|podman|oci runtime|crun:|runc |singularity|apptainer|fatal:   " +
		"|containerd|unshare|squashfuse|squashfs|user namespace|user_namespaces|image.sqsh|.sqsh|.sif"), `docker:? .*(error|denied|failed|cannot` +
		`|could not|invalid|unable|no such|not found|unknown)|error response from daemon|cannot connect to the docker daemon|docker daemon socket` +
		`|(podman|crun|runc|oci runtime\w*|containerd|unshare|squashfuse|squashfs|mksquashfs|unsquashfs)\b.*(error|fail|denied|cannot|not found|no such` +
		`|unable|not permitted|invalid)|(singularity|apptainer)\b.*(error|fatal|failed|not found|no such|denied|unable)|^fatal: {3}.*` +
		`|user.?namespaces?.*(not|disabled|fail|denied|exceed)|\.(sqsh|sif)\b.*(no such|not found|fail|error|invalid|denied|cannot|corrupt|does not exist)` +
		`|(no such|not found|fail|error|invalid|cannot).*\.(sqsh|sif)\b`},
	{outcome.Container, Specific + 7, oneOf("did not resolve to an alias|unqualified-search|failed to pull|toomanyrequests|manifest unknown|manifest for" +
		"|pull access denied|unauthorized: authentication required|pull rate limit|registry|repository does not exist|image not known" +
		"|invalid reference format|no matching manifest|image pull|imagepull|errimagepull"), `did not resolve to an alias|unqualified-search registr` +
		`|toomanyrequests|manifest (unknown|for \S+ not found)|pull access denied|unauthorized: authentication required|pull rate limit` +
		`|registry.*(error|denied|timeout|timed out|5\d\d|4\d\d|refused|unreachable|no such host)|repository does not exist|image not known` +
		`|invalid reference format|no matching manifest|image ?pull|failed to pull`},
	{
		outcome.Container, Specific + 7, oneOf("container_p_|container_g_|job_container"),
		`error: .*(container_[pg]_\w+|job_container).*(fail|no such|denied|unable|could not|cannot)`,
	},
	{outcome.Container, Specific + 5, oneOf("spank"), `spank.*(failed|error).*|required plugin spank_pyxis`},
}
