package pattern

import (
	"strings"
	"sync"

	"github.com/megatron-ops/megatron-ops/internal/lazy"
)

// harmlessPatterns match lines after which the program goes on.
var harmlessPatterns = []pattern{
	{on: oneOf("ignored|ignoring|ignore"), re: `\(ignored\)|\bignoring\b|\bignored\b|can be ignored|safely ignore`},
	// TensorFlow and JAX look for a GPU and go on without one.
	{on: oneOf("failed call to cuinit")},
	// The kernel reports an error that the link itself corrected (drivers/pci/pcie/aer.c).
	{on: oneOf("pcie bus error: severity=correct")},
	// c10d tries IPv6 first (torch/csrc/distributed/c10d/socket.cpp).
	{on: oneOf("(errno: 97 - address family not supported")},
	// NCCL uses sockets if there is no InfiniBand (misc/ibvwrap.cc, misc/ibvsymbols.cc).
	{on: oneOf("failed to open libibverbs.so")},
	// NCCL's service for questions about a run goes off if it fails, and the run goes on (ras/).
	{on: oneOf("ras/"), re: `\bras/\w+\.cc:\d+ nccl warn\b`},
	{on: oneOf("(optional)|exception ignored|telemetry|gid table change|port active|compat/lib|leaked semaphore|leaked shared_memory" +
		"|non-fatal|nonfatal|harmless|will start from random|couldn't chdir|client reregist|deprecat|not supported (" +
		"|can lead to|may lead to|could lead to|reduced performance|degraded performance")},
	{on: oneOf("falling back|fall back|fallback|falls back")},
	// A script has a line with nothing but a Unicode blank or a rule, which a shell takes for a command.
	{on: oneOf("command not found"), re: "line \\d+: (?:[\u00a0\u200b\u3000\ufeff]+|([=*~_#+-])[=*~_#+-]{3,}): command not found"},
	// Slurm's or another system's tool for control groups cannot add a process to one: its table is full, and no disk is.
	{on: oneOf("changing group of pid")},
	// conda is asked to create an environment that exists already.
	{on: oneOf("prefix already exists")},
	// A plug-in of conda cannot be loaded, and conda goes on without it.
	{on: oneOf("error while loading conda entry point")},
	// A network adapter reports events of its fabric other than errors: ibv_get_async_event(3).
	{on: oneOf("async event"), re: `async event ?:? (?:sm|lid|p_?key(?: table)?) change|async event ?:? (?:path migrated|communication established)`},
	{on: oneOf("caught,|caught)|caught and|caught an"), re: `\bcaught[,)]|\bcaught\b.*\b(?:try|retry|skip|contin)`},
	{on: oneOf("skip"), re: `\bskip(?:ped|ping)?\b`},
	{on: oneOf("retry|re-try|tried|retried"), re: `\bretry(?:ing)?\b|\bre-?trying\b|will (?:be )?(?:re)?tr(?:y|ied)`},
	{on: oneOf("continuing|disabling|is disabled|are disabled|recovering|starting from scratch|starting from random|best effort|best-effort")},
	{on: oneOf("warning"), re: `(?:future|user|runtime|resource|import|syntax|deprecation)warning|\.py:\d+: \w*warning: |^\s*warning\b|\bthis warning\b`},
	{on: oneOf("will not be"), re: `will not be (?:registered|used|loaded)`},
	{on: oneOf("using"), re: `using (?:the )?(?:default|slow|torch|native|python|internal)\b|unable to .*; using`},
	{on: oneOf("resum"), re: `resum(?:ed|ing) (?:after|from)`},
	{on: oneOf("instead"), re: `instead\.?$`},
	// transformers' Trainer writes this about tied weights, and goes on.
	{on: oneOf("keys in the checkpoint model loaded"), re: `(?:^|\s)there were (?:missing|unexpected) keys in the checkpoint model loaded`},
	{on: oneOf("possible"), re: `^\s*possible (?:reasons?|causes?)\b`}, // what may have happened to what the line before tells of
	{on: oneOf("no checkpoint"), re: `no checkpoint.*starting`},
	{on: oneOf("trying"), re: `trying (?:a |another |again|next)`},
	{on: oneOf("attempt"), re: `attempt \d+ ?(?:/|of) ?\d+`},
	{on: oneOf("action"), re: `no action (?:is )?needed`},
}

var harmlessTable = sync.OnceValue(func() *Table { return newTable(harmlessPatterns) })

