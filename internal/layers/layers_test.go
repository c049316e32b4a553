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

// A room is a folder, what it may import of ours, and the reason that a failing
// test prints. "x/..." means x and everything below it. internal/lang and
// internal/view and internal/redact, the words and the manners that all rooms
// have, are open to all.
type room struct {
	folder string
	may    []string
	why    string
}

// belowOps is what a surface may use besides the operations: the types of their
// answers.
var belowOps = []string{
	"bot/...", "internal/ops/...", "internal/consent", "internal/store", "internal/account", "internal/linkproof", "knowledge", "knowledge/...", "skills",
	"slurm", "slurm/hostlist", "slurm/job", "slurm/lint", "slurm/diagnose/...", "slurm/metrics", "slurm/watch",
}

// belowTable is what lies below the operations, open to each of their rooms.
var belowTable = []string{"internal/checkout", "knowledge", "knowledge/...", "skills", "slurm", "slurm/...", "internal/store", "internal/chart"}

var rooms = []room{
	{"internal/lang", nil, "the words of both languages know nothing of what is said"},
	{"internal/view", nil, "an answer's form knows nothing of the answer"},
	{"internal/redact", nil, "cleaning text from outside needs no other room"},
	{"internal/layers", nil, "it only tests"},
	{"internal/soak", nil, "it only tests, and knows the service from outside"},
	{"internal/account", nil, "who somebody is, the system says, whatever it is asked for"},
	{"internal/account/...", nil, "people for tests know nothing of what they do"},
	{"internal/munge", nil, "a credential knows nothing of what it proves"},
	{"internal/linkproof", []string{"internal/account", "internal/munge"}, "who somebody is must be decided without Slack"},
	{"internal/chart", nil, "a picture knows nothing of what its numbers mean"},
	{"internal/near", nil, "a word knows nothing of what it names"},
	{"internal/shellword", nil, "a word knows nothing of the script that it stands in"},
	{"internal/quickstart", nil, "it must be initialised before what it serves"},
	{"internal/lazy", nil, "an expression knows nothing of what it finds"},
	{"internal/pickle", nil, "a pickle is data, whoever reads it"},
	{"internal/within", nil, "opening a file needs no other room"},
	{"internal/tracing", nil, "a span knows nothing of what is done in it"},
	{"internal/secretfile", nil, "whoever needs a secret reads it the same way"},
	{"knowledge/megatron", nil, "arithmetic of a run must be checkable on a laptop, with no cluster"},
	{"internal/checkout", []string{"knowledge/megatron"}, "which release a checkout holds is read from its files, whatever the job"},
	{"knowledge/recipes", []string{"knowledge/megatron", "knowledge/rules"}, "a model's arguments know nothing of who trains it"},
	{"knowledge/rules", []string{"knowledge/megatron"}, "a rule must be checkable on a laptop, with no cluster"},
	{"skills", nil, "skills are read by people and agents as they are"},
	{"skills/generate", []string{"skills", "knowledge/rules", "knowledge/megatron"}, "only generation may read the rules"},
	{"knowledge", []string{"knowledge/...", "skills", "slurm", "slurm/hostlist", "internal/redact"}, "an answer comes from rules and skills, never from a cluster"},
	{"knowledge/...", []string{"knowledge/...", "skills", "slurm", "slurm/hostlist", "internal/redact"}, "an answer comes from rules and skills, never from a cluster"},
	{"slurm/hostlist", nil, "hostlists are text"},
	{"slurm", []string{"slurm/hostlist"}, "the vocabulary must be usable without the rest"},
	{"slurm/job", []string{"knowledge/...", "slurm", "slurm/hostlist", "slurm/script"}, "rendering is pure: specification in, script out"},
	{"slurm/script", []string{"slurm", "slurm/hostlist"}, "reading a script is pure"},
	{"slurm/job/detect", []string{"knowledge/megatron", "slurm/job"}, "a site is read from texts, whoever asked for them"},
	{"slurm/lint", []string{"knowledge/...", "slurm", "slurm/hostlist", "slurm/script", "slurm/job"}, "lint reads text and starts nothing"},
	{"slurm/cluster/recording", []string{"slurm", "slurm/hostlist"}, "what is told to strangers is cleaned before anybody writes it down"},
	{"slurm/cluster", []string{"slurm", "slurm/hostlist", "slurm/job", "slurm/cluster/recording"}, "a back end moves scripts, it does not judge them"},
	{"slurm/cluster/...", []string{"slurm", "slurm/hostlist", "slurm/cluster/..."}, "a back end moves scripts, it does not judge them"},
	{"slurm/watch", []string{"slurm", "slurm/hostlist", "slurm/metrics"}, "watching sees clusters through interfaces of its own"},
	{"slurm/loglike", nil, "whether a file may be a log is told from its name and its bytes"},
	{"slurm/metrics", []string{"slurm", "slurm/loglike", "knowledge/megatron", "internal/chart"}, "metrics are read from files"},
	{"slurm/checkpoint", nil, "a checkpoint is read from its files, by whoever may read them"},
	{"slurm/diagnose", []string{"slurm/diagnose/...", "knowledge/...", "slurm", "slurm/hostlist", "slurm/metrics"}, "a diagnosis never starts a process"},
	{"slurm/diagnose/outcome", nil, "what a failure may be is known before any log is read"},
	{"slurm/diagnose/pattern", []string{"slurm/diagnose/outcome"}, "what a line says by itself needs no other line"},
	{"slurm/diagnose/python", []string{"slurm/diagnose/outcome", "slurm/diagnose/pattern"}, "a traceback knows nothing of the job that raised it"},
	{"slurm/diagnose/logline", []string{"slurm/diagnose/python"}, "the head of a line knows nothing of what it tells"},
	{"slurm/diagnose/flightrecorder", nil, "a dump is data, whoever asks"},
	{"slurm/diagnose/logfile", []string{"slurm/diagnose/flightrecorder", "slurm/diagnose/logline", "slurm/loglike"}, "opening a log knows nothing of what it tells"},
	{"slurm/diagnose/scan", []string{"slurm/diagnose/outcome", "slurm/diagnose/pattern", "slurm/diagnose/python", "slurm/diagnose/logline", "slurm/diagnose/logfile", "slurm/hostlist"}, "what one file tells is gathered without a verdict"},
	{"slurm/diagnose/report", []string{"slurm/diagnose/outcome", "slurm/diagnose/python", "slurm/diagnose/logline", "slurm/diagnose/logfile", "knowledge/...", "slurm"}, "an answer is put into words without the logs that it came of"},
	{"slurm/diagnose/diagnosetest", []string{"slurm/diagnose", "slurm/diagnose/..."}, "what the rooms' tests share knows no room above the judge"},
	{"internal/store", []string{"slurm"}, "the store keeps, it does not act"},
	{"internal/ops", []string{"internal/checkout", "knowledge", "knowledge/...", "skills", "slurm", "slurm/...", "internal/store", "internal/redact", "internal/chart"}, "the operations stand above every room and below every surface"},
	{"internal/ops/answers", append([]string{"internal/ops"}, belowTable...), "an answer comes from what is known, and asks no other room; the operations that it tells of are handed to it"},
	{"internal/ops/fleet", append([]string{"internal/ops"}, belowTable...), "nodes are shown and cared for whatever runs on them"},
	{"internal/ops/preflight", append([]string{"internal/ops"}, belowTable...), "what lies around a job is looked at for whoever submits it; it submits nothing"},
	{"internal/ops/launch", append([]string{"internal/ops", "internal/ops/preflight"}, belowTable...), "a submission knows its preflight, and nothing of what the job does after"},
	{"internal/ops/joblogs", append([]string{"internal/ops", "internal/ops/launch", "internal/ops/preflight"}, belowTable...), "logs are read of a job as it was submitted; nothing of the rooms that show or change jobs"},
	{"internal/ops/jobcontrol", append([]string{"internal/ops", "internal/ops/launch", "internal/ops/joblogs", "internal/ops/preflight"}, belowTable...), "a job is shown with what its logs and its specification say, and changed as it could be submitted; nothing of the nodes' room"},
	{"internal/ops/smoke", append([]string{"internal/ops", "internal/ops/launch", "internal/ops/joblogs"}, belowTable...), "a trial run submits and diagnoses; nothing of the jobs' or the nodes' rooms"},
	{"internal/ops/opstest", append([]string{"internal/ops"}, belowTable...), "what the rooms' tests share knows no room"},
	{"internal/ops/opstest/asuser", []string{"slurm/cluster"}, "what sudo starts in tests is one call"},
	{"internal/ops/operations", []string{"internal/ops/..."}, "the table is put together in one place, above the rooms that hand out its rows"},
	{"internal/store/...", nil, "a server for tests knows nothing of what is kept in it"},
	{"internal/lead", nil, "whoever leads does not know what is led"},
	{"internal/policy", []string{"internal/ops/...", "slurm", "slurm/hostlist", "slurm/job"}, "what may be taken is judged from the operations' own inputs, before any door"},
	{"internal/consent", []string{"internal/ops/...", "internal/policy", "internal/store", "knowledge/rules", "slurm", "slurm/job"}, "what somebody agrees to is the same at every door"},
	{"internal/web", []string{"internal/ops/...", "internal/consent", "internal/linkproof", "slurm", "slurm/hostlist", "slurm/metrics"}, "the page is one door, not the room: it knows neither Slack nor MCP"},
	{"internal/notify", []string{"internal/follow", "internal/ops", "internal/store", "slurm", "slurm/hostlist", "slurm/diagnose/..."}, "what is told outside of Slack is the follower's news, and knows no door"},
	{"internal/config", []string{"slurm", "slurm/job", "internal/ops/...", "internal/policy", "internal/notify"}, "the configuration file names what cmd wires"},
	{"bot", belowOps, "Slack is one door, not the room: operations and what lies below them, no back end, never MCP"},
	{"bot/incoming", []string{"slurm"}, "what Slack sends is read before anybody knows who may do what"},
	{"bot/typed", []string{"internal/ops/...", "slurm"}, "what somebody types is read before anything is drawn or done"},
	{"bot/answer", []string{"bot/typed", "internal/ops/...", "bot/slacktest"}, "drawing an answer knows nothing of jobs, people or sending"},
	{"bot/card", []string{"bot/answer", "bot/typed", "internal/ops/...", "slurm", "slurm/hostlist", "slurm/metrics"}, "a card is drawn from what is known of a job, wherever it stands"},
	{"bot/form", []string{"bot/answer", "bot/typed", "internal/ops/...", "knowledge/rules"}, "a form is its fields: who may submit is decided elsewhere"},
	{"bot/outbox", []string{"bot/answer", "bot/slacktest", "internal/store"}, "sending knows nothing of what is said"},
	{"bot/record", []string{"bot/outbox", "internal/store"}, "what is kept is named without knowing who keeps it"},
	{"bot/wording", []string{"bot/answer", "bot/card", "internal/ops/...", "slurm", "slurm/diagnose", "slurm/diagnose/...", "slurm/metrics"}, "a result is put into words whoever asked for it"},
	{"bot/reply", []string{"bot/answer", "bot/incoming", "bot/outbox", "bot/typed", "internal/store"}, "an answer goes to where it was asked for, whatever it says"},
	{"bot/people", []string{"bot/card", "bot/incoming", "bot/record", "internal/account", "internal/ops"}, "who somebody is and how they want to hear is known before anything is answered"},
	{"bot/jobnews", []string{
		"bot/answer", "bot/card", "bot/incoming", "bot/outbox", "bot/people", "bot/record", "bot/reply", "bot/slacktest", "bot/typed", "bot/wording",
		"internal/ops/...", "internal/store", "slurm", "slurm/diagnose/report", "slurm/watch",
	}, "what is told unasked knows nothing of what people ask for, but who they are"},
	{"bot/install", []string{"bot/incoming", "bot/outbox", "bot/people", "bot/record"}, "the app stands in a workspace before anybody uses it"},
	{"bot/receive", []string{"bot/answer", "bot/incoming", "bot/install"}, "a request is let in and handed over, whatever it asks for"},
	{"bot/profile", []string{
		"bot/answer", "bot/incoming", "bot/people", "bot/record", "bot/reply", "bot/slacktest", "internal/account", "internal/linkproof", "internal/ops",
		"internal/store",
	}, "people change what is known of them without a job, a form or an approval"},
	{"bot/help", []string{"bot/answer", "bot/people", "bot/reply", "bot/typed", "internal/ops/..."}, "what one can do is said whoever asks, and nothing is done"},
	{"bot/terminal", []string{"bot/answer"}, "a terminal draws blocks, whatever they say"},
	{"bot/...", append([]string{"bot"}, belowOps...), "Slack is one door, not the room: operations and what lies below them, no back end, never MCP"},
	{"mcp", []string{"mcp/...", "internal/ops/...", "internal/consent", "skills", "slurm", "internal/redact", "internal/store", "knowledge/...", "slurm/job"}, "MCP is one door, not the room, and never speaks Slack"},
	{"mcp/message", nil, "messages are texts here, whoever sent them"},
	{"mcp/replay", nil, "what a client missed is kept unread"},
	{"mcp/shorten", []string{"internal/ops"}, "an output is cut by its shape, whatever it tells"},
	{"mcp/clients", []string{"internal/ops"}, "clients know the server from outside alone"},
	{"mcp/...", []string{"mcp", "mcp/...", "internal/ops/...", "skills", "slurm", "internal/redact"}, "MCP is one door, not the room, and never speaks Slack"},
	{"slurm/slurmtest", []string{"slurm", "slurm/slurmtest"}, "it stands in for a site"},
	{"slurm/slurmtest/...", []string{"slurm/slurmtest"}, "it stands in for a site"},
	{"internal/follow", []string{"internal/ops/...", "internal/store", "slurm", "slurm/..."}, "it stands above the operations and below the surfaces that show what it tells"},
	{"internal/demo", []string{"..."}, "the demo is a user of everything"},
	{"internal/docs", []string{"..."}, "pages are written from every table"},
	{"packaging/...", nil, "what packs a binary knows nothing of what is in it"},
	{"evals/...", nil, "what an agent does is looked at from outside"},
	{"tools/...", nil, "a tool for developers reads the code as text"},
	{"cmd/...", []string{"..."}, "wiring only happens here"},
}

var open = []string{"internal/lang", "internal/view", "internal/redact", "internal/lazy", "internal/near", "internal/pickle", "internal/shellword", "internal/within", "internal/account", "internal/secretfile", "internal/tracing"}

func match(pattern, folder string) bool {
	if pattern == "..." {
		return true
	}
	if base, ok := strings.CutSuffix(pattern, "/..."); ok {
		return folder == base || strings.HasPrefix(folder, base+"/")
	}
	return pattern == folder
}

// roomOf is the room with the longest pattern that holds folder.
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
			for _, may := range append(open, r.may...) {
				if match(may, target) {
					continue imports
				}
			}
			t.Errorf("%s imports %s, an upper room: %s", folder, target, r.why)
		}
	}
}

var update = flag.Bool("update", false, "rewrite the page")

// The table of rooms is written down where a newcomer reads it.
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
