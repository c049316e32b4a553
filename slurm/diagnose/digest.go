package diagnose

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"io"
	"path"
	"sort"
	"time"

	"github.com/megatron-ops/megatron-ops/internal/lang"
)

// A digest is what a diagnosis needs of one log: the lines that a local one
// would read and look at, each with its place. Logs that are too many for one
// machine are digested where they lie, shard by shard, and diagnosed together
// from their digests; the answer is the same.
type digest struct {
	Name  string       `json:"name"`
	Size  int64        `json:"size"`
	Mtime time.Time    `json:"mtime"`
	Lines []digestLine `json:"lines"`
	Error string       `json:"error,omitempty"`

	// What of a part could not be read and its flight recorder dumps have an entry of their own, without
	// a name.
	Unreadable []Unreadable `json:"unreadable,omitempty"`
	Recorded   []*recording `json:"recorded,omitempty"`
}

type digestLine struct {
	Off  int64  `json:"o"`
	No   int    `json:"n"`
	Text []byte `json:"t"`
	Gap  bool   `json:"g,omitempty"` // lines before it were not read
}

// WriteDigest writes what a diagnosis needs of the source's logs. ofAll is how
// many files the whole has of which this may be a part: it decides how much of
// each is read, so that parts read what the whole would.
func WriteDigest(ctx context.Context, src Source, ofAll int, w io.Writer) error {
	z := gzip.NewWriter(w)
	out := json.NewEncoder(z)
	want, keep := shares(max(ofAll, len(src.files)))
	recorded, unread := src.recordings()
	if extra := (digest{
		Unreadable: append(append([]Unreadable{}, src.unreadable...), unread...),
		Recorded:   recorded,
	}); len(extra.Unreadable)+len(recorded) > 0 {
		if err := out.Encode(extra); err != nil {
			return lang.Text{EN: "digest of the notes: %s", ZH: "摘要的说明：%s"}.Err(err)
		}
	}
	var buf []byte
	for _, f := range src.files {
		if err := out.Encode(f.digest(ctx, &buf, want, keep)); err != nil {
			return lang.Text{EN: "digest of %s: %s", ZH: "%s 的摘要：%s"}.Err(f.name, err)
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	return z.Close()
}

// digest condenses one log: iteration lines but the last few are left out.
func (f *logFile) digest(ctx context.Context, buf *[]byte, want, keep int) digest {
	d := digest{Name: f.name, Size: f.size, Mtime: f.mtime}
	windows, err := f.windows(ctx, buf, want, healthy)
	if err == nil {
		err = looksBinary(windows)
	}
	if err != nil {
		d.Error = reasonOf(err)
		return d
	}
	for i, w := range windows {
		no := f.lineAt(w.off)
		var progress []int // indexes of iteration lines of this window
		first := len(d.Lines)
		for at := 0; at < len(w.data); no++ {
			end := bytes.IndexByte(w.data[at:], '\n')
			next := at + end + 1
			if end < 0 {
				end, next = len(w.data)-at, len(w.data)
			}
			line := w.data[at : at+end]
			if len(line) > 0 {
				if isProgress(line) {
					progress = append(progress, len(d.Lines))
				}
				d.Lines = append(
					d.Lines,
					digestLine{Off: w.off + int64(at), No: no, Text: append([]byte(nil), bounded(line)...), Gap: i > 0 && len(d.Lines) == first},
				)
			}
			at = next
		}
		d.thin(progress, keep)
	}
	return d
}

// thin drops all but the last of a window's iteration lines, and repeats of
// what the scanner bounds anyway.
func (d *digest) thin(progress []int, keep int) {
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

// ReadDigests returns the source that digests were made of.
func ReadDigests(parts ...io.Reader) (Source, error) {
	var s Source
	for _, p := range parts {
		z, err := gzip.NewReader(p)
		if err != nil {
			return s, lang.Text{EN: "digest: %s", ZH: "摘要：%s"}.Err(err)
		}
		in := json.NewDecoder(bufio.NewReader(io.LimitReader(z, maxUnpacked)))
		for in.More() {
			d := new(digest)
			if err := in.Decode(d); err != nil {
				return s, lang.Text{EN: "digest: %s", ZH: "摘要：%s"}.Err(err)
			}
			if d.Name == "" {
				s.unreadable = append(s.unreadable, d.Unreadable...)
				s.recorded = append(s.recorded, d.Recorded...)
				continue
			}
			s.files = append(s.files, &logFile{name: path.Clean(d.Name), size: d.Size, mtime: d.Mtime, digested: d})
		}
	}
	sort.SliceStable(s.files, func(i, j int) bool { return s.files[i].name < s.files[j].name })
	return s, nil
}

// replay scans a digest as its log would be scanned.
func (s *scanner) replay(d *digest) {
	for _, l := range d.Lines {
		if l.Gap {
			s.flush()
			s.gap()
			s.cut = true
		}
		s.lines++
		if isProgress(l.Text) {
			s.pending = append(s.pending, mark{off: l.Off, text: string(l.Text)})
			s.lastOff = l.Off
		} else {
			s.physical(l.Text, l.Off)
		}
	}
	s.flush()
}

// flush keeps the last of the iteration lines that a window had.
func (s *scanner) flush() {
	for _, m := range s.pending[max(0, len(s.pending)-s.keep):] {
		s.note(&s.progress, m, s.keep)
	}
	s.pending = nil
}

// lineOf returns the number of the line at off.
func (d *digest) lineOf(off int64) int {
	i := sort.Search(len(d.Lines), func(i int) bool { return d.Lines[i].Off >= off })
	if i < len(d.Lines) && d.Lines[i].Off == off {
		return d.Lines[i].No
	}
	return 0
}
