package ops

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/near"
)

const maxSpec = 1 << 20

// ReadFile reads a file that the shell named. Callers on other surfaces have no files
// on this machine.
func (c *Call) ReadFile(field, path string) ([]byte, error) {
	if !c.AtShell() {
		return nil, InputError(field,
			lang.Text{EN: "%q names a file, and files are read in the shell only", ZH: "%q 是文件名，而文件只能在 shell 中读取"}.With(path),
			lang.Text{EN: "give the text itself", ZH: "请直接给出文本"})
	}
	fewLines := lang.Text{EN: "a specification and a script have a few lines; a log is for diagnose", ZH: "规格与脚本只有几行；日志请用 diagnose"}
	if path == "-" && c.Stdin != nil {
		b, err := io.ReadAll(io.LimitReader(c.Stdin, maxSpec+1))
		if err == nil && len(b) > maxSpec {
			err = InputError(field, lang.Text{EN: "standard input has more than %d bytes", ZH: "标准输入超过 %d 字节"}.With(maxSpec), fewLines)
		}
		return b, err
	}
	if !filepath.IsAbs(path) {
		path = filepath.Join(c.Dir, path)
	}
	st, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		fix := lang.Text{EN: "check the path", ZH: "请检查路径"}
		if name := fileLike(path); name != "" {
			fix = DidYouMean.With(name)
		}
		return nil, InputError(field, lang.Text{EN: "%s: there is no such file", ZH: "没有文件 %s"}.With(path), fix)
	case err != nil:
		return nil, InputError(field, fileError(path, err), lang.Text{EN: "check the path and its permissions", ZH: "请检查路径及其权限"})
	case !st.Mode().IsRegular():
		return nil, InputError(field, lang.Text{EN: "%s is not a regular file", ZH: "%s 不是普通文件"}.With(path), lang.Text{EN: "name a file, or - for standard input", ZH: "请给出文件，或用 - 表示标准输入"})
	case st.Size() > maxSpec:
		return nil, InputError(field, lang.Text{EN: "%s has %d bytes, more than %d", ZH: "%s 有 %d 字节，超过 %d"}.With(path, st.Size(), maxSpec), fewLines)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, InputError(field, fileError(path, err), lang.Text{EN: "check the file's permissions", ZH: "请检查文件权限"})
	}
	return b, nil
}

// fileLike returns the name of the file beside path whose name differs least, or "".
func fileLike(path string) string {
	beside, _ := os.ReadDir(filepath.Dir(path)) // a folder that cannot be read has no names
	var names []string
	for _, e := range beside {
		if e.Type().IsRegular() {
			names = append(names, e.Name())
		}
	}
	name := filepath.Base(path)
	return near.Word(name, names, min(3, 1+len(name)/4))
}

// fileError says what is wrong with the file at path.
func fileError(path string, err error) lang.Text {
	return lang.Text{EN: "%s: %s", ZH: "%s：%s"}.With(path, lang.Said(errors.Unwrap(err)))
}

// WriteFile creates a file that the shell named and fills it with draw. An empty name
// writes nothing.
func (c *Call) WriteFile(field, file string, draw func(io.Writer) error) error {
	if file == "" {
		return nil
	}
	if !c.AtShell() {
		return InputError(field, lang.Text{EN: "files are written in the shell only", ZH: "只能在 shell 中写文件"}, lang.Text{EN: "use the shell", ZH: "请在 shell 中使用"})
	}
	if !filepath.IsAbs(file) {
		file = filepath.Join(c.Dir, file)
	}
	f, err := os.Create(file)
	if err != nil {
		return &Error{Code: Failed, Field: field, Message: lang.Said(err)}
	}
	if err := draw(f); err != nil {
		f.Close()
		return &Error{Code: Failed, Field: field, Message: lang.Said(err)}
	}
	return f.Close()
}
