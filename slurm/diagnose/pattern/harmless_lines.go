package pattern

import (
	"strings"
	"sync"

	"github.com/megatron-ops/megatron-ops/internal/lazy"
)

// harmlessPatterns say that the program goes on.
var harmlessPatterns = []pattern{
	{on: oneOf("ignored|ignoring|ignore"), re: `\(ignored\)|\bignoring\b|\bignored\b|can be ignored|safely ignore`},
	// TensorFlow and JAX look for a GPU, and go on without one.
	{on: oneOf("failed call to cuinit")},
	// The kernel's word on what a link put right by itself (drivers/pci/pcie/aer.c).
	{on: oneOf("pcie bus error: severity=correct")},
	// c10d asks for IPv6 first (torch/csrc/distributed/c10d/socket.cpp).
	{on: oneOf("(errno: 97 - address family not supported")},
	// NCCL takes sockets where there is no InfiniBand (misc/ibvwrap.cc, misc/ibvsymbols.cc).
	{on: oneOf("failed to open libibverbs.so")},
	{on: oneOf("(optional)|exception ignored|telemetry|gid table change|port active|compat/lib|leaked semaphore|leaked shared_memory" +
		"|non-fatal|nonfatal|harmless|will start from random|couldn't chdir|client reregist|deprecat|not supported (" +
		"|can lead to|may lead to|could lead to|reduced performance|degraded performance")},
	{on: oneOf("falling back|fall back|fallback|falls back")},
	// A blank that is none to a shell, alone in a line of its script.
	{on: oneOf("command not found"), re: "line \\d+: [\u00a0\u200b\u3000\ufeff]+: command not found"},
	// conda was told to make an environment that is there.
	{on: oneOf("prefix already exists")},
	// What an adapter tells of its fabric: ibv_get_async_event(3), less the errors.
	{on: oneOf("async event"), re: `async event ?:? (?:sm|lid|p_?key(?: table)?) change|async event ?:? (?:path migrated|communication established)`},
	{on: oneOf("caught,|caught)|caught and|caught an"), re: `\bcaught[,)]|\bcaught\b.*\b(?:try|retry|skip|contin)`},
	{on: oneOf("skip"), re: `\bskip(?:ped|ping)?\b`},
	{on: oneOf("retry|re-try|tried|retried"), re: `\bretry(?:ing)?\b|\bre-?trying\b|will (?:be )?(?:re)?tr(?:y|ied)`},
	{on: oneOf("continuing|disabling|is disabled|are disabled|recovering|starting from scratch|starting from random|best effort|best-effort")},
	{on: oneOf("warning"), re: `(?:future|user|runtime|resource|import|syntax|deprecation)warning|^\s*warning\b|\bthis warning\b`},
	{on: oneOf("will not be"), re: `will not be (?:registered|used|loaded)`},
	{on: oneOf("using"), re: `using (?:the )?(?:default|slow|torch|native|python|internal)\b|unable to .*; using`},
	{on: oneOf("resum"), re: `resum(?:ed|ing) (?:after|from)`},
	{on: oneOf("instead"), re: `instead\.?$`},
	// transformers' Trainer tells so of tied weights, and goes on.
	{on: oneOf("keys in the checkpoint model loaded"), re: `(?:^|\s)there were (?:missing|unexpected) keys in the checkpoint model loaded`},
	{on: oneOf("no checkpoint"), re: `no checkpoint.*starting`},
	{on: oneOf("trying"), re: `trying (?:a |another |again|next)`},
	{on: oneOf("attempt"), re: `attempt \d+ ?(?:/|of) ?\d+`},
	{on: oneOf("action"), re: `no action (?:is )?needed`},
}

var harmlessTable = sync.OnceValue(func() *Table { return newTable(harmlessPatterns) })

// LowLevel are the marks of lines that are logged below error.
var LowLevel = lazy.On("WARN|INFO|DEBUG|NOTICE|TRACE|Warning|Info|level=|[W|[I|[D|[NeMo|W0|W1|I0|I1|D0|D1|: I |: W ",
	`^(?:> )?(?:\[?\d{4}[-/]\d\d[-/]\d\d[^a-zA-Z]*\s)?\[?(?:WARNING|WARN|INFO|DEBUG|NOTICE|Warning|Info)\b|`+
		`^\[?[WID]\d{3,4} \d|^\[[WI] |^\[[WI]\d{3,4} |\[(?:WARNING|INFO|DEBUG|WARN)[\]:]|\| ?(?:WARNING|INFO|DEBUG) ?\||`+
		`- (?:WARNING|INFO|DEBUG) -|\blevel=(?:warn|warning|info|debug)\b|\bNCCL (?:INFO|TRACE)\b|^\[NeMo [WI]|`+
		`:(?:WARNING|INFO|DEBUG):|\((?:WARNING|INFO|DEBUG)\)|^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d+: [IW] `)

// IntroducesCaught reports whether the line before a traceback speaks of an
// error that the program handles.
func IntroducesCaught(before string) bool {
	return handled.MatchString(before) && ofAnError.MatchString(before)
}

var (
	handled = lazy.New(`(?i)^exception ignored|fall(?:ing|s)? ?-?back|\boptional\b|\bignor(?:ed|ing)\b|\bcaught\b|\bretry(?:ing)?\b|` +
		`continuing|could not import|failed to import|unable to import|import failed|\bskip(?:ped|ping)\b|` +
		`^(?:\S+ )?(?:WARN(?:ING)?|INFO|DEBUG)\b|^Error processing line \d+ of \S+\.pth:`) // Python's site goes on
	ofAnError = lazy.New(`(?i)error|exception|fail|import|could not|unable|cannot|can't|\b(?:bad|invalid|broken|malformed|corrupt(?:ed)?)\b`)
)

// harmless reports whether a line says that it is no failure.
func harmless(text string) bool {
	return harmlessTable().shows(text) && !gaveUp.MatchString(text) ||
		strings.Contains(text, "guard: warning: ") // our own scripts' guards, which let the job go on
}

// gaveUp matches lines that name retries only to say that they are used up, those of
// bash, which has a row for what comes of them,
// and argparse's word for a value given to a flag.
var gaveUp = lazy.New(`(?i)retr(?:y|ies).{0,40}(?:exceeded|exhausted|failed)|exceeded.{0,30}retr|(?:max|too many|all) retries|` +
	`giving up|gave up|ignored explicit argument|: fork: retry: `)

var retries = lazy.New(`retrying \((\d+)/(\d+)\)`)

// LastRetry reports whether a line is a connection's retry of many: NCCL
// counts them and gives up after the last (NCCL_SOCKET_RETRY_CNT).
func LastRetry(text string) bool {
	m := retries.FindStringSubmatch(text)
	if m == nil {
		return strings.Contains(text, "NCCL INFO") && strings.Contains(text, "onnect") && !strings.Contains(text, "accept failed") &&
			(strings.Contains(text, " failed : ") || strings.Contains(text, "returned "))
	}
	return m[1] == m[2]
}

// AgentLine reports whether a launcher or Slurm speaks about other processes.
func AgentLine(text string) bool {
	return strings.HasPrefix(text, "srun:") || strings.HasPrefix(text, "slurmstepd") || strings.Contains(text, "of binary:")
}
