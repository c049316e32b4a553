package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/internal/ops/operations"
)

// A docsCommand is one command line of a page.
type docsCommand struct {
	at, line string
	answer   string // what the page shows of its answer; empty: nothing
}

var (
	inlineCommand = regexp.MustCompile("`megatron-ops ([a-z][^`]*)`")
	trailingNote  = regexp.MustCompile(`\s{2,}#.*$`)
	flagWord      = regexp.MustCompile(`(?:^|\s)--([a-z-]+)`)
)

// elsewhere matches commands that run until they are stopped, or need a second machine;
// other tests cover them.
var elsewhere = regexp.MustCompile(`^megatron-ops (serve|chat|mcp$|watch|sync |submit .*--sync)`)

// docsCommands reads a page. Indented blocks are run: lines that begin with "$ ", with
// the answers below them, or else lines that begin with the program's name. Commands
// between backquotes in a sentence are only mentioned.
func docsCommands(page, text string) (run, mentioned []docsCommand) {
	session := false
	for i, line := range strings.Split(text, "\n") {
		at := fmt.Sprintf("%s:%d", page, i+1)
		code, block := strings.CutPrefix(line, "    ")
		command := trailingNote.ReplaceAllString(strings.TrimPrefix(strings.TrimSpace(code), "$ "), "")
		switch {
		case block && strings.HasPrefix(code, "$ "):
			run, session = append(run, docsCommand{at: at, line: command}), true
		case session && (block || line == ""):
			run[len(run)-1].answer += code + "\n"
		case block && strings.HasPrefix(command, "megatron-ops "):
			run = append(run, docsCommand{at: at, line: command})
		default:
			session = false
			for _, m := range inlineCommand.FindAllStringSubmatch(line, -1) {
				mentioned = append(mentioned, docsCommand{at: at, line: m[1]})
			}
		}
	}
	return run, mentioned
}

func docsPages(t *testing.T) map[string]string {
	t.Helper()
	root := filepath.Join("..", "..")
	var files []string
	for _, pattern := range []string{"README*.md", "docs/*.md", "docs/*/*.md"} {
		found, err := filepath.Glob(filepath.Join(root, pattern))
		require.NoError(t, err)
		files = append(files, found...)
	}
	pages := map[string]string{}
	for _, f := range files {
		b, err := os.ReadFile(f)
		require.NoError(t, err)
		name, err := filepath.Rel(root, f)
		require.NoError(t, err)
		pages[name] = string(b)
	}
	require.Greater(t, len(pages), 20)
	return pages
}

// Every command of README and docs runs, page by page in a folder of its own, and
// prints what the page shows: "…" stands for anything within a line, or alone for any
// lines.
func TestTheCommandsOfTheDocsRun(t *testing.T) {
	if testing.Short() {
		t.Skip("the pages' jobs take some seconds")
	}
	for page, text := range docsPages(t) {
		commands, _ := docsCommands(page, text)
		// The operations' examples name jobs that do not exist; another test reads
		// their words.
		if len(commands) == 0 || page == "docs/operations.md" {
			continue
		}
		t.Run(page, func(t *testing.T) {
			t.Parallel()
			var script strings.Builder
			for i, c := range commands {
				if elsewhere.MatchString(c.line) {
					continue
				}
				fmt.Fprintf(&script, "echo '=== %d'\n%s </dev/null\necho \"=== end $?\"\n", i, c.line)
			}
			run := exec.Command("bash", "-c", script.String())
			run.Dir = docsWorld(t, text)
			run.Env = append(os.Environ(), "HOME="+run.Dir, "USER=tester", "LANG=C.UTF-8", localFirst, "MEGATRON_OPS_STATE_DIR="+filepath.Join(run.Dir, ".state"))
			out, err := run.CombinedOutput()
			require.NoError(t, err, "%s", out)
			for i, c := range commands {
				if elsewhere.MatchString(c.line) {
					continue
				}
				_, said, ok := strings.Cut(string(out), fmt.Sprintf("=== %d\n", i))
				require.True(t, ok, c.at)
				said, rest, _ := strings.Cut(said, "=== end ")
				code, _, _ := strings.Cut(rest, "\n")
				require.Contains(t, []string{"0", "3"}, code, "%s: %s\n%s", c.at, c.line, said)
				// The README's session is written by a test of internal/docs, at a page's width.
				if want := strings.TrimSpace(c.answer); want != "" && page != "README.md" {
					require.Regexp(t, shownAs(want), strings.TrimSpace(said), "%s: %s\n%s", c.at, c.line, said)
				}
			}
		})
	}
}

