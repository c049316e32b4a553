package logline

import (
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/lazy"
)

// logger matches what a logger writes before a message of level INFO: a time, a name and the level: "2026-06-11 10:00:00,123 -
// megatron.training - INFO - ", "[rank 0] INFO: "; or, without the word, times, numbers and glog's letter: "I 1127 20:38:30 [rank 0/4] ".
var logger = lazy.New(`^(?:([\w\s.:,;/|(){}\[\]+-]{0,80}?\bINFO\b[\s\]:|)-]*)` +
	`|(?:(?:I ?\d{4} [\d:.]+(?: +\d+ [\w./-]+:\d+\])?|[\[(](?:[A-Za-z]+[ _:=]?)?\d[\d ,./:TZ+-]*[\])]:?|\d[\d,.]*(?:[:-]|/\d+/)[\d,./:TZ+-]*) +(?:- )?)+)`)

// named matches a name or a place in the source behind the level: "root - ", "train.py:34: ", "root:".
var named = lazy.New(`^(?:\[?[\w./-]+(?::[\w<>]+)*(?:\]:?| [-|]) *|[\w./-]*[._][\w./-]*(?::\d+)?: +|[\w./-]+:)`)

// CutLogger removes from a line what a logger wrote before a message of level INFO, so that the message begins the line as
// it does where a program prints it. A word with a colon and a blank is the message's own: "Failed: run 3".
func CutLogger(line string) string {
	head := logger.FindStringSubmatch(line)
	if head == nil {
		return line
	}
	rest := line[len(head[0]):]
	for head[1] != "" {
		name := named.FindString(rest)
		if name == "" || strings.HasSuffix(name, ":") && strings.HasPrefix(rest[len(name):], " ") {
			break
		}
		rest = rest[len(name):]
	}
	return rest
}
