package pattern

import "github.com/megatron-ops/megatron-ops/slurm/diagnose/outcome"

// symptomPatterns match what a rank prints because another rank failed or because it was told to end;
// these lines are never the cause if there is any other. The rows for deaths of which only the signal
// is known are here too.
var symptomPatterns = []pattern{
	{
		outcome.Segfault, Specific, oneOf("segfault encountered|*** process received signal|caught signal 11|fatal python error|unexpected segmentation fault" +
			"|double free or corruption|free(): invalid|corrupted size vs|munmap_chunk|stack smashing|malloc(): |malloc_consolidate|free(): double" +
			"|realloc(): |pure virtual method|general protection|segfault at|signal: 11|corrupted double-linked|faulting instruction"),
		`segfault|process received signal|caught signal|fatal python error: (segmentation|floating|illegal|pyeval|gc|py|_py)` +
			`|unexpected segmentation fault|double free|free\(\): |corrupted|munmap_chunk|stack smashing|malloc|realloc\(\)|pure virtual|general protection` +
			`|signal: 11|faulting`,
	},
	// The interpreter reports SIGABRT, which watchdogs and asserts raise.
	{outcome.Segfault, Aborted, oneOf("fatal python error: aborted|`process abort signal` is detected"), ``},
	// A C++ process ended while its threads ran, as an exception makes it do.
	{outcome.Segfault, Aborted, oneOf("terminate called without an active exception"), ``},
	// Paddle's other messages about signals (paddle/fluid/platform/init.cc).
	{outcome.Segfault, Specific, oneOf("`erroneous arithmetic operation` is detected"), ``},
	{outcome.ShmBusError, Death + 6, oneOf("`access to an undefined portion of a memory object` is detected"), ``},
	{outcome.Segfault, Death + 6, oneOf("segmentation fault|sigsegv|floating point exception|sigfpe|illegal instruction|sigill" +
		"|killed by signal: segmentation|killed by signal: floating"), ``},
	{outcome.Segfault, Death + 6, oneOf("段错误|浮点数例外|非法指令|已放弃|已中止"), shellZH + `(段错误|浮点数例外|非法指令|已放弃|已中止)( |（|$)`},
	{outcome.ShmBusError, Death + 6, oneOf("总线错误"), shellZH + `总线错误( |（|$)`},
	{outcome.UnknownExit, Symptom, oneOf(" hangup| quit|已终止|挂断|退出"), `^\S+: line \d+: +\d+ (hangup|quit)\b|` + shellZH + `(已终止|挂断|退出) {2,}`},
	// PyTorch's own exceptions (c10::) say in the next line what happened.
	{
		outcome.Segfault, Death + 1, oneOf("core dumped|terminate called|: aborted| aborted  |trace/breakpoint trap|killed by signal: aborted|assertion"),
		`aborted +\(core dumped\)|line \d+: +\d+ (?:aborted|trace/breakpoint trap)\b|trace/breakpoint trap +\(core dumped\)` +
			`|terminate called (after throwing an instance of '([^c']|c[^1'])[^']*'|recursively)` +
			`|tasks? [\d,\[\]-]+: aborted|killed by signal: aborted|\.(cc?|cpp|cxx|h|hpp|cuh?):\d+:.* assertion .* failed`,
	},

	{
		outcome.NCCLConnection, Symptom + 3, oneOf("connection closed by remote peer|connection closed by peer|connection reset by peer|ncclremoteerror" +
			"|remote process exited|connection closed by localrank|pair.cc|pair.h|unhandled system error|ncclsystemerror|broken pipe|gloo"),
		`connection closed by|remote process exited|ncclremoteerror|pair\.(cc|h):.*(reset|closed|refused|timeout|error)|gloo.*(reset|closed|refused)` +
			`|unhandled system error|ncclsystemerror|broken pipe|connection reset`,
	},
	{outcome.NCCLTimeout, Symptom + 2, oneOf("distbackenderror|watchdog thread terminated|some nccl operations have failed|taking the entire process down" +
		"|nccl communicator was aborted|ncclcommabort|work with error|failure detected by watchdog|exception raised from" +
		"|received a dump signal|observed flight recorder dump signal"), ``},
	{outcome.Rendezvous, Symptom + 2, oneOf("failed to recv, got 0 bytes|failed to check the \"should dump\"|sendbytes failed|recvvalue failed" +
		"|recvbytes failed|recvvector failed|the connection to the c10d store has failed|rendezvousclosederror|heartbeatmonitor|tcpstore.cpp"), ``},
	{
		outcome.UnknownExit, Symptom, oneOf("childfailederror|closing signal sigterm|closing signal sigint|signalexception|got signal: 15|death signal" +
			"|received signals.sigterm|workers received signal|sigterm|terminated|job step aborted|forcing job termination|force terminated" +
			"|terminating stepid|terminating job step|waiting up to|waiting for job step to complete|broken pipe|brokenpipeerror|connectionreseterror|job credential revoked" +
			"|connectionrefusederror|systemexit|dataloader worker (pid|exited unexpectedly|manager.py|resource_tracker|eoferror" +
			"|`termination signal` is detected"),
		`childfailederror|closing signal|signalexception|got signal|death signal|signals\.sigterm|received signal|sigterm|\bterminated|step aborted` +
			`|for job step to complete|job credential revoked|job termination|terminating|broken ?pipe|connectionreseterror|connectionrefusederror|systemexit|exited unexpectedly` +
			"|killed by signal: terminated|`termination signal` is detected",
	},
	{outcome.UnknownExit, Exited, oneOf("the trainer process with rank="), `abort!!! .* was aborted`}, // Paddle's launcher
	{outcome.UnknownExit, Exited, oneOf("failed"), `^(?:the )?(?:job|run|training|result:?|script|experiment)\b.{0,16}\bfailed\b`},
}
