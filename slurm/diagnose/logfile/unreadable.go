package logfile

import (
	"cmp"
	"errors"
	"io/fs"
	"path"
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/logline"
	"github.com/megatron-ops/megatron-ops/slurm/loglike"
)

// Unreadable is a log that could not be read, with the reason.
type Unreadable struct {
	Path   string `json:"path"`
	Reason string `json:"reason"`
	// ReasonZH is Reason in Chinese, where the two differ.
	ReasonZH string `json:"reason_zh,omitempty"`
}

// Unread returns the Unreadable of a log for which reading returned err.
func Unread(path string, err error) Unreadable {
	why := reason(err)
	u := Unreadable{Path: logline.Show(path), Reason: logline.Show(why.EN)}
	if why.ZH != why.EN {
		u.ReasonZH = logline.Show(why.ZH)
	}
	return u
}

// ErrEmpty is the reason of a log without a line.
var ErrEmpty = lang.Text{EN: "empty", ZH: "空文件"}.Err()

// Said names the log and the reason.
func (u Unreadable) Said() lang.Text {
	return lang.Text{EN: u.Path + ": " + u.Reason, ZH: u.Path + "：" + cmp.Or(u.ReasonZH, u.Reason)}
}

// An UnreadableError says that none of the given logs could be read.
type UnreadableError struct{ Logs []Unreadable }

// Error names every log with its reason.
func (e *UnreadableError) Error() string { return e.Text().EN }

// Text is Error in both languages.
func (e *UnreadableError) Text() lang.Text {
	en, zh := make([]string, len(e.Logs)), make([]string, len(e.Logs))
	for i, u := range e.Logs {
		en[i], zh[i] = u.Said().EN, u.Said().ZH
	}
	return lang.Text{EN: "no log could be read: " + strings.Join(en, "; "), ZH: "没有可读的日志：" + strings.Join(zh, "；")}
}

// A NoLogError says that there is no log under the given paths, and names files there that are not
// logs.
type NoLogError struct{ Paths, LeftOut []string }

// Error is Said in English.
func (e *NoLogError) Error() string { return e.Said().EN }

// Unwrap makes errors.Is(err, fs.ErrNotExist) true.
func (e *NoLogError) Unwrap() error { return fs.ErrNotExist }

// Said is Error in both languages.
func (e *NoLogError) Said() lang.Text {
	none := lang.Text{EN: "there is no log in %s", ZH: "%s 中没有日志"}.With(strings.Join(e.Paths, " "))
	if len(e.LeftOut) == 0 {
		return none
	}
	return lang.Text{
		EN: "%s; not read, as empty or not named like a log: %s. Name a file to read it",
		ZH: "%s；未读取（空文件，或文件名不像日志）：%s。直接给出文件名即可读取",
	}.With(none, Few(e.LeftOut))
}

// Documents returns the left-out files into which people paste logs.
func (s Source) Documents() []string {
	var all []string
	for _, name := range s.LeftOut {
		switch strings.ToLower(path.Ext(name)) {
		case ".md", ".html":
			all = append(all, logline.Show(name))
		}
	}
	return all
}

// Few lists the first three names and says how many more there are.
func Few(names []string) lang.Text {
	first := names[:min(len(names), 3)]
	shown := make([]string, len(first))
	for i, name := range first {
		shown[i] = logline.Show(name)
	}
	list := strings.Join(shown, ", ")
	if more := len(names) - len(first); more > 0 {
		return lang.Text{EN: "%s and %d more", ZH: "%s，另有 %d 个"}.With(list, more)
	}
	return lang.Same(list)
}

// MaxUnreadable bounds how many unreadable files a source lists.
const MaxUnreadable = 32

// ReasonOf returns why a log could not be opened or read, without its path.
func ReasonOf(err error) string { return reason(err).EN }

func reason(err error) lang.Text {
	if p := new(fs.PathError); errors.As(err, &p) {
		err = p.Err
	}
	return lang.Said(err)
}

// skip notes a log that cannot be read.
func (s *Source) skip(name string, err error) {
	if len(s.Unreadable) < MaxUnreadable {
		s.Unreadable = append(s.Unreadable, Unread(name, err))
	}
}

// LooksBinary returns nil for the windows of a text, else an error that says what the file is.
func LooksBinary(windows []Window) error {
	var head, end []byte
	for i, w := range windows {
		if w.Off == 0 {
			head = w.Data
		}
		if i == len(windows)-1 {
			end = w.Data
		}
	}
	return loglike.Text(head, end)
}

// NoLogs returns the source of a job that left no log: a diagnosis has only Slurm's record of it.
func NoLogs() Source { return Source{NoLogs: true} }
