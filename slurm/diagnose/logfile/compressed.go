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

// Bounds on compressed logs. A log that unpacks to more than a plausible size is read up to the bound
// and reported as cut.
const (
	keepHead      = 1 << 20 // of the beginning of a stream, which cannot be read backwards
	keepTail      = 8 << 20
	leastTail     = 64 << 10
	allKept       = 256 << 20 // of the ends of all streams together
	anyRatioLimit = 256 << 20 // unpacked bytes that are read at any compression ratio
	maxRatio      = 64        // logs compress to between a tenth and a thirtieth
	maxUnpacked   = 4 << 30   // of one compressed stream
	maxArchive    = 256 << 20
)

var errUnpacksTooFar = lang.Text{
	EN: "it unpacks to more than a plausible log: only its beginning was read",
	ZH: "解压后远大于同样大小的日志：只读取了开头",
}.Err()

// unpackedLimit returns how many unpacked bytes to read of a stream of size compressed bytes.
func unpackedLimit(size int64) int64 { return min(max(anyRatioLimit, maxRatio*size), maxUnpacked) }

// A limitedReader reads left bytes, then fails.
type limitedReader struct {
	r    io.Reader
	left int64
}

func (l *limitedReader) Read(b []byte) (int, error) {
	if l.left <= 0 {
		return 0, errUnpacksTooFar
	}
	n, err := l.r.Read(b[:min(int64(len(b)), l.left)])
	l.left -= int64(n)
	return n, err
}

// withReader calls use with the decompressed contents of a file.
func (s *Source) withReader(path string, use func(io.Reader)) error {
	f, err := s.in.Open(path)
	if err != nil {
		return pathError(path, err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return pathError(path, err)
	}
	r, done, err := unpack(path, f, info.Size())
	if err != nil {
		return pathError(path, err)
	}
	defer done()
	use(r)
	return nil
}

// unpack decompresses a stream of size bytes as the suffix of its name says. The caller must call the
// returned function when it is done.
func unpack(name string, r io.Reader, size int64) (io.Reader, func(), error) {
	switch low := strings.ToLower(name); {
	case strings.HasSuffix(low, "gz"):
		z, err := gzip.NewReader(r)
		return &limitedReader{z, unpackedLimit(size)}, func() {}, err
	case strings.HasSuffix(low, ".zst"):
		z, err := zstd.NewReader(r, zstd.WithDecoderMaxMemory(64<<20), zstd.WithDecoderConcurrency(1))
		if err != nil {
			return nil, nil, err
		}
		return &limitedReader{z, unpackedLimit(size)}, z.Close, nil
	}
	return &limitedReader{r, maxUnpacked}, func() {}, nil
}

// streamEnds holds the beginning and the end of a stream, and how many lines and bytes lie between
// them.
type streamEnds struct {
	Head, Tail []byte
	gapLines   int
	gapBytes   int64
	size       int64
}

// keepEnds reads r to its end and keeps its beginning and the last tail bytes. On an error it returns
// what it read before.
func keepEnds(r io.Reader, tail int) (*streamEnds, error) {
	k := &streamEnds{}
	r = InUTF8(r)
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
			if k.gapBytes == 0 { // nothing was dropped, so Head holds all
				k.Head, k.Tail = append(k.Head, k.Tail...), nil
			}
			return k, err
		}
	}
}
