// Package munge makes and opens MUNGE credentials: short texts that prove which user of
// the cluster made them. Slurm itself identifies its callers this way. See munge(1),
// unmunge(1) and munge(7).
package munge

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/megatron-ops/megatron-ops/internal/lang"
)

// longestAnswer bounds the time of one call to munged.
const longestAnswer = 10 * time.Second

// A Service is the munged that makes and opens credentials.
type Service struct {
	// Socket is the path of munged's socket, where it is not the system's default.
	Socket string
	// dirs are the folders of munge and unmunge; empty: the system's folders.
	dirs []string
}

// errAbsent is the error of a machine without munge.
var errAbsent = lang.Text{EN: "munge is not installed on this machine", ZH: "本机没有安装 munge"}.Err()

// Seal returns a credential for text, made by the user of this process.
func (s Service) Seal(ctx context.Context, text string) (string, error) {
	out, err := s.run(ctx, "munge", text)
	return strings.TrimSpace(out), err
}

// Open returns the user who made the credential, and its text. A credential can be
// opened once: munged refuses one that it has opened before, that is too old, or that
// was made with another cluster's key.
func (s Service) Open(ctx context.Context, credential string) (uid int, text string, err error) {
	out, err := s.run(ctx, "unmunge", credential)
	if err != nil {
		return 0, "", err
	}
	return parseUnmunge(out)
}

// parseUnmunge parses the output of unmunge: lines about the credential, an empty line,
// the text.
func parseUnmunge(out string) (uid int, text string, err error) {
	head, text, ok := strings.Cut(out, "\n\n")
	if !ok {
		return 0, "", lang.Text{EN: "unmunge: its answer has no text", ZH: "unmunge：其输出中没有正文"}.Err()
	}
	for line := range strings.Lines(head) {
		// The line is like "UID:             alice (1001)". The number counts; munged only looked up the name.
		if m := madeBy.FindStringSubmatch(line); m != nil {
			uid, err = strconv.Atoi(m[1])
			return uid, text, err
		}
	}
	return 0, "", lang.Text{EN: "unmunge: its answer has no UID", ZH: "unmunge：其输出中没有 UID"}.Err()
}

var madeBy = regexp.MustCompile(`^UID:.*\((\d+)\)\s*$`)

// Here reports whether this machine has munge.
func Here() bool { return Service{}.path("unmunge") != "" }

func (s Service) run(ctx context.Context, name, input string) (string, error) {
	ctx, stop := context.WithTimeout(ctx, longestAnswer)
	defer stop()
	file := s.path(name)
	if file == "" {
		return "", errAbsent
	}
	var args []string
	if s.Socket != "" {
		args = append(args, "--socket="+s.Socket)
	}
	c := exec.CommandContext(ctx, file, args...)
	c.Env = []string{"LC_ALL=C"}
	c.Stdin = strings.NewReader(input)
	var out, words bytes.Buffer
	c.Stdout, c.Stderr = &out, &words
	if err := c.Run(); err != nil {
		return "", callError(name, out.String(), words.String(), err)
	}
	return out.String(), nil
}

// callError returns the error of a failed program, in the program's own words where it
// printed any.
func callError(name, out, words string, err error) error {
	if said := strings.TrimSpace(words); said != "" {
		return lang.Same(said).Err()
	}
	for line := range strings.Lines(out) {
		if said, ok := strings.CutPrefix(line, "STATUS:"); ok { // "Replayed credential (17)"
			return lang.Text{EN: "%s: %s", ZH: "%s：%s"}.Err(name, strings.TrimSpace(said))
		}
	}
	return lang.Text{EN: "%s: %s", ZH: "%s：%s"}.Err(name, err)
}

// path returns where the system keeps a program, or "". It never uses the caller's
// PATH, because the program's answer decides who somebody is.
func (s Service) path(name string) string {
	dirs := s.dirs
	if len(dirs) == 0 {
		dirs = []string{"/usr/bin", "/bin", "/usr/local/bin"}
	}
	for _, dir := range dirs {
		file := filepath.Join(dir, name)
		if _, err := os.Stat(file); err == nil {
			return file
		}
	}
	return ""
}
