package logfile

import (
	"path"

	"github.com/megatron-ops/megatron-ops/slurm/diagnose/flightrecorder"
)

// Recordings reads the source's flight recorder dumps, of the last attempt only, and returns those that
// it cannot read with the reason.
func (s Source) Recordings() (all []*flightrecorder.Recording, unread []Unreadable) {
	all = append(all, s.recorded...)
	names := make([]string, len(s.dumps))
	for i, p := range s.dumps {
		names[i] = p.Name
	}
	last := LastAttempts(names)
	for _, p := range s.dumps {
		if Earlier(p.Name, last) {
			continue
		}
		f, err := p.Open()
		if err != nil {
			unread = append(unread, Unread(p.Name, err))
			continue
		}
		r, err := flightrecorder.Read(path.Base(p.Name), f)
		f.Close()
		if err != nil {
			unread = append(unread, Unread(p.Name, err))
			continue
		}
		all = append(all, r)
	}
	return all, unread
}
