package logfile

import (
	"bytes"
	"errors"
	"io"
	"strings"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/megatron-ops/megatron-ops/internal/lang"
)

// Bounds on compressed logs. What unpacks to more than a log would is read so
// far and called cut.
const (
	keepHead     = 1 << 20 // of a stream that cannot be read backwards
	keepTail     = 8 << 20
	leastTail    = 64 << 10
	allKept      = 256 << 20 // the ends of all streams together
	plainlySmall = 256 << 20 // unpacked bytes that are read whatever the ratio
	likelyRatio  = 64        // logs come to a tenth or a thirtieth
	maxUnpacked  = 4 << 30   // of one compressed stream
	maxArchive   = 256 << 20
)

var errUnpacksTooFar = lang.Text{
	EN: "it unpacks to more than a log of its size would: only its beginning was read",
	ZH: "解压后远大于同样大小的日志：只读取了开头",
}.Err()

// unpackedLimit is how much of a stream is read that is size bytes compressed.
func unpackedLimit(size int64) int64 { return min(max(plainlySmall, likelyRatio*size), maxUnpacked) }

// A limited reader reads so many bytes and then fails, if there are more.
type limited struct {
	r    io.Reader
	left int64
}

func (l *limited) Read(b []byte) (int, error) {
	if l.left <= 0 {
		return 0, errUnpacksTooFar
	}
	n, err := l.r.Read(b[:min(int64(len(b)), l.left)])
	l.left -= int64(n)
	return n, err
}

func (s *Source) withReader(path string, use func(io.Reader) error) error {
	f, err := s.in.Open(path)
	if err != nil {
		return lang.Text{EN: "logs %q: %s", ZH: "日志 %q：%s"}.Err(path, err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return lang.Text{EN: "logs %q: %s", ZH: "日志 %q：%s"}.Err(path, err)
	}
	r, done, err := unpack(path, f, info.Size())
	if err != nil {
		return lang.Text{EN: "logs %q: %s", ZH: "日志 %q：%s"}.Err(path, err)
	}
	defer done()
	return use(r)
}

// unpack undoes the compression that the name's ending tells, of a stream of
// size bytes.
func unpack(name string, r io.Reader, size int64) (io.Reader, func(), error) {
	switch low := strings.ToLower(name); {
	case strings.HasSuffix(low, "gz"):
		z, err := gzip.NewReader(r)
		return &limited{z, unpackedLimit(size)}, func() {}, err
	case strings.HasSuffix(low, ".zst"):
		z, err := zstd.NewReader(r, zstd.WithDecoderMaxMemory(64<<20), zstd.WithDecoderConcurrency(1))
		if err != nil {
			return nil, nil, err
		}
		return &limited{z, unpackedLimit(size)}, z.Close, nil
	}
	return &limited{r, maxUnpacked}, func() {}, nil
}

// kept holds the two ends of a stream, and how many lines lie between them.
type kept struct {
	Head, Tail []byte
	gapLines   int
	gapBytes   int64
	size       int64
}

// keep reads r to its end and keeps so much of its tail. What was read before an
// error is kept with it.
func keep(r io.Reader, tail int) (*kept, error) {
	k := &kept{}
	r = inUTF8(r)
	buf := make([]byte, 256<<10)
	var ring []byte
	for {
		n, err := r.Read(buf)
		b := buf[:n]
		k.size += int64(n)
		if room := min(keepHead, tail) - len(k.Head); room > 0 {
			take := min(room, len(b))
			k.Head = append(k.Head, b[:take]...)
			b = b[take:]
		}
		ring = append(ring, b...)
		if len(ring) > 2*tail {
			drop := ring[:len(ring)-tail]
			k.gapLines += bytes.Count(drop, Newline)
			k.gapBytes += int64(len(drop))
			copy(ring, ring[len(ring)-tail:])
			ring = ring[:tail]
		}
		if err != nil {
			k.Tail = ring
			if errors.Is(err, io.EOF) {
				err = nil
			}
			if k.gapBytes == 0 { // nothing was dropped: one piece
				k.Head, k.Tail = append(k.Head, k.Tail...), nil
			}
			return k, err
		}
	}
}
