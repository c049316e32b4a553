package logfile

import (
	"archive/tar"
	"archive/zip"
	"errors"
	"io"
	"path/filepath"
	"strings"
	"time"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/flightrecorder"
)

func (s *Source) addZip(path string) error {
	f, err := s.in.Open(path)
	if err != nil {
		return lang.Text{EN: "logs %q: %s", ZH: "日志 %q：%s"}.Err(path, err)
	}
	defer f.Close()
	var z *zip.Reader
	info, err := f.Stat()
	if err == nil {
		z, err = zip.NewReader(f, info.Size())
	}
	if err != nil {
		return lang.Text{EN: "logs %q: %s", ZH: "日志 %q：%s"}.Err(path, err)
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
		left -= s.addMember(m.Name, m.Modified, &limited{r, unpackedLimit(int64(m.CompressedSize64))}, int64(m.UncompressedSize64))
		r.Close()
	}
	return nil
}

func (s *Source) addTar(r io.Reader) error {
	left := int64(maxArchive)
	for t := tar.NewReader(r); left > 0; {
		h, err := t.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			s.skip("archive", err)
			break
		}
		if h.Typeflag == tar.TypeReg && flightrecorder.DumpName.MatchString(filepath.Base(h.Name)) {
			s.addRecording(h.Name, t)
		} else if h.Typeflag == tar.TypeReg && isLog(h.Name, h.Size) {
			left -= s.addMember(h.Name, h.ModTime, t, h.Size)
		}
	}
	return nil
}

// addRecording reads a flight recorder dump that an archive holds.
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

// addMember keeps one member of an archive, which is size bytes, under its cleaned
// name; a name is only shown, never opened. It returns how many bytes are kept.
func (s *Source) addMember(name string, mtime time.Time, r io.Reader, size int64) int64 {
	u, done, err := unpack(name, r, size)
	if err != nil {
		s.skip(name, err)
		return 0
	}
	defer done()
	return s.addStream(strings.TrimPrefix(filepath.ToSlash(filepath.Clean("/"+name)), "/"), mtime, u)
}

// addStream keeps the ends of one log, and returns how many bytes that are. What
// could be read of a damaged one is kept, and that it is damaged is noted.
func (s *Source) addStream(name string, mtime time.Time, r io.Reader) int64 {
	k, err := keep(r, min(max(allKept-s.kept, leastTail), keepTail))
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
