package layers

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/tools/go/packages"
)

const module = "github.com/megatron-ops/megatron-ops/"

// A room is a folder, the packages of this module that it may import, and the
// reason, which a failing test prints. "x/..." means x and everything below it.
// Every room may import the packages that the variable common lists.
type room struct {
	folder string
	may    []string
	why    string
}

// belowOps lists what Slack's packages may import: the operations and the types of
// their answers.
var belowOps = []string{
	"bot/...", "internal/ops/...", "internal/consent", "internal/store", "internal/account", "internal/linkproof", "knowledge", "knowledge/...", "skills",
	"slurm", "slurm/hostlist", "slurm/job", "slurm/lint", "slurm/diagnose/...", "slurm/metrics", "slurm/watch",
}

// belowTable lists the packages below the operations. Every package of operations may import them.
var belowTable = []string{"internal/checkout", "knowledge", "knowledge/...", "skills", "slurm", "slurm/...", "internal/store", "internal/chart"}

var rooms = []room{
	{"internal/lang", nil, "texts in two languages do not depend on what they say"},
	{"internal/view", nil, "the neutral form of an answer does not depend on its content"},
	{"internal/redact", nil, "redaction is needed everywhere, so it depends on nothing"},
	{"internal/layers", nil, "it only tests"},
	{"internal/soak", nil, "it only tests, and sees the service only from outside"},
	{"internal/account", nil, "users and groups come from the system's name service"},
	{"internal/account/...", nil, "test accounts do not depend on the tests that use them"},
	{"internal/munge", nil, "a MUNGE credential does not depend on what it proves"},
	{"internal/linkproof", []string{"internal/account", "internal/munge"}, "proving an identity must not depend on Slack"},
	{"internal/chart", nil, "a chart draws numbers without knowing their meaning"},
	{"internal/near", nil, "word similarity does not depend on what a word names"},
	{"internal/pace", nil, "who asks too often is counted alike at every door"},
	{"internal/tree", nil, "a tree of values does not know what reads it"},
	{"internal/shellword", nil, "quoting does not depend on the script"},
	{"internal/quickstart", nil, "its initialisation must come before that of all other packages"},
	{"internal/lazy", nil, "lazy compilation does not depend on the expressions"},
	{"internal/pickle", nil, "a pickle is read as data, never executed"},
	{"internal/within", nil, "safe opening of files is needed everywhere, so it depends on nothing"},
	{"internal/tracing", nil, "spans do not depend on the traced work"},
	{"internal/secretfile", nil, "every secret file is read in the same way"},
	{"knowledge/megatron", nil, "arithmetic of a run must be checkable on a laptop, with no cluster"},
	{"internal/checkout", []string{"knowledge/megatron"}, "the release is read from the worktree's files, not from the job"},
	{"knowledge/recipes", []string{"knowledge/megatron", "knowledge/rules"}, "recipes depend only on Megatron's arguments and rules"},
	{"knowledge/rules", []string{"knowledge/megatron"}, "a rule must be checkable on a laptop, with no cluster"},
	{"skills", nil, "skills are static files"},
	{"skills/generate", []string{"skills", "knowledge/rules", "knowledge/megatron"}, "only the generator of the skills' tables reads the rules"},
	{"knowledge", []string{"knowledge/...", "skills", "slurm", "slurm/hostlist", "internal/redact"}, "an answer comes from rules and skills, never from a cluster"},
	{"knowledge/...", []string{"knowledge/...", "skills", "slurm", "slurm/hostlist", "internal/redact"}, "an answer comes from rules and skills, never from a cluster"},
	{"slurm/hostlist", nil, "hostlists are text"},
	{"slurm", []string{"slurm/hostlist"}, "the vocabulary must be usable without the rest"},
	{"slurm/job", []string{"knowledge/...", "slurm", "slurm/hostlist", "slurm/script", "slurm/diagnose/outcome"}, "rendering is pure: specification in, script out; a retry names failure classes"},
	{"slurm/script", []string{"slurm", "slurm/hostlist"}, "reading a script is pure"},
	{"slurm/job/detect", []string{"knowledge/megatron", "slurm/job"}, "site detection parses text and runs no commands"},
	{"slurm/lint", []string{"knowledge/...", "slurm", "slurm/hostlist", "slurm/script", "slurm/job"}, "lint reads text and starts nothing"},
	{"slurm/cluster", []string{"slurm", "slurm/hostlist", "slurm/job"}, "a back end submits scripts and does not check them"},
	{"slurm/cluster/...", []string{"slurm", "slurm/hostlist", "slurm/cluster/..."}, "a back end submits scripts and does not check them"},
	{"slurm/watch", []string{"slurm", "slurm/hostlist", "slurm/metrics"}, "the watcher declares the cluster interfaces that it needs"},
	{"slurm/loglike", nil, "the decision uses only a file's name and content"},
	{"slurm/metrics", []string{"slurm", "slurm/loglike", "slurm/diagnose/logfile", "knowledge/megatron", "internal/chart"}, "metrics are read from the files of the newest job, by the rule of diagnose"},
	{"slurm/checkpoint", nil, "a checkpoint is read from its files only"},
	{"slurm/diagnose", []string{"slurm/diagnose/...", "knowledge/...", "slurm", "slurm/hostlist", "slurm/metrics"}, "a diagnosis never starts a process"},
	{"slurm/diagnose/outcome", nil, "failure classes do not depend on logs"},
	{"slurm/diagnose/pattern", []string{"slurm/diagnose/outcome"}, "a pattern matches one line"},
	{"slurm/diagnose/python", []string{"slurm/diagnose/outcome", "slurm/diagnose/pattern"}, "a traceback is parsed without knowledge of the job"},
	{"slurm/diagnose/logline", []string{"slurm/diagnose/python"}, "prefixes of a line are parsed without its meaning"},
	{"slurm/diagnose/flightrecorder", nil, "a flight-recorder dump is parsed without other logs"},
	{"slurm/diagnose/logfile", []string{"slurm/diagnose/flightrecorder", "slurm/diagnose/logline", "slurm/loglike"}, "log files are opened without interpreting their lines"},
	{"slurm/diagnose/scan", []string{"slurm/diagnose/outcome", "slurm/diagnose/pattern", "slurm/diagnose/python", "slurm/diagnose/logline", "slurm/diagnose/logfile", "slurm/hostlist"}, "scanning one file collects facts and gives no verdict"},
	{"slurm/diagnose/report", []string{"slurm/diagnose/outcome", "slurm/diagnose/python", "slurm/diagnose/logline", "slurm/diagnose/logfile", "knowledge/...", "slurm"}, "a report is written from the verdict, without reading logs"},
	{"slurm/diagnose/diagnosetest", []string{"slurm/diagnose", "slurm/diagnose/..."}, "shared test helpers may not depend on the operations"},
	{"internal/store", []string{"slurm"}, "the store only keeps data"},
	{"internal/ops", []string{"internal/checkout", "knowledge", "knowledge/...", "skills", "slurm", "slurm/...", "internal/store", "internal/redact", "internal/chart"}, "operations are above all other packages and below the doors"},
	{"internal/ops/answers", append([]string{"internal/ops"}, belowTable...), "answers do not depend on other operations; the list of operations is passed in"},
	{"internal/ops/fleet", append([]string{"internal/ops"}, belowTable...), "operations on nodes do not depend on those on jobs"},
	{"internal/ops/preflight", append([]string{"internal/ops"}, belowTable...), "preflight checks a job's surroundings and submits nothing"},
	{"internal/ops/launch", append([]string{"internal/ops", "internal/ops/preflight"}, belowTable...), "submission uses preflight, and nothing that concerns running jobs"},
	{"internal/ops/joblogs", append([]string{"internal/ops", "internal/ops/launch", "internal/ops/preflight"}, belowTable...), "reading logs needs the submitted specification, but not the operations that show or change jobs"},
	{"internal/ops/jobcontrol", append([]string{"internal/ops", "internal/ops/launch", "internal/ops/joblogs", "internal/ops/preflight"}, belowTable...), "operations on jobs use logs and submission, but not the operations on nodes"},
	{"internal/ops/pipeline", append([]string{"internal/ops", "internal/ops/launch"}, belowTable...), "a pipeline submits jobs; it needs no operations on running jobs"},
	{"internal/ops/smoke", append([]string{"internal/ops", "internal/ops/launch", "internal/ops/joblogs"}, belowTable...), "a smoke test submits and diagnoses; it needs no operations on jobs or nodes"},
	{"internal/ops/opstest", append([]string{"internal/ops"}, belowTable...), "shared test helpers do not depend on the operations that they test"},
	{"internal/ops/opstest/asuser", []string{"slurm/cluster"}, "the test's sudo helper makes one call"},
	{"internal/ops/operations", []string{"internal/ops/...", "slurm"}, "the table is assembled in one place, above the packages that define its rows; it tells a job's number from a word"},
	{"internal/store/...", nil, "the test server does not depend on the schema"},
	{"internal/lead", nil, "leader election does not depend on the leader's work"},
	{"internal/policy", []string{"internal/ops/...", "slurm", "slurm/hostlist", "slurm/job"}, "limits are computed from the operations' inputs, for all doors alike"},
	{"internal/consent", []string{"internal/ops/...", "internal/policy", "internal/store", "knowledge/rules", "slurm", "slurm/job"}, "every door shows the same request for consent"},
	{"internal/web", []string{"internal/ops/...", "internal/consent", "internal/linkproof", "slurm", "slurm/hostlist", "slurm/metrics"}, "the web page is a door: it depends on neither Slack nor MCP"},
	{"internal/notify", []string{"internal/follow", "internal/ops", "internal/store", "slurm", "slurm/hostlist", "slurm/diagnose/..."}, "notifications come from the follower and depend on no door"},
	{"internal/config", []string{"slurm", "slurm/job", "internal/ops/...", "internal/policy", "internal/notify"}, "the configuration names everything that cmd connects"},
	{"bot", belowOps, "Slack is a door: it uses operations and the packages below them, no back end, never MCP"},
	{"bot/incoming", []string{"slurm"}, "requests are decoded before rights are checked"},
	{"bot/typed", []string{"internal/ops/...", "slurm"}, "typed text is parsed before anything is drawn or done"},
	{"bot/answer", []string{"bot/typed", "internal/ops/...", "bot/slacktest"}, "drawing an answer does not depend on jobs, people or delivery"},
	{"bot/card", []string{"bot/answer", "bot/typed", "internal/ops/...", "slurm", "slurm/hostlist", "slurm/metrics"}, "a card is drawn from a job's data, wherever it is posted"},
	{"bot/form", []string{"bot/answer", "bot/typed", "internal/ops/...", "knowledge/rules"}, "a form has fields only; rights are checked elsewhere"},
	{"bot/outbox", []string{"bot/answer", "bot/slacktest", "internal/store"}, "delivery does not depend on the content"},
	{"bot/record", []string{"bot/outbox", "internal/store"}, "names of stored documents do not depend on their users"},
	{"bot/wording", []string{"bot/answer", "bot/card", "internal/ops/...", "slurm", "slurm/diagnose", "slurm/diagnose/...", "slurm/metrics"}, "the wording of a result does not depend on who asked"},
	{"bot/reply", []string{"bot/answer", "bot/incoming", "bot/outbox", "bot/typed", "internal/store"}, "the place of an answer does not depend on its content"},
	{"bot/people", []string{"bot/card", "bot/incoming", "bot/record", "internal/account", "internal/ops"}, "identity and notification settings are known before anything is answered"},
	{"bot/jobnews", []string{
		"bot/answer", "bot/card", "bot/incoming", "bot/outbox", "bot/people", "bot/record", "bot/reply", "bot/slacktest", "bot/typed", "bot/wording",
		"internal/ops/...", "internal/store", "slurm", "slurm/diagnose/report", "slurm/watch",
	}, "notifications depend on people, but not on their requests"},
	{"bot/install", []string{"bot/incoming", "bot/outbox", "bot/people", "bot/record"}, "installation comes before every use"},
	{"bot/receive", []string{"bot/answer", "bot/incoming", "bot/install"}, "requests are received and queued without regard to their content"},
	{"bot/profile", []string{
		"bot/answer", "bot/incoming", "bot/people", "bot/record", "bot/reply", "bot/slacktest", "internal/account", "internal/linkproof", "internal/ops",
		"internal/store",
	}, "settings need no job, form or approval"},
	{"bot/help", []string{"bot/answer", "bot/people", "bot/reply", "bot/typed", "internal/ops/...", "slurm"}, "help does nothing but list what is possible"},
	{"bot/terminal", []string{"bot/answer"}, "the terminal draws blocks without regard to their content"},
	{"bot/...", append([]string{"bot"}, belowOps...), "Slack is a door: it uses operations and the packages below them, no back end, never MCP"},
	{"mcp", []string{"mcp/...", "internal/ops/...", "internal/consent", "skills", "slurm", "internal/redact", "internal/store", "knowledge/...", "slurm/job"}, "MCP is a door, and never depends on Slack"},
	{"mcp/message", nil, "protocol messages are handled as text"},
	{"mcp/replay", nil, "missed messages are kept without interpreting them"},
	{"mcp/shorten", []string{"internal/ops"}, "truncation depends on the shape of an output only"},
	{"mcp/clients", []string{"internal/ops"}, "client configuration sees the server only from outside"},
	{"mcp/...", []string{"mcp", "mcp/...", "internal/ops/...", "skills", "slurm", "internal/redact"}, "MCP is a door, and never depends on Slack"},
	{"slurm/slurmtest", []string{"slurm", "slurm/slurmtest"}, "it plays a site in tests"},
	{"slurm/slurmtest/...", []string{"slurm/slurmtest"}, "it plays a site in tests"},
	{"internal/follow", []string{"internal/ops/...", "internal/store", "slurm", "slurm/..."}, "it uses the operations, and the doors show its events"},
	{"internal/demo", []string{"..."}, "the demo uses everything"},
	{"internal/docs", []string{"..."}, "pages are generated from every table"},
	{"packaging/...", nil, "packaging does not depend on the program's code"},
	{"evals/...", nil, "evaluations see the program only from outside"},
	{"tools/...", nil, "developers' tools read the code as text"},
	{"cmd/...", []string{"..."}, "wiring only happens here"},
}

