package pattern

import "github.com/megatron-ops/megatron-ops/slurm/diagnose/outcome"

// slurmPatterns match messages of Slurm's commands and daemons. Sources: slurm's src/slurmd, src/srun,
// src/common/slurm_errno.c; squeue(1) JOB STATE CODES.
var slurmPatterns = []pattern{
	{outcome.SlurmTimeLimit, Ended + 3, oneOf("due to time limit|due to deadline|time limit exhausted|job reached its time limit|has exceeded its time limit" +
		"|exceeded time limit"), ``},
	{outcome.SlurmTimeLimit, Ended + 3, oneOf("time limit|timelimit"), `(srun|salloc|slurm\w*): .*\b(job|step)\b.*\b(exceeded|exhausted|reached|hit)\b.{0,12}time ?limit`},
	{outcome.SlurmPreempted, Ended + 4, oneOf("due to preemption|due to job requeue"), ``},
	{
		outcome.SlurmPreempted, Ended + 2, oneOf("job is preempted|job has been preempted|job was preempted|preempted by|being preempted|job preempted" +
			"|due to requeue|requeued due to|requeue"),
		`due to requeue|(job|is|was|been|being) preempted|preempted by|(job|step) \S* ?(has been |was |is being )?requeued`,
	},
	{outcome.SlurmPreempted, Ended + 2, oneOf("preempted"), `(srun|salloc|slurm\w*): .*\b(job|step)(id=| )\S+ (has been|was|is being) preempted`},
	{outcome.SlurmNodeFail, Ended + 5, oneOf("due to node |node failure on|node_fail"), `due to node (fail|\S+ failure)|node failure on|\bnode_fail\b`},
	{
		outcome.SlurmNodeFail, Ended + 2, oneOf("a node failed|a node has failed|a node died|a node has died"),
		`^(\S+: )*a node (has )?(failed|died)\b`,
	},
	{
		outcome.SlurmNodeFail, Ended + 2, oneOf("still not ready|allocation has been revoked|has been revoked|job credential|not responding" +
			"|io error with slurmstepd|communication connection failure|zero bytes were transmitted|slurmd on node|task launch for" +
			"|unexpected reboot|node is down|nodes are down|node unexpectedly rebooted|slurmd could not|unable to confirm allocation|lost connection to"),
		`nodes? \S+ (is |are )?(not responding|still not ready)|allocation \d+ has been revoked|job credential expired` +
			`|io error with slurmstepd|task launch for .*failed on node \S+: ` + unrevoked + `|unexpected(ly)? reboot|nodes? (\S+ )?(is|are) down|communication connection failure` +
			`|lost connection to (node|slurmd)`,
	},
	// srun reports one failed launch in three forms, and the reason behind them tells the class. These rows outweigh those of
	// srun's refusals, which begin with the same words.
	{outcome.EnvLaunch, Specific + 7, oneOf("slurmd could not execve|plugin init"), launchFailed + `(?:slurmd could not execve|plugin init)`}, // pyxis is such a plugin
	{
		outcome.SlurmNodeFail, Specific + 7, oneOf("launch failed|task launch for"),
		launchFailed + `.*(communication connection|socket timed out|connection refused|no route to host|not responding|node failure|unable to contact` +
			`|transport endpoint|zero bytes|job credential expired|invalid job credential|error configuring interconnect|job prolog failed|user not found)`,
	},
	{outcome.SlurmNodeFail, Specific + 7, oneOf("error: node failure on|prolog failure on node"), `^\S*\s*(salloc|srun|sbatch|slurmstepd\S*): (error: )?(node|prolog) failure on`},
	{
		outcome.SlurmCancelled, Ended - 2, oneOf("cancelled at|due to signal|sending ctrl-c|interrupt (one more within|first task exited"),
		`(job|step) \S+ on \S+ cancelled at \S+ (\*\*\*|due to signal)|(job|step) \S+.* cancelled at \S+(?:$| *\*| due to [^t])|sending ctrl-c|interrupt \(one more` +
			`|first task exited \d+s? ago`,
	},
	{outcome.SlurmCancelled, Ended - 4, oneOf("keyboardinterrupt|cancelled by"), `^keyboardinterrupt|cancelled by \w+`},

	// LSF and PBS end a job for the same reasons. LSF's keywords are those of bacct(1); a job's report begins with one, and
	// bhist(1) and bacct write it behind the job's state.
	{
		outcome.SlurmTimeLimit, Ended + 3, oneOf("term_runlimit|term_cpulimit|term_deadline|term_window|job killed: walltime"),
		lsfEnd + `((run|cpu)limit|deadline|window): job killed|^\W*pbs: job killed: walltime`,
	},
	{
		outcome.SlurmCancelled, Ended - 2, oneOf("term_owner|term_force_owner|term_admin|term_force_admin|term_bucket_kill"),
		lsfEnd + `((force_)?(owner|admin)|bucket_kill): job killed`,
	},
	{outcome.SlurmPreempted, Ended + 4, oneOf("term_preempt|term_load|term_requeue_|term_rc:"), lsfEnd + `(preempt|load|requeue_(owner|admin|rc)|rc): job killed`},
	{outcome.HostOOM, Fact, oneOf("term_memlimit|term_swap|job killed: mem|job killed: vmem"), lsfEnd + `(memlimit|swap): job killed|^\W*pbs: job killed: v?mem`},

	// Client commands: every error of sbatch and salloc is a refusal; of srun's errors only those of
	// slurm_errno.c about a request are.
	{outcome.SlurmSubmitRejected, Specific + 6, oneOf("sbatch:|salloc:"), `^\S*\s*(sbatch|salloc): (error|fatal|unrecognized|invalid|option|ambiguous)\b`},
	{outcome.SlurmSubmitRejected, Specific + 6, oneOf("srun:"), `srun: (fatal:|unrecognized|invalid option|option|ambiguous)` +
		`|srun: error: (unable to (create step|allocate resources|create job step|confirm)|invalid|requested|job violates|more processors` +
		`|memory (required|spec)|access/permission|allocation failure|application launch (add )?failed: ` + unrevoked + `|tasks? \S+ launch failed: .*(invalid|unable to (?:satisfy|layout)|requested)|--|are required|duplicate` +
		`|only allocated|can't|cannot|no (nodes|value)|node count|partition|qos|assoc|job creation|job submit|configuration file|task range|too few` +
		`|ntasks|hostlist|slurm job \d+ has expired|the slurm controller|user'?s? group|insufficient|batch|reservation|more|multi_prog` +
		`|munge (encode|decode) failed|.*has authentication error)`},
	{outcome.SlurmSubmitRejected, Specific + 5, oneOf("batch job submission failed|job submit/allocate failed|job violates accounting" +
		"|requested node configuration is not available|node count specification invalid|more processors requested|invalid account or account/partition" +
		"|invalid partition name|invalid qos spec|invalid feature spec|invalid generic resource|requested time limit is invalid" +
		"|user's group not permitted|requested reservation is invalid|memory specification can not be satisfied|does not look like a batch script" +
		"|dos line breaks|no partition specified|invalid job array spec|invalid wckey|invalid license|job dependency problem"), ``},
}

// launchFailed begins srun's reports on a step or a task that it could not launch.
const launchFailed = `(?:application launch failed|tasks? \S+ launch failed|task launch for \S+ failed on node \S+): `

// unrevoked begins a reason other than "Job credential revoked": a node revokes the credential of a job that was ended.
const unrevoked = `(?:job[^ ]|job [^c]|[^j])`

// lsfEnd begins LSF's reason for the end of a job.
const lsfEnd = `(?:^|<exit>; )term_`