// LowLevel matches lines logged at a level below error.
var LowLevel = lazy.On("WARN|INFO|DEBUG|NOTICE|TRACE|Warning|Info|level=|[W|[I|[D|[NeMo|W0|W1|I0|I1|D0|D1|: I |: W ",
	`^(?:> )?(?:\[?\d{4}[-/]\d\d[-/]\d\d[^a-zA-Z]*\s)?\[?(?:WARNING|WARN|INFO|DEBUG|NOTICE|Warning|Info)\b|`+
		`^\[?[WID]\d{3,4} \d|^\[[WI] |^\[[WI]\d{3,4} |\[(?:WARNING|INFO|DEBUG|WARN)[\]:]|\| ?(?:WARNING|INFO|DEBUG) ?\||`+
		`- (?:WARNING|INFO|DEBUG) -|\blevel=(?:warn|warning|info|debug)\b|\bNCCL (?:INFO|TRACE)\b|^\[NeMo [WI]|`+
		`[: ](?:WARNING|INFO|DEBUG):[\w.]+:|:(?:WARNING|INFO|DEBUG):|\((?:WARNING|INFO|DEBUG)\)|^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d+: [IW] `)

// IntroducesCaught reports whether before, the line before a traceback, names an error that the program
// handles.
func IntroducesCaught(before string) bool {
	return handled.MatchString(before) && ofAnError.MatchString(before)
}

var (
	handled = lazy.New(`(?i)^exception ignored|fall(?:ing|s)? ?-?back|\boptional\b|\bignor(?:ed|ing)\b|\bcaught\b|\bretry(?:ing)?\b|` +
		`continuing|could not import|failed to import|unable to import|import failed|\bskip(?:ped|ping)\b|` +
		`^(?:\S+ )?(?:WARN(?:ING)?|INFO|DEBUG)\b|^Error processing line \d+ of \S+\.pth:`) // Python's site module skips a bad .pth file
	ofAnError = lazy.New(`(?i)error|exception|fail|import|could not|unable|cannot|can't|\b(?:bad|invalid|broken|malformed|corrupt(?:ed)?)\b`)
)

// GoesOn reports whether a line right before or behind a caught exception says what failed, and that its program goes on: what it
// does next, or that this attempt was not the last one. A line that says only what the program does now tells of no failure.
func GoesOn(text string) bool {
	if g := OfAttempts.FindStringSubmatch(text); g != nil {
		return g[1] != "" && g[2] != g[3]
	}
	return next.MatchString(text) && !stops.MatchString(text) && !gaveUp.MatchString(text)
}

var (
	// OfAttempts matches the number of an attempt behind what failed, and how many a program makes.
	OfAttempts = lazy.New(`(?i)^(.*[^\s=#\[(:-].*[,;，；(] ?)?(?:attempt|try|retry)\W{0,3}(\d+) ?(?:/|of) ?(\d+)`)
	next       = lazy.New(`(?i)[,;，；] ?(?:\w+ )?(?:(?:go(?:ing|es)|carrying|keep(?:s|ing)) on\b|(?:re)?trying (?:\d|again|with|without|another|the next)|` +
		`.{0,4}(?:继续|再试|重试|跳过|忽略|改[用为成]))`)
	stops = lazy.New(`(?i)\b(?:please|exiting|stopping|aborting)\b|(?:无法|不能)继续|(?:^|[^申])请|退出|停止|放弃|终止`)
)

// harmless reports whether a line says of itself that it is no failure.
func harmless(text string) bool {
	return harmlessTable().Match(text) != nil && !gaveUp.MatchString(text) ||
		strings.Contains(text, "guard: warning: ") // a guard of a rendered script, which lets the job go on
}

// gaveUp matches lines that harmlessPatterns would take for harmless retries or ignored values: retries
// that are used up, bash's retries of fork (launchPatterns has a row for these), and argparse's error
// about a value for a flag without one.
var gaveUp = lazy.New(`(?i)retr(?:y|ies).{0,40}(?:exceeded|exhausted|failed)|exceeded.{0,30}retr|(?:max|too many|all) retries|` +
	`giving up|gave up|ignored explicit argument|: fork: retry: `)

var retryCount = lazy.New(`retrying \((\d+)/(\d+)\)`)

// LastRetry reports whether a line is the last of a connection's counted retries, after which NCCL
// gives up (NCCL_SOCKET_RETRY_CNT), or NCCL's report of a failed connect without a count.
func LastRetry(text string) bool {
	m := retryCount.FindStringSubmatch(text)
	if m == nil {
		return strings.Contains(text, "NCCL INFO") && strings.Contains(text, "onnect") && !strings.Contains(text, "accept failed") &&
			(strings.Contains(text, " failed : ") || strings.Contains(text, "returned "))
	}
	return m[1] == m[2]
}

// AgentLine reports whether a launcher or Slurm wrote a line about another process.
func AgentLine(text string) bool {
	return strings.HasPrefix(text, "srun:") || strings.HasPrefix(text, "slurmstepd") || strings.Contains(text, "of binary:") ||
		strings.Contains(text, "the trainer process with rank=") // torchelastic, Paddle's launcher
}
