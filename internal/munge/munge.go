// Package munge makes and opens MUNGE credentials: short texts that only one
// user of the cluster can have made, which is how Slurm itself knows who asks.
// See munge(1), unmunge(1) and munge(7).
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

// longestAnswer bounds one question to munged.
const longestAnswer = 10 * time.Second

// A Service is a munged that credentials are made and opened by.
type Service struct {
	// Socket is munged's, where it is not the system's usual one.
	Socket string
	// dirs is where munge and unmunge are looked for, the system's folders where empty.
	dirs []string
}

// errAbsent says that this machine has no munge.
var errAbsent = lang.Text{EN: "munge is not installed on this machine", ZH: "本机没有安装 munge"}.Err()

// Seal returns a credential over text, made by the user of this process.
func (s Service) Seal(ctx context.Context, text string) (string, error) {
	out, err := s.run(ctx, "munge", text)
	return strings.TrimSpace(out), err
}

// Open returns who made the credential and over which text. It opens a
// credential once: munged refuses one that it has seen, is too old, or was made
// with another cluster's key.
func (s Service) Open(ctx context.Context, credential string) (uid int, text string, err error) {
	out, err := s.run(ctx, "unmunge", credential)
	if err != nil {
		return 0, "", err
	}
	return opened(out)
}

// opened reads what unmunge prints: lines about the credential, an empty one, the text.
func opened(out string) (uid int, text string, err error) {
	head, text, ok := strings.Cut(out, "\n\n")
	if !ok {
		return 0, "", lang.Text{EN: "unmunge: its answer has no text", ZH: "unmunge：其输出中没有正文"}.Err()
	}
	for line := range strings.Lines(head) {
		// "UID:             alice (1001)"; the name is munged's guess, the number counts.
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

func (s Service) run(ctx context.Context, name, input string, args ...string) (string, error) {
	ctx, stop := context.WithTimeout(ctx, longestAnswer)
	defer stop()
	file := s.path(name)
	if file == "" {
		return "", errAbsent
	}
	if s.Socket != "" {
		args = append(args, "--socket="+s.Socket)
	}
	c := exec.CommandContext(ctx, file, args...)
	c.Env = []string{"LC_ALL=C"}
	c.Stdin = strings.NewReader(input)
	var out, words bytes.Buffer
	c.Stdout, c.Stderr = &out, &words
	if err := c.Run(); err != nil {
		return "", refused(name, out.String(), words.String(), err)
	}
	return out.String(), nil
}

// refused is why a program failed, in its own words where it has any.
func refused(name, out, words string, err error) error {
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

// path is where the system keeps a program: never the caller's PATH, for the
// answer decides who somebody is.
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