const localFirst = "MEGATRON_OPS_CLUSTER=" + localCluster

// shownAs is the regular expression for an answer as a page shows it.
func shownAs(answer string) string {
	var lines []string
	for line := range strings.SplitSeq(answer, "\n") {
		line = strings.TrimRight(line, " ")
		if strings.TrimSpace(line) == "…" {
			lines = append(lines, `(?:.*\n?)*?`)
			continue
		}
		parts := strings.Split(line, "…")
		for i, p := range parts {
			parts[i] = regexp.QuoteMeta(p)
		}
		lines = append(lines, strings.Join(parts, `.*`)+` *\n?`)
	}
	return `^` + strings.Join(lines, "") + `$`
}

// docsWorld creates a folder with the files that the pages' commands name: the README's
// specification and logs, a job, and the page's own pipeline.
func docsWorld(t *testing.T, text string) string {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, os.CopyFS(dir, os.DirFS(filepath.Join("..", "..", "internal", "docs", "testdata"))))
	job := "name: %s\nnodes: 1\ngpus_per_node: 0\ntime: \"00:10:00\"\nworktree: " + dir + "\nscript: run.py\nlauncher: python\n"
	for _, name := range []string{"preprocess", "train", "evaluate"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name+".yaml"), fmt.Appendf(nil, job, name), 0o600))
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, "run.py"), nil, 0o600))
	b, err := os.ReadFile(filepath.Join(dir, "gpt-8b.yaml"))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "job.yaml"), b, 0o600))
	if _, pipeline, ok := strings.Cut(text, "    name: nightly\n"); ok {
		pipeline, _, _ = strings.Cut(pipeline, "\n\n")
		require.NoError(t, os.WriteFile(filepath.Join(dir, "nightly.yaml"), []byte("name: nightly\n"+strings.ReplaceAll("\n"+pipeline, "\n    ", "\n")[1:]+"\n"), 0o600))
	}
	return dir
}

// Commands and flags that a sentence names exist.
func TestTheDocsNameCommandsThatExist(t *testing.T) {
	others := map[string]bool{}
	for _, s := range commands() {
		first, _, _ := strings.Cut(s.Name, " ")
		others[first] = true
	}
	n := 0
	for page, text := range docsPages(t) {
		run, mentioned := docsCommands(page, text)
		for _, c := range run {
			if elsewhere.MatchString(c.line) {
				c.line = strings.TrimPrefix(c.line, "megatron-ops ")
				mentioned = append(mentioned, c)
			}
		}
		for _, c := range mentioned {
			n++
			words := strings.Fields(c.line)
			op, ok := operations.Lookup(words[0])
			if !ok {
				require.True(t, others[words[0]] || words[0] == "as-user", "%s: megatron-ops %s is no command", c.at, words[0])
				continue
			}
			known := map[string]bool{"output": true, "lang": true, "cluster": true, "verbose": true, "yes": true, "help": true}
			for _, p := range op.Params() {
				known[p.Name] = true
			}
			for _, m := range flagWord.FindAllStringSubmatch(c.line, -1) {
				require.True(t, known[m[1]], "%s: %s has no flag --%s", c.at, op.Name, m[1])
			}
		}
	}
	require.Greater(t, n, 30)
}
