package logfile

import (
	"archive/tar"
	"archive/zip"
	"errors"
	"io"
	"path/filepath"
	"strings"
	"time"

	"github.com/megatron-ops/megatron-ops/slurm/diagnose/flightrecorder"
)

func (s *Source) addZip(path string) error {
	f, err := s.in.Open(path)
	if err != nil {
		return pathError(path, err)
	}
	defer f.Close()
	var z *zip.Reader
	info, err := f.Stat()
	if err == nil {
		z, err = zip.NewReader(f, info.Size())
	}
	if err != nil {
		return pathError(path, err)
	}
	left := int64(maxArchive)
	for _, m := range z.File {
		isDump := flightrecorder.DumpName.MatchString(filepath.Base(m.Name))
		if !m.Mode().IsRegular() || !isDump && !isLog(m.Name, int64(m.UncompressedSize64)) || left <= 0 {
			continue
		}
		r, err := m.Open()
		if err != nil {
			s.skip(m.Name, err)
			continue
		}
		if isDump {
			s.addRecording(m.Name, r)
			r.Close()
			continue
		}
		left -= s.addMember(m.Name, m.Modified, &limitedReader{r, unpackedLimit(int64(m.CompressedSize64))}, int64(m.UncompressedSize64))
		r.Close()
	}
	return nil
}

func (s *Source) addTar(r io.Reader) {
	left := int64(maxArchive)
	for t := tar.NewReader(r); left > 0; {
		h, err := t.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			s.skip("archive", err)
			return
		}
		if h.Typeflag == tar.TypeReg && flightrecorder.DumpName.MatchString(filepath.Base(h.Name)) {
			s.addRecording(h.Name, t)
		} else if h.Typeflag == tar.TypeReg && isLog(h.Name, h.Size) {
			left -= s.addMember(h.Name, h.ModTime, t, h.Size)
		}
	}
}

// addRecording reads a flight recorder dump from an archive.
func (s *Source) addRecording(name string, r io.Reader) {
	if len(s.recorded) >= maxFiles {
		return
	}
	one, err := flightrecorder.Read(filepath.Base(name), r)
	if err != nil {
		s.skip(name, err)
		return
	}
	s.recorded = append(s.recorded, one)
}

// addMember adds an archive's member of size bytes, and returns how many bytes of it the source keeps.
// The member's cleaned name is only shown; nothing opens it.
func (s *Source) addMember(name string, mtime time.Time, r io.Reader, size int64) int64 {
	u, done, err := unpack(name, r, size)
	if err != nil {
		s.skip(name, err)
		return 0
	}
	defer done()
	return s.addStream(strings.TrimPrefix(filepath.ToSlash(filepath.Clean("/"+name)), "/"), mtime, u)
}

// addStream keeps both ends of one log, and returns how many bytes that is. Of a damaged log it keeps
// what it could read, and notes the damage.
func (s *Source) addStream(name string, mtime time.Time, r io.Reader) int64 {
	k, err := keepEnds(r, min(max(allKept-s.kept, leastTail), keepTail))
	if err != nil {
		s.skip(name, err)
	}
	if k.size == 0 {
		return 0
	}
	n := len(k.Head) + len(k.Tail)
	s.kept += n
	s.Logs = append(s.Logs, &File{Name: name, Size: k.size, Modified: mtime, Kept: k})
	return int64(n)
}
