package scan

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/logfile"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/logline"
)

// All scans all files of a source, on all cores.
func All(ctx context.Context, src logfile.Source) ([]*Facts, error) {
	all := make([]*Facts, len(src.Logs))
	want, keep := shares(len(src.Logs))
	var next atomic.Int64
	var wg sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), len(src.Logs)) {
		wg.Go(func() {
			var buf []byte
			for {
				i := int(next.Add(1)) - 1
				if i >= len(src.Logs) || ctx.Err() != nil {
					return
				}
				all[i] = scanFile(ctx, src.Logs[i], newScanner(i, keep), want, &buf)
				if len(buf) > logfile.MaxExtended/2 {
					buf = nil
				}
			}
		})
	}
	wg.Wait()
	shareFrames(ctx, src, all, want, keep)
	if err := ctx.Err(); err != nil {
		return nil, lang.Text{EN: "diagnosis stopped: %s", ZH: "诊断已停止：%s"}.Err(err)
	}
	return all, nil
}

// shares returns how many bytes of the end of each of n files to read, and how many of its iteration
// lines to keep.
func shares(n int) (want, keep int) {
	n = max(1, n)
	return min(max(logfile.AllWindows/n, logfile.MinWindow), logfile.MaxWindow), min(max(allProgress/n, minProgress), maxProgress)
}

// scanFile scans one file. It keeps an error in the file's Facts.
func scanFile(ctx context.Context, f *logfile.File, s *scanner, want int, buf *[]byte) *Facts {
	if d := f.Digested; d != nil {
		if d.Error != "" {
			s.Reads = errors.New(d.Error)
		}
		if !s.frame.Framed() {
			s.frame = frameOfDigest(d)
		}
		s.replay(d)
		s.finish()
		return s.Facts
	}
	windows, err := f.Windows(ctx, buf, want, healthy)
	if err == nil {
		err = logfile.LooksBinary(windows)
	}
	if s.Reads = err; err != nil {
		windows = nil
	}
	if !s.frame.Framed() {
		s.frame = frameOf(windows)
	}
	for _, w := range windows {
		s.gap()
		s.scan(w)
	}
	s.finish()
	return s.Facts
}

// gap prepares the scanner for lines that do not follow the last one: whatever was open stays
// incomplete.
func (s *scanner) gap() {
	s.streams = map[logline.Tag]*stream{}
	s.waiting = s.waiting[:0]
	s.now = time.Time{}
	s.counts = map[quota]int{}
}

// finish closes what is still open at the end of a file.
func (s *scanner) finish() {
	s.LastBy = map[logline.Tag]Mark{}
	tags := slices.SortedFunc(maps.Keys(s.streams), func(a, b logline.Tag) int {
		return cmp.Or(cmp.Compare(s.streams[a].last.Off, s.streams[b].last.Off), cmp.Compare(a.Rank, b.Rank), cmp.Compare(a.Label, b.Label),
			cmp.Compare(a.Local, b.Local), cmp.Compare(a.Host, b.Host))
	})
	for _, t := range tags { // in a fixed order, because the first of several events that are near each other may win
		st := s.streams[t]
		if st.last.Text != "" && len(s.LastBy) < 1<<14 {
			s.LastBy[t] = st.last
		}
		if st.pending != "" {
			s.endPending(st, t)
		}
		s.usageAtEnd(st.usage)
		if st.open != nil && strings.HasSuffix(st.margin, "^C") { // a terminal's echo of Ctrl-C
			s.exited(t, []string{"", "", "-2"}, st.openedAt.Text, st.openedAt.Text, st.openedAt.Off)
		}
		if st.open != nil && len(st.open.Frames) > 0 {
			s.torn = true
			s.raiseTorn(st, t)
		}
	}
	s.onlyFarewell()
	s.settleRestarts()
	s.neverMet()
	s.streams, s.counts, s.waiting, s.recent, s.buf, s.began, s.window, s.before = nil, nil, nil, nil, nil, nil, nil, nil
}
