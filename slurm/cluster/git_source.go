package cluster

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/megatron-ops/megatron-ops/internal/redact"
)

// A GitSource is the state of a job's code in git at submission.
type GitSource struct {
	Commit string `json:"commit"`
	// Changed reports that the worktree differed from the commit. Diff is the
	// difference of the tracked files, with secrets masked, at most 32 KiB; Cut reports
	// that the difference was longer. New lists untracked files.
	Changed bool     `json:"changed"`
	Diff    string   `json:"diff,omitempty"`
	Cut     bool     `json:"diff_cut,omitempty"`
	New     []string `json:"untracked,omitempty"`
	// Brought is the person whose sync copied the tree to the cluster; empty where no
	// sync did.
	Brought string `json:"brought_by,omitempty"`
}

const (
	mostDiff = 32 << 10
	mostNew  = 100
)

// readSource is a script that prints the commit, the untracked files and the difference
// of the folder in its first argument. In a tree that a sync brought it prints the
// record of the sync in their place.
const readSource = `cd -- "$1" || exit 1
[ -L .megatron-ops ] || [ ! -f .megatron-ops/brought ] || { printf 'brought\n'; cat .megatron-ops/source 2>/dev/null; exit; }
g() { git -c core.fsmonitor=false -c core.hooksPath=/dev/null "$@"; }
g rev-parse --verify --quiet HEAD || exit 1
g ls-files --others --exclude-standard -z | tr '\n\0' '?\n' | head -n 101; echo
g diff --no-ext-diff --no-textconv --no-color HEAD -- . | head -c 40000`

// sourceLimit is how long a submission waits for readSource.
const sourceLimit = 10 * time.Second

// Source returns the state of the code in a folder of the machine where Slurm's
// commands run. It returns false where the folder is no checkout or cannot be
// inspected.
func (c *CLI) Source(ctx context.Context, dir string) (GitSource, bool) {
	if _, asOther := c.runner.(*sudoRunner); asOther || dir == "" {
		return GitSource{}, false
	}
	return sourceBy(ctx, c.runner, queryEnviron(c.Environ()), dir)
}

// SourceHere returns the state of the code in a folder of this machine.
func SourceHere(ctx context.Context, dir string) (GitSource, bool) {
	return sourceBy(ctx, localRunner{}, gitEnviron(), dir)
}

func sourceBy(ctx context.Context, r runner, env []string, dir string) (s GitSource, ok bool) {
	done, err := r.run(ctx, command{argv: []string{"sh", "-c", readSource, "sh", dir}, env: env, limit: sourceLimit})
	if err != nil || done.code != 0 {
		return s, false
	}
	head, rest, _ := strings.Cut(done.stdout, "\n")
	if head == "brought" {
		return s, json.Unmarshal([]byte(rest), &s) == nil
	}
	s.Commit = head
	added, diff, _ := strings.Cut("\n"+rest, "\n\n")
	s.New = strings.FieldsFunc(added, func(r rune) bool { return r == '\n' })
	s.New = slices.DeleteFunc(s.New, func(p string) bool { return strings.HasPrefix(p, syncFolder+"/") })
	s.Cut = len(diff) > mostDiff || len(s.New) > mostNew
	s.New = s.New[:min(len(s.New), mostNew)]
	s.Changed = diff != "" || len(s.New) > 0
	s.Diff = redact.Text(strings.ToValidUTF8(diff[:min(len(diff), mostDiff)], "?"))
	return s, true
}
