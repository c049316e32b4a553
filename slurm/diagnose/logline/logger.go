package logline

import "github.com/megatron-ops/megatron-ops/internal/lazy"

// logger matches what a logger writes before a message of level INFO: a time, a name, a place in the source, in any order
// around the level: "2026-06-11 10:00:00,123 - megatron.training - INFO - ", "INFO:megatron.training:", "[rank 0] INFO: "; or,
// without the word, times, numbers and glog's letter: "I 1127 20:38:30 [rank 0/4] ".
var logger = lazy.New(`^(?:[\w\s.:,;/|()\[\]+-]{0,80}?\bINFO\b[\s\]:|)-]*(?:\[?[\w./-]+(?::[\w<>]+)*(?::\d+)?(?:\]:?|:| [-|]) *)*` +
	`|(?:(?:I ?\d{4} [\d:.]+(?: +\d+ [\w./-]+:\d+\])?|[\[(](?:[A-Za-z]+[ _:=]?)?\d[\d ,./:TZ+-]*[\])]:?|\d[\d,./:TZ+-]*) +)+)`)

// CutLogger removes from a line what a logger wrote before a message of level INFO, so that the message begins the line as
// it does where a program prints it.
func CutLogger(line string) string { return line[len(logger.FindString(line)):] }
