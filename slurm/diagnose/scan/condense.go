package scan

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"io"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/logfile"
)

// WriteDigest writes a digest of the source's logs. The source may be a part of a larger one with ofAll
// files, whose number decides how much of each file is read. So parts read what the whole source would.
func WriteDigest(ctx context.Context, src logfile.Source, ofAll int, w io.Writer) error {
	if ofAll <= len(src.Logs) { // not a part
		src = src.TakenApart()
		ofAll = len(src.Logs)
	}
	z := gzip.NewWriter(w)
	out := json.NewEncoder(z)
	want, keep := shares(max(ofAll, len(src.Logs)))
	recorded, unread := src.Recordings()
	if extra := (logfile.Digest{
		Unreadable: append(append([]logfile.Unreadable{}, src.Unreadable...), unread...),
		LeftOut:    src.LeftOut,
		OtherJobs:  src.OtherJobs,
		OtherLogs:  src.OtherLogs,
		Recorded:   recorded,
	}); len(extra.Unreadable)+len(extra.LeftOut)+len(extra.OtherJobs)+len(extra.OtherLogs)+len(recorded) > 0 {
		if err := out.Encode(extra); err != nil {
			return lang.Text{EN: "digest of the notes: %s", ZH: "摘要的说明：%s"}.Err(err)
		}
	}
	var buf []byte
	for _, f := range src.Logs {
		if err := out.Encode(Condense(ctx, f, &buf, want, keep)); err != nil {
			return lang.Text{EN: "digest of %s: %s", ZH: "%s 的摘要：%s"}.Err(f.Name, err)
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	return z.Close()
}

// Condense condenses one log. It leaves out all but the last iteration lines.
func Condense(ctx context.Context, f *logfile.File, buf *[]byte, want, keep int) logfile.Digest {
	d := logfile.Digest{Name: f.Name, Size: f.Size, Mtime: f.Modified, Holder: f.Holder("")}
	windows, err := f.Windows(ctx, buf, want, healthy)
	if err == nil {
		err = logfile.LooksBinary(windows)
	}
	if err != nil {
		d.Error = logfile.ReasonOf(err)
		return d
	}
	for i, w := range windows {
		no := f.LineAt(w.Off)
		var progress []int // indexes of this window's iteration lines in d.Lines
		first := len(d.Lines)
		for at := 0; at < len(w.Data); no++ {
			end := bytes.IndexByte(w.Data[at:], '\n')
			next := at + end + 1
			if end < 0 {
				end, next = len(w.Data)-at, len(w.Data)
			}
			line := w.Data[at : at+end]
			if IsProgress(line) {
				progress = append(progress, len(d.Lines))
			}
			d.Lines = append(
				d.Lines,
				logfile.DigestLine{Off: w.Off + int64(at), No: f.Number(no), Text: append([]byte(nil), bounded(line)...), Gap: i > 0 && len(d.Lines) == first},
			)
			at = next
		}
		thin(&d, progress, keep)
	}
	return d
}

// thin drops a window's iteration lines except the last keep ones.
func thin(d *logfile.Digest, progress []int, keep int) {
	drop := map[int]bool{}
	for _, k := range progress[:max(0, len(progress)-keep)] {
		drop[k] = true
	}
	if len(drop) == 0 {
		return
	}
	kept := d.Lines[:0]
	gap := false
	for k, l := range d.Lines {
		if drop[k] {
			gap = gap || l.Gap
			continue
		}
		l.Gap, gap = l.Gap || gap, false
		kept = append(kept, l)
	}
	d.Lines = kept
}

// replay scans a digest as if it were the log.
func (s *scanner) replay(d *logfile.Digest) {
	for _, l := range d.Lines {
		if l.Gap {
			s.flush()
			s.gap()
		}
		s.Lines++
		if s.frame.Framed() {
			s.framedLine(l.Text, l.Off)
			continue
		}
		if IsProgress(l.Text) {
			s.pending = append(s.pending, Mark{Off: l.Off, Text: string(l.Text)})
			s.lastOff = l.Off
		} else {
			s.physical(l.Text, l.Off)
		}
	}
	s.flush()
}

// flush keeps the last of a window's iteration lines.
func (s *scanner) flush() {
	for _, m := range s.pending[max(0, len(s.pending)-s.keep):] {
		s.note(&s.Progress, m, s.keep)
	}
	s.pending = nil
}
