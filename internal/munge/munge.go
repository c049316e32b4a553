// Package munge makes and opens MUNGE credentials: short texts that only one
// user of the cluster can have made, which is how Slurm itself knows who asks.
// See munge(1), unmunge(1) and munge(7).
package munge

import (
	"bytes"
	"context"
	"os"
	"os/exec"
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
func Here() bool { return path("unmunge") != "" }

func (s Service) run(ctx context.Context, name, input string, args ...string) (string, error) {
	ctx, stop := context.WithTimeout(ctx, longestAnswer)
	defer stop()
	file := path(name)
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
		if said := strings.TrimSpace(words.String()); said != "" {
			return "", lang.Same(said).Err()
		}
		for line := range strings.Lines(out.String()) {
			if said, ok := strings.CutPrefix(line, "STATUS:"); ok { // "Replayed credential (17)"
				return "", lang.Text{EN: "%s: %s", ZH: "%s：%s"}.Err(name, strings.TrimSpace(said))
			}
		}
		return "", lang.Text{EN: "%s: %s", ZH: "%s：%s"}.Err(name, err)
	}
	return out.String(), nil
}

// path is where the system keeps a program: never the caller's PATH, for the
// answer decides who somebody is.
func path(name string) string {
	for _, dir := range []string{"/usr/bin/", "/bin/", "/usr/local/bin/"} {
		if _, err := os.Stat(dir + name); err == nil {
			return dir + name
		}
	}
	return ""
}
