package logfile

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"io"
	"path"
	"sort"
	"time"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/flightrecorder"
)

// A Digest holds the lines of one log that a diagnosis needs: those that it would read and examine in
// the file itself, with their places. Digests serve a job with more logs than one machine can read:
// each shard is digested where it lies, and one diagnosis reads all digests. The answer is the same.
type Digest struct {
	Name  string       `json:"name"`
	Size  int64        `json:"size"`
	Mtime time.Time    `json:"mtime"`
	Lines []DigestLine `json:"lines"`
	Error string       `json:"error,omitempty"`
	// Holder is the file from which this log was split off (see TakenApart); the numbers of the lines
	// are those in that file.
	Holder string `json:"holder,omitempty"`

	// A part's unreadable files, left-out files and flight recorder dumps have an entry of their own,
	// whose Name is empty.
	Unreadable []Unreadable                `json:"unreadable,omitempty"`
	LeftOut    []string                    `json:"left_out,omitempty"`
	OtherJobs  []string                    `json:"other_jobs,omitempty"`
	OtherLogs  []Unreadable                `json:"other_logs,omitempty"`
	Recorded   []*flightrecorder.Recording `json:"recorded,omitempty"`
}

// A DigestLine is one line of a Digest, with its offset and its number in the log.
type DigestLine struct {
	Off  int64  `json:"o"`
	No   int    `json:"n"`
	Text []byte `json:"t"`
	Gap  bool   `json:"g,omitempty"` // lines before this one were not read
}

// ReadDigests returns a source with the logs of all digests.
func ReadDigests(parts ...io.Reader) (Source, error) {
	var s Source
	for _, p := range parts {
		z, err := gzip.NewReader(p)
		if err != nil {
			return s, lang.Text{EN: "digest: %s", ZH: "摘要：%s"}.Err(err)
		}
		in := json.NewDecoder(bufio.NewReader(io.LimitReader(z, maxUnpacked)))
		for in.More() {
			d := new(Digest)
			if err := in.Decode(d); err != nil {
				return s, lang.Text{EN: "digest: %s", ZH: "摘要：%s"}.Err(err)
			}
			if d.Name == "" {
				s.Unreadable = append(s.Unreadable, d.Unreadable...)
				s.LeftOut = append(s.LeftOut, d.LeftOut...)
				s.OtherJobs = append(s.OtherJobs, d.OtherJobs...)
				s.OtherLogs = append(s.OtherLogs, d.OtherLogs...)
				s.recorded = append(s.recorded, d.Recorded...)
				continue
			}
			s.Logs = append(s.Logs, &File{Name: path.Clean(d.Name), Size: d.Size, Modified: d.Mtime, Digested: d})
		}
	}
	s.noLogOfItsOwn()
	sort.SliceStable(s.Logs, func(i, j int) bool { return s.Logs[i].Name < s.Logs[j].Name })
	return s, nil
}

// lineOf returns the number of the line at off, or 0 for a line that the digest does not have.
func (d *Digest) lineOf(off int64) int {
	i := sort.Search(len(d.Lines), func(i int) bool { return d.Lines[i].Off >= off })
	if i < len(d.Lines) && d.Lines[i].Off == off {
		return d.Lines[i].No
	}
	return 0
}
