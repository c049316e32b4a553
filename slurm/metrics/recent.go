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

// Bounds on what is read of logs that are looked at again and again.
const (
	recentHead = 256 << 10 // where the arguments and the first iterations are
	recentAll  = 64 << 20  // the ends of all files together
	recentMost = 2 << 20   // of one file
	recentMin  = 64 << 10
)

// Recent reads the beginning and the newest part of a running job's logs, of
// all its files together, in bounded time however long they are. They are
// opened by way of in; nil: by name.
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
	r.ends = min(max(recentAll/int64(max(1, len(files))), recentMin), recentMost)
	for _, p := range files {
		if err := r.file(ctx, p); err != nil && ctx.Err() != nil {
			return r.run, ctx.Err()
		}
	}
	return r.finish(), nil
}

// endsOf reads the two ends of a log, each in whole lines.
func (r *reader) endsOf(ctx context.Context, f *os.File) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if info.Size() <= recentHead+r.ends {
		return r.lines(ctx, f)
	}
	head := io.NewSectionReader(f, 0, recentHead)
	if err := r.lines(ctx, head); err != nil {
		return err
	}
	tail := make([]byte, r.ends)
	n, err := f.ReadAt(tail, info.Size()-r.ends)
	if err != nil && !errors.Is(err, io.EOF) { // a log that was cut off meanwhile is read as far as it goes
		return err
	}
	tail = tail[:n]
	tail = tail[bytes.IndexByte(tail, '\n')+1:] // the first line may be cut
	return r.lines(ctx, bytes.NewReader(tail))
}
