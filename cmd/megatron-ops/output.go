package main

import (
	"cmp"
	"errors"
	"io"
	"io/fs"
	"os"
	"sync"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
)

// output is the standard output. It remembers the first write that failed, so that no
// command needs to check its own writes. A standard output that is closed when the program starts
// fails no write: the Go runtime has opened /dev/null in its place.
type output struct {
	to   io.Writer
	lost func() // called where a write fails

	mu  sync.Mutex
	err error
}

// Write writes to the wrapped writer.
func (o *output) Write(p []byte) (int, error) {
	n, err := o.to.Write(p)
	if err != nil {
		o.mu.Lock()
		o.err = cmp.Or(o.err, err)
		o.mu.Unlock()
		o.lost()
	}
	return n, err
}

// failure returns what made the output incomplete, or nil. changed reports that the command
// has changed something, which the lost output does not undo; jobs are those that its answer
// named.
func (o *output) failure(changed bool, jobs []string) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.err == nil {
		return nil
	}
	why := o.err
	if at, ok := errors.AsType[*fs.PathError](why); ok {
		why = at.Err // the path is /dev/stdout wherever the output goes
	}
	e := &ops.Error{Code: ops.Failed, Field: "output", Message: lang.Text{EN: "could not be written: %s", ZH: "无法写出：%s"}.With(lang.Said(why))}
	if changed {
		var which lang.Text
		if len(jobs) > 0 {
			which = lang.Text{EN: " (job %s)", ZH: "（作业 %s）"}.With(ops.FirstFew(jobs, 10))
		}
		e.Fix = lang.Text{
			EN: "what you asked for was done all the same%s: see `megatron-ops list` or `megatron-ops history` before you repeat it",
			ZH: "请求的操作仍已执行%s：重试之前，请先用 `megatron-ops list` 或 `megatron-ops history` 查看",
		}.With(which)
	}
	return e
}

// file returns the file that a stream reads or writes, or nil if it is no file.
func file(stream any) *os.File {
	switch s := stream.(type) {
	case *interruptibleReader:
		return file(s.from)
	case *output:
		return file(s.to)
	case *os.File:
		return s
	}
	return nil
}
