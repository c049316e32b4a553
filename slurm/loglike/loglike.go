// Package loglike tells which files of a folder may be logs, by their names and by the bytes at their
// beginning and end.
package loglike

import (
	"bytes"
	"io/fs"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/lazy"
)

// Enter returns fs.SkipDir for a folder in which no job writes logs, else nil. It is for the callback
// of a directory walk.
func Enter(folder string) error {
	if folder == ".git" || folder == ".venv" {
		return fs.SkipDir
	}
	return nil
}

// notLogs are the suffixes of files that often lie beside logs but are not logs.
var notLogs = []string{
	".json",
	".jsonl",
	".yaml",
	".yml",
	".py",
	".pyc",
	".sh",
	".sbatch",
	".bin",
	".idx",
	".pt",
	".pth",
	".npy",
	".npz",
	".safetensors",
	".distcp",
	".png",
	".so",
	".o",
	".lock",
	".pid",
	".db",
	".sqlite",
	".nsys-rep",
	".qdrep",
	".md",
	".toml",
	".csv",
	".html",
	".svg",
	".sqsh",
	".sif",
	".whl",
	".pickle",
	".pkl",
}

// jobsOutput matches a job's output that ends like an object file: "--output=%x.%j.o".
var jobsOutput = lazy.New(`(?:^|[._-])\d+\.o$`)

// Name reports whether a file of this name, without its folder, may be a log. Logs have suffixes of all
// kinds ("%x.stdout", "gpt.log.1", "gpt.o4711"); the files beside them have few, so Name excludes
// those.
func Name(base string) bool {
	if strings.HasPrefix(base, ".") || strings.HasPrefix(base, "events.out.tfevents") {
		return false
	}
	low := strings.ToLower(base)
	return jobsOutput.MatchString(low) || !slices.ContainsFunc(notLogs, func(suffix string) bool { return strings.HasSuffix(low, suffix) })
}

var errNoText = lang.Text{EN: "not text", ZH: "不是文本"}.Err()

// magics are the first bytes of file formats whose files may have a log's name.
var magics = []struct {
	head string
	what lang.Text
}{
	{"\x7fELF", lang.Text{EN: "a program", ZH: "程序"}},
	{"\x1f\x8b", lang.Text{EN: "gzip data: give it a name that ends with .gz", ZH: " gzip 数据：文件名请以 .gz 结尾"}},
	{"\x28\xb5\x2f\xfd", lang.Text{EN: "zstd data: give it a name that ends with .zst", ZH: " zstd 数据：文件名请以 .zst 结尾"}},
	{"PK\x03\x04", lang.Text{EN: "a zip archive: give it a name that ends with .zip", ZH: " zip 压缩包：文件名请以 .zip 结尾"}},
	{"\xfd7zXZ\x00", lang.Text{EN: "xz data: unpack it first (xz -d)", ZH: " xz 数据：请先解压（xz -d）"}},
	{"BZh91AY&SY", lang.Text{EN: "bzip2 data: unpack it first (bzip2 -d)", ZH: " bzip2 数据：请先解压（bzip2 -d）"}},
	{"\x89PNG", lang.Text{EN: "a picture", ZH: "图片"}},
	{"%PDF", lang.Text{EN: "a PDF document", ZH: " PDF 文档"}},
	{"SQLite format 3", lang.Text{EN: "a database", ZH: "数据库文件"}},
}

// Text returns nil if a file may be a log, else an error that says what the file is. head and end are
// the file's first and last bytes. A few stray bytes, such as a crashed process leaves, do not make a
// file binary.
func Text(head, end []byte) error {
	for _, m := range magics {
		if bytes.HasPrefix(head, []byte(m.head)) {
			return lang.Text{EN: "%s but %s", ZH: "%s，而是%s"}.Err(errNoText, m.what)
		}
	}
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
	if odd*3 > runes && control*64 > runes { // text in another encoding has no control characters
		return lang.Text{EN: "%s but binary data", ZH: "%s，而是二进制数据"}.Err(errNoText)
	}
	return nil
}