// common lists the packages that every room may import.
var common = []string{"internal/lang", "internal/view", "internal/redact", "internal/lazy", "internal/near", "internal/pace", "internal/pickle", "internal/shellword", "internal/within", "internal/account", "internal/secretfile", "internal/tracing", "internal/tree"}

func match(pattern, folder string) bool {
	if pattern == "..." {
		return true
	}
	if base, ok := strings.CutSuffix(pattern, "/..."); ok {
		return folder == base || strings.HasPrefix(folder, base+"/")
	}
	return pattern == folder
}

// roomOf returns the room whose pattern matches folder most closely.
func roomOf(folder string) (room, bool) {
	var best room
	found := false
	for _, r := range rooms {
		if match(r.folder, folder) && (!found || len(r.folder) >= len(best.folder)) && (r.folder == folder || strings.HasSuffix(r.folder, "/...")) {
			if found && best.folder == folder {
				continue
			}
			best, found = r, true
		}
	}
	return best, found
}

func TestImportsPointDownwards(t *testing.T) {
	pkgs, err := packages.Load(&packages.Config{Mode: packages.NeedName | packages.NeedImports}, module+"...")
	require.NoError(t, err)
	require.NotEmpty(t, pkgs)
	for _, p := range pkgs {
		folder := strings.TrimPrefix(p.PkgPath, module)
		r, ok := roomOf(folder)
		if !ok {
			t.Errorf("%s has no row in the table of rooms: say what it may import, and why", folder)
			continue
		}
	imports:
		for path := range p.Imports {
			target, ours := strings.CutPrefix(path, module)
			if !ours {
				continue
			}
			for _, may := range append(common, r.may...) {
				if match(may, target) {
					continue imports
				}
			}
			t.Errorf("%s imports %s, which its row does not allow: %s", folder, target, r.why)
		}
	}
}

var update = flag.Bool("update", false, "rewrite the page")

// docs/architecture.md shows newcomers the table of rooms.
func TestThePageShowsTheRooms(t *testing.T) {
	const page, begin, end = "../../docs/architecture.md", "<!-- rooms -->\n", "<!-- end of rooms -->\n"
	text, err := os.ReadFile(page)
	require.NoError(t, err)
	before, rest, ok := strings.Cut(string(text), begin)
	require.True(t, ok)
	_, after, ok := strings.Cut(rest, end)
	require.True(t, ok)
	var b strings.Builder
	b.WriteString("| room | may import | because |\n|---|---|---|\n")
	for _, r := range rooms {
		may := "nothing"
		if len(r.may) > 0 {
			may = "`" + strings.Join(r.may, "`, `") + "`"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", r.folder, may, r.why)
	}
	want := before + begin + b.String() + end + after
	if *update {
		require.NoError(t, os.WriteFile(page, []byte(want), 0o644))
		return
	}
	require.Equal(t, want, string(text), "go test ./internal/layers -update writes it")
}
