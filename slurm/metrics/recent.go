package metrics

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/within"
)

// Bounds on each reading of logs that are read again and again while the job runs.
const (
	recentHead = 256 << 10 // this part of a file holds the arguments and the first iterations
	recentAll  = 64 << 20  // of the ends of all files together
	recentMost = 2 << 20   // of the end of one file
	recentMin  = 64 << 10
)

// Recent reads the beginning and the end of each of a running job's logs. Its cost is bounded, however
// long the logs are. Where in is not nil, Recent opens files only below its folders.
func Recent(ctx context.Context, in *within.Folders, paths []string, gpu string) (Run, error) {
	r := newReader("", gpu)
	r.in = in
	var files []string
	for _, p := range paths {
		err := walk(in, p, func(file string) error {
			if !isEvents(filepath.Base(file)) {
				files = append(files, file)
			}
			return nil
		})
		if err != nil {
			return r.run, lang.Text{EN: "metrics %q: %s", ZH: "指标 %q：%s"}.Err(p, err)
		}
	}
	r.tailBytes = min(max(recentAll/int64(max(1, len(files))), recentMin), recentMost)
	for _, p := range files {
		if err := r.file(ctx, p); err != nil && ctx.Err() != nil {
			return r.run, ctx.Err()
		}
	}
	return r.finish(), nil
}

// headAndTail reads the beginning and the end of a log, both in whole lines.
func (r *reader) headAndTail(ctx context.Context, f *os.File) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if info.Size() <= recentHead+r.tailBytes {
		return r.lines(ctx, f)
	}
	head := io.NewSectionReader(f, 0, recentHead)
	if err := r.lines(ctx, head); err != nil {
		return err
	}
	tail := make([]byte, r.tailBytes)
	n, err := f.ReadAt(tail, info.Size()-r.tailBytes)
	if err != nil && !errors.Is(err, io.EOF) { // a log that became shorter meanwhile is read as far as it goes
		return err
	}
	tail = tail[:n]
	tail = tail[bytes.IndexAny(tail, "\r\n")+1:] // the first line may be incomplete
	return r.lines(ctx, bytes.NewReader(tail))
}
