package logfile

import (
	"bytes"
	"cmp"
	"errors"
	"io/fs"
	"path"
	"strings"
	"unicode/utf8"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/logline"
)

// Unreadable is a log that could not be read, and why.
type Unreadable struct {
	Path   string `json:"path"`
	Reason string `json:"reason"`
	// ReasonZH is Reason in Chinese, where that differs.
	ReasonZH string `json:"reason_zh,omitempty"`
}

// Unread is a log that err keeps from being read.
func Unread(path string, err error) Unreadable {
	why := reason(err)
	u := Unreadable{Path: logline.Show(path), Reason: logline.Show(why.EN)}
	if why.ZH != why.EN {
		u.ReasonZH = logline.Show(why.ZH)
	}
	return u
}

// ErrEmpty is why a log without a line says nothing.
var ErrEmpty = lang.Text{EN: "empty", ZH: "空文件"}.Err()

// Said is the log and why it could not be read.
func (u Unreadable) Said() lang.Text {
	return lang.Text{EN: u.Path + ": " + u.Reason, ZH: u.Path + "：" + cmp.Or(u.ReasonZH, u.Reason)}
}

// An UnreadableError says that none of the logs that were named could be read.
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

// A NoLogError says that no log lies under the paths that were named, and what does.
type NoLogError struct{ Paths, LeftOut []string }

// Error is Said in English.
func (e *NoLogError) Error() string { return e.Said().EN }

// Unwrap makes it an error of what is not there.
func (e *NoLogError) Unwrap() error { return fs.ErrNotExist }

// Said is Error in both languages.
func (e *NoLogError) Said() lang.Text {
	none := lang.Text{EN: "there is no log in %s", ZH: "%s 中没有日志"}.With(strings.Join(e.Paths, " "))
	if len(e.LeftOut) == 0 {
		return none
	}
	return lang.Text{
		EN: "%s; not read, as empty or not named like a log: %s. A file that is named is read",
		ZH: "%s；未读取（空文件，或文件名不像日志）：%s。直接给出文件名即可读取",
	}.With(none, Few(e.LeftOut))
}

// Documents are those that were left out and that people paste logs into.
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

// Few names the first three of files, and says how many others there are.
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

// MaxUnreadable bounds how many are named.
const MaxUnreadable = 32

// ReasonOf is why a log could not be opened or read, without its path.
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

var errNoText = lang.Text{EN: "not text", ZH: "不是文本"}.Err()

// magics are what files begin with that are taken for logs by their names only.
var magics = []struct {
	head string
	what lang.Text
}{
	{"\x7fELF", lang.Text{EN: "a program", ZH: "程序"}},
	{"\x1f\x8b", lang.Text{EN: "gzip data: give it a name that ends with .gz", ZH: " gzip 数据：文件名请以 .gz 结尾"}},
	{"\x28\xb5\x2f\xfd", lang.Text{EN: "zstd data: give it a name that ends with .zst", ZH: " zstd 数据：文件名请以 .zst 结尾"}},
	{"PK\x03\x04", lang.Text{EN: "a zip archive: give it a name that ends with .zip", ZH: " zip 压缩包：文件名请以 .zip 结尾"}},
	{"\x89PNG", lang.Text{EN: "a picture", ZH: "图片"}},
	{"%PDF", lang.Text{EN: "a PDF document", ZH: " PDF 文档"}},
	{"SQLite format 3", lang.Text{EN: "a database", ZH: "数据库文件"}},
}

// LooksBinary tells what a file is that holds no text, or nil. Stray bytes, as
// of a crashed process, do not make a log binary.
func LooksBinary(windows []Window) error {
	for _, w := range windows {
		if w.Off == 0 {
			for _, m := range magics {
				if bytes.HasPrefix(w.Data, []byte(m.head)) {
					return lang.Text{EN: "%s but %s", ZH: "%s，而是%s"}.Err(errNoText, m.what)
				}
			}
		}
	}
	if len(windows) == 0 {
		return nil
	}
	end := windows[len(windows)-1].Data
	end = end[max(0, len(end)-4096):]
	odd, control, runes := 0, 0, 0
	for len(end) > 0 {
		r, n := utf8.DecodeRune(end)
		if end = end[n:]; r == 0 {
			continue
		}
		runes++
		switch {
		case r == utf8.RuneError && n == 1:
			odd++
		case r < ' ' && !strings.ContainsRune("\n\r\t\b\a\x1b\f", r):
			odd, control = odd+1, control+1
		}
	}
	if odd*3 > runes && control*64 > runes { // text in another encoding has none
		return lang.Text{EN: "%s but binary data", ZH: "%s，而是二进制数据"}.Err(errNoText)
	}
	return nil
}

// NoLogs is the source of a job that left no log: Slurm's word is all there is.
func NoLogs() Source { return Source{NoLogs: true} }
